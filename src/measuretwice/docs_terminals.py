"""How a person runs a stage on nodes of their own: what to type in each node's terminal."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

from measuretwice.docs_excerpt import Block
from measuretwice.lab import Lab, Value
from measuretwice.report import fence


def terminals(lab: Lab, command: str, params: dict[str, Value]) -> Block:
    """A tab with `command`, which does all of it, and one a node, in the order of the lab's steps.

    Nodes that share a script have one tab together.

    `params` are all of the run's parameters by name. A node is told those that its script reads
    and whose default there is another: `MTU_BYTES="${MTU_BYTES:-1500}"`.
    """
    phases: dict[str, list[str]] = {}
    sharing: dict[str, list[str]] = {}
    for step in (*lab.file.run.prepare, *lab.file.run.measure, *lab.file.run.conclude):
        phases.setdefault(step.node, []).append(step.phase)
    for node in phases:
        sharing.setdefault(lab.script_name(node), []).append(node)
    tabs = [("one command", fence(command, "sh"))]
    # Nodes with one script do the same: one tab is for all of them.
    for alike in sharing.values():
        node, names = _range(alike), phases[alike[0]]
        script = lab.script(alike[0])
        text = _with_what_it_reads(script)
        lines = [
            f"export {name}={value}"
            for name, value in _environment(params).items()
            if (default := re.search(rf"\$\{{{name}:-([^}}]*)\}}", text)) and default[1] != value
        ]
        place = f"labs/{lab.folder.name}/nodes/{script.name}"
        lines += [f"sudo -E bash {place} {phase}" for phase in names]
        tabs.append((node, fence("\n".join(lines), "sh")))
    return Block(
        "\n".join(
            f'=== "{title}"\n\n' + "".join(f"    {line}\n" for line in block.splitlines())
            for title, block in tabs
        )
    )


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
