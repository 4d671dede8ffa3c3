"""What plans need of a kernel that isn't ours: queue disciplines and congestion controls."""

from __future__ import annotations

from collections.abc import Iterable

from measuretwice.lab import CheckedParams, Lab, Plan, refers

# What tc wants to be told of these kinds; others do without.
LEAST_OPTIONS = {
    "tbf": "rate 1mbit burst 10000 limit 10000",
    "red": "limit 60000 min 10000 max 30000 avpkt 1000 burst 20",
    "bfifo": "limit 10000",
}


def needs(lab: Lab, plans: Iterable[Plan]) -> dict[str, str]:
    """Return what these plans need of a kernel, in words, each with the command that tries it.

    To be tried in a network namespace of its own.
    """
    plans = list(plans)
    settings = [plan.params for plan in plans]
    return {
        f"the queue discipline {kind} (sch_{kind})": (
            f"tc qdisc add dev lo root {kind} {LEAST_OPTIONS.get(kind, '')}"
        )
        for kind in _named(lab.file.run.qdiscs, settings)
    } | {
        f"the congestion control {name} (tcp_{name})": (
            f"sysctl -qw net.ipv4.tcp_congestion_control={name}"
        )
        for name in algorithms_of(lab, plans)
    }


def algorithms_of(lab: Lab, plans: Iterable[Plan]) -> list[str]:
    """Return the congestion controls that these plans name."""
    return _named(lab.file.run.algorithms, [plan.params for plan in plans])


def _named(names: list[str], settings: list[CheckedParams]) -> list[str]:
    """What is needed by name, with `=parameter` replaced by what that has in these plans."""
    found: set[str] = set()
    for name in names:
        found |= (
            {str(params[name[1:]]) for params in settings if name[1:] in params}
            if refers(name)
            else {name}
        )
    return sorted(found - {"none"})
