"""Is a table of results true? Anybody's flows, indices, shares or constants, recomputed. Pure functions."""

from measuretwice.audit.auditing import audit_table, read_choices
from measuretwice.audit.cells import read_rate_bps, read_rtt_s
from measuretwice.audit.columns import NAMES, Choice
from measuretwice.audit.report import Problem, Recomputed, Report, TableReport, lines_of

__all__ = [
    "NAMES",
    "Choice",
    "Problem",
    "Recomputed",
    "Report",
    "TableReport",
    "audit_table",
    "lines_of",
    "read_choices",
    "read_rate_bps",
    "read_rtt_s",
]
