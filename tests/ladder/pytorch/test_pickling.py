"""Operators in pickles, beyond the contract's point 'copies'."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch

from helpers.ladder.pytorch import operators


def test_a_module_of_the_course_is_pickled_and_copied():
    from helpers.ladder.pytorch.many_gpus import GatedMLP  # a second of imports, which not every worker needs

    model = GatedMLP(4, 6)
    for found in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert found.mult is model.mult
        assert torch.equal(found.up.weight, model.up.weight)


def test_namespaces_and_packets_are_pickled_and_copied_by_name():
    operators.vector_add()
    for kept in (torch.ops.vector_add, torch.ops.vector_add.vector_add, torch.ops.aten.mul, torch.ops.aten.mul.Tensor):
        assert pickle.loads(pickle.dumps(kept)) is kept
        assert copy.deepcopy(kept) is kept


@pytest.mark.slow  # a new process with PyTorch; lesson 12 has one too
def test_another_process_builds_an_operator_of_the_course():
    data = pickle.dumps(operators.vector_add())
    code = "import pickle, sys, torch; op = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
    code += "from helpers import device; x = torch.ones(2, device=device); print(op(x, x).tolist())"
    done = subprocess.run([sys.executable, "-c", code, data.hex()], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[2.0, 2.0]", done.stderr


def test_an_operator_that_is_not_registered_is_named():
    data = pickle.dumps(torch.ops.aten.mul.Tensor).replace(b"aten::mul", b"aten::mux")
    with pytest.raises(RuntimeError, match=r"holds the operator aten::mux, which this process has not registered"):
        pickle.loads(data)
