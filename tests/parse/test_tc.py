"""tc's JSON and text, and the queue sampler's file of it. The expected values were read from the files by eye."""

from __future__ import annotations

import dataclasses

import pytest
from tool_outputs import read

from measuretwice.parse import (
    ParseError,
    Qdisc,
    TcClass,
    TruncatedError,
    parse_qdisc_samples,
    parse_tc_classes,
    parse_tc_qdiscs,
)

FORMS = ["json", "txt"]
VERSIONS = ["5.9", "6.1", "7.2"]
# What a queue that moves on between two calls has another of.
MOVING = {
    *("sent_bytes", "sent_packets", "drops", "overlimits"),
    *("backlog_bytes", "qlen_packets", "marked_packets", "early_packets"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_netem_below_htb(version: str, form: str) -> None:
    name = f"tc/tc-{version}-netem-htb.{form}"
    lo, towards_romeo, htb, netem = parse_tc_qdiscs(read(name), name)
    assert (lo.kind, lo.handle, lo.dev, lo.root, lo.parent) == ("noqueue", "0:", "lo", True, None)
    assert (towards_romeo.dev, towards_romeo.limit_packets) == ("eth0", 20000)
    assert (towards_romeo.delay_s, towards_romeo.jitter_s) == (0.003, 0)
    assert towards_romeo.loss_ratio is None
    assert towards_romeo.sent_bytes == 8746887116
    assert (htb.kind, htb.handle, htb.options["default"]) == ("htb", "1:", "0x3")
    assert (netem.kind, netem.handle, netem.parent, netem.root) == ("netem", "3:", "1:3", False)
    assert (netem.delay_s, netem.jitter_s) == (0.003, 0.001)
    assert netem.loss_ratio == pytest.approx(0.00573071)
    assert netem.seed == (42 if version == "7.2" else None)
    assert (netem.sent_bytes, netem.sent_packets, netem.drops) == (629770895, 488963, 2747)
    assert (netem.overlimits, netem.requeues) == (0, 0)
    assert (netem.backlog_bytes, netem.qlen_packets) == (0, 0)
    if version == "7.2":
        assert netem.stats["delayed"] == 488963
        assert netem.stats["dropped"] == 2747


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_red(version: str, form: str) -> None:
    name = f"tc/tc-{version}-red.{form}"
    _, red = parse_tc_qdiscs(read(name), name)
    assert (red.kind, red.handle, red.parent, red.dev) == ("red", "5:", "1:1", None)
    assert (red.limit_bytes, red.min_bytes, red.max_bytes) == (366000, 100000, 225000)
    assert (red.ecn, red.drops, red.overlimits) == (False, 8, 8)
    assert (red.marked_packets, red.early_packets) == (0, 8)
    assert (red.pdrop_packets, red.other_packets) == (0, 0)
    assert red.limit_packets is None


@pytest.mark.parametrize("form", FORMS)
def test_red_that_marks(form: str) -> None:
    _, red = parse_tc_qdiscs(read(f"tc/tc-7.2-red-marked.{form}"), "a")
    assert (red.ecn, red.marked_packets, red.early_packets) == (True, 242, 1)
    assert (red.backlog_bytes, red.qlen_packets) == (22710, 15)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_tbf(version: str, form: str) -> None:
    (tbf,) = parse_tc_qdiscs(read(f"tc/tc-{version}-tbf.{form}"), "a")
    assert tbf.rate_bps == 100e6
    # The text is rounded; iproute2 before 6.15 loses a few bytes in its own conversion.
    burst_bytes = 32762 if form == "json" and version != "7.2" else 32768
    assert tbf.burst_bytes == burst_bytes
    assert tbf.latency_s == pytest.approx(0.102236, rel=0.003)
    assert (tbf.limit_bytes, tbf.peak_rate_bps) == (None, None)


def test_peak_rate() -> None:
    (text,) = parse_tc_qdiscs(read("tc/tc-7.2-tbf-peak.txt"), "a")
    (old,) = parse_tc_qdiscs(read("tc/tc-5.9-tbf-peak.json"), "a")
    (new,) = parse_tc_qdiscs(read("tc/tc-7.2-tbf-peak.json"), "a")
    assert (text.peak_rate_bps, old.peak_rate_bps, new.peak_rate_bps) == (12e6, 12e6, None)
    assert (text.burst_bytes, old.burst_bytes, new.burst_bytes) == (10240, 10240, 10240)
    assert (text.latency_s, old.latency_s) == (0.05, 0.05)


@pytest.mark.parametrize("form", FORMS)
def test_all_of_netem(form: str) -> None:
    (netem,) = parse_tc_qdiscs(read(f"tc/tc-7.2-netem-all.{form}"), "a")
    assert (netem.delay_s, netem.jitter_s, netem.rate_bps) == (0.1, 0.01, 10e6)
    assert netem.seed == 10806664341331470430
    # Gilbert-Elliott is no single ratio.
    assert netem.loss_ratio is None
    (netem,) = parse_tc_qdiscs(read(f"tc/tc-7.2-netem-slot.{form}"), "a")
    assert (netem.loss_ratio, netem.rate_bps, netem.delay_s) == (0.1, 5e6, None)


def test_gilbert_elliott_options() -> None:
    (netem,) = parse_tc_qdiscs(read("tc/tc-7.2-netem-all.txt"), "a")
    assert (netem.options["p"], netem.options["1-h"], netem.options["1-k"]) == ("1%", "70%", "0.1%")
    (netem,) = parse_tc_qdiscs(read("tc/tc-7.2-netem-all.json"), "a")
    assert netem.options["loss-gemodel"] == {"p": 0.01, "r": 0.1, "1-h": 0.7, "1-k": 0.001}


@pytest.mark.parametrize("form", FORMS)
def test_netems_limit_is_in_packets(form: str) -> None:
    # It was given as `limit 100MB`.
    (netem,) = parse_tc_qdiscs(read(f"tc/tc-7.2-netem-limit.{form}"), "a")
    assert (netem.limit_packets, netem.limit_bytes) == (104857600, None)
    assert netem.delay_s == pytest.approx(100e-6)


@pytest.mark.parametrize(
    ("kind", "limit_packets", "limit_bytes"),
    [
        ("fq", 10000, None),
        ("fq_codel", 10240, None),
        ("bfifo", None, 3000000),
        ("pfifo", 50, None),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_limits(kind: str, form: str, limit_packets: int | None, limit_bytes: int | None) -> None:
    _, leaf = parse_tc_qdiscs(read(f"tc/tc-7.2-{kind}.{form}"), "a")
    assert (leaf.kind, leaf.limit_packets, leaf.limit_bytes) == (kind, limit_packets, limit_bytes)


@pytest.mark.parametrize("form", FORMS)
def test_statistics_of_fq_codel_and_fq(form: str) -> None:
    _, fq_codel = parse_tc_qdiscs(read(f"tc/tc-7.2-fq_codel.{form}"), "a")
    assert (fq_codel.stats["maxpacket"], fq_codel.stats["new_flow_count"]) == (1514, 5)
    assert fq_codel.stats["old_flows_len"] == 1
    _, fq = parse_tc_qdiscs(read(f"tc/tc-7.2-fq.{form}"), "a")
    assert (fq.stats["flows"], fq.stats["inactive"], fq.stats["flows_plimit"]) == (2, 1, 111)


@pytest.mark.parametrize(
    "name",
    [
        *(f"{v}-{n}" for v in VERSIONS for n in ("netem-htb", "red", "red-marked", "tbf")),
        *(f"7.2-{n}" for n in ("netem-all", "netem-limit", "netem-slot", "fq", "fq_codel")),
        *(f"7.2-{n}" for n in ("bfifo", "pfifo", "pfifo_fast", "red-ecn", "cake")),
        "6.1-ingress",
    ],
)
def test_both_forms_agree(name: str) -> None:
    from_json = parse_tc_qdiscs(read(f"tc/tc-{name}.json"), "a")
    from_text = parse_tc_qdiscs(read(f"tc/tc-{name}.txt"), "a")
    for json_qdisc, text_qdisc in zip(from_json, from_text, strict=True):
        for field in dataclasses.fields(Qdisc):
            if field.name in ("options", "stats"):
                continue
            left, right = getattr(json_qdisc, field.name), getattr(text_qdisc, field.name)
            if field.name in MOVING:
                assert (left is None) == (right is None), field.name
            elif isinstance(left, float):
                assert right == pytest.approx(left, rel=0.01), field.name
            else:
                assert left == right or field.name == "burst_bytes", field.name


def test_ingress() -> None:
    for form in FORMS:
        _, ingress = parse_tc_qdiscs(read(f"tc/tc-6.1-ingress.{form}"), "a")
        assert (ingress.kind, ingress.handle, ingress.root) == ("ingress", "ffff:", False)
        assert (ingress.parent, ingress.drops) == ("ffff:fff1", 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_kind_younger_than_tc(form: str) -> None:
    # dualpi2 came with Linux 6.17, so tc 6.1 puts words in the place of its options.
    name = f"tc/tc-6.1-dualpi2.{form}"
    tbf, dualpi2, clsact = parse_tc_qdiscs(read(name), name)
    assert (tbf.kind, tbf.rate_bps) == ("tbf", 40e6)
    assert (dualpi2.kind, dualpi2.handle, dualpi2.parent) == ("dualpi2", "10:", "1:1")
    assert dualpi2.drops == 0
    assert dualpi2.backlog_bytes == 0
    assert clsact.handle == "ffff:"


def test_without_statistics() -> None:
    qdiscs = parse_tc_qdiscs(
        "qdisc mq 0: dev eth0 root \n"
        "qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024 \n",
        "a",
    )
    assert [(q.kind, q.parent) for q in qdiscs] == [("mq", None), ("fq_codel", ":1")]
    assert (qdiscs[1].limit_packets, qdiscs[1].sent_bytes, qdiscs[1].drops) == (10240, None, None)
    assert parse_tc_qdiscs("[]", "a") == parse_tc_qdiscs("[ ]\n", "a") == ()


@pytest.mark.parametrize("name", ["6.1-htb-class.json", "7.2-htb-class.json", "7.2-htb-class.txt"])
def test_htb_class(name: str) -> None:
    # tc 6.1 prints text in spite of -j.
    (htb,) = parse_tc_classes(read(f"tc/tc-{name}"), "a")
    assert (htb.kind, htb.handle, htb.leaf) == ("htb", "1:3", "3:")
    assert (htb.root, htb.parent) == (True, None)
    assert (htb.rate_bps, htb.ceil_bps, htb.prio, htb.dev) == (1e9, 1e9, 0, None)
    old = name.startswith("6.1")
    assert (htb.burst_bytes, htb.cburst_bytes) == ((32625, 1251375) if old else (32744, 1251496))
    assert (htb.sent_bytes, htb.sent_packets, htb.drops) == (629770895, 488963, 2747)
    assert (htb.backlog_bytes, htb.qlen_packets) == (0, 0)
    assert (htb.stats["lended"], htb.stats["tokens"]) == (488963, 4086)
    assert htb.stats["ctokens"] == 156430


def test_htb_class_in_detail() -> None:
    (htb,) = parse_tc_classes(read("tc/tc-7.2-htb-class-details.txt"), "a")
    assert (htb.burst_bytes, htb.cburst_bytes, htb.rate_bps) == (32744, 1251496, 1e9)
    assert htb.options["quantum"] == "200000"


def test_classes_of_other_kinds() -> None:
    for form in FORMS:
        htb, flow = parse_tc_classes(read(f"tc/tc-7.2-fq_codel-class.{form}"), "a")
        assert (htb.rate_bps, htb.ceil_bps, htb.leaf) == (20e6, 30e6, "5:")
        assert (flow.kind, flow.handle, flow.parent) == ("fq_codel", "5:c9", "5:")
        assert (flow.sent_bytes, flow.drops, flow.qlen_packets) == (None, 0, 24)
    htb, red = parse_tc_classes(read("tc/tc-6.1-red-class.txt"), "a")
    assert red == TcClass("red", "5:1", None, False, "5:")
    assert len(parse_tc_classes(read("tc/tc-6.1-prio-class.txt"), "a")) == 3
    (tbf,) = parse_tc_classes(read("tc/tc-6.15-tbf-class.json"), "a")
    assert (tbf.kind, tbf.sent_bytes) == ("tbf", None)


def test_a_second_in_milliseconds() -> None:
    """tc's own word for it, from tbf with a limit of 1.25 MB at 10 Mbit/s."""
    (tbf,) = parse_tc_qdiscs(
        "qdisc tbf 8001: root refcnt 2 rate 10Mbit burst 32Kb lat 1e+03ms \n"
        " Sent 1 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n"
        " backlog 0b 0p requeues 0\n",
        "a",
    )
    assert tbf.latency_s == 1.0


def test_rounded_units() -> None:
    (tbf,) = parse_tc_qdiscs(
        "qdisc tbf 1: root refcnt 2 rate 2500Kbit burst 32Kb peakrate 10Mibit limit 1Mb lat 1.5s \n"
        " Sent 1 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n"
        " rate 8bit 1pps backlog 10Kb 7p requeues 0 \n",
        "a",
    )
    assert (tbf.rate_bps, tbf.burst_bytes) == (2.5e6, 32768)
    assert (tbf.peak_rate_bps, tbf.limit_bytes, tbf.latency_s) == (10 * 1024**2, 1048576, 1.5)
    assert (tbf.backlog_bytes, tbf.qlen_packets) == (10240, 7)


SENT = " Sent 1 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n"
BACKLOG = " backlog 0b 0p requeues 0\n"


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("qdisc tbf 1: root rate fast \n", "line 1", "'rate'"),
        ("qdisc netem 1: root limit many delay 3ms\n", "line 1", "'limit'; expected a value"),
        ("qdisc netem 1: root limit 9 delay 3 ms\n", "line 1", "'3'"),
        ("qdisc tbf root\n", "line 1", "KIND HANDLE"),
        (f"qdisc prio 1: root \n{BACKLOG}", "line 2", "Sent and backlog"),
        (f"qdisc prio 1: root \n{SENT}", "line 2", "cut off"),
        (f"qdisc prio 1: root \n{SENT}{SENT}", "line 3", "Sent and backlog"),
        (f"qdisc prio 1: root \n{SENT}{BACKLOG}qdisc prio 2: parent 1:1 \n", "line 4", "cut off"),
        (f"qdisc red 5: root limit 9b \n{SENT}{BACKLOG}", "line 3", "cut off"),
        (f"qdisc prio 1: root \n{SENT}{BACKLOG}State Recv-Q\n", "line 4", "found 'State"),
        ('[{"kind":"red","root":true}]', "$[0].handle", "missing"),
        ('[{"kind":"red","handle":5}]', "$[0].handle", "a string"),
        ('[{"kind":"red","handle":"5:","drops":"8"}]', "$[0].drops", "a number"),
        ('[{"kind":"tbf","handle":"5:","options":{"rate":"x"}}]', "$[0].options.rate", "a number"),
        ('[{"kind":"netem","handle":"5:","options":{"delay":1}}]', "$[0].options.delay", "object"),
        ('[{"ifname":"lo"}]', "$[0].kind", "missing"),
        ("[1]", "$[0]", "an object"),
        ('{"kind":"red"}', "line 1", "expected the output of `tc"),
        ('[{"kind":"red",', "line 1 column 16", "cut off"),
    ],
)
def test_what_is_wrong_is_named(text: str, where: str, problem: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_tc_qdiscs(text, "qdisc.json")
    assert caught.value.where == where
    assert problem in caught.value.problem


def test_an_htb_class_cut_off() -> None:
    with pytest.raises(TruncatedError, match="line 3"):
        parse_tc_classes(f"class htb 1:1 root prio 0 rate 1Mbit ceil 1Mbit \n{SENT}{BACKLOG}", "a")


def test_qdiscs_are_no_classes() -> None:
    with pytest.raises(ParseError, match="class"):
        parse_tc_classes(read("tc/tc-7.2-red.json"), "a")
    with pytest.raises(ParseError, match=r"this is tc output; expected .*class"):
        parse_tc_classes(read("tc/tc-7.2-red.txt"), "a")


# --- the queue sampler's file ---


def test_samples() -> None:
    samples = parse_qdisc_samples(read("tc/samples-6.1.txt"), "queue.txt")
    times_s = [sample.time_s for sample in samples]
    assert times_s[:3] == [1700000003.774689, 1700000004.174964, 1700000004.275116]
    assert times_s[3:] == [1700000008.778619, 1700000008.878651]
    first, last = samples[0].qdiscs[0], samples[-1].qdiscs[0]
    assert (first.kind, first.rate_bps) == ("tbf", 1e8)
    assert (first.backlog_bytes, first.sent_bytes) == (0, 980)
    assert (last.qlen_packets, last.backlog_bytes, last.drops) == (625, 946250, 1291)


def test_what_a_killed_sampler_leaves() -> None:
    text = read("tc/samples-6.1.txt")
    whole = parse_qdisc_samples(text, "queue.txt")
    for cut in range(1, len(text)):
        left = parse_qdisc_samples(text[:cut], "queue.txt", allow_truncated_tail=True)
        assert left == whole[: len(left)]
        assert len(left) == text[:cut].count("\n") // 2
        if text[:cut].count("\n") != 2 * len(left) or text[cut - 1] != "\n":
            with pytest.raises(TruncatedError, match="cut off"):
                parse_qdisc_samples(text[:cut], "queue.txt")


def test_other_text_is_refused() -> None:
    with pytest.raises(ParseError, match=r"^queue\.txt, line 1: this is tc JSON; expected samples"):
        parse_qdisc_samples(read("tc/tc-6.1-tbf.json"), "queue.txt")
    with pytest.raises(ParseError, match=r"line 3: found .*; expected '# t=SECONDS'"):
        parse_qdisc_samples("# t=1.000000000\n[]\nhallo\n[]\n", "queue.txt")
