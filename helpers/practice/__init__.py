"""The exercises: `exercises()` lists them, `%%exercise NAME` and `python -m helpers check NAME` check an answer.

An exercise's facts are in two files. One is its solution, kernels/solutions/NAME.cu or NAME.py: without its marked
lines (marks.py) it is the starter that a learner gets in my_lessons/exercises/ (starters.py). The other, for the
exercises of a lesson, is checks/lesson_NN.py: what an answer must do. judge.py draws the way from an answer to its
verdict. learner.py records a learner's verdicts, and standing.py shows which exercises are solved.
"""

from helpers.practice.magic import hint, register, solution
from helpers.practice.registry import Exercise
from helpers.practice.starters import exercises

__all__ = ["Exercise", "exercises", "hint", "register", "solution"]
