"""What an instructor hands out: `python -m helpers handout COURSE.yml`, or `make classroom`.

assignments.py reads the instructor's choice of exercises, points and dates; release.py writes the students' copy of the
course, with outlines.py in place of solutions, and leaks.py searches it for lines of solutions. The other modules write
what a platform needs (platforms.py), and look for copies between submissions (similarity.py).
"""
