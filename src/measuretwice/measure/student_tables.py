"""What a student made of the tools' text, compared with what ss and tc's JSON say of the same run.

Windows, queue lengths, rates, a table; of many flows counts, sums and groups, whose names begin with `own_`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from measuretwice.lab.schema.network import CrowdFiles
from measuretwice.measure.connections import Trace
from measuretwice.measure.fields import Measured
from measuretwice.measure.queue import Queue
from measuretwice.measure.raw import name_of, rows_of, text_of
from measuretwice.parse import ParseError
from measuretwice.tcp.traces import TraceLike, interpolate, sampled_each_tenth

# The table's clock starts when iperf3 begins to send, the trace's with the connection.
LARGEST_OFFSET_S = 0.6
OFFSET_STEP_S = 0.02
WINDOW_TOLERANCE_RATIO = 0.02


@dataclass(frozen=True)
class Rows:
    """Pairs of numbers that a person wrote to a file, and how many of its lines were none."""

    time_s: list[float]
    values: list[float]
    unreadable: int

    @property
    def backwards(self) -> int:
        """How often the time goes back from one row to the next."""
        return sum(b < a for a, b in zip(self.time_s, self.time_s[1:], strict=False))


def read_rows(text: str) -> Rows:
    """Read lines of two numbers. Whoever wrote them may have erred: other lines are counted."""
    rows = Rows([], [], 0)
    unreadable = 0
    for line in text.splitlines():
        try:
            time_s, value = (float(word) for word in line.split())
        except ValueError:
            unreadable += 1
            continue
        rows.time_s.append(time_s)
        rows.values.append(value)
    return Rows(rows.time_s, rows.values, unreadable)


def over_truth(
    rows: Rows,
    start_s: float,
    times: Sequence[float],
    truth: Sequence[float],
    grain: float = 0.0,
) -> float | None:
    """Return the median of rows over the truth at their times, of the larger half of rows.

    Rows' times count from `start_s`. A wrong unit spoils the large values first; the median leaves
    out what changes between two samples, and a difference up to `grain`, in the truth's unit, is
    none: a row may be read a step or two of the window later. None without rows.
    """
    pairs = [
        (value, interpolate(times, truth, start_s + time_s))
        for time_s, value in zip(rows.time_s, rows.values, strict=True)
    ]
    large = sorted(((told, true) for told, true in pairs if true > 0), key=lambda pair: pair[1])
    large = large[len(large) // 2 :]
    if not large:
        return None
    nearest = ((told, min(max(told, true - grain), true + grain)) for told, true in large)
    return round(statistics.median(told / true for told, true in nearest), 6)


def compare_windows(raw: Path, file: str, traces: Sequence[Trace]) -> Measured:
    """Return how the windows that a student took from iperf3's text compare with ss: the worst of all nodes that have them."""
    taken: list[tuple[Rows, float | None]] = []
    for trace in traces:
        path = raw / trace.node / file
        if path.is_file() and trace.mss_bytes:
            rows = read_rows(text_of(path))
            kbytes = [cwnd * trace.mss_bytes / 1024 for cwnd in trace.cwnd_segments]
            two_segments = 2 * trace.mss_bytes / 1024
            ratio = over_truth(rows, trace.time_s[0], trace.time_s, kbytes, two_segments)
            taken.append((rows, ratio))
    if not taken:
        return {}
    ratios = [ratio for _, ratio in taken if ratio is not None]
    return {
        "window_rows": sum(len(rows.values) for rows, _ in taken),
        "window_rows_backwards": sum(rows.backwards for rows, _ in taken),
        "window_rows_ratio": max(ratios, key=lambda ratio: abs(ratio - 1), default=None),
    }


def compare_lengths(path: Path, queue: Queue) -> Measured:
    """Return the queue lengths that a student took from tc's text beside those of its JSON at the same times, in packets."""
    if not path.is_file():
        return {}
    rows = read_rows(text_of(path))
    true = [interpolate(queue.time_s, queue.backlog_packets, time_s) for time_s in rows.time_s]
    return {
        "length_rows": len(rows.values),
        "length_rows_unreadable": rows.unreadable,
        "length_rows_mean_packets": _mean(rows.values),
        "length_rows_true_packets": _mean(true),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def rate_rows(raw: Path, name: str) -> Measured:
    """Return from how many rows averages were taken, and how many of these span others; of each node's rows the mean and
    the deviation, and the deviation of those that span no others.

    A line each in `raw`/<node>/`name`: start, end (seconds) and bit/s.
    """
    count = spanning = 0
    of_nodes: Measured = {}
    for path in sorted(raw.glob(f"*/{name}")):
        rows = rows_of(path, _rate_row, "start, end and bit/s")
        single = [row for row in rows if not _spans_others(row, rows)]
        count += len(rows)
        spanning += len(rows) - len(single)
        node = path.parent.name.replace("-", "_")
        mean_bps, of_nodes[f"{node}_rate_rows_deviation_bps"] = _spread(rows)
        of_nodes[f"{node}_rate_rows_mean_bps"] = mean_bps
        of_nodes[f"{node}_seconds_deviation_bps"] = _spread(single)[1]
    return {"rate_rows": count, "rate_rows_spanning": spanning, **of_nodes}


def _rate_row(line: str) -> tuple[float, float, float]:
    start_s, end_s, rate_bps = map(float, line.split())
    return start_s, end_s, rate_bps


def _spans_others(
    row: tuple[float, float, float], rows: Sequence[tuple[float, float, float]]
) -> bool:
    return sum(row[0] <= start and end <= row[1] for start, end, _ in rows) > 2


def _spread(rows: Sequence[tuple[float, float, float]]) -> tuple[float | None, float | None]:
    """The mean and the deviation of rows' rates, in bit/s; None where there are too few."""
    rates = [rate_bps for _, _, rate_bps in rows]
    if len(rates) < 2:
        return _mean(rates), None
    return statistics.fmean(rates), statistics.stdev(rates)


@dataclass(frozen=True)
class TableRow:
    """A line of the table that a report prints; cwnd in bytes at the row's end."""

    start_s: float
    end_s: float
    rate_bps: float
    cwnd_bytes: float
    retransmits: float


def read_table(text: str) -> list[TableRow]:
    """Read lines of five numbers: start, end (s), rate (bit/s), cwnd (bytes), segments sent again."""
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            start, end, rate, cwnd, again = map(float, line.split())
        except ValueError:
            raise ValueError(f"line {number}: expected five numbers") from None
        rows.append(TableRow(start, end, rate, cwnd, again))
    return rows


def compare_table(path: Path, trace: Trace) -> Measured:
    """Return how a table that was made of a run's report compares with that run. ParseError for other lines."""
    try:
        return compare_rows(read_table(text_of(path)), trace)
    except ValueError as error:
        raise ParseError(name_of(path), "file", str(error)) from None


def compare_rows(rows: Sequence[TableRow], trace: TraceLike) -> Measured:
    """Return how a table compares with the trace of the run that it is said to be of.

    `table_rows_foreign` counts rows with a window that the connection did not have at that time.
    """
    if not rows:
        return {}
    # The last row may be a fraction of an interval.
    interval_s = statistics.median(row.end_s - row.start_s for row in rows)
    whole = [row for row in rows if row.start_s >= 1 and row.end_s - row.start_s > interval_s / 2]
    offsets = [n * OFFSET_STEP_S for n in range(int(LARGEST_OFFSET_S / OFFSET_STEP_S) + 1)]
    return {
        "table_rows": len(rows),
        "table_interval_s": round(interval_s, 3),
        "table_lowest_bps": min((row.rate_bps for row in whole), default=None),
        # A trace that looks no more often than the window changes can't say which it had.
        "table_rows_foreign": min(_foreign(rows, trace, offset) for offset in offsets)
        if sampled_each_tenth(trace)
        else None,
    }


def _foreign(rows: Sequence[TableRow], trace: TraceLike, offset_s: float) -> int:
    """Rows whose window is none of the trace's around their end, if the clocks are so far apart."""
    mss = trace.mss_bytes or 1
    times = trace.time_s
    step_s = (times[-1] - times[0]) / max(1, len(times) - 1)
    count = first = 0
    for row in rows:
        end_s = times[0] + offset_s + row.end_s
        while first < len(times) and times[first] < end_s - 1.5 * step_s:
            first += 1
        near = []
        n = first
        while n < len(times) and times[n] <= end_s + 1.5 * step_s:
            near.append(trace.cwnd_segments[n] * mss)
            n += 1
        low, high = min(near, default=0), max(near, default=float("inf"))
        slack = WINDOW_TOLERANCE_RATIO * row.cwnd_bytes + mss
        count += not low - slack <= row.cwnd_bytes <= high + slack
    return count


def compare_results(
    files: CrowdFiles,
    raw: Path,
    ports: set[tuple[str, int]],
    sums_bps: Mapping[str, float],
    interval_s: tuple[float, float],
    rival: str,
) -> Measured:
    """Return a person's counts, sums and groups.

    `ports` are the flows by node and port, `sums_bps` their goodputs' sums by algorithm,
    `interval_s` the time that all flows share, `rival` the rivals' algorithm.
    """
    values: Measured = {}
    if files.counted and (paths := sorted(raw.glob(f"*/{files.counted}"))):
        values["own_counted_halvings"] = _counted(paths, ports, interval_s)
    if files.summary:
        values |= summary_values(raw, files.summary)
    for path in raw.glob(f"*/{files.groups}") if files.groups else ():
        groups = rows_of(path, _algorithm_and_sum, "an algorithm, its flows and their sum")
        values["own_groups_error_ratio"] = _groups_error_ratio(groups, sums_bps)
        if (share := _share_of(rival, groups)) is not None:
            values["own_rival_share"] = share
    return values


def summary_values(raw: Path, file: str) -> Measured:
    """Return what a person's own summary says, a line each of a name and a number, by these names with `own_` in front."""
    return {
        f"own_{name}": number
        for path in raw.glob(f"*/{file}")
        for name, number in rows_of(path, _name_and_number, "a name and a number")
        # awk prints what has no value as nan.
        if math.isfinite(number)
    }


def _time_and_port(line: str) -> tuple[float, int]:
    time_text, port_text = line.split()
    return float(time_text), int(port_text)


def _counted(
    paths: Sequence[Path], ports: set[tuple[str, int]], interval_s: tuple[float, float]
) -> int:
    """How many halvings were counted in the interval, of all the flows of `ports`."""
    start_s, end_s = interval_s
    return sum(
        (path.parent.name, port) in ports and start_s <= time_s <= end_s
        for path in paths
        for time_s, port in rows_of(path, _time_and_port, "time and port")
    )


def _name_and_number(line: str) -> tuple[str, float]:
    name, _, text = line.partition(" ")
    return name, float(text)


def _algorithm_and_sum(line: str) -> tuple[str, float]:
    name, _, text = line.split()
    return name, float(text)


def _share_of(rival: str, groups: Sequence[tuple[str, float]]) -> float | None:
    """The rivals' part of a person's sums; None where they have no row, or nothing has a rate."""
    total = sum(sum_bps for _, sum_bps in groups)
    of_rival = [sum_bps for name, sum_bps in groups if name == rival]
    return round(sum(of_rival) / total, 6) if of_rival and total else None


def _groups_error_ratio(
    groups: Sequence[tuple[str, float]], sums_bps: Mapping[str, float]
) -> float:
    """How far a person's sums, by algorithm, are from those of the flows: the worst of them."""
    worst = 0.0
    for name, sum_bps in groups:
        true_bps = sums_bps.get(name, 0.0)
        worst = max(worst, abs(sum_bps - true_bps) / max(sum_bps, true_bps, 1.0))
    return round(worst, 6)
