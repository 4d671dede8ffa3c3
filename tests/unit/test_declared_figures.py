"""The figures that a lab declares: drawn from recorded runs, and from rows made by hand."""

import base64
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from measuretwice.base.errors import UserError
from measuretwice.figures.files import draw_declared
from measuretwice.figures.over_time import thinned
from measuretwice.figures.style import svg_text
from measuretwice.lab import Lab, load_lab, read_lab
from measuretwice.lab.schema.results import BoxesFigure, EcdfFigure, FigureOf, Samples
from measuretwice.runs import recorded
from measuretwice.runs.result import Result
from measuretwice.site.macros.browser_run import terminals
from measuretwice.stats.intervals import mean_interval_within

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "buffers")
SET = ROOT / "sample-data" / LAB.folder.name / "case-01-fixed"


def declared(name: str, lab: Lab = LAB) -> FigureOf:
    return next(figure for figure in lab.file.figures if figure.id == name)


def results() -> list[Result]:
    return recorded.results_of(LAB, SET)


def test_windows_and_queue_over_time() -> None:
    drawn, rows = draw_declared(LAB, declared("windows-and-queue"), results())
    what = {row["what"] for row in rows}
    assert what == {"s1 cwnd_segments", "s2 cwnd_segments", "queue_packets"}
    # 20 s, and the second flow begins up to 2 s later.
    assert all(0 <= row["time_s"] <= 22 for row in rows)
    longest = max(row["value"] for row in rows if row["what"] == "queue_packets")
    # A small packet among the others takes less of the buffer.
    assert 700 < longest <= 1_250_000 / 1514 + 2
    text = svg_text(drawn)
    assert "trial 1: highspeed, 1\u202f250\u202f000 bytes" in text
    assert "Jain" in drawn.description


@pytest.mark.slow
def test_round_trips_below_the_windows() -> None:
    """Four algorithms alone: what each does to the delay, over the path's own."""
    lab = load_lab(ROOT, "variants")
    figure = declared("delay-and-window", lab)
    found = recorded.results_of(lab, ROOT / "sample-data/04-variants/signatures")
    drawn, rows = draw_declared(lab, figure, found)
    assert {row["what"] for row in rows} == {"client cwnd_segments", "client rtt_ms"}
    longest = {
        run.params["congestion_control"]: max(
            row["value"]
            for row in rows
            if row["trial"] == run.trial and row["what"] == "client rtt_ms" and row["time_s"] > 20
        )
        for run in found
    }
    assert all(40 <= ms <= 82 for ms in longest.values()), longest
    assert longest["vegas"] < longest["bbr"] < longest["reno"]
    assert "RTT (ms)" in svg_text(drawn)
    assert "queue (packets)" not in svg_text(drawn)


def test_what_is_drawn_keeps_every_peak() -> None:
    """Fewer points than samples, and none of a column's extremes is lost."""
    times = [n / 50 for n in range(2000)]
    values = [5.0 if n == 777 else 400.0 if n == 1203 else 100 + n % 7 for n in range(2000)]
    drawn_times, drawn = thinned(times, values)
    assert len(drawn) == len(drawn_times) < 1000
    assert {5.0, 400.0} <= set(drawn)
    assert drawn_times == sorted(drawn_times)
    assert (drawn_times[0], drawn_times[-1]) == (times[0], times[-1])
    assert thinned(times[:50], values[:50]) == (times[:50], values[:50])


def test_one_window_against_the_other() -> None:
    drawn, rows = draw_declared(LAB, declared("window-against-window"), results())
    assert {*rows[0]} == {"trial", "time_s", "s1", "s2"}
    assert "equal rates" in svg_text(drawn)


def run(algorithm: str, buffer: int, value: float | None, seed: int) -> Result:
    params = {"congestion_control": algorithm, "buffer_bytes": buffer}
    return Result("buffers", 1, "", None, None, seed, params, {"jains_index": value})


def test_a_value_against_a_parameter_has_means_and_intervals() -> None:
    runs = [
        *(run("cubic", 12500, value, n) for n, value in enumerate((0.7, 0.8, 0.9))),
        run("reno", 25000, 0.6, 1),
        run("reno", 25000, None, 2),
    ]
    drawn, rows = draw_declared(LAB, declared("fairness-against-buffer"), runs)
    cubic, reno = rows
    assert (cubic["by"], cubic["x"], cubic["runs"], cubic["mean"]) == ("cubic", 1.0, 3, 0.8)
    # Student's t with two degrees of freedom, 4.303 times 0.1/sqrt(3), as far as Jain's index of two goes.
    expected = mean_interval_within((0.7, 0.8, 0.9), 0.5, 1)
    assert (cubic["low"], cubic["high"]) == pytest.approx(expected[1:], rel=1e-3)
    assert 0.5 < cubic["low"] < 0.8 - 0.15
    assert 0.8 + 0.1 < cubic["high"] < 1
    assert drawn.caption == "1 to 3 runs per point; bars: 95 % interval of the mean"
    assert (reno["x"], reno["runs"], reno["low"]) == (2.0, 1, None)
    assert "cubic 0.8 at 1" in drawn.description


@pytest.mark.parametrize("tail", [False, True])
def test_shares_of_a_streams_delays(tail: bool, tmp_path: Path) -> None:
    """Two runs of one file, and one of another: a stream's packets in milliseconds above the fastest."""
    runs = []
    for seed, (algorithm, node) in enumerate(
        [("cubic", "server"), ("cubic", "server"), ("reno", "phone")]
    ):
        target = tmp_path / str(seed) / "raw" / "host"
        target.mkdir(parents=True)
        shutil.copy(ROOT / "tests/data/delays/codel" / node / "call.txt", target)
        runs.append(replace(run(algorithm, 12500, None, seed), folder=tmp_path / str(seed)))
    samples = Samples(file="host/call.txt", y=2, less=1, above_least=True, unit=0.001)
    figure = EcdfFigure(
        id="delays", kind="ecdf", title="x", of="y", samples=samples, label="delay (ms)", shares="share",
        by="congestion_control", tail=tail,
    )  # fmt: skip
    drawn, rows = draw_declared(LAB, figure, runs)
    assert {(row["by"], row["samples"]) for row in rows} == {("cubic", 996), ("reno", 500)}
    # 109 of 498 packets took 50 ms longer than the fastest, and more.
    above = [row["share"] for row in rows if row["by"] == "cubic" and row["value"] > 50]
    assert (max(above) if tail else 1 - min(above)) == pytest.approx(109 / 498, abs=0.01)
    assert "cubic: 996 samples, half up to 31.1, 95 % up to" in drawn.description
    assert drawn.caption.startswith("1 to 2 runs per congestion_control, a thin line each")
    assert "delay (ms)" in svg_text(drawn)
    wrong = figure.model_copy(update={"samples": samples.model_copy(update={"less": 7})})
    with pytest.raises(UserError, match=r"can't be read: host/call\.txt, file: lacks one of"):
        draw_declared(LAB, wrong, runs)


def test_runs_of_other_trials_are_named() -> None:
    other = [replace(run("cubic", 12500, 0.5, 1), trial=33)]
    with pytest.raises(UserError, match="none of these runs is of trials 1-4"):
        draw_declared(LAB, declared("windows-and-queue"), other)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('of = "each-once"', 'of = "nowhere"', "there is no recording 'nowhere'"),
        ('x = "buffer_bytes"', 'x = "buffer"', "'buffer' is no parameter"),
        ('by = "congestion_control"', "", "figures.2.by: this key is missing"),
        (
            'kind = "over-time"',
            'kind = "over-time"\nx = "buffer_bytes"',
            "x: no such key; expected one of id, kind",
        ),
        ('kind = "windows"', "", "figures.1.kind: this key is missing"),
        (
            'kind = "windows"',
            'kind = "pie"',
            "figures.1.kind: input should be 'over-time', .* or 'regression', got 'pie'",
        ),
    ],
)
def test_a_figure_that_cannot_be_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "labs" / LAB.folder.name
    shutil.copytree(LAB.folder, folder)
    text = LAB.path.read_text()
    assert old in text
    (folder / "lab.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=says):
        read_lab(folder)


def test_terminals_show_what_a_shared_script_reads() -> None:
    """s1.sh and s2.sh read sender.sh: its settings are theirs."""
    params = {**LAB.defaults(), **LAB.trials[33].set, "cwnd_trace": "as-printed"}
    html = terminals(LAB, "", params, with_others=True)
    sender = html[html.index('title="s1"') : html.index('title="s2"')]
    [packed] = re.findall(r"base64 -d <<<([^)]*)", sender)
    told = base64.b64decode(packed).decode()
    assert "export CWND_TRACE=as-printed" in told
    assert "export FIRST_DELAY_MS=145" in told
    assert "SECOND_DELAY_MS" not in told


# Boxes

QUEUES = load_lab(ROOT, "queues")
DISCIPLINES = declared("disciplines", QUEUES)


def of_two_flows(trial: int, seed: int, **measured: Any) -> Result:
    values = {
        "goodput_bps": 95e6 + 1e5 * seed,
        "busy_ping_mean_ms": 10.0,
        "rtt_mean_ms": 10.0,
        "queue_drops": 60,
        "queue_marks": 0,
    }
    params = {**QUEUES.defaults(), **QUEUES.trials[trial].set}
    flow = recorded.results_of(QUEUES, ROOT / "sample-data/05-queues/two-arms")[0].flows[0]
    flows = tuple(replace(flow, goodput_bps=goodput_bps) for goodput_bps in (47e6, 48e6))
    return Result(
        "queues", trial, "", None, None, seed, params, {**values, **measured}, flows=flows
    )


def test_a_box_for_each_setting_in_order_of_trials() -> None:
    results = [of_two_flows(trial, seed) for trial in (48, 1, 21) for seed in range(1, 6)]
    figure, rows = draw_declared(QUEUES, DISCIPLINES, results)
    # One panel after the other, in each the settings in order.
    assert list(dict.fromkeys(row["by"] for row in rows)) == ["pfifo_fast", "red", "red, ECN"]
    assert len(rows) == 15 * len(DISCIPLINES.panels)
    assert [row["value"] for row in rows[:5]] == [95.1, 95.2, 95.3, 95.4, 95.5]
    assert "goodput of both (Mbit/s), medians: pfifo_fast 95.3, red 95.3" in figure.description
    assert svg_text(figure) == svg_text(draw_declared(QUEUES, DISCIPLINES, results)[0])


def test_two_mixes_of_one_rival_have_a_box_each() -> None:
    scale = load_lab(ROOT, "scale")
    figure, rows = draw_declared(
        scale, declared("rivals", scale), recorded.results_of(scale, ROOT / "sample-data/03-scale/edge-ten-times")
    )  # fmt: skip
    assert sorted({row["by"] for row in rows}) == [
        "bbr with cubic",
        "bbr with reno",
        "cubic with reno",
    ]
    assert "cubic with reno 1.63, bbr with reno 3.84, bbr with cubic 4.11" in figure.description


def test_each_flow_is_a_value() -> None:
    two_arms = declared("two-arms", QUEUES)
    _, rows = draw_declared(QUEUES, two_arms, [of_two_flows(1, 1), of_two_flows(21, 1)])
    assert [row["value"] for row in rows if row["flow"] is not None] == [47, 48, 47, 48]


def test_boxes_that_can_not_be_drawn() -> None:
    with pytest.raises(UserError, match="none of 1 runs has a rtt_mean_ms"):
        draw_declared(QUEUES, DISCIPLINES, [of_two_flows(1, 1, rtt_mean_ms=None)])
    with pytest.raises(ValueError, match=r"panels\n.*at least 1 item"):
        BoxesFigure(id="x", kind="boxes", title="x", of="x", by="y", panels=[])
