"""A run's result: measured values beside the model's, and each expectation's verdict."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab.lab import Expectation, Lab, ModelUse
from measuretwice.lab.plan import Plan
from measuretwice.measure.flows import Flow
from measuretwice.measure.many_flows import CrowdFlow
from measuretwice.measure.one_flow import Measured
from measuretwice.stats.intervals import binomial_interval
from measuretwice.tcp import model

Result = dict[str, Any]
DONE = "DONE"


def make_result(
    lab: Lab, plan: Plan, measured: Measured, flows: Sequence[Flow | CrowdFlow] = ()
) -> Result:
    """Return result.json's content, but for `run_dir`, which is where the reader finds it."""
    result: Result = {
        "lab": plan.lab,
        "trial": plan.trial,
        "title": lab.trials[plan.trial].title,
        "pitfall": plan.pitfall,
        "stage": plan.stage,
        "seed": plan.seed,
        "params": plan.params,
        "measured": measured,
        **({"flows": [asdict(flow) for flow in flows]} if flows else {}),
        "model": None,
        "ratio": None,
        "comparable": True,
        "not_comparable_because": None,
    }
    if lab.file.model:
        result |= _against_model(lab.file.model, plan, measured)
    values = {**measured, "ratio": result["ratio"]}
    result["expectations"] = [
        judge(expectation, plan.params, values, result["comparable"])
        for expectation in lab.file.expect
        if expectation.trials is None or plan.trial in expectation.trials
    ]
    result["findings"] = []
    return result


def _against_model(use: ModelUse, plan: Plan, measured: Measured) -> Result:
    mss_bytes, rtt_ms, loss_ratio = (
        float(plan.params[key]) for key in (use.mss, use.rtt, use.loss)
    )
    bandwidth_bps = model.BANDWIDTH_BPS[use.name](mss_bytes, rtt_ms, loss_ratio, use.constant)
    duration_s = measured.get("duration_s") or 0.0
    expected = model.EXPECTED_LOSSES[use.name](rtt_ms, loss_ratio, duration_s, use.constant)
    goodput_bps = measured.get("goodput_bps")
    reason = None
    if loss_ratio >= use.max_loss_ratio:
        reason = f"p is {loss_ratio:.3g}: from p = {use.max_loss_ratio:g} on, timeouts rule and the model makes no claim"
    elif expected < use.min_expected_losses:
        reason = (
            f"{expected:.0f} losses expected in {duration_s:.0f} s: "
            f"fewer than {use.min_expected_losses:g} losses say too little about p"
        )
    finite = 0 < bandwidth_bps < float("inf")
    return {
        "model": {
            "name": use.name,
            "constant": use.constant,
            "bandwidth_bps": bandwidth_bps if finite else None,
            "expected_losses": round(expected, 3) if finite else None,
        },
        "ratio": goodput_bps / bandwidth_bps if finite and goodput_bps is not None else None,
        "comparable": reason is None and finite,
        "not_comparable_because": reason
        if finite
        else "the model has no finite bandwidth without loss and delay",
    }


def judge(
    expectation: Expectation, params: dict[str, Any], measured: Measured, comparable: bool
) -> Result:
    """Return one expectation's verdict: what was measured, the range expected, and `ok`.

    `ok` is None where nothing can be said: nothing was measured, or the model doesn't apply.
    """
    value = measured.get(expectation.measured)
    low, high = _bounds(expectation, params, measured)
    ok: bool | None = None
    if value is not None and not (expectation.only_comparable and not comparable):
        ok = (low is None or value >= low) and (high is None or value <= high)
    return {
        "label": expectation.label,
        "measured": expectation.measured,
        "value": value,
        "low": low,
        "high": high,
        "confidence": expectation.confidence,
        "ok": ok,
    }


def _bounds(
    expectation: Expectation, params: dict[str, Any], measured: Measured
) -> tuple[float | None, float | None]:
    if expectation.param is None:
        return expectation.min, expectation.max
    wanted = float(params[expectation.param]) * expectation.scale
    if expectation.tolerance_ratio is not None:
        slack = abs(wanted) * expectation.tolerance_ratio
        return wanted - slack, wanted + slack
    count = measured.get(expectation.binomial_of or "")
    if not count or expectation.confidence is None:
        return None, None
    return binomial_interval(int(count), wanted, expectation.confidence)


def what_chance_does(results: list[Result]) -> str | None:
    """Say how many counts lie outside their interval, and how many of that are to be expected.

    Some of many honest trials do. None for a single trial, or where none does.
    """
    judged = [
        e for r in results for e in r["expectations"] if e["confidence"] and e["ok"] is not None
    ]
    off = sum(e["ok"] is False for e in judged)
    if not off or len(results) < 2:
        return None
    by_chance = sum(1 - e["confidence"] for e in judged)
    return (
        f"{off} of {len(judged)} counts lie outside their interval; by chance alone, "
        f"{by_chance:.1f} would on average. Another --seed tells chance from a wrong setting."
    )


def write_json(path: Path, content: Any) -> None:
    """Write whole or not at all: to a neighbour file first, then renamed."""
    text = json.dumps(content, indent=2, sort_keys=False) + "\n"
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write_text(path: Path, text: str) -> None:
    """Write what a person asked for, whole or not at all; UserError where that can't be."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(
            f"{path}: can't be written ({error.strerror}); choose another place with --out"
        ) from None


def read_result(run: Path) -> Result | None:
    """Return a finished run's result with its `run_dir`; None where the run never finished.

    UserError where DONE stands but the result can't be read: a broken folder is reported,
    never half-read.
    """
    if not (run / DONE).is_file():
        return None
    try:
        result = json.loads((run / "result.json").read_text(encoding="utf-8"))
        measured = result["measured"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{run}: marked DONE, but its result.json is broken ({error}): delete the folder and run again"
        ) from None
    if not isinstance(measured, dict):
        raise UserError(
            f"{run}: marked DONE, but its result.json has no measured values: delete the folder and run again"
        )
    return {**result, "run_dir": str(run)}
