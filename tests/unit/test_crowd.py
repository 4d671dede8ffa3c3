"""Runs of many flows: one interval for all, halvings from events, and a person's own results."""

import json
from pathlib import Path
from typing import Any

import pytest

from measuretwice.lab import Value, load_lab
from measuretwice.measure.flows import read_flows
from measuretwice.parse import ParseError

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "scale")
PARAMS: dict[str, Value] = {
    **LAB.defaults(), "flows": 2, "warmup_s": 2, "rival": "bbr", "rival_flows": 1,
}  # fmt: skip
START = 1_700_000_000


def ss_line(port: int, algorithm: str, rtt_ms: float, acked: int, sent: int, again: int) -> str:
    return (
        f"ESTAB 0 0 10.10.1.10:{port} 10.10.2.10:5201 {algorithm} rto:400 rtt:{rtt_ms}/1 mss:1448 "
        f"cwnd:100 bytes_acked:{acked} retrans:0/{again} data_segs_out:{sent} minrtt:20"
    )


def write_run(raw: Path, **changes: Any) -> Path:
    """Two senders with a flow each: a second between samples, the second flow two seconds later."""
    for node, port, algorithm, delay_s, per_s in (
        ("sender-0", 4000, "reno", 0, 1_000_000),
        ("sender-1", 5000, "bbr", 2, 3_000_000),
    ):
        folder = raw / node
        folder.mkdir(parents=True)
        lines = []
        for n in range(11):
            lines.append(f"# t={START + delay_s + n}.000000000")
            lines.append(ss_line(port, algorithm, 100.0 + n, n * per_s, n * per_s // 1448, 2 * n))
            lines.append(ss_line(port + 1, "cubic", 20.0, 100, 3, 0))
        (folder / "ss.txt").write_text("\n".join(lines) + "\n")
        (folder / "ping.txt").write_text(
            "PING 10.10.2.10 (10.10.2.10) 56(84) bytes of data.\n"
            "64 bytes from 10.10.2.10: icmp_seq=1 ttl=62 time=20.0 ms\n\n"
            "--- 10.10.2.10 ping statistics ---\n"
            "1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
            "rtt min/avg/max/mdev = 20.000/20.000/20.000/0.000 ms\n"
        )
        stream = {"socket": 5, "start": 0, "end": 10, "seconds": 10, "bytes": 10 * per_s}
        rate = {**stream, "bits_per_second": 8.0 * per_s, "retransmits": 20, "sender": True}
        (folder / "iperf3-1.json").write_text(
            json.dumps(
                {
                    "start": {
                        "connected": [
                            {
                                "socket": 5, "local_host": "10.10.1.10", "local_port": port,
                                "remote_host": "10.10.2.10", "remote_port": 5201,
                            }
                        ],
                        "version": "iperf 3.12",
                    },
                    "intervals": [],
                    "end": {
                        "streams": [{"sender": rate, "receiver": rate}],
                        "sum_sent": rate,
                        "sum_received": rate,
                    },
                }
            )
        )  # fmt: skip
    # In: two halvings, one of them with a timeout behind it. Out: before the interval, another port.
    (raw / "sender-0" / "events.txt").write_text(
        f"{START + 1}.5 4000 3\n{START + 2}.0 4000 0\n"
        f"{START + 5}.0 4000 1\n{START + 5}.1 4000 3\n{START + 5}.2 4000 4\n{START + 6}.0 4000 0\n"
        f"{START + 7}.0 4000 2\n{START + 7}.5 4000 0\n{START + 7}.6 4001 3\n"
    )
    (raw / "sender-1" / "events.txt").write_text("")
    (raw / "router").mkdir()
    queue = [
        f"# t={START + n}.000000000\n"
        + json.dumps(
            [
                {
                    "kind": "bfifo", "handle": "10:", "options": {"limit": 3000000},
                    "bytes": n * 4_000_000, "packets": n * 2700, "drops": 3 * n,
                    "backlog": 15140, "qlen": 10,
                }
            ]
        )
        for n in range(14)
    ]  # fmt: skip
    (raw / "router" / "queue.txt").write_text("\n".join(queue) + "\n")
    for name, text in changes.items():
        (raw / "router" / f"{name}.txt").write_text(text)
    return raw


def test_all_values_are_of_the_interval_that_all_share(tmp_path: Path) -> None:
    flows, values = read_flows(LAB, write_run(tmp_path), PARAMS)
    assert [(flow.node, flow.local_port, flow.congestion_control) for flow in flows] == [
        ("sender-0", 4000, "reno"),
        ("sender-1", 5000, "bbr"),
    ]
    # The second starts at 2 and warms up till 4; the first ends at 10.
    assert values["duration_s"] == 6
    assert [flow.goodput_bps for flow in flows] == [8_000_000, 24_000_000]
    assert [flow.retransmits for flow in flows] == [12, 12]
    assert flows[0].rtt_mean_ms == 107.0
    assert values["goodput_bps"] == values["own_goodput_bps"] == 32_000_000
    assert values["queue_drops"] == 18
    assert values["queue_packet_bytes"] == 1514
    assert values["utilisation"] == pytest.approx(0.32)
    assert (values["rtt_min_ms"], values["path_rtt_ms"], values["mss_bytes"]) == (20, 20, 1448)


def test_a_halving_is_a_change_from_a_normal_state(tmp_path: Path) -> None:
    flows, values = read_flows(LAB, write_run(tmp_path), PARAMS)
    assert [flow.halvings for flow in flows] == [2, 0]
    assert (values["halvings"], values["retransmits_per_halving"]) == (2, 12)
    assert values["drops_per_halving"] == 9


def test_two_connections_may_begin_at_one_port(tmp_path: Path) -> None:
    """To two servers, as the kernel is free to choose: they are two flows, their halvings nobody's."""
    raw = write_run(tmp_path)
    folder = raw / "sender-0"
    ss = (folder / "ss.txt").read_text()
    twins = [
        line.replace(":5201 reno", ":5202 cubic") for line in ss.splitlines() if " reno " in line
    ]
    marked = iter(twins)
    lines = [f"{line}\n{next(marked)}" if " reno " in line else line for line in ss.splitlines()]
    (folder / "ss.txt").write_text("\n".join(lines) + "\n")
    second = (folder / "iperf3-1.json").read_text().replace("5201", "5202")
    (folder / "iperf3-2.json").write_text(second)
    flows, values = read_flows(LAB, raw, PARAMS)
    assert [(flow.local_port, flow.congestion_control) for flow in flows] == [
        (4000, "reno"),
        (4000, "cubic"),
        (5000, "bbr"),
    ]
    assert [flow.halvings for flow in flows] == [None, None, 0]
    assert (values["flows"], values["halvings"]) == (3, 2)


def test_without_events_halvings_are_not_known(tmp_path: Path) -> None:
    raw = write_run(tmp_path)
    (raw / "sender-1" / "events.txt").unlink()
    flows, values = read_flows(LAB, raw, PARAMS)
    assert [flow.halvings for flow in flows] == [2, None]
    assert values["halvings"] is None


def test_shares_beside_fair_shares(tmp_path: Path) -> None:
    _, values = read_flows(LAB, write_run(tmp_path), PARAMS)
    assert (values["rival_share"], values["rival_fair_share"]) == (0.75, 0.5)
    assert values["rival_multiple"] == 1.5
    _, alone = read_flows(LAB, tmp_path, {**PARAMS, "rival": "none"})
    assert "rival_share" not in alone


def test_what_a_person_worked_out(tmp_path: Path) -> None:
    raw = write_run(
        tmp_path,
        summary="flows 2\nsum_bps 32000000\n",
        groups="bbr 1 8000000\nreno 1 24000000\n",
    )
    (raw / "sender-0" / "counted.txt").write_text(
        f"{START + 1}.0 4000\n{START + 5}.0 4000\n{START + 6}.0 4001\n"
    )
    _, values = read_flows(LAB, raw, PARAMS)
    assert (values["own_flows"], values["own_sum_bps"]) == (2, 32_000_000)
    assert values["own_groups_error_ratio"] == pytest.approx(2 / 3, abs=1e-6)
    # The one BBR flow's part by the table, whatever it is by the connections.
    assert values["own_rival_share"] == 0.25
    assert values["own_counted_halvings"] == 1
    (raw / "router" / "groups.txt").write_text("bbr 1 24000000\nreno 1 8000000\n")
    assert read_flows(LAB, raw, PARAMS)[1]["own_groups_error_ratio"] == 0


def test_a_process_that_failed_has_no_flow(tmp_path: Path) -> None:
    raw = write_run(tmp_path)
    (raw / "sender-1" / "iperf3-2.json").write_text(
        json.dumps({"start": {}, "intervals": [], "end": {}, "error": "the server is busy"})
    )
    assert len(read_flows(LAB, raw, PARAMS)[0]) == 2
    (raw / "sender-1" / "iperf3-1.json").unlink()
    assert len(read_flows(LAB, raw, PARAMS)[0]) == 1


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("sender-0/events.txt", "now 4000 3\n", "expected time, port and state"),
        ("sender-0/events.txt", "31.402817 4000 3\n", "the first events were lost"),
        ("sender-0/counted.txt", "4000\n", "expected time and port"),
        ("router/summary.txt", "flows ten\n", "expected a name and a number"),
        ("router/groups.txt", "reno 1\n", "expected an algorithm"),
        ("sender-1/ss.txt", f"# t={START + 20}.000000000\n" + ss_line(5000, "bbr", 1, 1, 1, 0) + "\n",
         "at no moment"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_are_named(
    tmp_path: Path, file: str, text: str, message: str
) -> None:
    raw = write_run(tmp_path)
    (raw / file).write_text(text)
    with pytest.raises(ParseError, match=message):
        read_flows(LAB, raw, PARAMS)
