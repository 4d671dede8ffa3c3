"""Where a fault is put into a lab, by lab; and what kinds of faults have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from faults import Fault
from measuretwice.lab import Value

Params = Mapping[str, Value]
SENDERS = {
    "mathis": ["romeo"], "buffers": ["s1", "s2"], "scale": [f"sender-{n}" for n in range(10)],
    "variants": ["client"], "queues": ["host-1", "host-2"], "calibrate": ["romeo"],
}  # fmt: skip
RECEIVERS = {
    "mathis": ["juliet"], "buffers": ["d1", "d2"], "scale": [f"receiver-{n}" for n in range(10)],
    "variants": ["server"], "queues": ["host-3"], "calibrate": ["juliet"],
}  # fmt: skip
# The first of each.
SENDER = {lab: nodes[0] for lab, nodes in SENDERS.items()}
RECEIVER = {lab: nodes[0] for lab, nodes in RECEIVERS.items()}
# The router whose queue is looked at, with its interface towards the receivers.
BOTTLENECK = {
    "mathis": ("router", "eth1"), "buffers": ("g1", "eth2"), "scale": ("router", "eth10"),
    "variants": ("gateway", "eth2"), "queues": ("router-1", "eth2"), "calibrate": ("router", "eth1"),
}  # fmt: skip
SET = frozenset({"configuration"})


def before(*lines: str) -> Fault:
    return Fault(before=lines)


def during(*lines: str) -> Fault:
    return Fault(during=lines)


def damaged(damage: Callable[[Path], None]) -> Fault:
    return Fault(damage=lambda run, twin: damage(run))


# --- lines of shell ---


def at(node: str, command: str) -> str:
    return f"ip netns exec {node} {command}"


def replaced_root(node: str, device: str, words: str) -> str:
    """Put a queue in place of whatever an interface has at its root."""
    return at(node, f"tc qdisc replace dev {device} root {words}")


def policed(node: str, rate: str) -> tuple[str, str]:
    """A filter that throws away what comes in faster, before any queue sees it."""
    police = f"police rate {rate} burst 20000 conform-exceed drop"
    return (
        at(node, "tc qdisc add dev eth0 clsact"),
        at(node, f"tc filter add dev eth0 ingress matchall action {police}"),
    )


def routes_changed(node: str, metric: str) -> str:
    """Every route over a gateway of a node gets a metric."""
    return (
        f"ip -n {node} route show | grep via | "
        f"while read -r route; do ip -n {node} route change $route {metric}; done"
    )


# --- files ---


def logs(run: Path, name: str) -> list[Path]:
    """The files of that name, one of each node that has any."""
    return sorted((run / "raw").glob(f"*/{name}"))


def exchange(first: Path, second: Path) -> None:
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def shift_samples(path: Path, shift_s: float) -> None:
    text = re.sub(r"# t=([\d.]+)", lambda t: f"# t={float(t[1]) + shift_s:.9f}", path.read_text())
    path.write_text(text)


def keep_first_samples(path: Path, ratio: float) -> None:
    samples = re.split(r"(?m)^(?=# t=)", path.read_text())
    path.write_text("".join(samples[: round(len(samples) * ratio)]))
