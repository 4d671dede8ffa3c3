"""Halvings from the kernel's own events, a line whenever a connection's congestion state changes.

A connection that leaves the states Open and Disorder for CWR, Recovery or Loss takes a smaller window, once.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from measuretwice.measure.raw import name_of, rows_of
from measuretwice.parse import ParseError

# include/uapi/linux/tcp.h: TCP_CA_Open and TCP_CA_Disorder; what comes after has a smaller window.
LAST_NORMAL_STATE = 1
DAY_S = 86_400.0


def _event(line: str) -> tuple[float, int, int]:
    time_text, port_text, state_text = line.split()
    return float(time_text), int(port_text), int(state_text)


def read_halvings(
    events_file: str, raw: Path, start_s: float, end_s: float
) -> tuple[dict[str, dict[int, int]], int]:
    """Return each port's halvings between two Unix times, by node; nothing of a node without events. And how many
    there were before, of all.

    ParseError where events were lost. The first that a node's kernel notes is what gives them their
    time of day: where the buffer was too small and it is gone, all have the time since boot.
    """
    by_node: dict[str, dict[int, int]] = {}
    earlier = 0
    for path in sorted(raw.glob(f"*/{events_file}")):
        counts: dict[int, int] = defaultdict(int)
        states: dict[int, int] = {}
        events = rows_of(path, _event, "time, port and state")
        for line, (time_s, port, state) in enumerate(events, start=1):
            if time_s < start_s - DAY_S:
                raise ParseError(
                    name_of(path),
                    f"line {line}",
                    "the first events were lost, and with them the time of day: there was no room "
                    "for all; give them more with --set trace_bytes=...",
                )
            before = states.get(port, 0)
            if before <= LAST_NORMAL_STATE < state and time_s <= end_s:
                if time_s < start_s:
                    earlier += 1
                else:
                    counts[port] += 1
            states[port] = state
        by_node[path.parent.name] = dict(counts)
    return by_node, earlier
