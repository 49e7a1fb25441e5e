"""Suites of others as yardsticks: their kernels through our loader and X-ray, their labels as the truth.

    python -m helpers.upkeep.validation indigo FOLDER    labelled racy and race-free kernels: results/indigo.json
    python -m helpers.upkeep.validation rodinia FOLDER   whole benchmark programs: results/rodinia.json

FOLDER is the user's copy of the suite; nothing of it is kept here. `docs/yardsticks.md` is made from the results.
"""
