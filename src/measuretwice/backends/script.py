"""The script that runs one plan: builds the topology, runs the labs' own node scripts.

The same text runs in the virtual kernel and, as root, on a machine's own kernel. It stands in
the run's folder as experiment.sh: what happened can be read, and done again by hand.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from measuretwice.backends import namespaces as topology
from measuretwice.backends.uml import (
    GUEST_MEMORY_MB,
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    READER_INTERVAL_US,
)
from measuretwice.lab import Lab, Plan, Step

READY_SECONDS = 30
SETTLE_SECONDS = 2
# What Linux chooses by itself for 512 MB, or nearly: tcp_mem in pages of 4 KiB, the others in bytes.
GUEST_TCP_LIMITS = {
    "tcp_mem": "6144 8192 12288",
    "tcp_rmem": "4096 131072 4044608",
    "tcp_wmem": "4096 16384 4044608",
}
# What large and live runs need: the backlog between a driver and IP must hold a burst of all senders.
LARGE_BACKLOG_PACKETS = 100_000
PAGE_BYTES = 4096
# In a run's folder, while it is measured: the part of a checkout that own node scripts need.
EDITED = "edited"


def reader_interval_us(lab: Lab, plan: Plan) -> int:
    """Return how often a receiving program gets its data in the virtual kernel, in microseconds."""
    name = lab.file.run.reader_interval
    return round(1000 * float(plan.params[name])) if name else READER_INTERVAL_US


def memory_mb(lab: Lab, plan: Plan) -> int:
    """Return the virtual kernel's memory for a plan, in MB of 2^20 bytes."""
    name = lab.file.run.memory
    return int(plan.params[name]) // 2**20 if name else GUEST_MEMORY_MB


def kernel_settings(memory: int, *, many_hosts: bool = False) -> dict[str, str]:
    """Return what is set in the virtual kernel's /proc/sys/net for that much memory (MB), by file.

    With `many_hosts` TCP may have most of the memory, where Linux would leave it a sixteenth:
    tcp_mem counts the sockets of all namespaces together, and beyond its first number no send
    buffer grows any more (tcp_should_expand_sndbuf), a limit that hosts of their own don't share.
    """
    limits = {f"ipv4/{name}": value for name, value in GUEST_TCP_LIMITS.items()}
    if not many_hosts:
        return limits
    pages = memory * 2**20 // PAGE_BYTES
    return limits | {
        "ipv4/tcp_mem": f"{pages * 5 // 8} {pages * 3 // 4} {pages * 7 // 8}",
        "core/netdev_max_backlog": str(LARGE_BACKLOG_PACKETS),
    }


def environment(plan: Plan) -> dict[str, str]:
    """Return the plan's parameters as the environment variables that node scripts read."""
    return {name.upper(): _number(value) for name, value in plan.params.items()}


def _number(value: float | int | str) -> str:
    """A number in plain decimals: shells and tc read no exponents."""
    if isinstance(value, float):
        return f"{value:.20f}".rstrip("0").rstrip(".")
    return str(value)


def beginning(
    lab: Lab, plan: Plan, root: Path, out: str, sampler: str | None, prefix: str
) -> list[str]:
    """Return the lines that a trial and a live lab begin with: settings and topology."""
    nodes = [node.name for node in lab.file.topology.nodes]
    lines = [
        "set -euo pipefail",
        f"root={shlex.quote(str(root))}",
        f"out={shlex.quote(out)}",
        f'mkdir -p "$out"/{{{",".join(nodes)},}}',
        "",
        "# Settings of this trial",
        *(f"export {name}={shlex.quote(value)}" for name, value in environment(plan).items()),
    ]
    if sampler:
        # In the virtual kernel, whose settings are all ours: TCP's memory limits follow from the
        # guest's free memory, which some machines vary by a percent (no fixed addresses), and a
        # longer path on its command line by some bytes. The nodes' namespaces inherit them.
        lines += [
            f"export SS_SAMPLER={shlex.quote(sampler)}",
            *(
                f"echo {value!r} >/proc/sys/net/{name}"
                for name, value in kernel_settings(
                    memory_mb(lab, plan), many_hosts=bool(lab.file.run.memory)
                ).items()
            ),
        ]
    return [*lines, "", "# Topology", *topology.build_commands(lab.file.topology, prefix), ""]


def _edges(lab: Lab, plan: Plan) -> list[str]:
    """The lines that make cables and hosts as real ones are, where the plan wants it."""
    edges = lab.file.topology.edges
    if not edges:
        return []
    speed_mbit, processing_us = (int(plan.params[name]) for name in (edges.speed, edges.processing))
    commands = topology.edge_commands(edges, lab.file.topology, speed_mbit, processing_us)
    return ["# Edges", *commands, ""] if commands else []


def edited_folder(lab: Lab) -> str:
    """Where in a run's folder the student's own node scripts are laid out, as in a checkout."""
    return f"{EDITED}/labs/{lab.folder.name}"


def _lab_folder(lab: Lab, plan: Plan) -> str:
    """The lab's folder as the script has it: the checkout's, or the run's own."""
    if plan.edited:
        return f'"${{out%/*}}"/{shlex.quote(edited_folder(lab))}'
    return f'"$root"/{shlex.quote("/".join(lab.folder.parts[-2:]))}'


def experiment_script(
    lab: Lab, plan: Plan, root: Path, out: str, sampler: str | None, prefix: str = ""
) -> str:
    """Return the bash script of one trial; raw files go to `out`/<node>/ (a path inside).

    `sampler` is the path of ss-sampler, which only the virtual kernel brings; else None.
    """
    nodes = [node.name for node in lab.file.topology.nodes]
    lines = [
        "#!/bin/bash",
        f"# {lab.name}, trial {plan.trial}, seed {plan.seed}: made by ./lab, see plan.json beside this file.",
        *beginning(lab, plan, root, out, sampler, prefix),
        *_edges(lab, plan),
        *_STEP_FUNCTIONS.splitlines(),
        f"lab={_lab_folder(lab, plan)}",
        f"declare -A script=({' '.join(f'[{name}]={lab.script_name(name)}' for name in nodes)})",
        f"prefix={shlex.quote(prefix)}",
        "",
        *_steps(lab.file.run.prepare),
        f"snapshot before {' '.join(nodes)}",
        *_steps(lab.file.run.measure),
        "end_background",
        *_steps(lab.file.run.conclude),
        f"snapshot after {' '.join(nodes)}",
        ': >"$out/finished"',
        "",
    ]
    return "\n".join(lines)


def guest_script(lab: Lab, plan: Plan) -> str:
    """Return a trial's script as a guest runs it, in the virtual kernel and in the browser's machine alike."""
    return experiment_script(lab, plan, Path(INSIDE_ROOT), f"{INSIDE_RUN}/raw", INSIDE_SAMPLER)


def _steps(steps: list[Step]) -> list[str]:
    return [
        f"background {step.node} {step.phase} {'stop' if step.stop else 'wait'}"
        if step.background
        else f"step {step.node} {step.phase}"
        for step in steps
    ]


_STEP_FUNCTIONS = f"""\
# on NODE PHASE: become one phase of a node's script, on that node.
on() {{
  export OUT="$out/$1" READY_FILE="$out/$1/$2.ready"
  exec ip netns exec "$prefix$1" bash "$lab/nodes/${{script[$1]}}.sh" "$2" >"$out/$1/$2.log" 2>&1
}}
failed() {{
  printf '%s %s\\n' "$1" "$2" >"$out/failed"
  exit 1
}}
step() {{
  (on "$1" "$2") || failed "$1" "$2"
}}
# background NODE PHASE wait|stop: the same, left running once it has said that it is ready;
# when all is measured it is waited for, or told to stop.
background() {{
  on "$1" "$2" &
  pids+=($!) names+=("$1 $2") ends+=("$3")
  local tries=$(({READY_SECONDS} * 100))
  until [[ -e $out/$1/$2.ready ]]; do
    # It may have become ready, and ended, since it was asked.
    kill -0 "${{pids[-1]}}" 2>/dev/null || [[ -e $out/$1/$2.ready ]] || failed "$1" "$2"
    ((tries-- > 0)) || failed "$1" "$2"
    read -rt 0.01 -u "$clock" || true
  done
}}
# First those that end by themselves: who is told to stop may be serving them.
end_background() {{
  local i how
  for how in wait stop; do
    for i in "${{!pids[@]}}"; do
      [[ ${{ends[i]}} == "$how" ]] || continue
      if [[ $how == stop ]]; then
        kill -TERM "${{pids[i]}}" 2>/dev/null || true
      fi
      # shellcheck disable=SC2086 # a name is two words: node and phase
      wait "${{pids[i]}}" || failed ${{names[i]}}
    done
  done
}}
snapshot() {{
  local when=$1 node
  shift
  for node in "$@"; do
    ip netns exec "$prefix$node" bash "$root/scripts/snapshot.sh" "$when" "$out/$node" \\
      >"$out/$node/snapshot.log" 2>&1 || failed "$node" snapshot
  done
}}
pids=() names=() ends=()
exec {{clock}}<> <(:)
# In a kernel's first second the clock that ping paces itself by reads 0 s, which iputils
# takes for 'not yet started': it would send without waiting.
read -rt {SETTLE_SECONDS} -u "$clock" || true
"""
