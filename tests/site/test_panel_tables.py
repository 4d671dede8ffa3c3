"""How a page shows what the kit's Python answers: tables whose names stay whole, findings, the field for a prediction."""

from collections.abc import Iterator
from typing import Any

import pytest

PAGE = "modules/01-mathis/case-01/"
# A word of ss and one of tc, as ./lab show has them; and what ./lab check says of two runs of a case.
SHOWN = """{problems: [], blocks: [{title: "qdisc", place: "router", notes: [], fields: [
  {name: "c/w/n/d", value: 1, unit: "packets", meaning: "the window, in a sentence that is longer than a phone is wide"},
  {name: "delay.delay", value: 0.003, unit: "s", meaning: "how long each packet waits in it before it goes on to its link"},
]}]}"""
CHECKED = """{said: "Case 1 is solved, by case-01-b: nothing is off any more.", documents: [
  {name: "case-01-a", findings: [{heading: "something is off", lines: ["off", "page: modules/01-mathis/case-01/",
    "page: modules/01-mathis/case-02/"]}]},
  {name: "case-01-b", findings: []}]}"""


@pytest.fixture(
    params=[
        390,
        pytest.param(
            1280, marks=pytest.mark.nightly("by day on a phone, where there is least room")
        ),
    ]
)
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": request.param, "height": 800})
    page = context.new_page()
    page.goto(address + PAGE)
    page.locator(".notebook form").first.wait_for()
    yield page
    context.close()


def put(page: Any, call: str) -> None:
    """Put what render.mjs makes into the page's article, as a panel does."""
    page.evaluate(
        """async (call) => {
          await window.measureTwice.load("interactive/common.js");
          const render = await import(new URL("assets/machine/render.mjs", document.baseURI.replace(/modules.*/, "")));
          const place = document.createElement("div");
          place.className = "here looked-at";
          place.append(...new Function("render", `return ${call}`)(render));
          document.querySelector("article").prepend(place);
        }""",
        call,
    )


def test_names_stay_whole_and_the_table_scrolls(page: Any) -> None:
    put(page, f"render.blocks('qdisc', {SHOWN})")
    table = page.locator(".looked-at table")
    # One line of text each, however narrow the page.
    for cell in table.locator("th").all():
        height, line = cell.evaluate(
            """(cell) => { const of = getComputedStyle(cell), range = document.createRange(); range.selectNodeContents(cell);
              return [range.getBoundingClientRect().height, parseFloat(of.fontSize)]; }"""
        )
        assert height < 2.2 * line, cell.inner_text()
    meaning = table.locator("td").last
    assert meaning.evaluate("(cell) => cell.clientWidth") > 150
    box = page.locator(".looked-at .here-wide")
    # The box scrolls to the table's end, and the page itself to no side.
    reached = box.evaluate(
        "(box) => { box.scrollLeft = 9999; return box.getBoundingClientRect().right - "
        "box.querySelector('table').getBoundingClientRect().right; }"
    )
    assert reached > -2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_findings_name_runs_as_the_table_and_link_other_pages(page: Any) -> None:
    put(page, f"render.findings({CHECKED}, [{{folder: 'case-01-a'}}, {{folder: 'case-01-b'}}])")
    text = page.locator(".looked-at").inner_text()
    assert "run 2: no finding" in text
    assert "solved, by run 2:" in text
    assert "case-01-a" not in text
    assert [link.inner_text() for link in page.locator(".looked-at .here-finding a").all()] == [
        "modules/01-mathis/case-02/"
    ]


def test_what_is_said_of_two_runs_alike_is_said_once(page: Any) -> None:
    off = "{heading: 'something is off', lines: ['off']}"
    documents = ", ".join(f"{{name: '{name}', findings: [{off}]}}" for name in ("a-1", "a-2"))
    put(page, f"render.findings({{said: '', documents: [{documents}]}}, [{{folder: 'a-1'}}, {{folder: 'a-2'}}])")  # fmt: skip
    assert page.locator(".looked-at strong").all_inner_texts() == [
        "run 1, run 2: 1 finding",
        "something is off",
    ]


def test_the_field_names_what_is_predicted(page: Any) -> None:
    label = page.locator(".notebook[data-kind=prediction] label")
    assert label.inner_text() == "Your prediction: share of pings lost (0 to 1, or in %)"
    page.goto(page.url.split("modules")[0] + "modules/00-calibrate/loss/")
    page.locator(".notebook form").nth(2).wait_for()
    assert [label.inner_text() for label in page.locator(".notebook label").all()] == [
        "Your prediction: pings lost",
        "Your prediction: pings lost, from and to",
        "Your prediction: pings more or fewer",
    ]


def test_a_first_trys_recorded_outcome_waits_until_it_is_opened(page: Any) -> None:
    page.goto(page.url.split("modules")[0] + "modules/05-queues/")
    recorded = page.locator("details.behind[data-behind=prediction]")
    field = page.locator(".notebook[data-kind=prediction]")
    field.locator("input").fill("2 %")
    field.locator("button").click()
    field.get_by_text("stays folded until you open it").wait_for()
    assert recorded.get_attribute("open") is None
    recorded.locator("summary").click()
    page.reload()
    field.locator("form").wait_for()
    page.locator("details.behind[open][data-behind=prediction]").wait_for()


def test_what_was_recorded_waits_for_a_diagnosis_where_the_page_can_run_the_case(page: Any) -> None:
    can_run = page.locator(".here[data-here]").count() > 0
    recorded = page.locator("details.behind[data-behind=prediction]")
    prediction, diagnosis = (page.locator(f".notebook[data-kind={kind}]") for kind in ("prediction", "diagnosis"))  # fmt: skip
    prediction.locator("input").fill("0.5")
    prediction.locator("button").click()
    prediction.get_by_text("Written down").wait_for()
    assert (recorded.get_attribute("open") is None) == can_run
    page.reload()
    diagnosis.locator("form").wait_for()
    assert (recorded.get_attribute("open") is None) == can_run
    diagnosis.locator("textarea").fill("a ratio, where a percentage is read")
    diagnosis.locator("button").click()
    page.locator("details.behind[open][data-behind=prediction]").wait_for()


def test_the_list_of_settings_stays_while_a_name_is_typed(page: Any) -> None:
    settings = page.locator(".here-setting")
    if not page.locator(".here[data-here]").count():
        pytest.skip("the site was built without the browser's machine")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    name, says = settings.locator(".here-name").first, settings.locator(".here-help").first
    name.fill("duration")
    assert says.inner_text() == "The usual ones with “duration”: duration_s."
    name.fill("windows")
    assert says.inner_text().startswith("None of the usual ones has “windows” in its name: ")
    assert "duration_s" in says.inner_text()


RUNS = """[
  {changes: {}, settings: {rate_mbit: "1000"}, answer: "0 packets", seed: 3, values: ["21"], expectations: [], goodput: "bytes"},
  {changes: {rate_mbit: "100"}, settings: {rate_mbit: "100"}, answer: "66 packets", seed: 3, values: ["21"], expectations: [],
   goodput: "bytes"}]"""


def test_runs_beside_each_other_say_what_is_asked_and_what_each_had(page: Any) -> None:
    put(page, f"[render.table_of_runs(['trial'], {RUNS}, 'packets dropped by RED')]")
    rows = [
        [cell.inner_text() for cell in row.locator("th, td").all()]
        for row in page.locator(".looked-at tbody tr").all()
    ]
    assert rows[1:3] == [
        ["rate_mbit", "1000", "100"],
        ["packets dropped by RED", "0 packets", "66 packets"],
    ]


def test_no_finding_among_files_that_are_missing_is_no_clean_bill(page: Any) -> None:
    put(
        page,
        "render.findings({said: '', missing: ['no ss.txt'], documents: [{name: 'live', findings: []}]})",
    )
    assert "no finding in what there is to look at" in page.locator(".looked-at").inner_text()


CURVES = """{notes: [], panels: {
  cwnd: [{label: "a", time_s: [0, 1, 2], values: [1, 2, 3]}, {label: "b", time_s: [0, 1, 2], values: [3, 2, 1]}],
  queue: [{label: "router red", time_s: [0, 3], values: [0, 0]}],
  losses: [{label: "b, sent again", time_s: [0, 2], values: [0, 4]}, {label: "a, sent again", time_s: [0, 2], values: [0, 1]}]}}"""
DRAWN = """() => { const svg = document.querySelector(".curves svg.panels"); if (!svg) return null;
  const words = [...svg.querySelectorAll("text")];
  return { width: svg.getBoundingClientRect().width, ink: getComputedStyle(words[0]).fill, words: words.map((word) => word.textContent) }; }"""


def test_curves_follow_the_pages_width_and_colours(page: Any) -> None:
    page.evaluate(
        """async (call) => {
          await window.measureTwice.load("interactive/common.js");
          const { over_time } = await import(new URL("assets/machine/over-time.mjs", document.baseURI.replace(/modules.*/, "")));
          const place = document.createElement("div");
          place.className = "here curves";
          place.append(...await over_time(new Function(`return ${call}`)()));
          document.querySelector("article").prepend(place);
        }""",
        CURVES,
    )
    page.wait_for_function("document.querySelector('.curves svg.panels text')")
    first = page.evaluate(DRAWN)
    # Whose queue it is stands there, too, and what is of one node has one colour.
    assert "router red" in page.inner_text(".over-time-legend >> nth=1")
    colours = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".curves .over-time-legend span")].map((entry) =>
          [entry.textContent, getComputedStyle(entry.querySelector("path")).stroke]))"""
    )
    assert colours["a"] == colours["a, sent again"] != colours["b"] == colours["b, sent again"]
    page.set_viewport_size({"width": 340, "height": 800})
    page.wait_for_function(f"({DRAWN})().width <= 340")
    page.evaluate("document.body.setAttribute('data-md-color-scheme', 'slate')")
    page.wait_for_function(f"({DRAWN})().ink !== {first['ink']!r}")
