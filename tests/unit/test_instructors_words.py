"""Words of the instructors' pages: commands that differ, maps, and a notebook as a page."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from measuretwice.lab import find_labs, load_lab
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.macros.site import labs_map, pitfalls_map
from measuretwice.site.notebooks import pages_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def words() -> LabContext:
    return LabContext(ROOT, load_lab(ROOT, "mathis"))


def test_settings_are_what_set_takes(words: LabContext) -> None:
    own = words.trial(7)["loss_ratio"]
    assert words.settings(7, {"loss_percent": "=loss_ratio"}) == [f"loss_percent={own}"]
    assert words.settings(7, {"loss_ratio": 0.00001, "rtt_ms": 10}) == [
        "loss_ratio=0.00001",
        "rtt_ms=10",
    ]


def test_command_elsewhere(words: LabContext) -> None:
    other = words.pitfall("ack-policy").elsewhere[0]
    command = words.elsewhere_command("ack-policy", 0, "broken")
    assert command.startswith(f"./lab run mathis --trial {other.trial} --set ")
    # A shell would take the parentheses for its own.
    assert "'constant_claimed=sqrt(3/4)'" in command
    assert "constant_claimed" not in words.elsewhere_command("ack-policy", 0, "fixed")


def test_maps_hold_every_box() -> None:
    labs = {name: LabContext(ROOT, load_lab(ROOT, name)) for name in find_labs(ROOT)}
    site = SiteContext(ROOT, labs, instructor=True)
    drawn = labs_map(site)
    for name, lab in labs.items():
        assert f">{name}</text>" in drawn
        assert f">{lab.about.minutes} min</text>" in drawn
        for pitfall in lab.pitfalls:
            assert f">{pitfall.id}</text>" in pitfalls_map(site, name)


def test_no_two_boxes_of_a_map_lie_on_each_other() -> None:
    labs = {name: LabContext(ROOT, load_lab(ROOT, name)) for name in find_labs(ROOT)}
    site = SiteContext(ROOT, labs, instructor=True)
    maps = [labs_map(site), *(pitfalls_map(site, n) for n, lab in labs.items() if lab.pitfalls)]
    for drawn in maps:
        corners = re.findall(r'<rect class="part" x="([^"]+)" y="([^"]+)"', drawn)
        assert len(set(corners)) == len(corners) > 1
        columns = {x: sorted(float(y) for left, y in corners if left == x) for x, _ in corners}
        for tops in columns.values():
            assert all(top + 42 < other for top, other in pairwise(tops))


def test_a_notebook_as_a_page() -> None:
    svg = {"output_type": "display_data", "data": {"image/svg+xml": ["<svg>", "</svg>"]}}
    table = '<style scoped>x</style><table border="1" class="dataframe"><td>1</td></table>'
    html = {"output_type": "execute_result", "data": {"text/html": table, "text/plain": "1"}}
    printed = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
        {"output_type": "stream", "name": "stdout", "text": "two\n"},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "a = 1\n\nb = 2", "outputs": [*printed, html, svg]},
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    files = pages_of({"cells": cells}, "01-x")
    assert files["01-x-1.svg"] == "<svg></svg>"
    page = files["01-x.md"]
    assert page.startswith("# Title\ntext\n\n??? note ")
    assert "    ```python\n    a = 1\n    \n    b = 2\n    ```" in page
    assert "```text\none\ntwo\n```" in page
    assert "\n<table><td>1</td></table>\n" in page
    assert "](01-x-1.svg){ .figure .light" in page
