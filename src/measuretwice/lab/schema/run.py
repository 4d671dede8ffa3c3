"""[run]: the steps of a run, and what the kernel needs for it."""

from __future__ import annotations

from measuretwice.lab.schema.base import Name, NodeName, Strict


class Step(Strict):
    """One phase of one node's script.

    A background step says itself when it is ready. It is waited for when all is measured, or,
    with `stop`, told to end.
    """

    node: NodeName
    phase: Name
    background: bool = False
    stop: bool = False


class Run(Strict):
    """The steps of a run, in order. `conclude` comes when all is measured: what a person works out
    from the nodes' files.

    `memory` names the parameter with the virtual kernel's memory in bytes, where 512 MB aren't
    enough. Then TCP may use most of it, and the backlog between drivers and IP holds 100000
    packets instead of 1000. `reader_interval` names the one that says how often a receiving program
    gets its data there, in ms, where 10 ms are too often.

    `too_much_for_browser` holds words of parameters that the browser's machine has neither the time nor the memory for,
    as for a program in Python that every packet passes.

    `qdiscs` and `algorithms` are the queue disciplines and congestion controls that the kernel must
    have; `=name` stands for what that parameter says. The virtual kernel has them all, others are
    asked before a run.
    """

    prepare: list[Step]
    measure: list[Step]
    conclude: list[Step] = []
    memory: Name | None = None
    reader_interval: Name | None = None
    too_much_for_browser: dict[Name, list[str]] = {}
    qdiscs: list[str] = []
    algorithms: list[str] = []

    @property
    def steps(self) -> list[Step]:
        """All steps, in order."""
        return [*self.prepare, *self.measure, *self.conclude]
