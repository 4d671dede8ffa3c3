"""Networks as drawings: each names what lab.toml sets and where, can be read on a phone, and tells no cause."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from all_cases import LABS

from measuretwice.lab import Lab, trial_params
from measuretwice.site.drawings import concepts as model
from measuretwice.site.drawings.topology import sketch, with_unit
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.lab import network, network_thumbnail, where_it_was

ROOT = Path(__file__).parents[2]
STYLE = (ROOT / "docs/assets/extra.css").read_text(encoding="utf-8")
# What a trial's settings do to packets on their way, by the ending of their names.
ON_THE_WAY = re.compile(r"(^|_)(rate_mbit|delay_ms|rtt_ms|buffer_bytes)$")
# The texts that are seen, where each stands and how large it is.
SEEN = """() => [...document.querySelectorAll('.network text')].filter(t => t.checkVisibility()).map(t => {
  const box = t.getBoundingClientRect(), svg = t.ownerSVGElement
  return {said: t.textContent, of: [...document.querySelectorAll('svg')].indexOf(svg),
    x: box.left, y: box.top, width: box.width, height: box.height,
    size: parseFloat(getComputedStyle(t).fontSize) * svg.getScreenCTM().a}
})"""


def words_of(lab: Lab) -> LabContext:
    return LabContext(ROOT, lab)


def texts(drawn: str) -> str:
    return html.unescape(" ".join(re.findall(r">([^<]+)<", drawn)))


def assert_apart(seen: list[dict[str, Any]], width: int) -> None:
    """No text is outside of the page, under 11 px, or over another of its drawing."""
    for number, text in enumerate(seen):
        assert text["x"] >= 0, text
        assert text["x"] + text["width"] <= width, text
        assert text["size"] >= 11, text
        for other in seen[number + 1 :]:
            apart_x = min(text["x"] + text["width"], other["x"] + other["width"]) - max(
                text["x"], other["x"]
            )
            apart_y = min(text["y"] + text["height"], other["y"] + other["height"]) - max(
                text["y"], other["y"]
            )
            assert apart_x <= 0 or apart_y <= 2, (text, other)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_drawing_names_each_node_rate_and_delay(lab: Lab) -> None:
    for number in lab.trials:
        params = trial_params(lab, number)
        words = sketch(lab, params).in_words()
        bundles = {node.script for node in lab.file.topology.nodes}
        for node in lab.file.topology.nodes:
            assert node.name in words or node.script in bundles
        acting = {name for act in lab.file.topology.acts for name in act.parameters}
        for name, value in params.items():
            if ON_THE_WAY.search(name) and not lab.file.parameters[name].unlisted:
                assert name in acting
                assert with_unit(name, value) in words or with_unit(name, value, 0.5) in words
    assert "10 × sender" in texts(network(words_of(lab))) or lab.name != "scale"


def test_what_a_trial_sets_is_what_is_drawn() -> None:
    queues = next(lab for lab in LABS if lab.name == "queues")
    assert "tbf, pfifo_fast" in texts(network(words_of(queues), trial=1))
    assert "tbf, red" in texts(network(words_of(queues), trial=21))
    # What a trial doesn't set isn't drawn; what a case's page says of its own is.
    for told_of, links in ((), 2), (("access_mbit",), 6):
        drawn = sketch(queues, trial_params(queues, 21) | ({"access_mbit": 100} if told_of else {}))
        lanes = [lane for wire in drawn.wires for lane in (wire.there, wire.back)]
        assert sum("tbf" in lane.disciplines for lane in lanes) == links
        case = texts(network(words_of(queues), case="no-bottleneck", told=told_of))
        # In both drawings, and in the words of both for those who hear them.
        assert len(re.findall(r"100\xa0Mbit/s", case)) == 4 * links


def test_where_a_cause_was_is_marked_behind_the_diagnosis() -> None:
    """That a drawing before it tells no cause: test_nobody_is_told.py."""
    for lab in LABS:
        for pitfall in lab.file.pitfalls:
            before = network(words_of(lab), case=pitfall.id)
            assert "mark" not in re.findall(r'class="(\w+)', before), (lab.name, pitfall.id)
            after = where_it_was(words_of(lab), pitfall.id)
            assert ('class="mark"' in after) == bool(pitfall.place), (lab.name, pitfall.id)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_thumbnail_has_no_words(lab: Lab) -> None:
    small = network_thumbnail(words_of(lab))
    assert "<text" not in small
    assert 'aria-hidden="true"' in small


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_every_text_of_a_network_can_be_read(browser: Any, lab: Lab) -> None:
    words = words_of(lab)
    drawings = [network(words, trial=number) for number in lab.trials if number in (1, 9, 21)]
    drawings += [network(words, case=pitfall.id) for pitfall in lab.file.pitfalls[:2]]
    drawings += [where_it_was(words, pitfall.id) for pitfall in lab.file.pitfalls if pitfall.place]
    page = browser.new_page()
    page.set_content(
        f"<style>body {{ margin: 0 16px; font-family: Helvetica, Arial, sans-serif }} {STYLE}</style>"
        f'<div class="md-typeset">{"".join(drawings)}</div>'
    )
    for width in (320, 360, 693, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        seen = page.evaluate(SEEN)
        shown = set(range(0 if width > 691 else 1, 2 * len(drawings), 2))
        assert {text["of"] for text in seen} == shown, width
        assert_apart(seen, width)
    page.close()


def ideas() -> list[str]:
    return [
        model.sawtooth(0.01),
        model.sawtooth(0.0005),
        model.slow_start(345, 345),
        model.slow_start(600, 600),
        model.queue_filling(100, 100, 1250000),
        model.queue_filling(10, 20, 50000),
        model.cubic_curve(100, 80),
        model.cubic_curve(600, 40),
        model.vegas_band(345),
        model.bbr_cycle(),
        model.red_curve(100000, 225000, 366000, 0.01),
    ]


def test_an_ideas_caption_has_the_models_numbers() -> None:
    # W = sqrt(8 / 3p); BDP = 100 Mbit/s * 100 ms; K = cbrt(0.3 * 100 / 0.4).
    assert "W is 16.3 segments" in model.sawtooth(0.01)
    assert "here 1250\u00a0kB" in model.queue_filling(100, 100, 1250000)
    assert "from 100 to 200\u00a0ms" in model.queue_filling(100, 100, 1250000)
    assert "K = 4.217\u00a0s" in model.cubic_curve(100, 80)
    assert "one in 100" in model.red_curve(100000, 225000, 366000, 0.01)
    # 10 segments, doubled six times, fit into 690; the seventh time is too much.
    assert "640 segments still fit" in model.slow_start(345, 345)


@pytest.mark.slow
def test_every_text_of_an_idea_can_be_read_on_a_phone(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.set_content(
        f"<style>body {{ margin: 0 16px; font-family: Helvetica, Arial, sans-serif }} {STYLE}</style>"
        f'<div class="md-typeset">{"".join(ideas())}</div>'
    )
    seen = page.evaluate(SEEN.replace(".network text", ".concept text"))
    page.close()
    assert len({text["of"] for text in seen}) == len(ideas())
    assert_apart(seen, 360)
