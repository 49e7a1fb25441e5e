"""This machine: paths of the course, compilers, the build cache; and a line of progress for long waits."""
