"""The sampler's file."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from measuretwice.parse import ParseError, TruncatedError, parse_ss, parse_ss_samples

Read = Callable[[str], str]


def test_only_the_ports_that_are_asked_for_are_read() -> None:
    row = "ESTAB 0 0 10.0.0.1:{port} 10.0.0.2:5201 cubic mss:1448 cwnd:10\n"
    text = "# t=1.000000000\n" + row.format(port=40) + row.format(port=401) + "# t=2.000000000\n"
    samples = parse_ss_samples(text, "ss.txt", local_ports={40})
    assert [[s.local_port for s in sample.sockets] for sample in samples] == [[40], []]
    assert len(parse_ss_samples(text, "ss.txt")[0].sockets) == 2
    # Two lines a socket: all are read, whose detail line it is could not be told otherwise.
    text = text.replace(" cubic", "\n\t cubic")
    assert len(parse_ss_samples(text, "ss.txt", local_ports={40})[0].sockets) == 2


def test_samples(read: Read) -> None:
    samples = parse_ss_samples(read("ss/samples-6.1.txt"), "ss.txt")
    assert len(samples) == 6
    assert samples[0].time_s == 1795213564.741568
    assert [len(s.sockets) for s in samples] == [2] * 6
    data = samples[0].sockets[1]
    assert (data.congestion_control, data.cwnd_segments, data.ssthresh_segments) == ("reno", 21, 14)
    assert (data.rtt_ms, data.bytes_acked, data.retrans_total) == (6.018, 2258718, 13)
    last = samples[5].sockets[1]
    assert (samples[5].time_s, last.cwnd_segments, last.retrans_total) == (
        1795213565.241911,
        10,
        20,
    )


def test_headers_two_lines_and_empty_samples(read: Read) -> None:
    one = read("ss/ss-7.2-tinmeop.txt")
    text = f"# t=1.000000000\n# t=2,500000000\n{one}# t=3.000000000\n"
    samples = parse_ss_samples(text, "ss.txt")
    assert [s.time_s for s in samples] == [1, 2.5, 3]
    assert [s.sockets for s in samples] == [(), parse_ss(one, "a"), ()]


def test_truncated_tail(read: Read) -> None:
    text = read("ss/samples-6.1.txt")
    cut = text[:-100]
    with pytest.raises(TruncatedError, match=r"^ss\.txt, line 18: .*cut off"):
        parse_ss_samples(cut, "ss.txt")
    whole = parse_ss_samples(text, "ss.txt")
    assert parse_ss_samples(cut, "ss.txt", allow_truncated_tail=True) == whole[:5]
    assert parse_ss_samples(text, "ss.txt", allow_truncated_tail=True) == whole


def test_every_cut_leaves_the_whole_samples(read: Read) -> None:
    text = read("ss/samples-6.1.txt")
    whole = parse_ss_samples(text, "a")
    for cut in range(1, len(text), 7):
        samples = parse_ss_samples(text[:cut], "a", allow_truncated_tail=True)
        # Between the lines of one sample's sockets, nothing shows that more would have come.
        assert samples[:-1] == whole[: len(samples)][:-1]
        if text[cut - 1] != "\n":
            assert samples == whole[: len(samples)]


def test_a_mark_that_is_cut_off_ends_a_whole_sample(read: Read) -> None:
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


def test_speed(read: Read) -> None:
    # Four minutes at ten samples a second take about 0.08 s; the limit leaves room for a busy
    # machine, and still catches a search for each field.
    line = read("ss/samples-6.1.txt").split("\n")[2]
    text = "".join(f"# t={1795213564 + i / 10:.9f}\n{line}\n" for i in range(2400))
    best = min(_seconds(text) for _ in range(3))
    assert best < 0.3


def _seconds(text: str) -> float:
    start = time.process_time()
    assert len(parse_ss_samples(text, "a")) == 2400
    return time.process_time() - start
