"""Does a run's folder agree with itself? The same seed and settings stand in it five times.

Whoever rewrites a plan seldom rewrites provenance.json, result.json, the script and the folder's name with it. All these are words
of a stranger: they are compared with what follows from the plan, and never used.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from measuretwice.backends import REPEATING
from measuretwice.backends.script import environment
from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.grading.contents import Agreement
from measuretwice.grading.unpack import shown
from measuretwice.lab import Plan
from measuretwice.runs.folder import PLAN, PROVENANCE, RESULT, command_again
from measuretwice.runs.remeasure import RunData
from measuretwice.runs.result import code_digest

SCRIPT = "experiment.sh"
MAX_SCRIPT_BYTES = 2**20
NAMES_SHOWN = 3
_FOLDER = re.compile(r"-seed([0-9]+)-([0-9a-f]{8})$")
_HEAD = re.compile(r"^# \S+, trial ([0-9]+), seed ([0-9]+):", re.MULTILINE)
_EXPORT = re.compile(r"^export ([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)
_CLIENT = b'"connecting_to"'
_PORT = re.compile(rb'"local_port":\s*([0-9]+)')
_SS_PORT = re.compile(rb"\S+:([0-9]+) +\S+:[0-9]+ ")
_OPTIONS = ("--trial", "--pitfall", "--stage", "--case", "--set", "--seed", "--show-me")


def find_agreement(data: RunData, folder: Path) -> Agreement:
    """Compare all that a run's folder says of its seed and settings with its plan."""
    plan = data.plan
    result, script = _read(folder / RESULT), _script(folder / SCRIPT)
    said: list[tuple[str, int | None]] = [
        (PROVENANCE, _seed_of_command(data.provenance)),
        (RESULT, _whole(result.get("seed")) if result else None),
        (SCRIPT, _seed_of_script(script)),
        ("the folder's name", _seed_of_name(data.name)),
    ]
    kernel_seed = _whole((_read(folder / PLAN) or {}).get("kernel_seed"))
    found = [
        *_of_provenance(data),
        *(_of_result(plan, result) if result else ()),
        *_of_script(plan, script),
        *_of_name(data),
        *_of_ports(folder / "raw"),
    ]
    missing = [name for name in (PROVENANCE, RESULT, SCRIPT) if not (folder / name).is_file()]
    return Agreement(
        {where: seed for where, seed in said if seed not in (None, plan.seed)},
        kernel_seed if kernel_seed not in (None, plan.kernel_seed) else None,
        tuple(found),
        _edits(data, result or {}),
        shown((result or {}).get("derived_by", ""))[:16],
        (result or {}).get("derived_by") == code_digest(data.lab.folder),
        tuple(missing),
    )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_object(path)
    except (OSError, ValueError, RecursionError, TypeError):
        return None


def _script(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > MAX_SCRIPT_BYTES:
        return ""
    return path.read_text(encoding="utf-8", errors="replace")


def _whole(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 2**63 else -1


def _seed_of_command(provenance: Mapping[str, object] | None) -> int | None:
    found = re.search(r"--seed[ =]([0-9]{1,20})\b", str((provenance or {}).get("command", "")))
    return _whole(int(found[1])) if found else None


def _seed_of_script(script: str) -> int | None:
    found = _HEAD.search(script)
    return _whole(int(found[2][:20])) if found else None


def _seed_of_name(name: str) -> int | None:
    found = _FOLDER.search(name)
    return _whole(int(found[1][:20])) if found else None


def _of_name(data: RunData) -> Iterator[str]:
    found = _FOLDER.search(data.name)
    if found and found[2] != data.plan.digest:
        yield "the folder's name has another plan's digest"


def _of_provenance(data: RunData) -> Iterator[str]:
    plan, provenance = data.plan, data.provenance
    if provenance is None:
        return
    try:
        meant = _options(command_again(plan, data.lab, ""))
    except UserError:
        meant = None
    said = _options(str(provenance.get("command", "")))
    # The seed is looked at by itself; an older kit may have written what varies by itself into its commands.
    if meant and said and _without_seed(meant) != _without_seed(said):
        yield f"{PROVENANCE}'s command has other options than the plan's"
    kernel = provenance.get("kernel")
    if plan.where in REPEATING and isinstance(kernel, dict):
        # What decides a run's bytes; an older kit's kernel has one key for all.
        key = kernel.get("results_key") or kernel.get("key", "")
        named = (str(kernel.get("version", "")), str(key)[:16])
        if not all(part in plan.kernel for part in named):
            yield f"{PROVENANCE} names another kernel than the plan"
        if isinstance(kernel.get("programs"), dict) and kernel["programs"] != plan.tools:
            yield f"{PROVENANCE} names other versions of tools than the plan"
    if (provenance.get("edited") or None) != (plan.edited or None):
        yield f"{PROVENANCE} and the plan differ on whose node scripts they were"


def _options(command: str) -> list[tuple[str, str]] | None:
    """The options that decide what is run, of a command that is only read; None where it is no ./lab run."""
    try:
        words = shlex.split(command.split(" --on ")[0])
    except ValueError:
        return None
    if words[:2] != ["./lab", "run"]:
        return None
    return sorted(
        (word, words[at + 1] if at + 1 < len(words) and word != "--show-me" else "")
        for at, word in enumerate(words)
        if word in _OPTIONS
    )


def _without_seed(options: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [option for option in options if option[0] != "--seed"]


def _of_result(plan: Plan, result: Mapping[str, Any]) -> Iterator[str]:
    for name in ("lab", "trial", "pitfall", "stage", "case"):
        if result.get(name) != getattr(plan, name):
            yield f"{RESULT} is of another {name}"
    params = result.get("params")
    if isinstance(params, dict) and params != plan.params:
        names = sorted(
            str(name)
            for name in params.keys() | plan.params.keys()
            if params.get(name) != plan.params.get(name)
        )
        yield f"{RESULT} has other settings than the plan: {_few(names)}"


def _of_script(plan: Plan, script: str) -> Iterator[str]:
    head = _HEAD.search(script)
    if head and head[1] != str(plan.trial):
        yield f"{SCRIPT} is of another trial"
    meant = environment(plan)
    for name, value in _EXPORT.findall(script):
        if name in meant and value != shlex.quote(meant[name]):
            yield f"{SCRIPT} has another {name}"


def _of_ports(raw: Path) -> Iterator[str]:
    """Is what iperf3 and ss of one node saw one connection? Of two runs the ports differ."""
    for node in sorted(path for path in raw.glob("*") if path.is_dir()):
        clients = [
            text for path in sorted(node.glob("*.json")) if _CLIENT in (text := path.read_bytes())
        ]
        ports = {port for text in clients for port in _PORT.findall(text)}
        for log in sorted(node.glob("ss*.txt")):
            seen = set(_SS_PORT.findall(log.read_bytes()))
            if ports and seen and not ports & seen:
                yield f"{node.name}'s iperf3 and {log.name} have no connection in common"


def _edits(data: RunData, result: Mapping[str, Any]) -> str:
    """Which numbers of result.json the raw files don't hold; empty where there are none."""
    said = result.get("measured")
    if not isinstance(said, dict):
        return ""
    measured = data.result.measured
    return _few(sorted(str(name) for name in said if said[name] != measured.get(name, said[name])))


def _few(names: Sequence[object]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(shown(name)[:40] for name in names[:NAMES_SHOWN]) + more
