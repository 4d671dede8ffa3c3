"""./lab show on recorded runs: the numbers of the raw files, and one clear line where one is damaged."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab, lab_on_terminal

from measuretwice.parse import SsSocket
from measuretwice.parse.host import ETHTOOL, LINK, NSTAT, SOFTNET, SYSCTL
from measuretwice.parse.iperf3 import IPERF3
from measuretwice.parse.ping import PING
from measuretwice.parse.ss_fields import FIELDS, SS
from measuretwice.parse.tc_fields import QDISC, QDISC_OPTIONS
from measuretwice.view import words
from measuretwice.view.source import opened

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
OUTPUTS = ROOT / "tests/data/parse"


def blocks(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    """What show says as JSON: each block's fields by name, by the block's title."""
    done = call_lab("show", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return {
        block["title"]: {**block, "fields": {field["name"]: field for field in block["fields"]}}
        for block in json.loads(done.stdout)["blocks"]
    }


def refused(*arguments: str | Path) -> str:
    """The one line that something unusable gets."""
    done = call_lab("show", *arguments)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1
    assert done.stderr[:-1].isprintable()
    assert "mistake of ours" not in done.stderr
    return done.stderr


def test_every_field_has_a_meaning() -> None:
    known = {field.name for field in fields(SsSocket)}
    assert set(FIELDS.values()) <= known
    assert set(FIELDS) <= set(SS)
    # What isn't in the table of fields: addresses, groups of words, and what has a block of its own.
    apart = {"netid", "users", "skmem", "flags", "algorithm", "other", "delivered_segments"} | {
        name for name in known if name.startswith(("local_", "peer_", "timer_"))
    }
    assert known - set(FIELDS.values()) <= apart
    tables = [SS, QDISC, PING, IPERF3, NSTAT, LINK, SYSCTL, ETHTOOL, SOFTNET]
    for table in (*tables, *QDISC_OPTIONS.values()):
        for name, meaning in table.items():
            assert meaning.text, name
            assert meaning.source, name


def test_the_right_qdisc_of_four(run: Path) -> None:
    """Of each qdisc the numbers of the JSON, at the place that is named, and what they grew by."""
    raw = {
        when: json.loads((run / f"raw/router/qdisc.{when}.json").read_text())
        for when in ("before", "after")
    }
    shown = blocks(run, "qdisc", "--node", "router")
    netem = shown["router: netem 3: parent 1:3 on eth1"]
    assert netem["place"] == "router/qdisc.before.json $[3], router/qdisc.after.json $[3]"
    for name in ("bytes", "packets", "drops", "qlen"):
        field = netem["fields"][name]
        before, after = (raw[when][3][name] for when in ("before", "after"))
        assert (field["before"], field["after"]) == (before, after)
        assert field["difference"] == after - before
        assert field["unit"] in ("bytes", "packets")
    limit = netem["fields"]["limit"]
    assert (limit["after"], limit["unit"]) == (raw["after"][3]["options"]["limit"], "packets")
    assert limit["difference"] is None
    loss = raw["after"][3]["options"]["loss-random"]["loss"]
    assert netem["fields"]["loss-random.loss"]["after"] == loss
    assert f"{100 * loss:.6g} %" in netem["fields"]["loss-random.loss"]["meaning"]
    assert "noqueue on lo:" in shown["router: other interfaces"]["notes"][0]


def test_the_queue_that_a_run_is_about_comes_first_and_what_was_set_up_last() -> None:
    [run] = (SAMPLES / "05-queues/case-01-broken").glob("trial-*")
    titles = [*blocks(run, "qdisc")]
    assert titles[0].startswith("router-1: red 10: ")
    dropped = [title for title in titles if title.startswith("router-2: tbf ")]
    assert titles.index(dropped[0]) < min(titles.index(title) for title in titles if "host-1" in title)  # fmt: skip
    set_up = [title for title in titles if title.endswith(", as set up before the run")]
    assert set_up == titles[-4:]
    assert {title.split(":")[0] for title in set_up} == {"router-1", "router-2"}


def test_the_data_connection_and_its_mean(run: Path) -> None:
    lines = (run / "raw/romeo/ss.txt").read_text().splitlines()
    connected = json.loads((run / "raw/romeo/iperf3.json").read_text())["start"]["connected"]
    port = connected[0]["local_port"]
    own = [line for line in lines if f":{port} " in line]
    rtts_ms = [float(line.split(" rtt:")[1].split("/")[0]) for line in own if " rtt:" in line]
    shown = blocks(run, "romeo/ss.txt")
    listed = shown["romeo: connections in ss.txt"]["fields"]
    assert listed[f"port {port}"]["shown below"] == "yes"
    assert [field["shown below"] for field in listed.values()].count("no") == 1
    rtt = shown[f"port {port}, over its samples"]["fields"]["rtt"]
    assert rtt["smallest"] == min(rtts_ms)
    assert rtt["largest"] == max(rtts_ms)
    assert rtt["mean"] == pytest.approx(sum(rtts_ms) / len(rtts_ms), abs=1e-3)
    (last,) = [block for title, block in shown.items() if title.endswith("last sample")]
    number = int(last["place"].rsplit(" ", 1)[1])
    assert lines[number - 1] == own[-1]
    assert f" mss:{last['fields']['mss']['value']} " in own[-1]
    assert last["fields"]["rtt"]["value"] == rtts_ms[-1]


def test_both_sides_of_iperf3_and_ping_and_counters(run: Path) -> None:
    end = json.loads((run / "raw/romeo/iperf3.json").read_text())["end"]
    whole = blocks(run, "iperf3.json")["romeo: over the whole test"]["fields"]
    for name in ("bytes", "bits_per_second"):
        assert whole[name]["sent"] == end["sum_sent"][name]
        assert whole[name]["received"] == end["sum_received"][name]
    assert whole["retransmits"]["received"] is None
    ping = blocks(run, "ping")["romeo: ping"]
    line = int(ping["place"].rsplit(" ", 1)[1])
    text = (run / "raw/romeo/ping.txt").read_text().splitlines()
    transmitted = ping["fields"]["transmitted"]["value"]
    assert text[line - 1].startswith(f"{transmitted} packets transmitted")
    before, after = (
        json.loads((run / f"raw/romeo/nstat.{when}.json").read_text())["kernel"]
        for when in ("before", "after")
    )
    grown = blocks(run, "nstat", "--node", "romeo")["romeo: counters that grew"]["fields"]
    assert {name: field["difference"] for name, field in grown.items()} == {
        name: after[name] - before[name] for name in after if after[name] != before[name]
    }
    assert grown["TcpRetransSegs"]["unit"] == "segments"


def test_each_file_has_its_word_and_each_word_works() -> None:
    """Of one recorded run a lab: all that the list names can be shown, with a meaning somewhere."""
    for folder in sorted(SAMPLES.iterdir()):
        archives = sorted(folder.glob("*/*/raw.tar.xz")) if folder.is_dir() else []
        if not archives:
            continue
        with opened(archives[0].parent) as source:
            named = {
                word.name: word for file in source.files if (word := words.word_of(file, source))
            }
            assert {"settings", "measured", "qdisc", "ss", "ping", "nstat"} <= set(named)
            node = {"03-scale": "sender-0"}.get(folder.name)
            for word in named.values():
                files = words.files_of(word, source, None)
                files = [file for file in files if not node or file.node in (node, "")] or files
                shown = words.show(word, files, source, ROOT)
                assert not shown.problems, shown.problems
                assert all(block.rows or block.notes for block in shown.blocks)


@pytest.mark.parametrize(
    ("run_", "says"),
    [
        ("01-mathis/case-06-broken/trial-03-seed1", "what the receiving program got"),
        (
            "04-variants/case-06-broken/trial-04-seed1",
            "the sum of the flows' goodputs, by their ACKs:",
        ),
        (
            "05-queues/case-06-broken/trial-06-seed1",
            "the sum of the flows' goodputs, by their ACKs:",
        ),
        ("03-scale/case-06-broken/trial-01-seed1", "the sum of the flows' goodputs in that time"),
    ],
)
def test_a_name_means_what_it_means_in_such_a_run(run_: str, says: str) -> None:
    """Of one flow goodput is what iperf3's receiver had, of several what was acknowledged while all were there."""
    [named] = blocks(SAMPLES / run_, "measured").values()
    assert named["fields"]["goodput_bps"]["meaning"].startswith(says)


def test_the_list_names_nodes_sizes_and_words(run: Path) -> None:
    done = call_lab("show", run)
    assert done.returncode == 0
    assert "nodes: juliet, romeo, router" in done.stdout
    size = (run / "raw/romeo/ss.txt").stat().st_size
    assert f"romeo {size:,}" in done.stdout
    document = json.loads(call_lab("show", run, "--json").stdout)
    by_name = {file["file"]: file for file in document["files"]}
    assert by_name["router/qdisc.after.json"]["what"] == "qdisc"
    assert by_name["romeo/ss.txt"]["bytes"] == size
    # The number of nodes that hold a file of that name decides how it is listed, not one lab's three.
    many = call_lab("show", SAMPLES / "03-scale/edge-once/trial-01-seed1").stdout
    assert "10 nodes: " in many


def test_no_verdict_and_no_name_of_a_mistake(run: Path) -> None:
    """The plan says which mistake was staged. What is shown of it are the network's settings."""
    plan = json.loads((run / "plan.json").read_text())
    for what in ("settings", "measured", "qdisc", "ss", "link"):
        shown = call_lab("show", run, what).stdout + call_lab("show", run, what, "--json").stdout
        for word in ("pitfall", "finding", "broken", "expected", "wrong", str(plan["stage"])):
            assert word not in shown.lower(), (what, word)


@pytest.mark.parametrize(
    ("output", "what", "title"),
    [
        ("ss/samples-6.1.txt", "ss", "connections in output"),
        ("ss/ss-6.1-bbr.txt", "ss", "connections in output"),
        ("ss/ss-5.9-tinO.txt", "ss", "connections in output"),
        ("ping/ping-20210202-ipv6.txt", "ping", "ping"),
        ("ping/ping-20250605-loss-dup-O.txt", "ping", "ping"),
        ("nstat/nstat-6.1.json", "nstat", "counters that aren't 0"),
    ],
)
def test_outputs_of_other_versions_are_known_by_their_content(
    tmp_path: Path, output: str, what: str, title: str
) -> None:
    """Files of any name, beside others, as a person brings them."""
    (tmp_path / "output").write_bytes((OUTPUTS / output).read_bytes())
    (tmp_path / "readme").write_text("two flows, no losses\n")
    document = json.loads(call_lab("show", tmp_path, "--json").stdout)
    named = {file["file"]: file["what"] for file in document["files"]}
    assert named == {"output": what, "readme": None}
    shown = blocks(tmp_path, what)
    assert title in shown
    assert blocks(tmp_path / "output").keys() == shown.keys()


def test_qdiscs_of_every_version_as_text_and_as_json(tmp_path: Path) -> None:
    """Each qdisc of each recorded output is shown, its counters the ones that are printed there."""
    for output in sorted((OUTPUTS / "tc").glob("tc-*")):
        if "class" in output.name:
            continue
        (tmp_path / "router").write_bytes(output.read_bytes())
        with opened(tmp_path / "router") as source:
            shown = words.show(words.BY_NAME["qdisc"], source.files, source, ROOT)
        text = output.read_text()
        for block in shown.blocks:
            for row in block.rows:
                value = row.values[0]
                if isinstance(value, int) and not isinstance(value, bool) and value > 9:
                    assert str(value) in text, (output.name, row)


def test_a_count_of_nothing_is_shown_as_0() -> None:
    """The clue of a case: red dropped packets, and none by its curve."""
    [run] = (SAMPLES / "05-queues/case-04-broken").glob("trial-*")
    for what, column in (("qdisc", "after"), ("queue", "last")):
        shown = blocks(run, what, "--node", "router-1")
        red = next(block for title, block in shown.items() if "red 10:" in title)
        last = {name: field[column] for name, field in red["fields"].items()}
        assert [last[name] for name in ("marked", "early", "other")] == [0, 0, 0]
        assert last["pdrop"] > 0


def test_a_file_word_for_word(run: Path) -> None:
    text = (run / "raw/romeo/ping.txt").read_text()
    assert call_lab("show", run, "ping.txt", "--text").stdout == text
    routes = (run / "raw/romeo/route.txt").read_text()
    assert call_lab("show", run, "romeo/route.txt").stdout == routes
    assert "3 files have this name" in refused(run, "route.txt")
    assert "--text takes a file's name" in refused(run, "ping", "--text")
    assert "neither a file of" in refused(run, "nonsense")
    assert "it has juliet, romeo, router" in refused(run, "qdisc", "--node", "nobody")


def test_nothing_in_a_file_reaches_the_terminal_as_a_command(run: Path) -> None:
    (run / "raw/romeo/notes.txt").write_bytes(b"\x1b[2Jred\x07 \xff [bold]x[/bold]\n")
    output = call_lab("show", run, "notes.txt").stdout
    assert output == "\ufffd[2Jred\ufffd \ufffd [bold]x[/bold]\n"
    (run / "raw/romeo/sysctl.txt").write_text("net.ipv4.tcp_sack = \x1b]0;x\x07[bold]1\n")
    output = call_lab("show", run, "sysctl", "--node", "romeo").stdout
    assert "\x1b" not in output
    assert "\ufffd]0;x\ufffd[bold]1" in output
    os.rename(run / "raw/romeo/notes.txt", run / "raw/romeo/a\x1b[31m.txt")
    assert "\x1b" not in call_lab("show", run).stdout


@pytest.mark.parametrize("keep", [0, 1, 40, 200])
def test_a_file_that_is_cut_off(run: Path, keep: int) -> None:
    for node in ("juliet", "romeo", "router"):
        for name in ("qdisc.before.json", "qdisc.after.json", "link.after.json", "addr.json"):
            path = run / "raw" / node / name
            path.write_bytes(path.read_bytes()[:keep])
    assert "juliet/qdisc." in refused(run, "qdisc")
    assert "juliet/link.after.json" in refused(run, "link")
    assert "addr.json" in refused(run, "addr")
    path = run / "raw/romeo/iperf3.json"
    path.write_bytes(path.read_bytes()[: 500 * keep])
    assert "iperf3.json" in refused(run, "romeo/iperf3.json")
    # What is whole is shown still, and what isn't is named.
    done = call_lab("show", run, "iperf3")
    assert done.returncode == 0
    assert "not shown: romeo/iperf3.json" in done.stderr
    assert "juliet: over the whole test" in done.stdout


def test_pipes_devices_links_and_nothing(run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe; name a run's folder or a plain file" in refused(tmp_path / "pipe")
    assert "a device" in refused("/dev/zero")
    assert "No such file" in refused(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "there are no files in it" in refused(tmp_path / "empty")
    os.mkfifo(run / "raw/romeo/pipe.txt")
    (run / "raw/romeo/link.txt").symlink_to("/etc/hostname")
    (run / "raw/elsewhere").symlink_to("/etc")
    output = call_lab("show", run).stdout
    for line in ("romeo/pipe.txt: a pipe", "romeo/link.txt: a link", "elsewhere: a link"):
        assert f"left out: {line}, not looked at" in output
    assert "neither a file" in refused(run, "pipe.txt")
    (run / "plan.json").write_text('{"lab": ')
    assert "plan.json: can't be read" in refused(run)


def test_a_damaged_archive_or_a_pipe_in_its_place(tmp_path: Path) -> None:
    packed = (SAMPLES / "01-mathis/case-05-broken/trial-09-seed1/raw.tar.xz").read_bytes()
    (tmp_path / "plan.json").write_text('{"lab": "mathis"}')
    (tmp_path / "raw.tar.xz").write_bytes(packed[:9000])
    assert "is damaged" in refused(tmp_path, "qdisc")
    (tmp_path / "raw.tar.xz").unlink()
    os.mkfifo(tmp_path / "raw.tar.xz")
    assert "not a plain file" in refused(tmp_path, "qdisc")


def test_several_runs_none_and_one_that_was_never_finished(run: Path) -> None:
    several = SAMPLES / "03-scale/edge-once"
    assert "holds 7 runs; name one of them: trial-01-seed1, " in refused(several)
    digests = next(
        path.parent for path in sorted(SAMPLES.glob("*/*/results.json"))
        if not list(path.parent.glob("*/plan.json"))
    )  # fmt: skip
    assert "keeps digests only" in refused(digests)
    (run / "DONE").unlink()
    assert "never finished" in call_lab("show", run, "ping").stdout


def test_a_live_labs_folder(run: Path, tmp_path: Path) -> None:
    """As ./lab up leaves it: live.json, and what a person wrote on the nodes."""
    live = tmp_path / "live-20261123-101010"
    (live / "raw/romeo").mkdir(parents=True)
    (live / "live.json").write_bytes((run / "plan.json").read_bytes())
    (live / "raw/romeo/mine.txt").write_bytes((run / "raw/romeo/ping.txt").read_bytes())
    (live / "raw/romeo/.bash_history").write_text("secret\n")
    document = json.loads(call_lab("show", live, "--json").stdout)
    assert document["sort"] == "live lab"
    assert document["title"] == "mathis, trial 9, live"
    named = {file["file"]: file["what"] for file in document["files"]}
    assert named == {"romeo/mine.txt": "ping", "live.json": "settings"}
    assert blocks(live, "ping")["romeo: ping"]["fields"]["received"]["value"] == 25
    # iperf3 under another name still says which connection is the data's.
    shutil.copy(run / "raw/romeo/ss.txt", live / "raw/romeo/log.txt")
    shutil.copy(run / "raw/romeo/iperf3.json", live / "raw/romeo/test.json")
    notes = blocks(live, "ss")["romeo: connections in log.txt"]["notes"]
    assert any("romeo/test.json names it" in note for note in notes)


def test_a_terminal_gets_a_pager_only_where_it_is_too_short(run: Path) -> None:
    """On a terminal of 80 columns no line is longer than that."""
    code, output = lab_on_terminal("show", run, "qdisc", "--node", "router", PAGER="false")
    assert code == 0, output
    lines = output.splitlines()
    assert any("chance that a packet" in line for line in lines), output
    assert max(map(len, lines)) <= 80
    # The pager here prints nothing and says no: so nothing comes of what is longer than the terminal.
    code, output = lab_on_terminal(
        "show", run, "qdisc", "--node", "router", lines=10, PAGER="false"
    )
    assert "chance that a packet" not in output


def test_what_has_no_word_is_shown_by_its_short_name(run: Path) -> None:
    """tcpdump stands in the list, and is shown by that name."""
    listed = call_lab("show", run).stdout
    assert re.search(r"(?m)^tcpdump +tcpdump\.txt ", listed)
    shown = call_lab("show", run, "tcpdump")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == call_lab("show", run, "tcpdump.txt").stdout
    assert "> 02:00" in shown.stdout
    assert "tcpdump" in call_lab("show", run, "nosuch").stderr
    # Some logs always say something: none is promised to be empty.
    assert "empty if all went well" not in listed


def test_a_word_behind_linklayer_is_its_value(tmp_path: Path) -> None:
    tc = "qdisc tbf 1: dev eth2 root refcnt 2 rate 1Gbit burst 3125b/1 mpu 0b lat 80ms linklayer ethernet \n"
    (tmp_path / "tc.txt").write_text(tc)
    shown = call_lab("show", tmp_path / "tc.txt").stdout
    assert re.search(r"linklayer +ethernet", shown)
    assert not re.search(r"(?m)^ +ethernet ", shown)
