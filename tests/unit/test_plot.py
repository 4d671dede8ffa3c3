"""Figures and their rows, on made-up results: what is drawn, what is left out, the same bytes."""

import math
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run_program
from matplotlib.figure import Figure

from measuretwice.base.errors import UserError
from measuretwice.figures import rows as plot_data
from measuretwice.figures.against_model import (
    measured_against_model,
    spread,
    stages,
    window_against_loss,
)
from measuretwice.figures.files import draw_against_model, model_figures
from measuretwice.figures.palette import COLOURS
from measuretwice.figures.rows import ModelRuns
from measuretwice.figures.style import (
    DescribedFigure,
    plain,
    save_svg,
    shades,
    sized,
    spread_apart,
    svg_text,
)
from measuretwice.runs.result import Prediction, Result, Verdict
from measuretwice.tcp.model import mathis_bandwidth_bps

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def result(trial: int, ratio: float | None = 1.25, **more: Any) -> Result:
    """A trial at RTT 6 ms or 600 ms whose goodput is `ratio` of the model's; 100 losses of 10^5."""
    rtt_ms, mss_bytes, loss_ratio = (6, 600)[trial % 2], (536, 1460)[trial // 2 % 2], 0.001 * trial
    model_bps = mathis_bandwidth_bps(mss_bytes, rtt_ms, loss_ratio)
    made = Result(
        lab="made-up",
        trial=trial,
        title="",
        pitfall=None,
        stage=None,
        seed=1,
        params={"rtt_ms": rtt_ms, "mss_bytes": mss_bytes, "loss_ratio": loss_ratio},
        measured={
            "goodput_bps": None if ratio is None else ratio * model_bps,
            "qdisc_drops": 100,
            "qdisc_offered_packets": 100_000,
        },
        model=Prediction("mathis", 1.0, model_bps, 100.0),
        ratio=ratio,
        expectations=(Verdict("", "ratio", ratio, 1.0, 1.45, None, None),),
        folder=Path(f"/somewhere/trial-{trial}"),
    )
    return replace(made, **more)


RESULTS = [result(n) for n in range(1, 7)]
PUBLISHED = [
    plot_data.Published(3, "before", 17.9, 104.0, ""),
    plot_data.Published(3, "after", 17.9, 20.9, ""),
]


def texts(figure: Figure) -> list[str]:
    """Every text in the figure's SVG, which must be text and well-formed XML."""
    tree = ElementTree.fromstring(svg_text(figure))
    return [" ".join("".join(e.itertext()).split()) for e in tree.iter(f"{SVG}text")]


def runs(results: list[Result], published: Sequence[plot_data.Published] = ()) -> ModelRuns:
    """One set of runs."""
    return ModelRuns([("", results)], published)


def all_figures(results: list[Result]) -> list[DescribedFigure]:
    two_sets = ModelRuns([("one", results), ("two", results)])
    return [draw_against_model(name, two_sets) for name in model_figures()]


def test_rows_have_units_and_intervals() -> None:
    row = plot_data.rows_for_table([result(2)])[0]
    # 100 losses: the standard error of the ratio is 1/(2 sqrt(100)) = 5 %.
    assert row["goodput_high_mbit"] / row["goodput_mbit"] == pytest.approx(math.exp(0.098), 1e-4)
    assert row["goodput_low_mbit"] / row["goodput_mbit"] == pytest.approx(math.exp(-0.098), 1e-4)
    # goodput * RTT / MSS = 1.25 / sqrt(p), whatever RTT and MSS are.
    assert row["window_segments"] == pytest.approx(1.25 / math.sqrt(0.002), 1e-4)
    assert row["loss_low_ratio"] < row["loss_measured_ratio"] == 0.001 < row["loss_high_ratio"]
    assert (row["ratio"], row["losses"], row["comparable"]) == (1.25, 100, True)
    # The name of the run's folder, never where it stands on somebody's machine.
    assert row["run"] == "trial-2"


def test_rows_with_nothing_measured() -> None:
    row = plot_data.rows_for_table([result(2, None, measured={}, model=None)])[0]
    missing = {key for key, value in row.items() if value is None}
    assert missing >= {"goodput_mbit", "goodput_low_mbit", "window_segments", "losses", "model_mbit"}  # fmt: skip
    assert plot_data.csv_text([row]).splitlines()[1].startswith("2,1,6,1460,0.002,,,")


def test_without_a_loss_nothing_bounds_the_goodput() -> None:
    measured = {"goodput_bps": 1e6, "qdisc_drops": 0, "qdisc_offered_packets": 1000}
    row = plot_data.rows_for_table([result(2, measured=measured)])[0]
    assert (row["losses"], row["goodput_low_mbit"], row["goodput_high_mbit"]) == (0, None, None)
    assert row["loss_low_ratio"] == 0
    for figure in all_figures([result(2, measured=measured), *RESULTS]):
        texts(figure)


def test_constant_is_fitted_over_comparable_trials() -> None:
    odd = result(7, 9.0, comparable=False)
    fit = plot_data.fit_rows(plot_data.rows_for_table([*RESULTS, odd]))
    assert fit is not None
    assert (fit.points, fit.constant) == (6, pytest.approx(1.25, 1e-4))
    # Model values computed with C = 2: the same C comes out.
    doubled = [replace(r, model=Prediction("mathis", 2.0, 2 * r.model_bps, 100.0)) for r in RESULTS]
    rows = plot_data.rows_for_table(doubled)
    fit = plot_data.fit_rows(rows, plot_data.model_constant(doubled))
    assert fit is not None
    assert fit.constant == pytest.approx(1.25, 1e-4)
    assert plot_data.fit_rows(plot_data.rows_for_table(RESULTS[:2])) is None


def test_figure_3_says_what_it_shows() -> None:
    results = [*RESULTS, result(7, 9.0, comparable=False), result(8, None)]
    figure = measured_against_model(runs(results, PUBLISHED))
    words = texts(figure)
    assert "model's bandwidth (Mbit/s)" in words
    assert "measured goodput (Mbit/s)" in words
    for entry in ("536 bytes", "1460 bytes", "6 ms", "600 ms", "applies", "makes no claim"):
        assert entry in words
    assert {"published, first try", "published, last"} <= set(words)
    assert words.count("3") == 1
    assert "C = 1.25 (95 %: 1.25 to 1.25)" in figure.caption
    assert "1 trial left out: a value is missing" in figure.caption
    assert "Bars: 95 % interval by the number of losses" in figure.caption
    assert "C =" not in measured_against_model(runs(RESULTS[:2])).caption


def test_figure_4_names_its_lines_and_units() -> None:
    words = texts(window_against_loss(runs(RESULTS)))
    assert any(text.startswith("loss ratio p") for text in words)
    assert any("segments" in text for text in words)
    assert {"1.31 / √p", "√(3/2) / √p", "1 / √p", "√(3/4) / √p"} <= set(words)
    assert {"PFTK, 6 ms", "PFTK, 600 ms"} <= set(words)


def test_stages_count_what_lies_in_the_labs_range() -> None:
    sets = [("as found", [result(1, 9.0), result(2)]), ("fixed", [result(1), result(2)])]
    figure = stages(ModelRuns(sets))
    words = texts(figure)
    assert {"as found", "fixed", "1 of 2", "2 of 2"} <= set(words)
    assert "1 to 1.45" in figure.caption
    assert {"model (Mbit/s)", "goodput (Mbit/s)"} <= set(words)
    assert "as found: 1 of 2." in figure.description
    # Where the lab expects nothing, nothing is counted.
    assert "1 trials" not in words
    assert "6 trials" in texts(
        stages(ModelRuns([("x", [replace(r, expectations=()) for r in RESULTS])]))
    )
    # Six panels stand in two rows of three, each with ticks of its own where none stands below.
    assert len(stages(ModelRuns([(str(n), RESULTS) for n in range(6)])).axes) == 6


def test_marks_of_a_trial() -> None:
    """Hollow where the model makes no claim; the shape is the MSS's, the colour the RTT's."""
    results = [result(1), result(2, comparable=False)]
    axes = measured_against_model(runs(results)).axes[0]
    marks = [line for line in axes.lines if line.get_marker() in ("o", "s")]
    assert [line.get_marker() for line in marks] == ["o", "s"]
    assert [line.get_markerfacecolor() for line in marks] == [marks[0].get_markeredgecolor(), "#ffffff"]  # fmt: skip
    assert marks[0].get_markeredgecolor() != marks[1].get_markeredgecolor()
    first, last = COLOURS["seq-1"].light, COLOURS["seq-5"].light
    assert shades([6, 6, 600]) == {6: first, 600: last}


def drawn_lines(figure: Figure) -> list[list[tuple[float, float]]]:
    """The lines of the first panel as points, to four digits."""
    return [
        [(float(f"{x:.4g}"), float(f"{y:.4g}")) for x, y in zip(*line.get_data(), strict=True)]
        for line in figure.axes[0].lines
    ]


def test_lines_and_bars_stand_where_they_should() -> None:
    row = plot_data.rows_for_table([result(2)])[0]
    x, y = float(f"{row['model_mbit']:.4g}"), row["goodput_mbit"]
    figure = measured_against_model(runs([result(2)], PUBLISHED))
    low, high = figure.axes[0].get_xlim()
    lines = drawn_lines(figure)
    assert [(low, low), (high, high)] in [
        [(pytest.approx(a, 1e-3), pytest.approx(b, 1e-3)) for a, b in line] for line in lines
    ]
    bar = [(x, float(f"{y * math.exp(sign * 0.098):.4g}")) for sign in (-1, 1)]
    assert bar in [[(a, pytest.approx(b, 1e-3)) for a, b in line] for line in lines]
    assert [(17.9, 104.0)] in lines
    assert [(17.9, 20.9)] in lines
    # Figure 4: the interval of 100 losses in 100,000 packets, on the trial's window.
    lines = drawn_lines(window_against_loss(runs([result(1), result(2)])))
    window = float(f"{row['window_segments']:.4g}")
    assert [(0.0008137, window), (0.001216, window)] in lines
    assert [(0.002, window)] in lines


@pytest.mark.parametrize("figure", model_figures())
def test_empty_input(figure: str) -> None:
    with pytest.raises(UserError, match="nothing to plot"):
        draw_against_model(figure, ModelRuns([]))
    with pytest.raises(UserError, match="nothing to plot: none of 1 runs has"):
        draw_against_model(figure, runs([result(1, None)]))


def test_unknown_figure_names_the_known() -> None:
    with pytest.raises(UserError, match="measured-against-model, window-against-loss, stages"):
        draw_against_model("pie", runs(RESULTS))


def test_svg_is_described_for_a_reader() -> None:
    figure = measured_against_model(runs([replace(r, lab='<"&') for r in RESULTS]))
    figure.title = 'goodput < "model" & more'
    root = ElementTree.fromstring(svg_text(figure))
    assert root.get("role") == "img"
    assert (root.get("aria-label") or "").startswith('goodput < "model" & more. 6 trials')
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == 'goodput < "model" & more'
    assert "<dc:date>" not in svg_text(figure)


def test_a_long_line_ends_where_it_should() -> None:
    """Its points are told each from the one before it."""
    figure = sized(300)
    axes = figure.subplots()
    axes.plot([0.001 * n for n in range(1001)], [math.sin(n) for n in range(1001)], color="#123456")
    lines = [
        path.get("d") or ""
        for path in ElementTree.fromstring(svg_text(figure)).iter(f"{SVG}path")
        if "#123456" in (path.get("style") or "")
    ]
    (first_x, first_y), *steps = [
        tuple(map(float, step.split())) for step in re.split("[Ml]", lines[0])[1:]
    ]
    assert len(steps) > 500
    # Once the drawing has given the axes their place.
    last_x, last_y = axes.transData.transform((1, math.sin(1000))) * 72 / figure.dpi
    assert first_x + sum(x for x, _ in steps) == pytest.approx(last_x, abs=0.06)
    assert first_y + sum(y for _, y in steps) == pytest.approx(300 - last_y, abs=0.06)


def test_svg_has_no_names_that_nobody_refers_to() -> None:
    text = svg_text(measured_against_model(runs(RESULTS)))
    names = re.findall(r' id="([^"]*)"', text)
    assert names
    assert all(f"#{name}" in text for name in names)


def test_words_in_a_figure_stay_as_they_are() -> None:
    words = 'a path d="M 1.25 2.75 L 3 4" id="x"'
    figure = sized(300)
    figure.subplots().set_xlabel(words)
    texts = ElementTree.fromstring(svg_text(figure)).iter(f"{SVG}text")
    assert words in [text.text for text in texts]


@pytest.mark.slow
def test_svg_is_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    here = [svg_text(figure) for figure in all_figures(RESULTS)]
    assert here == [svg_text(figure) for figure in all_figures(RESULTS)]
    assert here != [svg_text(figure) for figure in all_figures(RESULTS[:5])]
    program = (
        "import sys, test_plot; from pathlib import Path\n"
        "for i, f in enumerate(test_plot.all_figures(test_plot.RESULTS)):"
        " test_plot.save_svg(f, Path(sys.argv[1]) / f'{i}.svg')"
    )
    (tmp_path / "matplotlibrc").write_text("xtick.major.size: 20\nfont.size: 20\n")
    for seed in ("1", "77"):
        folders = (ROOT / "src", ROOT / "tests/support", Path(__file__).parent)
        environment = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONHASHSEED": seed}
        words = (sys.executable, "-c", program, tmp_path / seed)
        done = run_program(*words, cwd=tmp_path, **environment)
        assert done.returncode == 0, done.stderr
        for i, figure in enumerate(all_figures(RESULTS)):
            save_svg(figure, tmp_path / "here" / f"{i}.svg")
        here = [(tmp_path / "here" / f"{i}.svg").read_text() for i in range(len(here))]
        there = [(tmp_path / seed / f"{i}.svg").read_text() for i in range(len(here))]
        assert there == here


def test_save_svg_makes_its_folder(tmp_path: Path) -> None:
    save_svg(stages(ModelRuns([("one", RESULTS)])), tmp_path / "new" / "deep" / "x.svg")
    assert (tmp_path / "new" / "deep" / "x.svg").read_text().endswith("</svg>\n")


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(1, 7))
def test_a_single_trial_has_numbers_at_its_axes(trial: int) -> None:
    for figure in all_figures([result(trial)]):
        svg_text(figure)
        axes = figure.axes[0]
        for limits, ticks in ((axes.get_xlim(), axes.get_xticks()), (axes.get_ylim(), axes.get_yticks())):  # fmt: skip
            assert sum(limits[0] <= tick <= limits[1] for tick in ticks) >= 2


def test_a_run_in_two_sets_counts_once() -> None:
    figure = draw_against_model(
        "measured-against-model", ModelRuns([("one", RESULTS), ("two", RESULTS[:3])])
    )
    assert figure.description.startswith("6 trials;")
    assert "fitted to 6 trials" in figure.description


def test_labels_are_spread_apart() -> None:
    assert spread_apart([0.9, 0.1], 0.05) == [0.9, 0.1]
    assert spread_apart([0.50, 0.52], 0.1) == pytest.approx([0.46, 0.56])
    assert spread_apart([0.5, 0.5, 0.58], 0.1) == pytest.approx([0.4267, 0.5267, 0.6267], abs=1e-3)
    assert [plain(x) for x in (1e-5, 0.001, 1, 1e5, 1e7)] == ["0.00001", "0.001", "1", "100000", "1e+07"]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x,before,1,2,", "line 2: expected trial, state"),
        ("3,never,1,2,", "line 2: expected before or after as state"),
        ("3,after,0,2,", "line 2: expected positive Mbit/s"),
        ("3,after,nan,2,", "line 2: expected positive Mbit/s"),
        ("3,after", "line 2: expected trial, state"),
    ],
)
def test_published_values_are_checked(line: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        plot_data.read_published(f"trial,state,model_mbit,measured_mbit,note\n{line}\n", "p.csv")


def test_published_values_of_the_labs_are_readable() -> None:
    """... and their model values are what the lab's own trials say."""
    from measuretwice.lab import find_labs, read_lab
    from measuretwice.tcp.model import BANDWIDTH_BPS

    files = [f for f in (path / "published.csv" for path in find_labs(ROOT).values()) if f.is_file()]  # fmt: skip
    assert files
    for file in files:
        lab = read_lab(file.parent)
        use = lab.file.model
        assert use is not None
        for value in plot_data.read_published(file.read_text(encoding="utf-8"), file.name):
            params = {**lab.defaults(), **lab.trials[value.trial].set}
            mss, rtt, loss = (float(params[key]) for key in (use.mss, use.rtt, use.loss))
            bandwidth_bps = BANDWIDTH_BPS[use.name](mss, rtt, loss, use.constant)
            assert value.model_mbit == pytest.approx(bandwidth_bps / 1e6, rel=0.005)


def test_interactive_data_is_json_with_fit_and_range() -> None:
    import json

    data = [plot_data.set_data("all", RESULTS), plot_data.set_data("none", [])]
    again = json.loads(json.dumps([asdict(set_data) for set_data in data], allow_nan=False))
    assert again[0]["fit"]["constant"] == 1.25
    assert again[0]["ratio_range"] == [1.0, 1.45]
    assert len(again[0]["rows"]) == 6
    assert again[1] == {"title": "none", "rows": [], "fit": None, "ratio_range": None}


def test_the_spread_figure_says_what_it_shows() -> None:
    lossy = Verdict("", "loss_ratio", 0.005, 0.0, 1.0, 0.99, True)
    runs = [result(n, 1.2 + n / 100, expectations=(lossy,)) for n in range(1, 5)]
    figure = spread(runs[:2], runs, 0.02)
    assert figure is not None
    assert "4 runs" in figure.description
    assert spread(runs, runs, 0.001) is None
    assert spread(runs, runs[:2], 0.02) is None
