"""Bytes over time against the rate beside them: a unit that slipped, or a number that is another's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from measuretwice.audit.cells import Number
from measuretwice.audit.rules import Row

# How far bytes over time may be from a rate that is its own quotient, in rows beside others that are nearer.
TOLERANCE = 0.05
# How near a factor must be to one of those below.
NEAR = 0.03
# Factors by which units slip: bits and bytes, thousands, and 1024 for thousands.
SLIPS = sorted(
    {8.0, *(10.0**n for n in range(1, 10)), *(1024.0**n for n in (1, 2, 3)), *(8 * 1000.0**n for n in (1, 2, 3)),
     *(1000.0**n / 8 for n in (1, 2, 3)), 60.0, 3600.0}
)  # fmt: skip
# Without a column of times, only by such factors: tests of 1, 10 and 60 s stand beside each other in honest tables.
LEAST_SLIP = 500.0
# Nobody's interval is shorter, where all rows have the same, in seconds.
SHORTEST_S = 0.01
# Rows that must agree before others are told from them.
AGREEING = 0.5


def bytes_off(rows: Sequence[Row], rate: str) -> tuple[list[tuple[Row, str]], list[str]]:
    """Return the rows whose bytes and rate contradict each other, with the reason; and remarks on all of them."""
    having = [
        row for row in rows if row.has("bytes", rate) and min(row["bytes"].low, row[rate].low) > 0
    ]
    timed = [row for row in having if row.has("duration") and row["duration"].low > 0]
    if timed and len(timed) == len(having):
        return _by_time(timed, rate)
    return list(_by_each_other(having, rate)), []


def _by_time(rows: Sequence[Row], rate: str) -> tuple[list[tuple[Row, str]], list[str]]:
    quotients = {row.line: _quotient(row, rate) for row in rows}
    agree = [row for row in rows if _within(quotients[row.line], 1.0, TOLERANCE)]
    if len(agree) >= AGREEING * len(rows):
        apart = [row for row in rows if not _within(quotients[row.line], 1.0, TOLERANCE)]
    else:
        middle = statistics.median(quotient.value for quotient in quotients.values())
        alike = [row for row in rows if _within(quotients[row.line], middle, TOLERANCE)]
        if len(alike) < AGREEING * len(rows):
            apart = [row for row in rows if _slip(quotients[row.line])]
            apart = apart if len(agree) + len(apart) == len(rows) else []
        elif _slip(Number(middle, middle * (1 - NEAR), middle * (1 + NEAR))):
            apart = alike
        else:
            times = f"{middle:.3g} times"
            return [], [
                f"the rates are {times} the bytes over the time: of other bytes, or of another time"
            ]
    return [(row, _text(row, rate, quotients[row.line])) for row in apart], []


def _text(row: Row, rate: str, quotient: Number) -> str:
    again = row[rate].value / quotient.value
    slipped = _slip(quotient)
    unit = f": {_times(quotient.value)}, as if a unit were wrong" if slipped else ""
    return (
        f"{row.shown('bytes')} in {row.shown('duration')} is {_rate(again)}, and the rate is "
        f"{row.shown(rate)} ({_rate(row[rate].value)}){unit}"
    )


def _by_each_other(rows: Sequence[Row], rate: str) -> Iterator[tuple[Row, str]]:
    """By the times that bytes and rates give, where these are the same in the rows but for a unit."""
    times = {row.line: Number(8 * row["bytes"].value / row[rate].value, 8 * row["bytes"].low / row[rate].high,
                              8 * row["bytes"].high / row[rate].low) for row in rows}  # fmt: skip
    clusters: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: times[row.line].value, reverse=True):
        if clusters and _within(times[row.line], times[clusters[-1][0].line].value, 0.1):
            clusters[-1].append(row)
        else:
            clusters.append([row])
    likely = [group for group in clusters if times[group[0].line].value >= SHORTEST_S]
    if len(rows) < 2 or not likely:
        if len(rows) > 1 and len(clusters) == 1:
            for row in rows:
                lasts = _time(times[row.line].value)
                yield (
                    row,
                    f"{row.shown('bytes')} at {row.shown(rate)} take {lasts}: no interval is so short",
                )
        return
    alike = max(likely, key=len)
    reference = times[alike[0].line].value
    slipped = [row for row in rows if _slip_of(times[row.line].value / reference)]
    too_short = all(times[row.line].value < SHORTEST_S for row in slipped)
    if len(alike) + len(slipped) < AGREEING * len(rows) or (len(alike) < 2 and not too_short):
        return
    for row in slipped:
        ratio = times[row.line].value / reference
        yield (
            row,
            f"{row.shown('bytes')} at {row.shown(rate)} take {_time(times[row.line].value)}, where others take "
            f"{_time(reference)}: {_times(1 / ratio)}, as if a unit were wrong",
        )


def _quotient(row: Row, rate: str) -> Number:
    """The rate over bytes by time."""
    amount, time, speed = row["bytes"], row["duration"], row[rate]
    return Number(
        speed.value * time.value / (8 * amount.value),
        speed.low * time.low / (8 * amount.high),
        speed.high * time.high / (8 * amount.low),
    )


def _within(number: Number, value: float, tolerance: float) -> bool:
    return number.low <= value * (1 + tolerance) and number.high >= value * (1 - tolerance)


def _slip(number: Number) -> bool:
    return any(_within(number, slip, NEAR) or _within(number, 1 / slip, NEAR) for slip in SLIPS)


def _slip_of(ratio: float) -> bool:
    # The other unit may be of 1000 where this is of 1024.
    return any(
        abs(math.log(max(ratio, 1 / ratio) / slip)) < 0.12 for slip in SLIPS if slip >= LEAST_SLIP
    )


def _times(factor: float) -> str:
    """Return in words how many times more or less, without the digits by which 1000 and 1024 differ."""
    more, value = ("more", factor) if factor > 1 else ("less", 1 / factor)
    slip = next(
        (slip for slip in SLIPS if slip >= LEAST_SLIP and abs(math.log(value / slip)) < 0.12), value
    )
    return f"{slip:.4g} times {more}" if slip == value else f"about {slip:.4g} times {more}"


def _rate(bps: float) -> str:
    power = max((p for p in (0, 3, 6, 9) if bps >= 10**p), default=0)
    return f"{bps / 10**power:.4g} {['', 'k', 'M', 'G'][power // 3]}bit/s"


def _time(seconds: float) -> str:
    return (
        f"{seconds:.3g} s"
        if seconds >= 0.1
        else f"{seconds * 1e3:.3g} ms"
        if seconds >= 1e-4
        else f"{seconds * 1e6:.3g} us"
    )
