"""What pages of the labs say in words of recorded numbers.

Where a page can, it computes such a word ({{ claim(...) }} or {% if %}). These are the others: sentences
that new recordings could make false. Each test names its page and what it says there; where the sentence
has numbers beside it, the page names the test: {## held: test_... ##}.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean

import pytest
from click.testing import CliRunner

from measuretwice.cli.commands import cli
from measuretwice.lab import load_lab
from measuretwice.site.words.subjects import LabWords
from measuretwice.tcp import model

ROOT = Path(__file__).parents[2]
MATHIS = LabWords(ROOT, load_lab(ROOT, "mathis"))
CALIBRATE = LabWords(ROOT, load_lab(ROOT, "calibrate"))


def test_figure_the_cloud_comes_down_to_the_line_with_offloads_off() -> None:
    """01 figure: 'here the cloud comes down to the line'."""
    before, after = MATHIS.within("step-6-mtu"), MATHIS.within("step-7-offloads")
    assert after > 2 * before


def test_figure_timestamps_move_what_no_eye_sees() -> None:
    """01 figure: 'no eye sees that on this scale', of the trials with hundreds of losses."""
    pairs = [
        (one, MATHIS.run("step-5-timestamps", trial=one.trial))
        for one in MATHIS.runs("step-4-rate")
        if one.measured["qdisc_drops"] > 200 and one.ratio
    ]
    assert pairs
    for before, after in pairs:
        assert after.ratio / before.ratio == pytest.approx(1, abs=0.25), before.trial


@pytest.mark.parametrize("trials", [(3, 7, 4, 1, 10, 5)])
def test_model_domain_the_ratio_falls_towards_high_losses_on_the_short_path(
    trials: tuple[int, ...],
) -> None:
    """01 model-domain: 'Towards higher losses the ratio falls, and on the short path steeply'."""
    runs = sorted(
        (MATHIS.run("step-7-offloads", trial=number) for number in trials),
        key=lambda run: run.params["loss_ratio"],
    )
    assert mean(run.ratio for run in runs[-2:]) < 0.75 * mean(run.ratio for run in runs[:2])


def test_model_domain_neither_model_describes_the_highest_loss() -> None:
    """01 model-domain: Mathis promises more than was measured, and PFTK 'errs to the other side'."""
    run = MATHIS.run("model-domain-broken")
    bound = model.pftk_bandwidth_bps(
        run.params["mss_bytes"], run.params["rtt_ms"], run.params["loss_ratio"]
    )
    assert bound < run.measured["goodput_bps"] < 0.8 * run.model.bandwidth_bps


def test_mtu_and_rtt_the_loss_is_right() -> None:
    """01 mtu, rtt-doubling, timestamps: 'The loss is right'."""
    for name in ("mtu-broken", "rtt-doubling-broken", "timestamps-broken"):
        run = MATHIS.run(name)
        spread = 3.3 / math.sqrt(run.measured["qdisc_drops"])
        assert run.measured["loss_ratio"] == pytest.approx(run.params["loss_ratio"], rel=spread), (
            name
        )


def test_ack_policy_segments_count() -> None:
    """01 ack-policy: 'ACKs don't count: segments do'."""
    delayed, each = MATHIS.runs("acks-delayed"), MATHIS.runs("acks-every-segment")
    acks = mean(
        run.measured["data_segs_out"] / run.measured["receiver_acks_out"] for run in delayed
    )
    factor = mean(run.ratio for run in each) / mean(run.ratio for run in delayed)
    assert acks > 1.5
    assert factor == pytest.approx(1, abs=0.05)


def test_duration_the_short_run_is_mostly_its_start() -> None:
    """01 duration: 'What you measured is mostly the start'."""
    run = MATHIS.run("duration-broken")
    assert run.measured["qdisc_drops"] < 10
    assert run.measured["cwnd_max_segments"] > 2 / math.sqrt(run.params["loss_ratio"])


def test_cherry_picking_trials_1_and_4_are_lower() -> None:
    """01 cherry-picking: 'That they are lower is a result'."""
    runs = MATHIS.runs("cherry-picking-fixed")
    low = mean(run.ratio for run in runs if run.trial in (1, 4))
    assert low < mean(run.ratio for run in runs if run.trial in (3, 7, 9))


def test_receiver_drops_outnumber_the_routers() -> None:
    """01 receiver-drops: far more sent again than the router dropped; the receiver refused some."""
    run = MATHIS.run("receiver-drops-broken")
    assert run.measured["retransmits"] > 10 * run.measured["qdisc_drops"]
    assert run.measured["receiver_ofo_drops"]


def test_the_checker_finds_nothing_in_the_readings() -> None:
    """00 index: './lab check finds nothing in any of them'."""
    command = ["check", "--json", str(ROOT / "sample-data/00-calibrate/readings")]
    answered = json.loads(CliRunner().invoke(cli, command).stdout)
    found = {Path(one["run"]).name: one["findings"] for one in answered}
    assert len(found) == len(CALIBRATE.trials)
    assert not any(found.values())


def test_figure_the_first_try_has_rows() -> None:
    """01 figure: 'the marks of one RTT have nearly the same goodput'; the buffer limits, or the link."""
    runs = MATHIS.runs("step-1-first-try")
    unhindered = [run for run in runs if not run.measured["qdisc_drops"]]
    assert len(unhindered) > 0.5 * len(runs)
    for rtt_ms in {run.params["rtt_ms"] for run in runs}:
        row = [run for run in unhindered if run.params["rtt_ms"] == rtt_ms]
        rates = [run.measured["goodput_bps"] for run in row]
        predicted = [run.model.bandwidth_bps for run in row]
        assert max(rates) < 1.1 * min(rates), rtt_ms
        assert max(predicted) > 3 * min(predicted), rtt_ms
        allowed = row[0].params["wmem_max_bytes"] * 8e3 / rtt_ms
        link = row[0].params["rate_mbit"] * 1e6
        assert max(rates) > 0.8 * min(allowed, link), rtt_ms
