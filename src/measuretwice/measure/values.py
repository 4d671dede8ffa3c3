"""What measuring gives: values by name, the unit at each name's end. The names stand in fields.py."""

from __future__ import annotations

from collections.abc import Mapping

# None: the raw files don't have it. Words are few: an algorithm, a kind of queue.
Measured = dict[str, float | int | str | None]


def number(measured: Mapping[str, float | int | str | None], name: str) -> float | int | None:
    """Return a measured number; None where the run doesn't have it, or has a word by that name."""
    value = measured.get(name)
    return None if isinstance(value, str) else value
