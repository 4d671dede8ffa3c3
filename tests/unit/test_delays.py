"""How long packets took beside flows: pings, a stream's packets, short transfers, on files of real runs."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from measuretwice.lab import load_lab
from measuretwice.lab.schema.network import FlowFiles, StreamFiles
from measuretwice.measure.delays import ping_values, read_busy_pings, read_streams, read_waits
from measuretwice.measure.fields import members, require
from measuretwice.measure.flows import Flow, _few_together, read_flows
from measuretwice.measure.student_tables import summary_values
from measuretwice.parse import ParseError
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.recorded import results_of

ROOT = Path(__file__).parents[2]
# What these files are is in their folder's README.
CODEL, AFTER = (ROOT / "tests/data/delays" / name for name in ("codel", "after"))
DURING_CODEL = (1700000009.856754, 1700000020.256754)
DURING_AFTER = (1700000009.803682, 1700000020.803682)
CALL = StreamFiles(file="call.txt", deadline="deadline_ms")
FILES = FlowFiles(
    iperf3="iperf3.json", ss="ss.txt", ping_busy="ping-busy.txt", delays=CALL, transfers="pages.txt"
)


def test_delays_losses_and_what_is_late() -> None:
    """As counted by hand: 498 of 500 packets came to the server, 109 of them above 50 ms; 53 of 500 to the phone."""
    pings = [*read_busy_pings(CODEL, "ping-busy.txt").values()]
    values = read_waits(FILES, CODEL, {"deadline_ms": 50}, pings, DURING_CODEL)
    require(values, "a test")
    assert values["server_lost_ratio"] == pytest.approx(2 / 500)
    assert values["server_late_ratio"] == pytest.approx((109 + 2) / 500)
    assert values["server_delay_mean_ms"] == pytest.approx(33.271, abs=1e-3)
    assert values["server_delay_p50_ms"] == pytest.approx(31.099, abs=1e-3)
    assert values["server_delay_p99_ms"] == pytest.approx(95.890, abs=1e-3)
    assert values["phone_lost_ratio"] == 0
    assert values["phone_late_ratio"] == pytest.approx(53 / 500)
    assert (values["phone_transfers"], values["phone_transfer_p50_ms"]) == (12, 420.016)
    assert values["phone_transfer_p95_ms"] == 1383.598
    assert (values["busy_ping_p50_ms"], values["busy_ping_p99_ms"]) == (90.2, 146)
    assert values["busy_ping_mean_ms"] == pytest.approx(97.082, abs=0.01)
    # The queue's own delay is a value by itself.
    assert members("*_delay_mean_ms", [*values, "queue_delay_mean_ms"]).keys() == {
        "server",
        "phone",
    }


def test_without_a_deadline_nothing_is_late() -> None:
    files = FILES.model_copy(update={"delays": StreamFiles(file="call.txt")})
    values = read_waits(files, CODEL, {}, [], DURING_CODEL)
    assert "server_delay_p99_ms" in values
    assert not members("*_late_ratio", values)


@pytest.mark.parametrize(
    ("raw", "during", "beside"), [(CODEL, DURING_CODEL, 450), (AFTER, DURING_AFTER, 0)]
)
def test_which_pings_met_the_flows(raw: Path, during: tuple[float, float], beside: int) -> None:
    """All of those beside the flows did, and none of those that were sent afterwards."""
    (ping,) = pings = [*read_busy_pings(raw, "ping-busy.txt").values()]
    assert ping_values(pings, during)["busy_ping_beside_ratio"] == beside / ping.received


def test_the_hosts_clocks_may_be_apart_and_packets_come_in_any_order(tmp_path: Path) -> None:
    text = (CODEL / "phone/call.txt").read_text(encoding="utf-8")
    *packets, sent = text.splitlines()
    apart = []
    for line in packets:
        number, sent_s, came_s = line.split()
        apart.append(f"{number} {sent_s} {float(came_s) - 3600:.6f}")
    (tmp_path / "phone").mkdir()
    twice = [*reversed(apart), apart[0]]
    (tmp_path / "phone/call.txt").write_text("\n".join([*twice, sent]) + "\n")
    (stream,), (expected, _) = read_streams(CALL, tmp_path), read_streams(CALL, CODEL)
    assert stream.delays_ms == pytest.approx(expected.delays_ms, abs=2e-3)
    assert stream.late_ratio(50) == pytest.approx(53 / 500)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 1.0 2.0\n", "0 lines '# sent N'; expected one"),
        ("# sent 5\n# sent 5\n", "2 lines"),
        ("5 1.0 2.0\n# sent 5\n", "has a packet 5, and 5 were sent"),
        ("0 1.0 nan\n# sent 5\n", "line 1: expected a packet's number"),
        ("0 -1e308 1e308\n# sent 5\n", "line 1: expected a packet's number"),
        ("0 1.0\n# sent 5\n", "line 1: expected a packet's number"),
        ("# sent 0\n", "line 1"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone/call.txt").write_text(text)
    with pytest.raises(ParseError, match=f"phone/call.txt.*{says}"):
        read_streams(CALL, tmp_path)


def test_a_stream_of_which_nothing_came_is_all_late(tmp_path: Path) -> None:
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone/call.txt").write_text("# sent 5\n")
    values = read_waits(FILES, tmp_path, {"deadline_ms": 50}, [], DURING_CODEL)
    assert (values["phone_late_ratio"], values["phone_lost_ratio"]) == (1, 1)
    assert values["phone_delay_p99_ms"] is None


def test_pings_that_no_node_kept_are_missed() -> None:
    with pytest.raises(ParseError, match="no node has such a file"):
        read_busy_pings(CODEL, "ping-elsewhere.txt")


def test_pings_of_a_node_without_a_flow_count_as_well(tmp_path: Path) -> None:
    lab = load_lab(ROOT, "queues")
    (run,) = results_of(lab, ROOT / "sample-data/05-queues/case-01-broken")
    with raw_folder(run.run_dir) as raw:
        shutil.copytree(raw, tmp_path / "raw")
    _, before = read_flows(lab, tmp_path / "raw", run.params)
    assert before["busy_ping_mean_ms"] == run.measured["busy_ping_mean_ms"]
    (tmp_path / "raw/laptop").mkdir()
    shutil.copy(CODEL / "laptop/ping-busy.txt", tmp_path / "raw/laptop")
    _, after = read_flows(lab, tmp_path / "raw", run.params)
    of_two = before["busy_ping_mean_ms"]
    assert isinstance(of_two, float)
    assert after["busy_ping_mean_ms"] == pytest.approx((2 * of_two + 97.082) / 3, abs=0.01)


def test_flows_of_one_node_are_added_up() -> None:
    """Two of one node and one of another; what is no sum, such as a window, such a node has not."""
    one = Flow("laptop", 1, "cubic", 2e6, 50.0, 3, share=0.2, path_rtt_ms=40.0)
    flows = [one, replace(one, local_port=2, goodput_bps=4e6, share=0.4, rtt_mean_ms=60.0)]
    values = _few_together([*flows, replace(one, node="server", share=0.4, mss_bytes=1448)], 10.0)
    assert values["laptop_goodput_bps"] == 6e6
    assert values["laptop_share"] == pytest.approx(0.6)
    assert (values["laptop_retransmits"], values["laptop_rtt_mean_ms"]) == (6, 55)
    assert "laptop_mss_bytes" not in values
    assert values["server_mss_bytes"] == 1448


def test_a_persons_own_summary_may_stand_beside_flows(tmp_path: Path) -> None:
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone/summary.txt").write_text("late_ratio 0.106\nmean_ms nan\n")
    values = summary_values(tmp_path, "summary.txt")
    require(values, "a test")
    assert values == {"own_late_ratio": 0.106}
