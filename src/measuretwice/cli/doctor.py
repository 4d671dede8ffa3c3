"""`lab doctor`: what this machine can run, lab by lab, and what to do about the rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from measuretwice.backends.backend import TOOLS
from measuretwice.backends.machines import (
    changed_files,
    damaged_archive,
    run_builder,
    shortened,
    verification,
)
from measuretwice.backends.virtual import find_kernel, memory_folder
from measuretwice.base import landlock
from measuretwice.base.errors import UserError
from measuretwice.base.files import usable_cpus
from measuretwice.base.paths import KERNEL_BUILDER
from measuretwice.cli.options import AS_JSON, root_folder
from measuretwice.cli.terminal import console
from measuretwice.lab import find_labs, read_lab

# What a lab on the machine's own kernel needs of it, by lab-independent name.
HOST_QDISCS = ("netem", "htb")


@click.command()
@AS_JSON
def doctor(as_json: bool) -> int:
    """Check what this machine can run, and how to fix the rest."""
    root = root_folder()
    facts = examine(root)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        print_facts(facts)
    return 0 if facts["ready"] else 1


def examine(root: Path) -> dict[str, Any]:
    """Return the facts: the machine's tools, the virtual kernel, which brings its own, the machine's
    kernel, and each lab.

    `ready` says whether every lab can run in the virtual kernel, once it is built.
    """
    tools = {name: _program(command[0]) for name, command in TOOLS.items()}
    kernel = _kernel_check()
    problems: list[str] = [*kernel["problems"]]
    try:
        memory: str | None = str(memory_folder())
    except UserError as error:
        memory = None
        problems.append(str(error))
    host = _host([name for name, at in tools.items() if at is None])
    labs = {}
    for name, folder in find_labs(root).items():
        try:
            lab = read_lab(folder)
        except UserError as error:
            labs[name] = {
                "title": None,
                "trials": 0,
                "virtual": False,
                "host": False,
                "problem": str(error),
            }
            problems.append(str(error))
            continue
        labs[name] = {
            "title": lab.file.lab.title,
            "trials": len(lab.trials),
            "virtual": not problems,
            "host": host["ready"],
            "problem": problems[0] if problems else None,
        }
    return {
        "ready": not problems,
        "problems": problems,
        "tools": tools,
        "cpus": len(usable_cpus()),
        "kernel": kernel["facts"],
        "verified": verification("kernel"),
        "memory_folder": memory,
        "landlock": landlock.describe(),
        "host": host,
        "labs": labs,
    }


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def _kernel_check() -> dict[str, Any]:
    """Return the kernel's build script's findings on this machine (its --check prints JSON)."""
    done = run_builder(KERNEL_BUILDER, "--check", quiet=True)
    try:
        facts = json.loads(done.stdout)
        problems = [problem for bad, problem in _kernel_problems(facts) if bad]
        if facts["kernel_ready"]:
            problems += _damage()
        elif facts["comes_with_checkout"] and (damaged := damaged_archive("kernel")):
            problems.append(damaged)
    except (ValueError, KeyError, TypeError) as error:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1] if lines else f"it said nothing of use ({error})"
        return {"facts": None, "problems": [f"{KERNEL_BUILDER.name} --check failed: {reason}"]}
    return {"facts": facts, "problems": problems}


def _damage() -> list[str]:
    """Return a line for a damaged kernel in the cache; it is left where it is."""
    try:
        kernel = find_kernel()
    except UserError as error:
        return [str(error)]
    changed = changed_files(kernel.folder, kernel.sums) if kernel else []
    if kernel is None or not changed:
        return []
    return [
        f"the cached virtual kernel is damaged ({shortened(changed)}): delete {kernel.folder}, and the next ./lab run makes it again"
    ]


def _kernel_problems(facts: dict[str, Any]) -> list[tuple[bool, str]]:
    """Return the obstacles to the virtual kernel, each with whether it stands in the way."""
    to_build = not facts["kernel_ready"] and not facts["comes_with_checkout"]
    missing = " ".join(facts["missing_packages"])
    return [
        (
            not facts["cpu_ok"],
            "the virtual kernel needs an x86-64 processor: use a Linux VM on one",
        ),
        (
            not facts["seccomp"],
            "this machine allows no seccomp filters, which the virtual kernel needs",
        ),
        (to_build and bool(missing), f"to build the kernel, install: {missing} (./lab does it)"),
        (
            to_build and facts["disk_free_mib"] < facts["disk_needed_mib"],
            f"building the kernel needs {facts['disk_needed_mib']} MiB in {facts['cache']}, "
            f"{facts['disk_free_mib']} are free: set MEASURETWICE_CACHE to another folder",
        ),
        (
            not facts["cache_writable"],
            f"{facts['cache']} can't be written to: set MEASURETWICE_CACHE to another folder",
        ),
    ]


def _host(missing_tools: list[str]) -> dict[str, Any]:
    """Return whether the machine's own kernel could run the labs: root, netem, and the tools."""
    root = os.geteuid() == 0
    missing = [kind for kind in HOST_QDISCS if not _has_module(f"sch_{kind}")]
    advice = []
    if not root:
        advice.append("not root")
    if missing:
        advice.append(f"its kernel has no {', '.join(missing)}")
    if missing_tools:
        advice.append(f"{', '.join(missing_tools)} missing (./lab run --on host installs them)")
    return {"ready": not advice, "why_not": advice, "kernel": os.uname().release}


def _has_module(name: str) -> bool:
    if Path("/sys/module", name).exists():
        return True
    modinfo = _program("modinfo")
    if modinfo is None:
        return False
    return subprocess.run([modinfo, name], capture_output=True, check=False).returncode == 0


def _state(kernel: dict[str, Any]) -> str:
    if kernel.get("kernel_ready"):
        return "ready"
    if kernel.get("comes_with_checkout"):
        return "comes with the checkout; the first ./lab run unpacks it"
    return "not built yet: the first ./lab run does it"


def print_facts(facts: dict[str, Any]) -> None:
    out = console(sys.stdout)
    out.print("Virtual kernel, with the programs inside", style="bold")
    kernel = facts["kernel"] or {}
    out.print(
        f"  {_state(kernel)}; {facts['cpus']} CPUs, memory in {facts['memory_folder'] or 'no folder'}"
    )
    if kernel.get("comes_with_checkout"):
        out.print(f"  {facts['verified']}")
    wall = "it confines itself to its own folders"
    if facts["landlock"] == "none":
        out.print(
            f"  {wall}, but this machine's kernel has no Landlock to enforce it (SECURITY.md lists what is left)"
        )
    else:
        out.print(f"  {wall}; Landlock {facts['landlock']}")
    host = facts["host"]
    out.print("This machine's own kernel", style="bold")
    out.print(
        f"  {host['kernel']}: {'can run the labs' if host['ready'] else '; '.join(host['why_not'])}"
    )
    out.print("Labs", style="bold")
    for name, lab in facts["labs"].items():
        out.print(
            f"  {'ok ' if lab['virtual'] else 'NO '} {name}: {lab['title'] or lab['problem']}",
            markup=False,
        )
    for problem in facts["problems"]:
        out.print(f"To do: {problem}", style="bold", markup=False)
