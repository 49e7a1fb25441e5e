"""The exercises: `exercises()` lists them, `%%exercise NAME` and `python -m helpers check NAME` check an answer.

The one source of an exercise is its solution, kernels/solutions/NAME.cu or NAME.py. Without its marked lines it is the
starter in kernels/exercises/ (marks.py). A record in checks.py says what an answer must do. isolated.py starts a
process, in which answering.py builds the answer and calls it; trial.py has it called with the cases (remote.py) and
compares the results; judge.py turns the outcome into a verdict. learner.py records a learner's verdicts, and
standing.py shows which exercises are solved.
"""

from helpers.practice.magic import hint, register, solution
from helpers.practice.registry import Exercise, exercises

__all__ = ["Exercise", "exercises", "hint", "register", "solution"]
