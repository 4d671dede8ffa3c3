"""The checker: is a run what it was meant to be?

A new check is a function with `@check` (or `@set_check`) of registry.py in the module of its subject,
and a test.
"""

from measuretwice.checks.case import Case, Member
from measuretwice.checks.engine import (
    KINDS,
    case_of,
    causes,
    check_run,
    check_set,
    diagnose,
    with_help,
)
from measuretwice.checks.finding import Finding, SetFinding, Severity
from measuretwice.checks.registry import Help

__all__ = [
    "KINDS",
    "Case",
    "Finding",
    "Help",
    "Member",
    "SetFinding",
    "Severity",
    "case_of",
    "causes",
    "check_run",
    "check_set",
    "diagnose",
    "with_help",
]
