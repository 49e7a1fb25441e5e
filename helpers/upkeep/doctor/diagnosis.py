"""Reports what this machine has for the course, what is missing, and how to fix it: `python -m helpers doctor`; in a
notebook `from helpers import doctor` and `doctor.examine()`.

A finding says what was found, why it matters and, if something is missing, the command that fixes it. The exit status
is 0 if the course can run here, on a GPU or in the simulator. The probes are in probes.py (the host), kernel_probes.py
(GPU and nvcc) and kernel_trial.py (a first kernel).
"""

import argparse
import html
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from helpers.upkeep.doctor import kernel_probes, kernel_trial, probes
from helpers.upkeep.doctor.probes import Finding
from kernel_xray.machine.progress import Progress

COLUMNS = (16, 9)  # widths of the first two columns in a terminal
SILENT_SECONDS = 0.2  # PyTorch's import alone takes two seconds: say so before a reader wonders
SIGNS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}
COLOURS = {"ok": "#1a7f37", "note": "#9a6700", "problem": "#d1242f"}  # legible on light and dark pages

CHECKS: tuple[Callable[[], Finding | None], ...] = (
    probes.check_python,
    probes.check_torch,
    probes.check_compiler,
    probes.check_python_headers,
    probes.check_ninja,
    probes.check_cache,
    probes.check_locks,
    probes.check_addr2line,
    kernel_probes.check_gpu,
    kernel_probes.check_nvcc,
    kernel_probes.check_architectures,
    kernel_probes.check_target,
)


@dataclass(frozen=True)
class Report:
    """Findings, each after those that it depends on: a table in a terminal and in a notebook."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        return sum(finding.state == "problem" for finding in self.findings)

    @property
    def verdict(self) -> str:
        if not self.problems:
            return "The course can run here."
        return f"{self.problems} problem{'s' if self.problems > 1 else ''} to fix before the course can run here."

    def __repr__(self) -> str:
        width = max(60, min(120, shutil.get_terminal_size().columns))
        lines = []
        for finding in self.findings:
            head = f"{finding.what:{COLUMNS[0]}}{SIGNS[finding.state]:{COLUMNS[1]}}"
            lines += wrapped(finding.found, head, width)
            if finding.state != "ok":
                lines += wrapped(f"why it matters: {finding.why}", "", width)
                # Not wrapped, so that it can be copied.
                lines.append(f"{'':{sum(COLUMNS)}}fix: {finding.fix}")
        return "\n".join([*lines, self.verdict])

    def _repr_html_(self) -> str:
        rows = "".join(html_row(finding) for finding in self.findings)
        heads = "".join(f'<th style="text-align: left">{name}</th>' for name in ("", "state", "found"))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{html.escape(self.verdict)}</p>"


def wrapped(text: str, head: str, width: int) -> list[str]:
    indent = " " * sum(COLUMNS)
    lines = textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    return [(head or indent) + lines[0], *(indent + line for line in lines[1:])]


def html_row(finding: Finding) -> str:
    text = html.escape(finding.found)
    if finding.state != "ok":
        text += f"<br>why it matters: {html.escape(finding.why)}"
        text += f"<br>fix: <code>{html.escape(finding.fix)}</code>"
    style = "text-align: left; vertical-align: top"
    state = f'<b style="color: {COLOURS[finding.state]}">{SIGNS[finding.state]}</b>'
    return "".join(
        ["<tr>", *(f'<td style="{style}">{cell}</td>' for cell in (html.escape(finding.what), state, text)), "</tr>"]
    )


def examine(trial: bool = True) -> Report:
    """All findings. If there is no problem, the trial builds and runs a small kernel (seconds the first time).

    trial: False leaves it out.
    """
    findings: list[Finding] = []
    with Progress("looking at Python, PyTorch, compilers and GPUs", SILENT_SECONDS):
        for check in CHECKS:
            finding = check()
            if finding is not None:
                findings.append(finding)
            if check is probes.check_torch and finding is not None and finding.state == "problem":
                return Report(tuple(findings))
    if trial and not Report(tuple(findings)).problems:
        from kernel_xray.machine.toolchain import target  # imports PyTorch, which is there: nothing is missing

        first = "; the first time, the simulator too: minutes" if target == "simulator" else ""
        with Progress(f"building and running a small kernel{first}", SILENT_SECONDS):
            findings += kernel_trial.check()
    return Report(tuple(findings))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m helpers doctor",
        description="Report what this machine has, what is missing, and how to fix it.",
    )
    parser.add_argument("--quick", action="store_true", help="do not build and run a small kernel")
    report = examine(trial=not parser.parse_args(arguments).quick)
    print(report)
    return 1 if report.problems else 0
