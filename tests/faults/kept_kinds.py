"""The kinds of faults that judge the checks: whoever wrote them hadn't read the checks, nor the other way round.

Each is something that students, testbeds and kernels really do. Its last words are what an honest lab assistant would say of it, who has the
run's files and nothing else; its causes are the findings that would be right. Where the files don't show
the cause, that is `unexplained`.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from lab_nodes import (
    RECEIVER,
    SENDER,
    SENDERS,
    SET,
    Params,
    at,
    before,
    damaged,
    during,
    exchange,
    logs,
    replaced_root,
    routes_changed,
    shift_samples,
)

from faults import TURNS, Fault, Kind
from measuretwice.lab import Lab

# The address of the sender's own gateway.
GATEWAY = {
    "mathis": "10.10.1.1", "calibrate": "10.10.1.1", "buffers": "10.10.10.1", "scale": "10.10.1.1",
    "variants": "10.4.1.1", "queues": "10.1.1.3",
}  # fmt: skip
# An interface towards the receiver that has no queue: a cable on the way, of one flow only in labs 02 and 03.
PLAIN = {
    "mathis": ("romeo", "eth0"), "calibrate": ("romeo", "eth0"), "buffers": ("g2", "eth1"),
    "scale": ("switch", "eth1"), "variants": ("air", "eth1"), "queues": ("router-2", "eth1"),
}  # fmt: skip
# The interface towards the senders through which ACKs go, and the setting of its own delay, with its part of that.
REVERSE = {
    "mathis": ("router", "eth0", "rtt_ms", 0.5), "calibrate": ("router", "eth0", "rtt_ms", 0.5),
    "buffers": ("g2", "eth0", "back_delay_ms", 1.0), "scale": ("switch", "eth0", None, 0.0),
    "variants": ("wan", "eth0", "wire_rtt_ms", 0.5), "queues": ("host-3", "eth0", "rtt_ms", 0.5),
}  # fmt: skip
# The tbf that is the bottleneck: its node, its interface and handle, and what its limit is.
TBF = {
    "buffers": ("g1", "eth2", "", "buffer_bytes"), "scale": ("router", "eth10", "handle 1:", 1000000000),
    "variants": ("gateway", "eth2", "", "buffer_bytes"), "queues": ("router-1", "eth2", "handle 1:", 10000000),
}  # fmt: skip
QUEUE_LABS = ("buffers", "variants", "queues", "buffers", "variants", "queues", "scale")
SEVERAL = ("buffers", "queues", "buffers", "queues", "scale")
LONG_PATH = ("buffers", "variants")
UNEXPLAINED = frozenset({"unexplained"})


def model_mbit(params: Params) -> float:
    mss = float(params["mss_bytes"])
    return (
        1.2 * 8 * mss / (float(params["rtt_ms"]) / 1e3) / float(params["loss_ratio"]) ** 0.5 / 1e6
    )


def natural_mbit(lab: Lab, params: Params) -> float:
    """What goes through the bottleneck by itself."""
    if "loss_ratio" in params and float(params["loss_ratio"]) > 0:
        return min(model_mbit(params), float(params["rate_mbit"]))
    return float(params["rate_mbit"])


def share_mbit(lab: Lab, params: Params) -> float:
    """What goes through the cable of PLAIN by itself: of several flows one, in some labs."""
    return natural_mbit(lab, params) * {"scale": 0.1, "buffers": 0.35}.get(lab.name, 1)


def rtt_s(lab: Lab, params: Params) -> float:
    if lab.name == "buffers":
        return (2 * float(params["first_delay_ms"]) + float(params["back_delay_ms"])) / 1e3
    return float(params["wire_rtt_ms" if lab.name == "variants" else "rtt_ms"]) / 1e3


def wrapped(tool: str, body: str) -> str:
    """A program that does something else than it is asked for, on all nodes. In `body`, `command` calls the real one."""
    return f"{tool}() {{ {body}; }}; export -f {tool}"


def client_option(words: str) -> str:
    return wrapped(
        "iperf3",
        f'if [[ " $* " == *" -c "* ]]; then command iperf3 "$@" {words}; else command iperf3 "$@"; fi',
    )


def signalled(signal: str, which: str) -> str:
    """Every iperf3 that has been started with -c, or -s, gets a signal."""
    return (
        f"for pid in $(pidof iperf3); do tr '\\0' ' ' </proc/$pid/cmdline | "
        f"grep -q -e ' {which} ' && kill -{signal} $pid; done"
    )


def part(params: Params, ratio: float) -> int:
    """So much of the test's time, in seconds."""
    return max(1, round(float(params["duration_s"]) * ratio))


# --- sysctls, routes, memory -------------------------------------------------------------------


def window_scaling_off(lab: Lab, params: Params, chance: random.Random) -> Fault:
    node = chance.choice((SENDER, RECEIVER))[lab.name]
    return before(at(node, "sysctl -qw net.ipv4.tcp_window_scaling=0"))


def autotuning_off(lab: Lab, params: Params, chance: random.Random) -> Fault:
    return before(at(RECEIVER[lab.name], "sysctl -qw net.ipv4.tcp_moderate_rcvbuf=0"))


def memory_short(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Sockets of all hosts together may have some dozens of pages: no sysctl of a node shows it."""
    pages = chance.choice((12, 20, 30))
    return before(f"echo '{pages} {pages + 4} {pages + 8}' >/proc/sys/net/ipv4/tcp_mem")


def advmss_on_route(lab: Lab, params: Params, chance: random.Random) -> Fault:
    mss = round(float(params.get("mss_bytes", 1460)) * chance.uniform(0.35, 0.65))
    return before(routes_changed(RECEIVER[lab.name], f"advmss {mss}"))


# --- what else is on the path ------------------------------------------------------------------


def two_paths(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A load balancer that deals packets to two paths in turn, one longer by some milliseconds."""
    node, device = PLAIN[lab.name]
    longer = chance.choice((5, 10, 20))
    return before(
        replaced_root(node, device, f"handle 77: prio bands 2 priomap {'0 ' * 16}"),
        at(node, f"tc qdisc add dev {device} parent 77:2 netem delay {longer}ms limit 100000"),
        at(
            node,
            f"tc filter add dev {device} parent 77: protocol ip u32 match u16 1 1 at 4 flowid 77:2",
        ),
    )


def thin_ack_path(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """An uplink that can't carry the ACKs."""
    node, device, name, ratio = REVERSE[lab.name]
    mss = float(params.get("mss_bytes", 1448))
    rate = natural_mbit(lab, params) * 66 / 2 / mss * chance.uniform(0.2, 0.4)
    delay = f"delay {float(params[name]) * ratio:.4f}ms " if name else ""
    return before(
        replaced_root(node, device, f"netem {delay}rate {1000 * rate:.3f}kbit limit 1000")
    )


def bursty_cable(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A bad cable behind the queue that is looked at: it loses several packets in a row."""
    node, device = PLAIN[lab.name]
    good, bad = chance.choice((0.2, 0.5)), chance.choice((20, 40))
    return before(
        replaced_root(node, device, f"netem limit 100000 loss gemodel {good}% {bad}% 100% 0%")
    )


def slotted_hop(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A hop that sends in bursts, as wireless does."""
    node, device = PLAIN[lab.name]
    low = chance.choice((15, 30))
    return before(replaced_root(node, device, f"netem limit 100000 slot {low}ms {2 * low}ms"))


def other_bottleneck(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A slower link than the one that is meant to be the slowest, and nobody looks at its queue."""
    node, device = PLAIN[lab.name]
    rate = share_mbit(lab, params) * chance.uniform(0.25, 0.6)
    return before(replaced_root(node, device, f"netem limit 300 rate {1000 * rate:.1f}kbit"))


def other_discipline(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The rate is right, and below it another discipline rules the queue, or none."""
    node, device, _, _ = TBF[lab.name]
    now = str(params.get("discipline", "bfifo"))
    wanted = [
        words
        for words in ("fq_codel", "codel", "sfq", "pfifo limit 6")
        if now.split("_")[-1] not in words
    ]
    return before(
        f"ip netns exec {node} tc qdisc show dev {device} | awk '/tbf/ {{ print $3 }}' | while read -r handle; do "
        f"ip netns exec {node} tc qdisc replace dev {device} parent ${{handle}}1 {chance.choice(wanted)}; done"
    )


def farther_receiver(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """One receiver's delay is another than its neighbours'; pings had gone before."""
    name = {"buffers": "first_delay_ms", "scale": "rtt_ms", "queues": "rtt_ms"}[lab.name]
    delay = float(params[name]) * chance.choice((0.2, 3, 5))
    if lab.name == "queues":
        delay = chance.choice((10, 25))
    return before(replaced_root(RECEIVER[lab.name], "eth0", f"netem delay {delay}ms limit 100000"))


def udp_traffic(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Someone's video over the same link, from another host."""
    source, target, address = {
        "buffers": ("g1", "d2", "10.10.20.12"), "variants": ("rival", "server", "10.4.3.2"),
        "queues": ("router-1", "host-3", "10.1.3.1"), "scale": ("router", "receiver-9", "10.10.2.19"),
    }[lab.name]  # fmt: skip
    rate = float(params["rate_mbit"]) * chance.uniform(0.25, 0.6)
    client = f"iperf3 -c {address} -p 5998 -u -l 1400 -b {rate:.2f}M -t 1000 >/dev/null"
    return Fault(
        before=[f"({at(target, 'iperf3 -s -p 5998 >/dev/null')}) &"],
        during=[f"sleep 1; {at(source, client)}"],
    )


def rate_dip(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The link is slow for a while, and as it was again in the end: no snapshot knows of it."""
    node, device, handle, limit = TBF[lab.name]
    limit = params[limit] if isinstance(limit, str) else limit
    rate = float(params["rate_mbit"])

    def change(mbit: float) -> str:
        words = f"tbf rate {mbit}mbit burst {params['burst_bytes']} limit {limit}"
        return at(node, f"tc qdisc change dev {device} root {handle} {words}")

    low = rate * chance.uniform(0.1, 0.3)
    return during(
        f"sleep {part(params, 0.3)}; {change(low)}; sleep {part(params, 0.45)}; {change(rate)}"
    )


def loss_for_a_while(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Somebody tries another loss for half of the time, and sets the right one again."""

    def change(ratio: float) -> str:
        delay = float(params["rtt_ms"]) / 2
        words = f"delay {delay}ms loss {100 * ratio:.8f}% limit {params['limit_packets']}"
        return at("router", f"tc qdisc change dev eth1 parent 1:3 handle 3: netem {words}")

    loss = float(params["loss_ratio"])
    other = loss * chance.choice((0, 4, 8))
    return during(
        f"sleep {part(params, 0.2)}; {change(other)}; sleep {part(params, 0.6)}; {change(loss)}"
    )


# --- programs and hosts ------------------------------------------------------------------------


def suspended_sender(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A laptop that sleeps, a virtual machine that is moved: the sending program stands still."""
    still = part(params, chance.uniform(0.3, 0.5))
    stop, go = signalled("STOP", "-c"), signalled("CONT", "-c")
    return during(f"sleep {part(params, 0.3)}; {stop}; sleep {still}; {go}")


def suspended_receiver(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The receiving program stands still until its buffer is full, and longer."""
    still = part(params, chance.uniform(0.5, 0.6))
    stop, go = signalled("STOP", "-s"), signalled("CONT", "-s")
    return during(f"sleep {part(params, 0.25)}; {stop}; sleep {still}; {go}")


def paced(lab: Lab, params: Params, chance: random.Random) -> Fault:
    rate = share_mbit(lab, params) * chance.uniform(0.15, 0.4)
    if lab.name == "queues":
        rate /= 2
    return before(client_option(f"--fq-rate {1000 * rate:.0f}K"))


def omitted_start(lab: Lab, params: Params, chance: random.Random) -> Fault:
    return before(client_option(f"-O {part(params, chance.uniform(0.4, 0.8))}"))


def both_directions(lab: Lab, params: Params, chance: random.Random) -> Fault:
    return before(client_option("--bidir"))


def one_sender_late(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """One of the senders begins when the others are half through."""
    address = {"buffers": "10.10.10.12", "queues": "10.1.1.2", "scale": "10.10.1.13"}[lab.name]
    late = part(params, chance.uniform(0.45, 0.7))
    is_it = f'[[ " $* " == *" -c "* && -n $(ip -o -4 addr show to {address}) ]]'
    return before(wrapped("iperf3", f'if {is_it}; then sleep {late}; fi; command iperf3 "$@"'))


def pinged_gateway(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The path's round-trip time was measured to the first router only."""
    return Fault(early=[wrapped("ping", f'command ping "${{@:1:$#-1}}" {GATEWAY[lab.name]}')])


def rare_samples(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """Three samples of a run that was to have hundreds."""
    return Fault(
        exports={"sample_interval_s": float(params["duration_s"]) * chance.uniform(0.3, 0.45)}
    )


# --- files -------------------------------------------------------------------------------------


def other_interface(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The queue of another interface was sampled, one that has none."""
    noqueue = '[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{},"bytes":0,"packets":0,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]'

    def damage(run: Path) -> None:
        for path in logs(run, "queue.txt"):
            lines = path.read_text().splitlines()
            path.write_text("".join(f"{line if line[:1] == '#' else noqueue}\n" for line in lines))

    return damaged(damage)


def bytes_for_packets(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A sampling script that took the wrong one of two numbers: the queue's packets stand as its bytes."""

    def damage(run: Path) -> None:
        for path in logs(run, "queue.txt"):
            text = path.read_text()
            path.write_text(re.sub(r'"backlog":\d+,"qlen":(\d+)', r'"backlog":\1,"qlen":\1', text))

    return damaged(damage)


def clock_off(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The router's clock isn't the senders': nobody had set it."""
    shift = part(params, chance.uniform(0.5, 1.5)) * chance.choice((-1, 1))

    def damage(run: Path) -> None:
        for path in logs(run, "queue.txt"):
            shift_samples(path, shift)

    return damaged(damage)


def pair(lab: Lab) -> tuple[str, str]:
    first, second, *_ = SENDERS[lab.name]
    return first, second


def hosts_mixed_up(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """One kind of file of two senders, in each other's folders."""
    name = chance.choice(("ss.txt", "iperf3-1.json" if lab.name == "scale" else "iperf3.json"))

    def damage(run: Path) -> None:
        first, second = (run / "raw" / node / name for node in pair(lab))
        exchange(first, second)

    return damaged(damage)


def folder_twice(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The first sender's files are there twice, and the second's not at all."""

    def damage(run: Path) -> None:
        first, second = (run / "raw" / node for node in pair(lab))
        for path in second.iterdir():
            if (first / path.name).exists():
                shutil.copy(first / path.name, path)

    return damaged(damage)


def rate_in_bytes(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """A script that wrote bytes per second where iperf3 has bits per second, in every sum and interval."""

    def per_byte(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: item / 8 if key == "bits_per_second" else per_byte(item)
                for key, item in value.items()
            }
        return [per_byte(item) for item in value] if isinstance(value, list) else value

    def damage(run: Path) -> None:
        for path in logs(run, "iperf3*.json"):
            path.write_text(json.dumps(per_byte(json.loads(path.read_text()))))

    return damaged(damage)


def judge(
    name: str,
    causes: set[str] | frozenset[str],
    make: Callable[[Lab, Params, random.Random], Fault],
    says: str,
    labs: tuple[str, ...] = TURNS,
) -> Kind:
    return Kind(name, frozenset(causes) | UNEXPLAINED, make, labs, says)


KEPT: tuple[Kind, ...] = (
    judge("window-scaling-off", SET | {"receive-window"}, window_scaling_off, "this node has window scaling off: no window above 64 kB", LONG_PATH),
    judge("autotuning-off", SET | {"receive-window"}, autotuning_off, "the receiver doesn't grow its buffer: its window stays below the path's BDP", LONG_PATH),
    judge("memory-short", {"send-buffer", "receive-window", "application-limited"}, memory_short, "the hosts' sockets got too little memory: a rate far below what path and window allow", (*LONG_PATH, "queues")),
    judge("advmss-on-route", SET | {"segment-size", "mtu"}, advmss_on_route, "the receiver's route announces small segments"),
    judge("two-paths", SET, two_paths, "there is a prio qdisc that sends half of the packets another way: reordering"),
    judge("thin-ack-path", SET | {"round-trip-time", "queueing"}, thin_ack_path, "the way back has a rate that can't carry the ACKs"),
    judge("bursty-cable", SET | {"other-drops"}, bursty_cable, "a netem that the lab doesn't have loses packets"),
    judge("slotted-hop", SET | {"round-trip-time"}, slotted_hop, "a netem that the lab doesn't have delays packets into slots"),
    judge("other-bottleneck", SET | {"other-drops"}, other_bottleneck, "another interface is slower than the bottleneck"),
    judge("other-discipline", SET | {"other-drops"}, other_discipline, "the queue's discipline isn't the one that was meant", QUEUE_LABS),
    judge("farther-receiver", SET | {"round-trip-time", "rtt-doubling"}, farther_receiver, "one receiver's delay isn't what it was when it was pinged", SEVERAL),
    judge("udp-traffic", {"other-traffic"}, udp_traffic, "more went through the link than the flows sent", QUEUE_LABS),
    judge("rate-dip", {"link-rate"} | SET, rate_dip, "for a part of the time the link had another rate", QUEUE_LABS),
    judge("loss-for-a-while", {"loss-ratio"} | SET, loss_for_a_while, "the router didn't drop the share of packets that was asked for", ("mathis",)),
    judge("suspended-sender", {"application-limited"}, suspended_sender, "for a third of the time nothing was sent"),
    judge("suspended-receiver", {"receive-window"}, suspended_receiver, "the receiver's window was shut for much of the time", LONG_PATH),
    judge("paced", {"application-limited"}, paced, "the sender was paced far below what path and window allow"),
    judge("omitted-start", {"duration", "other-traffic"}, omitted_start, "iperf3's result leaves out much of what went through the link"),
    judge("both-directions", {"unfit", "other-traffic", "flows", "refused"}, both_directions, "the test went both ways at once", ("mathis", "buffers", "variants", "queues")),
    judge("one-sender-late", {"flows"}, one_sender_late, "the flows hardly ran at the same time", SEVERAL),
    judge("pinged-gateway", {"round-trip-time", "rtt-doubling", "path"}, pinged_gateway, "ping's round-trip time isn't that of the path"),
    judge("rare-samples", {"samples"}, rare_samples, "there are far fewer samples than the settings say", ("buffers", "variants", "scale", "mathis")),
    judge("other-interface", {"samples", "refused"} | SET, other_interface, "these samples are from an interface without a queue", QUEUE_LABS),
    judge("bytes-for-packets", {"samples", "refused"}, bytes_for_packets, "the sampled queue is far too short for the round-trip times that TCP saw", ("buffers", "variants", "buffers", "variants", "scale")),
    judge("clock-off", {"samples", "refused"}, clock_off, "samples of the queue and of the flows are from different times", QUEUE_LABS),
    judge("hosts-mixed-up", {"two-runs", "refused", "path", "samples", "flows"}, hosts_mixed_up, "these files are from another host: the addresses and ports don't match", SEVERAL),
    judge("folder-twice", {"two-runs", "refused", "path", "flows"}, folder_twice, "two hosts' files are the same", SEVERAL),
    judge("rate-in-bytes", {"bandwidth", "refused"}, rate_in_bytes, "iperf3's rates are an eighth of its own bytes per second"),
)  # fmt: skip
