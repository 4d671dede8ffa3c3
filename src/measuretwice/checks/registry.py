"""How a check is made known: what it looks at, what it needs, what its findings explain, its hints.

All of it stands at the check itself, as a decorator. A check that needs a value which nothing
measures fails here, when its module is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from measuretwice.checks.case import Case, Member
from measuretwice.checks.finding import Finding
from measuretwice.lab import Lab
from measuretwice.measure import fields

Look = Callable[[Case], Finding | None]
LookAtSet = Callable[[Lab, Sequence[Member]], Finding | None]
Hints = tuple[str, str, str]


@dataclass(frozen=True)
class Help:
    """A kind of finding: its id, what its check looks at, and the findings that it `explains`.

    Where one finding explains another, only the first is told. `hints` are where to look, what to
    compare, the cause; None where a lab stages the finding as a pitfall, which has its own.
    `looks_at` is None where another check that raises the same finding says it.
    """

    id: str
    looks_at: str | None = None
    explains: tuple[str, ...] = ()
    hints: Hints | None = None


@dataclass(frozen=True)
class Check:
    """A check of one run: None where the run is what it was meant to be, or doesn't have what the
    check `needs`."""

    look: Look
    raises: tuple[Help, ...]
    needs: frozenset[str]

    def __call__(self, case: Case) -> Finding | None:
        return _registered(self.look(replace(case, needs=self.needs)), self.raises)


@dataclass(frozen=True)
class SetCheck:
    """A check of runs taken together. What comes `first` is told before what other checks find."""

    look: LookAtSet
    raises: tuple[Help, ...]
    first: bool

    def __call__(self, lab: Lab, runs: Sequence[Member]) -> Finding | None:
        return _registered(self.look(lab, runs), self.raises)


_registry: list[Check | SetCheck] = []


def check(*raises: Help, needs: Iterable[str]) -> Callable[[Look], Check]:
    """Register a check of one run with the findings that it can raise.

    KeyError for a value among `needs` that isn't in the catalogue of measured names.
    """

    def register(look: Look) -> Check:
        names = frozenset(needs)
        fields.require(names, f"the check {look.__name__}")
        entry = Check(look, raises, names)
        _registry.append(entry)
        return entry

    return register


def set_check(*raises: Help, first: bool = False) -> Callable[[LookAtSet], SetCheck]:
    """Register a check of runs taken together."""

    def register(look: LookAtSet) -> SetCheck:
        entry = SetCheck(look, raises, first)
        _registry.append(entry)
        return entry

    return register


def checks_of(module: ModuleType) -> list[Check | SetCheck]:
    """Return a module's checks in the order in which they stand in it."""
    return [entry for entry in _registry if entry.look.__module__ == module.__name__]


def _registered(finding: Finding | None, raises: tuple[Help, ...]) -> Finding | None:
    if finding is not None and finding.id not in {help.id for help in raises}:
        raise KeyError(f"a check raises {finding.id!r}, which it isn't registered for")
    return finding
