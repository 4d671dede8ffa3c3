#!/usr/bin/env python3
"""Cut the pages' two faces down to what pages use: docs/assets/fonts/, with the licence of each.

    pip install fonttools brotli
    python3 scripts/docs/fonts.py

Text is set in Source Sans 3, formulas in STIX Two Math. vendor.py fetches both packages in exact versions; to renew one,
change its version here and put in the digest that the refusal prints. A character that the site shows and CHARACTERS lacks
comes from a font of the reader's system; tests/site/test_typography.py names it.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer
from vendor import fetch

FONTS = Path(__file__).resolve().parents[2] / "docs/assets/fonts"

SOURCE_SANS = (
    "source-sans",
    "3.52.0",
    "49cf78ddd79b436591ee696785222b54ff28102922e3d3df297fe382d7fdfa88",
)
STIX = (
    "@fontsource/stix-two-math",
    "5.3.0",
    "948de1b5470fbbd745fedbe6135797454fe833d94feecc6f2073cd771fe2f5fd",
)
LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x100), *map(ord, "\u2009\u202f–—‘’“”†•…′″€−")]
TEXT = [*LATIN, *map(ord, "αβγδλμπΔ⁰⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉←↑→↓√∞≈≠≤≥✓")]
# In formulas a letter that stands for a value is taken from the italic letters of mathematics; h's place is another.
ITALIC = [*range(0x1D434, 0x1D455), *range(0x1D456, 0x1D468), 0x210E, *range(0x1D6FC, 0x1D71C)]
MATH = [*range(0x20, 0x7F), *ITALIC, *map(ord, "\u00a0±·×ΔΣ←→∑−√∞≈≠≤≥′"), *range(0x3B1, 0x3CA)]
# Kept of the fonts' features; figures of one width for columns of numbers.
FEATURES = ["calt", "ccmp", "kern", "liga", "locl", "mark", "mkmk", "tnum"]
MATH_FEATURES = ["ccmp", "dtls", "kern", "ssty"]
# Adobe reserves the name 'Source' for the font as it was: who changes it gives it another.
RENAMED = "Course Text"


def cut(
    font: TTFont,
    characters: Sequence[int],
    features: list[str],
    weights: float | tuple[float, float] | None = None,
) -> TTFont:
    """Return the font with these characters, and of its weights those from the first to the second, or the one."""
    options = subset.Options()
    options.layout_features = features
    options.hinting = False
    # Names, version, licence and where that is.
    options.name_IDs = [*range(7), 13, 14]
    options.notdef_outline = True
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    if weights is not None:
        font = instancer.instantiateVariableFont(font, {"wght": weights})
    font.flavor = "woff2"
    return font


def rename(font: TTFont, name: str) -> None:
    """Give the font another name, and keep what it says of its makers and of its licence."""
    for record in list(font["name"].names):
        if record.nameID in (1, 3, 4, 6, 16):
            text = name.replace(" ", "") if record.nameID in (3, 6) else name
            font["name"].setName(text, record.nameID, record.platformID, record.platEncID, record.langID)  # fmt: skip
        elif record.nameID > 255 and "Source" in str(record):
            font["name"].removeNames(nameID=record.nameID)


def main() -> None:
    shutil.rmtree(FONTS, ignore_errors=True)
    FONTS.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for package, licence in ((SOURCE_SANS, "LICENSE.md"), (STIX, "LICENSE")):
            with tarfile.open(fetch(*package, folder)) as archive:
                archive.extractall(folder / package[0], filter="data")
            text = folder / package[0] / "package" / licence
            shutil.copy(text, FONTS / f"LICENSE-{'text' if package is SOURCE_SANS else 'maths'}")
        text = folder / SOURCE_SANS[0] / "package/VF"
        for path, out, characters, weights in (
            (text / "SourceSans3VF-Upright.ttf", "text.woff2", TEXT, (400, 700)),
            (text / "SourceSans3VF-Italic.ttf", "text-italic.woff2", LATIN, 400),
        ):
            font = cut(TTFont(path, recalcTimestamp=False), characters, FEATURES, weights)
            rename(font, RENAMED)
            font.save(FONTS / out)
        maths = folder / STIX[0] / "package/files/stix-two-math-latin-400-normal.woff2"
        cut(TTFont(maths, recalcTimestamp=False), MATH, MATH_FEATURES).save(FONTS / "maths.woff2")
    for path in sorted(FONTS.glob("*.woff2")):
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
