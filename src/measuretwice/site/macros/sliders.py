"""Figures with a slider: one flow's part against the hosts' socket buffers, and how long is long enough.

The first has recorded runs and a model between them: what a window carries, buffer / round trip, of all goodput, at most.
Linux keeps up to half of a buffer for its own use, so the least is half of that; and no window gives a flow more than it
takes where nothing limits it, which is what it has in the recorded run with the largest buffer. Where a window could carry
more than that, the model says nothing, and the table doesn't pretend that it agrees.

The second lets a recorded run's losses come as they came. They are counted as ss counts them, by the sender's
retransmissions; the interval of p is exact (Clopper and Pearson), that of the goodput the rule for n losses. Time to a
hundred losses is given twice: as it was recorded, and as the model foretells it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.facts import Number, Table
from measuretwice.parse import parse_ss_samples
from measuretwice.runs.folder import raw_files
from measuretwice.runs.result import Result
from measuretwice.site.macros import LabContext, macro
from measuretwice.site.macros.blocks import Block, count, markdown_table, ms, percent, seconds, sig
from measuretwice.site.macros.interactive import element
from measuretwice.site.macros.replay_data import ALGORITHMS
from measuretwice.stats import intervals
from measuretwice.tcp import model

MIB = 2**20
# The slider's ends: recorded buffers are powers of two between them.
BYTES = (MIB, 1024 * MIB)
# How many losses make a run long enough.
ENOUGH = 100
# So many moments of a run, evenly spread on a logarithmic scale of time.
MOMENTS = 120
FIRST_S = 1.0
# Losses, segments and bytes acknowledged, so many seconds after the connection began.
Moment = tuple[float, int, int, int]


@macro('share_by_window("the reproduction", "the paper")')
def share_by_window(context: LabContext, *who: str) -> Block:
    """A figure in which the reader slides the hosts' largest socket buffer, and sees which part of the link one rival
    takes. The lab's facts say of which sets, the first with Linux's default (`windows_sets`), and which parts were
    published, the smaller first (`windows_published`); `who` calls those who did by name."""
    sets, published = context.facts["windows_sets"], context.facts["windows_published"]
    if not isinstance(sets, str) or not isinstance(published, Table):
        raise UserError(f"{context.lab.name}: windows_sets is a text, windows_published a table")
    data = windows_data(context, sets.split(", "))
    data["published"] = [
        {"who": name, "share": part.value / 100, "said": text}
        for name, (part, text) in zip(who, published.rows, strict=True)
        if isinstance(part, Number)
    ]
    return element("windows", data, windows_table(data))


@macro("share_thumbnail()")
def share_thumbnail(context: LabContext) -> str:
    """The figure of `share_by_window` in small, for a card: the share against the buffer, both logarithmic, a mark for each run."""
    sets = str(context.facts["windows_sets"]).split(", ")
    points = windows_data(context, sets)["series"][0]["points"]
    x = [math.log10(point["bytes"]) for point in points]
    y = [math.log10(point["share"]) for point in points]
    low, high = min(y), max(y)

    def at(number: int) -> str:
        across = 16 + 168 * (x[number] - min(x)) / (max(x) - min(x))
        return f"{across:.0f},{84 - 68 * (y[number] - low) / (high - low):.0f}"

    marks = "".join(
        '<circle cx="{}" cy="{}" r="5"/>'.format(*at(n).split(",")) for n in range(len(x))
    )
    line = " ".join(at(n) for n in sorted(range(len(x)), key=x.__getitem__))
    return f'<svg class="share" viewBox="0 0 200 100" aria-hidden="true"><polyline points="{line}"/>{marks}</svg>'


def windows_data(context: LabContext, sets: Sequence[str]) -> dict[str, Any]:
    """One series for each algorithm beside the rival, with a point for each set that has such a run."""
    rivals = [
        (name, run)
        for name in sets
        for run in context.sets.runs(name)
        if run.value("rivals_found") == 1 and run.value("rival_share")
    ]
    if not rivals:
        raise UserError(f"share_by_window({list(sets)}): no run in them has a single rival")
    first = rivals[0][1]
    series = []
    for beside in dict.fromkeys(run.params["congestion_control"] for _, run in rivals):
        points = [pair for pair in rivals if pair[1].params["congestion_control"] == beside]
        series.append(_series(context, str(beside), points, limit_of(first)))
    flows, rival = round(measured(first, "flows")), str(first.params["rival"])
    return {
        "rival": ALGORITHMS.get(rival, rival),
        "others": flows - 1,
        "fair": 1 / flows,
        "bytes": BYTES,
        "series": series,
    }


def _series(
    context: LabContext, beside: str, points: Sequence[tuple[str, Result]], usual: int
) -> dict[str, Any]:
    runs = [run for _, run in points]
    return {
        "beside": ALGORITHMS.get(beside, beside),
        "rtt_ms": sum(measured(run, "rtt_mean_ms") for run in runs) / len(runs),
        "total_bps": sum(measured(run, "goodput_bps") for run in runs) / len(runs),
        "points": [
            {
                "bytes": limit_of(run),
                "share": measured(run, "rival_share"),
                "usual": limit_of(run) == usual,
                "command": f"./lab record {context.lab.name} --verify --only {name}",
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
    """Return the same as a table: each recorded run beside the model."""
    headings = (
        f"against {data['others']} flows of", "largest socket buffer", f"{data['rival']}'s part, recorded",
        "times the fair share", "what half of such a buffer, and all of it, carries (by the runs' mean round trip and total)",
    )  # fmt: skip
    rows = []
    for series in data["series"]:
        for point in series["points"]:
            share = point["share"]
            rows.append((
                series["beside"], f"{point['bytes'] // MIB} MiB", percent(share), sig(share / data["fair"]),
                _modelled(series, point["bytes"]),
            ))  # fmt: skip
    return markdown_table(headings, rows, "lrrrr")


def _modelled(series: Mapping[str, Any], limit_bytes: float) -> str:
    low, high = bounds(series, limit_bytes)
    if low == high:
        return "the buffer is no limit"
    most = max(point["share"] for point in series["points"])
    return f"{percent(low)} or more" if high == most else f"{percent(low)} to {percent(high)}"


@macro('losses_over_time(["mtu-fixed"], "romeo/ss.txt")')
def losses_over_time(context: LabContext, sets: Sequence[str], samples: str) -> Block:
    """A figure in which the reader lets a recorded run's losses arrive: the intervals of p and of goodput
    over the model narrow. `samples` is the file in which the sender's ss was sampled."""
    runs = [_run(context.sets.runs(name)[0], samples) for name in sets]
    data = {"runs": runs, "enough": ENOUGH}
    return element("losses", data, _losses_table(runs))


def moments(text: str, source: str, port: int) -> list[Moment]:
    """What ss said of a connection at each sample, from the moment when it began."""
    shown: list[Moment] = []
    begun = None
    for sample in parse_ss_samples(text, source, local_ports={port}, allow_truncated_tail=True):
        for socket in sample.sockets:
            begun = sample.time_s if begun is None else begun
            if socket.data_segs_out and socket.bytes_acked:
                counts = (socket.retrans_total or 0, socket.data_segs_out, socket.bytes_acked)
                shown.append((sample.time_s - begun, *counts))
    return shown


def _run(run: Result, samples: str) -> dict[str, Any]:
    port = run.value("data_port")
    bandwidth_bps = run.model.bandwidth_bps if run.model else None
    if port is None or bandwidth_bps is None:
        raise UserError(f"{run.run_dir}: no data connection, or no model of it")
    all_of_it = moments(raw_files(run.run_dir)[samples].decode(), samples, round(port))
    loss_ratio, rtt_ms = float(run.params["loss_ratio"]), float(run.params["rtt_ms"])
    reached = next((time_s for time_s, losses, *_ in all_of_it if losses >= ENOUGH), None)
    return {
        "loss_ratio": loss_ratio,
        "rtt_ms": rtt_ms,
        "reached_s": reached and round(reached, 1),
        "model_s": model.mathis_time_for_losses_s(rtt_ms, loss_ratio, ENOUGH),
        "drops": run.value("qdisc_drops"),
        "moments": [
            moment_data(moment, loss_ratio, bandwidth_bps) for moment in _spread(all_of_it)
        ],
    }


def _spread(moments: Sequence[Moment]) -> list[Moment]:
    """Moments at even steps of a logarithmic scale, and the last."""
    last_s = moments[-1][0]
    spread: list[Moment] = []
    for n in range(MOMENTS + 1):
        wanted_s = FIRST_S * (last_s / FIRST_S) ** (n / MOMENTS)
        moment = next(moment for moment in moments if moment[0] >= wanted_s - 1e-6)
        if moment not in spread[-1:]:
            spread.append(moment)
    return spread


def moment_data(moment: Moment, loss_ratio: float, bandwidth_bps: float) -> list[float | None]:
    """Time, losses, segments; p over the one that was set, and its interval; goodput over the model,
    and its interval. None where no loss bounds it."""
    time_s, losses, segments, acked = moment
    low, high = intervals.loss_interval(min(losses, segments), segments)
    ratio = acked * 8 / time_s / bandwidth_bps
    bounds = intervals.ratio_bounds(losses)
    ends = [ratio * bound for bound in bounds] if bounds else [None, None]
    numbers = [losses / segments / loss_ratio, low / loss_ratio, high / loss_ratio, ratio, *ends]
    return [
        round(time_s, 1), losses, segments,
        *(None if number is None else float(f"{number:.4g}") for number in numbers),
    ]  # fmt: skip


def _losses_table(runs: Sequence[dict[str, Any]]) -> str:
    headings = (
        "p that was set", "RTT", "after", "losses", "p by the count, over the p that was set (95 %)",
        "goodput over the model (95 %)", "100 losses, recorded", "100 losses, by the model",
    )  # fmt: skip
    rows = []
    for run in runs:
        for index in (len(run["moments"]) // 3, 2 * len(run["moments"]) // 3, -1):
            time_s, losses, _, p, low, high, ratio, least, most = run["moments"][index]
            ends = f" ({sig(least, 2)} to {sig(most, 2)})" if least else ""
            rows.append((
                sig(run["loss_ratio"], 2), ms(run["rtt_ms"]), seconds(time_s), count(losses),
                f"{sig(p, 2)} ({sig(low, 2)} to {sig(high, 2)})", f"{sig(ratio, 2)}{ends}",
                seconds(run["reached_s"]) if run["reached_s"] else "not reached",
                seconds(run["model_s"]),
            ))  # fmt: skip
    return markdown_table(headings, rows, "rrrrrrrr")
