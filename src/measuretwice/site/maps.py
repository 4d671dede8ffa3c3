"""The instructors' maps: which lab and which pitfall comes after which, drawn from lab.toml."""

from __future__ import annotations

from collections.abc import Iterable

from measuretwice.site.excerpts import Block
from measuretwice.site.words import LabWords

# Of each box: its name, its minutes, the names of those that come before.
Box = tuple[str, int, list[str]]


def labs_map(labs: list[LabWords]) -> Block:
    """The labs and what each needs, as a diagram."""
    boxes = [(one.name, one.about.minutes, one.about.needs) for one in labs]
    return _diagram("Which lab comes after which", boxes)


def pitfalls_map(words: LabWords) -> Block:
    """A lab's pitfalls and what each needs, as a diagram."""
    boxes = [(one.id, one.minutes, one.needs) for one in words.pitfalls]
    return _diagram(f"Which pitfall of {words.name} comes after which", boxes)


def _diagram(title: str, boxes: Iterable[Box]) -> Block:
    boxes = list(boxes)
    # Names of ours: a word such as end means something to mermaid.
    known = {name: f"box{number}" for number, (name, _, _) in enumerate(boxes)}
    lines = ["```diagram", "flowchart LR", f"  accTitle: {title}"]
    lines += [f'  {known[name]}["{name}<br>{minutes} min"]' for name, minutes, _ in boxes]
    lines += [
        f"  {known[need]} --> {known[name]}"
        for name, _, needs in boxes
        for need in needs
        if need in known
    ]
    return Block("\n".join([*lines, "```"]) + "\n")
