"""A run's result: measured values beside the model's, each expectation's verdict, the findings.

Raw is kept, derived is recomputed: a result is made of a run's raw files, by today's code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.base.paths import digest_of_packages
from measuretwice.checks import Finding, Member, telling_values
from measuretwice.lab import (
    Lab,
    Plan,
    StageName,
    Value,
    complaints,
    hide_unlisted,
    read_lab,
    with_unlisted,
)
from measuretwice.measure.expectations import Prediction, Verdict, against_model, verdicts_of
from measuretwice.measure.fields import Measured, number
from measuretwice.measure.flows import Flow
from measuretwice.measure.run import measure
from measuretwice.parse import ParseError
from measuretwice.runs.folder import RESULT, is_finished
from measuretwice.tcp.model import payload_limit

# The packages that turn raw files into a result: what this layer may import, and of it what has to do with results.
DERIVING = ("base", "stats", "parse", "tcp", "lab", "measure", "checks", "runs")
# A sum above the link by less than this is rounding.
ROUNDING_RATIO = 5e-4
BY_ACKS = (
    "Goodput is counted from ACKs here. Data in flight as the time began are acknowledged in it, "
    "so a sum may be above what the link carries, by up to a round trip's bytes."
)


@dataclass(frozen=True)
class Result:
    """The content of result.json; and `folder`, where it was read from.

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
    def run_dir(self) -> Path:
        """The run's folder, of a result that was read from one."""
        assert self.folder is not None, "a result without a folder"
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
        return Member(self.trial, group, self.seed, self.params, self.measured, self.case)

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
    """Return the result that `content` holds, as to_json makes it or a run's file has it, with `others` in place of what
    it has by these names.

    ValueError (pydantic's ValidationError is one) where it isn't a result.
    """
    if not isinstance(content, Mapping):
        raise ValueError("not an object")
    fields = {"folder": content.get("run_dir"), **with_unlisted(content), **others}
    return _reader().validate_python(fields)


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
        result = replace(result, **vars(against_model(lab.file.model, plan.params, measured)))
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
    alone = f"about {by_chance:.1f} would" if by_chance >= 0.05 else "hardly any would"
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


@cache
def code_digest(lab_folder: Path) -> str:
    """Return eight hex digits of all that turns raw files into a result: the code, and the lab's facts."""
    facts = (lab_folder / "lab.toml").read_bytes()
    return hashlib.sha256(facts + digest_of_packages(*DERIVING)).hexdigest()[:8]


def derive(lab_folder: Path, plan: Plan, raw: Path) -> Result:
    """Return the result that a run's raw files hold, without findings: these are for who asks for them, and
    then from all files (runs.remeasure). ParseError or OSError where they don't hold one."""
    lab = read_lab(lab_folder)
    measured, flows = measure(lab, raw, plan.params)
    result = make_result(lab, plan, measured, flows)
    return replace(result, derived_by=code_digest(lab_folder))


def write_result(run: Path, lab: Lab, result: Result) -> None:
    """Write a run's result.json, which a student may read. OSError where that can't be."""
    write_json(run / RESULT, for_students(lab, result.to_json()))


def for_students(lab: Lab, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of a run's settings and measured values with those packed whose names tell a case's cause."""
    return hide_unlisted(lab, document, telling_values(lab, document.get("measured") or ()))


def finished_result(run: Path, lab_folder: Path, plan: Plan) -> Result | None:
    """Return a finished run's result, derived anew (and written) where other code had derived it.

    None where the run never finished, UserError where it can't be read.
    """
    result = read_result(run, read_lab(lab_folder))
    if result is None:
        return None
    if result.derived_by == code_digest(lab_folder):
        return result
    try:
        result = derive(lab_folder, plan, run / "raw")
        write_result(run, read_lab(lab_folder), result)
    except (ParseError, OSError) as error:
        raise UserError(
            f"{run}: its raw files can't be read again ({error}); --fresh measures again"
        ) from None
    return replace(result, folder=run)


@dataclass(frozen=True)
class Goodput:
    """The measured value's `name`, its bit/s, and over which `time`, for a table's cell.

    `above_link` is by what part it exceeds what the link carries; 0 where it doesn't.
    """

    name: str
    bps: float | int | None
    time: str
    above_link: float = 0.0


def goodput_of(lab: Lab, result: Result) -> Goodput:
    """Return what tables, reports and pages call the run's goodput.

    Where a lab looks at one sender that has settled it is that flow's; else that of all flows.
    """
    files = lab.file.collect
    seconds = result.value("duration_s")
    name, bps = "goodput_bps", result.value("goodput_bps")
    time = "" if seconds is None else f"{seconds:.4g} s"
    if (
        files.one_sender
        and (settled_bps := result.value("steady_goodput_bps")) is not None
        and (begins_s := result.number(files.one_sender.average_from)) is not None
    ):
        name, bps, time = "steady_goodput_bps", settled_bps, f"from {begins_s:g} s"
    return Goodput(name, bps, time, _above_link(lab, result, bps))


def goodput_means(lab: Lab, params: Mapping[str, Value]) -> str:
    """Return over which time, and by whose count, the lab's goodput is, as words behind 'goodput'."""
    files = lab.file.collect
    if sender := files.one_sender:
        begins_s = params[sender.average_from]
        return f"bytes of the {sender.node}'s flow acknowledged per second, from its second {begins_s} on"
    if files.crowd:
        return (
            f"bytes acknowledged per second while all flows were there, from {params[files.crowd.warmup]} s after "
            "the last one started"
        )
    if files.flows:
        return "bytes acknowledged per second while all flows were there"
    return "bytes that the receiving program got, over the whole test"


def _above_link(lab: Lab, result: Result, bps: float | int | None) -> float:
    queue, mss_bytes = lab.file.collect.queue, result.value("mss_bytes")
    rate_mbit = result.number(queue.rate) if queue else None
    if bps is None or not rate_mbit or not mss_bytes:
        return 0.0
    above = bps / payload_limit(rate_mbit * 1e6, mss_bytes, wire=False) - 1
    return above if above > ROUNDING_RATIO else 0.0
