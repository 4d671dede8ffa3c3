"""What the figures that replay recorded runs begin with, and their tables for readers without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.facts import Interval, Number, Numbers, Table
from measuretwice.facts.values import Cell
from measuretwice.runs.result import Result
from measuretwice.site.words.numbers import sig
from measuretwice.site.words.packets import DROPS_AT_HEAD
from measuretwice.site.words.replays import PACKETS, SIGNATURES, packet_sets, replay, script_of
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.traces import NAMES

# A discipline's name, and its colour's in the palette.
DISCIPLINES = {
    "pfifo": ("drop-tail", "fifo"),
    "red": ("RED", "red"),
    "fq_codel": ("fq_codel", "fq-codel"),
}
# A full frame of Ethernet, as tc counts it; and how long CoDel lets packets wait by default (tc-codel(8)).
PACKET_BYTES = 1514
CODEL_TARGET_S = 0.005


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


def edges_figure(words: LabWords, story: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], str]:
    """What the figure of the hosts' edges begins with, and a table of it. The lab's facts have both: `edges`, of each kind
    of flows by the speed of their cables (Mbit/s) how many runs, and drops for each halving after the warm-up and from
    the start; `arrivals`, by that speed when each packet of the first windows came (us)."""
    edges, arrivals = words.facts["edges"], words.facts["arrivals"]
    if not isinstance(edges, Table) or not isinstance(arrivals, Table):
        raise UserError(f"{words.lab.name}: its facts edges and arrivals are to be tables")
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, *cells in edges.rows:
        cable, runs, after, of_all = map(_values, cells)
        groups.setdefault(str(name), []).append(
            {"cable": round(sum(cable)), "runs": round(sum(runs)), "after": after, "all": of_all}
        )
    data = {
        "groups": [{"name": name, "points": points} for name, points in groups.items()],
        "arrivals": [
            {"cable": round(sum(_values(cable))), "windows": [_values(cell) for cell in windows]}
            for cable, *windows in arrivals.rows
        ],
        "steps": list(story),
    }
    return data, f"{edges}\n"


def _values(cell: Cell) -> list[float]:
    """A cell's numbers, as many digits as a figure shows: of an interval the middle and both ends, of words none."""
    match cell:
        case Number(value):
            return [float(f"{value:.4g}")]
        case Interval(middle, low, high):
            return [float(f"{value:.6g}") for value in (middle, low, high)]
        case Numbers(values):
            return list(values)
    return []
