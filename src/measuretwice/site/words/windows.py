"""The figure of one flow's part against the hosts' socket buffers: recorded runs, and a model between them.

The model is what a window carries: buffer / round trip, of all goodput, at most. Linux keeps up to half
of a buffer for its own use, so the least is half of that; and no window gives a flow more than it takes
where nothing limits it, which is what it has in the recorded run with the largest buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.facts import Number, Table
from measuretwice.runs.result import Result
from measuretwice.site.words import interactive
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.numbers import percent, sig
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords

NAMES = {"reno": "Reno", "cubic": "CUBIC", "vegas": "Vegas", "bbr": "BBR"}
MIB = 2**20
# The slider's ends: recorded buffers are powers of two between them.
BYTES = (MIB, 1024 * MIB)


@word('share_by_window("the reproduction", "the paper")')
def share_by_window(words: LabWords, *who: str) -> Block:
    """A figure in which the reader slides the hosts' largest socket buffer, and sees which part of the link one rival
    takes. The lab's facts say of which sets, the first with Linux's default (`windows_sets`), and which parts were
    published, the smaller first (`windows_published`); `who` calls those who did by name."""
    sets, said = words.facts["windows_sets"], words.facts["windows_published"]
    if not isinstance(sets, str) or not isinstance(said, Table):
        raise UserError(f"{words.lab.name}: windows_sets is a text, windows_published a table")
    data = windows_data(words, sets.split(", "))
    data["published"] = [
        {"who": name, "share": part.value / 100, "said": text}
        for name, (part, text) in zip(who, said.rows, strict=True)
        if isinstance(part, Number)
    ]
    return interactive.element("windows", data, windows_table(data))


def windows_data(words: LabWords, sets: Sequence[str]) -> dict[str, Any]:
    """One series for each algorithm beside the rival, with a point for each set that has such a run."""
    rivals = [
        (name, run)
        for name in sets
        for run in words.results_of(name)
        if run.value("rivals_found") == 1 and run.value("rival_share")
    ]
    if not rivals:
        raise UserError(f"share_by_window({list(sets)}): no run in them has a single rival")
    first = rivals[0][1]
    series = []
    for beside in dict.fromkeys(run.params["congestion_control"] for _, run in rivals):
        points = [pair for pair in rivals if pair[1].params["congestion_control"] == beside]
        series.append(_series(words, str(beside), points, limit_of(first)))
    flows, rival = round(measured(first, "flows")), str(first.params["rival"])
    return {
        "rival": NAMES.get(rival, rival),
        "others": flows - 1,
        "fair": 1 / flows,
        "bytes": BYTES,
        "series": series,
    }


def _series(
    words: LabWords, beside: str, points: Sequence[tuple[str, Result]], usual: int
) -> dict[str, Any]:
    runs = [run for _, run in points]
    return {
        "beside": NAMES.get(beside, beside),
        "rtt_ms": sum(measured(run, "rtt_mean_ms") for run in runs) / len(runs),
        "total_bps": sum(measured(run, "goodput_bps") for run in runs) / len(runs),
        "points": [
            {
                "bytes": limit_of(run),
                "share": measured(run, "rival_share"),
                "usual": limit_of(run) == usual,
                "command": f"./lab record {words.lab.name} --verify --only {name}",
            }
            for name, run in points
        ],
    }


def measured(run: Result, name: str) -> float:
    """A measured number of a run; UserError where it has none."""
    value = run.value(name)
    if value is None:
        raise UserError(f"{run.run_dir} has no {name}")
    return value


def limit_of(run: Result) -> int:
    """The smaller of both ends' largest buffers: what the flow may have on its way, at most."""
    limit = int(min(run.params["wmem_max_bytes"], run.params["rmem_max_bytes"]))
    if log2(limit) % 1:
        raise UserError(
            f"{run.run_dir}: a buffer of {limit} bytes is no step of the figure's slider"
        )
    return limit


def bounds(series: Mapping[str, Any], limit_bytes: float) -> tuple[float, float]:
    """The model's least and most part of the link with a buffer of that size."""
    carries = limit_bytes * 8e3 / series["rtt_ms"] / series["total_bps"]
    most = max(point["share"] for point in series["points"])
    return min(carries / 2, most), min(carries, most)


def windows_table(data: Mapping[str, Any]) -> str:
    """The same as a table: each recorded run beside the model."""
    lines = [
        f"| beside {data['others']} flows of | largest socket buffer | {data['rival']}'s part, recorded | times the fair share | the model: what a window carries |",
        "|---|---:|---:|---:|---:|",
    ]
    for series in data["series"]:
        for point in series["points"]:
            low, high = bounds(series, point["bytes"])
            ends = percent(low) if low == high else f"{percent(low)} to {percent(high)}"
            cells = [
                series["beside"],
                f"{point['bytes'] // MIB} MiB",
                percent(point["share"]),
                sig(point["share"] / data["fair"], 2),
                ends,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
