"""The palette: read on its ground, told apart with any kind of colour vision and in grey, one source."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import dist
from typing import cast, get_args

import pytest

from measuretwice.base.paths import CHECKOUT
from measuretwice.figures.palette import COLOURS, FAMILIES, LOOKS, ORDERED, Scheme, css

Rgb = tuple[float, float, float]
# Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", IEEE TVCG 15(6), 2009: full severity, on linear RGB.
SEEN = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red (protanopia)": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green (deuteranopia)": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue (tritanopia)": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# In OKLab, 0 to 1: some four times what is just noticed.
LEAST_DISTANCE = 0.07
# In CIELAB's lightness, 0 to 100.
LEAST_STEP = 7.0
SCHEMES = get_args(Scheme)
# Frames and fills behind others; the paper itself.
NOT_READ = {"paper", "grid"}


def linear(colour: str) -> Rgb:
    parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return cast(
        Rgb, tuple(p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    )


def luminance(colour: str) -> float:
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(first: str, other: str) -> float:
    low, high = sorted((luminance(first), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(colour: str) -> float:
    return 116 * luminance(colour) ** (1 / 3) - 16


def oklab(rgb: Rgb) -> Rgb:
    """Ottosson, "A perceptual color space for image processing", 2020."""
    r, g, b = rgb
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def seen(colour: str, by: str) -> Rgb:
    rgb = linear(colour)
    turned = (sum(m * part for m, part in zip(row, rgb, strict=True)) for row in SEEN[by])
    return oklab(cast(Rgb, tuple(min(1.0, max(0.0, part)) for part in turned)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_colour_is_read_on_its_ground(scheme: Scheme) -> None:
    paper = getattr(COLOURS["paper"], scheme)
    for name, colour in COLOURS.items():
        if name not in NOT_READ:
            least = 3.0 if name in ORDERED else 4.5
            assert contrast(getattr(colour, scheme), paper) >= least, name


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("by", SEEN)
def test_colours_of_one_figure_are_told_apart_with_any_colour_vision(
    scheme: Scheme, by: str
) -> None:
    for family in FAMILIES:
        for first, other in combinations(family, 2):
            apart = dist(*(seen(getattr(COLOURS[name], scheme), by) for name in (first, other)))
            assert apart >= LEAST_DISTANCE, (first, other)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colours_of_one_figure_are_told_apart_in_grey(scheme: Scheme) -> None:
    for family in FAMILIES:
        steps = sorted(lightness(getattr(COLOURS[name], scheme)) for name in family)
        assert all(high - low >= LEAST_STEP for low, high in pairwise(steps)), family


def test_ordered_values_fade_into_the_paper() -> None:
    for scheme in SCHEMES:
        steps = [
            contrast(getattr(COLOURS[n], scheme), getattr(COLOURS["paper"], scheme))
            for n in ORDERED
        ]
        assert steps == sorted(steps, reverse=True)


def test_lines_of_one_figure_differ_by_dashes_and_marker_too() -> None:
    for family in FAMILIES[:2]:
        assert len({LOOKS[name] for name in family}) == len(family)
        assert len({LOOKS[name].dashes for name in family}) == len(family)


def test_pages_have_the_same_palette() -> None:
    assert css() in (CHECKOUT / "docs/assets/extra.css").read_text(encoding="utf-8")
