"""Figures on pages: each has its room, a caption with its number, and text that a phone's reader can read."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path
from typing import Any

import pytest
from all_cases import LABS
from page_kinds import covering, texts_of

from measuretwice.lab import Lab
from measuretwice.lab.schema.results import AgainstFigure

TAKES_THE_SITE = "takes the instructors' site; by day the students' is looked at, and the other's pages as they are prepared"
RUNS = re.compile(r"\b(\d[\d,]*|one) (runs?|trials)\b", re.IGNORECASE)
PHONE = {"width": 390, "height": 844}
LEAST_PX = 11
# Of its own width a picture has at least so much on a phone.
LEAST_SHARE = 0.92
IMAGE = re.compile(r"<img\b[^>]*>")
SVG = re.compile(r"<svg\b[^>]*>")
CAPTION = re.compile(
    r'<span class="figcaption"><strong>Figure (\d+)\.</strong>\s*(.*?)</span>', re.DOTALL
)
# Of each picture that is seen: where it is from, and how much of its own width it has.
SEEN = """async () => {
  document.querySelectorAll('details').forEach(fold => { fold.open = true })
  const all = [...document.querySelectorAll('img.figure')].filter(i => i.checkVisibility())
  all.forEach(i => { i.loading = 'eager' })
  await Promise.all(all.map(i => i.decode().catch(() => {})))
  return all.map(i => ({src: i.getAttribute('src'), width: i.clientWidth, own: i.naturalWidth,
    said: Number(i.getAttribute('width')), ratio: i.clientHeight / i.clientWidth * i.naturalWidth / i.naturalHeight}))
}"""

# The texts of the picture that is open, of which a part lies outside of it.
CUT_OFF = """() => {
  const edge = document.documentElement.getBoundingClientRect()
  return [...document.querySelectorAll('text')].filter(t => {
    const box = t.getBoundingClientRect()
    return box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 2 || box.bottom > edge.bottom + 2
  }).map(t => t.textContent)
}"""


def plain(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def pages(site: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}


@pytest.mark.parametrize(
    "which", ["student", pytest.param("instructor", marks=pytest.mark.nightly(TAKES_THE_SITE))]
)
def test_every_picture_says_how_large_it_is(which: str, request: pytest.FixtureRequest) -> None:
    for path, text in pages(request.getfixturevalue(which)).items():
        for tag in IMAGE.findall(text):
            if 'alt="logo"' in tag:
                # The theme's style says how high the header's is.
                continue
            assert re.search(r'\bwidth="\d+"', tag), (path, tag)
            assert re.search(r'\bheight="\d+"', tag), (path, tag)
        for tag in SVG.findall(text):
            assert re.search(r"\b(viewBox|width)=", tag), (path, tag)


def test_captions_are_numbered_and_say_how_many_runs(student: Path) -> None:
    known = 0
    for path, text in pages(student).items():
        captions = CAPTION.findall(text)
        known += len(captions)
        found = [int(number) for number in re.findall(r"<strong>Figure (\d+)\.</strong>", text)]
        assert found == list(range(1, len(found) + 1)), path
        for _, caption in captions:
            assert RUNS.search(plain(caption)), (path, caption)
    assert known > 80


def test_each_picture_is_there_in_both_schemes(student: Path) -> None:
    figures = student / "assets/figures"
    light = [path for path in figures.rglob("*.svg") if not path.stem.endswith("-dark")]
    assert len(light) > 100
    for path in light:
        assert path.with_stem(f"{path.stem}-dark").is_file(), path


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_intervals_do_not_leave_what_is_possible(lab: Lab, student: Path) -> None:
    for figure in lab.file.figures:
        path = student / f"assets/figures/{lab.folder.name}/{figure.id}.csv"
        if not isinstance(figure, AgainstFigure) or not path.is_file():
            continue
        least, most = [*figure.y_within, float("inf")][:2]
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            mean = float(row["mean"])
            if row["low"]:
                low, high = float(row["low"]), float(row["high"])
                assert low <= mean <= high, (figure.id, row)
                # A run's own value may lie there, by what its windows of time count at their ends.
                assert min(least, mean) <= low, (figure.id, row)
                assert high <= max(most, mean * 1.001), (figure.id, row)


def kinds_of_pictures(text: str) -> set[tuple[str, str]]:
    """A page's pictures by what style and room they have: class and width."""
    tags = [tag for tag in IMAGE.findall(text) if 'class="figure' in tag]
    return {(attribute(tag, "class"), attribute(tag, "width")) for tag in tags}


def attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    assert found, tag
    return found[1]


@pytest.mark.slow
def test_no_text_of_a_picture_is_smaller_than_its_kind_may_have(student: Path) -> None:
    """Pictures of one class and width have the same room on a phone, which the next test measures: this many pixels."""
    checked = 0
    for path in sorted((student / "assets/figures").rglob("*.svg")):
        text = path.read_text(encoding="utf-8")
        width = re.search(r'<svg\b[^>]*\bwidth="([0-9.]+)', text)
        assert width, path
        if float(width[1]) > PHONE["width"]:
            # As wide as a desk's: a phone shows the one beside it.
            base, dark = path.stem.removesuffix("-dark"), "-dark" * path.stem.endswith("-dark")
            assert path.with_name(f"{base}-phone{dark}.svg").is_file(), path
            continue
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: ([0-9.]+)px", text)]
        assert min(sizes) >= LEAST_PX / LEAST_SHARE, (path, min(sizes))
        checked += 1
    assert checked > 100


@pytest.mark.slow
def test_no_text_of_a_picture_is_cut_off(student: Path, page: Any) -> None:
    page.set_viewport_size({"width": 1400, "height": 1400})
    light = [
        path
        for path in sorted((student / "assets/figures").rglob("*.svg"))
        if not path.stem.endswith("-dark")
    ]
    assert len(light) > 50
    cut = {}
    for path in light:
        page.goto(path.as_uri())
        if texts := page.evaluate(CUT_OFF):
            cut[path.name] = texts
    assert cut == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "which",
    [
        "one of each kind",
        pytest.param(
            "all",
            marks=pytest.mark.nightly(
                "by day a page of each kind of picture, and of every picture's file how small its text is"
            ),
        ),
    ],
)
def test_no_text_of_a_figure_is_small_on_a_phone(
    browser: Any, address: str, student: Path, which: str
) -> None:
    least: dict[Path, float] = {}
    context = browser.new_context(viewport=PHONE, color_scheme="dark")
    page = context.new_page()
    seen = 0
    shown = {
        name: kinds
        for name, text in texts_of(student).items()
        if not name.endswith("/print/index.html") and (kinds := kinds_of_pictures(text))
    }
    assert len(shown) > 40
    for name in shown if which == "all" else covering(shown, lambda _: 1):
        path = student / name
        page.goto(address + path.parent.relative_to(student).as_posix() + "/")
        for picture in page.evaluate(SEEN):
            file = (path.parent / picture["src"]).resolve()
            assert file.stem.endswith("-dark"), (path, "the scheme's own picture is shown")
            assert picture["own"] == picture["said"], (path, picture)
            assert picture["ratio"] == pytest.approx(1, abs=0.02), (path, picture)
            if file not in least:
                sizes = re.findall(r"font(?:-size)?: ([0-9.]+)px", file.read_text(encoding="utf-8"))
                least[file] = min(map(float, sizes))
            assert picture["width"] / picture["own"] >= LEAST_SHARE, (path, picture)
            size = least[file] * picture["width"] / picture["own"]
            assert size >= LEAST_PX, (path, picture, size)
            seen += 1
    context.close()
    assert seen > (80 if which == "all" else 1)
