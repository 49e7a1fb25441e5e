"""Grading for a class: `python -m helpers grade FOLDER`.

submissions.py finds the answers in a folder, points.py reads what the instructor wrote about points. grading.py has
each answer checked by the judge of `practice` in worker processes (answer_worker.py) and keeps each verdict on disk at
once (verdicts.py). Before that, calibration.py has the course's own solutions and starters judged in the same way.
results.py turns verdicts into points; formats.py, gradebooks.py and grade_pages.py write them.
"""
