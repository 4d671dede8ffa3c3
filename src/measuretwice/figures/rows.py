"""The numbers of the figures as plain rows: for tables, for CSV, for interactive pages. Pure functions.

A row is one trial: a dict of numbers, texts and None, with the unit in each key. `steps_data` returns a lab's recorded
steps as the figure has them that its reader can change. Nothing here draws or reads files.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, after_cases
from measuretwice.lab.schema.results import ModelUse
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import ConstantFit, fit_constant, loss_interval, ratio_bounds

Row = dict[str, Any]
# One set of runs with its title, such as a stage of a fixed experiment.
NamedSet = tuple[str, Sequence[Result]]
# From fewer trials no constant is fitted.
MIN_FIT_POINTS = 3
STATES = ("before", "after")


@dataclass(frozen=True)
class ParameterNames:
    """Which parameters hold MSS, RTT and p, as `[model]` in lab.toml says."""

    mss: str = "mss_bytes"
    rtt: str = "rtt_ms"
    loss: str = "loss_ratio"

    @classmethod
    def of(cls, lab: Lab) -> ParameterNames:
        """The names in a lab's [model]; these here where it has none."""
        use = lab.file.model
        return cls(mss=use.mss, rtt=use.rtt, loss=use.loss) if use else cls()


@dataclass(frozen=True)
class Published:
    """One published value: its trial, whether a mistake was in it still, model and measurement."""

    trial: int
    state: str
    model_mbit: float
    measured_mbit: float
    note: str


@dataclass(frozen=True)
class ModelRuns:
    """Sets of one lab's runs, to be held against its model and what was published of it."""

    sets: Sequence[NamedSet]
    published: Sequence[Published] = ()
    names: ParameterNames = ParameterNames()

    @property
    def results(self) -> list[Result]:
        """The runs of all sets, each once."""
        return distinct([result for _, results in self.sets for result in results])


def rows_for_table(
    results: Iterable[Result], names: ParameterNames = ParameterNames()
) -> list[Row]:
    """Return one row a trial, in the order of `results`; numbers to six digits, None where unknown.

    Keys: trial, seed, rtt_ms, mss_bytes, loss_ratio (as set), model_mbit, goodput_mbit with its 95 %
    bounds goodput_low_mbit and goodput_high_mbit, ratio (goodput over model), comparable,
    window_segments (goodput * RTT / MSS), losses and packets (counted at the bottleneck),
    loss_measured_ratio with its 95 % bounds loss_low_ratio and loss_high_ratio, and run, the name
    of the run's folder. Without a single loss nothing bounds the goodput: its bounds are None.
    """
    return [_row(result, names) for result in results]


def _row(result: Result, names: ParameterNames) -> Row:
    rtt_ms, mss_bytes = result.number(names.rtt), result.number(names.mss)
    goodput_bps = result.value("goodput_bps")
    losses, packets = (
        _whole(result.value(name)) for name in ("qdisc_drops", "qdisc_offered_packets")
    )
    window = None
    if goodput_bps is not None and rtt_ms is not None and mss_bytes:
        window = goodput_bps / 8 * rtt_ms / 1e3 / mss_bytes
    low, high = goodput_factors(losses)
    loss_low = loss_high = None
    if losses is not None and packets and losses <= packets:
        loss_low, loss_high = loss_interval(losses, packets)
    row = {
        "trial": result.trial,
        "seed": result.seed,
        "rtt_ms": rtt_ms,
        "mss_bytes": mss_bytes,
        "loss_ratio": result.number(names.loss),
        "model_mbit": _scaled(result.model_bps, 1e-6),
        "goodput_mbit": _scaled(goodput_bps, 1e-6),
        "goodput_low_mbit": _scaled(goodput_bps, low and low * 1e-6),
        "goodput_high_mbit": _scaled(goodput_bps, high and high * 1e-6),
        "ratio": result.ratio,
        "comparable": bool(result.comparable),
        "window_segments": window,
        "losses": losses,
        "packets": packets,
        "loss_measured_ratio": losses / packets if losses is not None and packets else None,
        "loss_low_ratio": loss_low,
        "loss_high_ratio": loss_high,
        "run": result.folder.name if result.folder else "",
    }
    return {key: _six_digits(value) for key, value in row.items()}


def goodput_factors(losses: int | None) -> tuple[float | None, float | None]:
    """Return what the goodput's 95 % bounds are of it, by its number of losses; None, None for none."""
    return (losses and ratio_bounds(losses)) or (None, None)


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


def _scaled(value: float | None, factor: float | None) -> float | None:
    return None if value is None or factor is None else value * factor


def _six_digits(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def distinct(results: Sequence[Result]) -> list[Result]:
    """Return the results without those of a run that was there already."""
    return list({result.folder or i: result for i, result in enumerate(results)}.values())


def complete(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Return the rows in which each of `keys` is a positive number: those that have a place on
    logarithmic axes."""
    return [row for row in rows if all(row[key] is not None and row[key] > 0 for key in keys)]


def fit_rows(rows: Sequence[Row], model_constant: float = 1.0) -> ConstantFit | None:
    """Fit the constant C over the comparable trials; None for fewer than three.

    `model_constant` is the C that `model_mbit` was computed with. The fit's `constant`, `low` and
    `high` are of C itself, whatever that was.
    """
    used = [row for row in complete(rows, ("model_mbit", "goodput_mbit")) if row["comparable"]]
    if len(used) < MIN_FIT_POINTS:
        return None
    return fit_constant(
        [row["model_mbit"] / model_constant for row in used], [row["goodput_mbit"] for row in used]
    )


def model_constant(results: Iterable[Result]) -> float:
    """Return the constant that the results' model values were computed with; 1 where none says."""
    for result in results:
        if result.model and result.model.constant:
            return result.model.constant
    return 1.0


def ratio_range(results: Iterable[Result]) -> tuple[float, float] | None:
    """Return the range in which the lab expects the ratio, from the results' own expectations.

    An open end is 0 or infinite. None where the lab expects nothing of it.
    """
    for result in results:
        for expectation in result.expectations:
            if expectation.measured == "ratio":
                low, high = expectation.low, expectation.high
                return (0.0 if low is None else low), (math.inf if high is None else high)
    return None


def count_within(rows: Iterable[Row], span: tuple[float | None, float | None]) -> int:
    """Return how many rows have a ratio within `span`, its ends included; None is an open end."""
    low = -math.inf if span[0] is None else span[0]
    high = math.inf if span[1] is None else span[1]
    return sum(row["ratio"] is not None and low <= row["ratio"] <= high for row in rows)


@dataclass(frozen=True)
class SetData:
    """A set's rows, the constant fitted over them, and the range in which the ratio is expected.

    Numbers to six digits, as JSON can hold them: an open end of the range is None. `fit` is None for
    fewer than three comparable trials, `ratio_range` where the lab has none.
    """

    title: str
    rows: list[Row]
    fit: ConstantFit | None
    ratio_range: tuple[float | None, float | None] | None


def set_data(
    title: str, results: Sequence[Result], names: ParameterNames = ParameterNames()
) -> SetData:
    """Return what a figure that its reader can change shows of a set."""
    rows = rows_for_table(results, names)
    fit = fit_rows(rows, model_constant(results))
    span = ratio_range(results)
    rounded = {key: _six_digits(value) for key, value in asdict(fit).items()} if fit else None
    low, high = (end if math.isfinite(end) else None for end in span) if span else (None, None)
    return SetData(
        title, rows, ConstantFit(**rounded) if rounded else None, (low, high) if span else None
    )


def csv_text(rows: Sequence[Row]) -> str:
    """Return rows of equal keys as CSV with a heading; None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_published(text: str, name: str) -> list[Published]:
    """Read published values: CSV with the columns trial, state, model_mbit, measured_mbit, note.

    `name` is the file's, for the UserError that says which line is wrong.
    """
    values = []
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        try:
            value = Published(
                trial=int(row["trial"]),
                state=row["state"],
                model_mbit=float(row["model_mbit"]),
                measured_mbit=float(row["measured_mbit"]),
                note=row["note"] or "",
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{name}, line {line}: expected trial, state, model_mbit, measured_mbit, note ({error})"
            ) from None
        if value.state not in STATES:
            raise UserError(f"{name}, line {line}: expected before or after as state")
        if not all(0 < mbit < math.inf for mbit in (value.model_mbit, value.measured_mbit)):
            raise UserError(f"{name}, line {line}: expected positive Mbit/s")
        values.append(value)
    return values


def counted_runs(counts: Sequence[int]) -> str:
    """Return how many runs each of several things has, in words: 10 runs, or 8 to 10 runs."""
    low, high = min(counts), max(counts)
    many = f"{low} to {high}" if low != high else str(low)
    return f"{many} run{'' if high == 1 else 's'}"


# What a mark tells of its run; each run in the data is a list in this order.
ROW_KEYS = (
    "trial", "rtt_ms", "mss_bytes", "loss_ratio", "model_mbit", "goodput_mbit", "goodput_low_mbit",
    "goodput_high_mbit", "ratio", "comparable", "losses",
)  # fmt: skip


@dataclass(frozen=True)
class StepRuns:
    """A recorded step: its title, which names what was wrong, the cases that lead to it, its runs."""

    title: str
    cases: tuple[int, ...]
    results: Sequence[Result]

    @property
    def veiled(self) -> str:
        """The title for those who still look for the causes."""
        return after_cases(self.cases) if self.cases else self.title


def json_for_script(data: Any) -> str:
    """Return JSON that may stand in a script of a page: no sign in it ends the script or begins a tag."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def steps_data(lab: Lab, use: ModelUse, steps: Sequence[StepRuns]) -> dict[str, Any]:
    """All steps' runs, with what repeats each; the lab's expected range; published values."""
    sets = [set_data(step.title, step.results, names_of(use)) for step in steps]
    span = next((data.ratio_range for data in sets if data.ratio_range), None)
    if span is None or None in span:
        raise UserError(f"{lab.name}: no recorded step, or no range that its ratio is expected in")
    published = lab.folder / "published.csv"
    values = []
    if published.is_file():
        text = published.read_text(encoding="utf-8")
        values = read_published(text, f"{lab.folder.name}/{published.name}")
    return {
        "lab": lab.name,
        "trials": len(lab.trials),
        "range": span,
        "keys": [*ROW_KEYS, "duration_s", "because", "command"],
        "steps": [
            {
                "title": data.title,
                "cases": [
                    {"number": number, "symptom": lab.case(number).symptom} for number in step.cases
                ],
                "fit": data.fit and [data.fit.constant, data.fit.low, data.fit.high],
                "runs": [
                    run_data(lab, row, result)
                    for row, result in zip(data.rows, step.results, strict=True)
                ],
            }
            for data, step in zip(sets, steps, strict=True)
        ],
        "published": [asdict(value) for value in values],
    }


def run_data(lab: Lab, row: Row, result: Result) -> list[Any]:
    """A run as the figure's data has it."""
    return [
        *(row[key] for key in ROW_KEYS),
        result.params.get("duration_s"),
        result.not_comparable_because,
        command(lab, result),
    ]


def names_of(use: ModelUse) -> ParameterNames:
    return ParameterNames(mss=use.mss, rtt=use.rtt, loss=use.loss)


def command(lab: Lab, result: Result) -> str:
    """The command that repeats a run: its trial, and what was set other than the lab has it."""
    usual = {**lab.defaults(), **lab.trials[result.trial].set}
    changes = [f"--set {k}={v}" for k, v in result.params.items() if usual.get(k) != v]
    if result.seed != 1:
        changes.append(f"--seed {result.seed}")
    return " ".join([f"./lab run {lab.name} --trial {result.trial}", *changes])
