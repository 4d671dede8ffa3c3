"""What a machine can judge of a submission by the lab's rubric, and what it leaves to a person.

Pure: documents of `grade_read` in, marks out. A mark is a range. Its lower end is certain: the
broken run is there, measured anew, its finding raised, and nothing is odd about where it comes
from. Its upper end is what a person may still give. Whether a cause is understood, a prediction
came first or an answer is right, only a person can say; that nothing was answered, a machine can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.checks.engine import check_run
from measuretwice.grading.copies import Remark, Run, brief
from measuretwice.grading.read import Document, plain
from measuretwice.grading.rubric import Criterion, Rubric
from measuretwice.lab import Lab, Pitfall, StageName, read_questions, select_trials, trial_params

# The rungs of every rubric's ladder that can be judged in part; rubric.toml says what each is worth.
SHOWN, DIAGNOSED, AGAIN = "Shown", "Diagnosed", "Run again"
BY_HAND = "by hand"
ANSWERED = {
    True: "answered: to be marked by hand",
    False: "not answered",
    None: "no answer in a report that can be read: to be marked by hand",
}


@dataclass(frozen=True)
class Mark:
    """One criterion: points that are certain (`low`), that are possible (`high`), and of how many.

    Of a pitfall: what was seen for each rung, in words.
    """

    question: int
    title: str
    pitfall: str | None
    points: float
    low: float
    high: float
    shown: str = ""
    diagnosed: str = ""
    mended: str = ""
    again: str = ""
    answer: str = ""


@dataclass
class Graded:
    """A submission with its marks. `problem` says why it could not be read at all."""

    name: str
    student: str | None
    handed_in: bool = True
    problem: str | None = None
    says: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    brought: list[Run] = field(default_factory=list)
    together: list[Run] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def low(self) -> float:
        return sum(mark.low for mark in self.marks)

    @property
    def high(self) -> float:
        return sum(mark.high for mark in self.marks)

    @property
    def odd(self) -> bool:
        """Is there something that the instructor should look at first?"""
        return bool(self.problem or self.says or any(not r.proves_nothing for r in self.remarks))

    def count(self, rung: str) -> int:
        """How many mistakes have a rung: 'shown', 'diagnosed' (answered), 'mended' or 'again'."""
        return sum(getattr(mark, rung).startswith("yes") for mark in self.marks)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "low": self.low, "high": self.high}


def choose_lab(labs: Sequence[Lab], documents: Sequence[Document], wanted: str | None) -> Lab:
    """The lab to grade: the one that was named, or the only one with a rubric that runs are of."""
    by_name = {lab.name: lab for lab in labs}
    if wanted:
        return by_name[wanted]
    seen = sorted({run["lab"] for d in documents for run in d["runs"] if run["lab"] in by_name})
    if len(seen) == 1:
        return by_name[seen[0]]
    said = f"runs of {', '.join(seen)}" if seen else "no run of a lab with a rubric"
    raise UserError(f"{said} in these submissions; say which lab to grade: --lab LAB")


def judge_brought(lab: Lab, brought: Run) -> Run:
    """A student's own files, held against the trial that their folder's name says they are of."""
    said = {**brought, "lab": lab.name, "findings": [], "problem": None}
    measured = said.pop("measured")
    try:
        if brought["trial"] not in lab.trials:
            raise UserError(f"{lab.name} has no trial {brought['trial']}")
        stage: StageName | None = brought["stage"]
        params = trial_params(lab, brought["trial"], pitfall=brought["pitfall"], stage=stage)
        if measured:
            found = check_run(lab, params, measured)
            said["findings"] = [
                {key: one.to_json()[key] for key in ("id", "severity", "measured", "expected")}
                for one in found
            ]
        else:
            said["problem"] = "nothing in it can be checked"
    except UserError as error:
        said["problem"] = str(error)
    except Exception as error:
        said["problem"] = f"can't be checked ({type(error).__name__})"
    return said


def marks(lab: Lab, rubric: Rubric, document: Document, own: Graded) -> list[Mark]:
    """Return a mark for each of the rubric's criteria."""
    shares = {rung.title: rung.share for rung in rubric.ladder}
    for rung in (SHOWN, DIAGNOSED, AGAIN):
        if rung not in shares:
            raise UserError(f"{lab.name}: rubric.toml: its ladder has no rung {rung!r}")
    questions = read_questions(lab)
    return [_mark(lab, one, shares, questions, document, own) for one in rubric.criteria]


def _mark(
    lab: Lab,
    criterion: Criterion,
    shares: dict[str, float],
    questions: list[str],
    document: Document,
    own: Graded,
) -> Mark:
    asked = plain(questions[criterion.question - 1])
    place = document["places"].get(asked)
    answered: bool | None = None
    # Another document may hold what the report's own place doesn't.
    if place or (place is not None and not document["written"]):
        answered = bool(place)
    if criterion.pitfall is None:
        return Mark(
            criterion.question,
            criterion.title,
            None,
            criterion.points,
            0.0,
            0.0 if answered is False else criterion.points,
            answer=ANSWERED[answered],
        )
    pitfall = lab.pitfall(criterion.pitfall)
    broken = _broken(pitfall, own)
    fixed = _fixed(lab, pitfall, own, broken)
    odd = {remark.run for remark in own.remarks if not remark.proves_nothing}
    certain = [run for run in broken if _name(run) not in odd]
    unread = bool(
        own.problem
        or document["refused"]
        or document["unusable"]
        or document["unread"]
        or any(one["problem"] for one in own.brought)
    )
    top = shares[AGAIN]
    if not broken:
        high = top if unread else 0.0
    elif answered is False:
        high = shares[SHOWN]
    elif not fixed and not unread:
        high = shares[DIAGNOSED]
    else:
        high = top
    return Mark(
        criterion.question,
        criterion.title,
        pitfall.id,
        criterion.points,
        shares[SHOWN] * criterion.points if certain else 0.0,
        high * criterion.points,
        shown=_said_shown(broken, certain, unread),
        diagnosed=_said_diagnosed(pitfall, place, answered, broken, document["quotes"].get(asked)),
        mended=f"yes, {brief(_name(fixed[0]))}" if fixed else _no(unread),
        again=_said_again(pitfall, broken, fixed),
    )


def _name(run: Run) -> str:
    return str(run.get("run") or run["folder"])


def _all_runs(own: Graded) -> list[Run]:
    return [*own.runs, *(one for one in own.brought if not one["problem"])]


def _raises(pitfall: Pitfall, run: Run, own: Graded) -> bool:
    if any(finding["id"] == pitfall.finding for finding in run["findings"]):
        return True
    return any(
        told["id"] == pitfall.finding and run.get("run") in told["runs"] for told in own.together
    )


def _broken(pitfall: Pitfall, own: Graded) -> list[Run]:
    """Runs that show the mistake: staged as such, or without a stage; its finding is raised."""
    return [
        run
        for run in _all_runs(own)
        if (run["pitfall"], run["stage"]) in ((pitfall.id, "broken"), (None, None))
        and _raises(pitfall, run, own)
    ]


def _fixed(lab: Lab, pitfall: Pitfall, own: Graded, broken: list[Run]) -> list[Run]:
    """Runs that show it mended: its finding isn't raised, where all of the stage's runs are there."""
    clean = [run for run in _all_runs(own) if not _raises(pitfall, run, own)]
    staged = [run for run in clean if (run["pitfall"], run["stage"]) == (pitfall.id, "fixed")]
    # Where the mistake is in a set of runs, one run alone raises nothing.
    wanted = select_trials(lab, pitfall.trials) if pitfall.trials else [pitfall.trial]
    each = pitfall.fixed.repeat
    if all(sum(run["trial"] == trial for run in staged) >= each for trial in wanted):
        return staged
    if pitfall.trials or each > 1:
        return []
    # A mistake on another trial than its own has no stage: its pair is the same trial without it.
    tried = {(run["trial"], run.get("seed")) for run in broken if run["pitfall"] is None}
    return [r for r in clean if r["pitfall"] is None and (r["trial"], r.get("seed")) in tried]


def _said_shown(broken: list[Run], certain: list[Run], unread: bool) -> str:
    if certain:
        return f"yes, {brief(_name(certain[0]))}"
    if broken:
        return f"open: {brief(_name(broken[0]))} is odd"
    return _no(unread)


def _no(unread: bool) -> str:
    return "no, or in what is unread" if unread else "no"


def _said_diagnosed(
    pitfall: Pitfall,
    place: str | None,
    answered: bool | None,
    broken: list[Run],
    quotes: dict[str, list[str]] | None,
) -> str:
    """What the answer has. If it is right, a person must say."""
    if answered is False:
        return "no: not answered"
    if not place:
        return f"{BY_HAND}: no report"
    text = place.casefold()
    says = [f"{len(place.split())} words"]
    if any(name in text for name in (pitfall.id, pitfall.finding)):
        says.append("names the finding")
    own = {_name(run) for run in broken}
    files = sorted({f for run, names in (quotes or {}).items() if run in own for f in names})
    says.append(
        f"quotes {', '.join(f.removeprefix('raw/') for f in files[:3])}"
        if files
        else "quotes no line of the broken run"
    )
    return f"yes, answered ({'; '.join(says)}); if it is right: {BY_HAND}"


def _said_again(pitfall: Pitfall, broken: list[Run], fixed: list[Run]) -> str:
    """Can the two be compared: the same trial and seed, and only the mistake's settings differ?"""
    if not fixed or not broken:
        return "no"
    least: list[str] | None = None
    stages = pitfall.broken.set.keys() | pitfall.fixed.set.keys()
    for one in broken:
        for other in fixed:
            if one["trial"] != other["trial"] or one.get("seed") != other.get("seed"):
                continue
            a, b = one.get("params", {}), other.get("params", {})
            names = [n for n in sorted(a.keys() | b.keys()) if a.get(n) != b.get(n)]
            # Of a mistake without a stage, what differs is the mistake.
            more = [n for n in names if n not in stages] if one["pitfall"] else []
            least = more if least is None or len(more) < len(least) else least
    if least is None:
        return f"in part: with another seed; {BY_HAND}"
    if least:
        return f"in part: {', '.join(least[:4])} differ as well; {BY_HAND}"
    return f"yes, only the mistake's settings differ; a prediction before it: {BY_HAND}"
