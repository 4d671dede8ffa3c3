"""Each case's page: where one is, how long it takes, and no longer to read than a tired student bears."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from measuretwice.facts import RecordedSets
from measuretwice.lab import Lab, needed_settings, published_labs, settings_to_change

ROOT = Path(__file__).parents[2]
# With the settings that a case names once it is diagnosed, which stand behind a fold.
MOST_WORDS = 650
# With an eye on numbers and output, and time to write down what one thinks.
WORDS_PER_MINUTE = 80
# RED's four numbers are explained where they are needed first.
WITH_THEORY = {("queues", 4): 720}
CASES = [
    (lab, number, pitfall)
    for lab in published_labs(ROOT).values()
    for number, pitfall in enumerate(lab.file.pitfalls, start=1)
]
VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
# Shown as they are: output, numbers, commands in tabs, formulas, and what a reader opens only on wish.
NOT_PROSE = {"pre", "table", "script", "style", "svg"}
# What forty pages say in the same words, with headings and what is folded, but without code, tables and figures.
MOST_FURNITURE = 120
NO_FURNITURE = {"pre", "code", "table", "script", "style", "svg", "figcaption", "headerlink"}
NO_FURNITURE |= {"filename", "symptom", "recorded"}
BLOCKS = {"article", "details", "div", "h1", "h2", "h3", "label", "li", "p", "section", "summary"}
# The question that solves a case is read by who has the diagnosis.
NOT_READ = {"recorded", "formula", "tabbed-set", "case-facts", "tip", "example", "judgement"}


class Prose(HTMLParser):
    """The words of a page's own sentences, from its heading to the authors' story."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.facts = ""
        self._open: list[tuple[str, set[str]]] = []
        self._reading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        if tag == "article":
            self._reading = True
        if tag == "h2" and of.get("id") == "what-the-authors-saw":
            self._reading = False
        if tag not in VOID:
            classes = f"{of.get('class') or ''} {of.get('data-behind') or ''}"
            self._open.append((tag, set(classes.split())))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<img />` holds nothing."""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any("case-facts" in classes for _, classes in self._open):
            self.facts += data
        aside = any(tag in NOT_PROSE or classes & NOT_READ for tag, classes in self._open)
        if self._reading and not aside:
            self.words += re.findall(r"[^\W\d_][\w’'-]*", data)


class Blocks(HTMLParser):
    """What a page says, block by block, with # for each number and for its lab's name."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab, self._parts = re.compile(rf"\d+|\b{lab.name}\b", re.IGNORECASE), [""]
        self._open: list[tuple[str, bool]] = []

    @property
    def said(self) -> list[str]:
        """The blocks that have words, with their white space in order."""
        return [" ".join(self._lab.sub("#", part).split()) for part in self._parts if part.strip()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        names = {tag, *(dict(attrs).get("class") or "").split()}
        self._open.append((tag, bool(names & NO_FURNITURE)))
        if tag in BLOCKS:
            self._parts.append("")

    def handle_endtag(self, tag: str) -> None:
        while tag not in VOID and self._open and self._open.pop()[0] != tag:
            pass
        if tag in BLOCKS:
            self._parts.append("")

    def handle_data(self, data: str) -> None:
        within = any(tag == "article" for tag, _ in self._open)
        if within and not any(left_out for _, left_out in self._open):
            self._parts[-1] += data


def test_forty_pages_have_few_words_in_common(student: Path) -> None:
    """What pages of three labs say is furniture: it is read once."""
    said: dict[tuple[str, int], list[str]] = {}
    labs: dict[str, set[str]] = {}
    for lab, number, _ in CASES:
        blocks = Blocks(lab)
        page = student / f"modules/{lab.folder.name}/case-{number:02d}/index.html"
        blocks.feed(page.read_text(encoding="utf-8"))
        said[lab.name, number] = blocks.said
        for block in blocks.said:
            labs.setdefault(block, set()).add(lab.name)
    for place, own in said.items():
        common = [block for block in own if len(labs[block]) > 2]
        words = sum(len(re.findall(r"[^\W\d_][\w’'-]*", block)) for block in common)
        assert 40 < words <= MOST_FURNITURE, (place, words, common)


def read(site: Path, lab: Lab, number: int) -> Prose:
    prose = Prose()
    page = site / f"modules/{lab.folder.name}/case-{number:02d}/index.html"
    prose.feed(page.read_text(encoding="utf-8"))
    return prose


def test_a_case_says_which_of_how_many_it_is_and_how_long_it_takes(student: Path) -> None:
    for lab, number, pitfall in CASES:
        several = len(lab.file.pitfalls)
        beside = ["Previous"] * (number > 1) + ["Next"] * (number < several)
        module, *facts = read(student, lab, number).facts.split(" · ")
        assert module == lab.name.capitalize(), (lab.name, number)
        assert facts[0] == f"Case {number} of {several}", (lab.name, number)
        assert facts[2:] == beside, (lab.name, number)
        assert "A free course in each case" in " ".join(read(student, lab, number).words)
        minutes = re.fullmatch(rf"{pitfall.minutes} min(?:, (\d+) in a browser)?", facts[1])
        assert minutes, facts
        assert 5 <= pitfall.minutes <= 30, (lab.name, number)
        # A page's machine may need ten times as long as a terminal's, not a day.
        assert pitfall.minutes < int(minutes[1] or 30) <= 60, (lab.name, number)


def test_the_minutes_of_a_case_are_those_of_its_words_and_its_runs() -> None:
    """Of the words of its page, read slowly, and of both its runs in a terminal."""
    for lab, number, pitfall in CASES:
        sets = RecordedSets(ROOT, lab)
        page = ROOT / f"docs/modules/{lab.folder.name}/case-{number:02d}.md"
        words = len(page.read_text(encoding="utf-8").split())
        names = [f"{pitfall.id}-{stage}" for stage in ("broken", "fixed")]
        recorded_s = sum(
            sets.real_s(run) for name in names if sets.is_recorded(name) for run in sets.runs(name)
        )
        minutes = words / WORDS_PER_MINUTE + recorded_s / 60
        assert abs(pitfall.minutes - minutes) <= 2, f"{lab.name}, case {number}: {minutes:.0f}"


def test_a_case_is_short_up_to_the_authors_story(student: Path) -> None:
    for lab, number, _ in CASES:
        words = len(read(student, lab, number).words)
        case = f"{lab.name}, case {number}: {words} words"
        assert words > 100, f"{case}: nothing was read: has the page another form?"
        assert words <= WITH_THEORY.get((lab.name, number), MOST_WORDS), (
            f"{case}: say it shorter, or after the story"
        )


def test_the_contents_lead_into_a_fold_only_when_it_is_open(browser: Any, address: str) -> None:
    """A case's headings behind the diagnosis would tell, and a click on one would open it."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{address}modules/01-mathis/case-05/")
    fix = page.locator(".md-sidebar--secondary a[href='#fix-it']")
    predict = page.locator(".md-sidebar--secondary a[href='#predict']").first
    predict.wait_for(state="visible")
    diagnosis = page.locator(".md-sidebar--secondary a[href='#diagnosis']").first
    assert not fix.first.is_visible()
    assert not diagnosis.is_visible()
    page.locator(".notebook[data-kind=diagnosis] textarea").fill("a guess in words")
    page.locator(".notebook[data-kind=diagnosis] button").click()
    diagnosis.wait_for(state="visible")
    page.evaluate("document.querySelector('details.behind[data-behind=diagnosis]').open = true")
    fix.first.wait_for(state="visible")
    page.close()


def test_a_question_below_the_diagnosis_solves_the_case(browser: Any, address: str) -> None:
    """Without runs of the reader's own it is judged by the recorded ones; only the right answer opens what follows."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(f"{address}modules/05-queues/case-02/")
    question, diagnosis = (
        page.locator(f"details.behind[data-behind={kind}]") for kind in ("judgement", "diagnosis")
    )
    form = page.locator(".judgement form")
    form.wait_for(state="attached")
    assert question.get_attribute("open") is None
    page.locator(".notebook[data-kind=diagnosis] textarea").fill("It asks for the wrong quantity")
    page.locator(".notebook[data-kind=diagnosis] button").click()
    form.wait_for(state="visible")
    assert diagnosis.get_attribute("open") is None
    recorded = json.loads(page.locator(".judgement").get_attribute("data-asked"))["recorded"]
    says = form.locator("[role=status]")
    for letter, number, expected in (
        ("a", recorded, "a: How much can the sum"),
        ("c", 2 * recorded, "the recorded runs give another number, by more than 2 %"),
        ("c", None, "A number is missing"),
    ):
        form.locator(f"input[value={letter}]").check()
        form.locator("input:not([type=radio])").fill("" if number is None else f"{number:.3g}")
        form.locator("button").click()
        says.get_by_text(expected).wait_for()
        assert diagnosis.get_attribute("open") is None
    form.locator("input:not([type=radio])").fill(f"about {recorded:.3g} times")
    form.locator("button").click()
    says.get_by_text("That is right, by the recorded runs").wait_for()
    assert diagnosis.get_attribute("open") is not None
    # It stays so, and the course's front counts the case.
    page.reload()
    page.locator("details.behind[data-behind=diagnosis][open]").wait_for(state="attached")
    page.goto(f"{address}modules/")
    page.get_by_text(re.compile(r"^1 of \d+ cases$")).wait_for()
    page.close()


def test_the_last_hint_comes_after_a_guess(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}modules/01-mathis/case-05/")
    field = page.locator(".notebook[data-kind=diagnosis] textarea")
    field.wait_for()
    hints = page.locator(".hints > details")
    for number in (0, 1):
        hints.nth(number).locator("summary").click()
        assert hints.nth(number).get_attribute("open") is not None
    # By the keyboard as by the mouse.
    for press in (lambda place: place.click(), lambda place: place.press("Enter")):
        press(hints.nth(2).locator("summary"))
        assert hints.nth(2).get_attribute("open") is None
        assert "A wrong guess will do" in page.locator(".hints").inner_text()
        assert field.evaluate("place => place === document.activeElement")
    field.fill("x")
    page.locator(".notebook[data-kind=diagnosis] button").click()
    hints.nth(2).locator("summary").click()
    assert hints.nth(2).get_attribute("open") is None
    field.fill("no idea at all")
    page.locator(".notebook[data-kind=diagnosis] button").click()
    hints.nth(2).locator("summary").click()
    assert hints.nth(2).get_attribute("open") is not None
    page.reload()
    field.wait_for()
    hints.nth(2).locator("summary").click()
    assert hints.nth(2).get_attribute("open") is not None
    page.close()


def test_a_line_of_output_is_kept_as_known(browser: Any, address: str) -> None:
    """By mouse and by keyboard, beside the problem and at the diagnosis, and on the next visit; then removed."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}modules/01-mathis/case-05/")
    beside = page.locator(".md-sidebar--secondary .known li code")
    page.locator("details.behind[data-behind=prediction] > summary").click()
    lines = page.locator(".lines > .line")
    lines.first.wait_for()
    text = " ".join(lines.nth(0).inner_text().split()).removesuffix(",")
    lines.nth(0).click()
    assert beside.all_inner_texts() == [f"romeo/iperf3.json: {text}"]
    first = page.locator(".lines").nth(1).locator(".keep-line")
    first.nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert first.nth(1).get_attribute("aria-pressed") == "true"
    page.reload()
    page.locator(".known--quoted li").nth(1).wait_for()
    assert beside.count() == 2
    page.locator(".md-sidebar--secondary .known-remove").first.click()
    assert beside.count() == 1
    assert page.locator(".known--quoted li").count() == 1
    # A phone has no room beside it.
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".md-content aside.known li").wait_for()
    page.close()


def test_a_fix_of_ones_own_comes_before_the_diagnosis(student: Path) -> None:
    """The command, the copy of the scripts and the check stand where no fold hides them; settings that tell the
    cause are named behind it alone."""
    for lab, number, pitfall in CASES:
        case = f"{lab.name}, case {number}"
        page = student / f"modules/{lab.folder.name}/case-{number:02d}/index.html"
        before, _, after = page.read_text(encoding="utf-8").partition('data-behind="diagnosis"')
        if pitfall.judgement:
            # Its question comes in a fold of its own, once there is a diagnosis; nothing is to be set.
            assert 'id="try-your-fix"' not in before, case
            assert "--set NAME=VALUE" not in before, case
            answer = f"./lab check runs/{lab.name}/case-{number:02d}-* --answer LETTER"
            before, _, folded = before.partition('data-behind="judgement"')
            assert answer in re.sub(r"<[^>]+>", "", folded), case
            assert answer not in re.sub(r"<[^>]+>", "", before), case
            continue
        assert 'id="try-your-fix"' in before, case
        step = re.sub(r"<[^>]+>", "", before.partition('id="try-your-fix"')[2])
        assert f"./lab run {lab.name} --case {number} --set NAME=VALUE" in step, case
        assert f"./lab check runs/{lab.name}/case-{number:02d}-*" in step, case
        assert f"./lab edit {lab.name}" in step, case
        decides = "a run in which two explanations would differ" in step
        assert decides is bool(pitfall.settled_by), case
        parameters = lab.file.parameters
        about = {*pitfall.broken.set, *pitfall.fixed.set}
        for name in parameters:
            if parameters[name].unlisted and (name in about or "_" in name):
                assert name not in step, case
        # First of all behind it: what to change, and where.
        first = re.sub(r"<[^>]+>", "", after.partition("What is wrong")[0])
        assert ("What to change: " in first) is (pitfall.judgement is None), case
        for setting in (
            [] if pitfall.judgement else needed_settings(settings_to_change(lab, number))
        ):
            assert f"{setting.name} (" in first or f"{setting.name}: " in first, case
            if setting.is_taken_away:
                assert f"--set {setting.name}=, with nothing after the =, takes it away." in first
