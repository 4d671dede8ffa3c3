"""The checker: is a run what it was meant to be? It reads files only, never the network.

A finding that explains others silences them: packets of 27 kB make every count of losses wrong,
and saying both would hide the cause.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from measuretwice.checks import (
    arithmetic,
    by_tc,
    configuration,
    connection,
    consistency,
    contradictions,
    expectations,
    flows,
    hosts,
    losses_and_rates,
    queue_discipline,
    shared_queue,
    transfers,
    whole_set,
)
from measuretwice.checks.registry import (
    Check,
    Finding,
    FindingKind,
    Member,
    Right,
    RunUnderTest,
    SetCheck,
    SetFinding,
    checks_of,
)
from measuretwice.lab import UNSET, Lab, Value, find_labs, read_lab, trial_params
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.measure.expectations import against_model, verdicts_of
from measuretwice.measure.fields import CATALOGUE, Measured, kind_of
from measuretwice.measure.host_state import HostState

# The finding that something is off which no known cause explains.
UNEXPLAINED = "unexplained"
# In order of cause, as are the checks in each: findings come so, and pages list them so.
SUBJECTS = (
    connection, losses_and_rates, shared_queue, queue_discipline, flows, arithmetic, transfers, by_tc, consistency,
    contradictions, hosts, configuration, expectations, whole_set,
)  # fmt: skip
_ENTRIES = [entry for subject in SUBJECTS for entry in checks_of(subject)]
CHECKS = [entry for entry in _ENTRIES if isinstance(entry, Check)]
SET_CHECKS = sorted(
    (entry for entry in _ENTRIES if isinstance(entry, SetCheck)), key=lambda entry: not entry.first
)
# Measured values whose names tell what a case is about: what a person's own work came to and what it is compared with, what
# was dropped where nobody looks, and a buffer by whose path.
TELLING = {name for name, entry in CATALOGUE.items() if entry.source == "your own"} | {
    "length_rows_true_packets",
    "picked_port",
    "picked_connections",
    "other_qdisc_drops",
    "buffer_bdp_ratio_min",
    "buffer_bdp_ratio_max",
}


def _merged() -> tuple[dict[str, FindingKind], dict[str, frozenset[str]]]:
    """Return each kind of finding, and the ids that it explains by all checks that raise it."""
    kinds: dict[str, FindingKind] = {}
    explains: dict[str, frozenset[str]] = defaultdict(frozenset)
    for entry in _ENTRIES:
        for kind in entry.raises:
            explains[kind.id] |= set(kind.explains)
            if kind.description is None:
                continue
            if kind.id in kinds:
                raise ValueError(f"two checks describe {kind.id!r}")
            kinds[kind.id] = kind
    if unknown := {*explains, *(other for others in explains.values() for other in others)} - {
        *kinds
    }:
        raise ValueError(f"no check describes these: {', '.join(sorted(unknown))}")
    return kinds, explains


# Every kind of finding by its id, and the ids that it explains.
KINDS, EXPLAINS = _merged()


@dataclass(frozen=True)
class Judgement:
    """A run's findings, causes only, in order of cause; what was looked at and found right, in words; and `remarks` on what
    is only unlike a value of the lab's own, which nobody stated."""

    findings: list[Finding]
    right: list[str]
    remarks: list[str]


def causes(run: RunUnderTest, leave_out: Sequence[str] = ()) -> list[Finding]:
    """Return a run's findings, causes only, in order of cause; what a lab leaves out explains nothing."""
    return _judge(run, leave_out).findings


def _judge(run: RunUnderTest, leave_out: Sequence[str]) -> Judgement:
    answers = [check(run) for check in CHECKS]
    right = [*dict.fromkeys(answer.what for answer in answers if isinstance(answer, Right))]
    raised = [
        answer for answer in answers if isinstance(answer, Finding) and answer.id not in leave_out
    ]
    remarks = [_remark(run, finding) for finding in raised if _is_remark(run, finding)]
    raised = [finding for finding in raised if not _is_remark(run, finding)]
    findings = [
        replace(finding, why=expectations.nothing_fits(run, right))
        if finding.id == UNEXPLAINED
        else finding
        for finding in _causes(raised)
    ]
    return Judgement(findings, right, [*dict.fromkeys(remarks)])


def _is_remark(run: RunUnderTest, finding: Finding) -> bool:
    return bool(finding.rests_on) and not run.is_stated(finding.rests_on)


def _remark(run: RunUnderTest, finding: Finding) -> str:
    name = finding.rests_on
    return (
        f"{finding.measured}; the lab's own {name} is {run.params.get(name)}, which nobody set (--set {name}=...), so that "
        "nothing is concluded from it"
    )


def _causes(findings: Iterable[Finding | None]) -> list[Finding]:
    """Return the findings that no other explains, each with its consequences.

    What nothing explains by name (UNEXPLAINED) follows from any error.
    """
    # Two checks may see one thing: the first one's words count.
    by_id = {finding.id: finding for finding in reversed([*findings]) if finding}
    found = [*reversed(by_id.values())]
    explained = {other for finding in found for other in EXPLAINS[finding.id]}
    tops = [finding for finding in found if finding.id not in explained]
    if any(finding.severity == "error" and finding.id != UNEXPLAINED for finding in tops):
        tops = [finding for finding in tops if finding.id != UNEXPLAINED]
    return [replace(top, consequences=_consequences(top, found, tops)) for top in tops]


def _consequences(
    cause: Finding, found: Sequence[Finding], causes: Sequence[Finding]
) -> tuple[str, ...]:
    """Return the findings that a cause explains, as symptoms; unexplained ones go to the first cause."""
    rest = [finding for finding in found if finding not in causes]
    return tuple(
        # Words without a number point at what is still to be found; of a consequence it is said how much it is off.
        finding.symptom
        if any(map(str.isdecimal, finding.symptom))
        else f"{finding.measured}, not {finding.expected}"
        for finding in rest
        if finding.id in EXPLAINS[cause.id] or (finding.id == UNEXPLAINED and cause is causes[0])
    )


def run_under_test(
    lab: Lab,
    params: Mapping[str, Value],
    measured: Measured,
    trial: int | None = None,
    host_state: HostState | None = None,
    reference: HostState | None = None,
    *,
    brought: bool = False,
    stated: frozenset[str] | None = None,
) -> RunUnderTest:
    """Return a run as checks see it: what its settings ask for, and what was measured; `brought` are files of a person's, who
    has `stated` these settings."""
    use = lab.file.model
    compared = against_model(use, params, measured) if use else None
    values = {**measured, "ratio": compared.ratio if compared else None}
    comparable = compared is None or compared.comparable
    return RunUnderTest(
        dict(params),
        measured,
        use.max_loss_ratio if use else None,
        algorithms=frozenset(_algorithms(lab, params)),
        meanings=lab.file.checks.meanings(params),
        verdicts=verdicts_of(lab, trial, params, values, comparable),
        flows_each=lab.file.checks.flows_each,
        flows_of=tuple(lab.file.checks.flows_of),
        host_state=host_state,
        reference=reference,
        brought=brought,
        stated=stated,
        by_trial=frozenset(
            lab.trials[trial].set if trial is not None and trial in lab.trials else ()
        ),
    )


def _algorithms(lab: Lab, params: Mapping[str, Value]) -> Iterator[str]:
    """The congestion controls that a run needs; a parameter may say that it has none."""
    for name in lab.file.run.algorithms:
        algorithm = str(params[name[1:]]) if name.startswith("=") else name
        if algorithm != "none":
            yield algorithm


def check_run(lab: Lab, run: RunUnderTest, hint: int | None = None) -> list[Finding]:
    """Check one run. `hint` (1, 2 or 3) adds that step of the ladder.

    `page` is the page of the pitfall that stages this finding, else the checks' reference.
    """
    return judge_run(lab, run, hint).findings


def judge_run(
    lab: Lab, run: RunUnderTest, hint: int | None = None, case: int | None = None
) -> Judgement:
    """Return the findings of `check_run`, and what was looked at and found right; of a run of a `case` with its own help."""
    judged = _judge(run, lab.file.checks.leave_out)
    helped = [with_help(lab, finding, hint, case) for finding in judged.findings]
    return replace(judged, findings=helped)


def diagnose(lab: Lab, run: RunUnderTest) -> list[Finding]:
    """Return the findings of one run as the checks say them, without page and hint."""
    return causes(run, lab.file.checks.leave_out)


def telling_values(
    lab: Lab, names: Iterable[str], known_cases: Collection[int] = ()
) -> frozenset[str]:
    """Return those of the measured `names` that tell a case's cause: only its check looks at them, or its questions ask
    for them. Not those of a case that is among `known_cases`."""
    due: set[str] = set()
    secret: set[str] = set()
    for number, pitfall in enumerate(lab.file.pitfalls, start=1):
        (due if number in known_cases else secret).update(_looked_at(pitfall))
    return frozenset(name for name in names if kind_of(name) in secret - due)


def _looked_at(pitfall: Pitfall) -> set[str]:
    """The telling values that a case is about."""
    number = pitfall.judgement.number if pitfall.judgement else None
    names = {pitfall.predict.value, *pitfall.predict.beside, *([number.value] if number else [])}
    for check in CHECKS:
        if pitfall.finding in {kind.id for kind in check.raises}:
            names |= check.needs
    return TELLING & {kind_of(name) for name in names}


def check_set(lab: Lab, members: Sequence[Member]) -> list[SetFinding]:
    """Return what is wrong with the runs taken together.

    Runs of one group are taken for one set; of a case each try is one.
    """
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, member in enumerate(members):
        groups[member.group].append(index)
    sets: list[tuple[int, ...]] = []
    for indices in groups.values():
        tries = tries_of(lab, [members[index] for index in indices])
        sets += [tuple(indices[place] for place in places) for places in tries]
    return [
        SetFinding(finding, indices)
        for indices in sets
        for finding in _causes(
            check(lab, [members[index] for index in indices]) for check in SET_CHECKS
        )
    ]


def tries_of(lab: Lab, members: Sequence[Member]) -> list[tuple[int, ...]]:
    """Return the runs of one case as tries, each by their places: those in which the same was changed. The first try,
    without a change, comes first. Runs of no case are one set.

    What was changed may be what one of the trials has anyhow: then its run is of that try, too.
    """
    if any(member.case is None for member in members):
        return [tuple(range(len(members)))]
    changes = [_changes(lab, member) for member in members]
    first = _Try()
    tries: list[_Try] = []
    for place in sorted(range(len(members)), key=lambda place: -len(changes[place])):
        member, changed = members[place], changes[place]
        fitting = [its for its in tries if its.fits(member, changed)]
        if not changed:
            first.add(member, place, {})
            fitting = [its for its in fitting if not its.has(member)]
        elif not fitting:
            tries.append(_Try())
            fitting = tries[-1:]
        for its in fitting[:1] if changed else fitting:
            its.add(member, place, changed)
    return [tuple(sorted(its.places)) for its in (first, *tries) if its.places]


@dataclass
class _Try:
    """Runs of a case in which the same was changed, and what that is."""

    changes: dict[str, Value] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def fits(self, member: Member, changed: Mapping[str, Value]) -> bool:
        return all(
            run.params.get(name, UNSET) == value
            for wanted, runs in ((self.changes, [member]), (changed, self.members))
            for name, value in wanted.items()
            for run in runs
        )

    def has(self, member: Member) -> bool:
        return any((run.trial, run.seed) == (member.trial, member.seed) for run in self.members)

    def add(self, member: Member, place: int, changed: Mapping[str, Value]) -> None:
        self.changes |= changed
        self.members.append(member)
        self.places.append(place)


def _changes(lab: Lab, member: Member) -> dict[str, Value]:
    """The settings of a case's run that aren't its first try's; UNSET for one taken away."""
    planned = trial_params(lab, member.trial, case=member.case, seed=member.seed)
    return {
        name: member.params.get(name, UNSET)
        for name in {**planned, **member.params}
        if planned.get(name) != member.params.get(name)
    }


def with_help(lab: Lab, finding: Finding, hint: int | None, case: int | None = None) -> Finding:
    """Add the page that explains a finding and, where asked for, a step of its ladder of hints.

    Of a run of a `case` from that case, if this is its finding, else in general: no other case's page is about that run.
    Of other runs from the lab's own pitfall, or another lab's that stages this finding, or in general; so too where two of the lab's do.
    """
    own = [
        (lab, number, pitfall)
        for number, pitfall in enumerate(lab.file.pitfalls, start=1)
        if number == case and finding.id in (pitfall.finding, *pitfall.follows)
    ]
    staged = next(iter(own) if case is not None else _the_one_staging(lab, finding.id), None)
    ladder: Sequence[str] | None = KINDS[finding.id].hints
    page = f"reference/checks/#{finding.id}"
    if staged:
        of_lab, number, pitfall = staged
        ladder, page = pitfall.hints, f"modules/{of_lab.folder.name}/case-{number:02d}/"
    elif not ladder and (other := next(_staging(lab, finding.id), None)):
        ladder = other[2].hints
    return replace(finding, page=page, hint=ladder[hint - 1] if hint and ladder else None)


def _the_one_staging(lab: Lab, finding: str) -> Iterator[tuple[Lab, int, Pitfall]]:
    """The first case that stages a finding; none where the same lab has another one, since only a run's plan tells which
    of the two it is."""
    first, second = (*itertools.islice(_staging(lab, finding), 2), None, None)[:2]
    if first and not (second and second[0] is first[0]):
        yield first


def _staging(lab: Lab, finding: str) -> Iterator[tuple[Lab, int, Pitfall]]:
    """The cases that stage a finding, with their numbers: the lab's own, then other labs'."""
    for other in itertools.chain([lab], _siblings(lab)):
        for number, pitfall in enumerate(other.file.pitfalls, start=1):
            if pitfall.finding == finding:
                yield other, number, pitfall


def _siblings(lab: Lab) -> Iterator[Lab]:
    for folder in find_labs(lab.folder.parent.parent).values():
        if folder != lab.folder:
            yield read_lab(folder)
