"""What an answer to each exercise must do: a reference in PyTorch, and the cases on which the two are compared.

Sizes lie on both sides of the edges of a warp and a block, and include 0 and 1. Small cases come first, so that the
first one that fails is simple. Inputs are random, never zeros, with a fixed seed: every run checks the same values.
"""

from helpers.practice import (
    checks_00,
    checks_01_03,
    checks_04_06,
    checks_07_08,
    checks_09,
    checks_10_11,
    checks_12_13,
    checks_more,
)

CHECKS = (
    checks_00.CHECKS
    | checks_01_03.CHECKS
    | checks_04_06.CHECKS
    | checks_07_08.CHECKS
    | checks_more.CHECKS
    | checks_09.CHECKS
    | checks_10_11.CHECKS
    | checks_12_13.CHECKS
)
