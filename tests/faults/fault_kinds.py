"""The kinds of faults that the checks were written with. Those that judge them stand in kept_kinds.py."""

from __future__ import annotations

import functools
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from lab_nodes import (
    BOTTLENECK,
    RECEIVERS,
    SENDERS,
    SET,
    Params,
    at,
    before,
    damaged,
    during,
    exchange,
    logs,
    policed,
    replaced_root,
)

from faults import TURNS, Fault, Kind
from measuretwice.lab import Lab, Value

QUEUE_LABS = ("buffers", "scale", "variants", "queues")


def sender(lab: Lab, chance: random.Random) -> str:
    return chance.choice(SENDERS[lab.name])


def receiver(lab: Lab, chance: random.Random) -> str:
    return chance.choice(RECEIVERS[lab.name])


def sysctl(name: str, value: str, who: Callable[[Lab, random.Random], str]) -> Callable[..., Fault]:
    return lambda lab, params, chance: before(at(who(lab, chance), f"sysctl -qw '{name}={value}'"))


def option(words: str, only: str = "-c") -> Callable[..., Fault]:
    """iperf3's client, or server (-s), gets further options."""
    function = (
        f'iperf3() {{ if [[ " $* " == *" {only} "* ]]; then command iperf3 "$@" {words}; '
        f'else command iperf3 "$@"; fi; }}; export -f iperf3'
    )
    return lambda lab, params, chance: before(function)


def other_value(name: str, draw: Callable[[Params, random.Random], Value]) -> Callable[..., Fault]:
    """A parameter that has another value than the plan says, everywhere."""
    return lambda lab, params, chance: Fault(exports={name: draw(params, chance)})


def times(name: str, *factors: float) -> Callable[..., Fault]:
    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        value = float(params[name]) * chance.choice(factors)
        return Fault(exports={name: round(value) if isinstance(params[name], int) else value})

    return make


def mtu_one(lab: Lab, params: Params, chance: random.Random) -> Fault:
    node, device = BOTTLENECK[lab.name]
    mtu = chance.choice((576, 1000, 1280, 1400))
    return before(at(node, f"ip link set {device} mtu {mtu}"))


def offload_one(lab: Lab, params: Params, chance: random.Random) -> Fault:
    return before(at(sender(lab, chance), "ethtool -K eth0 tso on gso on"))


def old_tbf(lab: Lab, params: Params, chance: random.Random) -> Fault:
    rate = float(params["rate_mbit"]) * chance.uniform(0.05, 0.3)
    if lab.name == "mathis":
        rate = chance.uniform(0.3, 2)
    words = f"tbf rate {rate:.3f}mbit burst 15000 limit 60000"
    return before(replaced_root(sender(lab, chance), "eth0", words))


def old_netem(
    words: Callable[[random.Random], str], to_sender: bool = False
) -> Callable[..., Fault]:
    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        node = receiver(lab, chance) if to_sender else sender(lab, chance)
        return before(replaced_root(node, "eth0", f"netem limit 100000 {words(chance)}"))

    return make


def changed_netem(words: Callable[[float, float, random.Random], str]) -> Callable[..., Fault]:
    """netem at the bottleneck with other words, made of its loss in percent and its delay in ms."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        node, device = BOTTLENECK[lab.name]
        options = words(100 * float(params["loss_ratio"]), float(params["rtt_ms"]) / 2, chance)
        change = f"tc qdisc change dev {device} parent 1:3 handle 3: netem {options} limit 100000"
        return before(at(node, change))

    return make


def changed_loss(percent: float, delay_ms: float, chance: random.Random) -> str:
    return f"delay {delay_ms}ms loss {percent * chance.choice((0.1, 0.3, 3, 10)):.6f}%"


def correlated_loss(percent: float, delay_ms: float, chance: random.Random) -> str:
    return f"delay {delay_ms}ms loss {percent:.6f}% 40%"


def jitter(percent: float, delay_ms: float, chance: random.Random) -> str:
    return f"delay {delay_ms}ms {delay_ms / 3:.3f}ms loss {percent:.6f}%"


def class_rate(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """htb's class, which no snapshot shows: kbit for Mbit, or an eighth."""
    rate = float(params["rate_mbit"]) * chance.choice((0.001, 0.0005))
    words = f"rate {rate:.4f}mbit burst 15000 cburst 15000"
    return before(at("router", f"tc class change dev eth1 parent 1: classid 1:3 htb {words}"))


def second_flow(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Somebody else's test over the same path, from the same host to the same receiver."""
    a, b = sender(lab, chance), receiver(lab, chance)
    address = (
        f"$(ip -n {b} -4 -o addr show dev eth0 | awk '{{ sub(/\\/.*/, \"\", $4); print $4 }}')"
    )
    return Fault(
        before=[f"({at(b, 'iperf3 -s -p 5999 -1 >/dev/null')}) &"],
        during=[f"sleep 1; {at(a, f'iperf3 -c {address} -p 5999 -t 1000 -C cubic >/dev/null')}"],
    )


def changed_meanwhile(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Somebody changes the sender's queue while the test runs."""
    wait_s = min(6, round(float(params.get("duration_s", 15)) * 0.4))
    change = replaced_root(sender(lab, chance), "eth0", "netem limit 100000 delay 30ms")
    return during(f"sleep {wait_s}; {change}")


def down_and_up(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A cable that is out for a fifth of the time; its routes are set again."""
    name = sender(lab, chance)
    [node] = [node for node in lab.file.topology.nodes if node.name == name]
    out_s = max(2, round(float(params["duration_s"]) / 5))
    down, up = (at(name, f"ip link set eth0 {state}") for state in ("down", "up"))
    routes = "; ".join(at(name, f"ip route replace {route}") for route in node.routes)
    return during(f"sleep 2; {down}; sleep {out_s}; {up}; {routes}")


def policer(lab: Lab, params: Params, chance: random.Random) -> Fault:
    node, _ = BOTTLENECK[lab.name]
    rate = 0.3 * float(params["rate_mbit"]) if lab.name != "mathis" else 0.5
    return before(*policed(node, f"{rate:.3f}mbit"))


def receivers_route(metric: Callable[[random.Random], str]) -> Callable[..., Fault]:
    """The first route over a gateway that a receiver has gets a metric."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        node = receiver(lab, chance)
        return before(
            f"ip -n {node} route show | grep -m1 via | "
            f"while read -r route; do ip -n {node} route change $route {metric(chance)}; done"
        )

    return make


def file_of(run: Path, lab: Lab, name: str) -> Path:
    """A file of that name at the node whose it is: what tc prints at the bottleneck's, the others at a sender's."""
    node = BOTTLENECK[lab.name][0] if name.startswith("qdisc") else SENDERS[lab.name][0]
    return sorted((run / "raw" / node).glob(name))[0]


def cut_off(name: str) -> Callable[..., Fault]:
    """A file that is cut off in its middle."""

    def damage(lab: Lab, run: Path) -> None:
        path = file_of(run, lab, name)
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])

    return lambda lab, params, chance: damaged(functools.partial(damage, lab))


def from_another(name: str) -> Callable[..., Fault]:
    """A file from another run of the same settings."""

    def damage(lab: Lab, run: Path, twin: Path) -> None:
        path = file_of(run, lab, name)
        shutil.copy(twin / "raw" / path.parent.name / path.name, path)

    return lambda lab, params, chance: Fault(damage=functools.partial(damage, lab), twin=True)


def swapped(first: str, second: str) -> Callable[..., Fault]:
    def damage(lab: Lab, run: Path) -> None:
        path = file_of(run, lab, first)
        exchange(path, path.with_name(second))

    return lambda lab, params, chance: damaged(functools.partial(damage, lab))


def longer_said(run: Path) -> None:
    """iperf3's own sum, ten times what it was: somebody retyped it."""
    path = logs(run, "iperf3*.json")[0]
    document = json.loads(path.read_text())
    document["end"]["sum_received"]["bits_per_second"] *= 10
    path.write_text(json.dumps(document))


def kind(
    name: str, causes: set[str] | frozenset[str], make: Callable[..., Fault], *labs: str
) -> Kind:
    return Kind(name, frozenset(causes), make, labs or TURNS)


KNOWN = (
    kind("timestamps-one-host", SET | {"timestamps", "segment-size"}, sysctl("net.ipv4.tcp_timestamps", "1", sender), "mathis"),
    kind("sack-off", SET, sysctl("net.ipv4.tcp_sack", "0", sender)),
    kind("receive-buffer-small", SET | {"receive-window"}, sysctl("net.ipv4.tcp_rmem", "4096 8192 16384", receiver)),
    kind("send-buffer-small", SET | {"send-buffer"}, sysctl("net.ipv4.tcp_wmem", "4096 8192 16384", sender)),
    kind("mtu-one", SET | {"mtu", "segment-size"}, mtu_one),
    kind("offload-one", SET | {"offload"}, offload_one),
    kind("tbf-left-over", SET, old_tbf),
    kind("delay-left-over", SET | {"round-trip-time", "rtt-doubling"}, old_netem(lambda chance: f"delay {chance.choice((5, 20, 50))}ms")),
    kind("loss-left-over", SET | {"other-drops"}, old_netem(lambda chance: f"loss {chance.choice((0.5, 1, 3))}%")),
    kind("loss-of-acks", SET | {"other-drops"}, old_netem(lambda chance: f"loss {chance.choice((2, 5, 10))}%", to_sender=True)),
    kind("reordering", SET, old_netem(lambda chance: "delay 4ms reorder 70%")),
    kind("duplicates", SET, old_netem(lambda chance: f"duplicate {chance.choice((1, 3))}%")),
    kind("corruption", SET, old_netem(lambda chance: f"corrupt {chance.choice((0.5, 1))}%")),
    kind("loss-wrong", SET | {"loss-ratio", "loss-percent"}, changed_netem(changed_loss), "mathis"),
    kind("loss-correlated", SET | {"loss-ratio"}, changed_netem(correlated_loss), "mathis"),
    kind("jitter", SET, changed_netem(jitter), "mathis"),
    kind("class-rate-kbit", {"queueing", "unexplained"}, class_rate, "mathis"),
    kind("rate-unit", {"unexplained", "link-rate", "queueing"} | SET, times("rate_mbit", 0.001, 0.125, 8), *QUEUE_LABS),
    kind("buffer-wrong", SET | {"size-suffix"}, times("buffer_bytes", 0.125, 0.25, 4), "buffers", "scale", "variants"),
    kind("delay-doubled", SET | {"rtt-doubling", "round-trip-time"}, times("rtt_ms", 2, 0.5), "mathis", "scale", "queues"),
    kind("burst-wrong", SET, times("burst_bytes", 0.5, 30), *QUEUE_LABS),
    kind("limit-wrong", SET | {"netem-limit"}, times("limit_packets", 0.0005, 0.001), "mathis", "scale"),
    kind("algorithm-wrong", {"wrong-algorithm"}, other_value("congestion_control", lambda params, chance: chance.choice([name for name in ("reno", "cubic", "bbr", "vegas") if name != params["congestion_control"]]))),
    kind("timestamps-everywhere", SET | {"timestamps"}, other_value("timestamps", lambda params, chance: "on"), "mathis"),
    kind("offloads-everywhere", SET | {"offload"}, other_value("offloads", lambda params, chance: "on"), "mathis", "buffers", "scale", "queues"),
    kind("segment-smaller", {"segment-size", "mtu", "timestamps"}, option("-M 1000"), "mathis"),
    kind("test-shorter", {"duration", "unexplained"}, option("-t 5"), "mathis"),
    kind("rate-limited-sender", {"application-limited"}, option("-b 500K"), "mathis", "buffers", "variants"),
    kind("window-option", {"receive-window", "send-buffer", "application-limited"}, option("-w 8K"), "mathis", "buffers", "variants"),
    kind("two-streams", {"flows", "other-traffic", "unexplained"}, option("-P 2"), "mathis", "variants", "queues"),
    kind("reverse", {"unfit", "refused", "unexplained"}, option("-R"), "mathis", "buffers"),
    kind("udp", {"unfit", "refused", "unexplained"}, option("-u -b 2M"), "mathis", "buffers"),
    kind("other-flow", {"other-traffic", "flows"}, second_flow),
    kind("changed-meanwhile", SET, changed_meanwhile),
    kind("cable-out", {"unexplained", "configuration", "retransmissions", "interface-drops"}, down_and_up),
    kind("policer", SET | {"lost-between"}, policer),
    kind("quickack", SET, receivers_route(lambda chance: "quickack 1"), "mathis", "buffers", "variants", "queues"),
    kind("route-window", SET | {"receive-window"}, receivers_route(lambda chance: f"window {chance.choice((8000, 16000, 30000))}"), "mathis", "buffers", "variants", "queues"),
    kind("iperf3-cut-off", {"refused"}, cut_off("iperf3*.json")),
    kind("ss-cut-off", {"refused", "samples"}, cut_off("ss.txt")),
    kind("tc-from-another", {"loss-ratio", "retransmissions", "lost-between", "two-runs"}, from_another("qdisc.after.json"), "mathis"),
    kind("iperf3-from-another", {"refused", "bandwidth", "two-runs"}, from_another("iperf3*.json"), "mathis", "buffers", "variants"),
    kind("ss-from-another", {"refused", "bandwidth", "two-runs"}, from_another("ss.txt"), "mathis", "buffers", "variants"),
    kind("before-and-after-swapped", {"refused", "two-runs", "lost-between", "loss-ratio"}, swapped("qdisc.before.json", "qdisc.after.json"), "mathis"),
    kind("sum-retyped", {"bandwidth", "link-rate", "path"}, lambda lab, params, chance: damaged(longer_said), "mathis"),
)  # fmt: skip
