"""Plans for a class and slides: each module has both, they tell no cause too early, and their commands can be typed."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from all_cases import LABS, ROOT, words_found
from browsing import open_page
from editions import Pages
from serving import served

from measuretwice.cli.main import cli
from measuretwice.lab import Lab

LONG, SHORT = 90, 45
# A session in the laboratory, in minutes.
SESSION = (120, 180)
SLIDES = (8, 14)
OF_LAB = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
VERBATIM = re.compile(r"<(pre|code|svg|style|script)\b.*?</\1>", re.DOTALL)


class Edition:
    """Pages by their names in docs/: the students' site as it is built, the instructors' pages as they are prepared."""

    def __init__(self, site: Path | Pages) -> None:
        self._site = site

    def page(self, name: str) -> str:
        """What is read of a page."""
        if isinstance(self._site, Pages):
            return self._site.html(f"{name}.md")
        text = (self._site / name / "index.html").read_text(encoding="utf-8")
        [found] = re.findall(r"<article.*?</article>", text, re.DOTALL)
        return found

    def plan(self, lab: Lab) -> str:
        return self.page(f"instructors/tuesday/{lab.folder.name}")

    def deck(self, lab: Lab) -> str:
        return self.page(f"instructors/key/{lab.folder.name}-slides")


@pytest.fixture
def students(student: Path) -> Edition:
    return Edition(student)


@pytest.fixture
def instructors(instructors_pages: Pages) -> Edition:
    return Edition(instructors_pages)


def words_of(text: str) -> str:
    """What is read of it, the descriptions of pictures included; what tools printed is left out."""
    text = re.sub(r'<img[^>]*\balt="([^"]*)"[^>]*>', r" \1 ", VERBATIM.sub(" ", text))
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def slides_of(instructors: Edition, lab: Lab) -> list[tuple[set[str], str, str]]:
    """Of each slide: the classes of its heading, the case that it is about, its words."""
    found = []
    for part in instructors.deck(lab).split("<h2")[1:]:
        head = part.split(">")[0]
        classes, case = (re.search(rf'{name}="([^"]*)"', head) for name in ("class", "data-case"))
        found.append(
            (
                set(classes[1].split() if classes else []),
                case[1] if case else "",
                words_of(f"<h2{part}"),
            )
        )
    return found


@OF_LAB
def test_every_module_has_a_plan_of_ninety_minutes(
    students: Edition, instructors: Edition, lab: Lab
) -> None:
    for edition in (students, instructors):
        text = edition.plan(lab).replace("&nbsp;", " ")
        [table] = re.findall(r"<table>(?:(?!</table>).)*45 min.*?</table>", text, re.DOTALL)
        rows = re.findall(
            r"<tr>\s*<td[^>]*>(\d+) to (\d+)</td>\s*<td[^>]*>(?:(\d+) to (\d+)|–)</td>",
            table,
        )
        assert len(rows) == table.count("<tr>") - 1
        for column, whole in ((0, LONG), (2, SHORT)):
            spans = [(int(row[column]), int(row[column + 1])) for row in rows if row[column]]
            assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
            assert (spans[0][0], spans[-1][1]) == (0, whole)


@OF_LAB
def test_every_module_has_a_plan_of_a_session(students: Edition, lab: Lab) -> None:
    part = students.plan(lab).split('<h2 id="session"')[1]
    [whole] = re.findall(r"<strong>(\d+)</strong></td>\s*<td[^>]*><strong>in all", part)
    assert SESSION[0] <= int(whole) <= SESSION[1]


@OF_LAB
def test_what_they_get_wrong_is_for_instructors(
    students: Edition, instructors: Edition, lab: Lab
) -> None:
    """That students read no cause in a plan: test_nobody_is_told.py."""
    assert "What they get wrong" not in words_of(students.plan(lab))
    assert "What they get wrong" in words_of(instructors.plan(lab))


@OF_LAB
def test_every_module_has_slides_in_order(instructors: Edition, lab: Lab) -> None:
    slides = slides_of(instructors, lab)
    assert SLIDES[0] <= len(slides) <= SLIDES[1]
    assert [classes & {"claim", "network", "end"} for classes, _, _ in slides if classes & {"claim", "network", "end"}] == [
        {"claim"}, {"network"}, {"end"},
    ]  # fmt: skip
    assert "claim" in slides[0][0]
    assert "end" in slides[-1][0]
    assert any("pause" in classes for classes, _, _ in slides[1:5])
    for at, (classes, case, _) in enumerate(slides):
        if "cause" in classes:
            assert "pause" in slides[at - 1][0]
            assert slides[at - 1][1] == case
            assert not case or "evidence" in slides[at - 2][0]


@OF_LAB
def test_no_slide_tells_a_cause_before_the_class_has_looked_for_it(
    instructors: Edition, lab: Lab
) -> None:
    slides = slides_of(instructors, lab)
    for pitfall in lab.file.pitfalls:
        number = str(lab.case_number(pitfall))
        if number not in {case for _, case, _ in slides}:
            continue
        [cause] = [
            at
            for at, (classes, case, _) in enumerate(slides)
            if "cause" in classes and case == number
        ]
        own = [text for _, case, text in slides[:cause] if case == number]
        assert words_found([pitfall.id, pitfall.title, *pitfall.key_words], " ".join(own)) == []
        before = " ".join(text for _, _, text in slides[:cause])
        assert words_found([pitfall.id, pitfall.title], before) == []
        assert words_found(pitfall.key_words, slides[cause][2]), number


def commands(page: str) -> Iterator[list[str]]:
    for code in re.findall(r"<code[^>]*>(.*?)</code>", page, re.DOTALL):
        for line in html.unescape(re.sub(r"<[^>]+>", "", code)).splitlines():
            if line.startswith("./lab "):
                yield shlex.split(line.split("#")[0])


@OF_LAB
def test_commands_of_plans_and_slides_can_be_typed(instructors: Edition, lab: Lab) -> None:
    """Each is read as ./lab reads it: the command, its options, the lab, its cases and trials."""
    found = [*commands(instructors.plan(lab)), *commands(instructors.deck(lab))]
    assert len(found) > 5
    for _, name, *rest in found:
        command = cli.get_command(click.Context(cli), name)
        assert command
        read = command.make_context(name, list(rest), resilient_parsing=True).params
        options = {option for param in command.params for option in param.opts}
        assert {word.split("=")[0] for word in rest if word.startswith("--")} <= options, rest
        if name in ("run", "start"):
            assert lab.name in rest, rest
        for key, known in (("case", range(1, len(lab.file.pitfalls) + 1)), ("trial", lab.trials)):
            if isinstance(read.get(key), int):
                assert read[key] in known, rest


@pytest.fixture(scope="module")
def instructors_address(instructor: Path) -> Iterator[str]:
    with served(instructor) as address:
        yield address


DECK = f"instructors/key/{LABS[0].folder.name}-slides"
SHOWN = "document.querySelector('.slide.shown h2')?.id"


@pytest.fixture(
    params=[
        "prepared",
        pytest.param(
            "built", marks=pytest.mark.nightly("by day the same keys on the prepared page")
        ),
    ]
)
def deck(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of a page of slides: its prepared text between the site's own style and script, at night as it is built."""
    if request.param == "built":
        return Path(request.getfixturevalue("instructor")) / DECK / "index.html"
    pages, assets = request.getfixturevalue("instructors_pages"), (ROOT / "docs/assets").as_uri()
    file = tmp_path / "deck.html"
    file.write_text(
        f'<meta charset="utf-8"><link rel="stylesheet" href="{assets}/extra.css">'
        f'<article class="md-content__inner md-typeset">{pages.html(f"{DECK}.md")}</article>'
        f'<script src="{assets}/site.js"></script>',
        encoding="utf-8",
    )
    return file


@pytest.mark.slow
def test_slides_are_driven_by_the_keyboard(browser: Any, deck: Path) -> None:
    """From a file, as on a stick in a lecture hall."""
    page = browser.new_page()
    page.goto(deck.as_uri())
    page.wait_for_selector(".slide")
    ids = page.evaluate("[...document.querySelectorAll('.slide h2')].map(heading => heading.id)")
    assert page.evaluate(SHOWN) is None
    page.get_by_role("button", name="Present").press("Enter")
    at = 0
    for key, wanted in (
        ("Home", 0), ("ArrowRight", 1), ("PageDown", 2), ("Space", 3), ("ArrowLeft", 2), ("PageUp", 1), ("End", len(ids) - 1),
        ("ArrowRight", len(ids) - 1), ("Home", 0), ("ArrowLeft", 0), ("ArrowDown", 1),
    ):  # fmt: skip
        page.keyboard.press(key)
        at = wanted
        assert page.evaluate(SHOWN) == ids[at], key
        assert page.evaluate("document.activeElement.id") == ids[at], key
    say = page.locator(".slide.shown .say")
    assert not say.is_visible()
    page.keyboard.press("n")
    assert say.is_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.querySelector('.presenting')") is None
    assert page.locator(".slide .say").first.is_visible()
    # The theme's own key for it would have opened the search.
    page.keyboard.press("f")
    assert page.evaluate("document.querySelector('.presenting')") is not None
    page.close()


@pytest.mark.nightly("takes the instructors' site; by day test_a_module_is_one_document prints")
@pytest.mark.slow
def test_slides_are_printed_one_a_sheet(browser: Any, instructor: Path) -> None:
    page = browser.new_page()
    page.goto((instructor / DECK / "index.html").as_uri())
    page.wait_for_selector(".slide")
    wanted = page.locator(".slide").count()
    sheets = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", sheets)) == wanted
    page.close()


@pytest.mark.nightly(
    "takes the instructors' site; by day the slides' text and order are read, and one deck is driven by keys"
)
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@OF_LAB
def test_slides_can_be_read_by_all(
    browser: Any, instructors_address: str, lab: Lab, scheme: str
) -> None:
    """The page as it reads, and every slide as it is shown: nothing for axe, nothing cut off."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, messages, _ = open_page(browser, color_scheme=scheme)
    page.goto(
        f"{instructors_address}instructors/key/{lab.folder.name}-slides/", wait_until="networkidle"
    )
    page.wait_for_selector(".slide")
    problems = [found["id"] for found in axe.run(page).response["violations"]]
    page.get_by_role("button", name="Present").click()
    for _ in range(page.locator(".slide").count()):
        name = page.evaluate(SHOWN)
        shown = axe.run(page, context={"include": [[".slide.shown"]]}).response["violations"]
        problems += [f"{name}: {found['id']}: {found['nodes'][0]['target']}" for found in shown]
        if page.evaluate(
            "(s => s.scrollHeight > s.clientHeight + 2)(document.querySelector('.slide.shown'))"
        ):
            problems.append(f"{name}: too full")
        page.keyboard.press("ArrowRight")
    page.context.close()
    assert problems + messages == []
