"""The instructors' maps: which lab and which pitfall comes after which, drawn from lab.toml."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from measuretwice.site.drawings.svg import box, drawing, label, n, width_of
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.registry import site_word
from measuretwice.site.words.subjects import SiteWords

SIZE, LINE, HEIGHT, GAP, ROW = 13.0, 16.0, 42.0, 44.0, 54.0


@dataclass
class Box:
    """A part of the course, and those among the map's parts that come before it."""

    name: str
    minutes: int
    needs: Sequence[str]
    column: int = 0
    row: float = 0


@site_word("labs_map()")
def labs_map(site: SiteWords) -> Block:
    """Which lab comes after which, drawn."""
    labs = [words.lab for words in site.labs.values()]
    boxes = [Box(lab.name, lab.file.lab.minutes, lab.file.lab.needs) for lab in labs]
    return _drawn("Which lab comes after which", boxes)


@site_word('pitfalls_map("mathis")')
def pitfalls_map(site: SiteWords, name: str) -> Block:
    """Which mistake of a lab comes after which, drawn."""
    lab = site.lab(name).lab
    boxes = [Box(pitfall.id, pitfall.minutes, pitfall.needs) for pitfall in lab.file.pitfalls]
    return _drawn(f"Which pitfall of {lab.name} comes after which", boxes)


def _drawn(title: str, boxes: list[Box]) -> Block:
    known = {each.name: each for each in boxes}
    for each in boxes:
        each.needs = [need for need in each.needs if need in known]
    _place(boxes, known)
    width = max(width_of(each.name, SIZE) for each in boxes) + 20
    parts = [
        arrow for each in boxes for need in each.needs for arrow in _arrow(known[need], each, width)
    ]
    parts += [part for each in boxes for part in _boxed(each, width)]
    columns, rows = (max(getattr(e, of) for e in boxes) for of in ("column", "row"))
    total = (width + GAP) * columns + width + 2, ROW * rows + HEIGHT + 2
    svg = drawing(*total, parts, kind="map", title=title, said=" ".join(_in_words(boxes)))
    return Block(f'<div class="diagram">{svg}</div>\n')


def _place(boxes: list[Box], known: dict[str, Box]) -> None:
    """Columns by how much must come before, rows near to what comes before."""

    def depth(each: Box) -> int:
        return max((1 + depth(known[need]) for need in each.needs), default=0)

    for each in boxes:
        each.column = depth(each)
    leads = {need for each in boxes for need in each.needs}
    for column in range(1 + max(each.column for each in boxes)):
        these = [each for each in boxes if each.column == column]
        if column == 0:
            these.sort(key=lambda each: each.name not in leads)
            wanted = dict.fromkeys((each.name for each in these), 0.0)
        else:
            wanted = {e.name: fmean(known[need].row for need in e.needs) for e in these}
            these.sort(key=lambda each: wanted[each.name])
        free = 0.0
        for each in these:
            each.row = max(free, wanted[each.name])
            free = each.row + 1


def _boxed(each: Box, width: float) -> Iterator[str]:
    x, y = 1 + (width + GAP) * each.column, 1 + ROW * each.row
    yield box(x, y, width, HEIGHT, "part")
    yield label(x + width / 2, y + LINE + 2, each.name, kind="name", anchor="middle")
    yield label(x + width / 2, y + 2 * LINE + 2, f"{each.minutes} min", anchor="middle")


def _arrow(before: Box, after: Box, width: float) -> Iterator[str]:
    """From the right side of what comes before to the left side of what comes after."""
    x, y = 1 + (width + GAP) * before.column + width, 1 + ROW * before.row + HEIGHT / 2
    to, down = (width + GAP) * after.column - 4, 1 + ROW * after.row + HEIGHT / 2
    bend = (to - x) / 2
    names = f'data-from="{html.escape(before.name)}" data-to="{html.escape(after.name)}"'
    yield f'<path class="arrow" {names} d="M{n(x)} {n(y)}c{n(bend)} 0 {n(bend)} {n(down - y)} {n(to - x)} {n(down - y)}"/>'
    yield f'<path class="head" d="M{n(to + 5)} {n(down)}l-8 -4v8z"/>'


def _in_words(boxes: list[Box]) -> Iterator[str]:
    for each in boxes:
        after = f"after {', '.join(each.needs)}" if each.needs else "after nothing"
        yield f"{each.name}, {each.minutes} minutes, {after}."
