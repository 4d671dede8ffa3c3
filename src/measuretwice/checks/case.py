"""What a check looks at: a run, or a run as one of a set."""

from __future__ import annotations

from dataclasses import dataclass, field

from measuretwice.lab import Value
from measuretwice.lab.schema.results import Meaning
from measuretwice.measure import fields
from measuretwice.measure.expectations import Verdict
from measuretwice.measure.fields import Measured, number
from measuretwice.measure.host_state import HostState, Socket

# A connection that sent less is one for control: iperf3 has one beside its data's.
DATA_BYTES = 100_000


@dataclass(frozen=True)
class Case:
    """A run as the checks see it: what was wanted, and what was measured (None: not known).

    A check gets only the measured values that it says it `needs`. `algorithms` are the congestion
    controls that the run was meant to have, by its settings, `meant` what these mean beside (`[checks] means`); `verdicts` are those on what its lab expects;
    `host_state` is None where only measured values are left, `reference` (how the lab's own scripts set
    the nodes up) where that isn't asked for.
    """

    wanted: dict[str, Value]
    measured: Measured
    max_loss_ratio: float | None = None
    needs: frozenset[str] = frozenset()
    algorithms: frozenset[str] = frozenset()
    meant: frozenset[Meaning] = frozenset()
    verdicts: tuple[Verdict, ...] = ()
    host_state: HostState | None = None
    reference: HostState | None = None

    def want(self, name: str) -> float | None:
        """Return a parameter's number; None where the run has none by that name, or a word."""
        value = self.wanted.get(name)
        return float(value) if isinstance(value, int | float) else None

    def got(self, name: str) -> float | None:
        """Return a measured value. KeyError for one that the check hasn't said it needs."""
        self._must_need(name)
        return number(self.measured, name)

    def word(self, name: str) -> str | None:
        """Return a measured word. KeyError as `got`."""
        self._must_need(name)
        value = self.measured.get(name)
        return value if isinstance(value, str) else None

    def family(self, name: str) -> dict[str, float | None]:
        """Return the values of a family, as `*_received_flows`, by what stands in place of its `*`."""
        self._must_need(name)
        return {
            part: number(self.measured, whole)
            for part, whole in fields.members(name, self.measured).items()
        }

    def data_sockets(self) -> list[Socket]:
        """Return the flows: the senders' connections that carried data. None where they aren't known."""
        sockets = self.host_state.sockets if self.host_state else ()
        return [
            one for one in sockets if one.bytes_sent >= DATA_BYTES and one.is_named is not False
        ]

    def other_sockets(self) -> list[Socket]:
        """Return connections of the senders' that carried data and that iperf3 doesn't name."""
        sockets = self.host_state.sockets if self.host_state else ()
        return [one for one in sockets if one.bytes_sent >= DATA_BYTES and one.is_named is False]

    def _must_need(self, name: str) -> None:
        if name not in self.needs:
            raise KeyError(f"{name!r} isn't among the values that this check says it needs")


@dataclass(frozen=True)
class Member:
    """One run of a set: its plan, and what was measured. `group` is what it belongs to, such as a
    pitfall's stage or a case: runs of one group are taken for one set."""

    trial: int
    group: tuple[object, ...]
    seed: int
    params: dict[str, Value]
    measured: Measured = field(default_factory=dict)
