"""The figure of how long is long enough: a recorded run's losses as they came, and what they told at each moment.

Losses are counted as ss counts them, by the sender's retransmissions; the interval of p is exact
(Clopper and Pearson), that of the goodput the rule for n losses. Time to a hundred losses is given
twice: as it was recorded, and as the model foretells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.parse import parse_ss_samples
from measuretwice.runs.folder import raw_files
from measuretwice.runs.result import Result
from measuretwice.site.words import interactive
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.numbers import count, ms, seconds, sig
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords
from measuretwice.stats import intervals
from measuretwice.tcp import model

ENOUGH = 100
# So many moments of a run, evenly spread on a logarithmic scale of time.
MOMENTS = 120
FIRST_S = 1.0
# Losses, segments and bytes acknowledged, so many seconds after the connection began.
Moment = tuple[float, int, int, int]


@word('losses_over_time(["mtu-fixed"], "romeo/ss.txt")')
def losses_over_time(words: LabWords, sets: Sequence[str], samples: str) -> Block:
    """A figure in which the reader lets a recorded run's losses arrive: the intervals of p and of goodput
    over the model narrow. `samples` is the file in which the sender's ss was sampled."""
    runs = [_run(words, words.results_of(name)[0], samples) for name in sets]
    data = {"runs": runs, "enough": ENOUGH}
    return interactive.element("losses", data, _table(runs))


def moments(text: str, source: str, port: int) -> list[Moment]:
    """What ss said of a connection at each sample, from the moment when it began."""
    found: list[Moment] = []
    begun = None
    for sample in parse_ss_samples(text, source, local_ports={port}, allow_truncated_tail=True):
        for socket in sample.sockets:
            begun = sample.time_s if begun is None else begun
            if socket.data_segs_out and socket.bytes_acked:
                counts = (socket.retrans_total or 0, socket.data_segs_out, socket.bytes_acked)
                found.append((sample.time_s - begun, *counts))
    return found


def _run(words: LabWords, run: Result, samples: str) -> dict[str, Any]:
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
        "moments": [told(moment, loss_ratio, bandwidth_bps) for moment in _spread(all_of_it)],
    }


def _spread(moments: Sequence[Moment]) -> list[Moment]:
    """Moments at even steps of a logarithmic scale, and the last."""
    last_s = moments[-1][0]
    kept: list[Moment] = []
    for n in range(MOMENTS + 1):
        wanted_s = FIRST_S * (last_s / FIRST_S) ** (n / MOMENTS)
        moment = next(each for each in moments if each[0] >= wanted_s - 1e-6)
        if moment not in kept[-1:]:
            kept.append(moment)
    return kept


def told(moment: Moment, loss_ratio: float, bandwidth_bps: float) -> list[float | None]:
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
        *(None if each is None else float(f"{each:.4g}") for each in numbers),
    ]  # fmt: skip


def _table(runs: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| p, set | round trip | after | losses | p, by the count, over the one set (95 %) | goodput over the model (95 %) | 100 losses, recorded | 100 losses, by the model |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run in runs:
        for at in (len(run["moments"]) // 3, 2 * len(run["moments"]) // 3, -1):
            time_s, losses, _, p, low, high, ratio, least, most = run["moments"][at]
            ends = f" ({sig(least, 2)} to {sig(most, 2)})" if least else ""
            cells = [
                sig(run["loss_ratio"], 2), ms(run["rtt_ms"]), seconds(time_s), count(losses),
                f"{sig(p, 2)} ({sig(low, 2)} to {sig(high, 2)})", f"{sig(ratio, 2)}{ends}",
                seconds(run["reached_s"]) if run["reached_s"] else "not reached",
                seconds(run["model_s"]),
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
