"""The queue sampler's file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from measuretwice.parse import ParseError, TruncatedError, parse_qdisc_samples

Read = Callable[[str], str]


def test_samples(read: Read) -> None:
    samples = parse_qdisc_samples(read("tc/samples-6.1.txt"), "queue.txt")
    assert [sample.time_s for sample in samples] == [
        1700000003.774689, 1700000004.174964, 1700000004.275116, 1700000008.778619,
        1700000008.878651,
    ]  # fmt: skip
    first, last = samples[0].qdiscs[0], samples[-1].qdiscs[0]
    assert (first.kind, first.rate_bps, first.backlog_bytes, first.sent_bytes) == (
        "tbf",
        1e8,
        0,
        980,
    )
    assert (last.qlen_packets, last.backlog_bytes, last.drops) == (625, 946250, 1291)


def test_what_a_killed_sampler_leaves(read: Read) -> None:
    text = read("tc/samples-6.1.txt")
    whole = parse_qdisc_samples(text, "queue.txt")
    for cut in range(1, len(text)):
        left = parse_qdisc_samples(text[:cut], "queue.txt", allow_truncated_tail=True)
        assert left == whole[: len(left)]
        assert len(left) == text[:cut].count("\n") // 2
        if text[:cut].count("\n") != 2 * len(left) or text[cut - 1] != "\n":
            with pytest.raises(TruncatedError, match="cut off"):
                parse_qdisc_samples(text[:cut], "queue.txt")


def test_other_text_is_refused(read: Read) -> None:
    with pytest.raises(ParseError, match=r"^queue\.txt, line 1: this is tc JSON; expected samples"):
        parse_qdisc_samples(read("tc/tc-6.1-tbf.json"), "queue.txt")
    with pytest.raises(ParseError, match=r"line 3: found .*; expected '# t=SECONDS'"):
        parse_qdisc_samples("# t=1.000000000\n[]\nhallo\n[]\n", "queue.txt")
