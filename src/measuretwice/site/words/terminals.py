"""The ways in which a person can run a stage, and what to type in each node's terminal."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from measuretwice.lab import Lab, StageName, Value
from measuretwice.lab.schema.network import Step
from measuretwice.site.words import here
from measuretwice.site.words.blocks import Block, verbatim
from measuretwice.site.words.pitfalls import case_options, pitfall, stage_set
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords

# The first of the ways, which is also the one on paper.
FIRST_WAY = "virtual kernel"


@word('terminals("mtu", "broken")', name="terminals")
def stage_terminals(words: LabWords, name: str, stage: StageName) -> Block:
    """The ways to run a stage of a mistake, a tab each: virtual kernel, this page, live terminals, own kernel,
    testbed."""
    lab, number = words.lab, pitfall(words, name).trial
    params = {**lab.defaults(), **lab.trials[number].set, **stage_set(words, name, stage)}
    options = case_options(words, name, stage)
    page = here.of_stage(words, name, stage)
    live = here.of_live(words, name, stage)
    return terminals(lab, options, params, veiled=stage == "broken", page=page, live=live)


def terminals(
    lab: Lab,
    options: str,
    params: dict[str, Value],
    *,
    veiled: bool = False,
    page: str = "",
    live: str = "",
) -> Block:
    """The ways to run a stage, a tab each: virtual kernel, this page, live terminals, own kernel, testbed.

    `options` are those of `./lab run` and `./lab up`, such as `--case 5`;
    `params` all of the run's parameters by name. `veiled`, no setting can be read: one of them is
    what a case's student looks for. `page` is the place where a page runs it itself, `live` the place
    where it opens terminals, if it can.
    """
    run = f"./lab run {lab.name} {options}"
    tabs = {
        FIRST_WAY: _code(run),
        **({"in this page": page} if page else {}),
        "live terminals": _live(lab, options, live),
        "own kernel": "As root, in network namespaces. All is undone at the end; a kernel that lacks "
        f"something says so first.\n\n{_code(f'sudo {run} --on host')}",
        "testbed": _testbed(lab, run, params, veiled=veiled),
    }
    return Block(
        "\n".join(
            f'=== "{title}"\n\n' + "".join(f"    {line}\n" for line in text.splitlines())
            for title, text in tabs.items()
        )
    )


def _code(text: str, title: str = "") -> str:
    return verbatim(text, "sh", title=title)


def _live(lab: Lab, options: str, here: str) -> str:
    """What to type in which terminal, in order; settings stand in the shells' environment. `here` is the page's place."""
    rows = ["| terminal | type |", "|---|---|"]
    steps = lab.file.run.steps
    for alike in _alike(lab, steps):
        first = alike[0]
        waits = " (may stay)" if first.stop else " (don't wait for it)" if first.background else ""
        rows.append(
            f"| {_range([step.node for step in alike])} "
            f"| `{lab.script_name(alike[0].node)}.sh {alike[0].phase}`{waits} |"
        )
    if any(step.stop for step in steps):
        rows.append("| those that stayed | Ctrl-C, or `kill %1` where you wrote `&` |")
    rows.append("| each | `snapshot.sh after .` |")
    apart = "After a command that stays, or isn't to be waited for, go on in another terminal, or end its line with `&`."
    up = _code(f"./lab up {lab.name} {options}")
    check = _code(f"./lab check runs/{lab.name}/live-*\n./lab down")
    if here:
        begin = [here, f"What to type, in this order. {apart}"]
        end = [
            "Or in terminals of your own:",
            "",
            up,
            "",
            "Then `./lab enter NODE` in each, the same commands, and:",
            "",
            check,
        ]
    else:
        begin, end = [up, "", f"Then `./lab enter NODE`, in a terminal each. {apart}"], [check]
    return "\n".join([*begin, "", *rows, "", *end])


def _alike(lab: Lab, steps: list[Step]) -> Iterator[list[Step]]:
    """Steps one after another that do the same on nodes that share a script."""
    for _, group in groupby(steps, key=lambda step: (lab.script_name(step.node), step.phase)):
        yield list(group)


def _testbed(lab: Lab, run: str, params: dict[str, Value], *, veiled: bool) -> str:
    """By ssh, or by hand with one block for each script.

    A node is told those parameters that its script reads and whose default there is another:
    `MTU_BYTES="${MTU_BYTES:-1500}"`. `veiled`, it is told in base64, which a shell reads and a
    person doesn't by accident.
    """
    phases: dict[str, list[str]] = {}
    sharing: dict[str, list[str]] = {}
    for step in lab.file.run.steps:
        phases.setdefault(step.node, []).append(step.phase)
    for node in phases:
        sharing.setdefault(lab.script_name(node), []).append(node)
    blocks = [
        "With [nodes that ssh reaches](../../start/testbeds.md#run):",
        "",
        _code(f"{run} --on nodes.toml"),
        "",
        "Or by hand, in a checkout on each. The settings are packed, so that they don't tell you what you are "
        "looking for:"
        if veiled
        else "Or by hand, in a checkout on each:",
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
        if veiled and exports:
            packed = base64.b64encode("\n".join(exports).encode()).decode()
            exports = [f'eval "$(base64 -d <<<{packed})"']
        place = f"labs/{lab.folder.name}/nodes/{script.name}"
        lines = exports + [f"sudo -E bash {place} {phase}" for phase in phases[alike[0]]]
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
