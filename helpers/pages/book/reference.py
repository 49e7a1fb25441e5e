"""The reference: a page of what `import helpers` gives, for autodoc, and one of the command line's own help."""

import contextlib
import importlib
import inspect
import io
import os
from unittest import mock

import kernel_xray

# Headings in the order of the page -> the rooms whose functions they have, here and in the instrument.
HEADINGS = {
    "Build kernels": ("build",),
    "Check results": ("checking",),
    "X-ray a kernel": ("report",),
    "Exercises": ("practice",),
    "Show kernels and threads": ("pictures",),
    "Figures to move": ("figures",),
    "Measure": ("benchmarks",),
    "Recorded measurements": ("results",),
    "Errors": ("translate", "runtime"),
    "The machine": ("machine",),
}
# What the functions return, described below them.
RETURNED = {
    "build": ("kernel_xray.build.programs.ProgramResult",),
    "checking": ("helpers.ladder.checking.compare.CheckResult",),
    "figures": ("kernel_xray.report.shell.Page",),
    "report": (
        "kernel_xray.report.report.Report",
        "kernel_xray.report.facts.Line",
        "kernel_xray.report.facts.FaultRecord",
    ),
}
VALUES = {
    "device": "The `torch.device` on which tensors for the kernels live: `cuda`, or `cpu` for the simulator.",
    "target": '"gpu" or "simulator". The environment variable `KERNEL_LADDER_TARGET` overrides the choice.',
}


def pages() -> dict[str, str]:
    """Path -> text of both pages."""
    return {"reference/api.rst": api(), "reference/command_line.md": command_line()}


def api() -> str:
    """reStructuredText: a directive for each name of `helpers.__all__`, room by room."""
    face = importlib.import_module("helpers")  # by name, since no room imports the face
    title = "API reference"
    lines = [title, "=" * len(title), "", "What a notebook gets from ``import helpers``.", ""]
    places = {name: kernel_xray._MODULES.get(name, module) for name, module in face._MODULES.items()}
    for heading, rooms in HEADINGS.items():
        lines += [heading, "-" * len(heading), ""]
        for name in face.__all__:
            if places[name].split(".")[-2] in rooms:
                lines += directive(name, getattr(face, name))
        for path in (path for room in rooms for path in RETURNED.get(room, ())):
            lines += [f".. autoclass:: {path}", "   :members:", "   :no-index:", ""]
    return "\n".join(lines)


def directive(name: str, thing: object) -> list[str]:
    """The lines with which autodoc describes a name of the face; a value is described here."""
    if name in VALUES:
        return [f".. py:data:: helpers.{name}", "", f"   {VALUES[name].replace('`', '``')}", ""]
    kind = "autoexception" if inspect.isclass(thing) and issubclass(thing, BaseException) else "autofunction"
    return [f".. {kind}:: helpers.{name}", ""]


def command_line() -> str:
    """Markdown: each command with its help."""
    commands = importlib.import_module("helpers.__main__").COMMANDS
    sections = ["# Command line\n\nEach command is `python -m helpers NAME`, run by the Python of `.venv`.\n"]
    for name, (_, purpose) in commands.items():
        sections.append(f"## {name}\n\n{purpose[0].upper()}{purpose[1:]}.\n\n```text\n{help_of(name)}\n```\n")
    return "\n".join(sections)


def help_of(name: str) -> str:
    """What a command prints for --help."""
    printed = io.StringIO()
    narrow = mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"})
    with narrow, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        importlib.import_module("helpers.__main__").main([name, "--help"])
    return printed.getvalue().strip()
