"""The checker: is a run what it was meant to be? It reads files only, never the network.

A finding that explains others silences them: packets of 27 kB make every count of losses wrong,
and saying both would hide the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from measuretwice.checks import many_flows as checks_crowd
from measuretwice.checks import queue_discipline as checks_queue
from measuretwice.checks import sender as checks_sender
from measuretwice.checks import single_flow as checks
from measuretwice.checks.catalogue import GENERAL_HINTS
from measuretwice.checks.finding import Case, Finding
from measuretwice.lab import Lab, Value, find_labs, read_lab
from measuretwice.measure.values import Measured

CHECKS = checks.CHECKS + checks_queue.CHECKS + checks_crowd.CHECKS + checks_sender.CHECKS
# What a finding explains is said where its kin are: one may explain findings of several kinds.
EXPLAINS: dict[str, frozenset[str]] = {}
for _kind in (checks, checks_queue, checks_crowd, checks_sender):
    for _id, _others in _kind.EXPLAINS.items():
        EXPLAINS[_id] = EXPLAINS.get(_id, frozenset()) | _others


def check(case: Case) -> list[Finding]:
    """Return a run's findings, causes only, in order of cause."""
    found = [finding for finding in (look(case) for look in CHECKS) if finding is not None]
    explained = {other for finding in found for other in EXPLAINS.get(finding.id, ())}
    return [finding for finding in found if finding.id not in explained]


def case_of(lab: Lab, params: dict[str, Value], measured: Measured) -> Case:
    """A run of ours as a case: what its plan wanted against what was measured."""
    use = lab.file.model
    return Case(params, measured, use.max_loss_ratio if use else None)


def check_run(
    lab: Lab, params: dict[str, Value], measured: Measured, hint: int | None = None
) -> list[Finding]:
    """Check one run of ours. `hint` (1, 2 or 3) adds that step of the ladder.

    `page` is the page of the pitfall that stages this finding, else the checks' reference.
    """
    return [with_help(lab, finding, hint) for finding in diagnose(lab, params, measured)]


def diagnose(lab: Lab, params: dict[str, Value], measured: Measured) -> list[Finding]:
    """Return the findings of one run of ours as the checks say them, without page and hint."""
    return [finding for finding in check(case_of(lab, params, measured)) if meant(lab, finding)]


def meant(lab: Lab, finding: Finding) -> bool:
    """Is this finding a mistake in this lab, and not what its runs are meant to be?"""
    return finding.id not in lab.file.checks.leave_out


def with_help(lab: Lab, finding: Finding, hint: int | None) -> Finding:
    """Add the page that explains a finding and, where asked for, a step of its ladder of hints.

    From the lab's own pitfall, or another lab's that stages this finding, or in general.
    """
    for other in (lab, *_siblings(lab)):
        for pitfall in other.file.pitfalls:
            if pitfall.finding == finding.id:
                page = f"modules/{other.folder.name}/{pitfall.id}/"
                return replace(finding, page=page, hint=pitfall.hints[hint - 1] if hint else None)
    ladder = GENERAL_HINTS.get(finding.id)
    page = f"reference/checks/#{finding.id}"
    return replace(finding, page=page, hint=ladder[hint - 1] if hint and ladder else None)


def _siblings(lab: Lab) -> Iterator[Lab]:
    for folder in find_labs(lab.folder.parent.parent).values():
        if folder != lab.folder:
            yield read_lab(folder)
