"""ss's text. The expected values were read from the files by eye."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from measuretwice.parse import ParseError, SsUser, TruncatedError, parse_ss

Read = Callable[[str], str]


def test_everything_on_one_line(read: Read) -> None:
    control, data = parse_ss(read("ss/ss-6.1-dctcp.txt"), "a.txt")
    assert (data.netid, data.state) == (None, "ESTAB")
    assert (data.recv_q_bytes, data.send_q_bytes) == (0, 599472)
    assert (data.local_address, data.local_port) == ("10.10.1.100", 47300)
    assert (data.peer_address, data.peer_port) == ("10.10.2.100", 5201)
    assert (data.timer_name, data.timer_expires_ms, data.timer_retransmits) == ("on", 50, 0)
    assert data.other == {"ino": "260", "sk": "2", "shutdown": "<->"}
    assert data.skmem == {
        "r": 0,
        "rb": 131072,
        "t": 0,
        "tb": 739840,
        "f": 2256,
        "w": 624432,
        "o": 0,
        "bl": 0,
        "d": 0,
    }
    assert (data.flags, data.timestamps) == (("ts", "sack", "ecn"), True)
    assert control.flags == ("ts", "sack", "ecn", "ecnseen")
    assert (data.congestion_control, data.wscale, data.rto_ms) == ("dctcp", (7, 7), 220)
    assert (data.rtt_ms, data.rttvar_ms, data.ato_ms, control.ato_ms) == (19.918, 0.036, None, 40)
    assert (data.mss_bytes, data.pmtu_bytes, data.rcvmss_bytes) == (1448, 1500, 536)
    assert (data.advmss_bytes, data.cwnd_segments, data.ssthresh_segments) == (1448, 33, 33)
    assert (data.bytes_sent, data.bytes_retrans, data.bytes_acked) == (4656805, None, 4609022)
    assert (data.segs_out, data.segs_in, data.data_segs_out) == (3219, 1884, 3217)
    assert (data.bytes_received, data.data_segs_in) == (None, None)
    assert data.algorithm == {"ce_state": "0", "alpha": "48", "ab_ecn": "1448", "ab_tot": "8688"}
    assert (data.send_rate_bps, data.pacing_rate_bps) == (19192288, 23030744)
    assert (data.delivery_rate_bps, data.delivered_segments) == (19126984, 3185)
    assert (data.delivered_ce_segments, data.busy_ms, data.unacked_segments) == (242, 1950, 33)
    assert (data.lastsnd_ms, data.lastrcv_ms, control.lastack_ms) == (None, 1960, 1700)
    assert (data.rcv_space_bytes, data.rcv_ssthresh_bytes) == (14480, 64088)
    assert (data.notsent_bytes, data.minrtt_ms, data.snd_wnd_bytes) == (551688, 10, 528384)
    assert (control.app_limited, data.app_limited) == (True, False)


def test_losses_on_two_lines(read: Read) -> None:
    control, first, second = parse_ss(read("ss/ss-7.2-tinmeop.txt"), "a.txt")
    assert control.users == (SsUser("iperf3", 376, 4),)
    assert (first.retrans_now, first.retrans_total, first.bytes_retrans) == (0, 31, 45260)
    assert (first.dsack_dups, first.reordering) == (4, 124)
    assert first.other["reord_seen"] == "3602"
    assert first.other["rcv_wnd"] == "64256"
    assert (first.congestion_control, first.timestamps) == ("reno", False)
    assert (second.sacked_segments, second.lost_segments) == (1, None)
    assert (second.timer_expires_ms, first.rtt_ms, first.rttvar_ms) == (10, 6.078, 0.34)


def test_one_line_and_two_lines_are_the_same() -> None:
    row = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2"
    info = "cubic rto:210 rtt:3/1 cwnd:10"
    assert parse_ss(f"{row} {info}\n", "a") == parse_ss(f"{row}\n\t {info}   \n", "a")


def test_versions_agree(read: Read) -> None:
    # The same sockets, a few milliseconds apart; 5.9 has no snd_wnd yet.
    old = parse_ss(read("ss/ss-5.9-tinO.txt"), "a.txt")
    new = parse_ss(read("ss/ss-6.1-tinOH.txt"), "a.txt")
    assert [s.local_port for s in old] == [s.local_port for s in new] == [53674, 53676, 53678]
    assert old[0].cwnd_segments == new[0].cwnd_segments == 10
    assert old[0].snd_wnd_bytes is None
    assert new[0].snd_wnd_bytes == 64128


def test_rounded_rates(read: Read) -> None:
    control, first, _ = parse_ss(read("ss/ss-6.15-ti.txt"), "a.txt")
    assert (control.send_rate_bps, control.delivery_rate_bps) == (17.9e6, 3.53e6)
    assert first.pacing_rate_bps == 46.1e6


def test_algorithms(read: Read) -> None:
    _, bbr = parse_ss(read("ss/ss-6.1-bbr.txt"), "a.txt")
    assert bbr.congestion_control == "bbr"
    assert bbr.algorithm == {
        "bw": "96450480bps",
        "mrtt": "3",
        "pacing_gain": "0.75",
        "cwnd_gain": "2",
    }
    _, vegas = parse_ss(read("ss/ss-7.2-vegas.txt"), "a.txt")
    assert (vegas.congestion_control, vegas.algorithm) == ("vegas", None)
    _, fallback = parse_ss(read("ss/ss-6.1-dctcp-fallback.txt"), "a.txt")
    assert (fallback.congestion_control, fallback.algorithm) == (
        "dctcp-reno",
        {"fallback_mode": ""},
    )
    assert (fallback.retrans_now, fallback.lost_segments, fallback.sacked_segments) == (1, 1, 31)


def test_limits(read: Read) -> None:
    _, data = parse_ss(read("ss/ss-7.2-sndbuf-limited.txt"), "a.txt")
    assert (data.busy_ms, data.rwnd_limited_ms, data.sndbuf_limited_ms) == (1950, 60, None)
    (socket,) = parse_ss(
        "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 reno rto:200 busy:90ms sndbuf_limited:40ms(44.4%)\n", "a"
    )
    assert (socket.busy_ms, socket.sndbuf_limited_ms) == (90, 40)


def test_a_machine_with_cgroups(read: Read) -> None:
    _, data = parse_ss(read("ss/ss-6.1-host-tinmeop.txt"), "a.txt")
    assert data.other["cgroup"] == "unreachable:1"
    assert (data.minrtt_ms, data.send_rate_bps, data.rwnd_limited_ms) == (0.001, 77451636364, 16)


def test_addresses_and_states(read: Read) -> None:
    bound, any_, listen6, data, control = parse_ss(read("ss/ss-6.1-states-meop.txt"), "a.txt")
    assert (bound.local_address, bound.local_interface) == ("10.10.2.100", "eth0")
    assert (bound.peer_address, bound.peer_port) == ("0.0.0.0", None)
    assert (any_.state, any_.local_address, any_.local_port) == ("LISTEN", "*", 5201)
    assert (any_.congestion_control, any_.cwnd_segments, any_.timestamps) == ("cubic", 10, None)
    assert (listen6.local_address, listen6.peer_address) == ("fd00:2::100", "::")
    assert listen6.other["v6only"] == "1"
    assert (data.peer_address, data.peer_port) == ("fd00:1::100", 49426)
    assert (data.rcv_rtt_ms, data.rcv_space_bytes, data.bytes_received) == (6.076, 704160, 10092165)
    assert data.other["rcv_ooopack"] == "2172"
    assert (control.users[0].pid, bound.skmem and bound.skmem["d"]) == (227, 1)


def test_old_ipv6_without_brackets(read: Read) -> None:
    old = parse_ss(read("ss/derived-ss-old-ipv6.txt"), "a.txt")
    assert old == parse_ss(read("ss/ss-6.1-states-meop.txt"), "a.txt")


def test_ipv4_in_ipv6_is_kept(read: Read) -> None:
    data, _ = parse_ss(read("ss/ss-7.2-dctcp-receiver.txt"), "a.txt")
    assert (data.local_address, data.data_segs_out) == ("::ffff:10.10.2.100", None)


def test_interface_of_a_link_local_address() -> None:
    (socket,) = parse_ss("ESTAB 0 0 [fe80::1]%eth0:22 [fe80::2]%eth0:40000\n", "a")
    assert (socket.local_address, socket.local_interface) == ("fe80::1", "eth0")
    assert (socket.peer_address, socket.peer_interface) == ("fe80::2", "eth0")


def test_rows_without_details(read: Read) -> None:
    sockets = parse_ss(read("ss/ss-6.1-tn.txt"), "a.txt")
    assert len(sockets) == 3
    assert sockets[1].send_q_bytes == 1221392
    assert (sockets[1].cwnd_segments, sockets[1].timestamps) == (None, None)


def test_network_column(read: Read) -> None:
    sockets = parse_ss(read("ss/ss-7.2-tcp-udp.txt"), "a.txt")
    assert {s.netid for s in sockets} == {"tcp"}
    (dns,) = parse_ss("udp UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:*\n", "a")
    assert (dns.netid, dns.state, dns.local_interface, dns.local_port) == (
        "udp",
        "UNCONN",
        "lo",
        53,
    )


def test_one_state_asked_for(read: Read) -> None:
    for name in ("established", "established-tino"):
        control, data = parse_ss(read(f"ss/ss-6.1-{name}.txt"), "a.txt")
        assert (control.state, control.local_port, data.local_port) == (None, 47296, 47300)
    assert data.timer_expires_ms == 50


def test_time_wait(read: Read) -> None:
    sockets = parse_ss(read("ss/ss-6.1-timewait-o.txt"), "a.txt")
    assert {s.state for s in sockets} == {"TIME-WAIT"}
    # "3.770ms" is 3 s and 770 ms.
    assert [s.timer_expires_ms for s in sockets[:4]] == [19000, 24000, 3770, 7820]


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1min55sec", 115000), ("2min", 120000), ("9.040ms", 9040), ("020ms", 20), ("12sec", 12000)],
)
def test_timers(text: str, milliseconds: int) -> None:
    (socket,) = parse_ss(f"ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 timer:(keepalive,{text},3)\n", "a")
    assert (socket.timer_expires_ms, socket.timer_retransmits) == (milliseconds, 3)


def test_process_names_with_blanks() -> None:
    (socket,) = parse_ss(
        'ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 users:(("my server",pid=7,fd=3),("b",pid=8,fd=3)) ino:5\n',
        "a",
    )
    assert socket.users == (SsUser("my server", 7, 3), SsUser("b", 8, 3))
    assert socket.other == {"ino": "5"}


def test_limited_pacing_and_unknown_words() -> None:
    (socket,) = parse_ss(
        "ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 reno rto:200 pacing_rate 1Gbps/2.5Gbps newword new:(a:1)\n",
        "a",
    )
    assert (socket.pacing_rate_bps, socket.max_pacing_rate_bps) == (1e9, 2.5e9)
    assert socket.other == {"newword": "", "new": "(a:1)"}


def test_no_sockets(read: Read) -> None:
    assert parse_ss(read("ss/ss-6.1-none.txt"), "a.txt") == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ESTAB 0 0 1.1.1.1:%% 2.2.2.2:2", "a port"),
        ("ESTAB 0 0 1.1.1.1 2.2.2.2:2", "ADDRESS:PORT"),
        ("ESTAB 0 0 1.1.1.1:1", "two addresses"),
        ("ESTAB 0 x 1.1.1.1:1 2.2.2.2:2", "two addresses"),
        ("u_str ESTAB 0 0 * 25317 * 25318", "two addresses"),
        ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 cubic cwnd:ten", "'cwnd:ten'; expected a number"),
        ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 rtt:3", "'rtt:3'"),
        ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 send 3furlongs", "'send'"),
        ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 cubic delivery_rate", "'delivery_rate'"),
        ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 busy:3", "'busy:3'"),
        ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2 timer:(on,soon,0)", "'timer:"),
    ],
)
def test_unreadable_lines_are_named(line: str, problem: str) -> None:
    text = f"State Recv-Q Send-Q Local Address:Port Peer Address:Port\n{line}\n"
    with pytest.raises(ParseError) as caught:
        parse_ss(text, "ss.txt")
    assert str(caught.value).startswith("ss.txt, line 2: found ")
    assert problem in str(caught.value)


def test_a_second_line_is_missing() -> None:
    row = "ESTAB 0 0 1.1.1.1:1 2.2.2.2:2\n"
    with pytest.raises(TruncatedError, match=r"line 3: .*second line"):
        parse_ss(f"{row}\t cubic cwnd:10\n{row}", "a")
    with pytest.raises(ParseError, match="line 1: found"):
        parse_ss(f"\t cubic cwnd:10\n{row}", "a")
