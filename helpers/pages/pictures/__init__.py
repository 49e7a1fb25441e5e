"""Kernels as highlighted text; threads and elements as drawings."""
