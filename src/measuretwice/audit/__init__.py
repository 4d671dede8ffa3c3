"""Is a table of results true? Anybody's flows, indices, shares or constants, recomputed. Pure functions."""

from measuretwice.audit.columns import NAMES, Choice, read_choices, read_rate_bps
from measuretwice.audit.report import Problem, Recomputed, Report, audit_table, lines_of

__all__ = [
    "NAMES",
    "Choice",
    "Problem",
    "Recomputed",
    "Report",
    "audit_table",
    "lines_of",
    "read_choices",
    "read_rate_bps",
]
