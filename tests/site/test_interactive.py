"""The figures that a reader can change: with a mouse, by keyboard only, without scripts, offline."""

from __future__ import annotations

import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from browsing import opened
from recordings import runs_in_range

from measuretwice.course.case import read_changes
from measuretwice.lab import find_labs, read_lab
from measuretwice.site.macros import LabContext
from measuretwice.site.macros import interactive as docs_interactive
from measuretwice.tcp import model

ROOT = Path(__file__).parents[2]
LAB = read_lab(find_labs(ROOT)["mathis"])
MATHIS = LabContext(ROOT, LAB)


FIGURE = "modules/01-mathis/figure/"
EXPLORER = "modules/01-mathis/explorer/"
# MSS (bytes), RTT (ms), p: the middle of the models' land, its ends, and beyond the claim.
POINTS = [
    (1460.0, 6.0, 0.005730706937),
    (536.0, 600.0, 3.2e-5),
    (4312.0, 154.5, 0.0199),
    (1460.0, 6.0, 0.1566283969),
    (100.0, 1000.0, 0.9),
    (9000.0, 1.0, 1e-5),
]


MARKS = """[...document.querySelectorAll(".points > path")].map(mark => {
  const {trial, goodput_mbit} = mark.__data__.datum;
  return [trial, goodput_mbit, mark.getAttribute("aria-label"),
    mark.getBoundingClientRect().y + scrollY];
})"""


def marks(page: Any) -> dict[int, tuple[float, str, float]]:
    return {trial: (mbit, verdict, y) for trial, mbit, verdict, y in page.evaluate(MARKS)}


@pytest.mark.slow
def test_each_step_shows_its_runs_and_counts_them(page: Any, address: str) -> None:
    opened(page, address + FIGURE)
    places = []
    for n, step in enumerate(MATHIS.steps):
        page.check(f"#interactive-step-{n}")
        page.wait_for_function(
            f"document.querySelector('.status').innerText.includes('Step {n + 1} ')"
        )
        page.wait_for_timeout(50)
        shown = marks(page)
        assert {trial: mbit for trial, (mbit, _, _) in shown.items()} == {
            run.trial: float(f"{run.measured['goodput_bps'] / 1e6:.6g}")
            for run in MATHIS.runs(step)
        }
        assert (
            f"{runs_in_range(MATHIS, step)} of {len(MATHIS.runs(step))} trials"
            in page.inner_text(".status")
        )
        places.append(shown[9][2])
    # Trial 9 does not only have another number: it stands elsewhere.
    assert places[0] < places[5] < places[6]
    assert page.locator(".status").get_attribute("role") == "status"


@pytest.mark.slow
def test_steps_by_keyboard_only(page: Any, address: str) -> None:
    opened(page, address + FIGURE)

    def tab_until(what: str) -> None:
        for _ in range(160):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({what!r})"):
                return
        raise AssertionError(f"Tab never came to {what}")

    tab_until("[name=interactive-step]")
    page.keyboard.press("ArrowDown")
    assert "Step 2 " in page.inner_text(".status")
    for name in ("published", "names"):
        tab_until(f"[name=interactive-{name}]")
        assert not page.is_checked(f"[name=interactive-{name}]")
        page.keyboard.press("Space")
        assert page.is_checked(f"[name=interactive-{name}]")
    tab_until("button.md-button--primary")
    page.keyboard.press("Enter")
    assert "Step 3 " in page.inner_text(".status")
    tab_until(".points > path")
    label = "document.activeElement.getAttribute('aria-label')"
    first = page.evaluate(label)
    page.keyboard.press("ArrowRight")
    second = page.evaluate(label)
    assert first.startswith("Trial ")
    assert first != second
    assert page.is_visible(".tip")
    trial = re.match(r"Trial (\d+)", second)[1]  # type: ignore[index]
    assert f"--trial {trial} " in page.inner_text(".tip code")
    assert f"--trial {trial} " in page.inner_text(".card code")
    page.keyboard.press("Escape")
    assert not page.is_visible(".tip")
    page.keyboard.press("End")
    assert page.evaluate(label) != second
    tab_until("#interactive-trial")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert "--trial 1 " in page.inner_text(".card code")


@pytest.mark.slow
def test_steps_have_no_names_until_their_cases_are_solved(page: Any, address: str) -> None:
    titles = {r.id: r.title for r in LAB.file.recordings if r.step}
    named = [titles[name] for name in MATHIS.steps]

    def labels() -> list[str]:
        return list(page.locator(".switches ol label").all_inner_texts())

    opened(page, address + FIGURE)
    page.select_option("#interactive-trial", "9")
    assert labels()[0] == named[0]
    assert labels()[1] == f"Case 1: {LAB.case(1).symptom}"
    assert not set(labels()[1:]) & set(named)
    assert page.locator(".card code").count() == 0
    page.check("[name=interactive-names]")
    assert labels() == named
    assert "--trial 9 " in page.inner_text(".card code")
    # Who wrote down a diagnosis on a case's page has its name.
    page.evaluate("localStorage.setItem('measure-twice/mathis 2/diagnosis', 'too short')")
    opened(page, address + FIGURE)
    assert [n for n, label in enumerate(labels()) if label in named] == [0, 2]
    page.evaluate(
        "for (let n = 1; n < 14; n++) localStorage.setItem(`measure-twice/mathis ${n}/diagnosis`, 'x')"
    )
    opened(page, address + FIGURE)
    assert labels() == named
    assert page.locator("[name=interactive-names]").count() == 0
    page.select_option("#interactive-trial", "9")
    assert "--trial 9 " in page.inner_text(".card code")


@pytest.mark.slow
def test_pointing_at_a_mark_tells_of_its_run(page: Any, address: str) -> None:
    opened(page, address + FIGURE)
    page.check("[name=interactive-names]")
    page.evaluate("document.querySelector('.plot').scrollIntoView({ block: 'center' })")
    # A mark that no other one covers: which these are is up to the recorded runs.
    trial, *box = page.evaluate(
        """(() => { for (const mark of document.querySelectorAll(".points > path")) {
          const b = mark.getBoundingClientRect();
          const at = [b.x + b.width / 2, b.y + b.height / 2];
          const near = [...document.querySelectorAll(".points > path")].filter((other) => {
            const o = other.getBoundingClientRect();
            return Math.hypot(o.x + o.width / 2 - at[0], o.y + o.height / 2 - at[1]) < 12;
          });
          if (near.length === 1) return [mark.__data__.datum.trial, ...at];
        } })()"""
    )
    page.mouse.move(*box)
    assert f"Trial {trial}\n" in page.inner_text(".tip")
    page.mouse.click(*box)
    page.mouse.move(5, 5)
    assert not page.is_visible(".tip")
    assert f"--trial {trial} " in page.inner_text(".card code")


@pytest.mark.slow
def test_marks_move_but_what_was_measured_does_not(browser: Any, address: str) -> None:
    """On the way from step to step a mark stands anywhere; its values are the recorded ones."""
    page = browser.new_page(reduced_motion="no-preference")
    opened(page, address + FIGURE)
    page.wait_for_timeout(900)
    seen = page.evaluate(
        """async () => {
          document.querySelector("#interactive-step-6").click();
          const seen = [];
          for (let n = 0; n < 60; n++) {
            await new Promise(requestAnimationFrame);
            const { y, goodput_mbit } = [...document.querySelectorAll(".points > path")]
              .find((mark) => mark.__data__.datum.trial === 9).__data__.datum;
            seen.push([y, goodput_mbit]);
          }
          return seen;
        }"""
    )
    page.close()
    assert len({y for y, _ in seen}) > 5
    measured = MATHIS.run(MATHIS.steps[6], trial=9).measured["goodput_bps"] / 1e6
    assert {mbit for _, mbit in seen[5:]} == {float(f"{measured:.6g}")}


@pytest.mark.slow
def test_the_palette_recolours_the_figure(page: Any, address: str) -> None:
    opened(page, address + FIGURE)
    colours = (
        "[...document.querySelectorAll('.mark-text text, .points > path')]"
        ".map(mark => getComputedStyle(mark).stroke + getComputedStyle(mark).fill)"
    )
    light = page.evaluate(colours)
    page.evaluate("document.body.setAttribute('data-md-color-scheme', 'slate')")
    dark = page.evaluate(colours)
    assert len(light) == len(dark) > 60
    assert all(colour != other for colour, other in zip(light, dark, strict=True))


@pytest.mark.slow
def test_explorer_agrees_with_the_model(page: Any, address: str) -> None:
    opened(page, address + EXPLORER)
    for mss, rtt, p in POINTS:
        for name, value in (("mss", mss), ("rtt", rtt), ("p", p), ("losses", 250)):
            page.fill(f"#explorer-{name}", repr(value))
        expected = {
            "one": model.mathis_bandwidth_bps(mss, rtt, p),
            "periodic": model.mathis_bandwidth_bps(mss, rtt, p, math.sqrt(3 / 2)),
            "pftk": model.pftk_bandwidth_bps(mss, rtt, p),
            "window": 1 / math.sqrt(p),
            "spacing": 1 / p,
            "minute": model.mathis_expected_losses(rtt, p, 60),
            "time": model.mathis_time_for_losses_s(rtt, p, 250),
            "precise": model.mathis_time_for_losses_s(rtt, p, 385),
        }
        for name, value in expected.items():
            shown = float(page.get_attribute(f"#explorer-says-{name}", "value"))
            assert shown == pytest.approx(value, rel=1e-9), (name, mss, rtt, p)
        ruling = page.inner_text(".verdict")
        assert ruling.startswith("No claim") == (p >= MATHIS.model_use.max_loss_ratio), ruling


@pytest.mark.slow
def test_explorer_says_when_the_model_applies(page: Any, address: str) -> None:
    """As results do: the same words' conditions for each trial of the lab as it stands."""
    opened(page, address + EXPLORER)
    last = MATHIS.steps[-2]
    for run in MATHIS.runs(last):
        page.select_option("#explorer-trial", str(run.trial))
        applies = "applies" in page.get_attribute(".verdict", "class").split()
        assert applies == run.comparable, run.trial


@pytest.mark.slow
def test_explorer_by_keyboard(page: Any, address: str) -> None:
    opened(page, address + EXPLORER)
    before = float(page.get_attribute("#explorer-says-one", "value"))
    page.focus("[aria-label='RTT (ms), slider']")
    page.keyboard.press("ArrowRight")
    assert float(page.get_attribute("#explorer-says-one", "value")) < before
    assert page.input_value("#explorer-trial") == ""
    # What can't be a value is not taken, and goes when the field is left.
    rtt_before = page.input_value("#explorer-rtt")
    page.fill("#explorer-rtt", "-5")
    page.keyboard.press("Tab")
    assert page.input_value("#explorer-rtt") == rtt_before


@pytest.mark.slow
def test_without_scripts_there_are_pictures_and_tables(
    page_without_scripts: Any, address: str
) -> None:
    page_without_scripts.goto(address + FIGURE)
    assert page_without_scripts.locator(".interactive .fallback img.light.desk").is_visible()
    rows = page_without_scripts.locator(".interactive .fallback tbody tr")
    assert rows.count() == len(MATHIS.steps)
    cells = rows.nth(0).locator("td").all_inner_texts()
    assert str(runs_in_range(MATHIS, MATHIS.steps[0])) in cells
    page_without_scripts.goto(address + EXPLORER)
    assert page_without_scripts.locator(".interactive .fallback tbody tr").count() == len(
        LAB.trials
    )
    assert page_without_scripts.locator(".interactive .fallback table").is_visible()


@pytest.mark.slow
def test_on_paper_there_are_pictures_and_tables(page: Any, address: str) -> None:
    opened(page, address + FIGURE)
    assert not page.locator(".interactive .fallback").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".interactive .fallback img.light.desk").is_visible()
    assert not page.locator(".interactive .live").is_visible()


@pytest.mark.nightly("by day test_offline opens pages and their figures from a folder")
@pytest.mark.slow
def test_from_a_folder_without_network(page: Any, offline: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(offline) as archive:
        archive.extractall(tmp_path)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.context.set_offline(True)
    for where in (FIGURE, EXPLORER):
        opened(page, (tmp_path / f"measuretwice/{where.rstrip('/')}.html").as_uri())
    assert float(page.get_attribute("#explorer-says-one", "value")) > 0
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


@pytest.mark.slow
def test_pages_load_only_what_they_use(page: Any, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for where in (FIGURE, EXPLORER):
        opened(page, address + where)
    assert not any("vendor" in url for url in asked if "iframe-worker" not in url)
    asked.clear()
    page.goto(address + "start/")
    page.wait_for_load_state("networkidle")
    assert not any("chart.js" in url for url in asked)


def inlined(student: Path, where: str) -> dict[str, Any]:
    text = (student / where / "index.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_the_command_beside_a_run_repeats_it(student: Path) -> None:
    """Read as ./lab reads it, it sets what was recorded, and nothing besides."""
    data = inlined(student, FIGURE)
    checked = 0
    for step, name in zip(data["steps"], MATHIS.steps, strict=True):
        recorded = {run.trial: run for run in MATHIS.runs(name)}
        for values in step["runs"]:
            run = dict(zip(data["keys"], values, strict=True))
            words = run["command"].split()
            assert words[:5] == ["./lab", "run", "mathis", "--trial", str(run["trial"])]
            assert set(words[5::2]) <= {"--set"}
            own = {**LAB.defaults(), **LAB.trials[run["trial"]].set}
            changes = read_changes(LAB, tuple(words[6::2]), None)
            # Recorded before cables could have a speed: then it was none.
            without = {name: LAB.defaults()[name] for name in ("cable_mbit", "processing_us")}
            assert set(without.values()) == {0}
            assert {**own, **changes} == {**without, **recorded[run["trial"]].params}
            checked += 1
    assert checked == sum(len(MATHIS.runs(name)) for name in MATHIS.steps) > 400


def test_the_tables_hold_what_was_recorded() -> None:
    text = MATHIS.steps_table()
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    assert [int(cells[0]) for cells in lines] == sorted(LAB.trials)
    assert lines[8][2] == "4312"
    assert all(len(cells) == 5 + len(MATHIS.steps) for cells in lines)


def test_losses_for_five_per_cent() -> None:
    """z/(2 sqrt(n)) = 0.05 with z = 1.96."""
    assert docs_interactive.losses_for_precision() == math.ceil((1.959964 / 0.1) ** 2)
