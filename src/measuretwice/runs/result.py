"""A run's result: measured values beside the model's, each expectation's verdict, the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.checks import Finding, Member
from measuretwice.lab import Lab, Plan, StageName, Value, complaints
from measuretwice.measure.expectations import Prediction, Verdict, against_model, verdicts_of
from measuretwice.measure.fields import Measured, number
from measuretwice.measure.flows import Flow
from measuretwice.runs.folder import RESULT, is_finished


@dataclass(frozen=True)
class Result:
    """What result.json holds; and `folder`, which is where the reader found it.

    `ratio` is the goodput over the model's bandwidth. `flows` are there where the lab has several.
    `findings` are no part of result.json: they name causes, and who opens the file is still looking for them. They are
    there where somebody asked what the checker says.
    `derived_by` is the digest of the code that read the raw files, `edited` the digests of the node scripts
    that were the student's own.
    """

    lab: str
    trial: int
    title: str
    pitfall: str | None
    stage: StageName | None
    seed: int
    params: dict[str, Value]
    measured: Measured
    flows: tuple[Flow, ...] = ()
    model: Prediction | None = None
    ratio: float | None = None
    comparable: bool = True
    not_comparable_because: str | None = None
    expectations: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    derived_by: str | None = None
    case: int | None = None
    edited: dict[str, str] | None = None
    folder: Path | None = None

    @property
    def place(self) -> Path:
        """The run's folder, of a result that was found in one."""
        assert self.folder is not None, "a result that stands nowhere"
        return self.folder

    @property
    def values(self) -> Measured:
        """All that was measured, and the ratio."""
        return {**self.measured, "ratio": self.ratio}

    def value(self, name: str) -> float | int | None:
        """Return a measured number, or the ratio; None where the run has none by that name."""
        return self.ratio if name == "ratio" else number(self.measured, name)

    @property
    def model_bps(self) -> float | None:
        """The model's bandwidth; None without a model, or where it has no finite answer."""
        return self.model.bandwidth_bps if self.model else None

    def number(self, parameter: str) -> float | int | None:
        """Return a parameter's number; None where the run has none by that name, or a word."""
        value = self.params.get(parameter)
        return None if isinstance(value, str) else value

    @property
    def member(self) -> Member:
        """The run as the checks of sets see it."""
        group = (self.pitfall, self.stage, self.case)
        return Member(self.trial, group, self.seed, self.params, self.measured)

    def to_json(self) -> dict[str, Any]:
        """Return result.json's content, and where there is a folder that as `run_dir`."""
        content = asdict(replace(self, findings=(), flows=()))
        del content["findings"]
        content["flows"] = tuple(flow.to_json() for flow in self.flows)
        for name in ("flows", "derived_by", "case", "edited", "folder"):
            if not content[name]:
                del content[name]
        if self.folder is not None:
            content["run_dir"] = str(content.pop("folder"))
        return content


@cache
def _reader() -> TypeAdapter[Result]:
    return TypeAdapter(Result)


def from_json(content: object, **others: Any) -> Result:
    """Return the result that `content` holds, as to_json makes it, with `others` in place of what
    it has by these names.

    ValueError (pydantic's ValidationError is one) where it isn't a result.
    """
    if not isinstance(content, Mapping):
        raise ValueError("not an object")
    found = {"folder": content.get("run_dir"), **content, **others}
    return _reader().validate_python(found)


def make_result(
    lab: Lab,
    plan: Plan,
    measured: Measured,
    flows: Sequence[Flow] = (),
    findings: Sequence[Finding] = (),
) -> Result:
    """Return the result of a run with this plan in which this was measured."""
    result = Result(
        lab=plan.lab,
        trial=plan.trial,
        title=lab.trials[plan.trial].title_with(plan.params),
        pitfall=plan.pitfall,
        stage=plan.stage,
        seed=plan.seed,
        params=dict(plan.params),
        measured=measured,
        flows=tuple(flows),
        findings=tuple(findings),
        case=plan.case,
        edited=plan.edited,
    )
    if lab.file.model:
        held = against_model(lab.file.model, plan.params, measured)
        result = replace(
            result,
            model=held.model,
            ratio=held.ratio,
            comparable=held.comparable,
            not_comparable_because=held.not_comparable_because,
        )
    return judged(lab, result)


def judged(lab: Lab, result: Result) -> Result:
    """Return the result with the verdicts of today's lab.toml."""
    verdicts = verdicts_of(lab, result.trial, result.params, result.values, result.comparable)
    return replace(result, expectations=verdicts)


def what_chance_does(results: Sequence[Result]) -> str | None:
    """Say how many counts lie outside their interval, and how many of that are to be expected.

    Some of many honest trials do. None for a single trial, or where none does.
    """
    chances = [
        (1 - verdict.confidence, verdict.ok)
        for result in results
        for verdict in result.expectations
        if verdict.confidence and verdict.ok is not None
    ]
    off = sum(not ok for _, ok in chances)
    if not off or len(results) < 2:
        return None
    by_chance = sum(chance for chance, _ in chances)
    alone = f"about {by_chance:.1f} would" if by_chance >= 0.05 else "hardly one would"
    return (
        f"{off} of {len(chances)} counts {'lies outside its' if off == 1 else 'lie outside their'} interval; by chance "
        f"alone {alone}. Another --seed tells chance from a wrong setting."
    )


def check_of_lab(lab: Lab, result: Result, where: str) -> None:
    """UserError where a result names a lab, a trial, a case or settings that aren't this lab's to have."""
    why = next(iter(complaints(lab, result.params).values()), "")
    if result.lab != lab.name:
        why = f"it is of another lab than {lab.name}"
    elif result.trial not in lab.trials:
        why = f"{lab.name} has no trial {result.trial}"
    elif result.case is not None and not 1 <= result.case <= len(lab.file.pitfalls):
        why = f"{lab.name} has no case {result.case}"
    if why:
        raise UserError(f"{where}: {why}")


def lab_named(run: Path) -> str:
    """Return which lab a finished run's result names; empty where it can't be read, which read_result says."""
    try:
        return str(read_object(run / RESULT)["lab"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def read_result(run: Path, lab: Lab) -> Result | None:
    """Return a finished run's result; None where the run never finished.

    UserError where DONE stands but the result can't be read, or isn't one that this lab can have: a broken folder is
    reported, never half-read.
    """
    if not is_finished(run):
        return None
    try:
        if not (run / RESULT).is_file():  # a pipe would wait for ever
            raise UserError("there is no such plain file")
        result = from_json(read_object(run / RESULT), folder=run)
        check_of_lab(lab, result, RESULT)
        return result
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError, TypeError, UserError) as error:
        reason = str(error)
    raise UserError(
        f"{run}: marked DONE, but its result.json is broken ({reason}): delete the folder and run again"
    )
