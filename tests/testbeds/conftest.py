"""What lab.toml says, read without the package, for the files made from it to be held against."""

from __future__ import annotations

import tomllib
from collections import deque
from dataclasses import dataclass
from functools import cache, cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from measuretwice.lab import Lab, find_labs, read_lab

ROOT = Path(__file__).parents[2]
Members = dict[str, set[tuple[str, str]]]
Routes = dict[str, list[tuple[str, str]]]


@dataclass(frozen=True, eq=False)
class Truth:
    """A lab by its lab.toml alone."""

    lab: Lab
    topology: dict[str, Any]

    @cached_property
    def nodes(self) -> list[str]:
        return [node["name"] for node in self.topology["nodes"]]

    @cached_property
    def forwards(self) -> set[str]:
        return {node["name"] for node in self.topology["nodes"] if node.get("forward")}

    @cached_property
    def ends(self) -> list[list[tuple[str, IPv4Interface]]]:
        return [
            [(link[end]["node"], IPv4Interface(link[end]["address"])) for end in "ab"]
            for link in self.topology["links"]
        ]

    @cached_property
    def networks(self) -> Members:
        """Each subnet's members: node and address with its length."""
        found: Members = {}
        for ends in self.ends:
            for node, address in ends:
                found.setdefault(str(address.network), set()).add((node, str(address)))
        return found

    def way(self, start: str, goal: str) -> list[str]:
        """The nodes on the cables from one node to another."""
        before, path = self._before(start), [goal]
        while path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]

    @cache  # noqa: B019 # a few labs, for as long as the tests run
    def _before(self, start: str) -> dict[str, str]:
        before, waiting = {start: start}, deque([start])
        while waiting:
            here = waiting.popleft()
            for (a, _), (b, _) in self.ends:
                for end, other in ((a, b), (b, a)):
                    if end == here and other not in before:
                        before[other] = here
                        waiting.append(other)
        return before

    def check_routes(self, routes: Routes, forwards: set[str]) -> None:
        """Hop by hop, every node reaches every address, and on the way that its cables go."""
        assert forwards == self.forwards
        owner = {address.ip: node for ends in self.ends for node, address in ends}
        own: dict[str, set[IPv4Network]] = {}
        for ends in self.ends:
            for node, address in ends:
                own.setdefault(node, set()).add(address.network)
        assert list(routes) == self.nodes
        for start in self.nodes:
            for goal, at in owner.items():
                here, path = start, [start]
                while here != at:
                    assert here == start or here in forwards, f"{here} doesn't forward: {path}"
                    if any(goal in subnet for subnet in own[here]):
                        here = at
                    else:
                        fitting = [
                            via for subnet, via in routes[here] if goal in IPv4Network(subnet)
                        ]
                        assert len(fitting) == 1, f"{here} has {fitting} for {goal}"
                        assert any(IPv4Address(fitting[0]) in subnet for subnet in own[here])
                        here = owner[IPv4Address(fitting[0])]
                    path.append(here)
                    assert len(path) <= len(self.nodes), f"a loop: {path}"
                # Hosts of one Ethernet need no router between them; else the way is the cables'.
                straight = len(path) == 2 and own[start] & own[at]
                assert straight or path == self.way(start, at)
        subnets = {subnet for of_node in routes.values() for subnet, _ in of_node}
        assert not subnets & {"default", "0.0.0.0/0"}


def truth_of(folder: Path) -> Truth:
    text = (folder / "lab.toml").read_text(encoding="utf-8")
    return Truth(read_lab(folder), tomllib.loads(text)["topology"])


@pytest.fixture(params=list(find_labs(ROOT)))
def truth(request: pytest.FixtureRequest) -> Truth:
    return truth_of(find_labs(ROOT)[request.param])


@pytest.fixture
def mathis() -> Truth:
    return truth_of(find_labs(ROOT)["mathis"])
