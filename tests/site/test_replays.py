"""The figures that replay recorded runs: what they show is what was recorded, on axes that stay as they are."""

from __future__ import annotations

import json
import re
import zipfile
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from browsing import opened

from measuretwice.lab import find_labs, load_lab, read_lab
from measuretwice.runs.folder import raw_files
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.replay_data import RECOVERY, SLOW_START, traces_data
from measuretwice.tcp.traces import window_arrivals

ROOT = Path(__file__).parents[2]
LABS = {name: LabContext(ROOT, read_lab(path)) for name, path in find_labs(ROOT).items()}
QUEUES, SCALE, MATHIS, VARIANTS = (LABS[name] for name in ("queues", "scale", "mathis", "variants"))
PACKETS = "modules/05-queues/packets/"
TRACES = "modules/04-variants/one-clock/"
EDGES = "modules/03-scale/clean-network/"
ALGORITHMS = ("reno", "cubic", "bbr", "vegas", "highspeed")
DISCIPLINES = ("pfifo", "red", "fq_codel")
TRIALS = {"pfifo": 41, "red": 21, "fq_codel": 44}


def script(site: Path, lab: str, name: str) -> dict[str, Any]:
    text = (site / f"assets/data/{lab}/{name}.js").read_text(encoding="utf-8")
    return dict(json.loads(text[text.index("]=") + 2 : text.rindex(";")]))


def raw(algorithm: str, discipline: str) -> dict[str, str]:
    run = QUEUES.run(f"packets-{algorithm}", trial=TRIALS[discipline])
    return {name: content.decode() for name, content in raw_files(run.run_dir).items()}


@pytest.mark.parametrize(
    ("algorithm", "discipline"), [("reno", "pfifo"), ("bbr", "fq_codel"), ("vegas", "red")]
)
def test_packets_are_those_that_tc_counted(student: Path, algorithm: str, discipline: str) -> None:
    """Read anew from tc's own lines and ss's, without this kit's readers."""
    data = script(student, "05-queues", f"packets-{algorithm}")
    run = next(run for run in data["runs"] if run["discipline"] == discipline)
    files = raw(algorithm, discipline)
    lines = files["router-1/queue.txt"].splitlines()
    inner = {
        float(mark.removeprefix("# t=")): json.loads(text)[-1]
        for mark, text in zip(lines[::2], lines[1::2], strict=True)
    }
    states = [
        (float(mark[1]), int(mark[2]))
        for mark in re.finditer(
            rf"# t=([\d.]+)(?:\nESTAB[^\n]*)*\nESTAB[^\n]* {algorithm} [^\n]* cwnd:(\d+) [^\n]*bytes_acked:\d{{5}}",
            files["host-1/ss.txt"],
        )
    ]
    times = [when / 1e4 for when in accumulate(run["time"])]
    sent, dropped, waiting, cwnd = (
        list(accumulate(run[key])) for key in ("sent", "dropped", "waiting", "cwnd")
    )
    assert 0 <= max(qdisc["drops"] for qdisc in inner.values()) - dropped[-1] <= 2
    assert max(waiting) == max(qdisc["qlen"] for qdisc in inner.values())
    assert all(b >= a for a, b in pairwise(sent))
    longest = times[waiting.index(max(waiting))]
    first = min(when for when in inner if inner[when]["qlen"] == max(waiting))
    start = first - longest
    for n in range(50, len(times), 97):
        near = min(inner, key=lambda when: abs(when - start - times[n]))
        assert abs(near - start - times[n]) < 2e-4
        assert inner[near]["qlen"] == waiting[n]
        assert inner[near]["drops"] == dropped[n]
        before = [window for when, window in states if when <= near]
        if before:
            assert cwnd[n] == before[-1]


@pytest.mark.slow
def test_packets_by_keyboard_on_axes_that_stay(page: Any, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    opened(page, address + PACKETS)
    page.wait_for_function("document.querySelector('svg.panels .trace')")
    # Only what is shown is fetched.
    assert [name for name in asked if name.startswith("packets-")] == ["packets-reno.js"]
    axes = """[...document.querySelectorAll("svg.panels > g:first-of-type text, svg.panels > g:first-of-type line")]
      .map((element) => element.textContent + element.getAttribute("y") + element.getAttribute("y1"))"""
    first = page.evaluate(axes)
    assert len(first) > 12
    facts = set()
    for n, algorithm in enumerate(ALGORITHMS):
        if n:
            page.focus("input[name=packets-algorithm]:checked")
            page.keyboard.press("ArrowRight")
        for discipline in DISCIPLINES:
            page.focus(f"input[name=packets-discipline][value={discipline}]")
            page.keyboard.press("Space")
            name = {"pfifo": "drop-tail", "red": "RED", "fq_codel": "fq_codel"}[discipline]
            page.wait_for_function(
                f"document.querySelector('svg.panels').getAttribute('aria-label').includes(' with {name}')"
            )
            page.focus("#packets-time")
            page.keyboard.press("End")
            run = QUEUES.run(f"packets-{algorithm}", trial=TRIALS[discipline])
            facts_text = page.inner_text(".facts-now")
            # A packet or two may be dropped once the flow has ended: a ping, or what was sent again.
            missing = run.measured["queue_drops"] - int(facts_text.split()[-1])
            assert 0 <= missing <= 2, (algorithm, discipline)
            assert name in page.get_attribute("#packets-time", "aria-valuetext")
            assert page.evaluate(axes) == first
            facts.add(facts_text)
            page.keyboard.press("Home")
            page.keyboard.press("ArrowRight")
            assert "0.008 s" in page.inner_text(".facts-now")
    assert len(facts) == len(ALGORITHMS) * len(DISCIPLINES)


@pytest.mark.slow
def test_as_many_boxes_as_packets_wait(page: Any, address: str) -> None:
    opened(page, address + PACKETS)
    page.wait_for_function("document.querySelector('svg.panels .trace')")
    boxes = set()
    for value in ("0.5", "1.6", "2.2", "3.4"):
        page.fill("#packets-time", value)
        waiting = int(page.inner_text(".facts-now").split("queue")[1].split()[0])
        drawn = page.locator("svg.queue .packet").count()
        assert abs(drawn - waiting) <= 8
        boxes.add(drawn)
    assert len(boxes) > 1


@pytest.mark.slow
def test_time_is_dragged(page: Any, address: str) -> None:
    opened(page, address + PACKETS)
    page.wait_for_function("document.querySelector('svg.panels .trace')")
    box = page.locator("svg.panels").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 100)
    page.mouse.down()
    times = [float(page.input_value("#packets-time"))]
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 100, steps=4)
    times.append(float(page.input_value("#packets-time")))
    page.mouse.up()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 100)
    times.append(float(page.input_value("#packets-time")))
    assert 0 < times[0] < times[1] == times[2]


@pytest.mark.slow
@pytest.mark.parametrize("where", [PACKETS, TRACES, EDGES])
def test_a_story_asks_shows_and_says(page: Any, address: str, where: str) -> None:
    opened(page, address + where)
    asked = set()
    for n in range(1, 5):
        assert page.inner_text(".story-count") == f"Step {n} of 4"
        asked.add(page.inner_text(".story-ask"))
        assert page.inner_text(".story-seen") == ""
        page.focus(".story .md-button--primary")
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('.story-seen').textContent.length > 20")
        page.get_by_role("button", name="Next").click()
    assert len(asked) == 4
    assert page.inner_text(".story-count") == "Now you"
    assert page.get_by_role("button", name="Next").is_disabled()


@pytest.mark.slow
def test_nothing_plays_unasked_and_play_can_be_paused(browser: Any, address: str) -> None:
    page = browser.new_page(reduced_motion="no-preference")
    opened(page, address + TRACES)
    page.wait_for_timeout(400)
    assert page.input_value("#traces-time") == "0"
    page.focus(".clock button")
    page.keyboard.press("Enter")
    page.wait_for_function("Number(document.querySelector('#traces-time').value) > 0.3")
    page.keyboard.press("Enter")
    held = page.input_value("#traces-time")
    page.wait_for_timeout(300)
    assert page.input_value("#traces-time") == held
    page.close()


@pytest.mark.slow
def test_traces_on_one_clock_by_keyboard(page: Any, address: str, student: Path) -> None:
    opened(page, address + TRACES)
    data = script(student, "04-variants", "signatures")
    assert [run["name"] for run in data["runs"]] == ["Reno", "CUBIC", "Vegas", "BBR", "HighSpeed"]
    # With reduced motion there is nothing to play; the slider says all, by arrow keys too.
    assert page.locator(".clock button").is_hidden()
    axes = "[...document.querySelectorAll('svg.panels > g:first-of-type text')].map((label) => label.textContent)"
    first = page.evaluate(axes)
    page.focus("#traces-time")
    page.keyboard.press("End")
    rows = page.locator(".live--traces tbody tr")
    for n, run in enumerate(data["runs"]):
        page.focus(f"input[name=traces-run][value={run['algorithm']}]")
        page.keyboard.press("Space")
        assert page.evaluate(axes) == first
        window, doing = sum(run["cwnd"]), data["says"][sum(run["doing"])]
        assert rows.nth(n).locator("td").first.inner_text() == str(window)
        verdict = page.inner_text(".live--traces .verdict")
        assert verdict.startswith(run["name"])
        assert doing in verdict
        assert f"{window} segments" in page.get_attribute("#traces-time", "aria-valuetext")


@pytest.mark.slow
def test_edges_show_what_was_recorded_once_one_has_been_there(page: Any, address: str) -> None:
    opened(page, address + EDGES)
    assert page.locator("svg .value").count() == 2
    page.focus("#edges-cable")
    page.keyboard.press("End")
    runs = [run for run in SCALE.runs("edge-cables-20") if run.trial == 1]
    mean = sum(run.measured["drops_per_halving"] for run in runs) / len(runs)
    verdict = page.inner_text(".live--edges .verdict")
    assert float(re.search(r"([\d.]+) \([\d.]+ to [\d.]+\) drops", verdict)[1]) == pytest.approx(
        mean, rel=5e-3
    )  # type: ignore[index]
    assert page.locator("svg .value").count() == 4
    ticks = (
        "[...document.querySelectorAll('svg.panels .grid')].map((line) => line.getAttribute('y1'))"
    )
    before = page.evaluate(ticks)
    page.focus("input[name=edges-group]:checked")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(ticks) == before


def test_a_train_spreads_as_its_cable_is_slow() -> None:
    """A frame of 1514 bytes, 12 more of preamble and gap or not, takes so long over a cable."""
    sets = MATHIS.sets
    for name in ("train-20", "train-100", "train-no-edges"):
        run = sets.run(name)
        for window in window_arrivals(sets.raw_text(run, "router/acks.txt"), "acks.txt"):
            if cable := run.params["cable_mbit"]:
                apart = window[-1] / (len(window) - 1)
                assert apart == pytest.approx(1514 * 8 / cable, rel=0.05)
            else:
                assert window[-1] < 20


@pytest.mark.slow
def test_without_scripts_there_are_tables(page_without_scripts: Any, address: str) -> None:
    page_without_scripts.goto(address + PACKETS)
    rows = page_without_scripts.locator(".interactive .fallback tbody tr")
    assert rows.count() == len(ALGORITHMS) * len(DISCIPLINES)
    drops = [row.split("\t")[5] for row in rows.all_inner_texts()]
    assert drops[0] == str(QUEUES.run("packets-reno", trial=21).measured["queue_drops"])
    page_without_scripts.goto(address + EDGES)
    assert page_without_scripts.locator(".interactive .fallback tbody tr").count() == 13
    page_without_scripts.goto(address + TRACES)
    assert page_without_scripts.locator(".interactive .fallback img.light.desk").is_visible()


@pytest.mark.nightly(
    "by day test_offline opens pages and their figures from a folder, and these replays are served"
)
@pytest.mark.slow
def test_from_a_folder_and_on_a_small_phone(browser: Any, offline: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(offline) as archive:
        archive.extractall(tmp_path)
    context = browser.new_context(viewport={"width": 360, "height": 740}, reduced_motion="reduce")
    page = context.new_page()
    for where in (PACKETS, TRACES, EDGES):
        opened(page, (tmp_path / f"measuretwice/{where.rstrip('/')}.html").as_uri())
        page.wait_for_function("document.querySelector('svg.panels text')")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        sizes = page.evaluate(
            "[...document.querySelectorAll('svg.panels text')].map((label) => label.getBoundingClientRect()).map((box) => [box.left, box.right])"
        )
        assert all(left >= 0 and right <= 360 for left, right in sizes), where
    context.close()


@pytest.fixture(scope="module")
def states() -> dict[str, list[str]]:
    words = LabContext(ROOT, load_lab(ROOT, "variants"))
    data = traces_data(words, words.runs("signatures"))
    for run in data["runs"]:
        lengths = {len(run[key]) for key in ("time", "cwnd", "queue", "rtt", "doing")}
        assert len(lengths) == 1, run["name"]
    return {
        run["name"]: [data["says"][n] for n in accumulate(run["doing"])] for run in data["runs"]
    }


def share(lines: list[str], words: str) -> float:
    return sum(words in line for line in lines) / len(lines)


@pytest.mark.slow
def test_all_but_bbr_begin_in_slow_start(states: dict[str, list[str]]) -> None:
    for name in ("Reno", "CUBIC", "Vegas"):
        assert states[name][0] == SLOW_START
        assert 0 < share(states[name], "slow start") < 0.1


@pytest.mark.slow
def test_a_window_that_repairs_a_loss_is_not_said_to_grow(states: dict[str, list[str]]) -> None:
    """Below ssthresh isn't always slow start, and after a loss no window grows: what is said goes with what is drawn."""
    words = LabContext(ROOT, load_lab(ROOT, "variants"))
    for run in traces_data(words, words.runs("signatures"))["runs"]:
        if run["name"] not in ("Reno", "CUBIC"):
            continue
        windows, said = list(accumulate(run["cwnd"])), states[run["name"]]
        after_a_loss = said[said.index(RECOVERY) :]
        assert SLOW_START not in after_a_loss, run["name"]
        falls = [n for n in range(1, len(said)) if windows[n] < 0.97 * windows[n - 1]]
        assert falls
        told = sum("adds" not in said[n] and said[n] != SLOW_START for n in falls)
        assert told > 0.9 * len(falls), (run["name"], told, len(falls))


@pytest.mark.slow
def test_cubic_is_concave_and_convex(states: dict[str, list[str]]) -> None:
    assert share(states["CUBIC"], "concave") > 0.3
    assert share(states["CUBIC"], "convex") > 0.2


def test_vegas_rests_in_its_band(states: dict[str, list[str]]) -> None:
    assert share(states["Vegas"], "leaves it") > 0.9


def test_bbr_probes_for_bandwidth_and_for_its_path(states: dict[str, list[str]]) -> None:
    assert any("Startup" in line for line in states["BBR"][:4])
    assert share(states["BBR"], "at the rate") > 0.5
    assert 0.05 < share(states["BBR"], "1.25 times") < 0.25
    # 200 ms in each ten seconds.
    assert 0.01 < share(states["BBR"], "ProbeRTT") < 0.04
