"""ss's text, and the sampler's file of it. The expected values were read from the files by eye."""

from __future__ import annotations

import time

import pytest
from tool_outputs import read

from measuretwice.parse import ParseError, SsUser, TruncatedError, parse_ss, parse_ss_samples


def test_everything_on_one_line() -> None:
    control, data = parse_ss(read("ss/ss-6.1-dctcp.txt"), "a.txt")
    assert (data.netid, data.state) == (None, "ESTAB")
    assert (data.recv_q_bytes, data.send_q_bytes) == (0, 599472)
    assert (data.local_address, data.local_port) == ("10.10.1.100", 47300)
    assert (data.peer_address, data.peer_port) == ("10.10.2.100", 5201)
    assert (data.timer_name, data.timer_expires_ms, data.timer_retransmits) == ("on", 50, 0)
    assert data.other == {"ino": "260", "sk": "2", "shutdown": "<->"}
    memory = {"rb": 131072, "tb": 739840, "f": 2256, "w": 624432}
    assert data.skmem == memory | dict.fromkeys(("r", "t", "o", "bl", "d"), 0)
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


def test_losses_on_two_lines() -> None:
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


def test_versions_agree() -> None:
    # The same sockets, a few milliseconds apart; 5.9 has no snd_wnd yet.
    old = parse_ss(read("ss/ss-5.9-tinO.txt"), "a.txt")
    new = parse_ss(read("ss/ss-6.1-tinOH.txt"), "a.txt")
    assert [s.local_port for s in old] == [s.local_port for s in new] == [53674, 53676, 53678]
    assert old[0].cwnd_segments == new[0].cwnd_segments == 10
    assert old[0].snd_wnd_bytes is None
    assert new[0].snd_wnd_bytes == 64128


def test_rounded_rates() -> None:
    control, first, _ = parse_ss(read("ss/ss-6.15-ti.txt"), "a.txt")
    assert (control.send_rate_bps, control.delivery_rate_bps) == (17.9e6, 3.53e6)
    assert first.pacing_rate_bps == 46.1e6


def test_algorithms() -> None:
    _, bbr = parse_ss(read("ss/ss-6.1-bbr.txt"), "a.txt")
    assert bbr.congestion_control == "bbr"
    gains = {"pacing_gain": "0.75", "cwnd_gain": "2"}
    assert bbr.algorithm == {"bw": "96450480bps", "mrtt": "3", **gains}
    _, vegas = parse_ss(read("ss/ss-7.2-vegas.txt"), "a.txt")
    assert (vegas.congestion_control, vegas.algorithm) == ("vegas", None)
    _, fallback = parse_ss(read("ss/ss-6.1-dctcp-fallback.txt"), "a.txt")
    assert fallback.congestion_control == "dctcp-reno"
    assert fallback.algorithm == {"fallback_mode": ""}
    assert (fallback.retrans_now, fallback.lost_segments, fallback.sacked_segments) == (1, 1, 31)


def test_limits() -> None:
    _, data = parse_ss(read("ss/ss-7.2-sndbuf-limited.txt"), "a.txt")
    assert (data.busy_ms, data.rwnd_limited_ms, data.sndbuf_limited_ms) == (1950, 60, None)
    (socket,) = parse_ss(
        "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 reno rto:200 busy:90ms sndbuf_limited:40ms(44.4%)\n", "a"
    )
    assert (socket.busy_ms, socket.sndbuf_limited_ms) == (90, 40)


def test_a_machine_with_cgroups() -> None:
    _, data = parse_ss(read("ss/ss-6.1-host-tinmeop.txt"), "a.txt")
    assert data.other["cgroup"] == "unreachable:1"
    assert (data.minrtt_ms, data.send_rate_bps, data.rwnd_limited_ms) == (0.001, 77451636364, 16)


def test_addresses_and_states() -> None:
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


def test_old_ipv6_without_brackets() -> None:
    old = parse_ss(read("ss/derived-ss-old-ipv6.txt"), "a.txt")
    assert old == parse_ss(read("ss/ss-6.1-states-meop.txt"), "a.txt")


def test_ipv4_in_ipv6_is_kept() -> None:
    data, _ = parse_ss(read("ss/ss-7.2-dctcp-receiver.txt"), "a.txt")
    assert (data.local_address, data.data_segs_out) == ("::ffff:10.10.2.100", None)


def test_interface_of_a_link_local_address() -> None:
    (socket,) = parse_ss("ESTAB 0 0 [fe80::1]%eth0:22 [fe80::2]%eth0:40000\n", "a")
    assert (socket.local_address, socket.local_interface) == ("fe80::1", "eth0")
    assert (socket.peer_address, socket.peer_interface) == ("fe80::2", "eth0")


def test_rows_without_details() -> None:
    sockets = parse_ss(read("ss/ss-6.1-tn.txt"), "a.txt")
    assert len(sockets) == 3
    assert sockets[1].send_q_bytes == 1221392
    assert (sockets[1].cwnd_segments, sockets[1].timestamps) == (None, None)


def test_network_column() -> None:
    sockets = parse_ss(read("ss/ss-7.2-tcp-udp.txt"), "a.txt")
    assert {s.netid for s in sockets} == {"tcp"}
    (dns,) = parse_ss("udp UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:*\n", "a")
    assert (dns.netid, dns.state) == ("udp", "UNCONN")
    assert (dns.local_interface, dns.local_port) == ("lo", 53)


def test_one_state_asked_for() -> None:
    for name in ("established", "established-tino"):
        control, data = parse_ss(read(f"ss/ss-6.1-{name}.txt"), "a.txt")
        assert (control.state, control.local_port, data.local_port) == (None, 47296, 47300)
    assert data.timer_expires_ms == 50


def test_time_wait() -> None:
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


def test_no_sockets() -> None:
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


# --- the sampler's file ---


def test_only_the_ports_that_are_asked_for_are_read() -> None:
    row = "ESTAB 0 0 10.0.0.1:{port} 10.0.0.2:5201 cubic mss:1448 cwnd:10\n"
    text = "# t=1.000000000\n" + row.format(port=40) + row.format(port=401) + "# t=2.000000000\n"
    samples = parse_ss_samples(text, "ss.txt", local_ports={40})
    assert [[s.local_port for s in sample.sockets] for sample in samples] == [[40], []]
    assert len(parse_ss_samples(text, "ss.txt")[0].sockets) == 2
    # Two lines a socket: all are read, whose detail line it is could not be told otherwise.
    text = text.replace(" cubic", "\n\t cubic")
    assert len(parse_ss_samples(text, "ss.txt", local_ports={40})[0].sockets) == 2


def test_samples() -> None:
    samples = parse_ss_samples(read("ss/samples-6.1.txt"), "ss.txt")
    assert len(samples) == 6
    assert samples[0].time_s == 1795213564.741568
    assert [len(s.sockets) for s in samples] == [2] * 6
    data = samples[0].sockets[1]
    assert (data.congestion_control, data.cwnd_segments, data.ssthresh_segments) == ("reno", 21, 14)
    assert (data.rtt_ms, data.bytes_acked, data.retrans_total) == (6.018, 2258718, 13)
    last = samples[5].sockets[1]
    assert samples[5].time_s == 1795213565.241911
    assert (last.cwnd_segments, last.retrans_total) == (10, 20)


def test_headers_two_lines_and_empty_samples() -> None:
    one = read("ss/ss-7.2-tinmeop.txt")
    text = f"# t=1.000000000\n# t=2,500000000\n{one}# t=3.000000000\n"
    samples = parse_ss_samples(text, "ss.txt")
    assert [s.time_s for s in samples] == [1, 2.5, 3]
    assert [s.sockets for s in samples] == [(), parse_ss(one, "a"), ()]


def test_truncated_tail() -> None:
    text = read("ss/samples-6.1.txt")
    cut = text[:-100]
    with pytest.raises(TruncatedError, match=r"^ss\.txt, line 18: .*cut off"):
        parse_ss_samples(cut, "ss.txt")
    whole = parse_ss_samples(text, "ss.txt")
    assert parse_ss_samples(cut, "ss.txt", allow_truncated_tail=True) == whole[:5]
    assert parse_ss_samples(text, "ss.txt", allow_truncated_tail=True) == whole


def test_every_cut_leaves_the_whole_samples() -> None:
    text = read("ss/samples-6.1.txt")
    whole = parse_ss_samples(text, "a")
    for cut in range(1, len(text), 7):
        samples = parse_ss_samples(text[:cut], "a", allow_truncated_tail=True)
        # Between the lines of one sample's sockets, nothing shows that more would have come.
        assert samples[:-1] == whole[: len(samples)][:-1]
        if text[cut - 1] != "\n":
            assert samples == whole[: len(samples)]


def test_a_mark_that_is_cut_off_ends_a_whole_sample() -> None:
    text = read("ss/samples-6.1.txt")
    whole = parse_ss_samples(text, "ss.txt")
    for tail in ("#", "# t=17952", "# t=1795213565.341911000"):
        assert parse_ss_samples(text + tail, "a", allow_truncated_tail=True) == whole
    assert parse_ss_samples("# t=17", "a", allow_truncated_tail=True) == ()


def test_cut_between_a_sockets_two_lines() -> None:
    sample = "ESTAB 0 0 1.1.1.1:1 2.2.2.2:2\n\t cubic cwnd:10\n"
    text = f"# t=1.000000000\n{sample}# t=2.000000000\n{sample}"
    cut = text.removesuffix("\t cubic cwnd:10\n")
    with pytest.raises(TruncatedError):
        parse_ss_samples(cut, "a")
    assert len(parse_ss_samples(cut, "a", allow_truncated_tail=True)) == 1


@pytest.mark.parametrize("mark", ["# t=1", "# t=x.000000000", "# t=1.0", "# time 1.000000000"])
def test_marks_must_be_whole(mark: str) -> None:
    text = f"# t=1.000000000\n{mark}\n# t=3.000000000\n"
    with pytest.raises(ParseError, match=r"line 2: found .*nine decimals"):
        parse_ss_samples(text, "a")
    with pytest.raises(ParseError, match="line 2"):
        parse_ss_samples(text, "a", allow_truncated_tail=True)


def test_rubbish_in_the_tail_is_not_truncation() -> None:
    text = "# t=1.000000000\nESTAB 0 0 1.1.1.1:1 2.2.2.2:2 cwnd:x\n"
    with pytest.raises(ParseError, match="line 2: found 'cwnd:x'"):
        parse_ss_samples(text, "a", allow_truncated_tail=True)


def test_speed() -> None:
    # Four minutes at ten samples a second take about 0.08 s; the limit leaves room for a busy
    # machine, and still catches a search for each field.
    line = read("ss/samples-6.1.txt").split("\n")[2]
    text = "".join(f"# t={1795213564 + i / 10:.9f}\n{line}\n" for i in range(2400))
    durations_s = []
    for _ in range(3):
        start_s = time.process_time()
        assert len(parse_ss_samples(text, "a")) == 2400
        durations_s.append(time.process_time() - start_s)
    assert min(durations_s) < 0.3
