"""The script that runs one plan: builds the topology, runs the labs' own node scripts.

The same text runs in the virtual kernel and, as root, on a machine's own kernel. It stands in
the run's folder as experiment.sh: what happened can be read, and done again by hand.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Literal

from measuretwice.lab import Lab, Plan
from measuretwice.lab.schema.network import Run, Step, Topology

# Part of every result: tcp_mem and with it TCP's behaviour under pressure follow from it.
GUEST_MEMORY_MB = 512
# A program that waits for a connection's data gets them in portions of this many microseconds; to TCP
# it reads at once (scripts/kernel/patches/0006). Like the memory, part of every result, and where a lab
# has no parameter for it, not of a plan: whoever changes it raises RECIPE in scripts/kernel/build.sh, by
# which plans name the kernel.
READER_INTERVAL_US = 10_000
# All runs start at the same moment, 2023-11-14 22:13:20 UTC, so that nothing depends on today.
START_NS = 1_700_000_000 * 10**9
# Where the run's folder and the checkout appear inside (guest-init.c), and two of its programs are.
INSIDE_RUN = "/run/measuretwice"
INSIDE_ROOT = "/run/lab"
INSIDE_SAMPLER = "/usr/bin/ss-sampler"
INSIDE_PYTHON = "/usr/bin/python3"

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
# What each node is asked when all has been measured, by a script of which no plan has a digest; it writes state.txt.
STATE_SCRIPT = "scripts/after/state.sh"
# In a run's folder, while it is measured: the part of a checkout that own node scripts need.
EDITED = "edited"

# Lines of a script that a shell reads and a person doesn't by accident.
_REMARK = "# Those that ./lab list leaves out, as they may be what a case is about:"
_PACKED = re.compile(
    rf"""^(?:{re.escape(_REMARK)}\n)?printf -v packed %b '((?:\\x[0-9a-f]{{2}})*)' && eval "\$packed"$""",
    re.MULTILINE,
)
_EXPORT = re.compile(r"^export ([A-Z][A-Z0-9_]*)=.*$", re.MULTILINE)

Action = Step | Literal["snapshot before", "end_background", "snapshot after", "state"]


def actions(run: Run) -> Iterator[Action]:
    """Yield what a trial does, in order, wherever it runs: the lab's steps, and what comes between."""
    yield from run.prepare
    yield "snapshot before"
    yield from run.measure
    yield "end_background"
    yield from run.conclude
    yield "snapshot after"
    yield "state"


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


def environment(plan: Plan, *, as_written: bool = False) -> dict[str, str]:
    """Return the plan's parameters as the environment variables that node scripts read.

    Numbers in plain decimals: shells and tc read no exponents. They have 20 places, since a trial's bytes hang on each
    character that its programs are given; or, for people, as many as were written.
    """

    def decimal(value: float) -> str:
        if as_written:
            return f"{Decimal(repr(value)):f}".removesuffix(".0")
        return f"{value:.20f}".rstrip("0").rstrip(".")

    return {
        name.upper(): decimal(value) if isinstance(value, float) else str(value)
        for name, value in plan.params.items()
    }


def packed(lines: Sequence[str]) -> str:
    """Return one line of a script for these, which are readable no more.

    It starts no process: one more would move all later ones' ids, and with them what iperf3 draws.
    """
    escapes = "".join(f"\\x{byte:02x}" for byte in "\n".join(lines).encode())
    return f"""printf -v packed %b '{escapes}' && eval "$packed\""""


def hide_exports(lab: Lab, script: str) -> str:
    """Return a trial's script with the settings packed that no list has; it does the same."""
    hidden = [match[0] for match in _EXPORT.finditer(script) if _is_unlisted(lab, match[1])]
    if not hidden:
        return script
    lines = [line for line in script.split("\n") if line not in hidden]
    place = script[: script.index(hidden[0])].count("\n")
    return "\n".join([*lines[:place], _REMARK, packed(hidden), *lines[place:]])


def plain_exports(script: str) -> str:
    """Return a trial's script with each setting in a line of its own."""

    def unpacked(match: re.Match[str]) -> str:
        return bytes.fromhex(match[1].replace("\\x", "")).decode("utf-8", "replace")

    return _PACKED.sub(unpacked, script)


def _is_unlisted(lab: Lab, variable: str) -> bool:
    return lab.is_unlisted(variable.lower())


@dataclass(frozen=True)
class Emulation:
    """The lines of a script that have an emulator stand in for a link: where it begins, once there is a network, and at its end."""

    enter: list[str]
    start: list[str]
    stop: list[str]


def preamble(
    lab: Lab,
    plan: Plan,
    root: Path,
    out: str,
    sampler: str | None,
    prefix: str,
    emulation: Emulation | None = None,
    *,
    listed_only: bool = False,
) -> list[str]:
    """Return the lines that a trial and a live lab begin with: settings and topology.

    With `listed_only` it is for people at a live lab's terminals: settings that lists have, in numbers as they were written.
    """
    lines = [
        "set -euo pipefail",
        *(emulation.enter if emulation else ()),
        f"root={shlex.quote(str(root))}",
        f"out={shlex.quote(out)}",
        f'mkdir -p "$out"/{{{",".join(lab.file.topology.node_names)},}}',
        "",
        "# Settings of this trial",
        *(
            f"export {name}={shlex.quote(value)}"
            for name, value in environment(plan, as_written=listed_only).items()
            if not (listed_only and _is_unlisted(lab, name))
        ),
    ]
    if sampler:
        # In the virtual kernel, whose settings are all ours: TCP's memory limits follow from the
        # guest's free memory, which some machines vary by a percent (no fixed addresses), and a
        # longer path on its command line by some bytes. The nodes' namespaces inherit them.
        settings = kernel_settings(memory_mb(lab, plan), many_hosts=bool(lab.file.run.memory))
        lines += [
            f"export SS_SAMPLER={shlex.quote(sampler)}",
            *(f"echo {value!r} >/proc/sys/net/{name}" for name, value in settings.items()),
        ]
    built = build_commands(lab.file.topology, prefix, emulated=emulation is not None)
    return [*lines, "", "# Topology", *built, "", *(emulation.start if emulation else ())]


def edited_folder(lab: Lab) -> str:
    """Return where in a run's folder a student's own node scripts are laid out, as in a checkout."""
    return f"{EDITED}/labs/{lab.folder.name}"


def experiment_script(
    lab: Lab,
    plan: Plan,
    root: Path,
    out: str,
    sampler: str | None,
    prefix: str = "",
    emulation: Emulation | None = None,
) -> str:
    """Return the bash script of one trial; raw files go to `out`/<node>/ (a path inside).

    `sampler` is the path of ss-sampler, which only the virtual kernel brings; else None. With an `emulation` a link is left
    to an emulator.
    """
    nodes = lab.file.topology.node_names
    folder = f'"$root"/{shlex.quote("/".join(lab.folder.parts[-2:]))}'
    if plan.edited:
        folder = f'"${{out%/*}}"/{shlex.quote(edited_folder(lab))}'
    edges = edge_commands(lab, plan)
    lines = [
        "#!/bin/bash",
        f"# {lab.name}, trial {plan.trial}, seed {plan.seed}: made by ./lab, see plan.json beside this file.",
        *preamble(lab, plan, root, out, sampler, prefix, emulation),
        *(["# Edges", *edges, ""] if edges else []),
        *_STEP_FUNCTIONS.splitlines(),
        f"lab={folder}",
        f"declare -A script=({' '.join(f'[{name}]={lab.script_name(name)}' for name in nodes)})",
        f"prefix={shlex.quote(prefix)}",
        "",
        *(_shell_line(action, nodes) for action in actions(lab.file.run)),
        *(emulation.stop if emulation else ()),
        ': >"$out/finished"',
        "",
    ]
    return "\n".join(lines)


def guest_script(lab: Lab, plan: Plan) -> str:
    """Return a trial's script as a guest runs it, in the virtual kernel and in the browser's machine alike."""
    return experiment_script(lab, plan, Path(INSIDE_ROOT), f"{INSIDE_RUN}/raw", INSIDE_SAMPLER)


def _shell_line(action: Action, nodes: Iterable[str]) -> str:
    if action == "state":
        return " ".join(["state", *(f'{name}="${{prefix}}{name}"' for name in nodes)])
    if isinstance(action, str):
        return action if action == "end_background" else f"{action} {' '.join(nodes)}"
    if action.background:
        return f"background {action.node} {action.phase} {'stop' if action.stop else 'wait'}"
    return f"step {action.node} {action.phase}"


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
# What is asked when all has been measured can't fail a run.
state() {{
  bash "$root/{STATE_SCRIPT}" "$out" "$@" || true
}}
pids=() names=() ends=()
exec {{clock}}<> <(:)
# In a kernel's first second the clock that ping paces itself by reads 0 s, which iputils
# takes for 'not yet started': it would send without waiting.
read -rt {SETTLE_SECONDS} -u "$clock" || true
"""


@dataclass(frozen=True)
class Interface:
    """One end of a link. MAC addresses are fixed: they are part of what makes runs repeat."""

    node: str
    name: str
    address: IPv4Interface
    mac: str
    peer_mac: str
    peer_address: IPv4Interface


def interfaces(topology: Topology) -> list[Interface]:
    """Return both ends of every link, named eth0, eth1 ... on each node in order of links."""
    used: dict[str, int] = {}
    ends: list[Interface] = []
    for number, link in enumerate(topology.links, start=1):
        macs = [f"02:00:00:00:{number:02x}:{end:02x}" for end in (1, 2)]
        addresses = [IPv4Interface(link.a.address), IPv4Interface(link.b.address)]
        for end, (node, other) in enumerate(((link.a.node, 1), (link.b.node, 0))):
            index = used.get(node, 0)
            used[node] = index + 1
            ends.append(
                Interface(
                    node, f"eth{index}", addresses[end], macs[end], macs[other], addresses[other]
                )
            )
    return ends


def build_commands(topology: Topology, prefix: str = "", *, emulated: bool = False) -> list[str]:
    """Return shell lines that make the topology. `prefix` goes before each namespace's name.

    Neighbours are static: address resolution would add packets whose time varies. Where a link is `emulated`, each of its two
    nodes gets a cable of its own, whose other end, to-NODE, stays where the script runs.
    """
    ends = interfaces(topology)
    links = [f"netns add {prefix}{node.name}" for node in topology.nodes]
    split = topology.emulated.link.split("/") if emulated and topology.emulated else []
    for a, b in zip(ends[::2], ends[1::2], strict=True):
        if sorted((a.node, b.node)) == sorted(split):
            for end in (a, b):
                links += [
                    f"link add {end.name} netns {prefix}{end.node} address {end.mac} type veth peer name to-{end.node}",
                    f"link set to-{end.node} up",
                ]
            continue
        links.append(
            f"link add {a.name} netns {prefix}{a.node} address {a.mac} type veth "
            f"peer name {b.name} netns {prefix}{b.node} address {b.mac}"
        )
    lines = [f"# {line}".rstrip() for line in topology.art.strip("\n").splitlines()]
    lines += _batch("ip -batch -", links)
    for node in topology.nodes:
        inside = ["link set lo up"]
        for end in (end for end in ends if end.node == node.name):
            inside += [
                f"addr add {end.address} dev {end.name}",
                f"link set {end.name} up",
                f"neigh add {end.peer_address.ip} lladdr {end.peer_mac} dev {end.name} nud permanent",
            ]
        inside += [f"route add {route}" for route in node.routes]
        lines += _batch(f"ip -n {prefix}{node.name} -batch -", inside)
        if node.forward:
            lines.append(f"ip netns exec {prefix}{node.name} sysctl -qw net.ipv4.ip_forward=1")
    return lines


def edge_commands(lab: Lab, plan: Plan) -> list[str]:
    """Return shell lines that give the hosts' cables their speed, and the hosts their processing, where the plan
    wants it.

    They are for the virtual kernel, whose cables can have both: a cable's two ends have one speed,
    what ethtool calls rx-usecs is the most that a packet waits for its host, and rx-frames how many of them end
    that wait.
    """
    edges = lab.file.topology.edges
    if not edges:
        return []
    speed_mbit, processing_us, batch_packets = (
        int(plan.params.get(name, 0)) for name in (edges.speed, edges.processing, edges.batch or "")
    )
    lines = []
    for end in interfaces(lab.file.topology):
        if end.node not in edges.hosts:
            continue
        ethtool = f"ip netns exec {end.node} ethtool"
        if speed_mbit:
            lines.append(f"{ethtool} -s {end.name} speed {speed_mbit} duplex full autoneg off")
        if processing_us:
            frames = f" rx-frames {batch_packets}" if batch_packets else ""
            lines.append(f"{ethtool} -C {end.name} rx-usecs {processing_us}{frames}")
    return lines


def _batch(command: str, lines: list[str]) -> list[str]:
    return [f"{command} <<'END'", *lines, "END"]
