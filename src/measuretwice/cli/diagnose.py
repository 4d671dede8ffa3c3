"""What is wrong with a run, ours or one that a person brings: the documents of `lab check`, and their words.

A page asks the same functions, in a Python that knows no processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.checks import Finding, Member, case_of, check_run, check_set, with_help
from measuretwice.cli.options import read_changes
from measuretwice.execute.reference import reference_conditions
from measuretwice.lab import UNSET, Lab, Value, load_lab, select_trials, trial_params
from measuretwice.live.session import FACTS
from measuretwice.measure import brought as bring
from measuretwice.measure.brought.pieces import SNAPSHOT
from measuretwice.measure.conditions import Conditions
from measuretwice.measure.values import Measured
from measuretwice.runs.reread import measure_again, plan_in

# What a finding is called before it has a name.
UNNAMED = {
    "error": "something is off",
    "warning": "something may be off",
    "note": "something to look at",
}
# Of so many nodes the files are named.
MOST_NODES = 8
# How a lab's own scripts set its nodes up, as reference_conditions says it; who reads elsewhere asks otherwise.
Reference = Callable[[Path, Lab, Mapping[str, Value]], Conditions | None]


@dataclass(frozen=True)
class Meant:
    """What a person says that files of their own were to be."""

    lab_name: str | None
    trial: str | None
    changes: tuple[str, ...]


def check_one(
    root: Path, run: Path, hint: int | None, reference_of: Reference = reference_conditions
) -> dict[str, Any]:
    """Return the document of one run of ours: measured anew from its raw files, against its plan."""
    again = measure_again(root, run)
    lab, plan, measured = again.lab, again.plan, again.measured
    params = dict(plan.params)
    # By scripts of somebody's own the nodes may be set in any way.
    meant = _meant(lab, params, plan.trial, plan.case, plan.seed)
    reference = reference_of(root, lab, meant) if plan.edited else None
    case = case_of(lab, plan.params, measured, plan.trial, again.conditions, reference)
    findings = check_run(lab, case, hint)
    named = {
        "trial": plan.trial, "pitfall": plan.pitfall, "stage": plan.stage, "seed": plan.seed,
        "case": plan.case, "where": plan.where,
    }  # fmt: skip
    return {**_document(str(run), lab, params, measured, findings), "plan": named}


def _meant(
    lab: Lab, params: dict[str, Value], trial: int, case: int | None, seed: int
) -> dict[str, Value]:
    """The settings that a run was meant to have: of a case those of its mended run, where the student
    left the first try's."""
    if case is None:
        return params
    first = trial_params(lab, trial, case=case, seed=seed)
    mended = trial_params(lab, trial, case=case, stage="fixed", seed=seed)
    return params | {
        name: value
        for name, value in mended.items()
        if value != first.get(name) and params.get(name) == first.get(name)
    }


def check_together(
    root: Path, documents: list[dict[str, Any]], hint: int | None
) -> list[dict[str, Any]]:
    """Return what no single run shows: a document for each set of runs that can't stand together."""
    found = []
    for name in sorted({document["lab"] for document in documents}):
        lab = load_lab(root, name)
        these = [
            document
            for document in documents
            # Whose plan was tampered with can't be one of a set.
            if document["lab"] == name
            and isinstance(document["plan"]["trial"], int)
            and document["plan"]["trial"] in lab.trials
            and isinstance(document["plan"]["seed"], int)
        ]
        for about in check_set(lab, [_member(document) for document in these]):
            runs = [these[place]["run"] for place in about.members]
            finding = with_help(lab, about.finding, hint)
            found.append(
                {
                    "run": f"{_folder_of(runs)}: {len(runs)} runs taken together",
                    "lab": name,
                    "runs": runs,
                    "findings": [finding.to_json()],
                }
            )
    return found


def _member(document: dict[str, Any]) -> Member:
    plan = document["plan"]
    return Member(
        plan["trial"],
        (plan["pitfall"], plan["stage"], plan["case"]),
        plan["seed"],
        document["params"],
        document["measured"],
    )


def _folder_of(runs: list[str]) -> str:
    return os.path.relpath(os.path.commonpath([Path(run).parent.resolve() for run in runs]))


def check_live(
    root: Path, folder: Path, hint: int | None, reference_of: Reference = reference_conditions
) -> dict[str, Any]:
    """Return the document of what a person did by hand in a live lab: their files, against what the lab was up for."""
    try:
        lab, plan = plan_in(root, folder / FACTS)
    except UserError as error:
        raise UserError(
            f"{error}; or check the files in raw/ and say what it was: --lab LAB --trial N"
        ) from None
    params = dict(plan.params)
    brought = bring.read_files([folder / "raw"], lab, params)
    reference = None
    if brought.conditions and any(node.interfaces for node in brought.conditions.nodes.values()):
        meant = _meant(lab, params, plan.trial, plan.case, plan.seed)
        reference = reference_of(root, lab, meant)
    document = _document_of(
        str(folder), lab, params, brought, hint, trial=plan.trial, reference=reference
    )
    return {**document, "case": plan.case} if plan.case else document


def check_brought(
    root: Path, targets: list[Path], meant: Meant, hint: int | None
) -> dict[str, Any]:
    """A person's files: against the trial that they say it was."""
    lab_name, trial = meant.lab_name, meant.trial
    if lab_name is None or trial is None:
        raise UserError(
            f"{targets[0]}: no run of ./lab; say what it was meant to be: --lab LAB --trial N, "
            "and --set KEY=VALUE for what was different"
        )
    lab = load_lab(root, lab_name)
    numbers = select_trials(lab, trial)
    if len(numbers) != 1:
        raise UserError(f"--trial {trial}: these files are of one trial: give one number")
    chosen = {
        **lab.defaults(),
        **lab.trials[numbers[0]].set,
        **read_changes(lab, meant.changes, None),
    }
    params = {name: value for name, value in chosen.items() if value != UNSET}
    brought = bring.read_files(targets, lab, params)
    name = ", ".join(map(str, targets))
    return _document_of(name, lab, params, brought, hint, trial=numbers[0])


def _document_of(
    name: str,
    lab: Lab,
    params: dict[str, Value],
    brought: bring.Brought,
    hint: int | None,
    *,
    trial: int,
    reference: Conditions | None = None,
) -> dict[str, Any]:
    """Files against a trial: what was found, and which file was taken for what."""
    case = case_of(lab, params, brought.measured, trial, brought.conditions, reference)
    findings = check_run(lab, case, hint)
    return {
        **_document(name, lab, params, brought.measured, findings),
        "used": brought.used,
        "missing": brought.missing,
        "refused": brought.refused,
    }


def _document(
    name: str,
    lab: Lab,
    params: dict[str, Value],
    measured: Measured,
    findings: list[Finding],
) -> dict[str, Any]:
    return {
        "run": name,
        "lab": lab.name,
        "params": params,
        "measured": measured,
        "findings": [finding.to_json() for finding in findings],
    }


def told(finding: Mapping[str, Any], hint: int | None) -> tuple[str, list[str]]:
    """Return what is said of a finding at that step of help: a heading, and lines.

    Finding the cause is the exercise: before the last hint it has no name, and before the second nothing is
    said that tells it.
    """
    if hint == 3:
        heading = f"{finding['id']} ({finding['severity']})"
    else:
        heading = UNNAMED[finding["severity"]]
    if finding["off"] and (hint or 0) < 2:
        # What follows says where it comes from.
        lines = [finding["off"]]
    else:
        lines = [f"measured: {finding['measured']}", f"expected: {finding['expected']}"]
        lines += [f"and because of that: {consequence}" for consequence in finding["consequences"]]
    # The reason often is the cause.
    if hint == 3:
        lines.append(finding["why"])
    if finding["hint"]:
        lines.append(f"hint {hint}: {finding['hint']}")
    if hint == 3 or not finding["page"].startswith("reference/"):
        lines.append(f"page: {finding['page']}")
    return heading, lines


def taken(document: dict[str, Any]) -> list[str]:
    """Return which file was taken for what: a line a node, and of those that a snapshot wrote how many."""
    whose: dict[str, list[str]] = {}
    snapshots = 0
    for path, words in document.get("used", {}).items():
        node, _, what = words.rpartition("'s ")
        if what in SNAPSHOT:
            snapshots += 1
        else:
            whose.setdefault(node, []).append(f"{what} ({_short(path, document['run'])})")
    lines = [f"{node or 'taken'}: {', '.join(files)}" for node, files in whose.items()]
    if (more := len(lines) - MOST_NODES) > 0:
        lines = [*lines[:MOST_NODES], f"{more} more (--json names all)"]
    return lines + ([f"and {snapshots} files of the nodes' snapshots"] if snapshots else [])


def _short(path: str, named: str) -> str:
    """A path from the folder on that was named."""
    folder = Path(named)
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path
