"""The wrong answers, a module per lesson: exercise -> its wrong answers. Each comment says what is wrong."""

from wrong_answers import (
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
)
from wrong_answers.answer import Wrong, cell_of, edited, uncommented

__all__ = ["WRONG", "Wrong", "cell_of", "edited", "uncommented"]

LESSONS = (lesson_01, lesson_02, lesson_03, lesson_04, lesson_05, lesson_06, lesson_07, lesson_08, lesson_09)
WRONG: dict[str, tuple[str, Wrong]] = {
    f"{exercise}_{wrong.name}": (exercise, wrong)
    for lesson in LESSONS
    for exercise, answers in lesson.ANSWERS.items()
    for wrong in answers
}
