"""./lab check on what strangers hand in: one line for what can't be read, the rest is checked, and nothing outgrows its limits."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab

from measuretwice.base import limited_process
from measuretwice.base.files import pack_zip
from measuretwice.course import check as command
from measuretwice.course import reading
from measuretwice.course.lab_books import CaseBooks
from measuretwice.lab import Lab, Value
from measuretwice.measure.host_state import HostState, read_host_state

ROOT = Path(__file__).parents[2]
GOOD = ROOT / "tests/data/report/trial-07-seed1-b402df08"
DEEP = 100_000 * "[" + 100_000 * "]"


def copied(folder: Path) -> Path:
    shutil.copytree(GOOD, folder)
    return folder


def without_notes(stdout: str) -> str:
    """Return what was printed but for the line that this run is by older scripts than the checkout's."""
    lines = stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("  run by scripts"))


def changed(
    folder: Path, plan: Mapping[str, Any], params: Mapping[str, Any], provenance: bool = True
) -> Path:
    """A run whose plan says so, with the digest that follows: nobody sees that it was changed."""
    copied(folder)
    document = json.loads((folder / "plan.json").read_text())
    document |= plan
    document["params"] |= params
    decided = {name: document[name] for name in document if name not in ("kernel_seed", "digest")}
    text = json.dumps(decided, sort_keys=True)
    document["digest"] = hashlib.sha256(text.encode()).hexdigest()[:8]
    (folder / "plan.json").write_text(json.dumps(document))
    if provenance:
        origin = json.loads((folder / "provenance.json").read_text())
        origin["plan_digest"] = document["digest"]
        (folder / "provenance.json").write_text(json.dumps(origin))
    return folder


def holding(folder: Path, file: str, text: str) -> Path:
    (copied(folder) / file).write_text(text)
    return folder


def endless(folder: Path, file: str) -> Path:
    """A file of 200 GB that needs no place on the disk."""
    os.truncate(holding(folder, file, "{}") / file, 200 * 2**30)
    return folder


# How a run is made hostile, and a word of the line that says so.
HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "plan-nested-deep": (lambda to: holding(to, "plan.json", DEEP), "plan.json"),
    "plan-nested-below": (
        lambda to: holding(to, "plan.json", f'{{"lab": "mathis", "params": {DEEP}}}'), "plan.json",
    ),
    "plan-no-object": (lambda to: holding(to, "plan.json", "[1]"), "not a JSON object"),
    "plan-without-end": (lambda to: endless(to, "plan.json"), "larger than 64 MiB"),
    "raw-without-end": (lambda to: endless(to, "raw/romeo/ss.txt"), "larger than 2048 MiB"),
    "huge-setting": (lambda to: changed(to, {}, {"rtt_ms": 10**400}), "401 digits"),
    "setting-of-words": (lambda to: changed(to, {}, {"rtt_ms": "abc"}), "expected a number"),
    "setting-nan": (lambda to: changed(to, {}, {"rtt_ms": float("nan")}), "got nan"),
    "setting-inf": (lambda to: changed(to, {}, {"rtt_ms": float("inf")}), "got inf"),
    "setting-list": (lambda to: changed(to, {}, {"rtt_ms": [1]}), "expected a number"),
    "unknown-setting": (lambda to: changed(to, {}, {"nonsense": 1}), "no setting nonsense"),
    "no-such-trial": (lambda to: changed(to, {"trial": 10**9}, {}), "no trial 1000000000"),
    "negative-seed": (lambda to: changed(to, {"seed": -5}, {}), "got -5"),
    "lab-no-word": (lambda to: changed(to, {"lab": ["mathis"]}, {}), "names no lab"),
    "case-no-number": (lambda to: changed(to, {"case": [1]}, {}), "case"),
    "of-two-runs": (lambda to: changed(to, {"seed": 3}, {}, provenance=False), "of two runs"),
    "brackets": (
        lambda to: holding(to, "raw/router/tcpdump.txt", 5_000_000 * "["), "tcpdump.txt",
    ),
    "deep-raw": (lambda to: holding(to, "raw/router/addr.json", DEEP), "run it again"),
    "many-digits": (
        lambda to: holding(to, "raw/romeo/iperf3.json", f'{{"a": {6000 * "9"}}}'), "40 digits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_run_can_be_is_one_line_of_the_reader(name: str, tmp_path: Path) -> None:
    make, word = HOSTILE[name]
    run = make(tmp_path / "run")
    done = call_lab("check", run)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"lab: {run}")
    assert word in done.stderr
    assert len(done.stderr) < 500 + len(str(run))


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_the_other_commands_never_call_it_a_mistake_of_ours(name: str, tmp_path: Path) -> None:
    run = HOSTILE[name][0](tmp_path / "run")
    for words in (
        ("report", run, "--out", tmp_path / "report.html"), ("plot", run, "--out", tmp_path),
        ("plot", run, "--over-time", "--out", tmp_path), ("diff", GOOD, run), ("show", run),
        ("show", run, "settings"), ("show", run, "qdisc"), ("show", run, "tcpdump.txt"),
    ):  # fmt: skip
        done = call_lab(*words)
        assert done.returncode in (0, 1, 2), words
        assert "mistake of ours" not in done.stderr, words
        assert "Traceback" not in done.stderr, words
        if done.returncode == 1:
            assert words[0] == "diff"


def test_of_several_targets_the_others_are_checked(tmp_path: Path) -> None:
    bad = HOSTILE["plan-nested-deep"][0](tmp_path / "bad")
    done = call_lab("check", bad, GOOD)
    assert done.returncode == 2
    assert without_notes(done.stdout) == f"{GOOD}: no finding\n"
    assert done.stderr.startswith(f"lab: {bad}/plan.json: can't be read")
    assert done.stderr.count("\n") == 1
    # A name that is misspelt is no hand-in.
    done = call_lab("check", tmp_path / "none", GOOD)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lab: {tmp_path / 'none'}: there is no such file or folder\n"


def test_a_pipe_in_place_of_a_result_holds_nobody_up(tmp_path: Path) -> None:
    run = copied(tmp_path / "run")
    os.mkfifo(run / "result.json")
    assert call_lab("check", run).returncode == 0
    assert call_lab("plot", run).returncode == 2


# Limits ---------------------------------------------------------------------------------------


def in_bad(monkeypatch: pytest.MonkeyPatch, does: Callable[[], object]) -> None:
    """Reading a run called bad does this."""
    real = command.check_one

    def check_one(root: Path, run: Path, *others: Any) -> Any:
        return does() if run.name == "bad" else real(root, run, *others)

    monkeypatch.setattr(command, "check_one", check_one)


def spin() -> None:
    while True:
        pass


def leave_a_folder_and_die() -> None:
    (Path(tempfile.mkdtemp(prefix="measuretwice-")) / "x").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def write_much() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(2 * limited_process.FILE_BYTES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "says"),
    [
        (spin, "not read: needs more than 1 s of work"),
        (lambda: time.sleep(60), "not read: took longer than 5 s"),
        (lambda: bytearray(40 * 2**30), "not read: it needs more memory than a hand-in may have"),
        (leave_a_folder_and_die, "or was killed"),
        (write_much, "can't be read (OSError: [Errno 27] File too large)"),
        (lambda: os._exit(3), "not read"),
        (lambda: {}["x"], "can't be read (KeyError: 'x')"),  # type: ignore[index]
        (lambda: (lambda again: again(again))(lambda again: again(again)), "RecursionError"),
        (lambda: {"run": 1}, "not read: what was read of it is nothing that reading gives"),
        (lambda: {1, 2}, "TypeError"),
    ],
    ids=["works", "sleeps", "eats", "dies", "writes", "leaves", "errs", "recurs", "lies", "babbles"],
)  # fmt: skip
def test_what_needs_more_than_the_limits_is_named_and_the_rest_checked(
    does: Callable[[], object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_process, "CPU_S", 1)
    monkeypatch.setattr(limited_process, "WALL_S", 5.0 if "longer" in says else 120.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    before, bad, after = (copied(tmp_path / name) for name in ("a", "bad", "c"))
    in_bad(monkeypatch, does)
    done = call_lab("check", before, bad, after)
    assert without_notes(done.stdout) == f"{before}: no finding\n{after}: no finding\n"
    assert done.stderr.startswith(f"lab: {bad}: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.returncode == 2
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.slow
def test_each_run_of_a_folder_has_the_whole_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class's runs are many: what one may need isn't shared among them."""
    monkeypatch.setattr(limited_process, "CPU_S", 4)
    real = command.check_one

    def check_one(*arguments: Any) -> Any:
        ends = time.process_time() + 2
        while time.process_time() < ends:
            pass
        return real(*arguments)

    monkeypatch.setattr(command, "check_one", check_one)
    for name in "abc":
        copied(tmp_path / name)
    done = call_lab("check", tmp_path)
    assert done.stderr == ""
    assert done.stdout.count(": no finding") == 3


def test_a_virtual_kernel_for_a_run_is_started_without_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Value]]] = []
    free = [resource.getrlimit(what) for what in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]

    def conditions(_: Path, lab: Lab, params: Mapping[str, Value]) -> HostState:
        # Where it says so to this list, it is this process.
        asked.append((lab.name, dict(params)))
        now = [resource.getrlimit(what) for what in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
        assert now == free
        return read_host_state(GOOD / "raw", None)

    monkeypatch.setattr(reading, "reference_host_state", conditions)
    run = changed(tmp_path / "run", {"edited": {"router.sh": 64 * "0"}}, {})
    done = call_lab("check", run)
    assert (done.returncode, done.stderr) == (0, "")
    [(lab, params)] = asked
    assert lab == "mathis"
    # Of a setting that this older run lacks it has the lab's default.
    assert json.loads((run / "plan.json").read_text())["params"].items() <= params.items()


def test_why_a_reference_cant_be_made_is_said_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("of a setting")

    monkeypatch.setattr(reading, "reference_host_state", fails)
    run = changed(tmp_path / "run", {"edited": {"router.sh": 64 * "0"}}, {})
    done = call_lab("check", run)
    assert done.returncode == 2
    assert done.stderr == f"lab: {run}: can't be read (ZeroDivisionError: of a setting)\n"


SLOW = """
import sys, time
from pathlib import Path
from measuretwice.course import check
from measuretwice.cli.main import main

def check_one(*_):
    Path(sys.argv[-1], "began").touch()
    time.sleep(600)

check.check_one = check_one
main()
"""


def test_ctrl_c_ends_the_reading_at_once(tmp_path: Path) -> None:
    run = copied(tmp_path / "run")
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SLOW, "check", str(run)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (run / "began").exists():
        assert process.poll() is None
        time.sleep(0.05)
    began = time.monotonic()
    # As a terminal does, to all that it has started.
    os.killpg(process.pid, signal.SIGINT)
    out, complaint = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert (process.returncode, out) == (130, "")
    assert complaint.strip().startswith("lab: stopped")
    assert complaint.strip().count("\n") == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_of_an_unread_run_nobody_says_that_nothing_is_off() -> None:
    books = CaseBooks(ROOT, [])
    assert books.superseded([], ["x"]) == set()
    assert books.note_outcomes([], ["x"]) == []


# Archives -------------------------------------------------------------------------------------


def packed(files: Mapping[str, Path | bytes], place: Path) -> Path:
    place.write_bytes(pack_zip(files))
    return place


def test_paths_in_an_archive_begin_with_its_name(tmp_path: Path) -> None:
    raw = {
        f"mine/{path.parent.name}-{path.name}": path
        for path in (GOOD / "raw").rglob("*")
        if path.is_file()
    }
    place = packed({**raw, "mine/notes.txt": b"it rained", "x.7z": b"x"}, tmp_path / "mine.zip")
    words = ("check", place, "--lab", "mathis", "--trial", "7")
    shown, as_json = call_lab(*words), call_lab(*words, "--json")
    assert shown.stderr == f"lab: {place}:x.7z: an archive that isn't read here; ask for a zip or tar.gz; the rest is taken\n"  # fmt: skip
    assert f"{place}: " in shown.stdout
    assert "romeo: " in shown.stdout
    assert "iperf3 (mine/romeo-iperf3.json)" in shown.stdout
    assert f"  not used: {place}:mine/notes.txt: in no form that is read here" in shown.stdout
    [document] = json.loads(as_json.stdout)
    assert document["run"] == str(place)
    assert f"{place}:mine/romeo-iperf3.json" in document["used"]
    for text in (shown.stdout, shown.stderr, as_json.stdout, as_json.stderr):
        assert "measuretwice-" not in text


def test_a_broken_run_in_an_archive_is_named_from_the_archive_on(tmp_path: Path) -> None:
    bad = HOSTILE["setting-nan"][0](tmp_path / "bad")
    files = {f"runs/bad/{p.relative_to(bad)}": p for p in bad.rglob("*") if p.is_file()}
    files |= {f"runs/good/{p.relative_to(GOOD)}": p for p in GOOD.rglob("*") if p.is_file()}
    place = packed(files, tmp_path / "a.zip")
    done = call_lab("check", "a.zip", cwd=tmp_path)
    assert done.returncode == 2
    assert without_notes(done.stdout) == "a.zip:runs/good: no finding\n"
    assert done.stderr.startswith("lab: a.zip:runs/bad/plan.json: ")
    damaged = packed(files, tmp_path / "b.zip")
    damaged.write_bytes(damaged.read_bytes()[:2000])
    done = call_lab("check", damaged, place)
    assert done.returncode == 2
    assert f"{place}:runs/good: no finding\n" in done.stdout
    assert f"lab: {damaged}: is damaged, or no archive (BadZipFile)\n" in done.stderr


def test_a_folders_name_is_no_markup(tmp_path: Path) -> None:
    run = copied(tmp_path / "x[/red]:smile:[bold]")
    assert without_notes(call_lab("check", run).stdout) == f"{run}: no finding\n"
