"""The museum of lesson 13: the right tool finds every planted bug, with its kind and line, and accepts its twin."""

import json
import re

import contract
import pytest
import torch
from made_up import MACHINE
from running import python
from test_hopper import for_hopper
from test_nvcc import KERNELS, compile_for, needs_nvcc, together

import helpers
from helpers.pages import museum
from helpers.pages.museum import FAMILIES, python_bugs
from helpers.pages.museum import exhibit as exhibits
from helpers.pages.museum.exhibit import LAUNCH_FAILED
from helpers.upkeep.validation import seeds
from kernel_xray.build import flags

pytestmark = pytest.mark.slow
EXHIBITS = museum.EXHIBITS
XRAYED = [exhibit for exhibit in EXHIBITS if exhibit.tool == "xray"]
SEEDS = (0, 1, 2)
CPU = torch.device("cpu")


OTHERS = [exhibit for exhibit in EXHIBITS if exhibit.tool != "xray"]


def each(exhibits):
    return pytest.mark.parametrize("exhibit", exhibits, ids=lambda exhibit: exhibit.name)


def examined(exhibit, **options):
    try:
        return museum.examine(exhibit, **options)
    except museum.NotHere as reason:
        pytest.skip(str(reason))


# -- Contents ----------------------------------------------------------------------------------------------------------


def test_it_has_bugs_of_every_family():
    assert len(EXHIBITS) >= 16 and len({exhibit.name for exhibit in EXHIBITS}) == len(EXHIBITS)
    for family in FAMILIES:
        assert sum(exhibit.family == family for exhibit in EXHIBITS) >= 3, family
    assert {exhibit.family for exhibit in EXHIBITS} == set(FAMILIES)


def test_find_names_what_there_is():
    assert museum.find("last_block").family == "synchronisation"
    with pytest.raises(ValueError, match=r"no exhibit 'first_block'; there are guard_off_by_one, "):
        museum.find("first_block")


@each(XRAYED)
def test_an_arrow_marks_where_the_tool_finds_it(exhibit):
    planted = museum.planted(exhibit)
    text = exhibit.path.read_text(encoding="utf-8").split("\n")
    assert planted.kind == exhibit.finds
    assert all(f"// <- {planted.kind}" in text[line - 1] for line in planted.lines)


def test_every_arrow_belongs_to_an_exhibit():
    arrows = sum(path.read_text().count("// <- ") for path in (XRAYED[0].path.parent).glob("*.cu"))
    assert arrows == sum(len(museum.planted(exhibit).lines) for exhibit in XRAYED) > 0


def test_exhibits_without_an_xray_have_no_line():
    assert museum.planted(museum.find("missing_gradient")) is None
    assert museum.planted(museum.find("capped_grid")) is None


# -- Findings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@each(XRAYED)
def test_the_xray_finds_it_with_its_kind_and_line(exhibit, seed):
    finding, planted = museum.examine(exhibit, seed=seed), museum.planted(exhibit)
    assert finding.found, "not found"
    assert finding.kind == planted.kind, finding.message
    assert finding.place in [f"{exhibit.path.name}:{line}" for line in planted.lines], finding.message
    assert finding.kernel == f"{exhibit.name}_kernel"
    assert re.search(r"in kernel '\w+', block \(\d+, \d+, \d+\), thread \(\d+, \d+, \d+\)", finding.message)


@pytest.mark.parametrize("seed", SEEDS)
@each(XRAYED)
def test_the_xray_finds_nothing_in_its_twin(exhibit, seed):
    assert museum.examine(exhibit, fixed=True, seed=seed).message == ""


@each(OTHERS)
def test_its_tool_finds_it(exhibit):
    finding = examined(exhibit)
    assert finding.found, "not found"
    assert re.search(exhibit.finds, finding.message), finding.message


@each(OTHERS)
def test_its_tool_finds_nothing_in_its_twin(exhibit):
    assert examined(exhibit, fixed=True).message == ""


@each(XRAYED[:6])
def test_the_twin_computes_what_it_should(exhibit):
    """A twin that did nothing would pass the tools too."""
    arguments = exhibit.prepare(CPU)
    result = exhibit.function(fixed=True)(*arguments)
    expected = {
        "guard_off_by_one": lambda out, value: None,
        "vector_guard": lambda a: 2 * a,
        "vector_misaligned": lambda a: 2 * a,
        "load_before_guard": lambda a: a,
        "negative_index": lambda a, index: a[index],
        "int_overflow": lambda a, column: a[:, column],
    }[exhibit.name](*arguments)
    assert result is expected is None or torch.equal(result, expected)
    if exhibit.name == "guard_off_by_one":
        assert arguments[0].eq(1).all()


def test_the_fixed_synchronisation_computes_what_it_should():
    ops = museum.operators("synchronisation")
    a = torch.arange(256.0)
    assert torch.equal(ops.tile_overwritten_fixed(a), a.view(4, 64).flip(1).sum(0))
    assert ops.warp_synchronous_fixed(a[:64]).item() == a[:64].sum().item()
    assert ops.shuffle_in_branch_fixed(a[:20]).item() == a[:20].sum().item()
    assert ops.last_block_fixed(a, torch.zeros(1, dtype=torch.int32)).item() == a.sum().item()
    shifted = torch.cat([a[:1], a[1:] + a[:-1]])
    shifted[64::64] = a[64::64]  # the first element of a block has no left neighbour
    assert torch.equal(ops.barrier_in_branch_fixed(a[:100]), shifted[:100])
    values = torch.arange(300, dtype=torch.int32) % 7
    for count in (ops.uncleared_bins_fixed, ops.lost_updates_fixed):
        bins = torch.zeros(16, dtype=torch.int32)
        count(values, bins)
        assert torch.equal(bins, torch.bincount(values, minlength=16).int())
    assert ops.waits_for_all_fixed(torch.arange(4.0), torch.zeros(1, dtype=torch.int32)).tolist() == [2, 3, 4, 1]


def test_the_fixed_twins_of_published_kernels_compute_what_they_should():
    ops = museum.operators("published")
    scores, values = museum.find("masked_half").prepare(CPU)
    weight = scores.masked_fill(torch.ones(33, 33).triu(1).bool(), -torch.inf).softmax(1)
    helpers.assert_close(ops.masked_half_fixed(scores, values), weight.double() @ values.double(), accumulation=33)
    x = torch.tensor([0.0, 1.0, 10.0, 4.0, 5.5])
    assert ops.winner_overwritten_fixed(x, 4).tolist() == [0, 2, 4, 3]
    numbers = torch.arange(300, dtype=torch.int32) % 7
    for count in (ops.late_clearing_fixed, ops.block_barrier_fixed):
        bins = torch.full((16,), 5, dtype=torch.int32)
        count(numbers, bins)
        assert torch.equal(bins, torch.bincount(numbers, minlength=16).int())
    a = torch.arange(64.0)
    assert torch.equal(ops.scan_in_place_fixed(a), a.cumsum(0))
    assert ops.sum_into_empty_fixed(a).item() == a.sum().item()
    assert ops.masked_half_fixed(torch.ones(0, 0), torch.ones(0)).numel() == ops.sum_into_empty_fixed(a[:0]).item() == 0
    with pytest.raises(RuntimeError, match=r"scores must be \[2, 2\], as values has 2 elements; got \[3, 3\]"):
        ops.masked_half_fixed(torch.ones(3, 3), torch.ones(2))
    with pytest.raises(RuntimeError, match="a must have 64 elements, got 65"):
        ops.scan_in_place_fixed(torch.zeros(65))


def test_each_published_mistake_has_an_exhibit_and_a_source():
    named = [published.exhibit for published in museum.PUBLISHED]
    assert len(set(named)) == len(named) >= 10
    assert {exhibit.name for exhibit in EXHIBITS if exhibit.family == "published"} <= set(named)
    for published in museum.PUBLISHED:
        assert museum.find(published.exhibit)
        place = r"[\w.-]+/[\w.-]+ (?:[0-9a-f]{7} \S.*:\d+|issue \d+|pull request \d+)"
        assert all(re.match(place, source) for source in published.sources), published.sources
        assert published.found and published.symptom and published.fix
    text = museum.sources()
    assert "winner_overwritten\n  in        erikwijmans/" in text and text.endswith("[read on 2026-11-22]")


@pytest.mark.parametrize("traced", [True, pytest.param(False, marks=for_hopper)])
def test_the_fixed_units_compute_what_they_should(traced):
    ops, device = museum.operators("units", traced=traced), CPU if traced else helpers.device
    row = torch.arange(32.0, device=device)
    assert torch.equal(ops.no_barrier_init_fixed(row), 2 * row)
    assert torch.equal(ops.one_arrival_fixed(row), row.flip(0))
    for tiles in (0, 1, 5):
        a = torch.arange(tiles * 512.0, device=device).view(-1, 64).bfloat16()
        assert torch.equal(ops.tile_too_soon_fixed(a), 2 * a)
        assert torch.equal(ops.no_proxy_fence_fixed(a), 2 * a)
        assert torch.equal(ops.no_store_wait_fixed(a), a)
    with pytest.raises(RuntimeError, match=r"a must have rows of 64, a multiple of 8 of them; got \[4, 128\]"):
        ops.no_store_wait_fixed(torch.zeros(4, 128, device=device).bfloat16())
    with pytest.raises(RuntimeError, match="a must have 32 elements, got 64"):
        ops.one_arrival_fixed(torch.zeros(64, device=device))


@pytest.mark.parametrize("family", ["bounds", "units"])
def test_units_are_built_for_hopper(monkeypatch, family):
    given = {}
    monkeypatch.setattr(exhibits, "extension", lambda name, files, **options: given.update(options))
    museum.operators(family, traced=False)
    assert given["flags"] == ("-lineinfo", *(flags.SM_90A if family == "units" else []))


@needs_nvcc
def test_the_units_compile_for_a_gpu(tmp_path):
    """Optimised, as for a GPU: threads still access the tiles, and only the twins have fences and waits."""
    for code in ("sm_90a", "compute_90a"):
        done = compile_for(together([KERNELS / "museum" / "units.cu"]), code, tmp_path, optimised=True)
        assert done.returncode == 0, done.stderr[:5000]
    found = {}
    for entry in re.split(r"(?=\.entry )", (tmp_path / "code").read_text())[1:]:
        (name,) = [e.name for e in EXHIBITS if e.family == "units" and f"{e.name}_" in entry.partition("(")[0]]
        found[name, "_fixed_kernel" in entry.partition("(")[0]] = entry
    assert len(found) == 10
    for fixed in (False, True):
        assert len(re.findall(r"mbarrier\.init", found["no_barrier_init", fixed])) == 1 + fixed
        assert "ld.shared" in found["tile_too_soon", fixed] and "st.shared" in found["no_proxy_fence", fixed]
        assert ("fence.proxy.async" in found["no_proxy_fence", fixed]) == fixed
        assert ("cp.async.bulk.wait_group" in found["no_store_wait", fixed]) == fixed


# -- The neighbour -----------------------------------------------------------------------------------------------------


def test_a_write_into_the_neighbouring_allocation_is_found():
    fill = museum.operators("bounds").guard_off_by_one
    whole = torch.zeros(2000)
    for out in (whole[:1000], torch.zeros(1000)):
        report = helpers.xray(fill, out, 1.0, seed=0)
        assert [fault.kind for fault in report.faults] == ["out-of-bounds"]
        assert "writes 4 bytes just past the end of" in report.faults[0].message
        assert report.faults[0].block == (7, 0, 0) and report.faults[0].thread == (104, 0, 0)
    assert whole[1000] == 0


def test_a_size_without_a_thread_past_the_end_is_right():
    report = helpers.xray(museum.operators("bounds").guard_off_by_one, torch.zeros(1024), 1.0, seed=0)
    assert report.faults == []


# -- The contract ------------------------------------------------------------------------------------------------------


HOST = {"or_for_and": "dtypes", "strided_input": "layouts", "zero_size": "sizes", "unchecked_dtype": "dtypes"}


@pytest.mark.parametrize(("name", "point"), HOST.items(), ids=HOST)
def test_the_contract_rejects_it_and_holds_its_twin(name, point):
    def operator(function):
        return contract.Operator(name, lambda: function, torch.mul, ("a", "b"), dtypes=DTYPES[function])

    broken, fixed = museum.find(name).function(), museum.find(name).function(fixed=True)
    DTYPES = {broken: (torch.float32,), fixed: (torch.float32, torch.float64)}
    with pytest.raises(contract.ContractBroken):
        contract.hold(operator(broken), point)
    contract.hold(operator(fixed), point)


def test_a_failed_launch_is_blamed_on_the_next_one():
    ops = museum.operators("host")
    ones = torch.ones(10, device=helpers.device)
    ops.no_launch_check(ones, ones)
    with pytest.raises(RuntimeError, match=LAUNCH_FAILED):
        ops.multiply(ones, ones)  # which did nothing wrong
    assert ops.multiply(ones, ones).eq(1).all()


@pytest.mark.parametrize("name", sorted(python_bugs.WRONG_KERNELS))
def test_the_planted_kernel_is_wrong(name):
    a = torch.randn(63, generator=torch.Generator().manual_seed(1))
    kernel = python_bugs.WRONG_KERNELS[name]()
    kernel(a + 1)
    assert not torch.equal(kernel(a), 2 * a)


# -- No false alarms ---------------------------------------------------------------------------------------------------


def test_nothing_is_reported_for_correct_kernels_under_a_few_seeds():
    kernels = seeds.correct(solutions=False)
    assert len(kernels) > 80 and any(name.startswith("fused_muladd") for name in kernels)
    assert "last_block, fixed" in kernels and "exercise roll" in seeds.correct()
    assert seeds.false_alarms([0], kernels) == []
    some = [name for name in kernels if ", fixed" in name or "vector_add" in name]
    assert seeds.false_alarms([1, 2], kernels, some) == []


def test_an_accused_kernel_would_show(monkeypatch, capsys):
    broken = museum.find("lost_updates")
    accused = {"wrong": lambda seed: [museum.examine(broken, seed=seed).message]}
    assert len(seeds.false_alarms([3, 4], accused)) == 2
    monkeypatch.setattr(seeds, "correct", lambda: accused)
    assert seeds.main(2) == 1
    assert "1 kernels, seed 2 of 2: 2 faults reported" in capsys.readouterr().out


def test_the_whole_museum_leaves_the_process_alive():
    code = (
        "from helpers import museum\n"
        "for exhibit in museum.EXHIBITS:\n"
        "    if exhibit.tool == 'xray':\n"
        "        for seed in (5, 6): print(exhibit.name, museum.examine(exhibit, seed=seed).kind)\n"
        "print(museum.examine(museum.find('last_block'), fixed=True))\n"
    )
    done = python("-c", code)
    assert done.stdout.count("\n") == 2 * len(XRAYED) + 1
    assert "Finding(exhibit='last_block', tool='xray', kind=''" in done.stdout


# -- Recordings from a GPU ---------------------------------------------------------------------------------------------


def test_recorded_sessions(tmp_path):
    path = tmp_path / "sanitizer_vs_xray.json"
    assert "not recorded yet" in repr(museum.recorded("racecheck", path))
    assert museum.verdicts(path) == [] and "not recorded yet" in repr(museum.side_by_side(path))
    record = {"exhibit": "last_block", "xray": {"kind": "race"}, "tools": {"memcheck": {"kind": ""}, "racecheck": None}}
    other = {"exhibit": "negative_index", "xray": {"kind": "out-of-bounds"}, "tools": {"memcheck": {"kind": "read"}}}
    sessions = [
        {"name": "racecheck", "command": "compute-sanitizer ...", "output": "========= 1 hazard"},
        {"name": "in a file", "command": "compute-sanitizer ...", "output": "========= 1 hazard in a.cu:7"},
    ]
    path.write_text(json.dumps({"machine": MACHINE, "records": [record, other], "sessions": sessions}))
    assert repr(museum.recorded("racecheck", path)) == (
        "$ compute-sanitizer ...\n========= 1 hazard\n[recorded on NVIDIA H200, 2026-11-21]"
    )
    since = f"; names and lines are those of commit {MACHINE['commit']}]"
    assert repr(museum.recorded("in a file", path)).endswith(f"in a.cu:7\n[recorded on NVIDIA H200, 2026-11-21{since}")
    assert museum.verdicts(path) == [record, other]
    table = museum.side_by_side(path)
    assert table.title == "recorded on NVIDIA H200, 2026-11-21"
    assert [table.header, *table.rows] == [
        ["exhibit", "X-ray", "memcheck", "racecheck"],
        ["last_block", "race", "nothing", "did not end"],
        ["negative_index", "out-of-bounds", "read", ""],
    ]
    with pytest.raises(ValueError, match="no session 'memcheck'; there are racecheck"):
        museum.recorded("memcheck", path)
