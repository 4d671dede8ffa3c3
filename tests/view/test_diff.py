"""./lab diff: what differs between two recorded runs, and that nothing does where nothing does."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab

SAMPLES = Path(__file__).parents[2] / "sample-data"
BROKEN, FIXED = (
    SAMPLES / f"01-mathis/case-05-{stage}/trial-09-seed1" for stage in ("broken", "fixed")
)


def read(run: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((run / name).read_text()))


def diff(a: Path, b: Path, code: int) -> dict[str, Any]:
    done = call_lab("diff", a, b, "--json")
    assert done.returncode == code, (done.stdout[:500], done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_equal_runs_say_so(run: Path) -> None:
    """The same run packed and unpacked: the same bytes, exit 0."""
    document = diff(BROKEN, run, 0)
    assert document["same"] is True
    assert (document["settings"], document["measured"]) == ([], [])
    assert {file["state"] for file in document["files"]} == {"same"}
    done = call_lab("diff", BROKEN, run)
    assert done.returncode == 0
    number = len(list((run / "raw").rglob("*.*")))
    assert f"raw files: all {number} are the same bytes" in done.stdout


def test_two_stages_differ_in_one_setting() -> None:
    document = diff(BROKEN, FIXED, 1)
    (setting,) = document["settings"]
    plans = [read(run, "plan.json")["params"] for run in (BROKEN, FIXED)]
    assert (setting["a"], setting["b"]) == tuple(plan[setting["name"]] for plan in plans)
    assert setting["unit"] == "bytes"
    results = [read(run, "result.json")["measured"] for run in (BROKEN, FIXED)]
    changed = {name for name in results[0] if results[0][name] != results[1][name]}
    # Values are derived anew: today's code may measure more than a recorded result.json holds.
    names = {value["name"] for value in document["measured"]}
    assert names & results[0].keys() == changed
    (goodput,) = [value for value in document["measured"] if value["name"] == "goodput_bps"]
    assert goodput["unit"] == "bit/s"
    assert goodput["ratio"] == pytest.approx(goodput["b"] / goodput["a"], 1e-5)
    by_name = {file["name"]: file for file in document["files"]}
    assert by_name["romeo/ping.txt"]["state"] == "same"
    before = by_name["romeo/link.before.json"]
    assert (before["what"], before["changed"], before["only_a"]) == ("values", 1, 0)
    assert before["shown"] == ["$[1].mtu: 1500 | 4352"]
    # Long files are counted, not listed.
    assert by_name["romeo/ss.txt"]["only_a"] > 1000
    assert by_name["romeo/ss.txt"]["shown"] == []


def test_what_is_printed_names_no_mistake(tmp_path: Path) -> None:
    for name, run in (("one", BROKEN), ("two", FIXED)):
        shutil.copytree(run, tmp_path / name)
    done = call_lab("diff", "one", "two", cwd=tmp_path)
    assert done.returncode == 1
    assert "settings that differ: 1" in done.stdout
    for word in ("pitfall", "broken", "stage", "finding", "wrong", "cause"):
        assert word not in done.stdout


def test_a_value_that_tells_a_case_is_left_out_but_for_runs_of_that_case() -> None:
    samples = SAMPLES / "05-queues"
    rows = samples / "case-05-broken/trial-21-seed1"
    other = diff(rows, samples / "case-04-broken/trial-21-seed1", 1)
    assert "rate_rows_spanning" not in {value["name"] for value in other["measured"]}
    fixed = diff(rows, samples / "case-05-fixed/trial-21-seed1", 1)
    assert "rate_rows_spanning" in {value["name"] for value in fixed["measured"]}


def test_a_file_of_one_run_only_and_lines_of_text(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    (other / "raw/romeo/mine.txt").write_text("x\n")
    (run / "raw/router/route.txt").unlink()
    lines = (other / "raw/romeo/sysctl.txt").read_text().splitlines()
    lines[3] = "net.ipv4.tcp_x = 1"
    (other / "raw/romeo/sysctl.txt").write_text("\n".join(lines) + "\n")
    document = diff(run, other, 1)
    states = {file["name"]: file for file in document["files"] if file["state"] != "same"}
    assert {name: file["state"] for name, file in states.items()} == {
        "romeo/mine.txt": "only B",
        "romeo/sysctl.txt": "differs",
        "router/route.txt": "only B",
    }
    changed = states["romeo/sysctl.txt"]
    assert (changed["only_a"], changed["only_b"]) == (1, 1)
    assert changed["shown"][-1] == "+net.ipv4.tcp_x = 1"
    assert "romeo/mine.txt: only in B, 2 bytes" in call_lab("diff", run, other).stdout


def test_two_labs_may_be_compared() -> None:
    other = SAMPLES / "02-buffers/each-once/trial-01-seed1"
    document = diff(BROKEN, other, 1)
    names = {setting["name"]: setting for setting in document["settings"]}
    assert (names["lab"]["a"], names["lab"]["b"]) == ("mathis", "buffers")
    assert names["buffer_bytes"]["a"] is None
    assert {file["state"] for file in document["files"]} == {"only A", "only B"}


def test_files_of_a_persons_own(run: Path, tmp_path: Path) -> None:
    """Bytes decide: what is no UTF-8 isn't made equal by being unreadable."""
    for name, byte in (("a", b"\xfe"), ("b", b"\xff")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_bytes(b"x" + byte + b"\n")
        shutil.copy(run / "raw/romeo/ping.txt", tmp_path / name)
    document = diff(tmp_path / "a", tmp_path / "b", 1)
    assert [file["state"] for file in document["files"]] == ["differs", "same"]
    assert document["settings"] == []
    assert diff(tmp_path / "a/ping.txt", run / "raw/romeo/ping.txt", 0)["same"]
    assert any("don't say them" in note for note in document["notes"])


def test_what_cant_be_measured_is_said_and_the_rest_compared(run: Path) -> None:
    path = run / "raw/romeo/iperf3.json"
    path.write_bytes(path.read_bytes()[:500])
    document = diff(BROKEN, run, 1)
    assert any(note.startswith("no measured values: ") for note in document["notes"])
    assert [f["name"] for f in document["files"] if f["state"] != "same"] == ["romeo/iperf3.json"]


def test_a_plan_with_values_that_no_plan_has(run: Path) -> None:
    """Lists, NaN, no numbers: compared and shown as text, by all three commands."""
    plan = read(run, "plan.json")
    plan["params"] |= {"rtt_ms": float("nan"), "mss_bytes": [1], "mtu_bytes": {"a": None}}
    (run / "plan.json").write_text(json.dumps(plan))
    names = {setting["name"]: setting["b"] for setting in diff(BROKEN, run, 1)["settings"]}
    assert names == {"rtt_ms": "nan", "mss_bytes": "[1]", "mtu_bytes": '{"a": null}'}
    assert call_lab("show", run, "settings", "--json").returncode == 0
    done = call_lab("plot", BROKEN, run, "--over-time", "--out", run / "figures")
    assert done.returncode == 0, done.stderr


def test_unusable_input_is_exit_2(run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "nowhere", tmp_path / "pipe", Path("/dev/zero")):
        done = call_lab("diff", run, bad)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
