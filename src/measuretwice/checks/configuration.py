"""How nodes were set, compared with what the lab's own scripts make of the same settings: of runs whose scripts aren't
this checkout's, of live labs, and of imported files.

What differs and can decide what was measured is a finding; what can't is a note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from measuretwice.checks.registry import DATA_BYTES, Finding, FindingKind, RunUnderTest, check
from measuretwice.measure.host_state import HostState, Interface, Node, place_of
from measuretwice.parse import Qdisc

# Of each interface: what decides which packets it sends. A machine's other features are its own.
FEATURES = (
    "mtu", "state", "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload",
    "large-receive-offload", "speed",
)  # fmt: skip
# The sysctls that change what TCP does on a path. Of another kernel these alone are compared.
SYSCTLS = frozenset({
    "net.ipv4.ip_forward", "net.ipv4.tcp_ecn", "net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_recovery", "net.ipv4.tcp_reordering", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem",
})  # fmt: skip
# Those that decide nothing of a bulk transfer that runs: how connections begin and end, what is logged, and
# defaults in whose place each socket and each interface has its own, which is compared.
HARMLESS = re.compile(
    r"net\.ipv4\.tcp_(keepalive|fin_timeout|max_syn|syn|synack|orphan|max_orphan|max_tw|tw_|retries|challenge|available"
    r"|allowed|congestion_control|migrate|fastopen|rfc1337|abort|stdurg|invalid_rate|ehash|child_ehash|fwmark|probe_"
    r"|l3mdev|mtu_probe|base_mss|early_demux)"
    r"|net\.core\.(message|warnings|somaxconn|bpf|optmem|tstamp|devconf|fb_tunnels|high_order|rps|flow_limit|xfrm"
    r"|default_qdisc|max_skb_frags|txq_resel|[rw]mem_default)"
)
# Queues that hold nothing back: an interface has one of these where nobody set another.
PLAIN = frozenset({"noqueue", "pfifo_fast", "fq_codel", "mq", "fq", "pfifo"})
# What a plain queue does besides where somebody has told it to.
HOLDS_BACK = ("maxrate", "defrate")
# What tc prints of a qdisc and nobody sets.
NOT_SET = frozenset({"direct_packets_stat", "direct_qlen", "seed", "r2q"})
# What a radio's node changes all the time, as its lab means it.
VARIED = ("slot",)
SAME_RATIO = 1e-3
# Of an emulated path's round trip: by so much may it be longer than was asked for, on average; and what comes later than
# this other share comes in bursts that no host has sent, each packet of which finds the queue as full as the last.
LATE_MEAN_RATIO = 0.05
LATE_P99_RATIO = 0.25
SHOWN = 3
# Of so many settings that can't matter each is named.
MOST_NOTED = 6


@dataclass(frozen=True)
class Difference:
    """One thing that isn't as the lab's scripts set it, in words; whether it can decide what was measured."""

    text: str
    matters: bool = True


@check(
    FindingKind(
        "configuration",
        "Each node's interfaces, queues, classes, filters, routes, sysctls and modules' parameters, compared with what the lab's own scripts set.",
        explains=(
            "duration", "ecn-refused", "loss-ratio", "lost-between", "other-drops", "other-traffic", "queueing",
            "receive-window", "reordering", "retransmissions", "round-trip-time", "segment-size", "send-buffer",
            "unexplained",
        ),
        hints=(
            "Not every node is set as the lab's own scripts set it. Go from node to node: ./lab show RUN qdisc, link, sysctl, ethtool, state.",
            "Compare with a run of the same trial by the lab's own scripts: ./lab diff RUN RUN lists the files that differ.",
            "The differences are listed above, node by node. Set each as the lab does, or remove it.",
        ),
    ),
    needs=(),
)  # fmt: skip
def configuration(run: RunUnderTest) -> Finding | None:
    texts = [difference.text for difference in differences_of(run) if difference.matters]
    if not texts:
        return None
    more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return Finding(
        "configuration",
        "; ".join(texts[:SHOWN]) + more,
        "what the lab's own scripts set",
        "The network didn't match the settings.",
        symptom=f"{len(texts)} setting{'s' if len(texts) != 1 else ''} of the nodes "
        f"differ{'' if len(texts) != 1 else 's'} from what the lab's own scripts set",
    )


def notes(run: RunUnderTest) -> list[str]:
    """Return in a line what differs from the lab's own scripts and can't matter for what was measured."""
    texts = [difference.text for difference in differences_of(run) if not difference.matters]
    if not texts:
        return []
    more = f"; and {len(texts) - MOST_NOTED} more" if len(texts) > MOST_NOTED else ""
    return [
        f"not as the lab's own scripts set it, but without effect on this run: {'; '.join(texts[:MOST_NOTED])}{more}"
    ]


def differences_of(run: RunUnderTest) -> list[Difference]:
    """Return all that differs between a run's nodes and its reference; nothing where one of them isn't known."""
    if run.host_state is None or run.reference is None:
        return []
    # A radio's rate changes all the time: that is what its node is there for.
    steady = "rate-varies" not in run.meanings
    return list(differences(run.host_state, run.reference, run.algorithms, steady=steady))


def of_another_kernel(reference: HostState) -> HostState:
    """Return what of a reference can be compared where another kernel ran: its defaults are its own."""
    return replace(
        reference,
        nodes={
            name: replace(
                node,
                sysctls={key: value for key, value in node.sysctls.items() if key in SYSCTLS},
                state={},
            )
            for name, node in reference.nodes.items()
        },
    )


def differences(
    host_state: HostState,
    reference: HostState,
    algorithms: Set[str] = frozenset(),
    *,
    steady: bool = True,
) -> Iterator[Difference]:
    """Yield what differs, only of what both have. `algorithms` are those that the flows were to have, beside those
    that they had. Queues of a `steady` network don't change while a run is on."""
    ran = {
        *algorithms,
        *(
            str(socket.congestion_control)
            for socket in host_state.sockets
            if (socket.bytes_sent or 0) >= DATA_BYTES
        ),
    }
    varied = () if steady else VARIED
    everywhere: set[str] = set()
    for name, node in host_state.nodes.items():
        explained = False
        if name in reference.nodes:
            for difference in _of_node(node, reference.nodes[name], varied):
                explained = explained or difference.matters
                yield replace(difference, text=f"{name}: {difference.text}")
        for interface in node.interfaces.values():
            for text in _changed(interface, varied):
                explained = True
                yield Difference(f"{name}: {interface.name} {text}")
        if name in reference.nodes:
            for difference in _of_state(node, reference.nodes[name], ran, varied, explained):
                # What holds for the whole machine is said once.
                if difference.text not in everywhere:
                    yield replace(difference, text=f"{name}: {difference.text}")
                if difference.text.startswith(("tcp_", "net.core.")):
                    everywhere.add(difference.text)


def _of_node(node: Node, reference: Node, varied: tuple[str, ...]) -> Iterator[Difference]:
    for interface in node.interfaces.values():
        other = _counterpart(interface, reference)
        if other is not None:
            for difference in _of_interface(interface, other, varied):
                yield replace(difference, text=f"{interface.name} {difference.text}")
        elif extra := [qdisc.kind for qdisc in interface.qdiscs if qdisc.kind not in PLAIN]:
            yield Difference(
                f"{interface.name} has a queue of {extra[0]}, which the lab doesn't set"
            )
    for name in sorted(node.sysctls.keys() & reference.sysctls.keys()):
        value, wanted = node.sysctls[name], reference.sysctls[name]
        if value != wanted and not name.endswith("_key"):
            yield Difference(f"{name} is {value}, not {wanted}", not HARMLESS.match(name))
    if node.routes and reference.routes and not {*reference.routes} <= {*node.routes}:
        missing = next(route for route in reference.routes if route not in node.routes)
        yield Difference(f"there is no route {missing}")


def _of_state(
    node: Node, reference: Node, algorithms: Set[str], varied: tuple[str, ...], explained: bool
) -> Iterator[Difference]:
    """Yield what was only asked when all had been measured. Where something was `explained` of the node, a queue's or a route's
    words are the same once more."""
    if not node.state or not reference.state:
        return
    for name in sorted(node.state.keys() | reference.state.keys()):
        value, wanted = node.state.get(name), reference.state.get(name)
        if value == wanted or (varied and _without_slots(value) == _without_slots(wanted)):
            continue
        if value is not None and wanted is not None:
            if explained and " qdisc " in name:
                continue
            yield Difference(
                f"{name} is {_what_differs(value, wanted)}", _matters(name, node, algorithms)
            )
        # What one of two kernels doesn't know is no difference.
        elif not name.startswith(("net.", "tcp_")) and not explained:
            plain = re.search(r": qdisc (\w+) ", name)
            matters = not plain or plain[1] not in PLAIN
            yield Difference(f"there is {'no' if value is None else 'a'} {name}", matters)


def _without_slots(options: str | None) -> str:
    return re.sub(r" slot .*", "", options or "")


def _what_differs(value: str, wanted: str) -> str:
    """The words that differ, each with the one before it, which is its name; all where there are more or fewer."""
    words, others = value.split(), wanted.split()
    if len(words) != len(others) or len(words) < 2:
        return f"{value or 'plain'}, not {wanted or 'plain'}"
    return ", ".join(
        f"{name} {word}, not {other}"
        for name, word, other in zip(["", *words], words, others, strict=False)
        if word != other
    ).strip()


def _matters(name: str, node: Node, algorithms: Set[str]) -> bool:
    if match := re.match(r"tcp_(\w+)\.", name):
        return match[1] in algorithms
    if match := re.match(r"(\S+): (qlen|g[sr]o_max_\w+|numtxqueues)", name):
        interface = node.interfaces.get(match[1])
        if interface is None:
            return True
        if match[2] == "qlen":
            return any(qdisc.kind != "noqueue" for qdisc in interface.qdiscs)
        offload = "receive" if match[2].startswith("gro") else "segmentation"
        return interface.settings.get(f"generic-{offload}-offload") != "off"
    return not HARMLESS.match(name)


def _counterpart(interface: Interface, reference: Node) -> Interface | None:
    """Return the same interface of another node, by its addresses: names differ from machine to machine."""
    for other in reference.interfaces.values():
        if {*interface.addresses} & {*other.addresses}:
            return other
    return None if interface.addresses else reference.interfaces.get(interface.name)


def _of_interface(
    interface: Interface, reference: Interface, varied: tuple[str, ...]
) -> Iterator[Difference]:
    for name in FEATURES:
        value, wanted = interface.settings.get(name), reference.settings.get(name)
        if value and wanted and "unknown" not in (value, wanted) and value != wanted:
            yield Difference(f"has {name} {value}, not {wanted}")
    if not interface.qdiscs:
        # tc prints at least a noqueue: where there is none at all, nobody has asked.
        return
    qdiscs = {place_of(qdisc): qdisc for qdisc in interface.qdiscs}
    wanted_qdiscs = {place_of(qdisc): qdisc for qdisc in reference.qdiscs}
    for position in sorted(qdiscs.keys() | wanted_qdiscs.keys()):
        qdisc, other = qdiscs.get(position), wanted_qdiscs.get(position)
        at = position.split(" ", 1)[1]
        if qdisc is not None and other is not None:
            for text in _of_qdisc(qdisc, other, varied):
                yield Difference(text)
        elif qdisc is not None and (qdisc.kind not in PLAIN or _acts(qdisc, interface)):
            yield Difference(f"has a queue of {qdisc.kind} at {at}, which the lab doesn't set")
        elif other is not None and (other.kind not in PLAIN or _acts(other, reference)):
            yield Difference(f"has no {other.kind} at {at}")


def _acts(qdisc: Qdisc, interface: Interface) -> bool:
    """Return whether a plain queue does something after all: it drops, it was given a rate, or it stands below a qdisc
    that makes packets wait."""
    parent = (qdisc.parent or "").split(":")[0]
    shaped = any(
        other.handle.split(":")[0] == parent and other.kind not in PLAIN
        for other in interface.qdiscs
        if parent
    )
    limits = any(qdisc.options.get(name) for name in HOLDS_BACK)
    return shaped or limits or bool(interface.drops.get(place_of(qdisc)))


def _changed(interface: Interface, varied: tuple[str, ...]) -> Iterator[str]:
    """Yield what somebody set while the run was on."""
    if interface.qdiscs_after is None:
        return
    before = {place_of(qdisc): qdisc for qdisc in interface.qdiscs}
    after = {place_of(qdisc): qdisc for qdisc in interface.qdiscs_after}
    if before.keys() != after.keys():
        now, then = (
            ", ".join(qdisc.kind for qdisc in qdiscs)
            for qdiscs in (interface.qdiscs_after, interface.qdiscs)
        )
        yield f"has {now} after the run and had {then} before it"
        return
    for position, qdisc in after.items():
        for text in _of_qdisc(qdisc, before[position], varied):
            yield f"{text} before the run"


def _of_qdisc(qdisc: Qdisc, reference: Qdisc, varied: tuple[str, ...]) -> Iterator[str]:
    options, wanted = dict(_flat(qdisc.options)), dict(_flat(reference.options))
    for name in sorted(options.keys() | wanted.keys()):
        if name.startswith(varied or ("\0",)) or name.rsplit(".", 1)[-1] in NOT_SET:
            continue
        if not _same(options.get(name), wanted.get(name)):
            values = f"{_text(options.get(name))}, not {_text(wanted.get(name))}"
            yield f"has {qdisc.kind} with {name} {values}"


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _same(value: object, wanted: object) -> bool:
    numbers = [number for number in (value, wanted) if isinstance(number, int | float)]
    if len(numbers) == 2:
        return math.isclose(*numbers, rel_tol=SAME_RATIO)
    # What is 0 or off, one version of tc prints and another leaves out.
    return value == wanted or (not value and not wanted)


def _text(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@check(
    FindingKind(
        "late-packets",
        "How late an emulator sent packets on, compared with the path's round-trip time, and the packets that it lost unasked.",
        explains=("round-trip-time", "unexplained"),
        hints=(
            "In real time a path of programs is only as punctual as the machine. The result shows how late packets were.",
            "Compare emulator_late_p99_us, and double emulator_late_mean_us, with the round-trip time that was asked for.",
            "The machine had something else to do: end other programs and run again, ask for a longer round trip or a lower rate, "
            "or use the virtual kernel.",
        ),
    ),
    needs=(
        "emulator_late_mean_us", "emulator_late_p99_us", "emulator_late_max_us", "emulator_lost_packets", "rtt_min_ms",
    ),
)  # fmt: skip
def late_packets(run: RunUnderTest) -> Finding | None:
    """An emulator is late where the machine is busy; a round trip passes it twice."""
    mean_us, p99_us = run.measured("emulator_late_mean_us"), run.measured("emulator_late_p99_us")
    lost, rtt_ms = run.measured("emulator_lost_packets"), run.measured("rtt_min_ms")
    if mean_us is None or p99_us is None or not rtt_ms:
        return None
    mean_ratio, p99_ratio = (late_us / 1000 / rtt_ms for late_us in (2 * mean_us, p99_us))
    if lost:
        broken, symptom = (
            f"packets lost by the emulator itself: {lost:.0f}",
            "packets were lost that no setting asked for",
        )
        matters = "No counter of the path has these losses."
    elif mean_ratio > LATE_MEAN_RATIO or p99_ratio > LATE_P99_RATIO:
        broken = (
            f"packets left the emulator {mean_us / 1000:.3g} ms late on average, one in a hundred {p99_us / 1000:.3g} ms or more, "
            f"at most {(run.measured('emulator_late_max_us') or 0) / 1000:.3g} ms, on a path of {rtt_ms:.3g} ms"
        )
        symptom = "the path kept its times worse than can be trusted"
        matters = "Late packets make the round trip longer, and they come in bursts, which a short buffer drops."
    else:
        return None
    return Finding(
        "late-packets",
        broken,
        f"both ways together at most {100 * LATE_MEAN_RATIO:.0f} % of the round trip, one in a hundred at most "
        f"{100 * LATE_P99_RATIO:.0f} %, and none lost",
        matters,
        symptom=symptom,
    )
