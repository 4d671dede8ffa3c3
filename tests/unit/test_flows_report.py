"""Lab 03's report of many flows, on excerpts of a recorded run (tests/data/flows_report)."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "labs/03-scale/nodes/flows_report.py"
DATA = ROOT / "tests/data/flows_report"
SENDERS = (DATA / "sender-0", DATA / "sender-1")
found = importlib.util.spec_from_file_location("flows_report", SCRIPT)
assert found
assert found.loader
flows_report = importlib.util.module_from_spec(found)
sys.modules["flows_report"] = flows_report
found.loader.exec_module(flows_report)

# What four programs in awk made of these files, before there was this one.
FLOWS = """\
# 1700000034.330420 1700000095.320362
sender-0 55640 1 cubic 4301426 238.700 22115 209 14
sender-0 33730 2 reno 2203001 240.158 11349 86 7
sender-1 45184 1 cubic 8349747 235.920 21697 11 9
sender-1 38174 2 reno 5364937 237.109 13807 3 9
"""
SUMMARY = """\
flows 4
sum_bps 20219111
sum_of_squares 1.218563e+14
jain 0.838718
rtt_ms 237.972
losses 1821
halvings 39
losses_per_halving 46.692
c_by_losses 16.920
c_by_halvings 2.533
"""
OTHER_SUMMARY = """\
flows 10
sum_bps 19492634
sum_of_squares 1.178938e+14
jain 0.322292
rtt_ms 20.000
losses 309
halvings 39
losses_per_halving 7.923
c_by_losses 0.197
c_by_halvings 0.206
"""


def report(files: Path, out: Path, *options: str) -> dict[str, str]:
    """What it writes, by file; run as the router's script runs it."""
    out.mkdir(exist_ok=True)
    shutil.copy(DATA / "router/queue.txt", out)
    subprocess.run(
        [sys.executable, "-SIB", SCRIPT, files, out, "--flows", "10", "--rtt-ms", "20",
         "--warmup-s", "20", "--algorithms", "reno", "cubic", *options],
        check=True,
    )  # fmt: skip
    return {path.stem: path.read_text() for path in out.glob("*.txt") if path.stem != "queue"}


def test_a_mix_as_it_is(tmp_path: Path) -> None:
    written = report(DATA, tmp_path)
    assert written == {
        "streams": "sender-0 55640 1 4224184\nsender-0 33730 2 1848151\n"
        "sender-1 45184 1 8524290\nsender-1 38174 2 4896009\n",
        "flows": FLOWS,
        "groups": "cubic 2 12651173\nreno 2 7567938\n",
        "summary": SUMMARY,
    }


def test_each_mistake_that_the_lab_stages(tmp_path: Path) -> None:
    written = report(
        DATA, tmp_path, "--average", "own", "--label-by", "order", "--loss-by", "retransmissions",
        "--rtt-by", "base", "--count-by", "asked",
    )  # fmt: skip
    assert written["flows"].splitlines()[1] == "sender-0 55640 1 cubic 4224184 238.700 22115 209 14"
    assert written["groups"] == "cubic 2 6744160\nreno 2 12748474\n"
    assert written["summary"] == OTHER_SUMMARY


def test_counted_halvings_stand_in_for_events(tmp_path: Path) -> None:
    files = tmp_path / "files"
    shutil.copytree(DATA, files)
    # Before the interval, in it, just before its end, behind it.
    times = ("1700000034.1", "1700000034.4", "1700000095.320361", "1700000095.4")
    (files / "sender-0/counted.txt").write_text("".join(f"{time} 33730\n" for time in times))
    written = report(files, tmp_path / "out", "--halvings-by", "samples")
    halvings = [line.split()[-1] for line in written["flows"].splitlines()[1:]]
    assert halvings == ["0", "2", "0", "0"]


def test_a_halving_is_a_change_to_a_smaller_window(tmp_path: Path) -> None:
    path = tmp_path / "sender-3" / "events.txt"
    path.parent.mkdir()
    # Disorder, recovery, on to loss: one. Open, then CWR: another. One of another flow meanwhile.
    path.write_text("10 4000 1\n11 4000 3\n11.5 5000 4\n12 4000 4\n13 4000 0\n14 4000 2\n")
    counted = flows_report.count_halvings([path], 0, 20)
    assert counted == {("sender-3", 4000): 2, ("sender-3", 5000): 1}
    # What began before the interval goes on in it, and is no halving there.
    assert flows_report.count_halvings([path], 11.2, 13.5) == {("sender-3", 5000): 1}


def test_streams_of_iperf3(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = next(flows_report.streams([SENDERS[0] / "iperf3-1.json"]))
    assert first[:3] == ("sender-0", 55640, 1)
    assert first.own_bps == pytest.approx(4224184, abs=0.5)
    cut = tmp_path / "iperf3-12.json"
    cut.write_text((SENDERS[0] / "iperf3-1.json").read_text()[:500])
    refused = tmp_path / "iperf3-2.json"
    refused.write_text('{"start": {"connected": []}, "intervals": [], "end": {}, "error": "busy"}')
    assert list(flows_report.streams([cut, refused])) == []
    assert "iperf3-12.json is not whole" in capsys.readouterr().err


def test_a_process_has_several_streams(tmp_path: Path) -> None:
    test = json.loads((SENDERS[0] / "iperf3-1.json").read_text())
    socket = test["start"]["connected"][0]["socket"]
    test["start"]["connected"].append({"socket": socket + 2, "local_port": 4444})
    test["end"]["streams"].append({"receiver": {"socket": socket + 2, "bits_per_second": 8e6}})
    path = tmp_path / "iperf3-11.json"
    path.write_text(json.dumps(test))
    ports = [
        (stream.port, stream.number, round(stream.own_bps))
        for stream in flows_report.streams([path])
    ]
    assert ports == [(55640, 11, 4224184), (4444, 11, 8000000)]


def test_values_in_a_line_of_ss() -> None:
    line = next(
        sample.text
        for sample in flows_report.samples([SENDERS[0] / "ss.txt"])
        if sample.flow[1] == 33730
    )
    assert flows_report.value(line, "retrans:") == "2/2"
    assert (
        flows_report.value(line, "rtt:") == "207.493/54.145"
    )  # and not minrtt, which is behind it
    assert flows_report.value(line, "bytes_acked:") == "1486"
    assert flows_report.value(line, "dsack_dups:") == "0"  # it doesn't stand there


def test_the_interval_is_the_one_in_which_all_are_there() -> None:
    def sample(time_s: float, port: int) -> object:
        return flows_report.Sample(time_s, ("sender-0", port), "")

    samples = [sample(1, 1), sample(5, 1), sample(3, 2), sample(9, 2), sample(9, 1)]
    assert flows_report.common_interval([*samples, sample(12, 2)], 0.5) == (3.5, 9)
    with pytest.raises(SystemExit, match="no flow"):
        flows_report.common_interval([], 0)


def test_drops_are_the_queues_own_between_two_times() -> None:
    queue = DATA / "router/queue.txt"
    texts = queue.read_text().splitlines()
    times = [float(line[4:]) for line in texts[::2]]
    drops = [json.loads(line)[-1]["drops"] for line in texts[1::2]]
    assert drops[-1] > drops[2] > 0
    between = flows_report.drops_between
    # From the last sample before the first time to the last before the second.
    assert between(queue, times[3] - 0.01, times[-1]) == drops[-1] - drops[2]
    assert between(queue, 0, times[2]) == drops[2]


def test_c_is_fitted_and_needs_losses() -> None:
    mss, p, rtt_s = flows_report.MSS_BYTES, 0.0004, 0.1
    goodput_bps = 1.2 * 8 * mss / rtt_s / math.sqrt(p)
    assert flows_report.fitted_c([(goodput_bps, rtt_s, p), (1e6, 0.1, 0)]) == pytest.approx(1.2)
    assert math.isnan(flows_report.fitted_c([(1e6, 0.1, 0)]))


def test_who_has_no_name_is_unknown() -> None:
    flow = flows_report.Flow("sender-0", 1, 3, "bbr", 8e6, 20.0, 100, 0, 0)
    assert flows_report.groups([flow], "data", ["reno", "cubic"]) == ["bbr 1 8000000\n"]
    assert flows_report.groups([flow], "order", ["reno", "cubic"]) == ["unknown 1 8000000\n"]


def test_a_testbeds_python_reads_it() -> None:
    """The grammar of Python 3.9, and nothing but what comes with Python."""
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 9))
    modules = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }  # fmt: skip
    assert {(name or "").split(".")[0] for name in modules} <= sys.stdlib_module_names
