"""Classroom 50's `result.json`, which GitHub Actions writes for one submission.

The format is classroom50/result/v1: schemas/result-v1.schema.json and the page "Advanced Autograding" of
https://github.com/foundation50/classroom50 (read 2026-11-22). Its runner sets the environment variables and starts the
grader in the student's checkout; `datetime` is the commit's date, so grading again gives the same bytes. Scores are
integers: parts of a point are dropped.
"""

import os
import subprocess

from helpers.teaching.classroom.results import Class

# Field -> environment variable of the runner.
_FIELDS = {
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "assignment_type": "ASSIGNMENT_TYPE",
    "owner": "OWNER",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
}


class NotThere(RuntimeError):
    """What Classroom 50's runner provides is missing. The message names it."""


def surroundings() -> dict[str, str]:
    """The fields that come from the runner. Raises NotThere."""
    missing = [variable for variable in _FIELDS.values() if not os.environ.get(variable)]
    if missing:
        raise NotThere(f"the format classroom50 is for Classroom 50's runner, which sets {', '.join(missing)}")
    found = {field: os.environ[variable] for field, variable in _FIELDS.items()}
    found["review"] = os.environ.get("REVIEW_URL") or found["commit"]
    command = ["git", "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    if done.returncode:
        raise NotThere(f"the format classroom50 needs the student's checkout as working folder: {done.stderr.strip()}")
    return {**found, "datetime": done.stdout.strip()}


def result(whole: Class) -> dict:
    """The content of result.json. Raises NotThere."""
    if not whole.single:
        raise NotThere("the format classroom50 is for one submission; name its folder, and pass --single")
    (one,) = whole.submissions
    tests = [
        {
            "test-name": r.exercise,
            "passed": r.points == r.maximum,
            "score": int(r.points),
            "max-score": int(r.maximum),
            "output": r.text(),
        }
        for r in one.results
    ]
    total = {"score": sum(int(r.points) for r in one.results), "max-score": sum(int(r.maximum) for r in one.results)}
    return {"schema": "classroom50/result/v1", **surroundings(), **total, "tests": tests}
