"""Benchmarks of the operators in helpers/catalogue/, and of the course's own tools.

contender.py  one way to compute something, with its check
gpu.py        the timer's GPU: events, graphs, the flush of the L2
cell.py       one operator at one dtype and shape: contenders, measurement, records
conditions.py the GPU, driver, versions, clocks, power, date and commit that a record belongs to
worker.py     a fresh process for each operator and dtype
campaign.py   all measurements of some operators, recorded one by one
"""
