"""Straight-line programs: functions of plain numbers and arrays written from expressions and from
tapes.
"""

from varmat.programs.record import entries  # noqa: F401 - registers itself
