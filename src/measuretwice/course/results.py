"""A run's values in words, as tables in terminals and pages have them."""

from __future__ import annotations

from measuretwice.lab import Lab
from measuretwice.report.tables import NO_CLAIM
from measuretwice.runs.goodput import goodput_of
from measuretwice.runs.result import Result

HEADINGS = (
    "trial",
    "min RTT\nms",
    "MSS\nB",
    "p\nset",
    "p\nmeasured",
    "goodput\nMbit/s",
    "over",
    "model\nMbit/s",
    "ratio",
)


def row_of(lab: Lab, result: Result) -> list[str]:
    """Return a result's values in words, one for each of HEADINGS."""
    goodput = goodput_of(lab, result)
    return [
        str(result.trial),
        _number(result.value("rtt_min_ms"), "{:.4g}"),
        _number(result.value("mss_bytes"), "{:.0f}"),
        _number(result.number("loss_ratio"), "{:.3g}"),
        _number(result.value("loss_ratio"), "{:.3g}"),
        _number(goodput.bps, "{:.4g}", 1e-6),
        goodput.time or "-",
        _number(result.model_bps, "{:.4g}", 1e-6),
        _number(result.ratio, "{:.2f}") + _without_claim(result),
    ]


def _without_claim(result: Result) -> str:
    """What stands beside a case's ratio where the model says nothing of such a run, once the case is shown fixed.

    Before that, whether the model holds may be the question. Runs of no case have a verdict.
    """
    if result.ratio is None or result.comparable or not result.case:
        return ""
    return NO_CLAIM if result.stage == "fixed" else ""


def verdict(result: Result) -> str:
    """The expectations in a word or two: what was off, or whether the model has a say."""
    wrong = [e.measured for e in result.expectations if e.ok is False]
    if wrong:
        return f"off: {', '.join(wrong)}"
    return "ok" if result.comparable else "ok, no model"


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else form.format(value * scale)


def expectation_rows(result: Result) -> list[tuple[str, str]]:
    """Return each expectation of a trial in words, and a mark: as expected, off, or nothing can be said."""
    rows = []
    for e in result.expectations:
        mark = {True: "ok ", False: "OFF", None: " - "}[e.ok]
        low, high = (_number(bound, "{:.6g}") for bound in (e.low, e.high))
        span = low if low == high else f"{low} to {high}"
        rows.append(
            (mark, f"{e.label}: {e.measured} {_number(e.value, '{:.6g}')}, expected {span}")
        )
    return rows


def in_brief(lab: Lab, result: Result) -> str:
    """A finished trial in some words."""
    goodput = _number(goodput_of(lab, result).bps, "{:.4g} Mbit/s", 1e-6)
    ratio = f", {result.ratio:.2f} of the model" if result.ratio is not None else ""
    return goodput + ratio
