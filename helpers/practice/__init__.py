"""The exercises: `exercises()` lists them, `%%exercise NAME` and `python -m helpers check NAME` check an answer.

The one source of an exercise is its solution, kernels/solutions/NAME.cu, or .py. Without its marked lines it is the
starter in kernels/exercises/ (marks.py). What an answer must do is a record in checks.py; cases.py runs it,
in a process of its own (isolated.py), and judge.py makes a verdict of the result.
"""

from helpers.practice.magic import hint, register, solution
from helpers.practice.registry import Exercise, exercises

__all__ = ["Exercise", "exercises", "hint", "register", "solution"]
