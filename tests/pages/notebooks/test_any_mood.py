"""Learners run cells again, and go back: no cell of a lesson minds, as far as its names allow."""

import ast
import inspect
import os
import re
import symtable
from unittest import mock

import nbformat
import pytest
import torch
from jupyter_client.manager import start_new_kernel
from nbformat.v4 import new_code_cell

from helpers.paths import NOTEBOOKS

LESSONS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
CELL_SECONDS = 600


def code_of(path):
    """(number, cell) of each code cell."""
    cells = nbformat.read(path, as_version=4).cells
    return [(number, cell) for number, cell in enumerate(cells) if cell.cell_type == "code"]


def tables(table):
    yield table
    for child in table.get_children():
        yield from tables(child)


class Generators(ast.NodeTransformer):
    """Makes comprehensions generators, whose variables are their own; since Python 3.12 the others' are the cell's."""

    def visit_ListComp(self, node):
        return ast.GeneratorExp(self.generic_visit(node).elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def names(source):
    """The global names that a cell assigns, and those that it only reads."""
    tree = Generators().visit(ast.parse(re.sub(r"^[%!].*", "", source, flags=re.MULTILINE)))
    table = symtable.symtable(ast.unparse(ast.fix_missing_locations(tree)), "cell", "exec")
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    read = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    for inner in tables(table):
        read |= {symbol.get_name() for symbol in inner.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return assigned, read - assigned


def reused(cells):
    """Names whose value depends on the order: a cell reads them from an earlier one, and a later one changes them."""
    found, of_cells = [], [(number, *names(cell.source)) for number, cell in cells if not cell.source.startswith("%%")]
    for k, (number, _, read) in enumerate(of_cells):
        for name in sorted(read):
            before = [n for n, assigned, _ in of_cells[:k] if name in assigned]
            after = [n for n, assigned, _ in of_cells[k + 1 :] if name in assigned]
            if before and after:
                found.append(f"cell {number} reads {name} of cell {before[-1]}; cell {after[0]} gives it another value")
    return found


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_cell_may_run_after_a_later_one(path):
    assert reused(code_of(path)) == []


def test_a_reused_name_is_found():
    sources = ["%%exercise copy\nx = 4", "x, y = 1, 2\nfor i in range(3): pass", "print(x, i)\nf = lambda: y"]
    sources += ["x = 3\ni = [y for y in 'ab']", "f()"]
    cells = list(enumerate(map(new_code_cell, sources)))
    assert reused(cells) == [f"cell 2 reads {name} of cell 1; cell 3 gives it another value" for name in "ix"]


# -- Runs: half of the cells; then, in a kernel started anew, all in order, each twice, and all from the last on -------


def errors(cells):
    """Runs the cells in one kernel; returns the errors of those that are not tagged raises-exception."""
    found = []
    outside = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    with mock.patch.dict(os.environ, outside, clear=True):
        manager, client = start_new_kernel(kernel_name="python3", cwd=str(NOTEBOOKS))
    try:
        for number, cell in cells:
            reply = client.execute_interactive(cell.source, timeout=CELL_SECONDS, output_hook=lambda message: None)
            said = reply["content"]
            if said["status"] == "error" and "raises-exception" not in cell.metadata.get("tags", []):
                found.append(f"cell {number}: {said['ename']}: {said['evalue']}")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_cell_runs_again(path):
    cells = code_of(path)
    overrides = inspect.signature(torch.library.register_fake).parameters["allow_override"].default
    if not overrides and any("register_autograd" in cell.source for _, cell in cells):
        pytest.skip("a PyTorch before the override registers an operator's derivative once, and says so")
    assert errors(cells[: len(cells) // 2]) == []
    assert errors([cell for cell in cells for _ in (1, 2)] + cells[::-1]) == []


@pytest.mark.slow
def test_a_cell_that_runs_only_once_is_found():
    raises = new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    cells = list(enumerate([new_code_cell("x = [1]"), new_code_cell("y = x.pop()"), raises]))
    assert errors(cells) == []
    assert errors([*cells, cells[1]]) == ["cell 1: IndexError: pop from empty list"]
