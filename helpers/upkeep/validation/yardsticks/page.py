"""docs/yardsticks.md: what the suites of others say, made from their recorded results alone."""

import re

from helpers.ladder.results.table import markdown
from helpers.paths import DOCS, RESULTS
from helpers.upkeep.validation import documents
from helpers.upkeep.validation.yardsticks import indigo

PAGE = DOCS / "yardsticks.md"
HEAD = """# Suites of others

Programs and labels that we did not write, run through the simulator. Nothing of their source is in this repository:
each command takes the folder of a user's copy, and writes this page from the results.

"""
TITLES = {"indigo": "Indigo: labelled racy and race-free kernels", "rodinia": "Rodinia: whole programs"}
ABOUT = {
    "indigo": """`python -m helpers.upkeep.validation indigo FOLDER`, with a copy of https://github.com/burtscher/IndigoSuite
(Liu, Azami, Walters, Burtscher, ISPASS 2022). The suite's generator writes the kernels, with the bugs that each name
says; those for `int` are run. Each runs on three graphs of our own, of 33 to 48 vertices, with 48 blocks of 64 threads
and with 3 of 32. A bug is found if the X-ray reports its kind of fault in one of these runs. A false alarm is a fault
of that kind, in any run, in a kernel without such a bug. A race in a kernel whose bounds bug was found is counted as a
consequence of that bug: its stray accesses fall into other arrays, whose elements other threads use.""",
    "rodinia": """`python -m helpers.upkeep.validation rodinia FOLDER`, with a copy of
https://github.com/yuhc/gpu-rodinia (Che et al., IISWC 2009). `helpers.program` builds and runs each program of
`cuda/`, with a small input of our own in the benchmark's format; `myocyte` needs the parameters in the suite's
`data`. The result is compared with that of the suite's program for CPUs where the two compute the same, else with a
result known beforehand, else the program's own check must pass, else it must end with status 0. Then the same run
is X-rayed.""",
}


def write() -> None:
    """Writes the page from the results that there are."""
    parts = [HEAD]
    for suite, title in TITLES.items():
        path = RESULTS / f"{suite}.json"
        if path.exists():
            parts.append(f"## {title}\n\n{ABOUT[suite]}\n\n{table(suite, documents.read(path))}\n")
    PAGE.write_text("".join(parts).rstrip() + "\n", encoding="utf-8")


def table(suite: str, document: dict) -> str:
    """The results of one suite as Markdown."""
    machine = document["machine"]
    ours = re.sub(r"^([0-9a-f]{12})[0-9a-f]+", r"\1", machine["commit"])
    line = f"Recorded {machine['date']} at our commit {ours}, theirs {machine['suite_commit'][:12]}."
    return "\n".join([line, "", *{"indigo": _indigo, "rodinia": _rodinia}[suite](document)])


def _indigo(document: dict) -> list[str]:
    row = {entry["what"]: entry for entry in document["summary"]}
    cases, of, ran = (row["all"][key] for key in ("cases", "of", "ran"))
    chosen = (
        f"All {cases} kernels were tried"
        if cases == of
        else f"{cases} of the {of} kernels were tried, chosen at random"
    )
    lines = [f"{chosen}; {ran} were built and run.", ""]
    lines += markdown(
        (
            "fault",
            "kernels with it",
            "found",
            "of these as a remark",
            "kernels without it",
            "false alarms",
            "consequences",
        ),
        [
            [
                kind,
                *(row[kind][k] for k in ("planted", "found", "by_remark", "clean", "false_alarms", "consequences")),
            ]
            for kind in indigo.KINDS
        ],
    )
    lines += ["", *markdown(("bug, alone in its kernel", "kernels", "found"), _alone(row)), ""]
    free = row["no bug"]
    lines.append(
        f"Of the {free['cases']} kernels without any bug, the X-ray accuses {free['any_false_alarm']} of anything; "
        f"{free['wrong_result']} give a result other than the suite's serial code."
    )
    missed = [
        r["name"] for r in document["records"] for kind in indigo.expected(r["name"]) if not indigo.found(r, kind)
    ]
    accused = [f"{r['name']} ({', '.join(bad)})" for r in document["records"] if (bad := indigo.false_alarms(r))]
    for title, names in (("Not found", missed), ("Falsely accused", accused)):
        lines += ["", f"{title}: {', '.join(names)}."] if names else []
    return lines


def _alone(row: dict[str, dict]) -> list[tuple[str, int, int]]:
    return [(bug, row[f"{bug} alone"]["cases"], row[f"{bug} alone"]["found"]) for bug in indigo.BUGS]


def _rodinia(document: dict) -> list[str]:
    row = {entry["what"]: entry for entry in document["summary"]}
    tried = row["all"]
    lines = markdown(
        ("", "of the programs", "of the benchmarks"),
        [
            (
                what,
                f"{row[key]['programs']} of {tried['programs']}",
                f"{row[key]['benchmarks']} of {tried['benchmarks']}",
            )
            for what, key in (
                ("built", "built"),
                ("ran to the end", "ended"),
                ("gave the right result", "right"),
                ("right, or stopped at a bug of their own", "right or bug"),
            )
        ],
    )
    header = ("program", "compared with", "result", "X-ray")
    return [*lines, "", *markdown(header, map(_program, document["records"]))]


def _program(record: dict) -> tuple[str, str, str, str]:
    """A row: how far a program came, the first line of the reason, and what the X-ray reports."""
    stage = {
        "right": "right",
        "result": "wrong",
        "run": "does not end well",
        "bug": "stopped at its own bug",
        "build": "not built",
        "input": "no input",
    }
    result = stage.get(record.get("stage", ""), "error")
    if result != "right":
        reason = (record.get("reason") or record.get("error") or "").strip().splitlines()
        result += f": {re.sub(r'[^ ]*/', '', reason[0])[:150]}" if reason else ""
    xray = record.get("xray")
    return record["name"], record.get("check", ""), result, "-" if xray is None else "; ".join(xray) or "nothing"
