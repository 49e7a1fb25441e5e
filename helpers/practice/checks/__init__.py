"""What an answer to each exercise must do: one file for each lesson, lesson_NN.py, which holds its CHECKS by name.

A check has a reference in PyTorch, and the cases on which the two are compared. Sizes lie on both sides of the edges of
a warp and a block, and include 0 and 1. Small cases come first, so that the first one that fails is simple. Inputs are
random, never zeros, with a fixed seed: every run checks the same values.
"""

import importlib
import pkgutil

from helpers.practice.cases import Check

CHECKS: dict[str, Check] = {}
for found in pkgutil.iter_modules(__path__):
    CHECKS |= importlib.import_module(f"{__name__}.{found.name}").CHECKS
