"""What measuring gives: numbers by name, the unit at each name's end. The names stand in fields.py."""

from __future__ import annotations

# None: the raw files don't have it.
Measured = dict[str, float | int | None]
