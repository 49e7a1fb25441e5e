"""From CUDA C++ and inline PTX to C++ for the host's compiler, line by line: `rewriter.rewrite`."""
