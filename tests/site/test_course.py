"""The course's pages: what each says it is, the home page's picture, the map that keeps count, paper."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from all_cases import words_found
from page_kinds import texts_of
from recordings import runs_in_range

from measuretwice.lab import first_try_of, published_labs
from measuretwice.runs.first_try_history import outcome_of, said_of_next
from measuretwice.site.build import add_cards
from measuretwice.site.build_cache import PageFolder
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.site import half_hours, hours_and_minutes

ROOT = Path(__file__).parents[2]
LABS = published_labs(ROOT)
MATHIS = LabContext(ROOT, LABS["mathis"])
TAKES_THE_SITE = "takes the instructors' site; by day the students' is looked at, and the other's pages as they are prepared"
MAX_HOME_BYTES = 250_000


def meta(text: str, name: str) -> str:
    found = re.search(rf'<meta (?:name|property)="{name}" content="([^"]*)"', text)
    return html.unescape(found[1]) if found else ""


@pytest.mark.parametrize(
    "edition", ["student", pytest.param("instructor", marks=pytest.mark.nightly(TAKES_THE_SITE))]
)
def test_every_page_says_what_it_is(request: pytest.FixtureRequest, edition: str) -> None:
    """Each in its own words, short enough to be shown whole; for cards, too."""
    pages = texts_of(request.getfixturevalue(edition))
    descriptions = {name: meta(text, "description") for name, text in pages.items()}
    assert [name for name, text in descriptions.items() if not 25 < len(text) < 160] == []
    assert [text for text, times in Counter(descriptions.values()).items() if times > 1] == []
    for name, text in pages.items():
        assert meta(text, "og:description") == descriptions[name], name
        assert meta(text, "og:title"), name
        # Without the site's address there is none of the picture.
        assert "og:image" not in text, name


def test_cards_are_drawn_where_the_site_has_an_address(tmp_path: Path) -> None:
    pages = PageFolder(tmp_path / "docs")
    labs = list(LABS.values())
    add_cards('site_url: ""\n', labs, pages)
    assert not pages.written
    add_cards("site_url: https://x.example/\n", labs, pages)
    assert {path.stem for path in pages.written} == {
        "course",
        *(lab.folder.name for lab in labs),
    }
    for path in pages.written:
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        size = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
        assert size == (1200, 630)
        assert len(content) < 200_000


def test_a_strangers_questions_are_answered_on_the_home_page(student: Path) -> None:
    text = (student / "index.html").read_text(encoding="utf-8")
    # A word that the glossary explains is marked within its line.
    text_lines = re.sub(r"<[^>]+>", " ", re.sub(r"</?abbr[^>]*>", "", text))
    plain = html.unescape(re.sub(r"\s+", " ", text_lines))
    for words in (
        "course kit on TCP and queueing",
        "./lab start mathis",
        "Why is my goodput too high?",
        "Is RED better than a FIFO?",
        f"Module 2 · {hours_and_minutes(LabContext(ROOT, LABS['buffers']).minutes)} · 6 cases",
    ):
        assert words in plain, words
    for page in ("reference/troubleshooting/", "modules/05-queues/results/", "modules/", "start/"):
        assert f'href="{page}"' in text, page


def test_no_step_of_the_way_leads_to_paper(student: Path) -> None:
    for name, text in texts_of(student).items():
        for link in re.findall(r'<a href="([^"]+)" class="md-footer__link', text):
            assert not re.search(r"(^|/)(print|sheet)/", link), name
    # The menu of a page has the module that it is of, and of no other any page.
    case = (student / "modules/01-mathis/case-05/index.html").read_text(encoding="utf-8")
    menu = re.search(r'<nav class="md-nav md-nav--primary.*?</nav>\s*</div>', case, re.DOTALL)
    assert menu
    assert menu[0].count("Questions") == 1
    assert "case-06" in menu[0]
    assert "02-buffers/case-01" not in menu[0]


def test_paper_has_what_stands_before_a_diagnosis(student: Path) -> None:
    """A module's pages on one; that it tells no cause: test_nobody_is_told.py."""
    for lab in LABS.values():
        text = (student / f"modules/{lab.folder.name}/print/index.html").read_text("utf-8")
        assert 'data-behind="diagnosis"' not in text, lab.name
        assert "own kernel" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL), lab.name


@pytest.mark.nightly("takes the instructors' site; by day the students' page to print is looked at")
def test_instructors_print_all_of_it(instructor: Path) -> None:
    text = (instructor / "modules/01-mathis/print/index.html").read_text(encoding="utf-8")
    for pitfall in LABS["mathis"].file.pitfalls:
        assert "Hint 3" in text
        assert f'id="case-{LABS["mathis"].case_number(pitfall):02d}"' in text


@pytest.mark.slow
def test_the_home_page_moves_its_marks_and_counts_them(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".scatter.drawn")
    counts = []
    steps = []
    for _ in MATHIS.steps:
        counts.append(page.inner_text(".scatter .count"))
        steps.append(page.inner_text(".scatter .when"))
        shown = page.locator(".marks > .in").count()
        assert counts[-1].startswith(f"{shown} of ")
        page.focus(".scatter button")
        page.keyboard.press("Enter")
    assert counts == [
        f"{runs_in_range(MATHIS, name)} of {len(MATHIS.runs(name))}" for name in MATHIS.steps
    ]
    # The last leads back to the first.
    assert page.inner_text(".scatter .count") == counts[0]
    for pitfall in LABS["mathis"].file.pitfalls:
        assert words_found([pitfall.title, pitfall.id], " ".join(steps)) == []
    assert steps[1].startswith("After case 1: ")
    # On a small laptop's screen the count is seen without scrolling.
    for seen in (".scatter button", ".scatter .count"):
        box = page.locator(seen).bounding_box()
        assert box["y"] + box["height"] < 700, seen
    assert page.locator(".hero pre").inner_text().strip().split("\n")[-1] == "./lab start mathis"


def test_start_shows_what_the_command_prints(student: Path) -> None:
    text = html.unescape((student / "start/index.html").read_text(encoding="utf-8"))
    step = MATHIS.steps[0]
    came = outcome_of(MATHIS.lab, first_try_of(MATHIS.lab).shown, MATHIS.runs(step))
    assert f"→ {came.counted} {came.judged}" in text
    assert said_of_next(MATHIS.lab, 1, (), last=False) in text
    assert f"sample-data/{MATHIS.folder}/{step}/" in text


def weight(response: Any) -> int:
    """What a file weighs as servers send it."""
    body = response.body()
    return len(body) if response.url.endswith((".woff2", ".png")) else len(gzip.compress(body, 6))


@pytest.mark.slow
def test_the_home_page_is_light_and_nothing_on_it_jumps(page: Any, address: str) -> None:
    fetched: dict[str, int] = {}
    page.on("response", lambda response: fetched.update({response.url: weight(response)}))
    page.add_init_script(
        "window.shifted = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) "
        "if (!entry.hadRecentInput) window.shifted += entry.value; }).observe({type: 'layout-shift', buffered: true})"
    )
    page.goto(address, wait_until="networkidle")
    assert page.evaluate("window.shifted") < 0.02
    # The index of the search is fetched with the search.
    light = {url: n for url, n in fetched.items() if "search_index" not in url}
    assert sum(light.values()) < MAX_HOME_BYTES, light
    if page.locator("details.run-one").count():
        # The machine's panel, when somebody opens it.
        assert not page.locator(".here-buttons").count()


@pytest.mark.slow
def test_the_map_counts_what_is_written_in_this_browser(page: Any, address: str) -> None:
    of = sum(len(lab.file.pitfalls) for lab in LABS.values())
    page.goto(f"{address}modules/")
    says = page.locator(".course-progress p")
    says.wait_for()
    assert says.inner_text().startswith(f"0 of {of} cases")
    assert "Next: Calibrate." in says.inner_text()
    page.check("#done-calibrate")
    assert "Next: Mathis." in says.inner_text()

    # A diagnosis, written on the case's own page.
    page.goto(f"{address}modules/01-mathis/case-01/")
    page.fill(".notebook[data-kind=diagnosis] textarea", "I think that it is the loss")
    page.click(".notebook[data-kind=diagnosis] button")
    page.goto(f"{address}modules/")
    says.wait_for()
    assert page.is_checked("#done-calibrate")
    assert says.inner_text().startswith(f"0 of {of} cases solved, 1 more diagnosed.")
    assert "Next in Mathis: Case 2: " in says.inner_text()
    first = '[data-cases=mathis] [data-case="1"]'
    assert page.get_attribute(first, "class") == "diagnosed"
    assert page.get_attribute(first, "aria-label").endswith(", diagnosed")

    # What the lab book says of it once a run has solved it: on the map, and on the case's own page.
    page.evaluate(
        "localStorage.setItem('measure-twice/mathis 1/solved', 'nothing is off any more: loss_percent=0.1')"
    )
    page.reload()
    says.wait_for()
    assert says.inner_text().startswith(f"1 of {of} cases solved.")
    assert page.get_attribute(first, "class") == "solved"
    assert page.inner_text("[data-left=mathis]").startswith("1 of 13 cases solved, about ")
    page.goto(f"{address}modules/01-mathis/case-01/")
    solved = page.locator(".case-solved")
    solved.get_by_text(
        "You have solved this case: nothing is off any more: loss_percent=0.1."
    ).wait_for()
    page.goto(f"{address}modules/")
    says.wait_for()

    # All of one module: the next is the one that the order has.
    page.evaluate(
        "for (let n = 1; n <= 13; n++) for (const kind of ['diagnosis', 'judgement'])"
        " localStorage.setItem(`measure-twice/mathis ${n}/${kind}`, 'x')"
    )
    page.reload()
    says.wait_for()
    assert page.inner_text("[data-left=mathis]") == "All cases solved."
    assert "Next: Buffers." in says.inner_text()
    left = sum(LabContext(ROOT, lab).minutes for lab in LABS.values() if lab.name not in ("calibrate", "mathis"))  # fmt: skip
    assert f"About {half_hours(left)} are left." in says.inner_text()


@pytest.mark.slow
def test_a_sheet_to_write_on_is_one_or_two_pages(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    for lab in LABS.values():
        page.goto(f"{address}modules/{lab.folder.name}/sheet/")
        rows = len(lab.file.pitfalls) or len(lab.trials)
        assert page.locator(".to-write").count() == rows, lab.name
        pdf = page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 2, lab.name
    context.close()


@pytest.mark.slow
def test_without_scripts_home_shows_both_ends_and_the_map_leads_on(
    page_without_scripts: Any, address: str
) -> None:
    page_without_scripts.goto(address)
    assert page_without_scripts.locator(".marks > circle").count() == len(
        MATHIS.runs(MATHIS.steps[0])
    )
    assert page_without_scripts.is_visible(".without-script img")
    assert not page_without_scripts.locator(".scatter button").count()
    page_without_scripts.goto(f"{address}modules/")
    assert page_without_scripts.locator("[data-cases] a").count() == sum(len(lab.file.pitfalls) for lab in LABS.values())  # fmt: skip


def test_the_maps_facts_are_the_labs(student: Path) -> None:
    text = (student / "modules/index.html").read_text(encoding="utf-8")
    found = re.search(r'course-progress"><script type="application/json">(.*?)</script>', text)
    assert found
    for module in json.loads(found[1]):
        lab = LABS[module["name"]]
        assert module["minutes"] == lab.file.lab.minutes
        assert [case["minutes"] for case in module["cases"]] == [pitfall.minutes for pitfall in lab.file.pitfalls]  # fmt: skip
        for case in module["cases"]:
            assert (student / "modules" / case["page"] / "index.html").is_file()
