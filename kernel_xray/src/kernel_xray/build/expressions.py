"""The call that an X-ray from the command line runs: a Python expression on `ops`, with `torch` and a set-up."""

import ast
import difflib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kernel_xray.build.arguments import CallError
from kernel_xray.report.traced import Traced

CALL, SETUP = "--call", "--setup"


def operators(ops: Traced) -> list[str]:
    """The names of the functions of a module, or of the operators of a namespace of torch.ops."""
    untraced = ops.untraced
    if isinstance(untraced, torch._ops._OpNamespace):  # it lists only operators that were used before
        prefix = f"{untraced.name}::"
        names = torch._C._dispatch_get_all_op_names()
        return sorted({name.removeprefix(prefix).partition(".")[0] for name in names if name.startswith(prefix)})
    return sorted(name for name in dir(untraced) if not name.startswith("_") and callable(getattr(untraced, name)))


def prepare(call: str, setup: str | None, ops: Traced) -> Callable[[], Any]:
    """The expression `call` as a function without arguments. It can use `torch`, `ops` and the names of `setup`.

    setup   Python statements, or the path of a .py file with them; they run here, untraced

    Raises CallError if either is not Python, names an operator that `ops` lacks, or if the set-up fails.
    """
    compiled = _compiled(call.strip(), CALL, "eval", ops)
    names: dict[str, Any] = {"torch": torch, "ops": ops}
    if setup is not None:
        file = Path(setup)
        is_file = setup.endswith(".py")
        if is_file and not file.is_file():
            raise CallError(f"{SETUP} names {setup}, which does not exist; give a .py file or Python statements")
        where = str(file) if is_file else SETUP
        text = file.read_text(encoding="utf-8") if is_file else setup
        code = _compiled(text, where, "exec", ops)
        try:
            exec(code, names)
        except Exception as error:
            raise failure(error, text, where) from None
        names["ops"] = ops
    return lambda: eval(compiled, names)


def failure(error: BaseException, text: str, where: str = CALL) -> CallError:
    """What to say about an exception that `text` raised when it ran: its line, and a way out where one is known."""
    numbers = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == where]
    lines = text.splitlines()
    number = numbers[-1] if numbers and numbers[-1] else 1
    line = lines[number - 1].strip() if number <= len(lines) else ""
    reason = str(error).strip().split("\nException raised from")[0]  # what follows is PyTorch's own stack
    message = f"{where}, line {number}: {type(error).__name__}: {reason}\n  > {line}"
    if isinstance(error, NameError):
        message += "\nThe names are torch and ops; define others with --setup 'x = ...' or --setup FILE.py."
    elif "cuda" in text.lower():
        message += "\nAn X-ray runs in the simulator: make the tensors on the CPU, without .cuda() or device='cuda'."
    return CallError(message)


def _compiled(text: str, where: str, mode: str, ops: Traced) -> Any:
    try:
        tree: Any = ast.parse(text, where, mode)
    except SyntaxError as error:
        at = (error.text or "").rstrip("\n")
        caret = " " * max((error.offset or 1) - 1, 0) + "^"
        hint = ""
        if mode == "eval":
            hint = f"\nGive one expression, such as ops.{next(iter(operators(ops)), 'f')}(torch.randn(1000))"
            hint += "; statements go into --setup."
        raise CallError(f"{where}, line {error.lineno}: {error.msg}\n  > {at}\n    {caret}{hint}") from None
    except ValueError as error:  # null bytes
        raise CallError(f"{where}: {error}") from None
    known = operators(ops)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops":
            if node.attr not in known:
                line = text.splitlines()[node.lineno - 1].strip()
                close = difflib.get_close_matches(node.attr, known, n=1)
                hint = f"; did you mean ops.{close[0]}?" if close else "."
                listed = ", ".join(f"ops.{name}" for name in known) or "none"
                raise CallError(
                    f"{where}, line {node.lineno}: ops has no {node.attr!r}{hint}\n  > {line}\nIt has: {listed}"
                )
    return compile(tree, where, mode)
