"""The checks of runs in which flows share a link and its queue. Each looks at one thing.

Settings have the same names in every
lab: `buffer_bytes` is the queue's room in bytes.
"""

from __future__ import annotations

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check

# tc prints times to a microsecond: a buffer in bytes follows from that to far less than this.
SIZE_TOLERANCE_RATIO = 0.02
# iperf3 prints a window with three digits, and it moves between two samples.
UNIT_TOLERANCE_RATIO = 0.012
# Two samplers look at different moments of a queue that goes up and down.
LENGTH_TOLERANCE_RATIO = 0.25
LENGTH_TOLERANCE_PACKETS = 5
BDP_TOLERANCE_RATIO = 0.25


@check(
    Help(
        "size-suffix",
        "The buffer that the qdisc says it has, compared with the one that was meant.",
        explains=("whose-bdp",),
    ),
    needs=("queue_limit_bytes",),
)
def buffer_size(case: Case) -> Finding | None:
    """The buffer that the qdisc has, against the one that was meant."""
    wanted, limit = case.want("buffer_bytes"), case.got("queue_limit_bytes")
    if not wanted or limit is None or abs(limit - wanted) <= SIZE_TOLERANCE_RATIO * wanted:
        return None
    typed = case.wanted.get("buffer_text")
    return Finding(
        "size-suffix",
        "error",
        f"a buffer of {limit:.0f} B by the qdisc" + (f" (typed: {typed})" if typed else ""),
        f"{wanted:.0f} B",
        "tc reads a size by its own rules: K, M and G are powers of 1024, and with 'bit' an eighth "
        "of that.",
        off=f"a buffer of {limit:.0f} B by the qdisc, {wanted:.0f} B were meant",
    )


@check(
    Help(
        "field-number",
        "A queue's lengths taken from tc's text, against its JSON over the same time.",
    ),
    needs=(
        "length_rows",
        "length_rows_unreadable",
        "length_rows_mean_packets",
        "length_rows_true_packets",
    ),
)
def field_number(case: Case) -> Finding | None:
    """A queue's lengths taken from tc's text, against its JSON over the same time."""
    rows, unreadable = case.got("length_rows"), case.got("length_rows_unreadable")
    if rows is None:
        return None
    mean, true = case.got("length_rows_mean_packets"), case.got("length_rows_true_packets")
    if mean is not None and true is not None and not unreadable:
        slack = LENGTH_TOLERANCE_RATIO * true + LENGTH_TOLERANCE_PACKETS
        if abs(mean - true) <= slack:
            return None
    found = "no numbers" if mean is None else f"{mean:.1f} packets in the queue on average"
    return Finding(
        "field-number",
        "error",
        found + (f", {unreadable:.0f} lines unreadable" if unreadable else ""),
        "nothing to compare with" if true is None else f"{true:.1f} packets, by tc's JSON",
        "The number of a word in a line changes from one version of tc to the next. Its JSON has "
        "names.",
    )


@check(
    Help(
        "units",
        "A window's trace taken from iperf3's text, compared with ss: its times, and its sizes.",
    ),
    needs=(
        "window_rows",
        "window_rows_ratio",
        "window_rows_backwards",
    ),
)
def units(case: Case) -> Finding | None:
    """Windows taken from iperf3's text, against ss."""
    rows, ratio = case.got("window_rows"), case.got("window_rows_ratio")
    if rows is None:
        return None
    backwards = case.got("window_rows_backwards") or 0
    off = ratio is None or abs(ratio - 1) > UNIT_TOLERANCE_RATIO
    if not off and not backwards:
        return None
    found = []
    if backwards:
        often = "once" if backwards == 1 else f"{backwards:.0f} times"
        found.append(f"time goes back {often} in traces of {rows:.0f} rows")
    if ratio is None:
        found.append("no row that can be compared")
    elif off:
        found.append(f"large windows are {ratio:.3f} times what ss says")
    return Finding(
        "units",
        "error",
        "; ".join(found),
        "rows in order of time, and windows as ss has them",
        "iperf3 prints a window in KBytes or MBytes, whichever reads well, and means powers of "
        "1024.",
    )


@check(
    Help(
        "whose-bdp",
        "The buffer over each flow's own bandwidth-delay product, compared with what it is called.",
    ),
    needs=(
        "buffer_bdp_ratio_min",
        "buffer_bdp_ratio_max",
    ),
)
def whose_bdp(case: Case) -> Finding | None:
    """What a buffer is called, against every flow's own bandwidth-delay product."""
    claimed = case.want("buffer_claimed_ratio")
    low, high = case.got("buffer_bdp_ratio_min"), case.got("buffer_bdp_ratio_max")
    if not claimed or low is None or high is None:
        return None
    # The longest path has the largest product, so the buffer is the smallest part of it.
    whose = str(case.wanted.get("buffer_claimed_for"))
    ends = {"every flow": (low, high), "shortest path": (high,)}.get(whose, (low,))
    if all(abs(ratio - claimed) <= BDP_TOLERANCE_RATIO * claimed for ratio in ends):
        return None
    found = (
        f"{low:.2g} BDP" if low == high else f"{low:.2g} to {high:.2g} BDP, by whose RTT you take"
    )
    return Finding(
        "whose-bdp",
        "error",
        f"the buffer is {found}",
        f"{claimed:g} BDP for "
        + (whose if whose == "every flow" else f"the flow with the {whose}"),
        "A bandwidth-delay product belongs to one path. Flows with other round-trip times have "
        "others.",
        off=f"the buffer was called {claimed:g} BDP, and isn't that for everything that was said",
    )
