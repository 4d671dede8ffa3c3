"""What others say of the same networks, for pages that are no lab's: the machine's own kernel in real time, ns-3, the same
kernel without this project's patches, and Linux's own tests in both.

Each record is written by a benchmark (`witness.py`, `against_ns3.py`, `against_stock.py`, `selftests.py` in benchmarks/).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from measuretwice.facts import Facts, Interval, Number, Numbers, table, whole
from measuretwice.facts.values import Cell

WITNESS, NS3 = "sample-data/witness.json", "sample-data/against-ns3.json"
STOCK, SELFTESTS = "sample-data/against_stock.json", "sample-data/selftests.json"
# What the records' names are on a page.
SHOWN = {
    "ratio": "goodput over the model's, C = 1",
    "loss_ratio": "loss ratio",
    "rtt_mean_ms": "mean round trip (ms)",
    "c_by_halvings": "C by halvings",
    "drops_per_halving": "drops for each halving",
    "jains_index": "Jain's index",
    "utilisation": "share of the link in use",
    "rival_share": "BBR's or CUBIC's share of the goodput",
    "goodput_bps": "goodput",
    "steady_goodput_bps": "goodput, once settled",
    "steady_rtt_ms": "mean round trip, once settled",
    "ping_rtt_mean_ms": "ping's mean",
    "busy_ping_mean_ms": "ping's mean under load",
    "queue_mean_bytes": "mean queue",
    "c_by_losses": "C by losses",
}
# Two means further apart than so many of their difference's standard errors differ.
DIFFERS_ERRORS = 2.6
# A simulated trial with less than this part of the recorded goodput has all but stopped.
STALLED = 0.5


def set_witness(f: Facts, record: Mapping[str, Any]) -> None:
    """Set what the machine's own kernel measured of five settings, beside the virtual kernel."""
    settings: Sequence[Mapping[str, Any]] = record["settings"]
    f.witness_on = str(record["begun"])
    f.witness_kernel = str(record["kernel"]).replace("linux", "Linux")
    f.witness_settings, f.witness_repeats = whole(len(settings)), whole(record["repeats"])
    f.witness_lasts = whole(record["seconds"], "s")
    f.witness_late = Numbers(
        tuple(statistics.fmean(setting["late_mean_us"]) for setting in settings), "µs", 2
    )
    f.witness_latest = Number(
        max(late for setting in settings for late in setting["late_max_us"]) / 1e3, "ms", 2
    )
    f.witness = table(
        ("setting", "value", "Linux in real time", "virtual kernel", "ratio"),
        (row for setting in settings for row in _of_setting(setting)),
    )
    f.witness_shares = Numbers(_ratios(settings, "rival_share"))
    f.witness_c, f.witness_drops, f.witness_rtts, f.witness_even = (
        Numbers(_ratios(settings, *names))
        for names in (("c_by_halvings", "ratio"), ("drops_per_halving",), ("rtt_mean_ms",), ("jains_index",))
    )  # fmt: skip
    ratios = [
        row["host_over_virtual"]
        for setting in settings
        for row in setting["values"]
        if row["host_over_virtual"]
    ]
    f.witness_ratios = Numbers((min(ratios), max(ratios)))
    f.witness_values = whole(len(ratios))
    f.witness_differ = whole(sum(_differ(row) for s in settings for row in s["values"]))


def _ratios(settings: Sequence[Mapping[str, Any]], *names: str) -> tuple[float, ...]:
    """Return the ratios, host over virtual, of the values with these names in all settings."""
    return tuple(
        row["host_over_virtual"]
        for setting in settings
        for row in setting["values"]
        if row["name"] in names and row["host_over_virtual"]
    )


def _of_setting(setting: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for n, row in enumerate(setting["values"]):
        if row["host_over_virtual"] is None:
            continue
        yield (
            "" if n else str(setting["setting"]),
            SHOWN[row["name"]],
            _mean(row, "host"),
            _mean(row, "virtual"),
            Number(row["host_over_virtual"]),
        )


def _mean(row: Mapping[str, Any], where: str) -> str:
    """A mean and its standard error."""
    error = row[f"{where}_error"]
    mean = str(Number(row[f"{where}_mean"]))
    return f"{mean} ± {Number(error, digits=2)}" if error is not None else mean


def _differ(row: Mapping[str, Any]) -> bool:
    """Return whether two means are further apart than chance explains."""
    errors = row["host_error"], row["virtual_error"]
    if None in errors or row["host_over_virtual"] is None:
        return False
    apart = abs(row["host_mean"] - row["virtual_mean"])
    return bool(apart > DIFFERS_ERRORS * sum(error**2 for error in errors) ** 0.5)


def set_ns3(f: Facts, record: Mapping[str, Any]) -> None:
    """Set what ns-3 says of the sixty trials, of a FIFO and of RED, beside the virtual kernel."""
    f.ns3_version = str(record["ns3"])
    f.ns3 = table(
        ("what", "runs of ns-3", "value", "ns-3", "virtual kernel", "ratio"),
        (
            (
                "" if n else str(compared["what"]),
                "" if n else whole(compared["runs"]["ns3"]),
                str(row["name"]),
                Number(row["ns3"]),
                Number(row["virtual"]),
                Number(row["ratio"]),
            )
            for compared in record["comparisons"]
            for n, row in enumerate(compared["rows"])
        ),
    )
    at_random, _, *queues = record["comparisons"]
    paths = sorted({trial["rtt_ms"] for trial in at_random["trials"]})
    by_path = {
        rtt_ms: [trial["ratio"] for trial in at_random["trials"] if trial["rtt_ms"] == rtt_ms]
        for rtt_ms in paths
    }
    f.ns3_by_path = table(
        ("RTT (ms)", "trials", "ns-3's goodput over ours: mean", "least", "most"),
        (
            (
                Number(rtt_ms),
                whole(len(ratios)),
                Number(statistics.geometric_mean(ratios)),
                Number(min(ratios)),
                Number(max(ratios)),
            )
            for rtt_ms, ratios in by_path.items()
        ),
    )
    # Goodput goes with the root of the losses, so it has half their relative error.
    few = min(trial["losses"] for trial in at_random["trials"])
    f.ns3_least_losses, f.ns3_chance = whole(few), Number(50 / few**0.5, "%", 1)
    seeds = record["seeds"]
    f.ns3_again_rtt = Number(seeds["rtt_ms"], "ms")
    f.ns3_again_runs = whole(len(seeds["ratios"]))
    f.ns3_again = Numbers(tuple(seeds["ratios"]))
    f.ns3_stalls = min(seeds["ratios"]) < STALLED
    of_queues = [row["ratio"] for compared in queues for row in compared["rows"]]
    f.ns3_queues = Numbers((min(of_queues), max(of_queues)))


def set_stock(f: Facts, record: Mapping[str, Any]) -> None:
    """Set what a kernel without patches measured in real time, over ours in virtual time, by lab and value."""
    rows: Sequence[Mapping[str, Any]] = record["summary"]
    f.stock_on, f.stock_pairs = str(record["begun"]), whole(len(record["pairs"]))
    f.stock_lasts = whole(record["seconds"], "s")
    f.stock = table(
        ("lab", "value", "pairs", "mean ratio", "95 % interval", "least and largest of the pairs"),
        (
            (
                "" if n and rows[n - 1]["lab"] == row["lab"] else str(row["lab"]),
                SHOWN[row["value"]].split(" (")[0],
                whole(row["pairs"]),
                Number(row["mean_ratio"], digits=4),
                _ends(row["low"], row["high"]),
                _ends(row["least"], row["most"]),
            )
            for n, row in enumerate(rows)
        ),
    )
    f.stock_ratios = Numbers(tuple(row["mean_ratio"] for row in rows))
    surely = [row for row in rows if row["low"] is not None and not row["low"] <= 1 <= row["high"]]
    names = [f"{SHOWN[row['value']]} ({row['lab']})" for row in surely]
    f.stock_differ = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"
    f.stock_values, f.stock_surely_differ = whole(len(rows)), whole(len(surely))
    f.stock_rates = Numbers(
        tuple(row["mean_ratio"] for row in rows if row["value"].endswith("goodput_bps"))
    )
    if "one_bbr" in record:
        _set_one_bbr(f, record["one_bbr"])


def _set_one_bbr(f: Facts, compared: Mapping[str, Any]) -> None:
    """Set one BBR flow's part in both kernels, and whether the clock can be why the witness gives it less."""
    stock, ours = (
        [100 * pair["values"]["rival_share"][place] for pair in compared["pairs"]]
        for place in (0, 1)
    )
    f.stock_bbr, f.stock_bbr_ours = (Interval.of_mean(parts, "%") for parts in (stock, ours))
    f.stock_bbr_lasts = whole(compared["seconds"], "s")
    apart = Interval.of_difference(stock, ours, "%", 2)
    f.stock_bbr_apart = apart
    f.clock_takes_nothing_from_bbr = apart.low_value <= 0 <= apart.high_value


def _ends(low: float | None, high: float | None) -> str:
    return (
        ""
        if low is None or high is None
        else f"{Number(low, digits=4)} to {Number(high, digits=4)}"
    )


def set_selftests(f: Facts, record: Mapping[str, Any]) -> None:
    """Set how Linux's own tests end in a kernel without patches and in ours, in real time and in virtual time."""
    f.selftests_on = str(record["date"])
    f.selftests = table(
        ("the patched kernel", "same verdict", "of these passed", "of these failed", "of these too late", "differ", "vary", "skipped in both"),
        (
            (
                f"in {'real' if place == 'patched' else 'virtual'} time",
                whole(sum(counts.get(word, 0) for word in ("pass", "fail", "timeout"))),
                whole(counts.get("pass", 0)),
                whole(counts.get("fail", 0)),
                whole(counts.get("timeout", 0)),
                whole(counts.get("differ", 0)),
                whole(counts.get("vary", 0)),
                whole(counts.get("skip", 0)),
            )
            for place, counts in record["counts"].items()
        ),
    )  # fmt: skip
    unlike: dict[str, list[str]] = {}
    for place, programs in record["differ"].items():
        for name in programs:
            unlike.setdefault(name, []).append("real" if place == "patched" else "virtual")
    f.selftests_explained = table(
        ("program whose verdicts differ", "clock", "why"),
        (
            (f"`{name}`", " and ".join(times), record["explained"].get(name, "not found out yet"))
            for name, times in unlike.items()
        ),
    )
    f.selftests_programs = whole(len(record["tests"]))
    f.selftests_cannot = whole(len(record["cannot"]))
    f.selftests_checks = whole(record["counts"]["virtual"].get("pass", 0))
