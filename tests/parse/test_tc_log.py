"""What tc printed several times into one file, or with classes and commands between; and its JSON of 2018."""

from __future__ import annotations

import json

import pytest
from tool_outputs import read

from measuretwice.parse import ParseError, parse_qdisc_samples, parse_tc_qdiscs
from measuretwice.parse.formats import format_of
from measuretwice.parse.tc_log import (
    as_snapshots,
    classes_of,
    parse_snapshots,
    samples_in,
    snapshots_of,
)

TEXT = read("tc/tc-7.2-netem-htb.txt")
JSON = read("tc/tc-7.2-netem-htb.json")
CLASSES = read("tc/tc-7.2-htb-class.txt")


def stamped(second: int) -> str:
    """tc's text with a time before each line."""
    return "".join(f"{1731700000 + second}.5 {line}\n" for line in TEXT.splitlines())


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (TEXT + TEXT, [None, None]),
        (f"$ tc -s qdisc\n{TEXT}$ iperf3 -c 10.10.2.100\n$ tc -s qdisc\n{TEXT}$ exit\n", [None, None]),
        (f"1731700000.5\n{TEXT}\n1731700001.5\n{TEXT}", [1731700000.5, 1731700001.5]),
        (stamped(0) + stamped(1), [1731700000.5, 1731700001.5]),
        (TEXT + CLASSES + TEXT, [None, None]),
        (JSON + JSON, [None, None]),
        (f"[sudo] password for student:\n# 1731700000.5\n{JSON}# 1731700001.5\n{JSON}", [1731700000.5, 1731700001.5]),
    ],
)  # fmt: skip
def test_each_look_is_as_tc_alone_prints_it(text: str, times: list[float | None]) -> None:
    looks = snapshots_of(text)
    assert [look.time_s for look in looks] == times
    alone = parse_snapshots(JSON if "kind" in text else TEXT, "tc")
    assert [parse_snapshots(look.text, "tc") for look in looks] == [alone, alone]
    again = as_snapshots(text, "tc")
    assert [look.text for look in snapshots_of(again)] == [look.text for look in looks]


def test_classes_are_told_from_qdiscs() -> None:
    assert classes_of(TEXT) is None
    assert classes_of(f"{TEXT}$ tc -s class show dev eth2\n{CLASSES}") == CLASSES.replace(
        "\n\n", "\n"
    )
    known = format_of(CLASSES, "a")
    assert known.tool == "tc classes"
    (htb,) = known.parse(known.tidied(CLASSES, "a"), "a")
    assert htb.rate_bps


OLD = """[{"kind":"htb","handle":"1:","dev":"eth2","root":true,"refcnt":2,"options":{r2q 10 default 0x3
 direct_packets_stat 0 },"bytes":5,"packets":1,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0},
{"kind":"netem","handle":"3:","dev":"eth2","parent":"1:3","options": {limit 1000 delay 20.0ms  5.0ms loss 0.1% rate 10Mbit
},"bytes":5,"packets":1,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0},
{"kind":"red","handle":"4:","dev":"eth3","root":true,"options": {limit 366000b min 100000b max 225000b ecn },"bytes":5,
"packets":1,"drops":9,"overlimits":0,"requeues":0,"backlog":0,"qlen":0  marked 1 early 2 pdrop 3 other 4},
{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"options":{ },"bytes":0,"packets":0,"drops":0}]
"""


def test_json_of_2018_is_put_right() -> None:
    fixed = as_snapshots(OLD, "tc.json")
    assert json.loads(fixed)
    htb, netem, red, noqueue = parse_snapshots(fixed, "tc.json")
    assert (htb.kind, htb.options["default"], noqueue.options) == ("htb", "0x3", {})
    assert (netem.limit_packets, netem.delay_s, netem.jitter_s) == (1000, 0.02, 0.005)
    assert (netem.loss_ratio, netem.rate_bps, netem.sent_packets) == (0.001, 10e6, 1)
    assert (red.limit_bytes, red.min_bytes, red.max_bytes, red.ecn) == (
        366000,
        100000,
        225000,
        True,
    )
    assert (red.marked_packets, red.early_packets, red.pdrop_packets, red.other_packets) == (
        1,
        2,
        3,
        4,
    )


def test_an_option_of_2018_that_is_no_value_is_refused() -> None:
    with pytest.raises(ParseError, match=r"found 'limit 10x'; expected a value as tc prints it"):
        parse_snapshots(OLD.replace("limit 1000", "limit 10x"), "tc.json")


def test_a_document_that_is_cut_off_is_refused() -> None:
    with pytest.raises(ParseError, match="cut off"):
        parse_snapshots(JSON[: len(JSON) // 2], "tc.json")


def test_a_queue_that_was_looked_at_often_has_a_history() -> None:
    red = read("tc/tc-7.2-red-marked.txt")
    text = "".join(f"{1731700000 + second}.25\n{red}" for second in range(12))
    samples = parse_qdisc_samples(samples_in(text) or "", "queue.txt")
    assert [sample.time_s for sample in samples] == [1731700000.25 + second for second in range(12)]
    assert samples[3].qdiscs == parse_tc_qdiscs(red, "tc")
    json_text = read("tc/tc-7.2-red-marked.json")
    text = "".join(f"{1731700000 + second}.25\n{json_text}" for second in range(12))
    samples = parse_qdisc_samples(samples_in(text) or "", "queue.txt")
    assert samples[11].qdiscs == parse_tc_qdiscs(json_text, "tc")


@pytest.mark.parametrize("times", [("1731700000.25",) * 12, tuple(f"14:26:{n}" for n in range(10, 22))])  # fmt: skip
def test_without_times_or_a_day_there_is_no_history(times: tuple[str, ...]) -> None:
    assert samples_in("".join(f"{time}\n{TEXT}" for time in times)) is None


def test_what_a_logger_puts_before_each_line_is_taken_away() -> None:
    (look,) = snapshots_of("".join(f"router-1  | {line}\n" for line in TEXT.splitlines()))
    assert parse_snapshots(look.text, "tc") == parse_snapshots(TEXT, "tc")
