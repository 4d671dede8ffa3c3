"""What a machine can judge of a submission by the lab's rubric, and what it leaves to a person.

Pure: a submission's contents in, marks out. A mark is a range. Its lower end is certain: the
broken run is there, measured anew, its finding raised, and nothing is odd about where it comes
from. Its upper end is what a person may still give. Whether a cause is understood, a prediction
came first or an answer is right, only a person can say; that nothing was answered, a machine can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from measuretwice.base.errors import UserError
from measuretwice.checks import check_run
from measuretwice.grading.answers import plain
from measuretwice.grading.contents import BroughtFiles, Contents, OurRun, Raised
from measuretwice.grading.copies import brief
from measuretwice.grading.graded import AnyRun, Graded, JudgedFiles, Mark
from measuretwice.grading.rubric import Criterion, Rubric
from measuretwice.lab import Lab, Pitfall, read_questions, select_trials, trial_params

# The rungs of every rubric's ladder that can be judged in part; rubric.toml says what each is worth.
SHOWN, DIAGNOSED, AGAIN = "Shown", "Diagnosed", "Run again"
BY_HAND = "by hand"
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
        found = check_run(lab, params, files.measured)
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
        else:
            pitfall = lab.pitfall(criterion.pitfall)
            marks.append(
                _mark_of_pitfall(lab, criterion, pitfall, shares, answer, contents, graded)
            )
    return marks


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


def _mark_of_pitfall(
    lab: Lab,
    criterion: Criterion,
    pitfall: Pitfall,
    shares: dict[str, float],
    answer: _Answer,
    contents: Contents,
    graded: Graded,
) -> Mark:
    broken = _broken(pitfall, graded)
    fixed = _fixed(lab, pitfall, graded, broken)
    odd = {remark.run for remark in graded.remarks if not remark.proves_nothing}
    certain = [run for run in broken if run.name not in odd]
    unread = bool(
        graded.problem
        or contents.refused
        or contents.unusable
        or contents.unread
        or any(files.problem for files in graded.brought)
    )
    top = shares[AGAIN]
    if not broken:
        high = top if unread else 0.0
    elif answer.given is False:
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
        shown=_shown_in_words(broken, certain, unread),
        diagnosed=_diagnosed_in_words(pitfall, answer, broken),
        mended=f"yes, {brief(fixed[0].name)}" if fixed else _no(unread),
        again=_again_in_words(pitfall, broken, fixed),
    )


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


def _diagnosed_in_words(pitfall: Pitfall, answer: _Answer, broken: Sequence[AnyRun]) -> str:
    """What the answer has. If it is right, a person must say."""
    if answer.given is False:
        return "no: not answered"
    if not answer.place:
        return f"{BY_HAND}: no report"
    text = answer.place.casefold()
    facts = [f"{len(answer.place.split())} words"]
    if any(name in text for name in (pitfall.id, pitfall.finding)):
        facts.append("names the finding")
    names = {run.name for run in broken}
    files = sorted(
        {file for run, quoted in answer.quotes.items() if run in names for file in quoted}
    )
    facts.append(
        f"quotes {', '.join(file.removeprefix('raw/') for file in files[:3])}"
        if files
        else "quotes no line of the broken run"
    )
    return f"yes, answered ({'; '.join(facts)}); if it is right: {BY_HAND}"


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
    return f"yes, only the mistake's settings differ; a prediction before it: {BY_HAND}"


def _others_than_the_mistakes(pitfall: Pitfall, before: AnyRun, after: AnyRun) -> list[str]:
    """Which settings differ between the two runs besides those that the mistake is about."""
    a, b = (run.params if isinstance(run, OurRun) else {} for run in (before, after))
    names = [name for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]
    # Of a mistake without a stage, what differs is the mistake.
    stages = pitfall.broken.set.keys() | pitfall.fixed.set.keys()
    return [name for name in names if name not in stages] if before.pitfall else []
