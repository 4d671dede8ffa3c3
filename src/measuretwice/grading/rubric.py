"""How a lab's report is marked: labs/NN-<name>/rubric.toml, the same as CSV, and the key, full marks in words.

Each criterion belongs to a question and takes a part of its points. One of a `pitfall`, which
students know as a case, is two here: its prediction, and what came after it, on the ladder that all
cases share. Any other says what earns full and what half marks.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, read_questions

FILE = "rubric.toml"
# A solution is a percent script: text cells are comments.
_CELL = re.compile(r"^# %%( \[markdown\])?.*$", re.MULTILINE)
_POINTS = re.compile(r"\(([0-9.]+) points?\)")
_HEADING = re.compile(r"^## (?:Question ([0-9]+)\b)?", re.MULTILINE)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Rung(_Strict):
    title: str
    share: float = Field(ge=0, le=1)
    says: str


_Share = Annotated[float, Field(ge=0, le=1)]


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


class _Prediction(_Strict):
    """What a case's prediction earns: a share of the case's points."""

    share: float = Field(ge=0, lt=1)
    full: str
    half: str


class _Hints(_Strict):
    """What hint 1, 2 or 3 costs where it came before the diagnosis: a share of the ladder's points."""

    costs: list[_Share] = Field(min_length=3, max_length=3)


class _File(_Strict):
    none: str
    ladder: list[Rung] = []
    prediction: _Prediction | None = None
    hints: _Hints | None = None
    criteria: list[_Criterion] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_a_ladder(self) -> _File:
        if not any(criterion.pitfall for criterion in self.criteria):
            return self
        if len(self.ladder) < 2 or self.prediction is None or self.hints is None:
            raise ValueError(
                "expected a ladder of at least two rungs, prediction and hints, for the criteria with a pitfall"
            )
        return self


@dataclass(frozen=True)
class Level:
    """What earns these points of a criterion."""

    title: str
    points: float
    says: str


@dataclass(frozen=True)
class Criterion:
    """One row of the rubric; its levels from most points to none.

    Of a `pitfall` it is the prediction, or else the ladder. `about` says more than the levels do.
    """

    question: int
    title: str
    pitfall: str | None
    levels: list[Level]
    prediction: bool = False
    about: str = ""

    @property
    def points(self) -> float:
        return self.levels[0].points


@dataclass(frozen=True)
class Rubric:
    """`hint_costs` are shares of the ladder's points for 0, 1, 2 and 3 hints before the diagnosis."""

    title: str
    ladder: list[Rung]
    criteria: list[Criterion]
    hint_costs: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)

    @property
    def prediction_share(self) -> float:
        """The share of a case's points that is for its prediction; 0 where no criterion is of a case."""
        of_case = [criterion for criterion in self.criteria if criterion.pitfall]
        predicted = sum(criterion.points for criterion in of_case if criterion.prediction)
        return predicted / sum(criterion.points for criterion in of_case) if of_case else 0

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
        key = ".".join(map(str, first["loc"])) or "file"
        raise UserError(f"{where}: {key}: {first['msg'].removeprefix('Value error, ')}") from None
    pitfalls = {pitfall.id for pitfall in lab.file.pitfalls}
    for criterion in file.criteria:
        if criterion.pitfall and criterion.pitfall not in pitfalls:
            raise UserError(f"{where}: {lab.name} has no pitfall {criterion.pitfall!r}")
    criteria = [row for written in file.criteria for row in _criteria(lab, written, file)]
    costs = file.hints.costs if file.hints else [0.0] * 3
    return Rubric(f"{lab.name}: report", file.ladder, criteria, (0.0, *costs))


def unmatched_points(lab: Lab, rubric: Rubric) -> list[str]:
    """Return what is wrong between a lab's questions and its rubric, in words: points that one of them has and not the other."""
    asked: dict[int, float] = {}
    problems = []
    for number, question in enumerate(read_questions(lab), 1):
        if points := _POINTS.search(question):
            asked[number] = float(points[1])
        else:
            problems.append(f"question {number} has no points: **Its title.** (8 points)")
    marked: dict[int, float] = {}
    for criterion in rubric.criteria:
        marked[criterion.question] = marked.get(criterion.question, 0.0) + criterion.points
    if len(asked) != len(marked) and not problems:
        problems.append(
            f"{len(asked)} questions, and {FILE} marks {len(marked)}: one that comes or goes does so there and in the "
            "lab's solution, and those behind it get other numbers"
        )
    for number in sorted(asked.keys() | marked.keys()):
        if asked.get(number) != marked.get(number):
            problems.append(
                f"question {number}: {asked.get(number, 0):g} points asked, {marked.get(number, 0):g} in {FILE}"
            )
    return problems


def _criteria(lab: Lab, written: _Criterion, file: _File) -> list[Criterion]:
    """A criterion as rows of the rubric. Those of a case don't name its cause: students see them."""
    if not written.pitfall:
        return [_by_levels(written, file)]
    assert file.prediction is not None  # what _has_a_ladder makes sure of
    assert file.hints is not None
    points = float(written.points)
    pitfall = lab.pitfall(written.pitfall)
    case = f"Case {lab.case_number(pitfall)}"
    predicted = file.prediction.share * points
    rungs = sorted(file.ladder, key=lambda rung: -rung.share)
    of_ladder = points - predicted
    costs = ", ".join(
        f"hint {step}: {cost:.0%}" for step, cost in enumerate(file.hints.costs, 1) if cost
    )
    return [
        Criterion(
            written.question,
            f"{case}: the prediction",
            pitfall.id,
            [
                Level("Argued", predicted, file.prediction.full),
                Level("In part", predicted / 2, file.prediction.half),
                Level("Nothing", 0.0, "No prediction, or one from after the run."),
            ],
            prediction=True,
        ),
        Criterion(
            written.question,
            f"{case}: {pitfall.symptom}",
            pitfall.id,
            [Level(rung.title, rung.share * of_ladder, rung.says) for rung in rungs],
            about=f"Off these points for a hint before the diagnosis, but never below Shown: {costs}"
            if costs
            else "",
        ),
    ]


def _by_levels(written: _Criterion, file: _File) -> Criterion:
    points = float(written.points)
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
        if criterion.about:
            about += f". {criterion.about}"
        row = [rubric.title, f"{criterion.question}. {criterion.title}", about, "false"]
        for level in criterion.levels:
            row += [level.title, level.says, f"{level.points:g}"]
        writer.writerow(row)
    return out.getvalue()


# The key


def read_key(root: Path, lab: Lab) -> dict[int, str]:
    """Return the worked solution's text for each question, as Markdown; empty where there is no solution.

    The numbers that its cells print aren't among it: they stand on the page of answers.
    """
    path = root / "solutions" / f"{lab.folder.name}.py"
    if not path.is_file():
        return {}
    text = _text_cells(path.read_text(encoding="utf-8"))
    key = {}
    headings = [*_HEADING.finditer(text), None]
    for heading, following in pairwise(headings):
        if heading and heading[1]:
            section = text[heading.end() : following.start() if following else len(text)]
            title, _, body = section.partition("\n")
            about = title.strip(" :,")
            about = f"**{about[:1].upper()}{about[1:]}.** " if about else ""
            key[int(heading[1])] = about + body.strip()
    return key


def _text_cells(script: str) -> str:
    """Return the Markdown of a percent script."""
    cells = []
    for mark, following in pairwise([*_CELL.finditer(script), None]):
        if mark and mark[1]:
            cell = script[mark.end() : following.start() if following else len(script)]
            cells.append(re.sub(r"^# ?", "", cell, flags=re.MULTILINE).strip("\n"))
    return "\n\n".join(cells)
