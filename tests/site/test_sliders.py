"""The figures that are slid: what is recorded, what is a model, and that both are called so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browsing import opened

from measuretwice.base.errors import UserError
from measuretwice.lab import find_labs, read_lab
from measuretwice.site.macros import LabContext, sliders
from measuretwice.stats import intervals

ROOT = Path(__file__).parents[2]


STORY = "story/"
SCALE = LabContext(ROOT, read_lab(find_labs(ROOT)["scale"]))
BY_WINDOW = ["core-default-windows", "core", "core-large-windows"]


def test_a_window_carries_what_the_recorded_runs_below_the_edge_had() -> None:
    """The model's band holds each recorded run whose buffer was the limit; the rest has no limit."""
    data = sliders.windows_data(SCALE, BY_WINDOW)
    reno = data["series"][0]
    assert [point["bytes"] // 2**20 for point in reno["points"]] == [4, 32, 512]
    for point in reno["points"]:
        low, high = sliders.bounds(reno, point["bytes"])
        assert low <= point["share"] <= high, point
    with pytest.raises(UserError, match="single rival"):
        sliders.windows_data(SCALE, ["core-long"])


@pytest.mark.slow
def test_the_socket_buffer_is_slid_by_keyboard_and_dragged(page: Any, address: str) -> None:
    opened(page, address + STORY)
    data = json.loads(page.evaluate("document.querySelector('.interactive script').textContent"))
    first = data["series"][0]["points"]
    verdict = ".live--windows .verdict"
    assert page.inner_text(verdict).startswith("Recorded, with 4")
    assert "highly fair" in page.inner_text(verdict)
    page.focus("#windows-bytes")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(verdict).startswith("Not recorded, by the model")
    assert page.locator(".plane-again").is_hidden()
    # Beyond the recorded runs the window is no limit, so there is one number and no range of it.
    page.keyboard.press("End")
    assert "takes about" in page.inner_text(verdict)
    assert not re.search(r"so that is (\S+) to \1 times", page.inner_text(verdict))
    assert re.search(r"so that is \S+ times", page.inner_text(verdict))
    page.get_by_role("button", name="512").click()
    assert f"{100 * first[2]['share']:.1f}" in page.inner_text(verdict)
    assert "40 % from thousands" in page.inner_text(verdict)
    assert first[2]["command"] in page.inner_text(".plane-again")
    # Dragged to the left end: what is seen follows.
    page.evaluate("document.querySelector('svg.plane').scrollIntoView({ block: 'center' })")
    box = page.locator("svg.plane").bounding_box()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 55, box["y"] + 100, steps=4)
    page.mouse.up()
    assert "with 1" in page.inner_text(verdict)
    # Beside CUBIC there are the sets that have such a run, and no other.
    page.locator("input[name=windows-beside]").nth(1).check()
    assert page.locator(".live--windows [role=group] button").count() == len(
        data["series"][1]["points"]
    )


@pytest.mark.slow
def test_what_is_slid_fits_a_phone_and_is_a_table_without_scripts(
    browser: Any, address: str
) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    opened(page, address + STORY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    sizes = "[...document.querySelectorAll('svg.plane text')].map(t => t.getBoundingClientRect().height)"
    assert min(page.evaluate(sizes)) >= 11
    context.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + STORY)
    assert page.locator(".interactive .fallback tbody tr").count() == 5
    assert page.locator(".interactive .fallback table").is_visible()
    context.close()


STATISTICS = "reference/statistics/"
MATHIS = LabContext(ROOT, read_lab(find_labs(ROOT)["mathis"]))


def test_losses_come_as_ss_counted_them_and_end_near_the_routers_count() -> None:
    data = json.loads(
        MATHIS.losses_over_time(["duration-fixed"], "romeo/ss.txt")
        .split('<script type="application/json">')[1]
        .split("</script>")[0]
    )
    (run,) = data["runs"]
    recorded = MATHIS.run("duration-fixed")
    times, counts = ([moment[k] for moment in run["moments"]] for k in (0, 1))
    assert times == sorted(set(times))
    assert counts == sorted(counts)
    assert counts[-1] == pytest.approx(recorded.measured["qdisc_drops"], rel=0.05)
    assert run["moments"][-1][6] == pytest.approx(recorded.ratio, rel=0.01)
    assert run["reached_s"] == pytest.approx(
        next(t for t, n in zip(times, counts, strict=True) if n >= 100), rel=0.1
    )


def test_what_is_told_of_a_moment_is_the_exact_interval() -> None:
    time_s, _, _, p, low, high, ratio, least, most = sliders.moment_data(
        (10.0, 25, 10_000, 1_250_000), 0.005, 2e6
    )
    ends = intervals.loss_interval(25, 10_000)
    assert (time_s, p, ratio) == (10.0, 0.5, 0.5)
    assert (low, high) == pytest.approx([end / 0.005 for end in ends], rel=1e-3)
    bounds = intervals.ratio_bounds(25)
    assert bounds is not None
    assert (least, most) == pytest.approx([0.5 * bound for bound in bounds], rel=1e-3)
    assert sliders.moment_data((10.0, 0, 10_000, 1_250_000), 0.005, 2e6)[-2:] == [None, None]


@pytest.mark.slow
def test_losses_are_gone_through_by_keyboard(page: Any, address: str) -> None:
    opened(page, address + STATISTICS)
    verdict = ".live--losses .verdict"
    assert page.locator(".live--losses button").is_hidden()
    page.focus("#losses-time")
    page.keyboard.press("Home")
    assert "Too short" in page.inner_text(verdict)
    page.keyboard.press("End")
    assert "Long enough" in page.inner_text(verdict)
    assert page.get_attribute("#losses-time", "aria-valuetext") != ""
    page.locator("input[name=losses-run]").nth(2).check()
    assert page.inner_text(verdict).startswith("After ")
