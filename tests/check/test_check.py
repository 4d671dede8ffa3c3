"""The checker on cases made by hand, on files from elsewhere, and on damaged input."""

import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.checks import (
    KINDS,
    Finding,
    Member,
    RunUnderTest,
    causes,
    check_run,
    check_set,
    run_under_test,
    with_help,
)
from measuretwice.checks.expectations import chance_notes
from measuretwice.lab import find_labs, load_lab
from measuretwice.measure import imported
from measuretwice.runs.remeasure import remeasure
from measuretwice.tcp.model import mathis_bandwidth_bps

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "data" / "parse"
WANTED: dict[str, Any] = {
    "rtt_ms": 6,
    "mss_bytes": 1460,
    "mtu_bytes": 1500,
    "loss_ratio": 0.005,
    "rate_mbit": 3000,
    "limit_packets": 100000,
    "timestamps": "off",
    "compare_with": "mathis where it holds",
}
HONEST: dict[str, Any] = {
    "rtt_min_ms": 6.0,
    "rtt_mean_ms": 6.1,
    "mss_bytes": 1460,
    "largest_packet_bytes": 1500,
    "goodput_bps": 31e6,
    "sender_rate_bps": 31e6,
    "bytes_acked": 930_000_000,
    "duration_s": 240.0,
    "qdisc_drops": 3300,
    "qdisc_offered_packets": 660_000,
    "retransmits": 3310,
    "cwnd_mean_segments": 16.0,
    "cwnd_max_segments": 60,
}


def raised(wanted: dict[str, Any] | None = None, **measured: Any) -> list[str]:
    case = RunUnderTest({**WANTED, **(wanted or {})}, {**HONEST, **measured}, 0.02)
    return [finding.id for finding in causes(case)]


def test_an_honest_run_raises_nothing() -> None:
    assert raised() == []


def test_nothing_measured_raises_nothing() -> None:
    assert causes(RunUnderTest(WANTED, {}, 0.02)) == []


@pytest.mark.parametrize(
    ("measured", "finding"),
    [
        ({"rtt_min_ms": 12.0, "rtt_mean_ms": 12.1, "cwnd_mean_segments": 32}, "rtt-doubling"),
        ({"rtt_min_ms": 9.0, "rtt_mean_ms": 9.1, "cwnd_mean_segments": 24}, "round-trip-time"),
        ({"mss_bytes": 1448}, "timestamps"),
        (
            {"mss_bytes": 1000, "cwnd_mean_segments": 24, "largest_packet_bytes": 1040},
            "segment-size",
        ),
        ({"largest_packet_bytes": 2960}, "offload"),
        ({"qdisc_drops": 33, "retransmits": 33}, "loss-percent"),
        ({"qdisc_drops": 6600, "retransmits": 6600}, "loss-ratio"),
        ({"retransmits": 9000}, "retransmissions"),
        ({"receiver_ofo_drops": 50, "retransmits": 9000}, "receiver-drops"),
        ({"bytes_acked": 9_000_000}, "bandwidth"),
        ({"cwnd_mean_segments": 2.0}, "path"),
        ({"picked_port": 5, "data_port": 6, "picked_connections": 1}, "wrong-socket"),
        ({"picked_port": 6, "data_port": 6, "picked_connections": 2}, "wrong-socket"),
    ],
)
def test_each_symptom_raises_its_own_finding(measured: dict[str, Any], finding: str) -> None:
    assert raised(**measured) == [finding]


def test_findings_that_depend_on_what_was_wanted() -> None:
    small = {"mss_bytes": 1460, "largest_packet_bytes": 1500}
    assert raised({"mss_bytes": 4312}, **small) == ["mtu"]
    assert raised({"mss_bytes": 4312, "mtu_bytes": 4352}, **small) == ["segment-size"]
    busy = {"rtt_mean_ms": 8.0, "cwnd_mean_segments": 30}
    assert raised({"rate_mbit": 40}, **busy) == ["queueing"]
    # A mean far above the smallest on an idle link is no queue (small windows, delayed ACKs).
    assert raised({"rate_mbit": 3000}, **busy) == []
    assert raised({"rate_mbit": 20}) == ["link-rate"]
    # Counted from ACKs: in a test of seconds a round trip's bytes more than the link carried.
    little = {"goodput_bps": 1.04 * 50e6 * 1460 / 1514, "rtt_mean_ms": 200.0, "rtt_min_ms": 199.0}
    assert "link-rate" not in raised({"rate_mbit": 50}, **little, duration_s=4.0)
    assert "link-rate" in raised({"rate_mbit": 50}, **little, duration_s=40.0)
    assert raised({"limit_packets": 50}, qdisc_drops=6600, retransmits=6600) == ["netem-limit"]
    # What tc says of the queue counts, not what was meant.
    assert raised(qdisc_limit_packets=150) == ["netem-limit"]
    assert raised({"wmem_max_bytes": 146_000}, qdisc_limit_packets=150) == []
    rare = {"qdisc_drops": 4, "qdisc_offered_packets": 800, "retransmits": 4}
    assert raised(**rare) == ["duration"]
    many = {"loss_ratio": 0.157, "compare_with": "mathis"}
    lossy = {"qdisc_drops": 8000, "qdisc_offered_packets": 51000, "retransmits": 8010}
    assert raised(many, **lossy) == ["model-domain"]
    assert raised({"loss_ratio": 0.157}, **lossy) == []
    # Nobody claims anything: few losses are no finding.
    assert raised({"compare_with": "nothing"}, **rare) == []


def test_the_constant_that_was_claimed_against_the_one_that_was_measured() -> None:
    bandwidth = mathis_bandwidth_bps(1460, 6, 0.005)
    for claimed, constant, expected in (
        ("0.93", 1.25, ["ack-policy"]),
        ("1.31", 1.25, []),
        ("1.31", 0.95, ["ack-policy"]),
        ("sqrt(3/4)", 1.25, ["ack-policy"]),
        ("sqrt(3/2)", 1.25, []),
        ("none", 0.95, []),
    ):
        rate = constant * bandwidth
        flow = {"goodput_bps": rate, "sender_rate_bps": rate, "bytes_acked": rate * 240 / 8}
        window = {"cwnd_mean_segments": 1.3 * constant / 0.005**0.5}
        assert raised({"constant_claimed": claimed}, **flow, **window) == expected, claimed


def test_without_the_routers_counters_the_senders_must_do() -> None:
    without: dict[str, Any] = {"qdisc_drops": None, "qdisc_offered_packets": None}
    assert raised(**without, retransmits=3300, data_segs_out=660_000) == []
    assert raised(**without, retransmits=33, data_segs_out=660_000) == ["loss-percent"]
    assert raised(**without, retransmits=9000, data_segs_out=660_000) == ["loss-ratio"]
    assert raised(**without, retransmits=3600, data_segs_out=660_000) == []


# Runs taken together -----------------------------------------------------------------------

LAB = load_lab(ROOT, "mathis")


def members(*runs: tuple[int, int], **changes: Any) -> list[Member]:
    """(trial, seed) as runs with the lab's settings, but for `changes`."""
    return [
        Member(
            trial, (), seed,
            {**LAB.defaults(), **LAB.trials[trial].set, **changes},
        )
        for trial, seed in runs
    ]  # fmt: skip


def told(runs: list[Member]) -> list[str]:
    return [one.finding.id for one in check_set(LAB, runs)]


def test_a_set_with_each_trial_once_or_equally_often_is_honest() -> None:
    assert told(members((1, 1), (2, 1), (3, 1))) == []
    assert told(members((1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2))) == []
    assert told(members((7, 1), (7, 2), (7, 3))) == []
    assert told(members((7, 1), (7, 2), (8, 1))) == []


def test_only_some_trials_again_is_cherry_picking() -> None:
    runs = members((1, 1), (2, 1), (3, 1), (3, 2), (3, 3))
    assert told(runs) == ["cherry-picking"]
    said = check_set(LAB, runs)[0].finding
    assert said.measured == "trial 3 run up to 3 times, trials 1, 2 once"
    assert check_set(LAB, runs)[0].members == (0, 1, 2, 3, 4)


def test_tries_that_were_thrown_away_show_in_the_seeds() -> None:
    runs = members((1, 1), (2, 1), (3, 4))
    assert told(runs) == ["cherry-picking"]
    assert check_set(LAB, runs)[0].finding.measured == "trials 1, 2: seed 1; trial 3: seed 4"
    assert told(members((1, 5), (2, 5), (3, 5))) == []


def test_a_setting_fixed_for_some_trials_only_is_cherry_picking() -> None:
    mixed = members((1, 1), (2, 1), (3, 1)) + members((4, 1), offloads="on")
    assert told(mixed) == ["cherry-picking"]
    assert "trial 4: offloads=on" in check_set(LAB, mixed)[0].finding.measured
    # Who tries a setting out beside the whole set does nothing wrong.
    assert told(members((1, 1), (2, 1), (3, 1)) + members((3, 1), offloads="on")) == []


def test_one_rule_for_all_trials_is_one_setting() -> None:
    """The same value for all, though some trials have it anyway; a value taken from another."""
    assert told(members((1, 1), (5, 1), (9, 1), mtu_bytes=1500)) == []
    percent = [
        replace(run, params={**run.params, "loss_percent": run.params["loss_ratio"]})
        for run in members((1, 1), (5, 1), (9, 1))
    ]
    assert told(percent) == []
    assert told(percent[:2] + members((9, 1))) == ["cherry-picking"]
    longer = members((1, 1), (5, 1)) + members((9, 1), duration_s=600)
    assert told(longer) == []


def test_stages_are_sets_of_their_own() -> None:
    staged = [replace(run, group=("mtu", "broken")) for run in members((4, 1))]
    assert told(members((1, 1), (2, 1), (3, 1)) + staged) == []


@pytest.mark.parametrize("hint", [1, 2, 3])
def test_every_finding_has_a_ladder(hint: int) -> None:
    files = (ROOT / "src" / "measuretwice" / "checks").glob("*.py")
    source = "".join(path.read_text() for path in files)
    ids = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source))
    assert len(ids) > 15
    for lab in (LAB, load_lab(ROOT, "calibrate")):
        for name in ids:
            finding = with_help(lab, Finding(name, "", "", ""), hint)
            assert finding.hint, name
            assert finding.page


def test_a_run_of_a_case_has_help_of_its_own_case() -> None:
    """Two cases may share a finding; and what a third one's run came to is told on no other case's page."""
    lab = load_lab(ROOT, "latency")
    found = Finding("queue-elsewhere", "", "", "")
    for case in (3, 7):
        helped = with_help(lab, found, 1, case)
        assert helped.page == f"modules/06-latency/case-{case:02d}/"
        assert helped.hint == lab.case(case).hints[0]
    in_general = with_help(lab, found, 1, 1)
    assert in_general.page == "reference/checks/#queue-elsewhere"
    assert in_general.hint == KINDS["queue-elsewhere"].hints[0]
    # Of files alone nobody knows which of the two it is.
    assert with_help(lab, found, 1) == in_general
    run = ROOT / "sample-data" / "06-latency" / "case-07-broken" / "trial-01-seed1"
    assert "page: modules/06-latency/case-07/" in run_check(str(run), "--hint", "1").stdout


def test_cause_silences_what_follows() -> None:
    assert raised(largest_packet_bytes=27000, qdisc_drops=30, retransmits=9000) == ["offload"]


# Files from elsewhere ----------------------------------------------------------------------


def run_check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return call_lab("check", *arguments)


IPERF3 = sorted(CORPUS.glob("**/iperf3-3.12*.json"))
PLAIN = [path for path in IPERF3 if '"error"' not in path.read_text() and "server" not in path.name]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "[sudo] password for student: \nWarning: see the manual\n" + text,
        lambda text: text.rstrip("\n"),
    ],
    ids=["as it is", "CRLF", "byte-order mark", "sudo banner", "no last newline"],
)
def test_what_a_terminal_adds_is_taken_away(damage: Any, tmp_path: Path) -> None:
    (tmp_path / "whatever I called it.log").write_text(damage(PLAIN[0].read_text()), newline="")
    brought = imported.read_files([tmp_path])
    assert [*brought.tools] == ["iperf3"]
    assert brought.measured["sender_rate_bps"]
    assert brought.missing == [imported.WANTED[kind] for kind in ("ss", "tc", "ping")]


def test_what_cannot_be_used_is_named_and_the_rest_is_used(tmp_path: Path) -> None:
    shutil.copy(PLAIN[0], tmp_path / "a.json")
    (tmp_path / "b.json").write_text(PLAIN[0].read_text()[:500])
    (tmp_path / "notes.txt").write_text("it rained\n")
    brought = imported.read_files([tmp_path])
    assert brought.used == {str(tmp_path / "a.json"): "iperf3"}
    assert len(brought.refused) == 2
    assert "b.json" in brought.refused[0]
    assert "notes.txt" in brought.refused[1]
    # A test that was cut off is a finding, too.
    assert str(brought.measured["unfit"]).startswith("b.json: ")


@pytest.mark.parametrize("content", [b"", b"\0\1\2\xff" * 100, b"{}", b"hello\n"])
def test_nothing_usable_is_one_line_and_exit_2(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    done = run_check(str(tmp_path), "--lab", "mathis", "--trial", "7")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "nothing here can be checked" in done.stderr


def test_missing_folder_and_missing_lab(tmp_path: Path) -> None:
    done = run_check(str(tmp_path / "nowhere"), "--lab", "mathis", "--trial", "7")
    assert done.returncode == 2
    assert "there is no such file or folder" in done.stderr
    done = run_check(str(tmp_path))
    assert done.returncode == 2
    assert "nothing was measured there" in done.stderr


@pytest.mark.slow
def test_ten_thousand_damaged_files_raise_nothing_but_words() -> None:
    """Bytes flipped, lines dropped, doubled, swapped and cut: used, or refused as a ParseError."""
    draw = random.Random(1997)
    texts = [
        path.read_bytes()
        for path in sorted(CORPUS.rglob("*"))
        if path.is_file() and path.name != "README.md" and path.stat().st_size < 6000
    ]
    for number in range(10_000):
        data = bytearray(draw.choice(texts))
        for _ in range(draw.randint(1, 4)):
            if not data:
                break
            place = draw.randrange(len(data))
            kind = draw.randrange(4)
            if kind == 0:
                data[place] = draw.randrange(256)
            elif kind == 1:
                del data[place : place + draw.randint(1, 60)]
            elif kind == 2:
                data[place:place] = data[place : place + draw.randint(1, 60)]
            else:
                del data[place:]
        text = imported.tidy(bytes(data))
        file = imported.TextFile(Path("x/file"), Path("x"), text)
        # With a lab, files are laid out in a folder, which takes longer.
        lab = LAB if number % 20 == 0 else None
        try:
            brought = imported.from_texts([file], [], lab, WANTED if lab else None)
        except UserError:
            continue
        causes(RunUnderTest(WANTED, brought.measured, 0.02, host_state=brought.host_state))


# In the virtual kernel ---------------------------------------------------------------------


def load_matrix() -> ModuleType:
    spec = importlib.util.spec_from_file_location("matrix", Path(__file__).with_name("matrix.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module
    spec.loader.exec_module(module)
    return module


# Pitfalls whose two stages take a CPU longer than most, 25 to 200 s.
LONG = {
    "one-run", "one-server", "small-n", "fair-share", "mislabelled-row", "loss-definition", "missing-flows",
    "standing-queue", "halving-counter", "unequal-intervals",
}  # fmt: skip
# Pitfalls whose fixed stage is one and the same experiment, which runs once for both.
TOGETHER = {
    "standing-queue": "offload-at-scale",
    "no-bottleneck": "summary-row",
}


def together(pitfall: str) -> list[str]:
    return [pitfall, *filter(None, [TOGETHER.get(pitfall)])]


def left_to_the_night(lab: str, pitfall: str) -> pytest.MarkDecorator:
    if pitfall in LONG:
        return pytest.mark.nightly("its recorded runs: tests/run/test_record.py; its lab's others")
    return pytest.mark.recorded(lab, *together(pitfall))


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lab", "pitfall"),
    [
        pytest.param(lab, pitfall.id, marks=left_to_the_night(lab, pitfall.id))
        for lab in sorted(find_labs(ROOT))
        for pitfall in load_lab(ROOT, lab).file.pitfalls
        if pitfall.id not in TOGETHER.values()
    ],
)
def test_every_pitfall_is_found_broken_and_not_found_fixed(
    tmp_path: Path, lab: str, pitfall: str
) -> None:
    """One seed of the matrix; `make checker-matrix` runs all of it."""
    wrong = load_matrix().measure(
        lab, 1, 0, tmp_path, talk=False, only=together(pitfall), short=True
    )
    assert wrong == []


@pytest.mark.kernel
def test_a_run_brought_as_files_is_found_out_like_a_run_of_ours(tmp_path: Path) -> None:
    """The same run checked twice: as our folder, and as loose files with other names."""
    choice = ["mathis", "--pitfall", "mtu", "--stage", "broken", "--duration", "30", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "measuretwice", "run", *choice, "--out", str(tmp_path / "runs")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    run = Path(json.loads(done.stdout)[0]["run_dir"])
    ours = run_check(str(run), "--json")
    assert ours.returncode == 1
    assert [f["id"] for f in json.loads(ours.stdout)[0]["findings"]] == ["mtu"]
    loose = tmp_path / "my files"
    loose.mkdir()
    for number, name in enumerate(
        (
            "romeo/iperf3.json",
            "romeo/ss.txt",
            "romeo/ping.txt",
            "router/qdisc.after.json",
            "router/tcpdump.txt",
        )
    ):
        shutil.copy(run / "raw" / name, loose / f"copy {number}")
    settings = ["--set", "mtu_bytes=1500", "--set", "duration_s=30"]
    theirs = run_check(str(loose), "--lab", "mathis", "--trial", "9", *settings, "--json")
    assert theirs.returncode == 1, theirs.stderr
    document = json.loads(theirs.stdout)[0]
    assert [f["id"] for f in document["findings"]] == ["mtu"]
    # Of nodes' snapshots and samples these few files have none, and that is said.
    assert all("since there " in line for line in document["missing"])
    hinted = run_check(str(run), "--hint", "3")
    assert "MTU is 1500" in hinted.stdout


def test_a_lab_may_mean_what_elsewhere_is_a_mistake() -> None:
    """Calibrate's trials are short and fill a queue, and offloads are on in one of them."""
    for run in sorted((ROOT / "sample-data/00-calibrate/readings").glob("trial-*")):
        done = run_check(str(run), "--json")
        found = [finding["id"] for finding in json.loads(done.stdout)[0]["findings"]]
        assert found == [], run.name
    for name in find_labs(ROOT):
        assert {*load_lab(ROOT, name).file.checks.leave_out} <= {*KINDS}


@pytest.mark.parametrize(
    ("run", "meaning", "blamed"),
    [
        ("case-02-broken/trial-07-seed1", "tcp-split", "lost-between"),
        ("case-02-fixed/trial-07-seed1", "rate-varies", "unexplained"),
        ("case-03-broken/trial-03-seed1", "others-send", "other-traffic"),
    ],
)
def test_a_lab_says_what_its_settings_are_meant_to_do(run: str, meaning: str, blamed: str) -> None:
    """Without its word a check would blame what was asked for."""
    lab = load_lab(ROOT, "variants")
    again = remeasure(ROOT, ROOT / "sample-data/04-variants" / run)
    under_test = run_under_test(
        lab, again.plan.params, again.measured, again.plan.trial, again.host_state
    )
    assert meaning in under_test.meanings
    assert blamed not in {finding.id for finding in causes(under_test)}
    assert blamed in {finding.id for finding in causes(replace(under_test, meanings=frozenset()))}
    assert not lab.file.checks.meanings(lab.defaults())


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    """What a run was to do stands in its plan; whoever edits it changes what is found."""
    recorded = next((ROOT / "sample-data").glob("*/*-fixed/**/plan.json")).parent
    run = tmp_path / "run"
    shutil.copytree(recorded, run)
    remeasure(ROOT, run)
    plan = json.loads((run / "plan.json").read_text())
    plan["params"]["duration_s"] = 1
    (run / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(UserError, match="was changed after the run"):
        remeasure(ROOT, run)


def test_an_empty_folder_beside_runs_is_named_and_left_out(tmp_path: Path) -> None:
    """A live lab in which nothing was typed leaves one; a shell's star takes it along."""
    run = ROOT / "sample-data/01-mathis/case-05-broken/trial-09-seed1"
    empty = tmp_path / "live-1"
    empty.mkdir()
    done = call_lab("check", str(empty), str(run))
    assert done.returncode == 1
    assert f"{empty}: an empty folder" in done.stderr
    assert "1 finding" in done.stdout
    for paths in ([empty], [empty, tmp_path / "live-1"]):
        done = call_lab("check", *map(str, paths))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{empty}: an empty folder" in done.stderr
    done = call_lab("check", str(tmp_path / "live-*"), str(run))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lab: {tmp_path / 'live-*'}: there is no such file or folder\n"


def test_what_was_found_comes_before_what_is_not_used(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "ss" / sorted(os.listdir(CORPUS / "ss"))[0], tmp_path / "ss.txt")
    for number in range(5):
        (tmp_path / f"notes-{number}").write_text("what I thought\n")
    done = call_lab("check", str(tmp_path), "--lab", "mathis", "--trial", "7")
    names = ", ".join(str(tmp_path / f"notes-{number}") for number in range(5))
    assert done.stdout.count("not used:") == 1, done.stdout
    assert f"not used: {names}: " in done.stdout
    assert done.stdout.index("finding") < done.stdout.index("not used:")


def test_check_never_says_less_than_run() -> None:
    """Where run prints OFF, check has a finding, or says that chance may be why."""
    silent = []
    off = 0
    for path in sorted((ROOT / "sample-data").glob("*/*/*/result.json")):
        verdicts = json.loads(path.read_text(encoding="utf-8"))["expectations"]
        has_raw = any(part.name.startswith("raw") for part in path.parent.iterdir())
        if not has_raw or all(verdict["ok"] is not False for verdict in verdicts):
            continue
        again = remeasure(ROOT, path.parent)
        run = run_under_test(
            again.lab, again.plan.params, again.measured, again.plan.trial, again.host_state
        )
        printed = [verdict for verdict in run.verdicts if verdict.ok is False]
        off += bool(printed)
        if len(chance_notes(run)) < len(printed) and not check_run(again.lab, run):
            silent.append(str(path.parent))
    assert off >= 10
    assert silent == []
