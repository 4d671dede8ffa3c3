"""The colours of everything drawn: one for each algorithm, discipline and role, in both schemes.

Static figures take them from here, pages and interactive figures as variables (`--c-cubic`) from
docs/assets/extra.css, which repeats `css()`. Each reaches 4.5:1 on its ground, so that a label may have
its line's colour; those of a family are told apart with any kind of colour vision and by their lightness
alone, as in grey print (tests/unit/figures/test_palette.py). In print and in the dark a line's dashes and
its marker say the same again.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Scheme = Literal["light", "dark"]


class Colour(NamedTuple):
    """A colour on the page's ground, by scheme."""

    light: str
    dark: str


COLOURS = {
    "paper": Colour("#ffffff", "#1e2529"),
    "ink": Colour("#222222", "#dfe5e9"),
    "ink-faint": Colour("#5f686e", "#a9b3ba"),
    "grid": Colour("#e1e5e8", "#3a444a"),
    "reno": Colour("#034f8f", "#66c5fd"),
    "cubic": Colour("#915005", "#f58614"),
    "bbr": Colour("#0c827f", "#139ea1"),
    "vegas": Colour("#530047", "#fbe8ff"),
    "highspeed": Colour("#433c00", "#fecf3d"),
    "fifo": Colour("#505e65", "#9eaeb5"),
    "red": Colour("#8e040d", "#feb9a6"),
    "codel": Colour("#3f0283", "#ebe5fe"),
    "fq-codel": Colour("#0c871e", "#47a11a"),
    "before": Colour("#bc4708", "#f9751a"),
    "after": Colour("#01468b", "#89ddfe"),
    "model": Colour("#003fa5", "#cfddfe"),
    "published": Colour("#b42463", "#fd8bc8"),
    "sender": Colour("#014476", "#aee5fe"),
    "router": Colour("#874a04", "#fca218"),
    "receiver": Colour("#0c8071", "#15a894"),
    "queue": Colour("#66747b", "#8e9ea4"),
    # Ordered values, the smallest stands out most: marks only, their labels are in ink.
    "seq-1": Colour("#001e60", "#e6f6ff"),
    "seq-2": Colour("#013f6f", "#9fe0fe"),
    "seq-3": Colour("#055f8c", "#3dc9fd"),
    "seq-4": Colour("#0c818d", "#17b1bd"),
    "seq-5": Colour("#13a38b", "#11987d"),
}
ORDERED = ("seq-1", "seq-2", "seq-3", "seq-4", "seq-5")
# Those that stand in one figure, and have to be told apart.
FAMILIES = (
    ("reno", "cubic", "bbr", "vegas", "highspeed"),
    ("fifo", "red", "codel", "fq-codel"),
    ("before", "after"),
    ("model", "published"),
    ("sender", "router", "receiver"),
    ORDERED,
)


class Look(NamedTuple):
    """What a line has besides its colour: dashes in pixels (none for a whole line), a marker."""

    dashes: tuple[float, ...]
    marker: str


LOOKS = {
    "reno": Look((), "o"),
    "cubic": Look((9, 3), "s"),
    "bbr": Look((9, 3, 2, 3), "D"),
    "vegas": Look((2, 2.5), "^"),
    "highspeed": Look((5, 2.5), "v"),
    "fifo": Look((), "o"),
    "red": Look((9, 3), "s"),
    "codel": Look((2, 2.5), "^"),
    "fq-codel": Look((9, 3, 2, 3), "D"),
}


def in_the_dark(svg: str) -> str:
    """Return a picture with each of the palette's colours as it is in the dark."""
    dark = {colour.light: colour.dark for colour in COLOURS.values()}
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: dark.get(match[0], match[0]), svg)


def css() -> str:
    """Return the palette as it stands in docs/assets/extra.css."""
    light = [f"  --c-{name}: {colour.light};" for name, colour in COLOURS.items()]
    dark = [f"    --c-{name}: {colour.dark};" for name, colour in COLOURS.items()]
    dashes = [
        f"  --dash-{name}: {' '.join(f'{dash:g}' for dash in look.dashes) or 'none'};"
        for name, look in LOOKS.items()
    ]
    return "\n".join(
        [
            ":root {",
            *light,
            *dashes,
            "}",
            "@media screen {",
            '  [data-md-color-scheme="slate"] {',
            *dark,
            "  }",
            "}",
            "",
        ]
    )


if __name__ == "__main__":
    print(css(), end="")
