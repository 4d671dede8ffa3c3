"""The runs that a reviewer broke, and which the checker of that time passed over or took for something else.

Each is one run with settings of its own: its name says what was done. A run that only came out as too short is there a
second time, longer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from fault_kinds import option
from lab_nodes import SET, Params, at, before, replaced_root

from faults import Fault, Kind
from measuretwice.lab import Lab, Value

PATH: Mapping[str, Value] = {"rtt_ms": 20, "mss_bytes": 1460, "loss_ratio": 0.005, "duration_s": 60}
LINK: Mapping[str, Value] = {"rate_mbit": 20, "buffer_bytes": 250000, "duration_s": 30}
WIRE: Mapping[str, Value] = {
    "rate_mbit": 20, "buffer_bytes": 100000, "duration_s": 25, "average_from_s": 12,
}  # fmt: skip
CROWD: Mapping[str, Value] = {
    "rate_mbit": 20, "buffer_bytes": 600000, "duration_s": 30, "warmup_s": 5, "start_spread_ms": 1000,
}  # fmt: skip
QUEUES: Mapping[str, Value] = {"duration_s": 6, "rate_mbit": 50}
SETTINGS = {
    "mathis": (7, PATH), "buffers": (1, LINK), "variants": (2, WIRE), "queues": (41, QUEUES), "scale": (4, CROWD),
}  # fmt: skip


def towards_receiver(words: str) -> str:
    """Lab 01's netem towards juliet."""
    return at("router", f"tc qdisc change dev eth1 parent 1:3 handle 3: netem {words} limit 100000")


def broken(
    name: str,
    lab: str,
    causes: set[str] | frozenset[str],
    fault: Fault | Callable[..., Fault],
    **others: Value,
) -> Kind:
    trial, changes = SETTINGS[lab]

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        return fault if isinstance(fault, Fault) else fault(lab, params, chance)

    return Kind(name, frozenset(causes), make, (lab,), settings=(trial, {**changes, **others}))


def exported(**values: Value) -> Fault:
    return Fault(exports=values)


HOSTS: Sequence[str] = ("host-1", "host-2", "host-3", "host-4")

REVIEW = (
    broken("delay towards the receiver doubled", "mathis", SET | {"round-trip-time", "rtt-doubling"}, before(towards_receiver("delay 20ms loss 0.5%"))),
    broken("MTU on one interface", "mathis", SET | {"mtu", "segment-size"}, before(at("router", "ip link set eth1 mtu 1000"))),
    broken("timestamps on", "mathis", SET | {"timestamps"}, exported(timestamps="on")),
    broken("limit of the ACK path", "mathis", SET | {"netem-limit", "other-drops"}, before(replaced_root("router", "eth0", "netem delay 10ms limit 2"))),
    broken("the wrong socket", "mathis", {"wrong-socket"}, exported(pick_socket="algorithm"), congestion_control="cubic"),
    broken("a test of 5 s", "mathis", {"duration", "unexplained"}, exported(duration_s=5)),
    broken("rate in MB/s for Mbit/s", "buffers", SET | {"link-rate"}, exported(rate_mbit=160)),
    broken("loss in per cent for a ratio", "mathis", SET | {"loss-percent"}, exported(loss_percent=0.005)),
    broken("all of the delay one way, none back", "mathis", SET | {"round-trip-time", "rtt-doubling"}, before(replaced_root("router", "eth0", "netem delay 0ms limit 100000"))),
    broken("the buffer an eighth", "buffers", SET | {"size-suffix"}, exported(buffer_bytes=31250)),
    broken("a forgotten pfifo", "queues", SET | {"default-qdisc"}, exported(discipline="pfifo"), discipline="codel"),
    broken("rate eight times too high", "variants", SET | {"link-rate"}, exported(rate_mbit=160)),
    broken("the wrong algorithm (04)", "variants", {"wrong-algorithm"}, exported(congestion_control="reno")),
    broken("missing flows (03)", "scale", {"flows", "missing-flows"}, exported(flows=8)),
    broken("missing flows (05)", "queues", {"flows"}, exported(parallel_flows=1)),
    broken("loss with correlation", "mathis", SET | {"loss-ratio"}, before(towards_receiver("delay 10ms loss 0.5% 40%"))),
    broken("loss of ACKs", "mathis", SET | {"other-drops"}, before(replaced_root("router", "eth0", "netem delay 10ms loss 5% limit 100000"))),
    broken("rate in kbit/s for Mbit/s", "mathis", SET | {"link-rate", "queueing"}, exported(rate_mbit=0.3)),
    broken("rate in kbit/s for Mbit/s, 300 s", "mathis", SET | {"link-rate", "queueing"}, exported(rate_mbit=0.3), duration_s=300),
    broken("an old tbf at the sender", "mathis", SET, before(replaced_root("romeo", "eth0", "tbf rate 1mbit burst 15000 limit 60000"))),
    broken("an old tbf at the sender, 300 s", "mathis", SET, before(replaced_root("romeo", "eth0", "tbf rate 1mbit burst 15000 limit 60000")), duration_s=300),
    broken("an old tbf of 10 Mbit/s (04)", "variants", SET, before(replaced_root("client", "eth0", "tbf rate 10mbit burst 15000 limit 60000"))),
    broken("a sender limited by -b", "mathis", {"application-limited"}, option("-b 500K")),
    broken("a sender limited by -b, 300 s", "mathis", {"application-limited"}, option("-b 500K"), duration_s=300),
    broken("offloads on at one host", "mathis", SET | {"offload"}, before(at("romeo", "ethtool -K eth0 tso on gso on"))),
    broken("a receive window of 16 kB", "mathis", SET | {"receive-window"}, before(at("juliet", "sysctl -qw net.ipv4.tcp_rmem='4096 16384 32768'"))),
    broken("a receive window of 64 kB", "variants", SET | {"receive-window"}, before(at("server", "sysctl -qw net.ipv4.tcp_rmem='4096 131072 131072'"))),
    broken("two tests at once", "mathis", {"other-traffic", "flows"}, Fault(
        before=[f"({at('juliet', 'iperf3 -s -p 5999 -1 >/dev/null')}) &"],
        during=[f"sleep 1; {at('romeo', 'iperf3 -c 10.10.2.100 -p 5999 -t 1000 -C reno >/dev/null')}"],
    )),
    broken("CUBIC for Reno (01)", "mathis", {"wrong-algorithm"}, exported(congestion_control="cubic")),
    broken("Reno for HighSpeed (02)", "buffers", {"wrong-algorithm"}, exported(congestion_control="reno")),
    broken("ten Reno for five CUBIC and five Reno (03)", "scale", {"wrong-algorithm"}, exported(rival_flows=0)),
    broken("one host's delay doubled (02)", "buffers", SET | {"round-trip-time", "rtt-doubling"}, before(replaced_root("s1", "eth0", "netem delay 90ms limit 100000"))),
    broken("1 % loss at all hosts (05)", "queues", SET | {"other-drops"}, before(*(replaced_root(host, "eth0", "netem delay 1ms loss 1% limit 100000") for host in HOSTS))),
)  # fmt: skip
