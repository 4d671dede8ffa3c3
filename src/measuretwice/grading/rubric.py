"""How a lab's report is marked: labs/NN-<name>/rubric.toml, and the same as CSV.

Each criterion belongs to a question and takes a part of its points. One of a `pitfall` is marked
on the ladder that all pitfalls share; any other says what earns full and what half marks.
"""

from __future__ import annotations

import csv
import io
import tomllib
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab

FILE = "rubric.toml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Rung(_Strict):
    title: str
    share: float = Field(ge=0, le=1)
    says: str


class _Criterion(_Strict):
    question: int = Field(gt=0)
    points: float | int = Field(gt=0)
    pitfall: str | None = None
    title: str | None = None
    full: str | None = None
    half: str | None = None

    @model_validator(mode="after")
    def _is_of_a_kind(self) -> _Criterion:
        levels = (self.title, self.full, self.half)
        if any(levels) == bool(self.pitfall) or (any(levels) and not all(levels)):
            raise ValueError("expected pitfall, or else title, full and half")
        return self


class _File(_Strict):
    none: str
    ladder: list[Rung] = []
    criteria: list[_Criterion] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_a_ladder(self) -> _File:
        if len(self.ladder) < 2 and any(criterion.pitfall for criterion in self.criteria):
            raise ValueError("ladder: expected at least two rungs, for the criteria with a pitfall")
        return self


@dataclass(frozen=True)
class Level:
    """What earns these points of a criterion."""

    title: str
    points: float
    says: str


@dataclass(frozen=True)
class Criterion:
    """One row of the rubric; its levels from most points to none."""

    question: int
    title: str
    pitfall: str | None
    levels: list[Level]

    @property
    def points(self) -> float:
        return self.levels[0].points


@dataclass(frozen=True)
class Rubric:
    title: str
    ladder: list[Rung]
    criteria: list[Criterion]

    @property
    def points(self) -> float:
        return sum(criterion.points for criterion in self.criteria)


def read_rubric(lab: Lab) -> Rubric | None:
    """Return a lab's rubric, or None where it has none; UserError says what is wrong in it."""
    path = lab.folder / FILE
    if not path.is_file():
        return None
    where = "/".join(path.parts[-3:])
    try:
        file = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(f"{where}: {key}: {first['msg'].removeprefix('Value error, ')}") from None
    known = {pitfall.id for pitfall in lab.file.pitfalls}
    for criterion in file.criteria:
        if criterion.pitfall and criterion.pitfall not in known:
            raise UserError(f"{where}: {lab.name} has no pitfall {criterion.pitfall!r}")
    criteria = [_criterion(criterion, file) for criterion in file.criteria]
    return Rubric(f"{lab.name}: report", file.ladder, criteria)


def _criterion(written: _Criterion, file: _File) -> Criterion:
    points = float(written.points)
    if written.pitfall:
        rungs = sorted(file.ladder, key=lambda rung: -rung.share)
        levels = [Level(rung.title, rung.share * points, rung.says) for rung in rungs]
        return Criterion(
            written.question, f"The mistake {written.pitfall}", written.pitfall, levels
        )
    levels = [
        Level("Full", points, written.full or ""),
        Level("Half", points / 2, written.half or ""),
        Level("Nothing", 0.0, file.none),
    ]
    return Criterion(written.question, written.title or "", None, levels)


def csv_text(rubric: Rubric) -> str:
    """The rubric in the columns of Canvas' rubric import: a row a criterion, its levels in threes."""
    most = max(len(criterion.levels) for criterion in rubric.criteria)
    header = ["Rubric Name", "Criteria Name", "Criteria Description", "Criteria Enable Range"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*header, *("Rating Name", "Rating Description", "Rating Points") * most])
    for criterion in rubric.criteria:
        about = f"Question {criterion.question} of the report"
        row = [rubric.title, f"{criterion.question}. {criterion.title}", about, "false"]
        for level in criterion.levels:
            row += [level.title, level.says, f"{level.points:g}"]
        writer.writerow(row)
    return out.getvalue()
