"""The tracer, a part of the run-time library: counts sectors and wavefronts, checks bounds, finds races.

`tracer` begins and ends a session from Python.
"""
