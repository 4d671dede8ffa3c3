"""The check of how nodes were set, against what the lab's own scripts make of the same settings.

It speaks of runs with scripts of somebody's own, of live labs, and of files that a person brings: for
others there is nothing to compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check
from measuretwice.measure.host_state import HostState, Interface, Node, place_of
from measuretwice.parse import Qdisc

# Of each interface: what decides which packets it sends. A machine's other features are its own.
FEATURES = (
    "mtu",
    "state",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "speed",
)
# The sysctls that change what TCP does on a path.
SYSCTLS = (
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)
# Queues that hold nothing back: an interface has one of these where nobody set another.
PLAIN = frozenset({"noqueue", "pfifo_fast", "fq_codel", "mq", "fq", "pfifo"})
# What tc prints of a qdisc and nobody sets.
NOT_SET = frozenset({"direct_packets_stat", "direct_qlen", "seed", "r2q"})
SAME_RATIO = 1e-3
SHOWN = 3


@check(
    Help(
        "configuration",
        "Each node's interfaces, queues and sysctls, compared with what the lab's own scripts set.",
        explains=(
            "duration", "loss-ratio", "lost-between", "other-drops", "other-traffic", "queueing",
            "receive-window", "retransmissions", "round-trip-time", "segment-size", "send-buffer",
            "unexplained",
        ),
        hints=(
            "Not every node is set as the lab's own scripts set it. Go from node to node: ./lab show RUN qdisc, link, sysctl, ethtool.",
            "Compare with a run of the same trial by the lab's own scripts: ./lab diff RUN RUN lists the files that differ.",
            "What differs is said above, node by node: set it as the lab does, or take it away.",
        ),
    ),
    needs=(),
)  # fmt: skip
def configuration(case: Case) -> Finding | None:
    if case.host_state is None or case.reference is None:
        return None
    # A radio's rate changes all the time: that is what its node is there for.
    steady = "rate-varies" not in case.meant
    found = list(differences(case.host_state, case.reference, steady=steady))
    if not found:
        return None
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return Finding(
        "configuration",
        "error",
        "; ".join(found[:SHOWN]) + more,
        "what the lab's own scripts set",
        "The network wasn't as the settings say.",
        off=f"{len(found)} setting{'s' if len(found) != 1 else ''} of the nodes "
        f"differ{'' if len(found) != 1 else 's'} from what the lab's own scripts set",
    )


def differences(found: HostState, meant: HostState, *, steady: bool = True) -> Iterator[str]:
    """Yield what differs, in words; only of what both have. Queues of a `steady` network don't change
    while a run is on."""
    for name, node in found.nodes.items():
        if name in meant.nodes:
            for text in _of_node(node, meant.nodes[name]):
                yield f"{name}: {text}"
        for interface in node.interfaces.values() if steady else ():
            for text in _changed(interface):
                yield f"{name}: {interface.name} {text}"


def _of_node(node: Node, meant: Node) -> Iterator[str]:
    for interface in node.interfaces.values():
        other = _counterpart(interface, meant)
        if other is not None:
            for text in _of_interface(interface, other):
                yield f"{interface.name} {text}"
        elif extra := [one.kind for one in interface.qdiscs if one.kind not in PLAIN]:
            yield f"{interface.name} has a queue of {extra[0]}, which the lab doesn't set"
    for name in SYSCTLS:
        value, wanted = node.sysctls.get(name), meant.sysctls.get(name)
        if value is not None and wanted is not None and value != wanted:
            yield f"{name} is {value}, not {wanted}"
    if node.routes and meant.routes and not {*meant.routes} <= {*node.routes}:
        missing = next(route for route in meant.routes if route not in node.routes)
        yield f"there is no route {missing}"


def _counterpart(interface: Interface, meant: Node) -> Interface | None:
    """The same interface, by its addresses: names differ from machine to machine."""
    for other in meant.interfaces.values():
        if {*interface.addresses} & {*other.addresses}:
            return other
    return None if interface.addresses else meant.interfaces.get(interface.name)


def _of_interface(interface: Interface, meant: Interface) -> Iterator[str]:
    for name in FEATURES:
        value, wanted = interface.settings.get(name), meant.settings.get(name)
        if value and wanted and "unknown" not in (value, wanted) and value != wanted:
            yield f"has {name} {value}, not {wanted}"
    ours = {place_of(one): one for one in interface.qdiscs}
    theirs = {place_of(one): one for one in meant.qdiscs}
    for place in ours.keys() | theirs.keys():
        one, other = ours.get(place), theirs.get(place)
        if one is None and other is not None and other.kind not in PLAIN:
            yield f"has no {other.kind} at {place.split(' ', 1)[1]}"
        elif (
            other is None and one is not None and (one.kind not in PLAIN or _rules(one, interface))
        ):
            yield f"has a queue of {one.kind} at {place.split(' ', 1)[1]}, which the lab doesn't set"
        elif one is not None and other is not None:
            yield from _of_qdisc(one, other)


def _rules(qdisc: Qdisc, interface: Interface) -> bool:
    """Whether a plain queue does something after all: it drops, or it stands below a qdisc that makes packets wait."""
    above = (qdisc.parent or "").split(":")[0]
    shaped = any(
        one.handle.split(":")[0] == above and one.kind not in PLAIN
        for one in interface.qdiscs
        if above
    )
    return shaped or bool(interface.drops.get(place_of(qdisc)))


def _changed(interface: Interface) -> Iterator[str]:
    """What somebody set while the run was on."""
    if interface.qdiscs_after is None:
        return
    before = {place_of(one): one for one in interface.qdiscs}
    after = {place_of(one): one for one in interface.qdiscs_after}
    if before.keys() != after.keys():
        kinds = ", ".join(one.kind for one in interface.qdiscs_after)
        yield f"has {kinds} after the run and had {', '.join(one.kind for one in interface.qdiscs)} before it"
        return
    for place, one in after.items():
        for text in _of_qdisc(one, before[place]):
            yield f"{text} before the run"


def _of_qdisc(one: Qdisc, meant: Qdisc) -> Iterator[str]:
    ours, theirs = dict(_flat(one.options)), dict(_flat(meant.options))
    for name in sorted(ours.keys() | theirs.keys()):
        value, wanted = ours.get(name), theirs.get(name)
        if name.rsplit(".", 1)[-1] in NOT_SET or _same(value, wanted):
            continue
        yield f"has {one.kind} with {name} {_said(value)}, not {_said(wanted)}"


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _same(value: object, wanted: object) -> bool:
    numbers = [each for each in (value, wanted) if isinstance(each, int | float)]
    if len(numbers) == 2:
        return math.isclose(*numbers, rel_tol=SAME_RATIO)
    # What is 0 or off, one version of tc prints and another leaves out.
    return value == wanted or (not value and not wanted)


def _said(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
