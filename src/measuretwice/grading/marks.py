"""What a machine can judge of a submission by the lab's rubric, and what it leaves to a person.

Pure: a submission's contents in, marks out. A mark is a range. Its lower end is certain: the
broken run is there, measured anew, its finding raised, and nothing is odd about where it comes
from. Its upper end is what a person may still give. Whether a cause is understood, a prediction
argued or an answer right, only a person can say; that nothing was answered, a machine can, and which
hints came before a diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from measuretwice.base.errors import UserError
from measuretwice.checks import case_of, check_run
from measuretwice.grading.answers import plain
from measuretwice.grading.contents import BroughtFiles, CaseNotes, Contents, OurRun, Raised
from measuretwice.grading.graded import AnyRun, Graded, JudgedFiles, Mark
from measuretwice.grading.predictions import BY_HAND, mark_of_prediction, notes_of
from measuretwice.grading.remarks import brief
from measuretwice.grading.rubric import Criterion, Rubric
from measuretwice.lab import Lab, read_questions, select_trials, trial_params
from measuretwice.lab.schema.cases import Pitfall

# The rungs of every rubric's ladder that can be judged in part; rubric.toml says what each is worth.
SHOWN, DIAGNOSED, AGAIN = "Shown", "Diagnosed", "Run again"
ANSWERED = {
    True: "answered: to be marked by hand",
    False: "not answered",
    None: "no answer in a report that can be read: to be marked by hand",
}


def judge_files(lab: Lab, files: BroughtFiles) -> JudgedFiles:
    """Hold a student's own files against the trial that their folder's name says they are of."""
    known = asdict(files)
    del known["measured"]
    judged = JudgedFiles(**known, lab=lab.name)
    try:
        if files.trial not in lab.trials:
            raise UserError(f"{lab.name} has no trial {files.trial}")
        params = trial_params(lab, files.trial, pitfall=files.pitfall, stage=files.stage)
        if not files.measured:
            return replace(judged, problem="nothing in it can be checked")
        found = check_run(lab, case_of(lab, params, files.measured))
    except UserError as error:
        return replace(judged, problem=str(error))
    except Exception as error:
        return replace(judged, problem=f"can't be checked ({type(error).__name__})")
    return replace(judged, findings=tuple(Raised.of(finding) for finding in found))


def make_marks(lab: Lab, rubric: Rubric, contents: Contents, graded: Graded) -> list[Mark]:
    """Return a mark for each of the rubric's criteria, of a submission that has none yet."""
    shares = {rung.title: rung.share for rung in rubric.ladder}
    on_ladder = any(criterion.pitfall for criterion in rubric.criteria)
    for rung in (SHOWN, DIAGNOSED, AGAIN):
        if on_ladder and rung not in shares:
            raise UserError(f"{lab.name}: rubric.toml: its ladder has no rung {rung!r}")
    questions = [plain(question) for question in read_questions(lab)]
    marks = []
    for criterion in rubric.criteria:
        answer = _answer(contents, questions[criterion.question - 1])
        if criterion.pitfall is None:
            marks.append(_mark_by_hand(criterion, answer))
            continue
        pitfall = lab.pitfall(criterion.pitfall)
        runs = _runs_of(lab, pitfall, contents, graded)
        if criterion.prediction:
            marks.append(
                mark_of_prediction(
                    lab, criterion, pitfall, contents, runs.broken,
                    certain=bool(runs.certain), unread=runs.unread,
                )
            )  # fmt: skip
        else:
            notes = notes_of(contents, lab, pitfall)
            seen = _Seen(pitfall, runs, answer, notes)
            marks.append(_mark_of_ladder(lab, criterion, seen, shares, rubric.hint_costs))
    return marks


@dataclass(frozen=True)
class _Runs:
    """A case's runs: which show it, those of them with nothing odd, which show it mended; and whether
    something in the submission could not be read. `shown` are mended runs that were asked for."""

    broken: list[AnyRun]
    certain: list[AnyRun]
    fixed: list[AnyRun]
    shown: list[AnyRun]
    unread: bool


def _runs_of(lab: Lab, pitfall: Pitfall, contents: Contents, graded: Graded) -> _Runs:
    broken = _broken(pitfall, graded)
    fixed = _fixed(lab, pitfall, graded, broken)
    odd = {remark.run for remark in graded.remarks if remark.is_odd}
    unread = bool(
        graded.problem
        or contents.refused
        or contents.unusable
        or contents.unread
        or any(files.problem for files in graded.brought)
    )
    certain = [run for run in broken if run.name not in odd]
    own = [run for run in fixed if not _was_shown(run)]
    shown = [run for run in fixed if _was_shown(run)]
    return _Runs(broken, certain, own, [] if own else shown, unread)


def _was_shown(run: AnyRun) -> bool:
    """Is it the mended run that --show-me makes, not a change of the student's own?"""
    return isinstance(run, OurRun) and run.case is not None and run.stage == "fixed"


@dataclass(frozen=True)
class _Seen:
    """All that was seen of one case: its runs, the answer to its question, the lab book's notes."""

    pitfall: Pitfall
    runs: _Runs
    answer: _Answer
    notes: CaseNotes | None

    @property
    def given(self) -> bool | None:
        """Is there a diagnosis, in the report or the lab book? None: nobody can say."""
        return True if self.notes and self.notes.diagnosis else self.answer.given

    @property
    def hints(self) -> int:
        """How many hints came before the diagnosis, by the lab book."""
        return self.notes.hints_before if self.notes else 0


@dataclass(frozen=True)
class _Answer:
    """A question's answer: what stands in its `place` in the report (None: no place that can be read),
    whether there is one at all (None: nobody can say), and the raw files that it quotes, by run."""

    place: str | None
    given: bool | None
    quotes: dict[str, list[str]]


def _answer(contents: Contents, question: str) -> _Answer:
    place = contents.places.get(question)
    given: bool | None = None
    # Another document may hold what the report's own place doesn't.
    if place or (place is not None and not contents.written):
        given = bool(place)
    return _Answer(place, given, contents.quotes.get(question, {}))


def _mark_by_hand(criterion: Criterion, answer: _Answer) -> Mark:
    return Mark(
        criterion.question,
        criterion.title,
        None,
        criterion.points,
        0.0,
        0.0 if answer.given is False else criterion.points,
        answer=ANSWERED[answer.given],
    )


def _mark_of_ladder(
    lab: Lab,
    criterion: Criterion,
    seen: _Seen,
    shares: dict[str, float],
    hint_costs: Sequence[float],
) -> Mark:
    pitfall, runs = seen.pitfall, seen.runs
    # A mistake in a set of runs is mended by which runs there are, and no setting shows whose idea it was.
    of_set = bool(pitfall.trials) or pitfall.fixed.repeat > 1
    mended = runs.fixed or (runs.shown if of_set else [])
    if not runs.broken:
        high = shares[AGAIN] if runs.unread else 0.0
    elif seen.given is False:
        high = shares[SHOWN]
    elif not mended and not runs.unread:
        high = shares[DIAGNOSED]
    else:
        high = shares[AGAIN]
    if high > shares[SHOWN]:
        high = max(shares[SHOWN], high - hint_costs[seen.hints])
    return Mark(
        criterion.question,
        criterion.title,
        pitfall.id,
        criterion.points,
        shares[SHOWN] * criterion.points if runs.certain else 0.0,
        round(high * criterion.points, 4),
        shown=_shown_in_words(runs.broken, runs.certain, runs.unread),
        diagnosed=_diagnosed_in_words(seen, hint_costs),
        mended=_mended_in_words(runs, of_set),
        again=_again_in_words(pitfall, runs.broken, mended),
        case=lab.case_number(pitfall),
    )


def _mended_in_words(runs: _Runs, of_set: bool) -> str:
    if runs.fixed:
        return f"yes, {brief(runs.fixed[0].name)}"
    if runs.shown:
        what = f"yes, shown: {BY_HAND}" if of_set else "no: shown, not the student's own change"
        return f"{what} ({brief(runs.shown[0].name)})"
    return _no(runs.unread)


def _all_runs(graded: Graded) -> list[AnyRun]:
    return [*graded.runs, *(files for files in graded.brought if not files.problem)]


def _raises(pitfall: Pitfall, run: AnyRun, graded: Graded) -> bool:
    """Does it raise the mistake's finding, alone or as one of a set of runs?"""
    if any(finding.id == pitfall.finding for finding in run.findings):
        return True
    return isinstance(run, OurRun) and any(
        found.id == pitfall.finding and run.run in found.runs for found in graded.together
    )


def _broken(pitfall: Pitfall, graded: Graded) -> list[AnyRun]:
    """Runs that show the mistake: staged as such, or without a stage; its finding is raised."""
    return [
        run
        for run in _all_runs(graded)
        if run.pitfall in (pitfall.id, None)
        and run.stage in ("broken", None)
        and _raises(pitfall, run, graded)
    ]


def _fixed(lab: Lab, pitfall: Pitfall, graded: Graded, broken: Sequence[AnyRun]) -> list[AnyRun]:
    """Runs that show it mended: its finding isn't raised, where all of the stage's runs are there."""
    clean = [run for run in _all_runs(graded) if not _raises(pitfall, run, graded)]
    staged = [run for run in clean if (run.pitfall, run.stage) == (pitfall.id, "fixed")]
    # Where the mistake is in a set of runs, one run alone raises nothing.
    wanted = select_trials(lab, pitfall.trials) if pitfall.trials else [pitfall.trial]
    each = pitfall.fixed.repeat
    if all(sum(run.trial == trial for run in staged) >= each for trial in wanted):
        return staged
    if pitfall.trials or each > 1:
        return []
    # A student's own change has no stage, nor has a mistake on another trial than its own: its pair
    # is the same trial without the mistake.
    tried = {_trial_and_seed(run) for run in broken}
    return [
        run
        for run in clean
        if run.stage is None and run.pitfall in (pitfall.id, None) and _trial_and_seed(run) in tried
    ]


def _trial_and_seed(run: AnyRun) -> tuple[int, int | None]:
    """What two runs to be compared have in common. A testbed's files have no seed."""
    return run.trial, run.seed if isinstance(run, OurRun) else None


def _shown_in_words(broken: Sequence[AnyRun], certain: Sequence[AnyRun], unread: bool) -> str:
    if certain:
        return f"yes, {brief(certain[0].name)}"
    if broken:
        return f"open: {brief(broken[0].name)} is odd"
    return _no(unread)


def _no(unread: bool) -> str:
    return "no, or in what is unread" if unread else "no"


def _diagnosed_in_words(seen: _Seen, hint_costs: Sequence[float]) -> str:
    """What the lab book and the answer have. If it is right, a person must say."""
    pitfall, answer, notes = seen.pitfall, seen.answer, seen.notes
    if seen.given is False:
        return f"no: not answered{_after_hints(notes)}"
    facts = []
    if notes and notes.diagnosis:
        facts.append(f"in the lab book{_after_hints(notes)}")
    elif notes:
        facts.append(f"not in the lab book{_after_hints(notes)}")
    if cost := hint_costs[seen.hints]:
        facts.append(f"{cost:.0%} off")
    if not answer.place and not (notes and notes.diagnosis):
        return "; ".join([f"{BY_HAND}: no report", *facts])
    text = f"{answer.place or ''} {notes.diagnosis if notes and notes.diagnosis else ''}".casefold()
    facts.append(f"{len(text.split())} words")
    if any(name in text for name in (pitfall.id, pitfall.finding)):
        facts.append("names the finding")
    names = {run.name for run in seen.runs.broken}
    files = sorted(
        {file for run, quoted in answer.quotes.items() if run in names for file in quoted}
    )
    facts.append(
        f"quotes {', '.join(file.removeprefix('raw/') for file in files[:3])}"
        if files
        else "quotes no line of the broken run"
    )
    return f"yes, answered ({'; '.join(facts)}); if it is right: {BY_HAND}"


def _after_hints(notes: CaseNotes | None) -> str:
    if notes is None:
        return ""
    return f" after hint {notes.hints_before}" if notes.hints_before else ", before any hint"


def _again_in_words(pitfall: Pitfall, broken: Sequence[AnyRun], fixed: Sequence[AnyRun]) -> str:
    """Can the two be compared: the same trial and seed, and only the mistake's settings differ?"""
    if not fixed or not broken:
        return "no"
    pairs = [
        _others_than_the_mistakes(pitfall, before, after)
        for before in broken
        for after in fixed
        if _trial_and_seed(before) == _trial_and_seed(after)
    ]
    if not pairs:
        return f"in part: with another seed; {BY_HAND}"
    if fewest := min(pairs, key=len):
        return f"in part: {', '.join(fewest[:4])} differ as well; {BY_HAND}"
    return f"yes, only the mistake's settings differ; a second prediction: {BY_HAND}"


def _others_than_the_mistakes(pitfall: Pitfall, before: AnyRun, after: AnyRun) -> list[str]:
    """Which settings differ between the two runs besides those that the mistake is about."""
    a, b = (run.params if isinstance(run, OurRun) else {} for run in (before, after))
    names = [name for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]
    # Of a mistake without a stage, what differs is the mistake.
    stages = pitfall.broken.set.keys() | pitfall.fixed.set.keys()
    return [name for name in names if name not in stages] if before.pitfall else []
