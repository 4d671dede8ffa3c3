"""The figure of each case's symptom: what it shows is what was measured, in any light, on any screen."""

from __future__ import annotations

import gzip
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import get_args

import pytest
from matplotlib.figure import Figure
from pydantic import TypeAdapter

from measuretwice.base.errors import UserError
from measuretwice.facts.values import count
from measuretwice.figures.palette import in_the_dark
from measuretwice.figures.style import svg_text
from measuretwice.figures.symptoms import (
    KINDS,
    PANEL_PX,
    PARTS,
    Stage,
    draw_stages,
    number_in_words,
    thinned,
)
from measuretwice.lab import Lab, find_labs, load_lab
from measuretwice.lab.schema.cases import AnySymptom, EcdfSymptom, Pitfall, SymptomOf
from measuretwice.measure.over_time import OverTime
from measuretwice.runs.folder import raw_folder
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.figure_files import symptom_pictures
from measuretwice.view.over_time import read_over_time

ROOT = Path(__file__).parents[2]
LABS = {name: load_lab(ROOT, name) for name in find_labs(ROOT)}
WORDS = {name: LabContext(ROOT, lab) for name, lab in LABS.items()}
# Some pages have six, and show each in one scheme.
MAX_PICTURE_BYTES = 5_000
LEAST_FONT_PX = 12


def over_time(run: Path) -> OverTime:
    return read_over_time(ROOT, run, None)


def panel(**keys: object) -> SymptomOf:
    read: SymptomOf = TypeAdapter(AnySymptom).validate_python(keys)
    return read


def drawn(lab: str, name: str, **keys: object) -> list[str]:
    """The words of a panel's picture of a case's first try."""
    words = WORDS[lab]
    runs = [Stage("", words.sets.runs(f"{name}-broken"))]
    figures = draw_stages(words.lab, panel(**keys), runs, over_time)
    return [figure.description for figure in figures]


def test_every_kind_that_a_lab_may_declare_is_drawn_and_used() -> None:
    # Each kind's table, by its name in lab.toml.
    tables = {
        get_args(table.model_fields["kind"].annotation)[0]: table
        for table in get_args(get_args(AnySymptom)[0])
    }
    assert set(KINDS) == set(tables.values())
    used = {type(panel) for lab in LABS.values() for p in lab.file.pitfalls for panel in p.figure}
    # A test below draws those that no lab has yet.
    assert used | {EcdfSymptom} == set(tables.values())
    for name in tables:
        assert f"`{name}`" in (SymptomOf.__doc__ or ""), "the page on lab.toml has each kind"


@pytest.mark.slow
def test_a_case_has_its_figure() -> None:
    """That no word of it tells the cause: tests/site/test_nobody_is_told.py."""
    for lab in LABS.values():
        for pitfall in lab.file.pitfalls:
            assert_has_its_figure(lab, pitfall)


def assert_has_its_figure(lab: Lab, pitfall: Pitfall) -> None:
    case = f"{lab.name}, case {lab.case_number(pitfall)}"
    folder = symptom_pictures(WORDS[lab.name], pitfall)
    facts = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    captions = facts.pop("captions")
    assert re.search(r"the first try, \d+ runs?$", captions["broken"]), case
    of_both = r"\d+ runs? each|, \d+ runs?, and after the change, \d+ runs?"
    assert re.search(of_both, captions["fixed"]), case
    alts = {name: known["alt"] for name, known in facts.items()}
    first = {name: text for name, text in alts.items() if name.endswith("-first")}
    assert len(first) == len(pitfall.figure) > 0, case
    files = {f"{name}{scheme}.svg" for name in alts for scheme in ("", "-dark")}
    assert {path.name for path in folder.glob("*.svg")} == files, case
    for name, text in alts.items():
        # Its number, and no other name of it.
        assert name.startswith(f"case-{lab.case_number(pitfall):02d}-"), case
        content = (folder / f"{name}.svg").read_text(encoding="utf-8")
        assert (folder / f"{name}-dark.svg").read_text(encoding="utf-8") == in_the_dark(content)
        root = ElementTree.fromstring(content)
        assert root.get("width") == str(PANEL_PX), (case, name)
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: ([0-9.]+)px", content)]
        assert min(sizes) >= LEAST_FONT_PX, (case, name)
        assert len(gzip.compress(content.encode(), 6)) < MAX_PICTURE_BYTES, (case, name)
        assert re.search(r"\d", text), f"{case}, {name}: its words have numbers in them"


def test_goodput_against_the_model_is_what_was_measured() -> None:
    [alt] = drawn("mathis", "mtu", kind="against-model")
    [run] = WORDS["mathis"].sets.runs("mtu-broken")
    assert f"the recorded run {number_in_words(run.measured['goodput_bps'] / 1e6)} Mbit/s" in alt  # type: ignore[operator]
    assert run.model_bps is not None
    assert f"the model predicts {number_in_words(run.model_bps / 1e6)}" in alt


def test_values_are_measured_set_computed_or_counted() -> None:
    [alt] = drawn(
        "buffers", "hidden-queue", kind="values", label="x",
        bars=[
            {"label": "counted", "node": "d1", "counter": "TcpOutSegs"},
            {"label": "set", "value": "=rate_mbit", "times": 2},
            {"label": "measured", "value": "queue_drops"},
            {"label": "known", "value": 1.31},
        ],
    )  # fmt: skip
    [run] = WORDS["buffers"].sets.runs("hidden-queue-broken")
    grown = WORDS["buffers"].sets.counters_grown(run, "d1")["TcpOutSegs"]
    assert f"counted ({count(grown)})" in alt
    assert f"set ({2 * run.params['rate_mbit']:g})" in alt  # type: ignore[operator]
    assert f"measured ({run.measured['queue_drops']})" in alt
    assert "known (1.31)" in alt


def test_over_time_names_no_kind_of_queue() -> None:
    [alt] = drawn("queues", "default-qdisc", kind="over-time", of="queue")
    assert "router-1" in alt
    assert "codel" not in alt
    [goodput] = drawn("variants", "ten-seconds", kind="over-time", of="goodput")
    [run] = WORDS["variants"].sets.runs("ten-seconds-broken")
    mean = float(goodput.rsplit("mean ", 1)[1].rstrip("."))
    # By ss, from its first sample to its last.
    assert mean == pytest.approx(run.measured["goodput_bps"] / 1e6, rel=0.02)  # type: ignore[operator]


PINGS = {"file": "host-1/ping-busy.txt", "y": "time"}


def times_of_pings() -> list[float]:
    """Of the run that both tests below draw, in ms, as ping printed them."""
    [run] = WORDS["queues"].sets.runs("default-qdisc-broken")
    with raw_folder(run.run_dir) as raw:
        text = (raw / PINGS["file"]).read_text(encoding="utf-8")
    return sorted(map(float, re.findall(r"time=([\d.]+) ms", text)))


def test_shares_of_samples_in_a_raw_file() -> None:
    [alt] = drawn(
        "queues", "default-qdisc", kind="ecdf", label="share of pings", x_label="ms", samples=PINGS
    )
    times = times_of_pings()
    median = times[math.ceil(0.5 * len(times)) - 1]
    assert f"{len(times):,} samples, half up to {median:.3g}, 95 % up to" in alt


def test_rows_of_pings_have_lines_without_a_time_left_out() -> None:
    [alt] = drawn("queues", "default-qdisc", kind="rows", label="pings (ms)", **PINGS)
    times = times_of_pings()
    low, high = (number_in_words(ms) for ms in (times[0], times[-1]))
    assert alt == f"pings (ms): {len(times)} rows of host-1/ping-busy.txt, {low} to {high}."


def test_two_stages_share_their_axes_but_not_a_minute_with_hours() -> None:
    words = WORDS["mathis"]
    for name, alike in (("mtu", True), ("duration", False)):
        stages = [Stage(stage, words.sets.runs(f"{name}-{stage}")) for stage in ("broken", "fixed")]
        figures: list[Figure] = [
            *draw_stages(words.lab, panel(kind="over-time", of="cwnd"), stages, over_time)
        ]
        left, right = (figure.axes[0] for figure in figures)
        assert left.get_ylim() == right.get_ylim()
        assert (left.get_xlim() == right.get_xlim()) is alike


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"kind": "values", "label": "x", "bars": [{"label": "y", "value": "jains_index"}]}, "jains_index"),
        ({"kind": "rows", "file": "romeo/ss-last.txt", "y": 0, "label": "x"}, "romeo/ss-last.txt"),
        ({"kind": "flows", "label": "x", "by": "discipline"}, "flows"),
        ({"kind": "over-time", "of": "queue"}, "queue over time"),
    ],
)  # fmt: skip
def test_what_a_run_does_not_have_is_said(keys: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=f"figure of its symptom: no run has .*{re.escape(says)}"):
        drawn("mathis", "mtu", **keys)


def test_lines_keep_their_ends_when_they_are_thinned() -> None:
    x = [n / 10 for n in range(2400)]
    y = [float(n % 37) for n in range(2400)]
    y[1234] = 99.0
    thin_x, thin_y = thinned(x, y)
    assert len(thin_x) <= 2 * PARTS
    assert thin_x == sorted(thin_x)
    assert (max(thin_y), min(thin_y)) == (99.0, 0.0)
    assert thinned(x[:100], y[:100]) == (x[:100], y[:100])


def test_numbers_on_pictures_have_four_digits() -> None:
    numbers = [
        number_in_words(v) for v in (1267, 12679, -1267, 0.4375123, 30.6, 99.996, 1.31, 0, 0.000123)
    ]
    assert numbers == [
        "1267",
        "12\u202f679",
        "-1267",
        "0.4375",
        "30.6",
        "100",
        "1.31",
        "0",
        "0.000123",
    ]


def test_a_picture_is_the_same_bytes_again() -> None:
    words = WORDS["queues"]
    stage = [Stage("", words.sets.runs("small-n-broken"))]
    declared = panel(kind="flows", label="x", by="discipline", unit=1e6)
    first, second = (
        svg_text(draw_stages(words.lab, declared, stage, over_time)[0]) for _ in range(2)
    )
    assert first == second
