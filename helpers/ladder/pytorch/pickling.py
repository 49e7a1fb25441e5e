"""Operators in copies and pickles: a module that keeps one can be saved, loaded and sent to another process.

PyTorch copies an operator by reference, but cannot pickle it, nor copy the namespace that helpers.load returns. Here
both are pickled by name. Loading finds an operator of the course by building it; another one must be loaded first.
"""

import copyreg
import importlib
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket, _OpNamespace


def find(name: str, overload: str = "") -> Any:
    """The namespace "ns", packet "ns::op" or overload of torch.ops. Raises RuntimeError if it is not registered."""
    namespace, _, op = name.partition("::")
    operators = importlib.import_module("helpers.ladder.pytorch.operators")  # whose operators register themselves here
    if op in operators.NAMES and namespace == operators.NAMES[op]:
        operators.registered(op)
    found = getattr(torch.ops, namespace)
    try:
        for part in filter(None, (op, overload)):
            found = getattr(found, part)
    except AttributeError:
        raise RuntimeError(
            f"the pickle holds the operator {name}, which this process has not registered; load its extension first, "
            f'as with helpers.load("{namespace}", ..., is_python_module=False)'
        ) from None
    return found


copyreg.pickle(OpOverload, lambda op: (find, (op._schema.name, op._overloadname)))
copyreg.pickle(OpOverloadPacket, lambda packet: (find, (packet._qualified_op_name,)))
copyreg.pickle(_OpNamespace, lambda namespace: (find, (namespace.name,)))
