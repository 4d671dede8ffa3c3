"""What pages of the labs scale and queues say in words of recorded numbers.

As in test_claims.py: sentences that new recordings could make false, where a page doesn't compute
the word itself.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from measuretwice.lab import load_lab
from measuretwice.measure.fields import Measured
from measuretwice.site.macros.excerpts import LineSelection, raw_text
from measuretwice.site.macros.table import LabContext

ROOT = Path(__file__).parents[2]
SCALE = LabContext(ROOT, load_lab(ROOT, "scale"))
QUEUES = LabContext(ROOT, load_lab(ROOT, "queues"))


def stages(lab: LabContext, pitfall: str) -> tuple[Measured, Measured]:
    """What both stages of a mistake measured."""
    return lab.run(f"{pitfall}-broken").measured, lab.run(f"{pitfall}-fixed").measured


def test_halving_counter_shows_a_window_that_comes_down_in_steps() -> None:
    """03 halving-counter: 'the window of one flow where it comes down'; between two steps it stands still."""
    text = raw_text(SCALE.run("halving-counter-broken").run_dir, "sender-0/cwnd.txt")
    shown = LineSelection(falls=17).apply(text.rstrip("\n").split("\n"))
    assert len(shown) == 17
    windows = [int(line.split()[1]) for line in shown]
    falls = [n for n, (before, now) in enumerate(pairwise(windows)) if now < before]
    assert len(falls) >= 3
    assert max(windows) > 1.3 * min(windows)
    assert any(later - earlier > 1 for earlier, later in pairwise(falls)), "no flat sample between"


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
