"""What the checker says of a run, ours or one that a person brings, as a document that is JSON already.

`./lab check --json` prints these documents. A page asks the same functions, in a Python that knows no processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from measuretwice.backends.host import EmulatedHost
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError
from measuretwice.base.files import usable_cpus
from measuretwice.base.paths import CHECKOUT
from measuretwice.checks import (
    Finding,
    Judgement,
    Member,
    RunUnderTest,
    Severity,
    check_set,
    judge_run,
    limits,
    run_under_test,
    with_help,
)
from measuretwice.checks.configuration import notes as what_does_not_matter
from measuretwice.checks.configuration import of_another_kernel
from measuretwice.checks.expectations import chance_notes
from measuretwice.checks.queue_discipline import idle_notes
from measuretwice.course.case import read_changes
from measuretwice.execute.batch import other_scripts, reference_host_state
from measuretwice.lab import (
    UNSET,
    Lab,
    Plan,
    StageName,
    Value,
    load_lab,
    select_trials,
    trial_params,
)
from measuretwice.live.session import FACTS
from measuretwice.measure import imported
from measuretwice.measure.fields import Measured
from measuretwice.measure.host_state import HostState
from measuretwice.runs.remeasure import plan_in, remeasure

# How a lab's own scripts set its nodes up, as reference_host_state says it; who reads elsewhere asks otherwise.
Reference = Callable[[Path, Lab, Mapping[str, Value]], HostState | None]


# Of so many scripts the names are said.
MOST_SCRIPTS = 4
# Findings that are remarks where a person says how long the test and how fast the link was meant to be.
REMARKS = frozenset({"duration", "queueing"})


class FindingDocument(TypedDict):
    """A checks.Finding; `hint` is of the step of help that was asked for."""

    id: str
    severity: Severity
    measured: str
    expected: str
    why: str
    hint: str | None
    page: str
    off: str
    consequences: Sequence[str]


class PlanDocument(TypedDict):
    """What a run was made as: its trial, the mistake that is staged, its case, and where it ran (`--on`)."""

    trial: int
    pitfall: str | None
    stage: StageName | None
    seed: int
    case: int | None
    where: str


class Document(TypedDict):
    """What was found in a run, in a folder of files, or in several runs taken together (`runs`).

    `run` is the folder, or the words for all of it; `looked_at` is what was looked at and found right,
    `limits` what limits its flows by each tool's own word, `notes` lines on files that are used, or on what a run was compared
    with. A run of ours has `plan`; files that a person brings have `used` (what each file
    was taken for), `missing` and `refused`, lines each, and `unread`, those lines of `refused` and `missing` by which
    something was brought in vain: where there are any, no finding says nothing of the whole. A live lab may have its
    `case`.
    """

    run: str
    lab: str
    findings: list[FindingDocument]
    params: NotRequired[dict[str, Value]]
    measured: NotRequired[Measured]
    looked_at: NotRequired[list[str]]
    limits: NotRequired[list[str]]
    plan: NotRequired[PlanDocument]
    runs: NotRequired[list[str]]
    notes: NotRequired[list[str]]
    used: NotRequired[dict[str, str]]
    missing: NotRequired[list[str]]
    refused: NotRequired[list[str]]
    unread: NotRequired[list[str]]
    case: NotRequired[int]


@dataclass(frozen=True)
class DeclaredRun:
    """What a person says that files of their own were to be."""

    lab_name: str | None
    trial: str | None
    changes: tuple[str, ...]


def check_one(
    root: Path, run: Path, hint: int | None, reference_of: Reference = reference_host_state
) -> Document:
    """Return the document of one run of ours: measured anew from its raw files, compared with its plan.

    UserError where its files can't be read.
    """
    again = remeasure(root, run)
    lab, plan, measured = again.lab, again.plan, again.measured
    params = dict(plan.params)
    reference, notes = _compared(root, lab, plan, reference_of)
    under_test = run_under_test(lab, plan.params, measured, plan.trial, again.host_state, reference)
    judged = judge_run(lab, under_test, hint, _case_of(lab, plan))
    made_as: PlanDocument = {
        "trial": plan.trial, "pitfall": plan.pitfall, "stage": plan.stage, "seed": plan.seed,
        "case": plan.case, "where": plan.where,
    }  # fmt: skip
    notes += [*what_does_not_matter(under_test), *idle_notes(under_test)]
    if not judged.findings:
        notes += chance_notes(under_test)
    document = _document(str(run), lab, params, measured, judged)
    return {**document, "limits": limits(under_test), "plan": made_as, "notes": notes}


def _case_of(lab: Lab, plan: Plan) -> int | None:
    """Return the case that a run is of, by its number or by the mistake that was staged; None for other runs."""
    staged = (n for n, its in enumerate(lab.file.pitfalls, start=1) if its.id == plan.pitfall)
    return plan.case if plan.case is not None else next(staged, None)


def _compared(
    root: Path, lab: Lab, plan: Plan, reference_of: Reference
) -> tuple[HostState | None, list[str]]:
    """Return what a run's nodes are compared with where other scripts than this checkout's set them up, which may have set
    them in any way; and a line that says so."""
    others = other_scripts(plan)
    if not others:
        return None, []
    whose = f"run by scripts that aren't this checkout's ({', '.join(others[:MOST_SCRIPTS])}{', ...' if others[MOST_SCRIPTS:] else ''})"
    if plan.where == EmulatedHost.name:
        # There the lab's scripts shape nothing: an emulator does.
        return None, [f"{whose}, and with an emulator their nodes are compared with nothing"]
    # An older run lacks what the lab has got since.
    params = {**lab.defaults(), **plan.params}
    intended = _intended(lab, params, plan.trial, plan.case, plan.seed)
    try:
        reference = reference_of(root, lab, intended)
    except UserError as error:
        if root.resolve() == CHECKOUT.resolve():
            raise
        # A lab of another checkout may have settings of its own.
        return None, [f"{whose}: what this checkout's would have set isn't known ({error})"]
    if reference is None:
        return None, [
            f"{whose}, and without a virtual kernel here their nodes are compared with nothing"
        ]
    if plan.where != Virtual.name:
        reference = of_another_kernel(reference)
    return reference, [f"{whose}: its nodes are compared with what this checkout's set up"]


def _intended(
    lab: Lab, params: dict[str, Value], trial: int, case: int | None, seed: int
) -> dict[str, Value]:
    """The settings that a run was meant to have: of a case those of its fixed run, where the student
    left the first try's."""
    if case is None:
        return params
    first = trial_params(lab, trial, case=case, seed=seed)
    fixed = trial_params(lab, trial, case=case, stage="fixed", seed=seed)
    return params | {
        name: value
        for name, value in fixed.items()
        if value != first.get(name) and params.get(name) == first.get(name)
    }


def check_together(root: Path, documents: list[Document], hint: int | None) -> list[Document]:
    """Return what no single run shows: a document for each set of runs that can't stand together."""
    together: list[Document] = []
    for name in sorted({document["lab"] for document in documents}):
        lab = load_lab(root, name)
        members = [
            document
            for document in documents
            # Whose plan was tampered with can't be one of a set.
            if document["lab"] == name
            and isinstance(document["plan"]["trial"], int)
            and document["plan"]["trial"] in lab.trials
            and isinstance(document["plan"]["seed"], int)
        ]
        for about in check_set(lab, [_member(document) for document in members]):
            runs = [members[place]["run"] for place in about.members]
            finding = with_help(lab, about.finding, hint, members[about.members[0]]["plan"]["case"])
            together.append(
                {
                    "run": f"{_folder_of(runs)}: {len(runs)} runs taken together",
                    "lab": name,
                    "runs": runs,
                    "findings": [_finding_document(finding)],
                }
            )
    return together


def _member(document: Document) -> Member:
    plan = document["plan"]
    return Member(
        plan["trial"],
        (plan["pitfall"], plan["stage"], plan["case"]),
        plan["seed"],
        document["params"],
        document["measured"],
        plan["case"],
    )


def _folder_of(runs: list[str]) -> str:
    return os.path.relpath(os.path.commonpath([Path(run).parent.resolve() for run in runs]))


def check_live(
    root: Path, folder: Path, hint: int | None, reference_of: Reference = reference_host_state
) -> Document:
    """Return the document of what a person did by hand in a live lab: their files, compared with its plan.

    UserError where live.json can't be read.
    """
    try:
        lab, plan = plan_in(root, folder / FACTS)
    except UserError as error:
        raise UserError(
            f"{error}; or check the files in raw/ and say what it was: --lab LAB --trial N"
        ) from None
    params = dict(plan.params)
    brought = imported.read_files([folder / "raw"], lab, params)
    reference = None
    if brought.host_state and any(node.interfaces for node in brought.host_state.nodes.values()):
        intended = _intended(lab, params, plan.trial, plan.case, plan.seed)
        reference = reference_of(root, lab, intended)
    document = _document_of(
        str(folder),
        lab,
        params,
        brought,
        lambda run: judge_run(lab, run, hint, plan.case),
        trial=plan.trial,
        reference=reference,
    )
    document["notes"] = [real_time_note(*_load_and_cpus()), *document.get("notes", [])]
    return {**document, "case": plan.case} if plan.case else document


def real_time_note(load: float, cpus: int) -> str:
    """Say what real time adds to a live lab's numbers, by how many programs wish to run just now; 0 where that isn't known."""
    note = "measured in real time, so that what this machine did besides is in each time and rate"
    if load <= cpus:
        return note
    return (
        f"{note}; {load:.0f} programs wish to run on its {cpus} CPU{'s' if cpus > 1 else ''} just now, which makes round trips "
        "longer and rates lower: end some, or take ./lab run, whose time is virtual"
    )


def _load_and_cpus() -> tuple[float, int]:
    try:
        return os.getloadavg()[0], len(usable_cpus())
    except (OSError, AttributeError):
        # A page's Python knows neither.
        return 0.0, 1


def check_brought(
    root: Path, targets: list[Path], declared: DeclaredRun, hint: int | None
) -> Document:
    """Return the document of a person's files, compared with the trial that they say it was.

    UserError where they don't say it, or the lab or trial isn't there.
    """
    lab_name, trial = declared.lab_name, declared.trial
    if lab_name is None or trial is None:
        raise UserError(
            f"{targets[0]}: no run of ./lab; say what it was meant to be: --lab LAB --trial N, "
            "and --set KEY=VALUE for what was different"
        )
    lab = load_lab(root, lab_name)
    numbers = select_trials(lab, trial)
    if len(numbers) != 1:
        raise UserError(f"--trial {trial}: these files are of one trial, so give one number")
    changes = read_changes(lab, declared.changes, elsewhere=True)
    chosen = {**lab.defaults(), **lab.trials[numbers[0]].set, **changes}
    params = {name: value for name, value in chosen.items() if value != UNSET}
    brought = imported.read_files(targets, lab, params)
    name = ", ".join(map(str, targets))
    document = _document_of(
        name,
        lab,
        params,
        brought,
        lambda run: judge_run(lab, run, hint),
        trial=numbers[0],
        stated=frozenset(changes),
    )
    # Nobody is to find out by themselves what was staged. And a test as long as it was meant to be is none that is off.
    remarks = [finding for finding in document["findings"] if finding["id"] in REMARKS]
    rest = [{**finding, "off": ""} for finding in document["findings"] if finding not in remarks]
    notes = [f"{finding['measured']}. {finding['why']}" for finding in remarks]
    notes += document.get("notes", [])
    return {**document, "findings": cast(list[FindingDocument], rest), "notes": notes}


def _document_of(
    name: str,
    lab: Lab,
    params: dict[str, Value],
    brought: imported.ImportedFiles,
    judge: Callable[[RunUnderTest], Judgement],
    *,
    trial: int,
    reference: HostState | None = None,
    stated: frozenset[str] | None = None,
) -> Document:
    """The document of files: what was found, as they are `judge`d, and what each file was taken for."""
    under_test = run_under_test(
        lab, params, brought.measured, trial, brought.host_state, reference, brought=True, stated=stated,
    )  # fmt: skip
    judged = judge(under_test)
    return {
        **_document(name, lab, params, brought.measured, judged),
        "used": brought.used,
        "missing": [*brought.missing, *_unsaid(under_test)],
        "refused": brought.refused,
        "unread": brought.unread,
        "notes": [*judged.remarks, *brought.notes, *idle_notes(under_test)],
        "limits": limits(under_test),
    }


def _unsaid(run: RunUnderTest) -> list[str]:
    """Return a line where somebody set the congestion control of a test, and no file says which one it had."""
    state = run.host_state
    if "congestion_control" not in (run.stated or ()) or state is None or not state.transfers:
        return []
    named = [run.values.get(name) for name in ("iperf3_algorithms", "congestion_control")]
    if any(named) or any(socket.congestion_control for socket in state.sockets):
        return []
    return ["which congestion control it was, since no file has it (iperf3 -J, or -V; ss -ti)"]


def _document(
    name: str,
    lab: Lab,
    params: dict[str, Value],
    measured: Measured,
    judged: Judgement,
) -> Document:
    return {
        "run": name,
        "lab": lab.name,
        "params": params,
        "measured": measured,
        "findings": [_finding_document(finding) for finding in judged.findings],
        "looked_at": judged.right,
    }


def _finding_document(finding: Finding) -> FindingDocument:
    return cast(FindingDocument, finding.to_json())
