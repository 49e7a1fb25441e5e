"""Where things lie on this machine: the course's files, compilers, the build cache; and a line for long waits."""
