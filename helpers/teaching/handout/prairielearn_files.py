"""PrairieLearn's info.json, question.html and infoAssessment.json."""

import hashlib
import html
import re
import uuid

from helpers.practice import registry
from helpers.teaching.handout.assignments import Assignment

IMAGE = "kernel-ladder-grader"  # as `docker build -t` names it; with its registry where PrairieLearn pulls it from
SECONDS = 600  # the most that PrairieLearn gives a grading job


def question(name: str) -> dict:
    """The info.json of an exercise's question."""
    marked = registry.read(name)
    return {
        "uuid": _identity(f"question {name}"),
        "title": marked.title,
        "topic": f"Lesson {marked.lesson}",
        "tags": ["code"],
        "type": "v3",
        "singleVariant": True,
        "showCorrectAnswer": False,
        "gradingMethod": "External",
        "externalGradingOptions": {
            "enabled": True,
            "image": IMAGE,
            "entrypoint": "/grade/serverFilesCourse/kernel_ladder/run.sh",
            "serverFilesCourse": ["kernel_ladder/"],
            "timeout": SECONDS,
        },
    }


def page(name: str) -> str:
    """The question.html: the specification, an editor with the starter, and the verdict below."""
    marked, file = registry.read(name), registry.find(name).starter.name
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(marked.specification))
    mode = "python" if file.endswith(".py") else "c_cpp"
    return f"""<pl-question-panel>
  <p>{text}</p>
  <pl-file-editor file-name="{file}" ace-mode="ace/mode/{mode}" source-file-name="{file}"></pl-file-editor>
</pl-question-panel>

<pl-submission-panel>
  <pl-external-grader-results></pl-external-grader-results>
  <pl-file-preview></pl-file-preview>
</pl-submission-panel>
"""


def assessment(assignment: Assignment, number: int) -> dict:
    """The infoAssessment.json of an assignment: its questions, and full credit between its dates."""
    limits = (("startDate", assignment.opens), ("endDate", assignment.due))
    access = {"credit": 100, **{key: moment.isoformat() for key, moment in limits if moment}}
    questions = [{"id": name, "points": worth.total} for name, worth in assignment.scheme.exercises.items()]
    return {
        "uuid": _identity(f"assessment {assignment.name}"),
        "type": "Homework",
        "title": assignment.scheme.title,
        "set": "Homework",
        "number": str(number),
        "allowAccess": [access],
        "zones": [{"questions": questions}],
    }


def _identity(of: str) -> str:
    """A UUID of version 4, always the same for the same thing, so that it stays one question for PrairieLearn."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"kernel ladder: {of}".encode()).digest()[:16], version=4))
