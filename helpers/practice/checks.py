"""What an answer to each exercise must do: a reference in PyTorch, and the cases on which the two are compared.

Sizes lie on both sides of the edges of a warp and a block, and include 0 and 1. Small cases come first, so that the
first one that fails is simple. Inputs are random, never zeros, with a fixed seed: every run checks the same values.
"""

from helpers.practice import (
    checks_00,
    checks_01_03,
    checks_04_06,
    checks_07,
    checks_08_11,
    checks_09_10,
    checks_11,
    checks_12,
    checks_13_14,
    checks_15_16,
    checks_17,
    checks_more,
)

CHECKS = (
    checks_00.CHECKS
    | checks_01_03.CHECKS
    | checks_04_06.CHECKS
    | checks_07.CHECKS
    | checks_08_11.CHECKS
    | checks_09_10.CHECKS
    | checks_11.CHECKS
    | checks_more.CHECKS
    | checks_12.CHECKS
    | checks_13_14.CHECKS
    | checks_15_16.CHECKS
    | checks_17.CHECKS
)
