"""Nodes of their own, reached by ssh, as a place for trials: for `--on nodes.toml`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from measuretwice.backends.backend import Backend
from measuretwice.backends.node_list import read_node_list
from measuretwice.backends.ssh_nodes import Nodes
from measuretwice.backends.ssh_trial import run_trial
from measuretwice.backends.tools import TOOLS
from measuretwice.base.errors import UserError
from measuretwice.lab import KernelFacts, Lab, Plan


class SshNodes(Backend):
    """One trial at a time on machines of their own; connections stay in this process."""

    name = "nodes"
    accepts = "a file as nodes.toml"
    option = " --on nodes.toml"
    real_time = True
    portable = False
    place = "on the nodes"

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.kernel, self.tools = nodes.kernel_name, nodes.tools

    @classmethod
    def is_meant(cls, where: str) -> bool:
        return Path(where).suffix == ".toml" or Path(where).is_file()

    @classmethod
    @contextmanager
    def opened(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        listed = read_node_list(Path(where), [node.name for node in lab.file.topology.nodes])
        if not shutil.which("ssh"):
            raise UserError("ssh is missing: install openssh-client")
        nodes = Nodes(listed)
        try:
            nodes.greet(TOOLS)
            yield cls(nodes)
        finally:
            nodes.close()

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        return self._nodes.problems(lab, plans)

    @contextmanager
    def serving(self) -> Iterator[None]:
        self._nodes.stopping.clear()
        try:
            yield
        finally:
            self._nodes.stopping.set()

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        run_trial(self._nodes, lab, plan, root, work, wall_limit_s)

    def kernel_facts(self) -> KernelFacts:
        return KernelFacts(self.kernel, {"nodes": self._nodes.kernels})

    @property
    def remarks(self) -> list[str]:
        return self._nodes.remarks
