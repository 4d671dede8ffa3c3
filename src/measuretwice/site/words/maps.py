"""The instructors' maps: which lab and which pitfall comes after which, drawn from lab.toml."""

from __future__ import annotations

from collections.abc import Iterable

from measuretwice.site.words.blocks import Block
from measuretwice.site.words.registry import site_word
from measuretwice.site.words.subjects import SiteWords

# Of each box: its name, its minutes, the names of those that come before.
Box = tuple[str, int, list[str]]


@site_word("labs_map()")
def labs_map(site: SiteWords) -> Block:
    """Which lab comes after which, as a diagram."""
    labs = [words.lab for words in site.labs.values()]
    boxes = [(lab.name, lab.file.lab.minutes, lab.file.lab.needs) for lab in labs]
    return _diagram("Which lab comes after which", boxes)


@site_word('pitfalls_map("mathis")')
def pitfalls_map(site: SiteWords, name: str) -> Block:
    """Which mistake of a lab comes after which, as a diagram."""
    lab = site.lab(name).lab
    boxes = [(pitfall.id, pitfall.minutes, pitfall.needs) for pitfall in lab.file.pitfalls]
    return _diagram(f"Which pitfall of {lab.name} comes after which", boxes)


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
