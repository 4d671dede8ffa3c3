"""What checks are given, what they return, and how each is made known.

A check says of itself, in its decorator, which findings it raises, what these explain, their hints, and the
measured values that it needs. One that needs a value which nothing measures fails when its module is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import ModuleType
from typing import Any, Literal

from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.results import Meaning
from measuretwice.measure import fields
from measuretwice.measure.expectations import Verdict
from measuretwice.measure.fields import Measured, number
from measuretwice.measure.host_state import HostState, Socket

Severity = Literal["error", "warning", "note"]
Hints = tuple[str, str, str]
# A connection that sent less is one for control: iperf3 has one beside its data's.
DATA_BYTES = 100_000
SAMPLE_SLACK_S = 0.5
SSH_PORT = 22
# More than what a person types and reads.
TYPED_BYTES = 1_000_000
TYPED_SHARE = 0.02


@dataclass(frozen=True)
class Finding:
    """What was measured, what was expected instead, and why that matters.

    `symptom` is what is off, and by how much, where `measured` and `expected` would say the cause: whoever is
    still looking for that reads it in their place. `hint` is one step of the ladder (where to look; what to
    compare; the cause) or None; `page` is where the site explains it, below the site's root. `consequences`
    are what else is off because of it. `rests_on` names the parameter without which nothing would be off.
    """

    id: str
    measured: str
    expected: str
    why: str
    severity: Severity = "error"
    hint: str | None = None
    page: str = ""
    symptom: str = ""
    consequences: tuple[str, ...] = ()
    rests_on: str = ""

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        del values["rests_on"]
        values = {"id": values.pop("id"), "severity": values.pop("severity"), **values}
        return {"off" if key == "symptom" else key: value for key, value in values.items()}


def in_mbit(rate_bps: float) -> str:
    """Return a rate in Mbit/s to four digits, without an exponent."""
    rate = rate_bps / 1e6
    return f"{rate:.0f}" if rate >= 1e4 else f"{rate:.4g}"


@dataclass(frozen=True)
class Right:
    """What a check has looked at and found as it was meant to be, in words."""

    what: str


@dataclass(frozen=True)
class SetFinding:
    """A finding and the runs that it is about, by their index in the list that was given."""

    finding: Finding
    members: tuple[int, ...]


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding: its id, what its check looks at, and the findings that it `explains`.

    Where one finding explains another, only the first is reported. `hints` are where to look, what to compare,
    the cause; they may be left out where a lab stages the finding as a pitfall, whose own come first. `description` is None where
    another check that raises the same finding has it.
    """

    id: str
    description: str | None = None
    explains: tuple[str, ...] = ()
    hints: Hints | None = None


def flows_both_ways(received: Mapping[str, float | None], sent: Mapping[str, float | None]) -> bool:
    """Return whether a node received flows and sent some, by *_received_flows and *_goodput_bps: then a round trip has two queues
    in it, of which a lab samples one."""
    return any(count and node in sent for node, count in received.items())


@dataclass(frozen=True)
class RunUnderTest:
    """A run as the checks see it: its settings, and the values that were measured (None: not known).

    A check gets only the measured values that it says it `needs`. `algorithms` are the congestion controls that
    the settings ask for, `meanings` what else they mean (`[checks] means`), `verdicts` those on what its lab
    expects, `flows_each` how many data connections each sender has where no parameter says it, and `flows_of` are the
    parameters that say how many there are in all. `host_state` is None
    where only measured values are left, `reference` (how the lab's own scripts set the nodes up) where there is none to
    compare with. Of files that a person `brought` there is no run's folder; `stated` are the parameters that they set
    themselves, `by_trial` those that their trial sets (None: all count as stated). The others are the lab's own.
    """

    params: dict[str, Value]
    values: Measured
    max_loss_ratio: float | None = None
    needs: frozenset[str] = frozenset()
    algorithms: frozenset[str] = frozenset()
    meanings: frozenset[Meaning] = frozenset()
    verdicts: tuple[Verdict, ...] = ()
    flows_each: int | None = None
    flows_of: tuple[str, ...] = ("parallel_flows",)
    host_state: HostState | None = None
    reference: HostState | None = None
    brought: bool = False
    stated: frozenset[str] | None = None
    by_trial: frozenset[str] = frozenset()

    def is_stated(self, name: str) -> bool:
        """Return whether somebody said that a parameter has its value, by setting it or by naming a trial that does."""
        return self.stated is None or name in self.stated | self.by_trial

    def param(self, name: str) -> float | None:
        """Return a parameter's number; None where the run has none by that name, or a text."""
        value = self.params.get(name)
        return float(value) if isinstance(value, int | float) else None

    def measured(self, name: str) -> float | None:
        """Return a measured number. KeyError for one that the check hasn't said it needs."""
        self._must_need(name)
        return number(self.values, name)

    def measured_text(self, name: str) -> str | None:
        """Return a measured text. KeyError as `measured`."""
        self._must_need(name)
        value = self.values.get(name)
        return value if isinstance(value, str) else None

    def measured_group(self, name: str) -> dict[str, float | None]:
        """Return the numbers of a group, as `*_received_flows`, by what stands in place of its `*`."""
        self._must_need(name)
        return {
            part: number(self.values, whole)
            for part, whole in fields.members(name, self.values).items()
        }

    def data_sockets(self) -> list[Socket]:
        """Return the flows: the senders' connections that carried data. None where they aren't known."""
        return [socket for socket in self._data_sockets() if socket.is_named is not False]

    def other_sockets(self) -> list[Socket]:
        """Return connections of the senders' that carried data and that iperf3 doesn't name, but for those of other times
        in the same log."""
        ours = self.data_sockets()
        # ss counts since a connection began, which may be long before the test.
        typed = max(TYPED_BYTES, TYPED_SHARE * sum(socket.bytes_sent or 0 for socket in ours))
        return [
            other
            for other in self._data_sockets()
            if other.is_named is False
            # Whoever works on that host does so by ssh.
            and not (is_ssh(other) and (other.bytes_sent or 0) < typed)
            and not any(other.node == socket.node and _apart(other, socket) for socket in ours)
        ]

    def has_marks(self) -> bool:
        """Return whether a flow had packets that a queue marked (ECN), by its sender's own count; of a qdisc younger than itself tc
        counts none."""
        return any(
            socket.last and socket.last.delivered_ce_segments for socket in self.data_sockets()
        )

    def flows_time(self) -> tuple[float, float]:
        """Return the Unix times of the first sample of any flow and of the last; zeros where none was sampled."""
        spans = self.host_state.flows_sampled if self.host_state else ()
        first_s = min((span.first_s for span in spans), default=0.0)
        return first_s, max((span.last_s for span in spans), default=0.0)

    def unseen_bytes(self, sockets: Sequence[Socket]) -> float:
        """Return how much the senders of these connections may have sent after ss's last look, at the fastest rate that is
        known: ss sees nothing of the last part of a test, of up to an interval."""
        nodes = {socket.node for socket in sockets}
        tests = [
            test
            for test in (self.host_state.transfers if self.host_state else ())
            if test.node in nodes or test.tool != "iperf3"
        ]
        seen_s = max(max(socket.alive_s, socket.busy_s or 0.0) for socket in sockets)
        lasted_s = max(
            (test.arrived.seconds + test.omit_s for test in tests if test.arrived), default=0.0
        )
        unseen_s = max((self.param("sample_interval_s") or 1.0) + SAMPLE_SLACK_S, lasted_s - seen_s)
        rates = [
            sum(
                max(
                    (
                        8 * row.bytes / (row.end_s - row.start_s)
                        for row in test.rows
                        if row.end_s > row.start_s
                    ),
                    default=0.0,
                )
                for test in tests
            ),
            8 * sum(socket.bytes_acked or 0 for socket in sockets) / max(seen_s, unseen_s),
        ]
        return unseen_s * max(rates) / 8

    def _data_sockets(self) -> list[Socket]:
        sockets = self.host_state.sockets if self.host_state else ()
        return [
            socket
            for socket in sockets
            if (socket.bytes_sent or 0) >= DATA_BYTES
            # Of such an old ss iperf3 must say which connection is its own.
            or (socket.bytes_sent is None and socket.is_named)
        ]

    def _must_need(self, name: str) -> None:
        if name not in self.needs:
            raise KeyError(f"{name!r} isn't among the values that this check needs")


def is_ssh(socket: Socket) -> bool:
    """Return whether one end of a connection is ssh's own port."""
    return socket.port == SSH_PORT or socket.peer.endswith(f":{SSH_PORT}")


def _apart(socket: Socket, other: Socket) -> bool:
    """Return whether no sample has both."""
    return socket.seen[1] < other.seen[0] or other.seen[1] < socket.seen[0]


@dataclass(frozen=True)
class Member:
    """One run of a set: its plan, and what was measured. Runs of one `group`, such as a pitfall's stage or
    a case, are taken for one set; of a `case` each try for itself."""

    trial: int
    group: tuple[object, ...]
    seed: int
    params: dict[str, Value]
    measured: Measured = field(default_factory=dict)
    case: int | None = None


CheckRun = Callable[[RunUnderTest], Finding | Right | None]
CheckSet = Callable[[Lab, Sequence[Member]], Finding | None]


@dataclass(frozen=True)
class Check:
    """A check of one run: `Right` where it looked and the run is what it was meant to be, None where the run lacks
    what the check `needs`, or nothing is meant."""

    function: CheckRun
    raises: tuple[FindingKind, ...]
    needs: frozenset[str]

    def __call__(self, run: RunUnderTest) -> Finding | Right | None:
        answer = self.function(replace(run, needs=self.needs))
        return answer if isinstance(answer, Right) else _registered(answer, self.raises)


@dataclass(frozen=True)
class SetCheck:
    """A check of runs taken together. What comes `first` is reported before what other checks find."""

    function: CheckSet
    raises: tuple[FindingKind, ...]
    first: bool

    def __call__(self, lab: Lab, runs: Sequence[Member]) -> Finding | None:
        return _registered(self.function(lab, runs), self.raises)


_registry: list[Check | SetCheck] = []


def check(*raises: FindingKind, needs: Iterable[str]) -> Callable[[CheckRun], Check]:
    """Register a check of one run with the findings that it can raise.

    KeyError for a value among `needs` that isn't in the catalogue of measured names.
    """

    def register(function: CheckRun) -> Check:
        names = frozenset(needs)
        fields.require(names, f"the check {function.__name__}")
        entry = Check(function, raises, names)
        _registry.append(entry)
        return entry

    return register


def set_check(*raises: FindingKind, first: bool = False) -> Callable[[CheckSet], SetCheck]:
    """Register a check of runs taken together."""

    def register(function: CheckSet) -> SetCheck:
        entry = SetCheck(function, raises, first)
        _registry.append(entry)
        return entry

    return register


def checks_of(module: ModuleType) -> list[Check | SetCheck]:
    """Return a module's checks in the order in which they stand in it."""
    return [entry for entry in _registry if entry.function.__module__ == module.__name__]


def _registered(finding: Finding | None, raises: tuple[FindingKind, ...]) -> Finding | None:
    if finding is not None and finding.id not in {kind.id for kind in raises}:
        raise KeyError(f"a check raises {finding.id!r}, which it isn't registered for")
    return finding
