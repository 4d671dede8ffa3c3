"""The checker: is a run what it was meant to be?

A new check is a function with `@check` (or `@set_check`) of registry.py in the module of its subject,
and a test.
"""

from measuretwice.checks.engine import (
    KINDS,
    TELLING,
    Judgement,
    causes,
    check_run,
    check_set,
    diagnose,
    judge_run,
    run_under_test,
    telling_values,
    tries_of,
    with_help,
)
from measuretwice.checks.hosts import limits
from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Member,
    RunUnderTest,
    SetFinding,
    Severity,
)
from measuretwice.checks.shared_queue import conclusion

__all__ = [
    "KINDS",
    "TELLING",
    "Finding",
    "FindingKind",
    "Judgement",
    "Member",
    "RunUnderTest",
    "SetFinding",
    "Severity",
    "causes",
    "check_run",
    "check_set",
    "conclusion",
    "diagnose",
    "judge_run",
    "limits",
    "run_under_test",
    "telling_values",
    "tries_of",
    "with_help",
]
