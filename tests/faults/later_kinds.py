"""Further kinds that judge the checks: written when the first kept kinds had been seen, by someone who hadn't yet read the checks."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

from kept_kinds import QUEUE_LABS, judge, part, rtt_s, share_mbit, signalled
from lab_nodes import (
    RECEIVER,
    SENDER,
    SET,
    Params,
    at,
    before,
    damaged,
    during,
    keep_first_samples,
    logs,
    policed,
    routes_changed,
    shift_samples,
)

from faults import Fault, Kind
from measuretwice.lab import Lab

SAMPLED = ("mathis", "buffers", "variants", "queues")
# Somebody else's host on the same path, the receiver it talks to, and that one's address.
OTHERS = {
    "buffers": ("g1", "d2", "10.10.20.12"), "variants": ("rival", "server", "10.4.3.2"),
    "queues": ("router-1", "host-3", "10.1.3.1"),
}  # fmt: skip


def interrupted(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Someone presses Ctrl-C before the test's time is over."""
    return during(f"sleep {part(params, chance.uniform(0.4, 0.8))}; {signalled('INT', '-c')}")


def window_clamped(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A route that lets no connection have a larger congestion window."""
    packets = 1e6 * share_mbit(lab, params) * rtt_s(lab, params) / 8 / 1448
    cwnd = max(2, round(packets * chance.uniform(0.15, 0.4)))
    return before(routes_changed(SENDER[lab.name], f"cwnd lock {cwnd}"))


def received_policed(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The receiving host throws away what comes too fast, behind every queue."""
    rate = share_mbit(lab, params) * chance.uniform(0.2, 0.5)
    return before(*policed(RECEIVER[lab.name], f"{1000 * rate:.0f}kbit"))


def many_mice(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Short connections over the same link, one after the other: somebody reads the news."""
    source, target, address = OTHERS[lab.name]
    size = round(1e6 * share_mbit(lab, params) / 8 * chance.uniform(0.3, 0.6))
    test = f"iperf3 -c {address} -p 5997 -n {size} >/dev/null"
    return Fault(
        before=[f"({at(target, 'iperf3 -s -p 5997 >/dev/null')}) &"],
        during=[f"trap - ERR; sleep 1; for n in {{1..60}}; do {at(source, test)} || true; sleep 1; done"],
    )  # fmt: skip


def counters_reset(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The queue is set up again in the midst of the test, as it was: its counters begin anew."""
    delay = float(params["rtt_ms"]) / 2
    words = f"delay {delay}ms loss {100 * float(params['loss_ratio']):.8f}% limit {params['limit_packets']}"
    remove = at("router", "tc qdisc del dev eth1 parent 1:3 handle 3:")
    put = at("router", f"tc qdisc add dev eth1 parent 1:3 handle 3: netem {words}")
    return during(f"sleep {part(params, chance.uniform(0.4, 0.7))}; {remove}; {put}")


def sampler_died(name: str) -> Callable[..., Fault]:
    """The program that samples the sockets or the queue ended early; what it wrote is whole."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        ratio = chance.uniform(0.3, 0.6)

        def damage(run: Path) -> None:
            for path in logs(run, name):
                keep_first_samples(path, ratio)

        return damaged(damage)

    return make


def hour_off(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The sender's samples carry the time of another time zone."""
    shift = 3600 * chance.choice((-5, -1, 1, 2))

    def damage(run: Path) -> None:
        for path in logs(run, "ss.txt"):
            shift_samples(path, shift)

    return damaged(damage)


def counted_early(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The second look at the counters came while the test still ran."""
    ratio = chance.uniform(0.4, 0.7)

    def damage(run: Path) -> None:
        for path in logs(run, "qdisc.after.json"):
            before = json.loads(path.with_name("qdisc.before.json").read_text())
            after = json.loads(path.read_text())
            for old, new in zip(before, after, strict=False):
                for name in ("bytes", "packets", "drops", "overlimits"):
                    if name in old and name in new:
                        new[name] = old[name] + round(ratio * (new[name] - old[name]))
            path.write_text(json.dumps(after))

    return damaged(damage)


def appended(name: str) -> Callable[..., Fault]:
    """A file that held another run's output already: the script wrote >> for >."""

    def damage(run: Path, twin: Path) -> None:
        for path in logs(run, name):
            earlier = twin / "raw" / path.parent.name / path.name
            path.write_text(earlier.read_text() + path.read_text())

    return lambda lab, params, chance: Fault(damage=damage, twin=True)


def commas(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A spreadsheet of another country has been over ss's log: 12.5 is 12,5."""

    def damage(run: Path) -> None:
        for path in logs(run, "ss.txt"):
            text = re.sub(r"(?<=rtt:)(\d+)\.(\d+)/(\d+)\.(\d+)", r"\1,\2/\3,\4", path.read_text())
            path.write_text(text)

    return damaged(damage)


LATER: tuple[Kind, ...] = (
    judge("interrupted", {"duration", "refused"}, interrupted, "the test was ended before its time", SAMPLED),
    judge("window-clamped", SET | {"application-limited"}, window_clamped, "a route holds the congestion window down", SAMPLED),
    judge("received-policed", {"lost-between", "other-drops", "interface-drops"} | SET, received_policed, "packets are lost behind the last queue", SAMPLED),
    judge("many-mice", {"other-traffic"}, many_mice, "more went through the link than the flows sent", SAMPLED[1:]),
    judge("counters-reset", {"two-runs", "lost-between", "loss-ratio", "refused"} | SET, counters_reset, "the router's counters don't cover the whole test", ("mathis",)),
    judge("sampler-died", {"samples", "refused"}, sampler_died("ss.txt"), "the samples of sockets end long before the test", SAMPLED),
    judge("queue-sampler-died", {"samples", "refused"}, sampler_died("queue.txt"), "the samples of the queue end long before the test", QUEUE_LABS),
    judge("hour-off", {"samples", "refused", "two-runs"}, hour_off, "the samples were taken at another time than the test", SAMPLED),
    judge("counted-early", {"two-runs", "lost-between", "samples", "refused"}, counted_early, "the counters end before the test does", SAMPLED),
    judge("ss-appended", {"two-runs", "refused", "samples"}, appended("ss.txt"), "this file holds two runs", SAMPLED),
    judge("iperf3-appended", {"two-runs", "refused"}, appended("iperf3.json"), "this file holds two tests", SAMPLED),
    judge("decimal-commas", {"samples", "refused"}, commas, "ss's numbers can't be read", SAMPLED),
)  # fmt: skip
