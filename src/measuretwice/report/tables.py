"""The tables of a report: cells of text, from runs that were read again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from measuretwice.backends import option_of, what_differs
from measuretwice.base.errors import UserError
from measuretwice.book.prediction import display_unit
from measuretwice.lab import Lab, trial_params
from measuretwice.lab.schema.parameters import UNITS
from measuretwice.measure.expectations import Verdict
from measuretwice.measure.fields import unit_of
from measuretwice.runs.folder import command_again
from measuretwice.runs.remeasure import RunData
from measuretwice.runs.result import Goodput, goodput_means, goodput_of
from measuretwice.stats.intervals import loss_interval, relative_error_of_ratio

NONE = "–"
# What stands beside a ratio where the model says nothing of such a run.
NO_CLAIM = " (no claim)"
# 95 % of a normal distribution lie within this many standard errors.
Z_95 = 1.96
MARKS = {True: "ok", False: "OFF", None: NONE}
OF_MODEL = (
    "One line a run. RTT, MSS, p and goodput are measured, and goodput is over the time beside it; "
    "the ratio is goodput over model, ± what chance does to it in 95 % of runs with as many drops."
)
# What a reader wants first; whatever else was measured stands in the folded table.
KEY_VALUES = {
    "rtt_min_ms": "smallest round-trip time",
    "rtt_mean_ms": "mean round-trip time",
    "ping_rtt_min_ms": "smallest round-trip time, by ping",
    "ping_loss_ratio": "loss, by ping",
    "mss_bytes": "segment size",
    "cwnd_mean_segments": "mean congestion window",
    "qdisc_offered_packets": "packets offered to the bottleneck",
    "qdisc_drops": "packets that it dropped",
    "loss_ratio": "share that it dropped",
    "retransmits": "retransmissions",
    "timeouts": "timeouts",
    "duration_s": "length of the test",
}


@dataclass(frozen=True)
class ReportTable:
    """Cells of text. `numeric` columns stand right; `mark` is the column that holds verdicts.

    `links` are anchors in the report that the rows' first cells lead to, or other pages (with a slash).
    """

    caption: str
    headings: Sequence[str]
    rows: list[list[str]]
    numeric: frozenset[int] = frozenset()
    mark: int | None = None
    links: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Column:
    """A column of the summary: what it is called, and what it says of a run."""

    heading: str
    cell: Callable[[RunData], str]
    numeric: bool = True


def summary_table(
    runs: Sequence[RunData], first: int = 1, unsolved: Collection[int] = ()
) -> ReportTable:
    """Return the table with a line for each run of one lab, which is number `first` of the report's.

    Its columns are the lab's own quantities: the model's where it has one, and what its figures show and its cases ask
    for. What none of these runs has is no column, nor what the question of an `unsolved` case is to lead to.
    """
    lab = runs[0].lab
    has_model = lab.file.model is not None
    own = _own_quantities(runs, unsolved)
    columns = [
        _Column("trial", lambda run: str(run.plan.trial), numeric=False),
        _Column("case, and what was changed", _case_and_changes, numeric=False),
        _Column("seed", lambda run: str(run.plan.seed)),
        *(_OF_A_PATH if has_model or not own else ()),
        *(_OF_A_LOSS if has_model else ()),
        _Column("goodput, Mbit/s", lambda run: number(_goodput(run).bps, "{:.4g}", 1e-6)),
        _Column("over", lambda run: _goodput(run).time or NONE),
        *own,
        *(_OF_A_MODEL if has_model else ()),
        _Column("findings", _findings, numeric=False),
    ]
    columns = [column for column in columns if any(column.cell(run) != NONE for run in runs)]
    return ReportTable(
        OF_MODEL if has_model else "One line a run. Goodput is over the time beside it.",
        [column.heading for column in columns],
        [[column.cell(run) for column in columns] for run in runs],
        frozenset(place for place, column in enumerate(columns) if column.numeric),
        links=[f"run-{place}" for place in range(first, first + len(runs))],
    )


def _own_quantities(runs: Sequence[RunData], unsolved: Collection[int]) -> list[_Column]:
    """A column for each value that the lab's figures and its first try show, and the cases of these runs ask for; the goodput
    has one anyhow."""
    lab = runs[0].lab
    labels: dict[str, tuple[str, float]] = {}
    for figure in lab.file.figures:
        for value, label, unit in figure.quantities():
            labels.setdefault(value, (label, unit))
    first_try = lab.file.first_try
    for shown in (first_try.shown, *(step.shown for step in first_try.steps)) if first_try else ():
        if shown:
            labels.setdefault(shown.value, _labelled(shown.label, shown.value))
    for case in sorted({run.plan.case for run in runs if run.plan.case}):
        asked = lab.case(case).predict
        if asked.compared:
            labels.setdefault(asked.value, _labelled(asked.name, asked.value))
    goodputs = {_goodput(run).name for run in runs} | {"goodput_bps", "ratio"}
    later = _asked_later(lab, unsolved)
    return [
        _Column(" ".join(label.split()), _measured(value, unit))
        for value, (label, unit) in labels.items()
        if value not in goodputs and not {value, unit_of(value)} & later
    ]


def _asked_later(lab: Lab, unsolved: Collection[int]) -> set[str]:
    """The values for which the questions of these cases ask, and their units: which quantity it is may be all there is to find."""
    asked = [judgement.number for n in unsolved if (judgement := lab.case(n).judgement)]
    values = {number.value for number in asked if number}
    return (values | {unit_of(value) for value in values}) - {""}


def _labelled(label: str, value: str) -> tuple[str, float]:
    """A value's label with its unit, and what the value is divided by to be in it."""
    scale, unit = display_unit(value)
    between = " " if unit.startswith("(") else ", "
    return (f"{label}{between}{unit}" if unit and unit not in label else label), 1 / scale


def _measured(name: str, unit: float) -> Callable[[RunData], str]:
    def cell(run: RunData) -> str:
        value = run.result.value(name)
        if value is None:
            return NONE
        value = value if unit == 1 else value / unit
        return (
            f"{value:d}" if isinstance(value, int) else f"{value:.{4 if abs(value) < 1e4 else 6}g}"
        )

    return cell


def _goodput(run: RunData) -> Goodput:
    return goodput_of(run.lab, run.result)


def _case_and_changes(run: RunData) -> str:
    return ", ".join(filter(None, [stage_of(run), *own_changes(run)])) or NONE


def _findings(run: RunData) -> str:
    return ", ".join(finding.id for finding in run.result.findings) or "none"


def _loss_set(run: RunData) -> str:
    use = run.lab.file.model
    return number(run.plan.params.get(use.loss), "{:.3g}") if use else NONE


def _interval(run: RunData) -> str:
    interval = loss_interval_of(run)
    return f"{interval[0]:.3g}\u00a0to\u00a0{interval[1]:.3g}" if interval else NONE


def _ratio(run: RunData) -> str:
    result, error = run.result, ratio_error_of(run)
    ratio = number(result.ratio, "{:.2f}" if error is None or error >= 0.01 else "{:.3f}")
    if error is not None:
        ratio += "\u00a0±\u00a0" + (f"{error:.2f}" if error >= 0.01 else f"{error:.3f}")
    return ratio + (NO_CLAIM if result.ratio is not None and not result.comparable else "")


_OF_A_PATH = (
    _Column("RTT, ms", lambda run: number(run.result.measured.get("rtt_min_ms"), "{:.4g}")),
    _Column("MSS, B", lambda run: number(run.result.measured.get("mss_bytes"), "{:.0f}")),
)
_OF_A_LOSS = (
    _Column("p set", _loss_set),
    _Column("p measured", lambda run: number(run.result.measured.get("loss_ratio"), "{:.3g}")),
    _Column("95 % interval of p", _interval),
)
_OF_A_MODEL = (
    _Column("model, Mbit/s", lambda run: number(run.result.model_bps, "{:.4g}", 1e-6)),
    _Column("ratio", _ratio),
)


def stage_of(run: RunData) -> str:
    """Return a run's case or mistake, and its stage; empty for a run of the lab as it is."""
    if run.plan.case:
        return f"Case {run.plan.case}" + (", shown" if run.plan.stage else "")
    return f"{run.plan.pitfall}, {run.plan.stage}" if run.plan.pitfall else ""


def own_changes(run: RunData) -> list[str]:
    """Return the settings of a run that differ from the trial's, or from the case's first try, as name=value."""
    plan = run.plan
    try:
        declared = trial_params(
            run.lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage, case=plan.case, seed=plan.seed
        )  # fmt: skip
    except (UserError, KeyError):
        return []  # of a mistake that the lab doesn't have
    return [f"{name}={value}" for name, value in plan.params.items() if declared.get(name) != value]


def settings_table(run: RunData, *, tells: bool = True) -> ReportTable:
    """Return the parameters with their units and who set them; what isn't as the trial has it comes first.

    Of a case whose cause isn't found yet (`tells` is False) that would be the answer: no word of it. What no list has
    is what cases are about: such a setting is there if somebody changed it, or the run's own case did.
    """
    of_trial = run.lab.trials[run.plan.trial].set
    defaults = run.lab.defaults()
    own = {change.partition("=")[0] for change in own_changes(run)}
    rows = []
    for name, value in run.plan.params.items():
        declared = of_trial.get(name, defaults.get(name))
        if run.lab.is_unlisted(name) and name not in own and (not tells or value == declared):
            continue
        if not tells:
            origin = "the case"
        elif value != declared:
            origin = f"CHANGED: {'not set' if declared is None else declared} in the trial"
        else:
            origin = "this trial" if name in of_trial else "the lab"
        unit = UNITS.get(name.rsplit("_", 1)[-1], "") if not isinstance(value, str) else ""
        rows.append([name, str(value), unit, origin])
    rows += [
        [name, digest, "", "CHANGED: the student's own script, see edit.diff"]
        for name, digest in (run.plan.edited or {}).items()
    ]
    # What was changed is what a reader looks for.
    rows.sort(key=lambda row: not row[3].startswith("CHANGED"))
    return ReportTable(
        "Settings" + (": those that differ from the trial's own come first" if tells else ""),
        ["setting", "value", "unit", "set by"],
        rows,
        frozenset({1}),
        mark=3,
    )


def validation_table(verdicts: Sequence[Verdict]) -> ReportTable:
    """Return what was measured beside what was expected, a row for each expectation."""
    rows = []
    for verdict in verdicts:
        low, high = (number(bound, "{:.6g}") for bound in (verdict.low, verdict.high))
        if verdict.low is None or verdict.high is None:
            span = f"at least {low}" if verdict.high is None else f"at most {high}"
            span = NONE if verdict.low is None and verdict.high is None else span
        else:
            span = low if low == high else f"{low} to {high}"
        value = number(verdict.value, "{:.6g}")
        rows.append([verdict.label, verdict.measured, value, span, MARKS[verdict.ok]])
    return ReportTable(
        f"Validation: what was measured against what was asked for; {NONE} where the two can't be compared",
        ["expectation", "measured", "value", "expected", "verdict"],
        rows,
        frozenset({2, 3}),
        mark=4,
    )


def provenance_table(run: RunData) -> ReportTable:
    """Return where a run comes from, as its folder has it."""
    provenance, plan = run.provenance or {}, run.plan
    machine = provenance.get("machine")
    rows = [
        ["run's folder", run.name],
        # What the folder says of its command is a stranger's word: this one is made of the plan.
        ["command, by the plan", _command(run)],
        ["seed", str(plan.seed)],
        ["where", what_differs(plan.where) or plan.where],
        ["kernel", plan.kernel],
        ["begun", _as_text(provenance.get("started"))],
        ["ended", _as_text(provenance.get("ended"))],
        ["Measure Twice", _as_text(provenance.get("measuretwice"))],
        ["commit", _as_text(provenance.get("git_commit"))],
        ["system", _as_text(machine.get("system") if isinstance(machine, dict) else machine)],
        *([tool, version] for tool, version in plan.tools.items()),
        ["digest of the plan", plan.digest],
    ]
    return ReportTable("Where this comes from", ["what", "said by the run's folder"], rows)


def _command(run: RunData) -> str:
    try:
        return command_again(run.plan, run.lab, option_of(run.plan.where))
    except UserError:
        return NONE


def key_values_table(run: RunData) -> ReportTable:
    """Return the values that a reader wants first, and of a lab with a model how it compares."""
    result = run.result
    goodput = goodput_of(run.lab, result)
    means = f"goodput: {goodput_means(run.lab, result.params)}"
    rows = [[means, *_with_unit(goodput.name, goodput.bps)]] if goodput.bps is not None else []
    rows += [
        [label, *_with_unit(name, result.measured[name])]
        for name, label in KEY_VALUES.items()
        if name in result.measured
    ]
    model = result.model
    if model:
        name = f"bandwidth by the model ({model.name}, C = {model.constant:g})"
        rows.append([name, *_with_unit("bandwidth_bps", model.bandwidth_bps)])
        rows.append(["goodput over the model's bandwidth", number(result.ratio, "{:.4g}"), ""])
    return ReportTable("Key values, measured", ["what", "value", "unit"], rows, frozenset({1}))


def all_values_table(run: RunData, left_out: Collection[str] = ()) -> ReportTable:
    """Return every measured value under its own name, without those that are `left_out`."""
    return ReportTable(
        "All that was measured, by its name in result.json",
        ["name", "value"],
        [
            [name, value if isinstance(value, str) else number(value, "{:.10g}")]
            for name, value in run.result.measured.items()
            if name not in left_out
        ],
        frozenset({1}),
    )


def digests_table(run: RunData) -> ReportTable:
    """Return the raw files with their SHA-256."""
    return ReportTable(
        "SHA-256 of each raw file",
        ["file", "digest"],
        [[name, digest] for name, digest in run.digests.items()],
    )


def _as_text(value: object) -> str:
    if value is None:
        return "not recorded"
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)


def number(value: object, form: str, scale: float = 1.0) -> str:
    """Return `value * scale` in a format's form; a dash for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NONE
    return form.format(value * scale)


def _with_unit(name: str, value: object) -> list[str]:
    """A measured value and its unit, read from its name."""
    ending = name.rsplit("_", 1)[-1]
    if ending == "bps":
        return [number(value, "{:.5g}", 1e-6), "Mbit/s"]
    whole = isinstance(value, int)
    unit = {"ratio": "", "bytes": "B"}.get(ending, ending if ending in UNITS else "")
    return [number(value, "{:d}" if whole else "{:.5g}", 1), unit]


def loss_interval_of(run: RunData) -> tuple[float, float] | None:
    """Return the loss ratio's 95 % interval by Clopper and Pearson; None where drops or packets weren't counted."""
    drops, offered = (run.result.value(f"qdisc_{name}") for name in ("drops", "offered_packets"))
    if drops is None or not offered or not 0 <= drops <= offered:
        return None
    return loss_interval(int(drops), int(offered))


def ratio_error_of(run: RunData) -> float | None:
    """Return how far chance alone takes the ratio, 95 %, by the number of drops; None where that isn't known."""
    ratio, drops = run.result.ratio, run.result.value("qdisc_drops")
    if ratio is None or drops is None:
        return None
    error = Z_95 * float(ratio) * relative_error_of_ratio(drops)
    return error if math.isfinite(error) else None
