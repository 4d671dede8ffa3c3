"""What the figures that replay recorded runs begin with, and their tables for readers without scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.measure.raw import text_of
from measuretwice.parse.tcpdump import parse_tcpdump
from measuretwice.runs.archive import raw_folder
from measuretwice.runs.result import Result
from measuretwice.site.words.numbers import sig
from measuretwice.site.words.packets import DROPS_AT_HEAD
from measuretwice.site.words.replays import PACKETS, SIGNATURES, packet_sets, replay, script_of
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.traces import NAMES
from measuretwice.stats.intervals import mean_interval

# A discipline's name, and its colour's in the palette.
DISCIPLINES = {
    "pfifo": ("drop-tail", "fifo"),
    "red": ("RED", "red"),
    "fq_codel": ("fq_codel", "fq-codel"),
}
# A full frame of Ethernet, as tc counts it; and how long CoDel lets packets wait by default (tc-codel(8)).
PACKET_BYTES = 1514
CODEL_TARGET_S = 0.005
# A flow begins with ten segments (RFC 6928), and in slow start each window is twice the one before.
WINDOWS = (10, 20, 40)


def packets_figure(
    words: LabWords, steps: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], str]:
    """What the figure of packets begins with, and a table of its runs for those without scripts."""
    sets = packet_sets(words)
    held = [run for name in sets for run in replay(words, name)["runs"]]
    if not held:
        raise UserError(f"{words.lab.name}: no set {PACKETS}... is recorded")
    results = [result for name in sets for result in words.results_of(name)]
    algorithms = list(dict.fromkeys(run["algorithm"] for run in held))
    rate, rtt = (results[0].params[key] for key in ("rate_mbit", "rtt_ms"))
    kinds = {str(result.params["discipline"]): result for result in results}
    figure = {
        "algorithms": [
            {
                "id": each,
                "name": NAMES.get(each, each),
                "script": script_of(words, f"{PACKETS}{each}"),
            }
            for each in algorithms
        ],
        "disciplines": [_discipline(kinds[kind]) for kind in sorted(kinds, key=_place)],
        "rate_mbit": rate,
        "rtt_ms": rtt,
        # One scale for all runs: what can be compared by eye.
        "most": {
            "time": max(sum(run["time"]) for run in held),
            **{
                key: max(max(accumulate(run[key])) for run in held)
                for key in ("waiting", "cwnd", "rtt")
            },
        },
        "steps": list(steps),
    }
    return figure, _packets_table(results)


def _place(kind: str) -> int:
    return [*DISCIPLINES, kind].index(kind)


def _discipline(result: Result) -> dict[str, Any]:
    """A discipline's name, and the marks that its own settings put on the queue (packets)."""
    kind, full = str(result.params["discipline"]), PACKET_BYTES
    marks: list[tuple[str, float]] = []
    if kind == "pfifo":
        marks = [("room", _number(result, "fifo_packets"))]
    elif kind == "red":
        marks = [
            (name, _number(result, f"red_{key}_bytes") / full)
            for name, key in (("min", "min"), ("max", "max"), ("room", "limit"))
        ]
    elif kind in DROPS_AT_HEAD:
        marks = [("target", _number(result, "rate_mbit") * 1e6 * CODEL_TARGET_S / 8 / full)]
    name, colour = DISCIPLINES.get(kind, (kind, "queue"))
    return {"id": kind, "name": name, "colour": colour, "marks": marks}


def _number(result: Result, name: str) -> float:
    return float(result.params[name] or 0)


def _packets_table(results: Sequence[Result]) -> str:
    heads = [
        "algorithm", "queue", "goodput (Mbit/s)", "packets in the queue, mean", "most", "drops",
        "flow's RTT, mean (ms)", "ping's RTT, mean (ms)",
    ]  # fmt: skip
    lines = [_line(heads), "|---|---|" + "---:|" * (len(heads) - 2)]
    for result in results:
        algorithm, kind = (str(result.params[k]) for k in ("congestion_control", "discipline"))
        goodput, mean, most, drops, rtt, ping = (
            result.value(name) or 0
            for name in (
                "goodput_bps", "queue_mean_packets", "queue_max_bytes", "queue_drops", "rtt_mean_ms",
                "busy_ping_mean_ms",
            )
        )  # fmt: skip
        cells = [
            NAMES.get(algorithm, algorithm),
            DISCIPLINES.get(kind, (kind,))[0],
            sig(goodput / 1e6),
        ]
        cells += [sig(mean), f"{most / PACKET_BYTES:.0f}", f"{drops:.0f}", sig(rtt), sig(ping)]
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def traces_figure(words: LabWords, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the figure of all algorithms on one clock begins with."""
    runs = replay(words, SIGNATURES[0])["runs"]
    return {
        "script": script_of(words, SIGNATURES[0]),
        "algorithms": [{"id": run["algorithm"], "name": run["name"]} for run in runs],
        "most": {
            "time": max(sum(run["time"]) for run in runs),
            **{
                key: max(max(accumulate(run[key])) for run in runs)
                for key in ("cwnd", "rtt", "queue")
            },
        },
        "steps": list(steps),
    }


def arrivals_of(words: LabWords, names: Sequence[str]) -> list[dict[str, Any]]:
    """By the speed of the hosts' cables, when each packet of the first windows came, as its ACK tells: in
    microseconds from the window's first."""
    found = []
    for result in (words.results_of(name)[0] for name in names):
        with raw_folder(result.place) as raw:
            path = next(iter(raw.glob("*/acks.txt")), None)
            if path is None:
                raise UserError(f"{result.place}: there is no capture of ACKs, acks.txt")
            packets = parse_tcpdump(text_of(path), path.name)
        data = Counter(packet.to_port for packet in packets).most_common(1)[0][0]
        times = [
            packet.time_s
            for packet in packets
            if packet.to_port == data and "S" not in packet.flags and not packet.data_bytes
        ]
        # The first acknowledges iperf3's greeting; then an ACK is a segment's, and slow start doubles.
        windows, begin = [], 1
        for size in WINDOWS:
            window = times[begin : begin + size]
            windows.append([round(1e6 * (when - window[0])) for when in window])
            begin += size
        found.append({"cable": result.params["cable_mbit"], "windows": windows})
    return found


def edges_figure(
    groups: Mapping[str, Sequence[Sequence[Result]]],
    arrivals: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], str]:
    """Drops for each halving by the speed of the hosts' cables, and a table of it. `groups` are runs by
    what they are of: for each speed those that were made alike."""
    shown: list[dict[str, Any]] = [
        {"name": name, "points": [_edge_point(alike) for alike in of_name]}
        for name, of_name in groups.items()
    ]
    lines = [
        "| flows | cables (Mbit/s) | runs | after the warm-up | from the start |",
        "|---|---:|---:|---:|---:|",
    ]
    for group in shown:
        for point in group["points"]:
            speed = f"{point['cable']}" if point["cable"] else "no speed"
            cells = [_with_interval(point[key]) for key in ("after", "all")]
            lines.append(_line([group["name"], speed, point["runs"], *cells]))
    data = {"groups": shown, "arrivals": list(arrivals), "steps": list(steps)}
    return data, "\n".join(lines) + "\n"


def _edge_point(alike: Sequence[Result]) -> dict[str, Any]:
    point: dict[str, Any] = {"cable": alike[0].params["cable_mbit"], "runs": len(alike)}
    for key, name in (("after", "drops_per_halving"), ("all", "all_drops_per_halving")):
        values = [value for run in alike if (value := run.value(name)) is not None]
        if len(values) > 1:
            point[key] = [float(f"{value:.6g}") for value in mean_interval(values)]
        else:
            point[key] = [float(f"{value:.4g}") for value in values]
    return point


def _with_interval(values: Sequence[float]) -> str:
    mean, *interval = values
    return sig(mean) + (f" ({sig(interval[0])} to {sig(interval[1])})" if interval else "")
