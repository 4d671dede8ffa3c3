"""The ways to run trials: by a page itself, where the site has the browser's machine (site/machine.py), and by a person,
with what to type in each node's terminal."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

from measuretwice.backends.browser import COST, MEMORY_BYTES, fitted_memory, packs_of, too_much
from measuretwice.backends.live_script import PAGE_TERMINALS
from measuretwice.book.prediction import quantity_of
from measuretwice.execute.batch import likely_seconds
from measuretwice.lab import (
    Lab,
    StageName,
    Value,
    first_try_of,
    plan_try,
    select_trials,
    trial_params,
)
from measuretwice.lab.schema.network import Step
from measuretwice.lab.schema.parameters import Parameter
from measuretwice.site.machine import settings_for_pages
from measuretwice.site.macros import LabContext, macro
from measuretwice.site.macros.blocks import Block, indented, verbatim
from measuretwice.site.macros.lab import case_options, stage_set

# How a panel begins, which a script of the page fills in.
PANEL = '<div class="here"'
# What takes longer has no place in a page.
LONGEST_S = 1800
Params = dict[str, Value]
# What folds all ways to run something but the button and the command; none is on paper.
OTHER_WAYS = "Other ways to run it"
STEP = " " * 4


@macro('browser_run("5,6", fifo_packets=100)')
def browser_run(context: LabContext, trials: str, **changes: Value) -> Block:
    """Where a page runs trials itself, with these changes filled in; nothing on a site without the browser's machine."""
    numbers = select_trials(context.lab, trials)
    runs = [trial_params(context.lab, number, changes=changes) for number in numbers]
    asked: dict[str, Any] = {"preset": changes} if changes else {}
    return Block(_run_panel(context, runs, kind="trials", trials=trials, **asked))


def stage_run(context: LabContext, name: str, stage: StageName) -> str:
    """Where a page runs a case's first try itself, or shows it fixed."""
    number, runs = _case(context, name, stage)
    if stage == "fixed":
        return _run_panel(context, runs, f"{name}-fixed", kind="show", case=number)
    staged = context.lab.pitfall(name)
    own = {"dealt": True} if staged.vary and not staged.trials else {}
    return _run_panel(context, runs, f"{name}-broken", kind="first", case=number, **own)


def fix_run(context: LabContext, name: str) -> str:
    """Where a page runs what a student changed in a case; it names no setting that tells the cause."""
    number, runs = _case(context, name, "broken")
    asked = {"quantity": quantity_of(context.lab.pitfall(name).predict).label}
    # By the first try: how long a fixed run takes would tell that it is to be longer.
    return _run_panel(context, runs, f"{name}-broken", kind="fix", case=number, **asked)


def told_settings(context: LabContext, name: str) -> str:
    """What a case's panel names besides once its diagnosis is open; nothing where it names all, or there is none."""
    unlisted = unlisted_settings(context, name)
    if not unlisted or not context.runs_here:
        return ""
    also = html.escape(json.dumps(settings_for_pages(context.lab, unlisted)))
    return f'<div class="here-also" data-also="{also}"></div>\n\n'


def extra_seconds(context: LabContext, name: str) -> float:
    """How much longer than their recordings took both runs of a case are likely to take in a page; 0 where it can't make both."""
    longer = 0.0
    stages: tuple[StageName, ...] = ("broken", "fixed")
    for stage in stages if context.runs_here else ():
        _, runs = _case(context, name, stage)
        like = f"{name}-{stage}"
        if _why_not(context.lab, runs) or any(too_much(context.lab, one) for one in runs):
            return 0.0
        if not context.sets.is_recorded(like):
            continue
        recorded_s = sum(map(context.sets.real_s, context.sets.runs(like)))
        longer += max(0.0, _page_seconds(context, runs, like) - recorded_s)
    return longer


def try_run(context: LabContext) -> str:
    """Where a page makes a lab's first try itself; what solved cases change in it is planned there."""
    lab = context.lab
    plan = plan_try(lab, ())
    runs = [trial_params(lab, trial, changes=plan.changes) for trial in plan.trials] * plan.repeat
    return _run_panel(context, runs, first_try_of(lab).steps[0].of, kind="start")


def unlisted_settings(context: LabContext, name: str) -> dict[str, Parameter]:
    """Return the settings that a case is about and no list has: a page names them once the case is diagnosed."""
    about = context.lab.pitfall(name).settings
    parameters = context.lab.file.parameters
    return {key: its for key, its in parameters.items() if its.unlisted and key in about}


def hand_in(context: LabContext) -> str:
    """Where a page saves the runs that this browser keeps of a lab, with the report and the answers in it."""
    if not context.runs_here:
        return ""
    return _panel("here", {"lab": context.lab.name, "kind": "hand-in"})


def stage_live(context: LabContext, name: str, stage: StageName) -> str:
    """Where a page opens terminals on the nodes of a case's network."""
    number, [params, *_] = _case(context, name, stage)
    return _live_panel(context, params, case=number, show_me=stage == "fixed")


@macro("live(7)")
def live(context: LabContext, trial: int) -> Block:
    """Where a page opens terminals on the nodes of a trial's network; nothing on a site without the machine."""
    return Block(_live_panel(context, trial_params(context.lab, trial), trial=str(trial)))


def _live_panel(context: LabContext, params: Params, **what: str | int) -> str:
    """The place that docs/assets/machine/terminals.mjs fills in; nothing where a page can't have it."""
    lab = context.lab
    if not context.runs_here or _cannot(lab, [params]):
        return ""
    asked = {
        "lab": lab.name, **what, "nodes": lab.file.topology.node_names,
        "chosen": _with_terminals(lab), "packs": packs_of(lab),
    }  # fmt: skip
    return _panel("live", asked)


def _with_terminals(lab: Lab) -> list[str]:
    """The nodes that get terminals where a page's machine has fewer than the lab: those first where it is measured."""
    kinds = lab.one_of_each_kind()
    alike = {lab.script_name(node): node for node in kinds}
    measuring = [alike[lab.script_name(step.node)] for step in lab.file.run.measure]
    chosen = list(dict.fromkeys([*measuring, *kinds]))[:PAGE_TERMINALS]
    return [node.name for node in lab.file.topology.nodes if node.name in chosen]


def _case(context: LabContext, name: str, stage: StageName) -> tuple[int, list[Params]]:
    lab, staged = context.lab, context.lab.pitfall(name)
    number = lab.case_number(staged)
    trials = select_trials(lab, staged.trials or str(staged.trial))
    shown: StageName | None = "fixed" if stage == "fixed" else None
    runs = [trial_params(lab, trial, case=number, stage=shown) for trial in trials]
    return number, runs * staged.stage(stage).repeat


def _run_panel(
    context: LabContext, runs: Sequence[Params], like: str = "", *, kind: str, **what: Any
) -> str:
    """The place that docs/assets/machine/run-panel.mjs fills in; or why a page can't run it.

    How long it takes is guessed by the recorded set `like`, since a case's settings aren't what they seem.
    """
    if not context.runs_here:
        return ""
    why = _why_not(context.lab, runs)
    # What it is may be what the case is about, and what is fixed.
    if kind != "fix" and any(too_much(context.lab, params) for params in runs):
        why = "This network is too large for the machine in a page."
    if why:
        return f"{why} Use a terminal, or look at the recorded run.\n\n"
    seconds = _page_seconds(context, runs, like)
    asked = {
        "lab": context.lab.name, "kind": kind, **what,
        "likely_s": round(seconds), "runs": len(runs), "packs": packs_of(context.lab),
    }  # fmt: skip
    return _panel("here", asked)


def is_panel(place: str) -> bool:
    """Return whether a page runs something there, or only says why it can't."""
    return place.startswith(PANEL)


def _panel(kind: str, asked: dict[str, Any]) -> str:
    """The element that a panel's script fills in."""
    return f'{PANEL} data-{kind}="{html.escape(json.dumps(asked))}"></div>\n\n'


def _page_seconds(context: LabContext, runs: Sequence[Params], like: str = "") -> float:
    """How long runs like those of a recorded set are likely to take in a page."""
    sent = _packets_of(context, like) if like else None
    return sum(likely_seconds(params, COST, sent) for params in runs)


def _packets_of(context: LabContext, name: str) -> float | None:
    """How many packets a run of a recorded set sent, on average; None where that isn't known."""
    runs = context.sets.runs(name) if context.sets.is_recorded(name) else []
    packets = [run.measured.get("qdisc_offered_packets") for run in runs]
    numbers = [float(count) for count in packets if isinstance(count, int | float)]
    return sum(numbers) / len(numbers) if numbers else None


def _why_not(lab: Lab, runs: Sequence[Params]) -> str:
    seconds = sum(likely_seconds(params, COST) for params in runs)
    if not (why := _cannot(lab, runs)) and seconds > LONGEST_S:
        hours = seconds / 3600
        about = f"{10 * round(6 * hours)} minutes" if hours < 2 else f"{round(hours, 1):g} hours"
        return f"On this page it would take about {about}."
    return why


def _cannot(lab: Lab, runs: Sequence[Params]) -> str:
    """What a lab needs that a page's machine doesn't have."""
    memory = lab.file.run.memory
    fitted = [{**params, **fitted_memory(lab, params)} for params in runs]
    if memory and any(float(params[memory]) > MEMORY_BYTES for params in fitted):
        return "That many flows need more memory than the machine in a page has."
    return ""


@macro('terminals("mtu", "broken")')
def stage_terminals(context: LabContext, name: str, stage: StageName) -> Block:
    """The ways to run a stage of a mistake: a page's button and the terminal's command; of the first try also, folded, live
    terminals, and other machines than the virtual one."""
    lab, staged = context.lab, context.lab.pitfall(name)
    params = {**lab.defaults(), **lab.trials[staged.trial].set, **stage_set(context, name, stage)}
    options = case_options(context, name, stage)
    page = stage_run(context, name, stage)
    live = stage_live(context, name, stage)
    only = f"trial {staged.trial}" if staged.trials else ""
    return terminals(
        lab, options, params, with_others=stage == "broken", page=page, live=live, only=only
    )


def terminals(
    lab: Lab,
    options: str,
    params: dict[str, Value],
    *,
    with_others: bool = False,
    page: str = "",
    live: str = "",
    only: str = "",
) -> Block:
    """The ways to run a stage: a page's button and the command; `with_others`, folded the others, a tab each.

    `options` are those of `./lab run` and `./lab up`, such as `--case 5`;
    `params` all of the run's parameters by name; none can be read, since one of them is what a
    case's student looks for. `page` is the place where a page runs it itself, `live` the place
    where it opens terminals, if it can. `only` names the one of several trials that is typed by hand.
    """
    run = f"./lab run {lab.name} {options}"
    if not with_others:
        return Block(f"{page}{_code(run)}\n")
    tabs = {
        "live terminals": live_terminals(lab, options, live, only),
        "other machines": _other_machines(lab, run, params, only),
    }
    others = "\n".join(f'=== "{title}"\n\n{indented(text, STEP)}\n' for title, text in tabs.items())
    return Block(
        f'{page}{_code(run)}\n\n??? example other-ways "{OTHER_WAYS}"\n\n{indented(others, STEP)}\n'
    )


def _code(text: str, title: str = "") -> str:
    return verbatim(text, "sh", title=title)


def live_terminals(lab: Lab, options: str, panel: str, only: str = "") -> str:
    """What to type in which terminal, in order; settings stand in the shells' environment. `panel` is the page's place."""
    run = lab.file.run
    rows = ["| terminal | type |", "|---|---|", *_typed(lab, run.prepare)]
    # As in a trial: what counts from the beginning, and how all was set, is asked before the test.
    rows += ["| each | `snapshot.sh before .` |", *_typed(lab, run.measure)]
    rows += _typed(lab, run.conclude, " (when the tests have ended)")
    if any(step.stop for step in run.steps):
        rows.append("| any still running | Ctrl-C, or `kill %1` |")
    rows.append("| each | `snapshot.sh after .` |")
    up = _code(f"./lab up {lab.name} {options}\n./lab enter NODE  # in a terminal for each node")
    check = _code(f"./lab check runs/{lab.name}/live-*  # at the end\n./lab down")
    order = f"{only.capitalize() or 'Type'}, in this order:"
    if panel:
        begin, end = [panel, order], ["Or in your own terminals:", "", up, "", check]
    else:
        begin, end = [up, "", order], [check]
    return "\n".join([*begin, "", *rows, "", *end])


def _typed(lab: Lab, steps: list[Step], when: str = "") -> Iterator[str]:
    """Yield a row for each step, or for those that do the same on several nodes: where, what to type, and `when`."""
    for alike in _alike(lab, steps):
        first = alike[0]
        waits = (
            " (leave it running)"
            if first.stop
            else " (don't wait for it)"
            if first.background
            else when
        )
        nodes = _range([step.node for step in alike])
        yield f"| {nodes} | `{lab.script_name(first.node)}.sh {first.phase}`{waits} |"


def _alike(lab: Lab, steps: list[Step]) -> Iterator[list[Step]]:
    """Steps one after another that do the same on nodes that share a script."""
    for _, group in groupby(steps, key=lambda step: (lab.script_name(step.node), step.phase)):
        yield list(group)


def _other_machines(lab: Lab, run: str, params: dict[str, Value], only: str) -> str:
    """By this machine's kernel, by ssh, or by hand with one block for each script.

    A node is told those parameters that its script reads and whose default there is another, as in
    `MTU_BYTES="${MTU_BYTES:-1500}"`: in base64, which a shell reads and a person doesn't by accident.
    """
    phases: dict[str, list[str]] = {}
    sharing: dict[str, list[str]] = {}
    for step in lab.file.run.steps:
        phases.setdefault(step.node, []).append(step.phase)
    for node in phases:
        sharing.setdefault(lab.script_name(node), []).append(node)
    blocks = [
        "[As root](../../start/terminals.md#host), or with [nodes that ssh reaches](../../start/testbeds.md#run):",
        "",
        _code(f"sudo {run} --on host\n{run} --on nodes.toml"),
        "",
        f"Or {only} by hand, with settings encoded:"
        if only
        else "Or by hand, with the settings encoded:",
    ]
    # Nodes with one script do the same: one block is for all of them.
    for alike in sharing.values():
        script = lab.script(alike[0])
        text = _with_what_it_reads(script)
        exports = [
            f"export {name}={shlex.quote(value)}"
            for name, value in _environment(params).items()
            if (default := re.search(rf"\$\{{{name}:-([^}}]*)\}}", text)) and default[1] != value
        ]
        if exports:
            packed = base64.b64encode("\n".join(exports).encode()).decode()
            exports = [f'eval "$(base64 -d <<<{packed})"']
        path = f"labs/{lab.folder.name}/nodes/{script.name}"
        lines = exports + [f"sudo -E bash {path} {phase}" for phase in phases[alike[0]]]
        blocks += ["", _code("\n".join(lines), _range(alike))]
    return "\n".join(blocks)


def _range(alike: list[str]) -> str:
    return alike[0] if len(alike) == 1 else f"{alike[0]} to {alike[-1]}"


def _with_what_it_reads(script: Path) -> str:
    """A script's text, and that of its neighbours that it reads: what two nodes have in common."""
    text = script.read_text(encoding="utf-8")
    names = re.findall(r"^\. .*/([\w-]+\.sh)\"$", text, re.MULTILINE)
    paths = [script.with_name(name) for name in names]
    return text + "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())


def _environment(params: dict[str, Value]) -> dict[str, str]:
    """Names in capitals, numbers as one would type them: 3e-05 as 0.00003."""
    return {
        name.upper(): f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value)
        for name, value in params.items()
    }
