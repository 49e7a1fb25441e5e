"""A build depends on every file that the compiler read, however the source names it."""

import os
import time
from pathlib import Path

import pytest
import torch
from fault_rounds import write_kernel

import kernel_xray
from kernel_xray.build import dependencies, sources
from kernel_xray.machine import cache
from kernel_xray.translate import rewriter
from kernel_xray.translate.includes import closure

pytestmark = pytest.mark.usefixtures("own_cache")
PROGRAM = r"""
#include <cstdio>
#ifndef HIDDEN
#define HIDDEN "by_macro.h"
#endif
#include HIDDEN
#include \
  "continued.h"
# /* a comment
     of two lines */ include /* another */ "commented.h"
#import "imported.h"
#import "imported.h"
#include "next.h"
__global__ void k() {}
int main() { std::printf("%d %d %d %d %d %d\n", by_macro, continued, commented, imported, next, __LINE__); }
"""
HEADERS = ("by_macro", "continued", "commented", "imported", "next")


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - 10,) * 2)  # before the next build begins


@pytest.mark.slow  # the same of an extension is below
def test_an_edit_of_any_header_gives_the_new_program_and_an_unchanged_one_is_not_built_again(tmp_path, monkeypatch):
    write(tmp_path / "a" / "main.cu", PROGRAM)
    write(tmp_path / "a" / "next.h", "#include_next <next.h>\n")
    places = {name: tmp_path / ("b" if name == "next" else "a") / f"{name}.h" for name in HEADERS}
    for name, place in places.items():
        write(place, f"const int {name} = 0;\n")

    def numbers():
        folders = [tmp_path / "a", tmp_path / "b"]
        return kernel_xray.program(tmp_path / "a" / "main.cu", include_paths=folders).stdout.split()

    expected = ["0"] * len(HEADERS)
    assert numbers() == [*expected, "15"]
    for i, (name, place) in enumerate(places.items()):
        write(place, f"const int {name} = 7;\n")
        expected[i] = "7"
        assert numbers() == [*expected, "15"], name
    monkeypatch.setattr("kernel_xray.machine.guard.run_all", None)
    assert numbers() == [*expected, "15"]


@pytest.mark.slow  # five builds; test_units.py edits a header
def test_an_edit_of_any_header_gives_the_new_extension_and_its_undoing_the_old(tmp_path):
    (tmp_path / "k").mkdir()

    def value(number):
        source = write_kernel(tmp_path / "k", 0, number)
        os.utime(source.with_name("value.h"), (time.time() - 10,) * 2)  # before the next build begins
        y = torch.zeros(4, device=kernel_xray.device)
        kernel_xray.load("t_depends", source, is_python_module=False).run(y)
        return y[3].item()

    for expected in (2, 3, 2):
        assert value(expected) == expected
    assert len([*cache.root().glob("t_depends*")]) == 2

    for expected, damage in ((4, lambda place: os.truncate(place, 20)), (5, Path.unlink)):
        for place in (cache.root() / "dependencies").iterdir():
            damage(place)  # nothing says any more on what a build depends
        assert value(expected) == expected


def test_a_file_written_during_the_build_leads_to_another_build(tmp_path):
    header = tmp_path / "late.h"
    header.write_text("1")
    dependencies.record("0123", [header], [], since=time.time() - 5)
    changed = dependencies.current("0123")
    assert changed != "0123"
    dependencies.record(changed, [header], [], since=time.time() + 5)
    assert dependencies.current("0123") == changed
    header.write_text("2")
    assert dependencies.current("0123") not in ("0123", changed)
    header.unlink()
    assert dependencies.current("0123") not in ("0123", changed)


def test_a_file_from_the_future_does_not_make_each_build_another_one(tmp_path):
    header = tmp_path / "tomorrow.h"
    header.write_text("1")
    tomorrow = time.time() + 86400
    os.utime(header, (tomorrow, tomorrow))  # the clock was set back
    dependencies.record("0123", [header], [], since=time.time() - 5)
    assert dependencies.current("0123") == "0123"


def test_what_the_compiler_wrote_is_read(tmp_path):
    listed = tmp_path / "0.d"
    listed.write_text("0.o: a.cu \\\n /x/with\\ blank.h \\\n  /y/z.h\n")
    assert dependencies.of_makefiles([listed, tmp_path / "none.d"]) == [
        Path("a.cu"),
        Path("/x/with blank.h"),
        Path("/y/z.h"),
    ]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"files": 3, "state": ""}'])
def test_a_damaged_list_counts_as_none(text):
    (cache.root() / "dependencies").mkdir()
    (cache.root() / "dependencies" / "0123.json").write_text(text)
    assert dependencies.current("0123") == "0123"


def test_sources_and_headers_of_the_system_are_not_watched(tmp_path):
    source = tmp_path / "k.cu"
    source.touch()
    dependencies.record("0123", [source, Path("/usr/include/stdio.h"), Path(torch.__file__)], [source], time.time())
    assert not (cache.root() / "dependencies").exists()


def test_a_large_header_is_translated_once_for_all_programs(tmp_path, monkeypatch):
    translated, rewrite = [], rewriter.rewrite

    def counted(text, **options):
        translated.append("large.h" if "large" in text.split("\n")[0] else "program.cu")
        return rewrite(text, **options)

    monkeypatch.setattr(rewriter, "rewrite", counted)
    (tmp_path / "large.h").write_text(
        "// large\n#define SHIFT(x) asm(NAME : : )\nSHIFT(2);\n" + f"int a;  // {100 * chr(0xE9)}\n" * 900
    )

    def write(program):
        (tmp_path / "program.cu").write_text(program + '#include "large.h"\n')
        texts = closure([tmp_path / "program.cu"], [])
        places = sources.write_translated(texts, tmp_path / "build", [], {}, {path: str(path) for path in texts})
        return places[tmp_path / "large.h"].read_text()

    first = write('#define NAME "bar.sync 0;"\n')
    assert "op_bar_sync" in first and "\xe9" in first
    assert write('#define NAME "bar.sync 0;"\n#define OTHER 1\n') == first
    assert translated == ["program.cu", "large.h", "program.cu"]
    assert "op_trap" in write('#define NAME "trap;"\n')  # a macro that the header uses
    assert translated.count("large.h") == 2


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('#define A "a.h"\n#include A\n', {"a.h"}),
        ('#define A "a.h"\n#include A\n#undef A\n#define A "b.h"\n#  include A\n', {"a.h", "b.h"}),
        ('#define B "b.h"\n#include "names_b.h"\n', {"names_b.h", "b.h"}),
        ('#define A "a.h"\n#undef A\n#include A\n', set()),
        ('#ifdef X\n#define A "a.h"\n#else\n#define A "b.h"\n#endif\n#include A\n', set()),
        ('#ifndef A\n#define A "a.h"\n#endif\n#include A\n', set()),
    ],
)
def test_a_file_that_a_macro_names_is_translated_if_it_is_sure_which(tmp_path, text, read):
    for name in ("a.h", "b.h"):
        (tmp_path / name).write_text("__global__ void k() {}\n")
    (tmp_path / "names_b.h").write_text("#include B\n")
    (tmp_path / "k.cu").write_text(text)
    assert {path.name for path in closure([tmp_path / "k.cu"], [])} == read | {"k.cu"}
