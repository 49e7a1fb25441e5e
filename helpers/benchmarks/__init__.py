"""Benchmarks of the course's operators: what is measured, and how a record comes about.

operators.py  one entry for each operator: inputs, our variants, peers, bytes or FLOPs, reference
contender.py  something to time, with its check
gpu.py        the timer's GPU: events, graphs, the flush of the L2
cell.py       one operator at one dtype and shape: contenders, measurement, records
machine.py    the GPU, driver, versions, clocks, power, date and commit that a record belongs to
worker.py     a fresh process for each operator and dtype
campaign.py   all of it for some operators, recorded as it comes
table.py      tables for a terminal and for a notebook
axes.py       axes and colours of helpers/results/plots.py
"""
