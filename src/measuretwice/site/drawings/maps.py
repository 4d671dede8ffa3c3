"""Maps: which module of the course comes after which, and for instructors which lab and which pitfall."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from measuretwice.site.drawings.svg import box, drawing, label, n, width_of

# A box of the map and the room around it, in units of its drawing.
BOX, TALL, MODULE_GAP = 150, 58, 34
# How far from a side's middle an arrow from or to another row or column ends: no two lie on each other.
ASIDE, ASIDE_DOWN = 14, 30
# The same of an instructors' map: text and its lines, a box and the room around it.
SIZE, LINE, HEIGHT, GAP, ROW = 13.0, 16.0, 42.0, 44.0, 54.0


@dataclass(frozen=True)
class Module:
    """A module of the course: its page's address, its length and cases in words, and which come before it."""

    name: str
    address: str
    about: str
    needs: Sequence[str]


@dataclass
class Part:
    """A lab or a pitfall, and those among the map's parts that come before it."""

    name: str
    minutes: int
    needs: Sequence[str]
    column: int = 0
    row: float = 0


def draw_course(modules: Sequence[Module]) -> str:
    """Return the way through the modules, which are in order, with links: for wide screens and for narrow ones."""
    before = direct_needs({module.name: module.needs for module in modules})
    depth: dict[str, int] = {}
    for name, needs in before.items():
        depth[name] = 1 + max((depth[need] for need in needs), default=-1)
    places = {name: (depth[name], _beside(name, depth)) for name in depth}
    return "".join(_course(modules, before, places, across=across) for across in (True, False))


def direct_needs(needs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return of each what it needs itself, without what these need already; each stands behind its needs."""
    everything: dict[str, set[str]] = {}
    for name in needs:
        own = [need for need in needs[name] if need in everything]
        everything[name] = {*own, *(far for need in own for far in everything[need])}
    return {
        name: [
            need
            for need in needs[name]
            if need in everything
            and not any(need in everything.get(other, ()) for other in needs[name])
        ]
        for name in needs
    }


def _beside(name: str, depth: Mapping[str, int]) -> int:
    """Return the number of parts of the same depth before it."""
    same = [other for other in depth if depth[other] == depth[name]]
    return same.index(name)


def _course(
    modules: Sequence[Module],
    before: Mapping[str, Sequence[str]],
    places: Mapping[str, tuple[int, int]],
    *,
    across: bool,
) -> str:
    """The drawing, from left to right or from top to bottom."""

    def corner(name: str) -> tuple[int, int]:
        deep, beside = places[name]
        x, y = (deep, beside) if across else (beside, deep)
        return 2 + x * (BOX + MODULE_GAP), 2 + y * (TALL + MODULE_GAP)

    def ends(need: str, name: str) -> str:
        (x0, y0), (x1, y1) = corner(need), corner(name)
        turns = places[name][1] - places[need][1]
        aside = (ASIDE if across else ASIDE_DOWN) * ((turns > 0) - (turns < 0))
        if across:
            return f"M{x0 + BOX},{y0 + TALL // 2 + aside}H{x1 - MODULE_GAP // 2}V{y1 + TALL // 2 - aside}H{x1 - 7}"
        return f"M{x0 + BOX // 2 + aside},{y0 + TALL}V{y1 - MODULE_GAP // 2}H{x1 + BOX // 2 - aside}V{y1 - 7}"

    corners = [corner(module.name) for module in modules]
    wide, high = (max(axis) + size + 2 for axis, size in zip(zip(*corners, strict=True), (BOX, TALL), strict=True))  # fmt: skip
    marker = "across" if across else "down"
    arrows = "".join(
        f'<path d="{ends(need, name)}" marker-end="url(#arrow-{marker})"/>'
        for name, needs in before.items()
        for need in needs
    )
    boxes = "".join(_module(module, *corner(module.name)) for module in modules)
    return (
        f'<svg class="{marker}" viewBox="0 0 {wide} {high}" role="group" aria-label="Which module comes after which">'
        f'<defs><marker id="arrow-{marker}" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0,0L8,4L0,8z"/></marker></defs><g class="arrows">{arrows}</g>{boxes}</svg>'
    )


def _module(module: Module, x: int, y: int) -> str:
    middle = x + BOX // 2
    return (
        f'<a href="{module.address}" data-module="{module.name}"><rect x="{x}" y="{y}" width="{BOX}" height="{TALL}" rx="5"/>'
        f'<text x="{middle}" y="{y + 25}" class="name">{module.name.capitalize()}</text>'
        f'<text x="{middle}" y="{y + 44}">{module.about}</text></a>'
    )


def draw_parts(title: str, parts: list[Part]) -> str:
    """Return a map of labs or pitfalls, with an arrow to each from those that come before it."""
    by_name = {part.name: part for part in parts}
    for part in parts:
        part.needs = [need for need in part.needs if need in by_name]
    _arrange(parts, by_name)
    width = max(width_of(part.name, SIZE) for part in parts) + 20
    drawn = [
        arrow
        for part in parts
        for need in part.needs
        for arrow in _arrow(by_name[need], part, width)
    ]
    drawn += [piece for part in parts for piece in _boxed(part, width)]
    total = (width + GAP) * max(part.column for part in parts) + width + 2
    height = ROW * max(part.row for part in parts) + HEIGHT + 2
    svg = drawing(
        total, height, drawn, kind="map", title=title, description=" ".join(_in_words(parts))
    )
    return f'<div class="diagram">{svg}</div>\n'


def _arrange(parts: list[Part], by_name: dict[str, Part]) -> None:
    """Columns by how much must come before, rows near to what comes before."""

    def depth(part: Part) -> int:
        return max((1 + depth(by_name[need]) for need in part.needs), default=0)

    for part in parts:
        part.column = depth(part)
    leads = {need for part in parts for need in part.needs}
    for column in range(1 + max(part.column for part in parts)):
        of_column = [part for part in parts if part.column == column]
        if column == 0:
            of_column.sort(key=lambda part: part.name not in leads)
            wanted = dict.fromkeys((part.name for part in of_column), 0.0)
        else:
            wanted = {
                part.name: fmean(by_name[need].row for need in part.needs) for part in of_column
            }
            of_column.sort(key=lambda part: wanted[part.name])
        free = 0.0
        for part in of_column:
            part.row = max(free, wanted[part.name])
            free = part.row + 1


def _boxed(part: Part, width: float) -> Iterator[str]:
    x, y = 1 + (width + GAP) * part.column, 1 + ROW * part.row
    yield box(x, y, width, HEIGHT, "part")
    yield label(x + width / 2, y + LINE + 2, part.name, kind="name", anchor="middle")
    yield label(x + width / 2, y + 2 * LINE + 2, f"{part.minutes} min", anchor="middle")


def _arrow(before: Part, after: Part, width: float) -> Iterator[str]:
    """From the right side of what comes before to the left side of what comes after."""
    x, y = 1 + (width + GAP) * before.column + width, 1 + ROW * before.row + HEIGHT / 2
    to, down = (width + GAP) * after.column - 4, 1 + ROW * after.row + HEIGHT / 2
    bend = (to - x) / 2
    names = f'data-from="{html.escape(before.name)}" data-to="{html.escape(after.name)}"'
    yield f'<path class="arrow" {names} d="M{n(x)} {n(y)}c{n(bend)} 0 {n(bend)} {n(down - y)} {n(to - x)} {n(down - y)}"/>'
    yield f'<path class="head" d="M{n(to + 5)} {n(down)}l-8 -4v8z"/>'


def _in_words(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        after = f"after {', '.join(part.needs)}" if part.needs else "after nothing"
        yield f"{part.name}, {part.minutes} minutes, {after}."
