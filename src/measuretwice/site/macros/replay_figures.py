"""Figures that replay recorded runs: their data as scripts, what they begin with, and tables for readers without scripts.

A page from a file may fetch no data, but scripts: so each set is one, `assets/data/NN-<lab>/<set>.js`, which the figure
fetches when it is asked for. They are made once and kept in build/. Numbers are whole, each but the first as what it has
more than the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.paths import PACKAGE
from measuretwice.facts import Interval, Number, Numbers, Table
from measuretwice.facts.values import Cell
from measuretwice.runs.recorded import SET_FILE
from measuretwice.runs.result import Result
from measuretwice.site.build_cache import digest_of, made_once
from measuretwice.site.macros import LabContext, replay_data
from measuretwice.site.macros.blocks import markdown_table, sig
from measuretwice.site.macros.replay_data import (
    ALGORITHMS,
    DROPS_AT_HEAD,
    packets_data,
    traces_data,
)

# Sets by name: of flows before queues that are looked at every few milliseconds, and of signatures.
PACKETS, SIGNATURES = "packets-", ("signatures", "signature-of-highspeed")
# What a script follows from, besides recorded runs.
CODE = (Path(__file__), Path(replay_data.__file__), PACKAGE / "measure/connections.py")
# A discipline's name, and its colour's in the palette.
DISCIPLINES = {
    "pfifo": ("drop-tail", "fifo"),
    "red": ("RED", "red"),
    "fq_codel": ("fq_codel", "fq-codel"),
}
# A full frame of Ethernet, as tc counts it; and how long CoDel lets packets wait by default (tc-codel(8)).
PACKET_BYTES = 1514
CODEL_TARGET_S = 0.005


MakeData = Callable[[LabContext, Sequence[Result]], dict[str, Any]]


def replays(context: LabContext) -> dict[str, Path]:
    """Return the scripts with what a lab's pages replay, by name."""
    scripts = {name: _script(context, name, [name], packets_data) for name in packet_sets(context)}
    recorded = [name for name in SIGNATURES if context.sets.is_recorded(name)]
    if recorded:
        scripts[SIGNATURES[0]] = _script(context, SIGNATURES[0], recorded, traces_data)
    return scripts


def replay(context: LabContext, name: str) -> dict[str, Any]:
    """Return what the script of that name holds; UserError where its set isn't recorded."""
    scripts = replays(context)
    if name not in scripts:
        raise UserError(f"{context.lab.name}: there is no recorded set {name!r} to be replayed")
    text = scripts[name].read_text(encoding="utf-8")
    return dict(json.loads(text[text.index("=", text.index("]")) + 1 : -2]))


def script_address(context: LabContext, name: str) -> str:
    """Return a script's address, from the site's assets on."""
    return f"data/{context.lab.folder.name}/{name}.js"


def packet_sets(context: LabContext) -> list[str]:
    """Return the recorded sets that can be replayed packet by packet, in the lab's order."""
    names = [recording.id for recording in context.lab.file.recordings]
    return [name for name in names if name.startswith(PACKETS) and context.sets.is_recorded(name)]


def _script(context: LabContext, name: str, sets: Sequence[str], make_data: MakeData) -> Path:
    """The script of that name, made where the one that is kept is of other runs or other code."""
    digest = digest_of(*CODE, *(context.sets.set_folder(of_set) / SET_FILE for of_set in sets))

    def make(folder: Path) -> None:
        data = make_data(context, [run for of_set in sets for run in context.sets.runs(of_set)])
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        script = f'(window.measureTwiceData??={{}})["{name}"]={text};\n'
        (folder / f"{name}.js").write_text(script, encoding="utf-8")

    of_lab = context.root / "build/replays" / context.lab.folder.name
    return made_once(of_lab / name / digest, make) / f"{name}.js"


def packets_figure(
    context: LabContext, steps: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], str]:
    """What the figure of packets begins with, and a table of its runs for those without scripts."""
    sets = packet_sets(context)
    replayed = [run for name in sets for run in replay(context, name)["runs"]]
    if not replayed:
        raise UserError(f"{context.lab.name}: no set {PACKETS}... is recorded")
    results = [result for name in sets for result in context.sets.runs(name)]
    algorithms = list(dict.fromkeys(run["algorithm"] for run in replayed))
    rate, rtt = (results[0].params[key] for key in ("rate_mbit", "rtt_ms"))
    kinds = {str(result.params["discipline"]): result for result in results}
    figure = {
        "algorithms": [
            {
                "id": algorithm,
                "name": ALGORITHMS.get(algorithm, algorithm),
                "script": script_address(context, f"{PACKETS}{algorithm}"),
            }
            for algorithm in algorithms
        ],
        "disciplines": [_discipline(kinds[kind]) for kind in sorted(kinds, key=_rank)],
        "rate_mbit": rate,
        "rtt_ms": rtt,
        # One scale for all runs: what can be compared by eye.
        "most": {
            "time": max(sum(run["time"]) for run in replayed),
            **{
                key: max(max(accumulate(run[key])) for run in replayed)
                for key in ("waiting", "cwnd", "rtt")
            },
        },
        "steps": list(steps),
    }
    return figure, _packets_table(results)


def _rank(kind: str) -> int:
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
    headings = [
        "algorithm", "queue", "goodput (Mbit/s)", "packets in the queue, mean", "packets in the queue, most", "drops",
        "flow's RTT, mean (ms)", "ping's RTT, mean (ms)",
    ]  # fmt: skip
    columns = (
        "goodput_bps", "queue_mean_packets", "queue_max_bytes", "queue_drops", "rtt_mean_ms",
        "busy_ping_mean_ms",
    )  # fmt: skip
    rows = []
    for result in results:
        algorithm, kind = (str(result.params[k]) for k in ("congestion_control", "discipline"))
        goodput, mean, most, drops, rtt, ping = (result.value(name) or 0 for name in columns)
        rows.append([
            ALGORITHMS.get(algorithm, algorithm), DISCIPLINES.get(kind, (kind,))[0], sig(goodput / 1e6),
            sig(mean), f"{most / PACKET_BYTES:.0f}", f"{drops:.0f}", sig(rtt), sig(ping),
        ])  # fmt: skip
    return markdown_table(headings, rows, "llrrrrrr")


def traces_figure(context: LabContext, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the figure of all algorithms on one clock begins with."""
    runs = replay(context, SIGNATURES[0])["runs"]
    return {
        "script": script_address(context, SIGNATURES[0]),
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


def edges_figure(
    context: LabContext, story: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], str]:
    """What the figure of the hosts' edges begins with, and a table of it. The lab's facts have both: `edges`, of each kind
    of flows by the speed of their cables (Mbit/s) how many runs, and drops for each halving after the warm-up and from
    the start; `arrivals`, by that speed when each packet of the first windows came (us)."""
    edges, arrivals = context.facts["edges"], context.facts["arrivals"]
    if not isinstance(edges, Table) or not isinstance(arrivals, Table):
        raise UserError(f"{context.lab.name}: its facts edges and arrivals are to be tables")
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
