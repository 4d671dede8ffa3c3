"""Faults of the kinds that people put into node scripts: those that a second reviewer staged, and fifty more whose values
and nodes are drawn at random. Honest runs with odd but legal settings stand beside them.

All have one of a few settings, so that one knows from honest runs of these whether a fault changed anything at all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
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
    logs,
    policed,
    replaced_root,
    routes_changed,
)
from latency_kinds import HOME

from faults import Fault, Kind
from measuretwice.lab import Lab, Value

Settings = tuple[str, int, Mapping[str, Value]]
LINK: Mapping[str, Value] = {"rate_mbit": 20, "buffer_bytes": 250000, "duration_s": 25}
WIRE: Mapping[str, Value] = {
    "rate_mbit": 20, "buffer_bytes": 100000, "duration_s": 24, "average_from_s": 12,
}  # fmt: skip
QUEUE: Mapping[str, Value] = {"rate_mbit": 50, "duration_s": 6}
CROWD: Mapping[str, Value] = {
    "rate_mbit": 20, "buffer_bytes": 600000, "duration_s": 30, "warmup_s": 5, "start_spread_ms": 1000,
}  # fmt: skip
BASES: Mapping[str, Settings] = {
    "C2": ("calibrate", 2, {}),
    "M7": ("mathis", 7, {"duration_s": 40}),
    "B3": ("buffers", 3, LINK),
    "V2": ("variants", 2, WIRE),
    "Q1": ("queues", 1, QUEUE),
    "Q21": ("queues", 21, QUEUE),
    "Q48": ("queues", 48, QUEUE),
    "S4": ("scale", 4, CROWD),
    "L1": ("latency", 1, {"duration_s": 6}),
    "L4": ("latency", 4, {"duration_s": 6}),
}
EACH = "M7 B3 V2 Q1"
ROUTE = SET | {"receive-window"}


def staged(
    name: str, bases: str, causes: set[str] | frozenset[str], make: Fault | Callable[..., Fault]
) -> list[Kind]:
    """Return a kind for each of these settings."""

    def made(lab: Lab, params: Params, chance: random.Random) -> Fault:
        return make if isinstance(make, Fault) else make(lab, params, chance)

    kinds = []
    for base in bases.split():
        lab, trial, changes = BASES[base]
        kinds.append(Kind(f"{name} {base}", frozenset(causes), made, (lab,), settings=(trial, changes)))  # fmt: skip
    return kinds


# --- what is drawn ---


def at_sender(*commands: str) -> Callable[..., Fault]:
    """Return what makes a fault of commands on one sender; NUMBER[low high] in them is drawn, WORD[a b] chosen."""
    return _on(SENDERS, commands)


def at_receiver(*commands: str) -> Callable[..., Fault]:
    return _on(RECEIVERS, commands)


def at_link(*commands: str) -> Callable[..., Fault]:
    """The same at the bottleneck, whose interface is LINK."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        node, device = BOTTLENECK[lab.name]
        filled = [drawn(command, chance).replace("LINK", device) for command in commands]
        return before(*(at(node, command) for command in filled))

    return make


def everywhere(command: str) -> Callable[..., Fault]:
    """A setting of the whole machine, before the lab's set-up."""
    return lambda lab, params, chance: Fault(early=[drawn(command, chance)])


def _on(nodes: Mapping[str, list[str]], commands: tuple[str, ...]) -> Callable[..., Fault]:
    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        node = chance.choice(nodes[lab.name])
        return before(*(at(node, drawn(command, chance)) for command in commands))

    return make


def drawn(command: str, chance: random.Random) -> str:
    """Return a command with its numbers and words drawn."""
    command = re.sub(
        r"NUMBER\[(\S+) (\S+)\]",
        lambda match: f"{chance.uniform(float(match[1]), float(match[2])):.4g}",
        command,
    )
    return re.sub(r"WORD\[([^\]]+)\]", lambda match: chance.choice(match[1].split()), command)


def sender_routes(metric: str) -> Callable[..., Fault]:
    return lambda lab, params, chance: before(
        routes_changed(chance.choice(SENDERS[lab.name]), drawn(metric, chance))
    )


def receiver_routes(metric: str) -> Callable[..., Fault]:
    return lambda lab, params, chance: before(
        routes_changed(chance.choice(RECEIVERS[lab.name]), drawn(metric, chance))
    )


def program(name: str, words: str, where: str = "", only: str = "") -> Callable[..., Fault]:
    """A program gets further options, on nodes whose folder ends with `where`, where its words have `only`."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        options = drawn(words, chance)
        return before(
            f'{name}() {{ if [[ "$OUT" == *{where} && " $* " == *"{only}"* ]]; then '
            f'command {name} "$@" {options}; else command {name} "$@"; fi; }}; export -f {name}'
        )

    return make


def tbf(words: str, limit: bool = True) -> Callable[..., Fault]:
    """The bottleneck's tbf gets further words."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        node, device = BOTTLENECK[lab.name]
        size = params.get("buffer_bytes", 10000000)
        more = drawn(words, chance)
        burst = "" if "burst" in more else f"burst {params.get('burst_bytes', 32768)} "
        shown = "handle 1: " if lab.name in ("queues", "scale") else ""
        command = f"tc qdisc change dev {device} root {shown}tbf rate {params['rate_mbit']}mbit {burst}limit {size} {more}"
        return before(at(node, command))

    return make


def bottleneck_stab(lab: Lab, params: Params, chance: random.Random) -> Fault:
    node, device = BOTTLENECK[lab.name]
    shown = f"tbf rate {params['rate_mbit']}mbit burst {params.get('burst_bytes', 32768)} limit {params['buffer_bytes']}"
    return before(at(node, f"tc qdisc replace dev {device} root stab overhead 150 {shown}"))


def towards_receiver(words: str) -> Callable[..., Fault]:
    """Lab 01's netem towards juliet with other words; DELAY and LOSS are its own."""

    def make(lab: Lab, params: Params, chance: random.Random) -> Fault:
        own = drawn(words, chance)
        own = own.replace("DELAY", f"{float(params['rtt_ms']) / 2}ms")
        own = own.replace("LOSS", f"{100 * float(params['loss_ratio']):.6f}%")
        limit = "" if "limit" in own else " limit 100000"
        return before(
            at("router", f"tc qdisc change dev eth1 parent 1:3 handle 3: netem {own}{limit}")
        )

    return make


def class_words(words: str) -> Callable[..., Fault]:
    """Lab 00's and 01's htb class with other words."""
    return lambda lab, params, chance: before(
        at("router", f"tc class change dev eth1 parent 1: classid 1:3 htb {drawn(words, chance)}")
    )


def ids_dropped(node: str, device: str, mask: str) -> Fault:
    """A filter that drops each packet whose IP id has these bits clear."""
    match = f"u32 match u16 0x0000 {mask} at 4"
    return before(
        at(node, f"tc qdisc add dev {device} clsact"),
        at(
            node,
            f"tc filter add dev {device} egress protocol ip {match} action police rate 8bit burst 1 mtu 1 conform-exceed drop",
        ),
    )


def scaled_pings(factor: float) -> Fault:
    """ping.txt of a path so many times as long."""

    def damage(run: Path) -> None:
        for path in logs(run, "ping.txt"):
            text = re.sub(
                r"time=([\d.]+)",
                lambda time: f"time={factor * float(time[1]):.2f}",
                path.read_text(),
            )
            text = re.sub(
                r"= ([\d./]+) ms",
                lambda sums: "= " + "/".join(f"{factor * float(ms):.3f}" for ms in sums[1].split("/")) + " ms",
                text,
            )  # fmt: skip
            path.write_text(text)

    return damaged(damage)


def other_seeds(name: str) -> Fault:
    """A file of a run with the same settings and another seed."""

    def damage(run: Path, twin: Path) -> None:
        for path in logs(run, name):
            path.write_bytes((twin / "raw" / path.parent.name / path.name).read_bytes())

    return Fault(damage=damage, twin=True)


def sysctl(name: str, values: str) -> str:
    return f"sysctl -qw net.ipv4.{name}=WORD[{values}]"


PING = {"ping-elsewhere", "queueing", "unexplained"}
COUNT = {"flows", "other-traffic", "missing-flows"}
DROPS = SET | {"other-drops", "lost-between"}
# What a second reviewer staged, as far as it was shown.
STAGED = [
    *staged("txqueuelen", "Q1", SET, Fault(early=[at("router-1", "ip link set eth2 txqueuelen 60")])),
    *staged("txqueuelen-long", "Q1", SET, Fault(early=[at("router-1", "ip link set eth2 txqueuelen 10000")])),
    *staged("ping-tos", "Q1", PING, program("ping", "-Q 0x10")),
    *staged("iperf-P-2", "B3", COUNT, program("iperf3", "-P 2", "/s2", " -c ")),
    *staged("iperf-P-2", "V2", COUNT, program("iperf3", "-P 2", "/client", " -c ")),
    *staged("ping-of-another-path", "M7", PING | {"path", "two-runs"}, scaled_pings(6.5)),
    *staged("htb-overhead", "C2", SET, class_words("rate 10mbit ceil 10mbit overhead 120")),
    *staged("htb-rate", "C2", SET, class_words("rate 9.3mbit ceil 9.3mbit")),
    *staged("htb-rate", "M7", SET, class_words("rate 28mbit ceil 28mbit")),
    *staged("iperf-b", "M7", {"application-limited"}, program("iperf3", "-b 20M", only=" -c ")),
    *staged("cubic-beta", "B3 V2", SET, everywhere("echo WORD[512 950] >/sys/module/tcp_cubic/parameters/beta")),
    *staged("ecn-both-hosts", "Q21", SET, before(*(at(host, "sysctl -qw net.ipv4.tcp_ecn=1") for host in ("host-1", "host-2", "host-3")))),
    *staged("ecn-off", "Q48", SET, before(*(at(host, "sysctl -qw net.ipv4.tcp_ecn=0") for host in ("host-1", "host-2", "host-3")))),
    *staged("tbf-overhead", "B3 V2", SET | {"link-rate"}, tbf("overhead 180")),
    *staged("tbf-linklayer", "V2 B3", SET | {"link-rate"}, tbf("linklayer atm")),
    *staged("tbf-mpu", "V2", SET | {"link-rate"}, tbf("mpu 1700")),
    *staged("tbf-peakrate", "V2", SET | {"link-rate"}, tbf("burst 40000 peakrate 21mbit mtu 2000")),
    *staged("tbf-burst", "B3", SET, tbf("burst 1700")),
    *staged("tbf-stab", "B3", SET | {"link-rate"}, bottleneck_stab),
    *staged("cable-speed", "V2", SET, before(at("client", "ethtool -s eth0 speed 18 duplex full autoneg off"))),
    *staged("fq-maxrate", "M7 V2 B3", SET | {"application-limited"}, at_sender("tc qdisc replace dev eth0 root fq maxrate NUMBER[4 9]mbit")),
    *staged("ids-dropped", "M7", DROPS, ids_dropped("romeo", "eth0", "0x00ff")),
    *staged("ids-dropped", "V2", DROPS, ids_dropped("client", "eth0", "0x01ff")),
    *staged("route-initrwnd", "C2", ROUTE, receiver_routes("initrwnd 1")),
    *staged("netem-loss-ecn", "M7", SET, lambda lab, params, chance: Fault(before=[
        at("romeo", "sysctl -qw net.ipv4.tcp_ecn=1"), *towards_receiver("delay DELAY loss LOSS ecn")(lab, params, chance).before])),
    *staged("gemodel", "M7", SET | {"loss-ratio"}, towards_receiver("delay DELAY loss gemodel 0.2% 30%")),
    *staged("netem-loss-state", "M7", SET | {"loss-ratio"}, towards_receiver("delay DELAY loss state 0.2% 30%")),
    *staged("delay-correlated", "M7", SET, towards_receiver("delay DELAY 1ms 90% loss LOSS")),
    *staged("netem-limit", "M7", SET | {"netem-limit"}, towards_receiver("delay DELAY loss LOSS limit WORD[8 12]")),
    *staged("mtu-probing", "M7", SET | {"segment-size"}, at_sender("sysctl -qw net.ipv4.tcp_mtu_probing=2")),
    *staged("rx-usecs", "Q1", SET | {"round-trip-time"}, before(*(at(host, "ethtool -C eth0 rx-usecs 2000") for host in ("host-1", "host-3")))),
    *staged("route-mtu-lock", "M7", SET | {"segment-size", "mtu"}, sender_routes("mtu lock 1000")),
    *staged("iperf-w", "V2 B3", {"receive-window", "send-buffer", "application-limited"}, program("iperf3", "-w 32K", only=" -c ")),
    *staged("algorithm-lost", "M7", {"wrong-algorithm"}, program("iperf3", "-C cubic", only=" -c ")),
    *staged("iperf-P-3", "Q1", COUNT, program("iperf3", "-P 3", only=" -c ")),
    *staged("backlog", "B3", SET | {"interface-drops"}, everywhere("echo 4 >/proc/sys/net/core/netdev_max_backlog")),
    *staged("queue-of-another", "B3 Q1 V2", {"two-runs", "samples"}, other_seeds("queue.txt")),
    *staged("ss-of-another", "M7 B3", {"two-runs", "wrong-socket"}, other_seeds("ss.txt")),
    *staged("after-of-another", "M7 Q1", {"two-runs", "lost-between", "loss-ratio", "retransmissions", "other-drops"}, other_seeds("qdisc.after.json")),
]  # fmt: skip
NETEM = "tc qdisc replace dev eth0 root netem limit 100000"
# Fifty of our own, of which values and nodes are drawn.
OWN = [
    *staged("frto", EACH, SET, at_sender(sysctl("tcp_frto", "0 1"))),
    *staged("recovery", "M7 V2", SET, at_sender(sysctl("tcp_recovery", "0 4 7"))),
    *staged("early-retrans", "M7 Q1", SET, at_sender(sysctl("tcp_early_retrans", "0"))),
    *staged("reordering", "M7 V2", SET, at_sender(sysctl("tcp_reordering", "30 127 200"))),
    *staged("limit-output", "M7 B3", SET, at_sender(sysctl("tcp_limit_output_bytes", "2048 5000"))),
    *staged("notsent-lowat", "B3 V2", SET, at_sender(sysctl("tcp_notsent_lowat", "1500 9000"))),
    *staged("pacing-ratio", "M7 Q1", SET, at_sender(sysctl("tcp_pacing_ca_ratio", "20 50"), sysctl("tcp_pacing_ss_ratio", "40 60"))),
    *staged("comp-sack", "M7 B3", SET, at_receiver(sysctl("tcp_comp_sack_nr", "0 200"))),
    *staged("app-win", "B3 V2", ROUTE, at_receiver(sysctl("tcp_app_win", "1 2"))),
    *staged("adv-win-scale", "B3 V2", ROUTE, at_receiver(sysctl("tcp_adv_win_scale", "-4 -3"))),
    *staged("sack", "M7 V2 Q1", SET, at_receiver(sysctl("tcp_sack", "0"))),
    *staged("dsack", "M7 B3", SET, at_receiver(sysctl("tcp_dsack", "0"))),
    *staged("rto-min", "M7 Q1", SET, at_sender(sysctl("tcp_rto_min_us", "1000000 3000000"))),
    *staged("tso-divisor", "B3", SET, at_sender(sysctl("tcp_tso_win_divisor", "1 8"))),
    *staged("window-scaling", "B3 V2", ROUTE, at_receiver(sysctl("tcp_window_scaling", "0"))),
    *staged("rmem", "B3 V2", ROUTE, at_receiver("sysctl -qw 'net.ipv4.tcp_rmem=4096 16384 WORD[40000 60000]'")),
    *staged("wmem", "B3 V2", SET | {"send-buffer"}, at_sender("sysctl -qw 'net.ipv4.tcp_wmem=4096 16384 40000'")),
    *staged("moderate-rcvbuf", "B3 V2", ROUTE, at_receiver(sysctl("tcp_moderate_rcvbuf", "0"))),
    *staged("timestamps", "Q1 B3", SET | {"timestamps", "segment-size"}, at_sender(sysctl("tcp_timestamps", "0"))),
    *staged("retrans-collapse", "M7", SET, at_sender(sysctl("tcp_retrans_collapse", "0"))),
    *staged("route-cwnd", EACH, SET, sender_routes("cwnd lock WORD[4 8 12]")),
    *staged("route-ssthresh", "B3 V2", SET, sender_routes("ssthresh lock WORD[4 10]")),
    *staged("route-rto-min", "M7 Q1", SET, sender_routes("rto_min WORD[1s 2s]")),
    *staged("route-reordering", "M7 V2", SET, sender_routes("reordering WORD[20 100]")),
    *staged("route-initcwnd", "C2 Q1", SET, sender_routes("initcwnd WORD[1 200]")),
    *staged("route-advmss", EACH, SET | {"segment-size", "mtu"}, receiver_routes("advmss WORD[700 1200]")),
    *staged("route-window", "B3 V2", ROUTE, receiver_routes("window WORD[9000 20000 40000]")),
    *staged("route-quickack", "M7 B3", SET, receiver_routes("quickack 1")),
    *staged("route-congctl", "M7 B3 V2", SET | {"wrong-algorithm"}, sender_routes("congctl lock WORD[vegas westwood]")),
    *staged("cubic-friendliness", "V2", SET, everywhere("echo 0 >/sys/module/tcp_cubic/parameters/tcp_friendliness")),
    *staged("cubic-scale", "V2", SET, everywhere("echo WORD[4 400] >/sys/module/tcp_cubic/parameters/bic_scale")),
    *staged("cubic-hystart", "V2", SET, everywhere("echo 0 >/sys/module/tcp_cubic/parameters/hystart")),
    *staged("netem-small-delay", EACH, SET | {"round-trip-time", "rtt-doubling"}, at_receiver(f"{NETEM} delay NUMBER[1 9]ms")),
    *staged("netem-small-loss", "B3 V2 Q1", SET | DROPS, at_receiver(f"{NETEM} loss NUMBER[0.5 3]%")),
    *staged("netem-duplicate", EACH, SET, at_sender(f"{NETEM} duplicate NUMBER[1 5]%")),
    *staged("netem-corrupt", "V2 M7", SET | DROPS, at_sender(f"{NETEM} corrupt NUMBER[0.3 1]%")),
    *staged("netem-rate", "M7 V2", SET, at_sender(f"{NETEM} rate NUMBER[3 9]mbit")),
    *staged("netem-slot", "V2 Q1", SET, at_sender(f"{NETEM} slot 4ms 9ms")),
    *staged("netem-reorder", "M7 V2", SET, at_sender(f"{NETEM} delay 5ms reorder 95%")),
    *staged("fq-flow-limit", "B3 Q1", SET | DROPS, at_sender("tc qdisc replace dev eth0 root fq flow_limit 5")),
    *staged("tbf-at-sender", EACH, SET, at_sender("tc qdisc replace dev eth0 root tbf rate NUMBER[3 8]mbit burst 15000 limit 90000")),
    *staged("pfifo-at-receiver", "M7 B3", SET | DROPS, at_receiver("tc qdisc replace dev eth0 root tbf rate 300kbit burst 5000 limit 9000")),
    *staged("codel-at-link", "B3 V2", SET | {"other-drops"}, at_link(
        "bash -c 'read -r _ _ handle _ < <(tc qdisc show dev LINK); tc qdisc add dev LINK parent ${handle}1 codel target 1ms'")),
    *staged("policer", "V2 Q1", DROPS, lambda lab, params, chance: before(*policed(RECEIVERS[lab.name][0], "9mbit"))),
    *staged("mtu", EACH, SET | {"mtu", "segment-size"}, at_link("ip link set LINK mtu WORD[900 1300 1492]")),
    *staged("tso", EACH, SET | {"offload"}, at_sender("ethtool -K eth0 tso on gso on")),
    *staged("gro", "B3 V2", SET | {"offload"}, at_receiver("ethtool -K eth0 gro on")),
    *staged("iperf-M", EACH, SET | {"segment-size", "mtu", "timestamps"}, program("iperf3", "-M WORD[600 1000 1300]", only=" -c ")),
    *staged("iperf-b-random", "B3 V2 Q1", {"application-limited"}, program("iperf3", "-b NUMBER[3 7]M", only=" -c ")),
    *staged("iperf-t", EACH, {"duration", "samples", "flows", "length"}, program("iperf3", "-t 3", only=" -c ")),
    *staged("iperf-C", "B3 V2 Q1", {"wrong-algorithm"}, program("iperf3", "-C WORD[vegas westwood bbr]", only=" -c ")),
    *staged("meanwhile-delay", EACH, SET, lambda lab, params, chance: during(
        f"sleep 3; {replaced_root(SENDERS[lab.name][0], 'eth0', f'netem limit 100000 delay {chance.choice((5, 15, 40))}ms')}")),
    *staged("meanwhile-loss", "B3 V2 Q1", SET | DROPS, lambda lab, params, chance: during(
        f"sleep 3; {replaced_root(SENDERS[lab.name][0], 'eth0', 'netem limit 100000 loss 2%')}")),
    *staged("forwarding-burst", "V2", SET | DROPS, at_link("tc qdisc replace dev eth0 root pfifo limit 3")),
]  # fmt: skip
# Of those that need no other lab's nodes so many are put into lab 03's scripts as well: which, is drawn.
IN_A_CROWD = 40
ANYWHERE = {
    "cubic-beta", "tbf-overhead", "tbf-linklayer", "tbf-mpu", "tbf-peakrate", "fq-maxrate", "route-initrwnd",
    "mtu-probing", "route-mtu-lock", "iperf-b", "iperf-w", "iperf-P-3", "backlog",
}  # fmt: skip


def _stem(kind: Kind) -> str:
    return kind.name.rsplit(" ", 1)[0]


def crowded() -> list[Kind]:
    """Return faults in the scripts of lab 03."""
    any_lab = {_stem(kind): kind for kind in STAGED if _stem(kind) in ANYWHERE}
    any_lab |= {_stem(kind): kind for kind in OWN if _stem(kind) != "codel-at-link"}
    lab, trial, changes = BASES["S4"]
    return [
        replace(any_lab[stem], name=f"{stem} S4", labs=(lab,), settings=(trial, changes))
        for stem in random.Random("S4").sample(sorted(any_lab), IN_A_CROWD)
    ]


SCRIPTS = (*STAGED, *OWN, *crowded(), *(kind for entry in HOME for kind in staged(*entry)))
