"""The checks of flows, queues and senders on runs made by hand, at and beside their thresholds."""

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from measuretwice.checks import Member, RunUnderTest, causes, check_set, conclusion
from measuretwice.checks.queue_discipline import cell_log, idle_notes
from measuretwice.checks.shared_queue import _size_symptom, same_numbers
from measuretwice.checks.whole_set import small_n
from measuretwice.lab import load_lab
from measuretwice.measure import imported
from measuretwice.measure.fields import in_unit, label_of
from measuretwice.measure.host_state import HostState, Node, Socket, Span, sockets_of
from measuretwice.measure.node_state import ecn_packets
from measuretwice.parse import Qdisc, parse_ss

ROOT = Path(__file__).parents[2]
SCALE, BUFFERS, QUEUES = (load_lab(ROOT, name) for name in ("scale", "buffers", "queues"))


@dataclass(frozen=True)
class HonestRun:
    """A run that nothing is wrong with: its settings, its values, and what its lab leaves out."""

    params: Mapping[str, Any]
    values: Mapping[str, Any]
    leave_out: tuple[str, ...] = ()
    flows_each: int | None = None

    def raised(self, params: Mapping[str, Any] | None = None, **values: Any) -> list[str]:
        """The ids of the findings of this run with other settings and values."""
        run = RunUnderTest(
            {**self.params, **(params or {})}, {**self.values, **values}, flows_each=self.flows_each
        )
        return [finding.id for finding in causes(run, self.leave_out)]


MANY_FLOWS = HonestRun(
    {**SCALE.defaults(), **SCALE.trials[1].set},
    {
        "flows": 10,
        "duration_s": 150.0,
        "goodput_bps": 95.6e6,
        "own_goodput_bps": 97.9e6,
        "mss_bytes": 1448,
        "rtt_min_ms": 20.0,
        "rtt_mean_ms": 225.0,
        "segments": 1_200_000,
        "retransmits": 160,
        "queue_drops": 162,
        "halvings": 60,
        "queue_packet_bytes": 1514.0,
        "queue_delay_mean_ms": 205.0,
        "own_flows": 10,
        "own_sum_bps": 95.5e6,
        "own_rtt_ms": 225.0,
        "own_jain": 0.95,
        "own_groups_error_ratio": 0.002,
    },
    tuple(SCALE.file.checks.leave_out),
)
TWO_FLOWS = HonestRun(
    {**BUFFERS.defaults(), **BUFFERS.trials[1].set},
    {
        "flows": 2,
        "goodput_bps": 95.6e6,
        "mss_bytes": 1448,
        "rtt_min_ms": 50.0,
        "rtt_mean_ms": 150.0,
        "retransmits": 1299,
        "qdisc_drops": 1299,
        "other_qdisc_drops": 0,
        "queue_limit_bytes": 1_250_000,
        "buffer_bdp_ratio_min": 1.0,
        "buffer_bdp_ratio_max": 2.0,
    },
    tuple(BUFFERS.file.checks.leave_out),
    BUFFERS.file.checks.flows_each,
)
DISCIPLINE = HonestRun(
    {
        "discipline": "red",
        "receiver": "host-3",
        "parallel_flows": 2,
        "rate_mbit": 100,
        "rtt_ms": 2,
        "red_avpkt_bytes": 1000,
        "red_burst_packets": 141,
        "judged_by": "delay",
    },
    {
        "flows": 2,
        "goodput_bps": 95.6e6,
        "rtt_min_ms": 2.0,
        "utilisation": 0.999,
        "queue_mean_packets": 71.0,
        "queue_drops": 60,
        "queue_marks": 0,
        "queue_delay_mean_ms": 9.1,
        "queue_kind": "red",
        "red_limit_bytes": 366000,
        "red_max_bytes": 225000,
        "red_ewma_log": 6,
        "red_cell_log": 13,
        "rate_rows": 20,
        "rate_rows_spanning": 0,
        "host_3_received_flows": 2,
    },
)
SENDER = HonestRun(
    {"congestion_control": "vegas", "average_from_s": 30},
    {
        "congestion_control": "vegas",
        "steady_goodput_bps": 95e6,
        "sender_path_rtt_ms": 40.0,
        "tcp_min_rtt_ms": 40.0,
        "cwnd_over_rate_ms": 41.3,
        "rising_ratio": 1.0,
        "rising_steps": 2,
        "table_rows": 60,
        "table_rows_foreign": 0,
        "table_interval_s": 1.0,
        "table_lowest_bps": 90e6,
        "lowest_tenth_bps": 80e6,
    },
)


@pytest.mark.parametrize("run", [MANY_FLOWS, TWO_FLOWS, DISCIPLINE, SENDER])
def test_an_honest_run_raises_nothing(run: HonestRun) -> None:
    assert run.raised() == []


# Many flows


def test_the_path_is_as_long_as_its_smallest_round_trip_by_ping_or_tcp() -> None:
    """Half an hour behind a full queue: TCP's own smallest is of its last five minutes."""
    assert MANY_FLOWS.raised(rtt_min_ms=128.266, path_rtt_ms=20.0) == []
    assert MANY_FLOWS.raised(rtt_min_ms=128.266, path_rtt_ms=128.1) == ["round-trip-time"]
    assert MANY_FLOWS.raised(rtt_min_ms=128.266) == ["round-trip-time"]
    assert MANY_FLOWS.raised(rtt_min_ms=9.0, path_rtt_ms=20.0) == ["round-trip-time"]


@pytest.mark.parametrize(
    ("counted", "events", "found"),
    [
        (62, 60, False),
        (79, 60, False),
        (300, 60, True),
        (10, 60, True),
        (3, 0, False),
        (9, 0, True),
    ],
)
def test_counted_halvings(counted: int, events: int, found: bool) -> None:
    assert (
        MANY_FLOWS.raised(own_counted_halvings=counted, halvings=events)
        == ["halving-counter"] * found
    )


@pytest.mark.parametrize(
    ("by", "retransmits", "found"),
    [
        ("retransmissions", 164, False),
        ("retransmissions", 320, True),
        ("drops", 320, False),
    ],
)
def test_what_is_called_a_loss(by: str, retransmits: int, found: bool) -> None:
    assert (
        MANY_FLOWS.raised({"loss_by": by}, retransmits=retransmits) == ["loss-definition"] * found
    )


@pytest.mark.parametrize(
    ("said", "found"), [(95.4e6, False), (97.0e6, False), (100.5e6, True), (80e6, True)]
)
def test_sums_over_unequal_times(said: float, found: bool) -> None:
    assert MANY_FLOWS.raised(own_sum_bps=said) == ["unequal-intervals"] * found


def test_what_the_ends_of_a_short_interval_may_make() -> None:
    """Eighteen seconds, a sample a second: 5.6 % on top. With finer samples it isn't excused."""
    short: dict[str, Any] = {"own_sum_bps": 92.0e6, "own_groups_error_ratio": 0.07}
    assert MANY_FLOWS.raised(duration_s=18.0, **short) == []
    assert MANY_FLOWS.raised({"sample_interval_s": 0.1}, duration_s=18.0, **short) == [
        "unequal-intervals"
    ]
    assert MANY_FLOWS.raised(duration_s=150.0, **short) == ["unequal-intervals"]
    assert MANY_FLOWS.raised(duration_s=18.0, own_groups_error_ratio=0.19) == ["mislabelled-row"]
    assert MANY_FLOWS.raised(duration_s=18.0, own_sum_bps=104.8e6) == ["unequal-intervals"]


def test_the_base_delay_in_the_model() -> None:
    assert MANY_FLOWS.raised(own_rtt_ms=20.0) == ["standing-queue"]
    assert MANY_FLOWS.raised(own_rtt_ms=212.0) == []


@pytest.mark.parametrize(("count", "found"), [(6, False), (4, True)])
def test_flows_of_both_directions_add_up(count: int, found: bool) -> None:
    params = {"up_flows": 2, "down_flows": 4}
    run = RunUnderTest(dict(params), {"flows": count}, flows_of=("up_flows", "down_flows"))
    assert [finding.id for finding in causes(run)] == (["flows"] if found else [])


def test_flows_that_are_missing_explain_the_rest() -> None:
    assert MANY_FLOWS.raised(flows=9, own_flows=9) == ["missing-flows"]
    assert MANY_FLOWS.raised(own_flows=9) == ["missing-flows"]
    assert MANY_FLOWS.raised(
        flows=9, own_flows=10, own_sum_bps=80e6, own_groups_error_ratio=0.2
    ) == ["missing-flows"]
    assert MANY_FLOWS.raised({"flows": 9}, flows=9, own_flows=9) == []


def test_rows_under_another_name() -> None:
    assert MANY_FLOWS.raised(own_groups_error_ratio=0.13) == ["mislabelled-row"]
    assert MANY_FLOWS.raised(own_groups_error_ratio=0.02) == []


@pytest.mark.parametrize(
    ("judged_by", "share", "found"),
    [("percent", 0.0096, True), ("fair-share", 0.0096, False), ("percent", 0.0011, False)],
)
def test_shares_of_a_thousand(judged_by: str, share: float, found: bool) -> None:
    seen = {"rival_share": share, "rival_fair_share": 0.001, "rivals_found": 1}
    assert (
        MANY_FLOWS.raised({"judged_by": judged_by, "rival_flows": 1}, **seen)
        == ["fair-share"] * found
    )


def test_segments_together_explain_what_their_drops_are() -> None:
    large = {"queue_packet_bytes": 2988.0, "retransmits": 500}
    assert MANY_FLOWS.raised({"loss_by": "retransmissions"}, **large) == ["offload"]
    assert MANY_FLOWS.raised(queue_packet_bytes=1514.4) == []


def test_other_labs_are_not_judged_by_what_they_lack() -> None:
    other = load_lab(ROOT, "queues")
    run = RunUnderTest(
        {**other.defaults(), **other.trials[1].set}, {"flows": 2, "goodput_bps": 95e6}
    )
    ids = {finding.id for finding in causes(run)}
    assert not ids & {"missing-flows", "unequal-intervals", "standing-queue", "fair-share"}


# Flows that share a link


@pytest.mark.parametrize(
    ("limit", "found"),
    [(1_310_720, True), (163_840, True), (1_249_990, False), (1_265_000, False), (None, False)],
)
def test_the_buffer_that_the_qdisc_has(limit: int | None, found: bool) -> None:
    assert TWO_FLOWS.raised(queue_limit_bytes=limit) == ["size-suffix"] * found


def test_what_a_buffer_is_called_for_whom() -> None:
    assert TWO_FLOWS.raised({"buffer_claimed_ratio": 1}) == []
    assert TWO_FLOWS.raised({"buffer_claimed_ratio": 1, "buffer_claimed_for": "every flow"}) == [
        "whose-bdp"
    ]
    assert TWO_FLOWS.raised({"buffer_claimed_ratio": 0.1}) == ["whose-bdp"]
    shortest = {"buffer_claimed_for": "shortest path"}
    assert TWO_FLOWS.raised({"buffer_claimed_ratio": 1, **shortest}) == ["whose-bdp"]
    assert TWO_FLOWS.raised({"buffer_claimed_ratio": 2, **shortest}) == []
    same = {"buffer_bdp_ratio_max": 1.02}
    assert (
        TWO_FLOWS.raised({"buffer_claimed_ratio": 1, "buffer_claimed_for": "every flow"}, **same)
        == []
    )


def test_a_wrong_buffer_explains_what_it_is_called() -> None:
    wrong = {
        "queue_limit_bytes": 163_840,
        "buffer_bdp_ratio_min": 0.13,
        "buffer_bdp_ratio_max": 0.26,
    }
    assert TWO_FLOWS.raised({"buffer_claimed_ratio": 1}, **wrong) == ["size-suffix"]


@pytest.mark.parametrize(
    ("mean", "true", "unreadable", "found"),
    [
        (0.0, 500.0, 0, True),
        (508.0, 500.0, 0, False),
        (500.0, 500.0, 3, True),
        (None, None, 200, True),
        (0.0, 3.0, 0, False),
        (250.0, 500.0, 0, True),
    ],
)
def test_lengths_against_json(
    mean: float | None, true: float | None, unreadable: int, found: bool
) -> None:
    seen = {
        "length_rows": 200,
        "length_rows_unreadable": unreadable,
        "length_rows_mean_packets": mean,
        "length_rows_true_packets": true,
    }
    assert TWO_FLOWS.raised(**seen) == ["field-number"] * found


@pytest.mark.parametrize(
    ("backwards", "ratio", "found"),
    [(0, 1.003, False), (1, 1.003, True), (0, 0.977, True), (0, 0.9984, False), (0, None, True)],
)
def test_windows_against_ss(backwards: int, ratio: float | None, found: bool) -> None:
    seen = {
        "window_rows": 400,
        "window_rows_backwards": backwards,
        "window_rows_ratio": ratio,
    }
    assert TWO_FLOWS.raised(**seen) == ["units"] * found


def test_a_hidden_queue_is_told_before_the_retransmissions_that_it_makes() -> None:
    assert TWO_FLOWS.raised(other_qdisc_drops=1500, retransmits=2900) == ["other-drops"]


def compared(
    by_trial: dict[int, list[float]], compare_by: str = "jains_index", case: int | None = None
) -> list[Member]:
    params = {**TWO_FLOWS.params, "compare_by": compare_by}
    return [
        Member(trial, (), seed, params, {"jains_index": value}, case)
        for trial, values in by_trial.items()
        for seed, value in enumerate(values, start=1)
    ]


def set_findings(by_trial: dict[int, list[float]], compare_by: str = "jains_index") -> list[str]:
    return [found.finding.id for found in check_set(BUFFERS, compared(by_trial, compare_by))]


def test_one_run_of_each_is_too_few_to_compare() -> None:
    assert set_findings({1: [0.6], 3: [0.9]}) == ["one-run"]
    assert set_findings({1: [0.6], 3: [0.9]}, "nothing") == []
    assert set_findings({1: [0.6, 0.9]}) == []


def test_enough_runs_are_those_that_tell_the_trials_apart() -> None:
    five = {1: [0.60, 0.62, 0.61, 0.60, 0.62], 3: [0.90, 0.91, 0.89, 0.90, 0.91]}
    assert set_findings(five) == []
    # Two or three of each are far apart as well, and don't say how far such runs may lie apart.
    assert set_findings({trial: values[:2] for trial, values in five.items()}) == ["one-run"]
    assert set_findings({trial: values[:4] for trial, values in five.items()}) == ["one-run"]
    unclear = {1: [0.6, 0.9, 0.75, 0.6, 0.9], 3: [0.9, 0.7, 0.8, 0.7, 0.9]}
    said = check_set(BUFFERS, compared(unclear))[0].finding
    assert said.id == "one-run"
    assert "Jain's index: 0.75 in trial 1, 0.8 in trial 3, from 5 runs each" in said.measured
    assert "the difference is -0.241 to 0.141 by 95 %" in said.symptom


def test_a_case_takes_undecided_for_an_answer_after_as_many_runs_as_it_plans() -> None:
    case = BUFFERS.case_number(BUFFERS.pitfall("one-run"))
    planned = BUFFERS.case(case).fixed.repeat
    values = [0.6, 0.9, 0.75, 0.8, 0.7]
    for count, solved in ((planned - 1, False), (planned, True)):
        alike = dict.fromkeys((1, 2), (values * planned)[:count])
        found = [found.finding for found in check_set(BUFFERS, compared(alike, case=case))]
        assert bool(found) is not solved
        assert all(f"From {planned} runs of each on" in finding.symptom for finding in found)
        # Runs that nobody planned carry no claim, however many there are.
        assert check_set(BUFFERS, compared(alike))


def test_the_conclusion_of_several_runs_has_their_interval() -> None:
    case = BUFFERS.case_number(BUFFERS.pitfall("one-run"))
    planned = BUFFERS.case(case).fixed.repeat
    few, low, high = 5, [0.60, 0.62, 0.61, 0.60, 0.62], [0.90, 0.91, 0.89, 0.90, 0.91]

    def said(of_first: list[float], of_second: list[float], by: str = "jains_index") -> str:
        runs = compared({1: of_first, 2: of_second}, by, case)
        return conclusion(BUFFERS, runs, "jains_index", "Jain's index", {1: of_first, 2: of_second})

    apart = said(low, high)
    assert f"Means of {few} runs of each, Jain's index: 0.61 in trial 1, 0.902 in trial 2." in apart
    assert (
        "The difference is -0.292 (trial 1 less trial 2), and its 95 % interval is -0.30" in apart
    )
    assert "Zero isn't in it, so trial 2 has more" in apart
    assert "That holds if you had settled on 5 runs of each beforehand" in apart
    assert "beforehand" not in said(low * planned, high * planned)
    assert "trial 1 has more" in said(high, low)
    assert "don't tell the trials apart. With 30 of each planned, that is the answer" in said(
        low * planned, low * planned
    )
    # Where no run says that it is compared, nobody has planned.
    assert said(low, low, "nothing").endswith(
        "Zero is in it, so these runs don't tell the trials apart"
    )
    assert said([0.6], [0.9]) == ""


def test_a_buffer_that_is_nearly_right_is_said_to_be_near() -> None:
    assert "4.9 % too large" in _size_symptom(1310720 / 1250000)
    assert "%" not in _size_symptom(1 / 8)


def test_compared_values_have_their_units() -> None:
    params = {**TWO_FLOWS.params, "compare_by": "steady_goodput_bps"}
    runs = [
        Member(trial, (), 1, params, {"steady_goodput_bps": value})
        for trial, value in ((2, 29.83e6), (4, 78.3e6))
    ]
    said = check_set(load_lab(ROOT, "variants"), runs)[0].finding
    assert said.measured.startswith(
        "steady goodput: 29.8 Mbit/s in trial 2, 78.3 Mbit/s in trial 4, from 1 run each"
    )


def test_measured_values_have_words_and_units() -> None:
    said = [label_of(name) for name in ("mss_bytes", "steady_rtt_ms", "loss_ratio", "jains_index")]
    assert said == ["MSS", "steady round-trip time", "loss ratio", "Jain's index"]
    values = [
        in_unit("steady_goodput_bps", 2.98e7),
        in_unit("loss_ratio", 0.25),
        in_unit("mss_bytes", 536),
    ]
    assert values == ["29.8 Mbit/s", "0.25", "536 B"]


def test_a_value_that_a_run_does_not_have_is_not_compared() -> None:
    nothing = [Member(t, (), 1, {**TWO_FLOWS.params, "compare_by": "s1_share"}) for t in (1, 3)]
    assert check_set(BUFFERS, nothing) == []


# A queue and its discipline


@pytest.mark.parametrize(
    ("measured", "finding"),
    [
        ({"red_limit_bytes": 346000}, "red-limits"),
        ({"rate_rows": 22, "rate_rows_spanning": 2}, "summary-row"),
        ({"host_3_received_flows": 0, "host_4_received_flows": 2}, "copied-cell"),
        ({"host_3_received_flows": 1, "host_4_received_flows": 1}, "copied-cell"),
        (
            {"utilisation": 0.1, "queue_mean_packets": 0.0, "queue_drops": 0},
            "no-bottleneck",
        ),
    ],
)
def test_each_symptom_raises_its_own_finding(measured: dict[str, Any], finding: str) -> None:
    assert DISCIPLINE.raised(**measured) == [finding]


@pytest.mark.parametrize(("ping_ms", "found"), [(68, False), (69, True)])
def test_pings_that_waited_longer_than_the_queue_explains(ping_ms: float, found: bool) -> None:
    """40 ms of path and 4 of queue: twice that and 20 ms more may be the other direction's and the start."""
    waits = {"path_rtt_ms": 40, "queue_delay_mean_ms": 4, "busy_ping_mean_ms": ping_ms}
    assert DISCIPLINE.raised(**waits) == (["queue-elsewhere"] if found else [])


# A line of ss of a real flow; what follows it says how many of its packets a queue marked.
MARKED = (
    "ESTAB 0 195480 10.6.1.2:46174 10.6.5.2:5201 dctcp wscale:7,7 rto:294 rtt:93.478/0.174 mss:1448 cwnd:66 bytes_sent:3237765 "
    "bytes_acked:3142198 data_segs_out:2237 delivered:2172{} busy:6148ms minrtt:92.939"
)


@pytest.mark.parametrize(
    ("by_tc", "by_ss", "found"), [(0, "", True), (3, "", False), (0, " delivered_ce:7", False)]
)
def test_a_link_that_is_not_full_has_marks_or_drops(by_tc: int, by_ss: str, found: bool) -> None:
    """Of a qdisc younger than itself tc counts no marks, but the sender does."""
    text = f"# t=1700000000\n{MARKED.format(by_ss)}\n# t=1700000006\n{MARKED.format(by_ss)}\n"
    state = HostState({}, tuple(sockets_of(text, "laptop")))
    values = {"utilisation": 0.7, "queue_drops": 0, "queue_marks": by_tc, "queue_mean_packets": 1.5}
    run = RunUnderTest({"rate_mbit": 40}, values, host_state=state)
    assert ("unexplained" in [finding.id for finding in causes(run)]) is found
    run = replace(run, params={"discipline": "dualpi2"})
    assert ("no-bottleneck" in [finding.id for finding in causes(run)]) is found


@pytest.mark.parametrize(("beside", "found"), [(0.05, False), (0.04, True)])
def test_pings_that_the_load_never_met(beside: float, found: bool) -> None:
    raised = DISCIPLINE.raised(busy_ping_beside_ratio=beside)
    assert raised == (["idle-probe"] if found else [])


@pytest.mark.parametrize(
    ("kind", "count", "found"), [("fq_codel", 2, True), ("fq_codel", 3, False), ("bfifo", 3, True)]
)
def test_of_several_flows_own_queues_tc_samples_the_sum(kind: str, count: int, found: bool) -> None:
    """Round trips that go up and down as they like, before a queue that does so, too."""
    dice = random.Random(3)
    times = [1.7e9 + n / 10 for n in range(300)]
    rtts = tuple((time_s, dice.uniform(20, 60)) for time_s in times)
    one = Socket(
        "host-1",
        4000,
        "10.1.3.1:5201",
        "cubic",
        30.0,
        30.0,
        0.0,
        0.0,
        None,
        10**8,
        10**8,
        rtts=rtts,
    )
    queue = Span(
        "router-1", "router-1/queue.txt", times[0], times[-1],
        backlogs=tuple((time_s, dice.randrange(1000, 90_000)) for time_s in times),
    )  # fmt: skip
    flows = tuple(replace(one, port=4000 + n) for n in range(count))
    state = HostState({}, flows, queues_sampled=(queue,))
    values = {"utilisation": 0.99, "queue_kind": kind, "flows": count}
    run = RunUnderTest({"parallel_flows": count}, values, host_state=state)
    assert ("samples" in [finding.id for finding in causes(run)]) is found
    # Where flows go both ways, the other direction's queue is in a round trip as well.
    both_ways = {"host_1_received_flows": 2, "host_1_goodput_bps": 9e6}
    run = replace(run, values=values | both_ways)
    assert "samples" not in [finding.id for finding in causes(run)]


def nodes_with_ecn(kind: str) -> dict[str, Node]:
    """A server whose counters are a real run's, beside a router of which nothing is known."""
    count = ecn_packets(ROOT / "tests/data/ecn" / kind / "server")
    server = Node("server", {}, {}, (), ecn_packets=count)
    laptop = replace(server, name="laptop", ecn_packets=count and 75_446)
    return {"laptop": laptop, "router": replace(server, ecn_packets=None), "server": server}


@pytest.mark.parametrize(("kind", "found"), [("granted", False), ("refused", True)])
def test_ecn_that_one_end_refused(kind: str, found: bool) -> None:
    flow = Socket(
        "laptop", 4000, "10.6.4.2:5201", "cubic", 30.0, 30.0, 0.0, 0.0, None, 10**8, 10**8
    )
    state = HostState(nodes_with_ecn(kind), (flow,))
    run = RunUnderTest({"ecn": "on"}, {}, host_state=state)
    assert ("ecn-refused" in [finding.id for finding in causes(run)]) is found
    assert causes(replace(run, params={"ecn": "off"})) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("ss-6.1-dctcp-fallback", "laptop's flow: dctcp-reno, with fallback_mode (ss)"),
        ("ss-6.1-dctcp", None),
    ],
)
def test_something_else_under_a_name_is_what_ss_says(source: str, found: str | None) -> None:
    """What was seen, and no word that tells the cause of the case that it is from."""
    *_, last = parse_ss((ROOT / f"tests/data/parse/ss/{source}.txt").read_text(), "ss.txt")
    flow = Socket(
        "laptop", 4000, "10.6.4.2:5201", last.congestion_control, 30.0, 30.0, 0.0, 0.0, None, 10**8, 10**8, last=last
    )  # fmt: skip
    run = RunUnderTest(
        {}, {}, host_state=HostState({}, (flow,)), algorithms=frozenset(["dctcp", "cubic"])
    )
    raised = [finding for finding in causes(run) if finding.id == "wrong-algorithm"]
    assert [finding.measured for finding in raised] == ([found] if found else [])
    words = " ".join(f"{of.measured} {of.expected} {of.why} {of.symptom}" for of in raised)
    assert not load_lab(ROOT, "latency").pitfall("dctcp-without-ecn").is_named_in(words)


@pytest.mark.parametrize(
    ("beside", "found"),
    [({}, True), ({"phone_lost_ratio": 0.0}, False), ({"phone_transfers": 12}, False)],
)
def test_a_stream_beside_the_flows_is_no_other_traffic(beside: dict[str, Any], found: bool) -> None:
    flow = Socket(
        "laptop", 4000, "10.6.4.2:5201", "cubic", 30.0, 30.0, 0.0, 0.0, None, 10**8, 10**8
    )
    state = HostState({}, (replace(flow, is_named=True), replace(flow, port=4001, is_named=False)))
    run = RunUnderTest({}, {"flows": 1, **beside}, host_state=state)
    assert ("other-traffic" in [finding.id for finding in causes(run)]) is found


# Of a run in which a stream sent more than its share beside eight flows, under fq_codel.
APART = {
    "path_rtt_ms": 40.037, "busy_ping_p50_ms": 41.2, "busy_ping_loss_ratio": 0.0, "phone_delay_p50_ms": 0.026, "phone_lost_ratio": 0.0,
    "server_delay_p50_ms": 79.677, "server_lost_ratio": 0.43925,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, True),
        # Three times what pings waited, and 20 ms more.
        ({"server_delay_p50_ms": 23.4, "server_lost_ratio": 0.1}, False),
        ({"server_delay_p50_ms": 23.6, "server_lost_ratio": 0.1}, True),
        ({"server_delay_p50_ms": 1.0, "server_lost_ratio": 0.11}, True),
        ({"server_delay_p50_ms": None, "server_lost_ratio": 1.0}, True),
        # Before a FIFO both wait.
        ({"busy_ping_p50_ms": 117.0}, True),
        ({"busy_ping_p50_ms": 117.0, "server_lost_ratio": 0.01}, False),
    ],
)
def test_a_probe_with_a_queue_of_its_own(changes: dict[str, Any], found: bool) -> None:
    raised = DISCIPLINE.raised({"judged_by": "ping"}, **{**APART, **changes})
    assert raised == (["probe-apart"] if found else [])
    assert DISCIPLINE.raised({"judged_by": "stream"}, **{**APART, **changes}) == []


# Of a run in which three seconds of thirty had an upload before a FIFO.
TAIL = {
    "path_rtt_ms": 40.015, "busy_ping_mean_ms": 58.1695, "busy_ping_p99_ms": 242.0, "phone_delay_mean_ms": 0.367, "phone_delay_p99_ms": 12.622,
    "phone_late_ratio": 0.0, "server_delay_mean_ms": 16.279, "server_delay_p99_ms": 199.684, "server_late_ratio": 0.106667,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, True),
        # The pings tell it, too, without a stream.
        ({"server_late_ratio": 0.009, "server_delay_p99_ms": 65.0}, True),
        ({"server_late_ratio": 0.009, "busy_ping_p99_ms": 89.0}, False),
        # Four times the mean.
        ({"server_delay_p99_ms": 65.0, "busy_ping_p99_ms": None}, False),
        ({"server_delay_p99_ms": 66.0, "busy_ping_p99_ms": None}, True),
    ],
)
def test_a_mean_that_hides_a_tail(changes: dict[str, Any], found: bool) -> None:
    # The queue that is sampled here is another one.
    values = {**TAIL, "queue_delay_mean_ms": 20.0, **changes}
    raised = DISCIPLINE.raised({"judged_by": "mean"}, **values)
    assert raised == (["mean-hides"] if found else [])
    assert DISCIPLINE.raised({"judged_by": "late"}, **values) == []


@pytest.mark.parametrize("log", [12, 16])
def test_the_unit_of_idle_time_matters_only_where_red_learns_that_it_is_idle(log: int) -> None:
    tbf = Qdisc("tbf", "1:", dev="eth2", root=True, parent=None)
    red = Qdisc("red", "10:", dev="eth2", root=False, parent=None)
    below, alone = replace(red, parent="1:1"), replace(red, root=True)

    def run(*qdiscs: Qdisc, brought: bool = False) -> RunUnderTest:
        state = HostState({}, qdiscs=tuple(("router-1", qdisc) for qdisc in qdiscs))
        values = {**DISCIPLINE.values, "red_cell_log": log}
        return RunUnderTest(dict(DISCIPLINE.params), values, host_state=state, brought=brought)

    for under_test in (run(tbf, below), run(tbf, below, brought=True), run()):
        assert causes(under_test) == []
        [line] = idle_notes(under_test)
        assert f"is {log}, and this link needs 13" in line
    for under_test in (run(alone), run(tbf, alone, brought=True), run(brought=True)):
        assert [finding.id for finding in causes(under_test)] == ["red-bandwidth"]
        assert idle_notes(under_test) == []


def test_iperf2_csv_that_a_person_brings(tmp_path: Path) -> None:
    """Two senders' files, then one of them copied under a third name."""
    corpus = Path(__file__).parents[1] / "data" / "parse" / "iperf2"
    first, second = tmp_path / "fifo-run1-h1-h3.txt", tmp_path / "fifo-run1-h2-h3.txt"
    shutil.copyfile(corpus / "iperf2-2.1.8-one-flow.csv", first)
    shutil.copyfile(corpus / "iperf2-2.1.8-two-flows.csv", second)
    brought = imported.read_files([tmp_path])
    assert brought.measured["flows"] == 3
    assert brought.measured["goodput_bps"] == pytest.approx(
        8 * (10_616_892 / 4 + 2 * 7_995_452 / 3)
    )
    assert causes(RunUnderTest({"parallel_flows": 3}, brought.measured)) == []
    shutil.copyfile(first, tmp_path / "fifo-run1-h2-h4.txt")
    brought = imported.read_files([tmp_path])
    found = causes(RunUnderTest({"parallel_flows": 3}, brought.measured))
    assert [finding.id for finding in found] == ["copied-cell"]
    assert brought.measured["flows"] == 3


def test_findings_that_depend_on_what_was_wanted() -> None:
    assert DISCIPLINE.raised({"discipline": "pfifo_fast"}) == ["default-qdisc"]
    assert DISCIPLINE.raised({"judged_by": "throughput"}) == ["wrong-metric"]
    # A link with room to spare may well differ in throughput.
    assert DISCIPLINE.raised({"judged_by": "throughput"}, utilisation=0.7) == []
    # A short queue alone is what good disciplines are for.
    assert DISCIPLINE.raised(queue_mean_packets=0.5, queue_drops=0) == []
    assert DISCIPLINE.raised({"receiver": None, "discipline": None}) == []


def test_what_tc_gives_red_for_a_link() -> None:
    """tc's own numbers, printed for avpkt 1000 and burst 141 (ewma 6)."""
    assert cell_log(20, 1000, 6) == 15
    assert cell_log(10, 1000, 6) == 16


def member(trial: int, discipline: str, **changed: Any) -> Member:
    measured = {**DISCIPLINE.values, "host_1_goodput_bps": 47e6, "host_2_goodput_bps": 48e6}
    params = {**DISCIPLINE.params, "discipline": discipline, "claim": changed.pop("claim", "none")}
    return Member(trial, (), 1, params, {**measured, **changed})


def test_a_file_read_twice() -> None:
    twice = [member(1, "red"), member(2, "red")]
    finding = same_numbers(QUEUES, twice)
    assert finding is not None
    assert (finding.id, finding.measured[:24]) == ("copied-cell", "trials 1 and 2 agree in ")
    assert same_numbers(QUEUES, [twice[0], member(2, "red", goodput_bps=95.7e6)]) is None
    # The same trial twice may be the same run twice.
    assert same_numbers(QUEUES, [twice[0], twice[0]]) is None


def arms(count: int, claim: str, delay_ms: float = 100.0) -> list[Member]:
    return [
        member(
            n,
            discipline,
            claim=claim,
            host_1_goodput_bps=1e6 * (47 + n % 3),
            busy_ping_mean_ms=(delay_ms if discipline == "red" else 100.0) + n % 3,
        )
        for discipline in ("red", "pfifo_fast")
        for n in range(count)
    ]


def test_claims_need_enough_values() -> None:
    finding = small_n(QUEUES, arms(4, "spread"))
    assert finding is not None
    assert finding.id == "small-n"
    assert finding.measured.startswith("8 values of each")
    assert small_n(QUEUES, arms(30, "spread")) is None
    assert small_n(QUEUES, arms(4, "none")) is None
    assert small_n(QUEUES, arms(4, "delay", delay_ms=10.0)) is None
    assert small_n(QUEUES, arms(4, "delay")) is not None


# One sender


def test_another_algorithm_than_was_meant() -> None:
    assert SENDER.raised({"congestion_control": "bbr"}) == ["wrong-algorithm"]
    # Whether that one has settled is no question then.
    assert SENDER.raised({"congestion_control": "bbr"}, rising_ratio=3, rising_steps=4) == [
        "wrong-algorithm"
    ]


def test_the_senders_own_queue() -> None:
    assert SENDER.raised({"host_qdisc": "fq"}, host_queue_kind="pfifo_fast") == ["host-qdisc"]
    assert SENDER.raised({"host_qdisc": "fq"}, host_queue_kind="fq") == []
    # One thing at a time: first the algorithm.
    wrong = {"host_qdisc": "fq", "congestion_control": "bbr"}
    assert SENDER.raised(wrong, host_queue_kind="pfifo_fast") == ["wrong-algorithm"]
    # Not looked at: nothing is said.
    assert SENDER.raised({"host_qdisc": "fq"}) == []


def test_no_answer_comes_sooner_than_the_path_allows() -> None:
    assert SENDER.raised(tcp_min_rtt_ms=1.1) == ["terminated-tcp"]
    assert SENDER.raised(cwnd_over_rate_ms=0.18) == ["terminated-tcp"]
    # A window that isn't full makes the quotient larger, and that is no fault.
    assert SENDER.raised(cwnd_over_rate_ms=83.0) == []
    # A radio's ping may find a longer path than TCP's best packet.
    assert SENDER.raised(sender_path_rtt_ms=45.0) == []
    assert SENDER.raised(sender_path_rtt_ms=None, tcp_min_rtt_ms=1.1) == []


def test_a_rate_that_still_rises() -> None:
    assert SENDER.raised(rising_ratio=1.26, rising_steps=4) == ["ten-seconds"]
    assert SENDER.raised(rising_ratio=1.24, rising_steps=4) == []
    # It rose, and then no more: the mean is of both.
    assert SENDER.raised(rising_ratio=2.0, rising_steps=1) == ["ten-seconds"]
    # Beside a rival, it rises and falls by chance.
    assert SENDER.raised({"rival": "cubic"}, rising_ratio=2.0, rising_steps=3) == []
    assert SENDER.raised({"rival": "none"}, rising_ratio=2.0, rising_steps=3) == ["ten-seconds"]
    # A saw's tooth rises too.
    assert SENDER.raised(rising_ratio=2.0, rising_steps=4, steady_retransmits=3) == []


def test_a_short_time_within_the_ramp_counts_by_its_pace() -> None:
    short = {"average_from_s": 8, "duration_s": 10}
    assert SENDER.raised(short, rising_ratio=1.11, rising_steps=4) == ["ten-seconds"]
    assert SENDER.raised(short, rising_ratio=1.11, rising_steps=3) == []
    # As much in half a minute is settled, and so is what a packet more or less makes of a short time.
    assert SENDER.raised({"duration_s": 60}, rising_ratio=1.11, rising_steps=4) == []
    assert SENDER.raised(short, rising_ratio=1.015, rising_steps=4) == []


def test_rows_that_hide_what_a_loss_did() -> None:
    assert SENDER.raised(lowest_tenth_bps=20e6) == ["averages-hide"]
    assert SENDER.raised(lowest_tenth_bps=20e6, table_interval_s=0.1) == []
    assert SENDER.raised(lowest_tenth_bps=None) == []


def test_a_table_of_two_runs() -> None:
    assert SENDER.raised(table_rows_foreign=19) == ["mixed-runs"]
    assert SENDER.raised(table_rows_foreign=18) == []
