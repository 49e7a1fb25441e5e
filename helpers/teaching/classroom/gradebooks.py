"""Results in the formats of platforms.

Gradescope: `results.json` as in "Autograder Specifications", section "Output format",
https://gradescope-autograders.readthedocs.io/en/latest/specs/ (read 2026-11-22). Points are `score` and `max_score` of
each test; the sum is Gradescope's own. A submission without tests gets a `score` of 0, because one of the two is
demanded. An exercise that was not graded is a test without a score, beside a `score` for the others; where nothing was
graded, there is neither, and Gradescope reports that the autograder failed.

PrairieLearn: `results.json` as in "External grading", section "Grading results",
https://docs.prairielearn.com/externalGrading/ (read 2026-11-22). `score` is a share from 0 to 1; a submission without
any answer is `gradable: false` with `format_errors`, and so is one with an exercise that was not graded: PrairieLearn
then counts no attempt. The file may have 1 MB.

JUnit XML: the form that Jenkins's xUnit plugin validates (junit-10.xsd, as in pytest's repository, read 2026-11-22),
which GitLab, Azure and GitHub's actions read as well: a test suite for each submission, a test case for each exercise,
skipped if it was not graded.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from helpers.teaching.classroom.results import KINDS, Class, Graded, Result

_OUTPUT = 20_000  # characters of a test's output; a message has some hundred
_NOT_GRADED = ("missing", "unsolved")


def gradescope(one: Graded) -> dict:
    """The content of Gradescope's results.json."""
    tests = [
        {
            "name": name,
            "score": points,
            "max_score": maximum,
            "status": "passed" if points == maximum else "failed",
            "output": _cut(text),
            "output_format": "text",
            "name_format": "text",
        }
        for name, points, maximum, text in _tests(one)
    ]
    tests += [
        {"name": r.exercise, "output": _cut(r.text()), "output_format": "text", "name_format": "text"}
        for r in one.not_graded
    ]
    output = "\n".join(one.problems)
    head: dict[str, object] = {"output": output, "output_format": "text"} if output else {}
    if len(one.not_graded) < len(one.results) or not one.results:
        head |= {} if tests and not one.not_graded else {"score": one.points}
    return {**head, "stdout_visibility": "hidden", "tests": tests}


def prairielearn(one: Graded) -> dict:
    """The content of the results.json of PrairieLearn's external graders."""
    if one.not_graded:
        return {"gradable": False, "format_errors": [f"{r.exercise}: {_cut(r.text(), one)}" for r in one.not_graded]}
    if all(result.kind in _NOT_GRADED for result in one.results):
        errors = [f"{r.exercise}: {_cut(r.text(), one)}" for r in one.results] + list(one.problems)
        return {"gradable": False, "format_errors": errors or ["there is no answer"]}
    tests = [
        {"name": name, "points": points, "max_points": maximum, "output": _cut(text, one)}
        for name, points, maximum, text in _tests(one)
    ]
    message = f"{one.points:g} of {one.maximum:g} points"
    result = {"gradable": True, "score": round(one.points / one.maximum, 6), "message": message, "tests": tests}
    return {**result, "output": _cut("\n".join(one.problems), one)} if one.problems else result


def junit(whole: Class) -> str:
    """JUnit XML: a failure is an answer that did not get all of its points."""
    every = [result for one in whole.submissions for result in one.results]
    root = ET.Element("testsuites", {"name": whole.scheme.title or "grades", **_counts(every)})
    for one in whole.submissions:
        suite = ET.SubElement(root, "testsuite", {"name": _xml(one.name), **_counts(one.results)})
        if one.not_graded:
            suite.set("skipped", str(len(one.not_graded)))
        for result in one.results:
            case = ET.SubElement(suite, "testcase", name=result.exercise, classname=_xml(one.name))
            if not result.graded:
                ET.SubElement(case, "skipped", message=KINDS[result.kind]).text = _xml(result.text())
            elif result.points < result.maximum:
                what = f"{result.points:g} of {result.maximum:g} points: {KINDS[result.kind]}"
                failure = ET.SubElement(case, "failure", type=result.kind, message=what)
                failure.text = _xml(result.text())
            elif result.message:
                ET.SubElement(case, "system-out").text = _xml(result.text())
        if one.problems:
            ET.SubElement(suite, "system-err").text = _xml("\n".join(one.problems))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _counts(results: Sequence[Result]) -> dict[str, str]:
    failures = sum(result.points < result.maximum for result in results)
    return {"tests": str(len(results)), "failures": str(failures), "errors": "0"}


def _tests(one: Graded) -> list[tuple[str, float, float, str]]:
    """Name, points, maximum and text: a test for each exercise, and one more where efficiency counts."""
    found = []
    for result in one.results:
        for part in result.parts:
            name = result.exercise if part.name == "correctness" else f"{result.exercise}: {part.name}"
            text = result.text() if part.name == "correctness" else part.note or _efficiency(result)
            found.append((name, part.points, part.maximum, text))
    return found


def _efficiency(result: Result) -> str:
    if result.kind != "accepted":
        return "counts only for an accepted answer"
    wasted = result.message.partition("\n")[2]
    return wasted or "no line wastes memory traffic"


def _cut(text: str, one: Graded | None = None) -> str:
    """At most _OUTPUT characters; of a submission with many exercises fewer, so that all outputs keep below 1 MB."""
    most = min(_OUTPUT, 400_000 // (2 * len(one.results) + 2)) if one else _OUTPUT
    return text if len(text) <= most else f"{text[:most]}\n... cut after {most:,} characters"


def _xml(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
