"""nbgrader's configuration for this course, which it reads in the folder that it is started in."""

import sys

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbgrader import preprocessors as standard

sys.path.insert(0, "$course")
from helpers.handout.nbgrader_check import CheckAnswers  # noqa: E402

c = get_config()  # noqa: F821 - nbgrader defines it
c.CourseDirectory.course_id = "$identifier"

# The source has starters in place of solutions, so nothing has to be cleared; ClearSolutions would clear the starters.
c.GenerateAssignment.preprocessors = [
    standard.LockCells,
    standard.ClearOutput,
    standard.CheckCellMetadata,
    standard.ComputeChecksums,
    standard.SaveCells,
    standard.CheckCellMetadata,
]

# CheckAnswers in place of Execute: no notebook is run, and `grade` confines the answers.
c.Autograde.autograde_preprocessors = [
    CheckAnswers,
    standard.IgnorePattern,
    ClearMetadataPreprocessor,
    standard.LimitOutput,
    standard.SaveAutoGrades,
    standard.AssignLatePenalties,
    standard.CheckCellMetadata,
]
c.CheckAnswers.python = "$python"
c.CheckAnswers.points = "$points"
c.CheckAnswers.arguments = []  # ["--trust"] where answers cannot be confined: see docs/sandbox.md
