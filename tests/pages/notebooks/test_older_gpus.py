"""'Run all' works on GPUs that cannot run every rung: the cells that run rungs, with each capability pretended."""

import ast
import contextlib
import io
import re
from types import SimpleNamespace

import nbformat
import pytest
import torch

from helpers.ladder.catalogue.matmul import RUNGS
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS, NOTEBOOKS

LESSONS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
FILES = {path.name: path.read_text(encoding="utf-8") for path in (KERNELS / "matmul").glob("*.cu")}


def needs(text):
    """The capability that a kernel file asks for in its header, and whether it runs on that one only."""
    found = re.search(r"^// Needs compute capability (\d)\.(\d)(: build with)?", text, re.MULTILINE)
    return ((int(found[1]), int(found[2])), bool(found[3])) if found else ((0, 0), False)


NEEDS = {rung: needs(FILES[file.rpartition("/")[2]]) for rung, file in RUNGS.items()}


class Gpu:
    """A GPU of some capability: refuses the rungs that it cannot run, and notes those that it did."""

    def __init__(self, capability):
        self.capability, self.ran = capability, set()

    def matmul(self, rung):
        def run(a, b):
            wanted, only = NEEDS[rung]
            if self.capability < wanted or (only and self.capability != wanted):
                raise RuntimeError(f"{rung} needs {wanted}")
            self.ran.add(rung)
            return a @ b

        return run

    def load(self, name, sources, **_):
        (source,) = sources
        return SimpleNamespace(**{rung: self.matmul(rung) for rung, file in RUNGS.items() if source.endswith(file)})

    def names(self):
        """What the cells import, with this GPU in the place of the machine's."""
        kernels = SimpleNamespace(**{**vars(operators), "matmul": self.matmul})
        cuda = SimpleNamespace(get_device_capability=lambda: self.capability)
        library = SimpleNamespace(**{**vars(torch), "cuda": cuda})
        course = SimpleNamespace(target="gpu", device="cpu", load=self.load, check=check)
        return {"torch": library, "helpers": course, "operators": kernels, "RUNGS": RUNGS}


def check(matmul, *arguments, **_):
    return matmul(*(argument.float() for argument in arguments)).shape


def runs_rungs(source):
    """Whether a cell runs rungs on this machine's target; an X-ray runs in the simulator."""
    return ("operators.matmul(" in source or "RUNGS[" in source) and "traced" not in source


def run(source, gpu, setting):
    """Runs a cell after those lines of the first cell that it needs."""
    names = gpu.names()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(setting + source, names)


def cells():
    for path in LESSONS:
        code = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        wanted = ("capability = ", "sm_90a = ", "STEPS = ")
        statements = (ast.get_source_segment(code[0], node) or "" for node in ast.parse(code[0]).body)
        setting = "\n".join(text for text in statements if text.startswith(wanted))
        own = re.search(r"^def check\(.*?(?=\n\n|\Z)", code[0], re.MULTILINE | re.DOTALL)
        setting = f"{setting}\n{own.group() if own else ''}\n"
        yield from ((path.stem, number, source, setting) for number, source in enumerate(code) if runs_rungs(source))


CELLS = list(cells())


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 9), (9, 0), (12, 0)], ids=str)
def test_no_cell_asks_a_gpu_for_a_rung_that_it_lacks(capability):
    gpu = Gpu(capability)
    for _, _, source, setting in CELLS:
        run(source, gpu, setting)
    runs = {rung: capability == least or (capability > least and not only) for rung, (least, only) in NEEDS.items()}
    possible = {rung for rung in runs if runs[rung]}
    shown = {rung for _, _, source, _ in CELLS for rung in re.findall(r"matmul_(?:wmma|mma|wgmma|cluster)\b", source)}
    assert gpu.ran >= possible & shown and gpu.ran <= possible


def test_a_cell_without_a_guard_is_found():
    with pytest.raises(RuntimeError, match="matmul_mma needs"):
        run("operators.matmul('matmul_mma')(torch.ones(2, 2), torch.ones(2, 2))", Gpu((7, 5)), "")


def test_the_rungs_that_need_newer_gpus_are_known():
    newer = {rung: wanted for rung, wanted in NEEDS.items() if wanted[0] > (7, 5)}
    assert newer == {
        rung: ((9, 0), True) if re.match("matmul_(wgmma|cluster|split|choice)", rung) else ((8, 0), False)
        for rung in RUNGS
        if re.match("matmul_(w?g?mma|cluster|split|choice)", rung)
    }
    assert len(newer) > 10
    assert len(CELLS) >= 4
