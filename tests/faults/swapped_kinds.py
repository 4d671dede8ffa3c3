"""Files of another run, put in place of one node's: of another seed, or of other settings. Every kind of file that a run has.

Each is one file, of a node that is drawn. A swap that changes no measured value by a twentieth needn't be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from lab_nodes import logs
from script_kinds import BASES

from faults import Fault, Kind
from measuretwice.lab import Value

# What says that a file is of another run; of other settings, also what says which setting.
FOREIGN = frozenset(
    {
        "two-runs", "samples", "wrong-socket", "refused", "missing-flows", "mixed-runs", "mislabelled-row", "ping-elsewhere",
        "lost-between",
    }
)  # fmt: skip
SETTING = FOREIGN | {
    "configuration", "round-trip-time", "rtt-doubling", "link-rate", "path", "bandwidth", "loss-ratio", "loss-percent",
    "retransmissions", "queueing", "size-suffix", "netem-limit", "length", "duration",
}  # fmt: skip
COUNTED = "nstat.after.json link.after.json qdisc.after.json"
SET_UP = "qdisc.before.json state.txt sysctl.txt"
FILES = {
    "C2": f"iperf3.json iperf3-server.json ss.txt tcpdump.txt {COUNTED}",
    "M7": f"iperf3.json iperf3-server.json ss.txt ss-last.txt tcpdump.txt ping.txt {COUNTED}",
    "B3": f"iperf3.json iperf3-server.json ss.txt queue.txt ping.txt {COUNTED}",
    "V2": f"iperf3.json ss.txt queue.txt ping.txt table.txt {COUNTED}",
    "Q1": f"iperf3.json ss.txt queue.txt ping.txt ping-busy.txt rates.txt average.txt {COUNTED}",
    "Q21": f"queue.txt ping-busy.txt {COUNTED}",
    "S4": f"iperf3-1.json ss.txt queue.txt events.txt ping.txt summary.txt groups.txt {COUNTED}",
}
OTHERS: Mapping[str, Mapping[str, Value]] = {
    "C2": {"rate_mbit": 14, "rtt_ms": 40},
    "M7": {"rtt_ms": 14, "loss_ratio": 0.012},
    "B3": {"rate_mbit": 30, "buffer_bytes": 120000},
    "V2": {"rate_mbit": 30, "wire_rtt_ms": 70},
    "Q1": {"rate_mbit": 25, "rtt_ms": 30},
    "S4": {"rate_mbit": 14, "rtt_ms": 45},
}


def swapped(name: str, drawn: float) -> Callable[[Path, Path], str]:
    """Return what puts a twin's file of that name in place of one node's, if they differ, and returns that node's name."""

    def damage(run: Path, twin: Path) -> str:
        of_twin = {path: twin / "raw" / path.parent.name / path.name for path in logs(run, name)}
        differing = [
            path
            for path, other in of_twin.items()
            if other.exists() and path.read_bytes() != other.read_bytes()
        ]
        if not differing:
            return ""
        path = differing[int(drawn * len(differing))]
        path.write_bytes(of_twin[path].read_bytes())
        return path.parent.name

    return damage


def _pair(base: str, with_settings: Mapping[str, Value], causes: frozenset[str]) -> Kind:
    lab_name, trial, changes = BASES[base]
    fault = Fault(twin=True, twin_with=with_settings)
    which = "of other settings" if with_settings else "of another seed"
    return Kind(
        f"{which} {base}", causes, lambda lab, params, chance: fault, (lab_name,), settings=(trial, changes),
    )  # fmt: skip


# A run and its twin each, with the names of the files that are taken over one by one.
PAIRS = [(_pair(base, {}, FOREIGN), names.split()) for base, names in FILES.items()]
PAIRS += [
    (_pair(base, others, SETTING), f"{FILES[base]} {SET_UP}".split())
    for base, others in OTHERS.items()
]
