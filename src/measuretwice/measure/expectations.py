"""A run's values beside what its lab expects of them, and beside the model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from measuretwice.lab import Lab, Value, trial_params
from measuretwice.lab.schema.results import Expectation, ModelUse
from measuretwice.measure.fields import Measured, number
from measuretwice.stats.intervals import binomial_interval
from measuretwice.tcp import model as models

LEAST_MS = 0.06
# By the cables of two hosts a round trip takes its packet and its ACK, with all their headers.
CROSSED_FRAMES = 3
HEADERS_BYTES = 78
USUAL_MSS_BYTES = 1460


@dataclass(frozen=True)
class Prediction:
    """What the lab's model says of a run; None where it has no finite answer."""

    name: str
    constant: float
    bandwidth_bps: float | None
    expected_losses: float | None


@dataclass(frozen=True)
class Verdict:
    """One expectation compared with a run: what was measured, the range expected, and `ok`.

    `ok` is None where nothing can be said: nothing was measured, or the model doesn't apply.
    """

    label: str
    measured: str
    value: float | None
    low: float | None
    high: float | None
    confidence: float | None
    ok: bool | None


@dataclass(frozen=True)
class AgainstModel:
    """What the model says of a run; `ratio` is the goodput over its bandwidth."""

    model: Prediction
    ratio: float | None
    comparable: bool
    not_comparable_because: str | None


def against_model(use: ModelUse, params: Mapping[str, Value], measured: Measured) -> AgainstModel:
    """Return the model's bandwidth for these settings, and whether this run can be compared with it."""
    mss_bytes, rtt_ms, loss_ratio = (float(params[key]) for key in (use.mss, use.rtt, use.loss))
    bandwidth_bps = models.BANDWIDTH_BPS[use.name](mss_bytes, rtt_ms, loss_ratio, use.constant)
    duration_s = number(measured, "duration_s") or 0.0
    expected = models.EXPECTED_LOSSES[use.name](rtt_ms, loss_ratio, duration_s, use.constant)
    goodput_bps = number(measured, "goodput_bps")
    reason = None
    if loss_ratio >= use.max_loss_ratio:
        reason = f"p is {loss_ratio:.3g}: from p = {use.max_loss_ratio:g} on, timeouts rule and the model makes no claim"
    elif expected < use.min_expected_losses:
        reason = (
            f"{expected:.0f} losses expected in {duration_s:.0f} s: "
            f"fewer than {use.min_expected_losses:g} losses say too little about p"
        )
    finite = 0 < bandwidth_bps < float("inf")
    return AgainstModel(
        Prediction(
            use.name,
            use.constant,
            bandwidth_bps if finite else None,
            round(expected, 3) if finite else None,
        ),
        goodput_bps / bandwidth_bps if finite and goodput_bps is not None else None,
        reason is None and finite,
        reason if finite else "the model has no finite bandwidth without loss and delay",
    )


def verdicts_of(
    lab: Lab,
    trial: int | None,
    params: Mapping[str, Value],
    values: Measured,
    comparable: bool,
) -> tuple[Verdict, ...]:
    """Return the verdict on each expectation that today's lab.toml has of this trial.

    Without a `trial` those that are of certain trials only are left out. `values` are the measured ones, and the ratio.
    """
    return tuple(
        judge(expectation, params, values, comparable, _at_edges_ms(lab, params))
        for expectation in lab.file.expect
        if (expectation.trials is None or trial in expectation.trials)
        and _as_trial(lab, expectation, trial, params)
    )


def _as_trial(
    lab: Lab, expectation: Expectation, trial: int | None, params: Mapping[str, Value]
) -> bool:
    """Return whether the parameters that a range was written for have the values that they have in that trial."""
    if not expectation.as_trial or trial is None:
        return True
    own = trial_params(lab, trial)
    return all(params.get(name) == own.get(name) for name in expectation.as_trial)


def _at_edges_ms(lab: Lab, params: Mapping[str, Value]) -> float:
    """Return what hosts' cables and the hosts themselves may add to a round trip, in ms: nothing where they are
    infinitely fast."""
    edges = lab.file.topology.edges
    if edges is None:
        return 0.0
    speed_mbit, processing_us = (
        float(params.get(name) or 0) for name in (edges.speed, edges.processing)
    )
    bytes_ = CROSSED_FRAMES * (float(params.get("mss_bytes") or USUAL_MSS_BYTES) + HEADERS_BYTES)
    return (8e-3 * bytes_ / speed_mbit if speed_mbit else 0.0) + 2e-3 * processing_us


def judge(
    expectation: Expectation,
    params: Mapping[str, Value],
    measured: Measured,
    comparable: bool,
    at_edges_ms: float = 0.0,
) -> Verdict:
    """Return one expectation's verdict; a time may be longer by what passes at the path's edges, a link's use by a full bucket."""
    value = number(measured, expectation.measured)
    low, high = _bounds(expectation, params, measured)
    if high is not None and expectation.wanted_parameters and expectation.measured.endswith("_ms"):
        high += at_edges_ms
    if high is not None and expectation.measured == "utilisation":
        high += _bucket_share(params)
    ok: bool | None = None
    if value is not None and not (expectation.only_comparable and not comparable):
        ok = (low is None or value >= low) and (high is None or value <= high)
    return Verdict(
        expectation.label, expectation.measured, value, low, high, expectation.confidence, ok
    )


def _bucket_share(params: Mapping[str, Value]) -> float:
    """Return what a token bucket that is full at first lets through beyond the rate, as a share of a whole run (tc-tbf(8))."""
    burst_bytes, rate_mbit, duration_s = (
        float(params.get(name) or 0) for name in ("burst_bytes", "rate_mbit", "duration_s")
    )
    return 8e-6 * burst_bytes / (rate_mbit * duration_s) if rate_mbit and duration_s else 0.0


def _bounds(
    expectation: Expectation, params: Mapping[str, Value], measured: Measured
) -> tuple[float | None, float | None]:
    if not expectation.wanted_parameters:
        return expectation.min, expectation.max
    wanted = sum(float(params[name]) for name in expectation.wanted_parameters) * expectation.scale
    if expectation.tolerance_ratio is not None:
        slack = abs(wanted) * expectation.tolerance_ratio
        if expectation.measured.endswith("_ms"):
            # Of next to nothing a ratio is nothing: cables and hosts have some microseconds of their own.
            slack = max(slack, LEAST_MS)
        slack += sum(
            steps.get(str(params.get(name)), 0.0) for name, steps in expectation.coarser.items()
        )
        return wanted - slack, wanted + slack
    count = number(measured, expectation.binomial_of or "")
    if not count or expectation.confidence is None:
        return None, None
    return binomial_interval(int(count), wanted, expectation.confidence)
