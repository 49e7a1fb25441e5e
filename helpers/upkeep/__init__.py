"""What keeps the course true: benchmarks, validation, mutants, the doctor."""
