"""./lab plot RUN [RUN] --over-time: what the raw files hold, a column a run, in SVG, CSV and text."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
import stat
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from command_line import call_lab, start_lab
from matplotlib.transforms import Bbox

from measuretwice.cli.over_time import text_panel
from measuretwice.figures.run_over_time import run_over_time
from measuretwice.lab import load_lab
from measuretwice.measure.over_time import OverTime
from measuretwice.view.documents import called
from measuretwice.view.over_time import read_over_time

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
FIRST, OTHER = (
    SAMPLES / f"05-queues/case-04-{stage}/trial-21-seed1" for stage in ("broken", "fixed")
)
BROKEN, FIXED = (
    SAMPLES / f"02-buffers/case-01-{stage}/trial-01-seed1" for stage in ("broken", "fixed")
)


def plot(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return call_lab("plot", *arguments, "--over-time", "--out", "figures", cwd=cwd)


def test_lines_are_what_was_measured() -> None:
    """Losses, windows and the queue agree with the values that measure makes of the same files."""
    for run in (BROKEN, FIXED):
        measured = json.loads((run / "result.json").read_text())["measured"]
        read = read_over_time(ROOT, run, None)
        lines = {(name, line.label): line for name, panel in read.lines.items() for line in panel}
        for node in ("s1", "s2"):
            sent_again = lines["losses", f"{node}, sent again"]
            assert sent_again.values[-1] == measured[f"{node}_retransmits"]
            ping = lines["rtt", f"{node}, ping, mean"]
            assert ping.steady
            # The smallest of them, which is measured: hosts that take their time make it a little less.
            assert ping.values[0] == pytest.approx(measured[f"{node}_path_rtt_ms"], rel=1e-3)
            assert len(lines["cwnd", node].time_s) == len(lines["cwnd", node].values) > 150
        assert lines["losses", "g1 tbf, dropped"].values[-1] == measured["queue_drops"]
        assert min(line.time_s[0] for line in lines.values()) >= 0


def test_two_runs_have_a_column_each_with_what_differs(tmp_path: Path) -> None:
    done = plot(FIRST, OTHER, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    svg, table = (tmp_path / line for line in done.stdout.splitlines())
    words = " ".join(ElementTree.parse(svg).getroot().itertext())
    plans = [json.loads((run / "plan.json").read_text())["params"] for run in (FIRST, OTHER)]
    differs = {name for name in plans[0] if plans[0][name] != plans[1].get(name)}
    assert differs == {"red_limit_bytes", "red_bandwidth"}
    for plan in plans:
        assert f"the most that RED's queue may hold: {plan['red_limit_bytes']} bytes" in words
    assert "red_" not in words
    # No list has that one before a case about it is known.
    assert "tell it the link's rate" not in words
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    runs = {row["run"] for row in rows}
    assert len(runs) == 2
    titles = sorted(runs, key=lambda title: "366000" in title)
    for title, run in zip(titles, (FIRST, OTHER), strict=True):
        windows = [row for row in rows if (row["run"], row["what"]) == (title, "cwnd: host-2")]
        wanted = read_over_time(ROOT, run, None).lines["cwnd"][1].values
        assert [float(row["value"]) for row in windows] == list(wanted)
    # The same bytes again.
    before = svg.read_bytes()
    assert plot(FIRST, OTHER, cwd=tmp_path).returncode == 0
    assert svg.read_bytes() == before


def test_a_title_says_of_a_setting_that_no_list_has_nothing_before_it_is_known(
    tmp_path: Path,
) -> None:
    """Of a case's own runs, too, unless somebody has changed it there; then it is said of both."""

    def title() -> str:
        return str(json.loads(plot("one", "two", "--json", cwd=tmp_path).stdout)["title"])

    for name, run in (("one", BROKEN), ("two", FIXED)):
        shutil.copytree(run, tmp_path / name)
    assert "typed" not in title()
    assert "buffer_text" not in title()
    (tmp_path / "lab-book.md").write_text(
        "- Seed: 7\n\n## Case 1: x\n\n- Outcome: nothing is off\n"
    )
    words = "tbf's limit as typed, with its suffix, in place of buffer_bytes:"
    assert f"{words} 1.25mbit" in title()
    assert f"{words} not set" in title()


@pytest.mark.parametrize(
    ("name", "words", "unit"),
    [
        ("red_limit_bytes", "the most that RED's queue may hold", "bytes"),
        ("rate_mbit", "rate of the link between the routers, in each direction", "Mbit/s"),
        ("receiver", "who receives", ""),
        ("red_probability_ratio", "red: probability of an early drop as the average reaches red_max_bytes", ""),
        ("system_default", "what the system uses unless somebody says otherwise", ""),
        ("fifo_bytes", "bfifo's limit", "bytes"),
        ("processing_us", "a host looks at a packet at a random moment within this time of its arrival", "µs"),
    ],
)  # fmt: skip
def test_a_setting_is_called_by_its_words_in_lab_toml(name: str, words: str, unit: str) -> None:
    assert called(load_lab(ROOT, "queues"), name) == (words, unit)


def test_titles_of_a_persons_own_stand_first(tmp_path: Path) -> None:
    done = plot(f"As found={BROKEN}", f"fixed={FIXED}", "--json", cwd=tmp_path)
    title = json.loads(done.stdout)["title"]
    assert title.startswith("As found: buffers, trial 1")
    assert " beside fixed: buffers, trial 1" in title


def test_one_run_has_its_own_settings_in_its_title(tmp_path: Path) -> None:
    document = json.loads(plot(BROKEN, "--json", cwd=tmp_path).stdout)
    params = json.loads((BROKEN / "plan.json").read_text())["params"]
    assert f"buffer_bytes {params['buffer_bytes']}" in document["title"]
    assert "queue of g1 tbf 0 to " in document["in_words"]
    assert {row["unit"] for row in document["rows"]} == {"segments", "ms", "packets"}


@pytest.mark.parametrize(
    "run",
    [
        "00-calibrate/readings",
        "01-mathis/case-05-fixed",
        "04-variants/case-01-fixed",
        "05-queues/two-arms-once",
    ],
)
def test_runs_of_every_lab(run: str, tmp_path: Path) -> None:
    folder = sorted((SAMPLES / run).glob("*/raw.tar.xz"))[0].parent
    read = read_over_time(ROOT, folder, None)
    assert {"cwnd", "rtt", "losses"} <= set(read.lines)
    assert ("queue" in read.lines) == ("no queue was sampled" not in read.notes)
    assert plot(folder, cwd=tmp_path).returncode == 0


SOME_OF_EACH_LAB = {
    "calibrate": ["00-calibrate/readings"],
    "mathis": ["01-mathis/case-05-broken", "01-mathis/case-05-fixed", "01-mathis/case-03-broken"],
    "buffers": ["02-buffers/case-01-broken", "02-buffers/case-01-fixed", "02-buffers/case-04-fixed"],
    "scale": ["03-scale/case-01-broken", "03-scale/case-01-fixed", "03-scale/edge-once"],
    "variants": ["04-variants/case-01-broken", "04-variants/case-01-fixed", "04-variants/case-05-fixed"],
    "queues": ["05-queues/case-02-broken", "05-queues/case-04-broken", "05-queues/case-04-fixed"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("lab", SOME_OF_EACH_LAB)
@pytest.mark.filterwarnings("error")
def test_nothing_in_a_figure_lies_on_anything_else(lab: str, count: int) -> None:
    folders = [
        run.parent
        for name in SOME_OF_EACH_LAB[lab]
        for run in sorted((SAMPLES / name).glob("*/raw.tar.xz"))
    ]
    drawn, _ = run_over_time([read_over_time(ROOT, run, None) for run in (folders * 3)[:count]])
    drawn.draw_without_rendering()
    boxes: dict[str, Bbox] = {}
    for number, axes in enumerate(drawn.axes):
        boxes[f"panel {number}"] = axes.get_window_extent()
        if legend := axes.get_legend():
            boxes[f"legend {number}"] = legend.get_window_extent()
        title = axes._left_title  # type: ignore[attr-defined]
        if title.get_text():
            boxes[f"title {number}"] = title.get_window_extent()
    for name, box in boxes.items():
        assert min(box.x0, box.y0) >= 0, name
        assert box.x1 <= drawn.bbox.width, name
        assert box.y1 <= drawn.bbox.height, name
        if name.startswith("panel"):
            # In the page's pixels.
            assert box.height * 72 / drawn.dpi >= 100, (name, box.height)
            assert box.width * 72 / drawn.dpi >= 200, (name, box.width)
    for (name, box), (other, its) in itertools.combinations(boxes.items(), 2):
        apart = (
            box.x1 <= its.x0 + 1
            or its.x1 <= box.x0 + 1
            or box.y1 <= its.y0 + 1
            or its.y1 <= box.y0 + 1
        )
        assert apart, (name, other)


def test_three_runs_in_a_terminal_and_no_file_with_too_long_a_name(tmp_path: Path) -> None:
    done = plot(BROKEN, FIXED, BROKEN, "--text", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # There is no room for three beside each other: they stand below each other.
    assert sum("congestion window (segments)" in line for line in done.stdout.splitlines()) == 3


def test_of_many_flows_the_first_and_it_is_said() -> None:
    run = SAMPLES / "03-scale/edge-once/trial-01-seed1"
    read = read_over_time(ROOT, run, None)
    assert "the first 3 of 10 connections" in read.notes
    assert [line.label for line in read.lines["cwnd"]] == ["sender-0", "sender-1", "sender-2"]
    only = read_over_time(ROOT, run, "sender-7")
    assert [line.label for line in only.lines["cwnd"]] == ["sender-7"]


def test_of_a_host_that_sends_and_receives_what_it_sent_is_drawn() -> None:
    """All connections to its server share one port, the control connection with them."""
    read = read_over_time(ROOT, SAMPLES / "06-latency/case-07-broken/trial-01-seed1", None)
    assert "the first 3 of 8 connections" in read.notes
    for line in read.lines["cwnd"]:
        assert line.label.startswith("laptop port 3")
        assert len(set(line.values)) > 10


def test_files_of_a_persons_own_with_times(run: Path, tmp_path: Path) -> None:
    """No plan, no iperf3: the connection that sent most. Names that neither SVG nor matplotlib likes."""
    mine = tmp_path / "mine"
    node = mine / "a$x$\x07"
    node.mkdir(parents=True)
    shutil.copy(run / "raw/romeo/ss.txt", node / "log.txt")
    done = plot(mine, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    svg = tmp_path / done.stdout.splitlines()[0]
    words = " ".join(ElementTree.parse(svg).getroot().itertext())
    assert "a$x$\ufffd" in words
    with open(svg.with_suffix(".csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    measured = json.loads((run / "result.json").read_text())["measured"]
    sent_again = [float(row["value"]) for row in rows if "sent again" in row["what"]]
    assert sent_again[-1] == measured["retransmits"]


def test_a_ping_with_times_is_a_line(run: Path) -> None:
    lines = (run / "raw/romeo/ss.txt").read_text().splitlines()
    start = float(lines[0].removeprefix("# t="))
    text = (run / "raw/romeo/ping.txt").read_text().splitlines()
    for n, line in enumerate(text):
        if " bytes from " in line:
            text[n] = f"[{start + n:.6f}] {line}"
    (run / "raw/romeo/ping.txt").write_text("\n".join(text) + "\n")
    panel = read_over_time(ROOT, run, None).lines["rtt"]
    (ping,) = [line for line in panel if "ping" in line.label]
    assert not ping.steady
    assert len(ping.values) == 25
    assert ping.time_s[1] - ping.time_s[0] == pytest.approx(1, abs=0.01)


def test_text_for_a_terminal(tmp_path: Path) -> None:
    done = plot(BROKEN, FIXED, "--text", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert max(map(len, lines[:-2])) <= 100
    [both] = [line for line in lines if "congestion window (segments)" in line]
    assert "congestion window (segments)" in both[50:]
    assert any("┤" in line for line in lines)
    assert any(chr(0x2800) < c < chr(0x28FF) for line in lines for c in line)
    assert "\x1b" not in done.stdout
    # Both to the same scale: the largest window of either stands at the top of both.
    panels = [read_over_time(ROOT, run, None).lines["cwnd"] for run in (BROKEN, FIXED)]
    most = max(max(line.values) for panel in panels for line in panel)
    assert sum(line.count(f"{most:.0f} ┤") for line in lines) == 2


def test_a_text_panel_is_to_scale() -> None:
    """A straight line goes from corner to corner, and a peak of one sample is not lost."""
    rising = text_panel("y", [([0, 1, 2, 3], [0, 1, 2, 3])], (3, 3), 42, 8)
    assert {len(line) for line in rising} == {42}
    assert rising[1][-1] != " "
    # A line, not dots: no row and no column without any.
    steep = text_panel("y", [([0, 1], [0, 8])], (60, 8), 42, 8)
    for panel in (rising, steep):
        assert all(row[10:].strip() for row in panel[1:9])
    assert rising[8][10] != " "
    assert rising[1][10] == " "
    assert rising[8][-1] == " "
    peak = text_panel("y", [([0, 5, 10], [1, 8, 1]), ([0, 10], [0, 0])], (10, 8), 42, 8)
    assert "*" in peak[1]
    assert "o" in peak[8]


def test_what_was_not_sampled_over_time(run: Path, tmp_path: Path) -> None:
    (run / "raw/romeo/ss.txt").unlink()
    done = plot(run, cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing in it was sampled over time" in done.stderr
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "nowhere"):
        done = plot(bad, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
    assert "one run, or up to 3" in plot(*[BROKEN] * 4, cwd=tmp_path).stderr
    assert "go with --over-time" in call_lab("plot", BROKEN, "--text").stderr


def test_a_log_that_was_cut_off(run: Path) -> None:
    path = run / "raw/romeo/ss.txt"
    whole = read_over_time(ROOT, run, None)
    path.write_bytes(path.read_bytes()[:100_000])
    cut: OverTime = read_over_time(ROOT, run, None)
    count = len(cut.lines["cwnd"][0].values)
    assert 10 < count < len(whole.lines["cwnd"][0].values)
    assert cut.lines["cwnd"][0].values == whole.lines["cwnd"][0].values[:count]


def test_it_opens_in_the_browser_or_says_that_there_is_none(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{tmp_path}/opened\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    arguments = ("plot", BROKEN, "--over-time", "--open", "--out", tmp_path)
    done = start_lab(*arguments, BROWSER=f"{browser} %s")
    assert done.returncode == 0, done.stderr
    svg = Path(done.stdout.splitlines()[0])
    assert (tmp_path / "opened").read_text().strip() == svg.as_uri()
    done = start_lab(*arguments, BROWSER="/nowhere/browser", PATH="/nowhere", DISPLAY="")
    assert done.returncode == 0
    assert f"no browser could be opened: open {svg} yourself" in done.stderr
