"""Lab 03: from all senders' files to three small ones that a report is written of.

    python3 flows_report.py FILES OUT [--average own ...]

FILES has the senders' folders (iperf3's JSON, samples of ss, events or what was counted instead),
OUT the router's queue.txt; there the results go:

streams.txt  each data connection: node, port, number of its file, own rate (bit/s)
flows.txt    a line '# START END' (Unix times), then each flow in this interval: node, port, number
             of its file, algorithm, goodput (bit/s), mean RTT (ms), segments sent,
             retransmissions, halvings
groups.txt   each algorithm: its name, its flows, the sum of their goodputs (bit/s)
summary.txt  what a report quotes: a name and a number a line

Needs nothing but Python 3.9 or later.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

MSS_BYTES = 1448


class Stream(NamedTuple):
    """A data connection by iperf3; `number` is that of its file, `own_bps` over its own whole life."""

    node: str
    port: int
    number: int
    own_bps: float


class Flow(NamedTuple):
    """A connection in the interval that all have in common: a line of flows.txt."""

    node: str
    port: int
    number: int
    algorithm: str
    goodput_bps: float
    rtt_ms: float
    segments: int
    retransmissions: int
    halvings: int

    def line(self) -> str:
        where = f"{self.node} {self.port} {self.number} {self.algorithm}"
        return (
            f"{where} {self.goodput_bps:.0f} {self.rtt_ms:.3f} {self.segments} "
            f"{self.retransmissions} {self.halvings}\n"
        )


class Sample(NamedTuple):
    """What ss said of one connection at one moment: Unix time, its node and port, ss's line."""

    time_s: float
    flow: tuple[str, int]
    text: str


def tests(paths: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What iperf3 wrote; of a test that it could not write to the end, only a remark."""
    for path in paths:
        try:
            yield path, json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            print(f"{path} is not whole: {error}", file=sys.stderr)


# --8<-- [start:streams]
def streams(paths: Iterable[Path]) -> Iterator[Stream]:
    """Every data connection in iperf3's files, with its rate over its own whole life (bit/s)."""
    for path, test in tests(paths):
        ports = {one["socket"]: one["local_port"] for one in test["start"]["connected"]}
        number = int(path.stem.replace("iperf3-", ""))
        for stream in test["end"].get("streams", []):
            received = stream["receiver"]
            port = ports[received["socket"]]
            yield Stream(path.parent.name, port, number, received["bits_per_second"])
    # --8<-- [end:streams]


def samples(paths: Iterable[Path]) -> Iterator[Sample]:
    """Every connection in every sample of these files. Before a sample stands a line '# t=TIME'."""
    for path in paths:
        time_s = 0.0
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("# t="):
                    time_s = float(line[4:])
                elif " bytes_acked:" in line:
                    port = int(line.split(maxsplit=4)[3].rpartition(":")[2])
                    yield Sample(time_s, (path.parent.name, port), line)


def common_interval(found: Iterable[Sample], warmup_s: float) -> tuple[float, float]:
    """From the last flow's first sample, and `warmup_s` more, to the first flow's last (Unix times)."""
    first: dict[tuple[str, int], float] = {}
    last: dict[tuple[str, int], float] = {}
    for sample in found:
        first.setdefault(sample.flow, sample.time_s)
        last[sample.flow] = sample.time_s
    if not first:
        sys.exit("flows_report.py: there is no flow in the senders' files")
    return max(first.values()) + warmup_s, min(last.values())


def value(text: str, name: str) -> str:
    """What stands behind a name in a line of ss: '0/8' behind 'retrans:'; '0' where it doesn't stand."""
    found = re.search(f" {name}([0-9./]+)", text)
    return found[1] if found else "0"


def flow_of(stream: Stream, seen: list[Sample], halvings: int, average: str) -> Flow:
    """The connection between the first and the last of these samples."""
    first, last = seen[0], seen[-1]

    def grown(name: str, part: int = 0) -> int:
        """How much a counter has grown; of 'retrans:' part -1 is the count since the beginning."""
        texts = (value(sample.text, name).split("/") for sample in (first, last))
        before, after = (int(parts[part]) for parts in texts)
        return after - before

    goodput_bps = 8 * grown("bytes_acked:") / (last.time_s - first.time_s)
    return Flow(
        stream.node,
        stream.port,
        stream.number,
        algorithm=last.text.split(maxsplit=6)[5],
        goodput_bps=stream.own_bps if average == "own" else goodput_bps,
        rtt_ms=sum(float(value(one.text, "rtt:").split("/")[0]) for one in seen) / len(seen),
        segments=grown("data_segs_out:"),
        retransmissions=grown("retrans:", -1),
        halvings=halvings,
    )


def count_halvings(
    paths: Iterable[Path], start_s: float, end_s: float
) -> dict[tuple[str, int], int]:
    """Of each connection, how often its window was halved between two Unix times.

    A line of an events.txt is a time, a port and the state that begins then. TCP's states 0 and 1
    are normal; 2, 3 and 4 begin with a smaller window. Each line of a counted.txt, which has no
    state, is a halving.
    """
    counted: dict[tuple[str, int], int] = defaultdict(int)
    state: dict[tuple[str, int], int] = defaultdict(int)
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                time_s, port, *states = line.split()
                flow, now = (path.parent.name, int(port)), int(states[0]) if states else 2
                if start_s <= float(time_s) <= end_s and now > 1 and state[flow] < 2:
                    counted[flow] += 1
                if states:
                    state[flow] = now
    return counted


def per_flow(
    known: list[Stream],
    ss: list[Path],
    own: list[Path],
    settings: argparse.Namespace,
) -> tuple[tuple[float, float], list[Flow]]:
    """The common interval (Unix times), and each of the `known` connections in it.

    `ss` are samples of ss; they are read twice. `own` are events, or what was counted instead.
    """
    names = {(one.node, one.port) for one in known}

    def of_known() -> Iterator[Sample]:
        return (sample for sample in samples(ss) if sample.flow in names)

    start_s, end_s = common_interval(of_known(), settings.warmup_s)
    inside: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in of_known():
        if start_s <= sample.time_s <= end_s:
            inside[sample.flow].append(sample)
    halvings = count_halvings(own, start_s, end_s)
    return (start_s, end_s), [
        flow_of(stream, seen, halvings[stream.node, stream.port], settings.average)
        for stream in known
        if (seen := inside[stream.node, stream.port]) and seen[-1].time_s > seen[0].time_s
    ]


# --8<-- [start:label_by_data]
def label_by_data(flow: Flow) -> str:
    """The algorithm that the connection itself says it has, by ss."""
    return flow.algorithm
    # --8<-- [end:label_by_data]


# --8<-- [start:label_by_order]
def label_by_order(flow: Flow, algorithms: list[str]) -> str:
    """Each sender has two files: those of CONGESTION_CONTROL, then those of its RIVAL."""
    return algorithms[flow.number - 1] if flow.number <= len(algorithms) else "unknown"
    # --8<-- [end:label_by_order]


def groups(flows: Iterable[Flow], label_by: str, algorithms: list[str]) -> list[str]:
    """A line for each algorithm: its name, its flows, and the sum of their goodputs (bit/s)."""
    rates: dict[str, list[float]] = defaultdict(list)
    for flow in flows:
        name = label_by_data(flow) if label_by == "data" else label_by_order(flow, algorithms)
        rates[name].append(flow.goodput_bps)
    return sorted(f"{name} {len(those)} {sum(those):.0f}\n" for name, those in rates.items())


def ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


def fitted_c(rates: Iterable[tuple[float, float, float]]) -> float:
    """The Mathis model's C by least squares, of goodputs (bit/s), RTTs (s) and p; nan of none."""
    above = below = 0.0
    for goodput_bps, rtt_s, p in rates:
        if p > 0:
            x = 8 * MSS_BYTES / rtt_s / math.sqrt(p)
            above += x * goodput_bps
            below += x * x
    return ratio(above, below)


def summary(flows: list[Flow], drops: int, settings: argparse.Namespace) -> Iterator[str]:
    """What a report quotes, a name and a number a line. `drops` are the router's."""
    by_drops, measured_rtt = settings.loss_by == "drops", settings.rtt_by == "measured"

    def rtt_ms(flow: Flow) -> float:
        return flow.rtt_ms if measured_rtt else settings.rtt_ms

    def fitted(p_of: Callable[[Flow], float]) -> float:
        return fitted_c((flow.goodput_bps, rtt_ms(flow) / 1000, p_of(flow)) for flow in flows)

    n = settings.flows if settings.count_by == "asked" else len(flows)
    sum_bps = sum(flow.goodput_bps for flow in flows)
    squares = sum(flow.goodput_bps * flow.goodput_bps for flow in flows)
    halvings = sum(flow.halvings for flow in flows)
    losses = drops if by_drops else sum(flow.retransmissions for flow in flows)
    # Nobody knows whose packets the router dropped: by drops all flows have the same p.
    p_of_all = ratio(drops, sum(flow.segments for flow in flows))
    mean_rtt_ms = ratio(sum(map(rtt_ms, flows)), len(flows)) if measured_rtt else settings.rtt_ms
    yield f"flows {n}\nsum_bps {sum_bps:.0f}\nsum_of_squares {squares:.6e}\n"
    yield f"jain {ratio(sum_bps * sum_bps, n * squares):.6f}\n"
    yield f"rtt_ms {mean_rtt_ms:.3f}\n"
    yield f"losses {losses}\nhalvings {halvings}\n"
    if halvings:
        yield f"losses_per_halving {losses / halvings:.3f}\n"
    by_losses = fitted(
        lambda flow: p_of_all if by_drops else ratio(flow.retransmissions, flow.segments)
    )
    by_halvings = fitted(lambda flow: ratio(flow.halvings, flow.segments))
    for name, c in (("c_by_losses", by_losses), ("c_by_halvings", by_halvings)):
        if not math.isnan(c):
            yield f"{name} {c:.3f}\n"


def drops_between(queue: Path, start_s: float, end_s: float) -> int:
    """Packets that the queue dropped between two Unix times, by samples of tc: of its innermost qdisc."""
    first = last = 0
    time_s = 0.0
    with open(queue, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# t="):
                time_s = float(line[4:])
                continue
            drops = json.loads(line)[-1]["drops"]
            if time_s < start_s:
                first = drops
            if time_s <= end_s:
                last = drops
    return last - first


def read_flows(path: Path) -> tuple[float, float, list[Flow]]:
    """The interval (Unix times) and the flows of a flows.txt.

    What was rounded there is so in all that follows from it: anybody can compute it again.
    """
    interval, *lines = path.read_text(encoding="utf-8").splitlines()
    _, start, end = interval.split()
    found = []
    for line in lines:
        node, port, number, algorithm, goodput_bps, rtt_ms, *counts = line.split()
        flow = (node, int(port), int(number), algorithm, float(goodput_bps), float(rtt_ms))
        found.append(Flow(*flow, *map(int, counts)))
    return float(start), float(end), found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Lab 03: from all senders' files to summary.txt")
    parser.add_argument("files", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--flows", type=int, required=True)
    parser.add_argument("--rtt-ms", type=float, required=True)
    parser.add_argument("--warmup-s", type=float, required=True)
    parser.add_argument("--algorithms", nargs="+", default=[])
    for name, *choices in (
        ("--average", "common", "own"),
        ("--halvings-by", "events", "samples", "samples-flat-is-rise"),
        ("--loss-by", "drops", "retransmissions"),
        ("--rtt-by", "measured", "base"),
        ("--count-by", "found", "asked"),
        ("--label-by", "data", "order"),
    ):
        parser.add_argument(name, choices=choices, default=choices[0])
    return parser.parse_args()


def main() -> None:
    settings = parse_arguments()
    files, out = settings.files, settings.out

    def write(name: str, lines: Iterable[str]) -> None:
        with open(out / name, "w", encoding="utf-8") as file:
            file.writelines(lines)

    known = list(streams(sorted(files.glob("sender-*/iperf3-*.json"))))
    write(
        "streams.txt", (f"{one.node} {one.port} {one.number} {one.own_bps:.0f}\n" for one in known)
    )
    own = "events.txt" if settings.halvings_by == "events" else "counted.txt"
    ss, own_files = (sorted(files.glob(f"sender-*/{name}")) for name in ("ss.txt", own))
    interval, found = per_flow(known, ss, own_files, settings)
    write("flows.txt", ["# {:.6f} {:.6f}\n".format(*interval), *(flow.line() for flow in found)])
    start_s, end_s, flows = read_flows(out / "flows.txt")
    write("groups.txt", groups(flows, settings.label_by, settings.algorithms))
    write("summary.txt", summary(flows, drops_between(out / "queue.txt", start_s, end_s), settings))


if __name__ == "__main__":
    main()
