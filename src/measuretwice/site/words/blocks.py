"""Markdown of several lines, as words give it to pages."""

from __future__ import annotations

from collections.abc import Sequence

# What a pitfall's three hints are about, in order.
STEPS = ("Where to look", "What to compare", "The cause")


class Block(str):
    """Markdown of several lines. It takes on the indentation of the place where it stands."""

    __slots__ = ()


def folded_hints(hints: Sequence[str]) -> Block:
    """Return a ladder of three hints, each folded."""
    parts = [
        f'??? tip "Hint {n}: {title}"\n\n    {text}\n'
        for n, (title, text) in enumerate(zip(STEPS, hints, strict=True), 1)
    ]
    return Block("\n".join(parts))
