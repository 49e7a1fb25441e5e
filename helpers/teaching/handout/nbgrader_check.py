"""nbgrader's autograding without running the notebook: `grade` checks the answers, confined, in processes of its own.

nbgrader's own way executes what students wrote with all rights of the instructor. CheckAnswers takes the place of its
preprocessor `Execute`. It needs nbgrader and no PyTorch: `python` names the interpreter of the course's environment.

How nbgrader turns outputs into points (utils.determine_grade of 0.9.6): an error gives 0, a result that is a number
gives as many points, anything else gives all.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook, new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List, Unicode

from helpers.teaching.classroom.notebook_answers import graded


class CheckAnswers(NbGraderPreprocessor):
    """Puts the verdict on the cell `answer_NAME` into the outputs of the graded cell `NAME`."""

    python = Unicode(sys.executable, help="the Python of the course's environment").tag(config=True)
    points = Unicode(help="the folder with a file of points for each assignment").tag(config=True)
    arguments = List(Unicode(), help="further arguments of `grade`, such as --trust").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Called by nbgrader for each notebook that was handed in. Raises RuntimeError if `grade` cannot grade."""
        cells = {cell.metadata.nbgrader.grade_id: cell for cell in nb.cells if "nbgrader" in cell.metadata}
        answers = [cell for name, cell in cells.items() if name.startswith("answer_")]
        points = Path(self.points) / f"{resources['nbgrader']['assignment']}.yml"
        for result in self._graded(answers, points):
            if cell := cells.get(result["exercise"]):  # without the graded cell, nbgrader counts 0
                cell.outputs, cell.execution_count = outputs(result), None
        return nb, resources

    def _graded(self, answers: list[NotebookNode], points: Path) -> list[dict]:
        """The results in the form of `grade --format json`."""
        with tempfile.TemporaryDirectory() as given:
            nbformat.write(new_notebook(cells=answers), Path(given, "answers.ipynb"))
            return graded(Path(given), points, self.python, *self.arguments)


def outputs(result: dict) -> list[NotebookNode]:
    """The outputs by which nbgrader gives `points` of `maximum`, and the student reads why."""
    text = f"{result['exercise']}: {result['verdict']}: {result['message']}"
    if result["printed"]:
        text += f"\nprinted:\n{result['printed']}"
    if not result["points"]:
        return [new_output("error", ename="NotAccepted", evalue=text.split("\n")[0], traceback=text.split("\n"))]
    shown = [new_output("stream", name="stdout", text=f"{text}\n")]
    if result["points"] < result["maximum"]:
        shown.append(new_output("execute_result", data={"text/plain": str(result["points"])}, execution_count=1))
    return shown
