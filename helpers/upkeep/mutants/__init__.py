"""Mutants: copies of a kernel with one small mistake each, and whether the checks of the course find it."""
