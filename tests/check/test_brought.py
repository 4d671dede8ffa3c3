"""Recorded runs brought as files: nobody honest is blamed, and what is off is said where the files have it."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brought_runs import BY_NAME, BY_SNAPSHOT, ONLY_BROUGHT, ROOT, WAYS, bring_run, recorded
from command_line import call_lab, start_lab

from measuretwice.checks import check_run, run_under_test
from measuretwice.measure import imported
from measuretwice.parse.formats import NO_TOOL
from measuretwice.runs.folder import ARCHIVE, raw_folder
from measuretwice.runs.remeasure import remeasure

OTHERS = pytest.mark.nightly("every broken set and a run of each lab, brought in the same ways")
# A Python that is no user's own, of the version that the libraries are for.
PYTHON = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")


def chosen() -> list[Any]:
    """The smallest run of each set; by day those of the broken sets, and of each lab an honest one."""
    found = []
    for folder in sorted(path.name for path in (ROOT / "sample-data").iterdir() if path.is_dir()):
        runs = sorted(recorded(folder), key=lambda run: (run / ARCHIVE).stat().st_size)
        smallest = {run.parent: run for run in reversed(runs)}
        honest = [run for run in runs if "broken" not in run.parent.name]
        found += [
            pytest.param(
                run,
                id=str(run.relative_to(ROOT / "sample-data")),
                marks=() if "broken" in run.parent.name or run in honest[:1] else OTHERS,
            )
            for run in sorted(smallest.values())
        ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("run", chosen())
def test_a_run_brought_as_files_is_judged_as_it_is(run: Path, tmp_path: Path) -> None:
    """Nothing is said of an honest one; of another the same cause, where its files were brought."""
    again = remeasure(ROOT, run)
    expected = {
        finding.id
        for finding in check_run(
            again.lab,
            run_under_test(
                again.lab, again.plan.params, again.measured, again.plan.trial, again.host_state
            ),
        )
    }
    for way in WAYS:
        brought, found = bring_run(run, way, tmp_path)
        ids = {finding.id for finding in found}
        if not expected:
            assert ids == set(), (way, [(finding.id, finding.measured) for finding in found])
        elif way != "nameless":
            assert ids - ONLY_BROUGHT == expected, way
        else:
            assert expected - ids <= BY_NAME | BY_SNAPSHOT
            # Whoever has no nstat sees retransmissions that no qdisc accounts for.
            assert ids - expected <= ONLY_BROUGHT | {"retransmissions"}
        assert not any("Error" in line for line in brought.missing), (way, brought.missing)


LATENCY = ROOT / "sample-data/06-latency"


def test_transfers_that_are_cut_off_hide_nothing_of_the_stream(tmp_path: Path) -> None:
    with raw_folder(LATENCY / "case-05-broken/trial-01-seed1") as raw:
        shutil.copytree(raw, tmp_path / "it")
    pages = tmp_path / "it/phone/pages.txt"
    pages.write_text(pages.read_text().rstrip()[:-1] + "\n1700000009.1 ")
    document = check(tmp_path / "it", lab="latency", trial="1", more=("--set", "judged_by=ping"))
    assert "probe-apart" in {finding["id"] for finding in document["findings"]}
    (line,) = [line for line in document["missing"] if "pages.txt" in line]
    assert line.startswith("short transfers, since phone/pages.txt, line ")


@pytest.mark.parametrize("number", [3, 7])
def test_files_alone_dont_tell_which_of_two_cases_they_are(number: int, tmp_path: Path) -> None:
    """Where two cases of a lab have the same finding, neither's page is named, and no hint of its ladder given."""
    with raw_folder(LATENCY / f"case-0{number}-broken/trial-01-seed1") as raw:
        shutil.copytree(raw, tmp_path / "it")
    document = check(tmp_path / "it", lab="latency", trial="1", more=("--hint", "3"))
    (finding,) = [each for each in document["findings"] if each["id"] == "queue-elsewhere"]
    assert finding["page"] == "reference/checks/#queue-elsewhere"
    assert "large bursts" in finding["hint"]


def test_a_files_name_makes_no_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a\nlab: all is well").write_text("nothing that a tool prints\n")
    shutil.copy(CORPUS / "ping/ping-20221126-all-lost.txt", tmp_path / "ping.txt")
    done = call_lab("check", str(tmp_path), "--lab", "mathis", "--trial", "7")
    assert "all is well" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("lab: all")]


# Single files, as they come ------------------------------------------------------------------

CORPUS = ROOT / "tests/data/parse"


def check(*paths: Path, lab: str = "mathis", trial: str = "7", more: tuple[str, ...] = ()) -> Any:
    """What ./lab check says of files, as JSON."""
    done = call_lab("check", *map(str, paths), "--lab", lab, "--trial", trial, "--json", *more)
    assert done.returncode in (0, 1, 3), done.stderr
    (document,) = json.loads(done.stdout)
    assert done.returncode == (1 if document["findings"] else 3 if document["unread"] else 0)
    return document


def said(document: Any, finding: str) -> str:
    """What was measured, of one finding."""
    (one,) = [each for each in document["findings"] if each["id"] == finding]
    return str(one["measured"])


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("iperf3-3.22-udp.json", "a test of UDP"),
        ("iperf3-3.9-udp.txt", "a test of UDP"),
        ("iperf3-3.18-bidir.json", "both directions"),
        ("iperf3-3.12-interrupted.json", "interrupt - the client has terminated"),
        ("iperf3-3.12-interrupted.txt", "interrupt - the client has terminated"),
        ("iperf3-3.12-refused.txt", "unable to connect"),
        ("../iperf2/iperf2-2.1.8-udp.txt", "a test of UDP"),
        ("../iperf2/iperf2-2.1.8-udp.csv", "a test of UDP"),
        ("../iperf2/iperf2-2.1.8-killed.txt", "cut off"),
        ("../iperf2/iperf2-2.1.8-refused.txt", "Connection refused"),
        ("../ping/ping-20221126-all-lost.txt", "none of 3 pings came back"),
        ("../ping/derived-ping-macos-unreachable.txt", "none of 2 pings came back"),
    ],
)
def test_what_is_no_such_test_is_a_finding(file: str, problem: str) -> None:
    document = check(CORPUS / "iperf3" / file)
    assert problem in said(document, "unfit")
    assert "goodput_bps" not in document["measured"]


@pytest.mark.parametrize("ending", ["json", "txt"])
def test_a_test_in_which_the_server_sent_is_one_like_any_other(ending: str) -> None:
    document = check(CORPUS / "iperf3" / f"iperf3-3.18-reverse.{ending}")
    assert document["measured"]["goodput_bps"] > 1e9
    assert [*document["used"].values()] == ["romeo's iperf3 (its server sent: -R)"]


def client(text: str, **changes: Any) -> str:
    """One flow's document with other values in its totals."""
    document = json.loads(text)
    for name, value in changes.items():
        for total in ("sum_sent", "sum_received"):
            if total.endswith(name.split("__")[0]):
                document["end"][total][name.split("__")[1]] = value
                document["end"]["streams"][0]["sender" if total == "sum_sent" else "receiver"][
                    name.split("__")[1]
                ] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"received__bytes": 0, "received__bits_per_second": 0.0},
            "no line reports anything received",
        ),
        ({"sent__bytes": 0, "received__bytes": 0}, "0 bit/s: nothing was sent"),
        ({"received__bits_per_second": "-nan"}, "no number for the rate (nan)"),
    ],
)
def test_totals_of_nothing_are_a_finding(
    changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    text = (CORPUS / "iperf3/iperf3-3.12-one-flow.json").read_text()
    (tmp_path / "a.json").write_text(client(text, **changes))
    assert problem in said(check(tmp_path), "unfit")


def test_another_congestion_control_is_a_finding_by_ss_and_by_iperf3_alone(tmp_path: Path) -> None:
    asked = ("--set", "congestion_control=reno")
    text = (CORPUS / "iperf3/iperf3-3.12-one-flow.json").read_text()
    (tmp_path / "a.json").write_text(text.replace('"reno"', '"cubic"'))
    assert said(check(tmp_path, more=asked), "wrong-algorithm") == "flows of cubic (iperf3)"
    # Where nobody asked for one it is a remark.
    document = check(tmp_path)
    assert "wrong-algorithm" not in [each["id"] for each in document["findings"]]
    assert "the lab's own congestion_control is reno" in " ".join(document["notes"])
    (tmp_path / "a.json").write_text(text)
    assert "wrong-algorithm" not in [each["id"] for each in check(tmp_path, more=asked)["findings"]]
    shutil.copy(CORPUS / "ss/ss-6.1-bbr.txt", tmp_path / "ss.txt")
    (tmp_path / "a.json").unlink()
    document = check(tmp_path, more=asked)
    assert document["used"] == {str(tmp_path / "ss.txt"): "romeo's ss"}
    assert "bbr" in said(document, "wrong-algorithm")


# A run's files, one thing off ------------------------------------------------------------------

HONEST = ROOT / "sample-data/01-mathis/case-05-fixed/trial-09-seed1"
TWO_SENDERS = ROOT / "sample-data/02-buffers/each-once/trial-08-seed1"


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    """What somebody has of it who typed the commands: five files."""
    (tmp_path / "mine").mkdir()
    with raw_folder(HONEST) as raw:
        for name in (
            "romeo/iperf3.json", "romeo/ss.txt", "romeo/ping.txt", "router/qdisc.before.json",
            "router/qdisc.after.json",
        ):  # fmt: skip
            shutil.copy(raw / name, tmp_path / "mine")
    return tmp_path / "mine"


def test_which_file_was_taken_for_what_is_said_and_what_is_not_looked_at(by_hand: Path) -> None:
    (by_hand / "notes.txt").write_text("it rained")
    document = check(by_hand, trial="9")
    assert {Path(path).name: words for path, words in document["used"].items()} == {
        "iperf3.json": "romeo's iperf3",
        "ss.txt": "romeo's ss",
        "ping.txt": "romeo's ping",
        "qdisc.before.json": "router's tc before",
        "qdisc.after.json": "router's tc after",
    }
    assert document["findings"] == []
    assert any("packets' sizes, since there is no tcpdump" in line for line in document["missing"])
    assert any("how the nodes were set" in line for line in document["missing"])
    assert document["refused"] == [f"{by_hand / 'notes.txt'}: {NO_TOOL}"]
    shown = call_lab("check", str(by_hand), "--lab", "mathis", "--trial", "9").stdout
    assert "  romeo: iperf3 (iperf3.json), ping (ping.txt), ss (ss.txt)\n" in in_order(shown)
    assert "  not looked at: packets' sizes" in shown
    assert f"  not used: {by_hand / 'notes.txt'}: in no form that is read here" in shown


def test_what_was_brought_in_vain_is_said_first_and_is_no_clean_bill(by_hand: Path) -> None:
    """Exit 3 where a file that a tool may have printed can't be read; notes and programs beside it change nothing."""
    words = ("check", str(by_hand), "--lab", "mathis", "--trial", "9")
    for name in ("README.md", "plot.py", "notes.txt"):
        (by_hand / name).write_text("it rained 3 times")
    clean = call_lab(*words)
    assert (clean.returncode, clean.stdout.splitlines()[0]) == (0, f"{by_hand}: no finding")
    assert "looked at and right: " in clean.stdout
    assert "each socket's algorithm" in " ".join(clean.stdout.split())
    (by_hand / "ss.txt").write_text("ss: 3 sockets, but who knows of whom\n")
    half = call_lab(*words)
    first, second, *_ = half.stdout.splitlines()
    assert half.returncode == 3
    assert first == f"{by_hand}: no finding among what could be read"
    assert second.startswith(f"  not used: {by_hand / 'ss.txt'}: ")
    assert "each socket's algorithm" not in " ".join(half.stdout.split())
    document = check(by_hand, trial="9")
    assert [line.split(": ")[0] for line in document["unread"]] == [str(by_hand / "ss.txt")]


def in_order(shown: str) -> str:
    """The lines of files, with each node's files by name."""
    return re.sub(
        r"^(  \w+: )(.*)$",
        lambda line: line[1] + ", ".join(sorted(line[2].split(", "))),
        shown,
        flags=re.M,
    )


def test_every_sender_counts(tmp_path: Path) -> None:
    """Two senders with a log of ss each; without one of the logs both still count."""
    for node in ("s1", "s2"):
        with raw_folder(TWO_SENDERS) as raw:
            for name in ("iperf3.json", "ss.txt"):
                shutil.copy(raw / node / name, tmp_path / f"{node} {name}")
    document = check(tmp_path, lab="buffers", trial="8")
    assert document["measured"]["flows"] == 2
    assert document["measured"]["s1_goodput_bps"] > 0
    rates = document["measured"]["s1_goodput_bps"] + document["measured"]["s2_goodput_bps"]
    assert document["measured"]["goodput_bps"] == pytest.approx(rates)
    (tmp_path / "s2 ss.txt").unlink()
    document = check(tmp_path, lab="buffers", trial="8")
    assert document["measured"]["flows"] == 2
    assert document["measured"]["goodput_bps"] == pytest.approx(rates, rel=0.05)
    assert "each flow, since there is no ss of the connection from s2" in document["missing"]
    assert document["findings"] == []


def test_a_log_of_ss_without_iperf3s_connection_is_a_finding(by_hand: Path) -> None:
    text = (by_hand / "ss.txt").read_text()
    port = json.loads((by_hand / "iperf3.json").read_text())["start"]["connected"][0]["local_port"]
    (by_hand / "ss.txt").write_text(text.replace(f":{port} ", ":40404 "))
    document = check(by_hand, trial="9")
    assert said(document, "two-runs").startswith("ss.txt has nothing of iperf3's connection")
    assert "rtt_mean_ms" not in document["measured"]


def test_two_runs_in_one_folder_are_said_and_not_mixed(by_hand: Path) -> None:
    text = (by_hand / "iperf3.json").read_text()
    document = json.loads(text)
    document["start"]["timestamp"]["timesecs"] += 3600
    document["start"]["connected"][0]["local_port"] += 1
    for total in ("sum_sent", "sum_received"):
        document["end"][total]["bits_per_second"] *= 3
    (by_hand / "iperf3-again.json").write_text(json.dumps(document))
    alone = check(by_hand / "iperf3.json", by_hand / "ss.txt", trial="9")["measured"]
    both = check(by_hand, trial="9")
    assert "files of 2 runs, one after another" in said(both, "two-runs")
    # ss looked at the first.
    assert both["measured"]["goodput_bps"] == alone["goodput_bps"]
    assert any("iperf3-again.json: of another run than" in line for line in both["refused"])


@pytest.mark.parametrize("host", ["../../../../escaped", "/tmp/escaped", "a/b", "x\\0y"])
def test_an_address_from_outside_is_no_place_for_files(host: str, tmp_path: Path) -> None:
    text = (CORPUS / "iperf3/iperf3-3.12-one-flow.json").read_text()
    (tmp_path / "a.json").write_text(text.replace('"10.10.1.100"', json.dumps(host)))
    before = {*tmp_path.rglob("*")}
    document = check(tmp_path, lab="buffers", trial="8")
    assert document["measured"]["flows"] == 1
    assert {*tmp_path.rglob("*")} == before
    assert not list(Path(tempfile.gettempdir()).glob("*escaped*"))


def test_files_of_machines_with_other_addresses(tmp_path: Path) -> None:
    """Whose is whose isn't known there; what is expected of a node by its name isn't asked then."""
    with raw_folder(TWO_SENDERS) as raw:
        for number, node in enumerate(("s1", "s2")):
            for name in ("iperf3.json", "ss.txt", "ping.txt"):
                text = (raw / node / name).read_text().replace("10.10.", "192.168.")
                (tmp_path / f"{number}-{name}").write_text(text)
        shutil.copy(raw / "g1/queue.txt", tmp_path)
    document = check(tmp_path, lab="buffers", trial="8")
    assert document["findings"] == []
    assert document["measured"]["flows"] == 2
    assert document["measured"]["utilisation"] > 0.9
    assert "s1_goodput_bps" not in document["measured"]
    assert document["measured"]["path_rtt_ms"] == pytest.approx(50, rel=0.02)


def test_the_same_test_twice_counts_once(by_hand: Path) -> None:
    shutil.copy(by_hand / "iperf3.json", by_hand / "backup.json")
    document = check(by_hand, trial="9")
    assert document["measured"]["flows"] == 1
    assert any("they count once" in line for line in document["refused"])
    assert document["findings"] == []


def qdiscs(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text()))


def test_drops_of_other_qdiscs_are_seen(by_hand: Path) -> None:
    after = qdiscs(by_hand / "qdisc.after.json")
    one = next(one for one in after if one["dev"] == "eth0" and one.get("root"))
    one["drops"] += 500
    (by_hand / "qdisc.after.json").write_text(json.dumps(after))
    assert "500 packets" in said(check(by_hand, trial="9"), "other-drops")


def test_loss_on_the_wrong_interface_is_not_taken_for_p(by_hand: Path) -> None:
    """The loss and its drops stand on the side of the ACKs."""
    for name in ("qdisc.before.json", "qdisc.after.json"):
        found = qdiscs(by_hand / name)
        ours = next(one for one in found if one["kind"] == "netem" and one["dev"] == "eth1")
        other = next(one for one in found if one["kind"] == "netem" and one["dev"] == "eth0")
        other["options"]["loss-random"] = ours["options"].pop("loss-random")
        for one in found:
            if one["dev"] == "eth1":
                other["drops"] = max(other["drops"], one["drops"])
                one["drops"] = 0
        (by_hand / name).write_text(json.dumps(found))
    document = check(by_hand, trial="9")
    assert document["measured"]["qdisc_drops"] == 0
    assert {"other-drops"} <= {each["id"] for each in document["findings"]}


def test_a_bottleneck_that_stands_elsewhere_is_a_finding(by_hand: Path) -> None:
    for name in ("qdisc.before.json", "qdisc.after.json"):
        found = [
            one
            for one in qdiscs(by_hand / name)
            if not (one["kind"] == "netem" and one["dev"] == "eth1")
        ]
        (by_hand / name).write_text(json.dumps(found))
    assert "a netem on eth0; most bytes left by eth1" in said(
        check(by_hand, trial="9"), "configuration"
    )


def test_before_and_after_may_be_swapped(by_hand: Path) -> None:
    """Counters only grow: that tells which was first."""
    honest = check(by_hand, trial="9")
    first, last = by_hand / "qdisc.before.json", by_hand / "qdisc.after.json"
    first.rename(by_hand / "x")
    last.rename(first)
    (by_hand / "x").rename(last)
    swapped = check(by_hand, trial="9")
    assert swapped["measured"] == honest["measured"]
    assert "by its counters, whatever" in str(swapped["used"])
    assert swapped["findings"] == []


def test_before_and_after_swapped_in_a_run_of_ours_is_one_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(HONEST, run)
    with raw_folder(HONEST) as raw:
        shutil.copytree(raw, run / "raw")
    first, last = (run / f"raw/router/qdisc.{when}.json" for when in ("before", "after"))
    before, after = first.read_text(), last.read_text()
    first.write_text(after)
    last.write_text(before)
    done = call_lab("check", str(run))
    assert done.returncode == 2
    assert (
        "eth1: its qdisc has counted less than before the run: the two files are swapped"
        in done.stderr
    )


@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_that_nobody_counts_to_are_one_line(by_hand: Path, digits: int) -> None:
    huge = "1" + "0" * digits
    after = (by_hand / "qdisc.after.json").read_text()
    (by_hand / "qdisc.after.json").write_text(re.sub(r'"packets":\d+', f'"packets":{huge}', after))
    line = f"1.0 a > b, ethertype IPv4 (0x0800), length {huge}: 10.10.1.100.5 > 10.10.2.100.6: Flags [.]"
    (by_hand / "tcpdump.txt").write_text(line + "\n")
    (by_hand / "ping.txt").write_text(
        f"PING a (10.10.2.100) 56(84) bytes of data.\n\n--- a ping statistics ---\n"
        f"{huge} packets transmitted, {huge} received, 0% packet loss, time 1ms\n"
    )
    done = call_lab("check", str(by_hand), "--lab", "mathis", "--trial", "9")
    assert done.returncode == 3
    assert done.stderr == ""
    assert "Error" not in done.stdout


# Forms of text -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [
        lambda data: gzip.compress(data),
        lambda data: data.decode().encode("utf-16"),
        lambda data: data.decode().encode("utf-16-le"),
        lambda data: data.decode().encode("utf-16-be"),
        lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    ],
    ids=["gzip", "utf-16", "utf-16-le", "utf-16-be", "utf-8 with a mark"],
)
def test_packed_and_in_other_encodings(form: Any, by_hand: Path) -> None:
    honest = check(by_hand, trial="9")
    for path in by_hand.iterdir():
        path.write_bytes(form(path.read_bytes()))
    again = check(by_hand, trial="9")
    assert again["measured"] == honest["measured"]
    assert again["used"] == honest["used"]


def test_what_is_packed_otherwise_or_damaged_is_said(by_hand: Path) -> None:
    with zipfile.ZipFile(by_hand / "all.zip", "w") as packed:
        packed.writestr("a", "b")
    (by_hand / "cut.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    (by_hand / "bomb.gz").write_bytes(gzip.compress(b"0" * (imported.MAX_FILE_BYTES + 1)))
    refused = "\n".join(check(by_hand, trial="9")["refused"])
    assert "all.zip: packed (zip): unpack it first" in refused
    assert "cut.gz: packed by gzip, and damaged" in refused
    assert "bomb.gz: larger than 64 MiB" in refused


def test_plain_ss_and_servers_and_other_pings_are_read(tmp_path: Path) -> None:
    """Files of a real test over loopback: iperf3's stream, ss without options for time, busybox's ping."""
    for name in (
        "iperf3/iperf3-3.22-json-stream.json", "ss/ss-6.1-ti-plain.txt", "ping/busybox-1.35-clean.txt",
    ):  # fmt: skip
        shutil.copy(CORPUS / name, tmp_path)
    document = check(tmp_path)
    assert [*document["used"].values()] == ["romeo's iperf3"]
    assert "and this is to 127.0.0.1" in "\n".join(document["refused"])
    ping = tmp_path / "busybox-1.35-clean.txt"
    ping.write_text(ping.read_text().replace("127.0.0.1", "10.10.2.100"))
    document = check(tmp_path)
    assert sorted(document["used"].values()) == ["romeo's iperf3", "romeo's ping"]
    assert "has nothing of iperf3's connection (port 47284)" in said(document, "two-runs")
    (tmp_path / "iperf3-3.22-json-stream.json").unlink()
    document = check(tmp_path)
    assert document["measured"]["mss_bytes"] == 65483
    assert any(line.startswith("goodput, since there is no iperf3") for line in document["missing"])


# No plain files ----------------------------------------------------------------------------


def test_pipes_devices_and_links_are_one_line_at_once(by_hand: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, what in ((pipe, "a pipe"), (Path("/dev/zero"), "a device")):
        done = start_lab("check", str(path), "--lab", "mathis", "--trial", "9")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"lab: {path}: {what}, neither a file nor a folder; save what it gives into a file first\n"
        )
    os.mkfifo(by_hand / "pipe")
    (by_hand / "zero").symlink_to("/dev/zero")
    (by_hand / "loop").symlink_to(by_hand)
    refused = check(by_hand, trial="9")["refused"]
    assert f"{by_hand / 'zero'}: a link; give the file itself" in refused
    assert f"{by_hand / 'loop'}: a link; give the folder itself" in refused
    assert any(line.startswith(f"{by_hand / 'pipe'}: a pipe") for line in refused)
    only = tmp_path / "only"
    only.mkdir()
    os.mkfifo(only / "pipe")
    done = start_lab("check", str(only), "--lab", "mathis", "--trial", "9")
    assert done.returncode == 2
    assert f"nothing here can be checked: {only / 'pipe'}: a pipe" in done.stderr


@pytest.mark.user
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_said(by_hand: Path) -> None:
    locked = by_hand / "locked"
    locked.mkdir(mode=0)
    (by_hand / "ping.txt").chmod(0)
    refused = "\n".join(check(by_hand, trial="9")["refused"])
    assert f"{locked}: can't be read (Permission denied)" in refused
    assert f"{by_hand / 'ping.txt'}: can't be read (Permission denied)" in refused
    done = call_lab("check", str(locked), "--lab", "mathis", "--trial", "9")
    assert (done.returncode, done.stderr) == (
        2,
        f"lab: {locked}: can't be read (Permission denied)\n",
    )


def as_nobody(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """`./lab` of root's, as a user who owns nothing; of another user as that one. `home` holds what it writes."""
    become = (
        ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
    )
    modules = os.pathsep.join((str(ROOT / "src"), *filter(None, sys.path)))
    return subprocess.run(
        (*become, "env", f"HOME={home}", f"PYTHONPATH={modules}", "PYTHONDONTWRITEBYTECODE=1", PYTHON, "-m", "measuretwice", *words),
        cwd=ROOT, text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def shut(tmp_path: Path) -> Iterator[Path]:
    """Copies of a run, each with something that its owner may not read: named by that; and `parent`, with one that he may."""
    if not PYTHON:
        pytest.skip("no Python here that any user may start")
    run = ROOT / "sample-data/01-mathis/step-7-offloads/trial-07-seed1"
    place = Path(tempfile.mkdtemp(prefix="measuretwice-shut-"))
    for name in ("raw", "plan.json", "raw/romeo", "raw/romeo/iperf3.json", ".", "parent/other"):
        folder = place / name.replace("/", "-") if name != "." else place / "all"
        if name == "parent/other":
            folder, name = place / "parent" / "run", "../other"
            (folder / name).mkdir(parents=True)
        shutil.copytree(run, folder, dirs_exist_ok=True)
        (folder / ARCHIVE).unlink()
        with raw_folder(run) as raw:
            shutil.copytree(raw, folder / "raw")
        (folder / name).chmod(0)
    if os.geteuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, 65534, 65534)
    yield place
    for path in sorted(place.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(place)


@pytest.mark.slow
def test_what_a_user_may_not_read_is_one_line_at_once(shut: Path) -> None:
    """Root reads all: root becomes somebody else for this."""
    names = {
        "raw": "raw", "plan.json": "plan.json", "raw-romeo": "raw/romeo", "raw-romeo-iperf3.json": "raw/romeo/iperf3.json",
    }  # fmt: skip
    for folder, file in names.items():
        done = as_nobody("check", str(shut / folder), home=shut)
        assert (done.returncode, done.stdout) == (2, ""), folder
        [line] = done.stderr.splitlines()
        assert line.startswith(f"lab: {shut / folder / file}"), folder
        assert line.endswith("can't be read (Permission denied); it belongs to another user")
    done = as_nobody("check", str(shut / "all"), home=shut)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    done = as_nobody("check", str(shut / "parent"), home=shut)
    assert done.stderr == (
        f"lab: {shut}/parent/other: can't be read (Permission denied); it is left out\n"
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (2, f"{shut}/parent/run: no finding")
