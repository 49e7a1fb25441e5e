"""Kernels as text with colours, threads and elements as drawings."""
