"""Whether the course can run here. In a notebook: `from helpers import doctor` and `doctor.examine()`."""

from helpers.upkeep.doctor.diagnosis import examine

__all__ = ["examine"]
