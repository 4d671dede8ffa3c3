"""Runs that a page makes itself, and terminals that it opens, where the site has the browser's machine (site/machine.py)."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from measuretwice.backends.browser import COST, MEMORY_BYTES, fitted_memory, packs_of, too_much
from measuretwice.backends.live_script import PAGE_TERMINALS
from measuretwice.book.prediction import quantity_of
from measuretwice.execute.batch import likely_seconds
from measuretwice.lab import Lab, StageName, Value, select_trials, trial_params
from measuretwice.lab.schema.parameters import Parameter
from measuretwice.site.machine import settings_for_pages
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.pitfalls import pitfall
from measuretwice.site.words.registry import word
from measuretwice.site.words.runs import recorded
from measuretwice.site.words.subjects import LabWords

# What takes longer has no place in a page.
LONGEST_S = 1800
Params = dict[str, Value]


@word('here("5,6")', name="here")
def of_trials(words: LabWords, trials: str) -> Block:
    """Where a page runs trials itself; nothing on a site without the browser's machine."""
    numbers = select_trials(words.lab, trials)
    runs = [trial_params(words.lab, number) for number in numbers]
    return Block(_place(words, runs, kind="trials", trials=trials))


def of_stage(words: LabWords, name: str, stage: StageName) -> str:
    """Where a page runs a case's first try itself, or shows it mended."""
    number, runs = _case(words, name, stage)
    if stage == "fixed":
        return _place(words, runs, f"{name}-fixed", kind="show", case=number)
    staged = pitfall(words, name)
    own = {"dealt": True} if staged.vary and not staged.trials else {}
    return _place(words, runs, f"{name}-broken", kind="first", case=number, **own)


def of_mending(words: LabWords, name: str) -> str:
    """Where a page runs what a student changed in a case."""
    return _mending(words, name, **_also(words, name))


def of_trying(words: LabWords, name: str) -> str:
    """The same before the diagnosis: it names no setting that tells the cause."""
    return _mending(words, name)


def _mending(words: LabWords, name: str, **also: Any) -> str:
    number, runs = _case(words, name, "broken")
    asked = {**_quantity(words, name), **also}
    # By the first try: how long a mended run takes would tell that it is to be longer.
    return _place(words, runs, f"{name}-broken", kind="mend", case=number, **asked)


def _quantity(words: LabWords, name: str) -> dict[str, str]:
    """What is predicted, with its unit."""
    return {"quantity": quantity_of(pitfall(words, name).predict).label}


def unlisted_of(words: LabWords, name: str) -> dict[str, Parameter]:
    """Return the settings that a case is about and no list has: a page names them once the case is diagnosed."""
    about = pitfall(words, name).settings
    parameters = words.lab.file.parameters
    return {key: its for key, its in parameters.items() if its.unlisted and key in about}


def _also(words: LabWords, name: str) -> dict[str, Any]:
    hidden = unlisted_of(words, name)
    return {"also": settings_for_pages(words.lab, hidden)} if hidden else {}


def of_handing_in(words: LabWords) -> str:
    """Where a page saves the runs that this browser keeps of a lab, with the report and the answers in it."""
    if not words.runs_here:
        return ""
    asked = {"lab": words.lab.name, "kind": "hand-in"}
    return f'<div class="here" data-here="{html.escape(json.dumps(asked))}"></div>\n\n'


def of_live(words: LabWords, name: str, stage: StageName) -> str:
    """Where a page opens terminals on the nodes of a case's network."""
    number, [params, *_] = _case(words, name, stage)
    return _live_place(words, params, case=number, show_me=stage == "fixed")


@word("live(7)", name="live")
def of_live_trial(words: LabWords, trial: int) -> Block:
    """Where a page opens terminals on the nodes of a trial's network; nothing on a site without the machine."""
    return Block(_live_place(words, trial_params(words.lab, trial), trial=str(trial)))


def _live_place(words: LabWords, params: Params, **what: str | int) -> str:
    """The place that docs/assets/machine/terminals.mjs fills in; nothing where a page can't have it."""
    lab = words.lab
    if not words.runs_here or _cannot(lab, [params]):
        return ""
    nodes = lab.file.topology.node_names
    asked = {
        "lab": lab.name,
        **what,
        "nodes": nodes,
        "chosen": _with_terminals(lab),
        "packs": packs_of(lab),
    }
    return f'<div class="here" data-live="{html.escape(json.dumps(asked))}"></div>\n\n'


def _with_terminals(lab: Lab) -> list[str]:
    """The nodes that get terminals where a page's machine has fewer than the lab: those first where it is measured."""
    kinds = lab.one_of_each_kind()
    alike = {lab.script_name(node): node for node in kinds}
    measuring = [alike[lab.script_name(step.node)] for step in lab.file.run.measure]
    chosen = list(dict.fromkeys([*measuring, *kinds]))[:PAGE_TERMINALS]
    return [node.name for node in lab.file.topology.nodes if node.name in chosen]


def _case(words: LabWords, name: str, stage: StageName) -> tuple[int, list[Params]]:
    lab, staged = words.lab, pitfall(words, name)
    number = lab.case_number(staged)
    trials = select_trials(lab, staged.trials or str(staged.trial))
    shown: StageName | None = "fixed" if stage == "fixed" else None
    runs = [trial_params(lab, trial, case=number, stage=shown) for trial in trials]
    return number, runs * staged.stage(stage).repeat


def _place(
    words: LabWords, runs: Sequence[Params], like: str = "", *, kind: str, **what: Any
) -> str:
    """The place that docs/assets/machine/here.mjs fills in; or why a page can't run it.

    How long it takes is guessed by the recorded set `like`, since a case's settings aren't what they seem.
    """
    if not words.runs_here:
        return ""
    why = _why_not(words.lab, runs)
    # What it is may be what the case is about, and what is mended.
    if kind != "mend" and any(too_much(words.lab, params) for params in runs):
        why = "This network is too much for a page's machine."
    if why:
        return f"{why} Use a terminal, or look at the recorded run.\n\n"
    sent = _packets_of(words, like) if like else None
    seconds = sum(likely_seconds(params, COST, sent) for params in runs)
    asked = {
        "lab": words.lab.name, "kind": kind, **what, "likely_s": round(seconds), "runs": len(runs), "packs": packs_of(words.lab),
    }  # fmt: skip
    return f'<div class="here" data-here="{html.escape(json.dumps(asked))}"></div>\n\n'


def _packets_of(words: LabWords, name: str) -> float | None:
    """How many packets a run of a recorded set sent, on average; None where that isn't known."""
    found = words.results_of(name) if recorded(words, name) else []
    packets = [each.measured.get("qdisc_offered_packets") for each in found]
    known = [float(each) for each in packets if isinstance(each, int | float)]
    return sum(known) / len(known) if known else None


def _why_not(lab: Lab, runs: Sequence[Params]) -> str:
    seconds = sum(likely_seconds(params, COST) for params in runs)
    if not (why := _cannot(lab, runs)) and seconds > LONGEST_S:
        return f"In a page this would take some {round(seconds / 3600, 1):g} hours."
    return why


def _cannot(lab: Lab, runs: Sequence[Params]) -> str:
    """What a lab needs that a page's machine doesn't have."""
    memory = lab.file.run.memory
    fitted = [{**params, **fitted_memory(lab, params)} for params in runs]
    if memory and any(float(params[memory]) > MEMORY_BYTES for params in fitted):
        return "That many flows need more memory than a page's machine has."
    return ""
