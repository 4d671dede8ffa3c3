"""What pages of the labs scale and queues say in words of recorded numbers.

As in test_claims.py: sentences that new recordings could make false, where a page doesn't compute
the word itself.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from measuretwice.lab import load_lab
from measuretwice.measure.values import Measured
from measuretwice.site.words.excerpts import Cut, raw_text
from measuretwice.site.words.subjects import LabWords
from measuretwice.tcp.headers import payload_limit

ROOT = Path(__file__).parents[2]
SCALE = LabWords(ROOT, load_lab(ROOT, "scale"))
QUEUES = LabWords(ROOT, load_lab(ROOT, "queues"))
LIMIT_BPS = payload_limit(100e6, wire=False)


def stages(lab: LabWords, pitfall: str) -> tuple[Measured, Measured]:
    """What both stages of a mistake measured."""
    return lab.run(f"{pitfall}-broken").measured, lab.run(f"{pitfall}-fixed").measured


def test_halving_counter_shows_a_window_that_comes_down_in_steps() -> None:
    """03 halving-counter: 'the window of one flow where it comes down'; between two steps it stands still."""
    text = raw_text(SCALE.run("halving-counter-broken").place, "sender-0/cwnd.txt")
    shown = Cut(falls=17).apply(text.rstrip("\n").split("\n"))
    assert len(shown) == 17
    windows = [int(line.split()[1]) for line in shown]
    falls = [n for n, (before, now) in enumerate(pairwise(windows)) if now < before]
    assert len(falls) >= 3
    assert max(windows) > 1.3 * min(windows)
    assert any(later - earlier > 1 for earlier, later in pairwise(falls)), "no flat sample between"


def test_halving_counter_counts_more_halvings_than_losses() -> None:
    """03 halving-counter: 'the losses and the halvings don't go together': fewer losses. And the mended counter agrees with the kernel."""
    broken, fixed = stages(SCALE, "halving-counter")
    assert broken["own_losses_per_halving"] < 1 <= fixed["own_losses_per_halving"]
    assert fixed["own_halvings"] == pytest.approx(fixed["halvings"], abs=2)


def test_loss_definition_the_flows_did_the_same() -> None:
    """03 loss-definition: 'The flows did the same, packet for packet'; more was sent again than was dropped."""
    broken, fixed = stages(SCALE, "loss-definition")
    for name in ("segments", "retransmits", "queue_drops", "halvings", "goodput_bps"):
        assert broken[name] == fixed[name], name
    assert broken["retransmits"] > 1.5 * broken["queue_drops"]
    assert broken["halvings"] > broken["queue_drops"]


def test_offload_at_scale_few_were_needless() -> None:
    """03 offload-at-scale: 'few were needless', 'well above one' before and one for each drop after."""
    broken, fixed = stages(SCALE, "offload-at-scale")
    assert broken["spurious_retransmits"] < 0.05 * broken["retransmits"]
    assert broken["retransmits"] > 1.3 * broken["queue_drops"]
    assert fixed["retransmits"] == pytest.approx(fixed["queue_drops"], rel=0.05)


def test_missing_flows_the_link_is_full_all_the_same() -> None:
    """03 missing-flows: 'a full link', and an index near the share of flows that ran."""
    broken, fixed = stages(SCALE, "missing-flows")
    assert broken["own_sum_bps"] > 0.98 * LIMIT_BPS
    assert broken["own_jain"] <= broken["flows"] / SCALE.run("missing-flows-broken").params["flows"]
    assert fixed["own_jain"] > broken["own_jain"] + 0.2


def test_mislabelled_row_has_a_clear_winner_and_breaks_no_bound() -> None:
    """03 mislabelled-row: 'Reno takes the larger part', and 'the sum fits the link'."""
    _, fixed = stages(SCALE, "mislabelled-row")
    assert fixed["rival_share"] > 0.6
    assert fixed["goodput_bps"] < 1.002 * LIMIT_BPS


def test_fair_share_is_far_above_one() -> None:
    """03 fair-share: 'Why so much?', and the share hardly follows the number of flows."""
    broken, fixed = stages(SCALE, "fair-share")
    assert fixed["rival_multiple"] > 3
    assert max(broken["rival_share"], fixed["rival_share"]) < 0.5
    assert fixed["rival_share"] == pytest.approx(broken["rival_share"], rel=0.15)


def test_no_bottleneck_red_has_nothing_to_decide() -> None:
    """05 no-bottleneck: 'It had nothing to decide', and packets wait all the same."""
    broken, fixed = stages(QUEUES, "no-bottleneck")
    assert broken["queue_mean_packets"] < 1
    assert broken["queue_drops"] == 0 < fixed["queue_drops"]
    assert broken["busy_ping_mean_ms"] > 5 * fixed["busy_ping_mean_ms"]


def test_wrong_metric_throughput_is_alike_and_delay_is_not() -> None:
    """05 wrong-metric: 'no difference' in throughput; 'pfifo_fast fills whatever room it has'."""
    fifo, red = (run.measured for run in QUEUES.runs("wrong-metric-broken"))
    assert fifo["goodput_bps"] == pytest.approx(red["goodput_bps"], rel=0.02)
    assert fifo["busy_ping_mean_ms"] > 3 * red["busy_ping_mean_ms"]
    assert fifo["queue_max_bytes"] > 0.95 * 1514 * 1000


def test_default_qdisc_is_a_better_control_arm_than_pfifo_fast() -> None:
    """05 default-qdisc: 'The control arm is much better than the literature says'."""
    broken, fixed = stages(QUEUES, "default-qdisc")
    assert broken["busy_ping_mean_ms"] < 0.3 * fixed["busy_ping_mean_ms"]
    assert broken["goodput_bps"] == pytest.approx(fixed["goodput_bps"], rel=0.02)
