"""Is a table of results true? Anybody's flows, indices, shares or constants, recomputed. Pure functions."""

from measuretwice.audit.columns import NAMES, Choice, read_choices
from measuretwice.audit.numbers import read_rate_bps
from measuretwice.audit.report import Problem, Recomputed, Report, audit_table

__all__ = [
    "NAMES",
    "Choice",
    "Problem",
    "Recomputed",
    "Report",
    "audit_table",
    "read_choices",
    "read_rate_bps",
]
