"""Grading a class: from what was read of each submission to what it is worth by machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from measuretwice.base.errors import UserError
from measuretwice.grading.answers import plain
from measuretwice.grading.contents import Contents, OurRun, Reading
from measuretwice.grading.copies import WholeClass
from measuretwice.grading.effort import marking_minutes
from measuretwice.grading.graded import Answer, Graded, HandedFile
from measuretwice.grading.marks import judge_files, make_marks
from measuretwice.grading.recorded import Recorded
from measuretwice.grading.remarks import Remade, Remark
from measuretwice.grading.roster import Roster
from measuretwice.grading.rubric import Rubric
from measuretwice.grading.same_words import find_same_words
from measuretwice.grading.submissions import Submission
from measuretwice.grading.unpack import shown
from measuretwice.lab import Lab, read_questions

MAX_NAMES = 3


def choose_lab(labs: Sequence[Lab], readings: Sequence[Reading], wanted: str | None) -> Lab:
    """Return the lab to grade: the one that was named, or the only one with a rubric that runs are of."""
    by_name = {lab.name: lab for lab in labs}
    if wanted:
        return by_name[wanted]
    found = sorted({run.lab for r in readings for run in r.contents.runs if run.lab in by_name})
    if len(found) == 1:
        return by_name[found[0]]
    what = f"runs of {', '.join(found)}" if found else "no run of a lab with a rubric"
    raise UserError(f"{what} in these submissions; say which lab to grade: --lab LAB")


def contents_of(lab: Lab, readings: Sequence[Reading]) -> list[Contents]:
    """Return what was read of each submission, the lab's runs alone."""
    return [_of_lab(reading.contents, lab) for reading in readings]


def look(
    lab: Lab,
    submissions: Sequence[Submission],
    contents: Sequence[Contents],
    roster: Roster | None,
    recorded: Recorded,
    remade: Mapping[tuple[int, str], Remade],
) -> list[list[Remark]]:
    """Return for each submission what is to be said of where its runs and words come from.

    `remade` is what came of runs that were run again, by their submission's place and their name.
    """
    of_class = WholeClass(submissions, contents, roster, recorded, remade)
    found = []
    for place, content in enumerate(contents):
        remarks = of_class.remarks_on(place)
        for run in content.runs:
            again = remade.get((place, run.run))
            if not (again and again.same) and (unseen := _not_shown(lab, content, run)):
                remarks.append(unseen)
        found.append(remarks)
    questions = {plain(text): number for number, text in enumerate(read_questions(lab), start=1)}
    names = [submission.name for submission in submissions]
    words = find_same_words(contents, names, lab.name, questions, of_class.copied_from())
    return [[*remarks, *more] for remarks, more in zip(found, words, strict=True)]


def _not_shown(lab: Lab, contents: Contents, run: OurRun) -> Remark | None:
    """A run that its plan calls broken, and whose raw files show nothing of the mistake."""
    if run.stage != "broken" or run.pitfall is None:
        return None
    pitfall = lab.pitfall(run.pitfall)
    # A mistake of a set of runs needs all of it to show.
    if pitfall.trials or pitfall.broken.repeat > 1 or pitfall.broken.again:
        return None
    seen = [finding.id for finding in run.findings]
    seen += [found.id for found in contents.together if run.run in found.runs]
    if pitfall.finding in seen:
        return None
    return Remark(
        "not shown", run.run, "its plan is the broken run's, and its raw files show nothing of that"
    )


def grade(
    lab: Lab,
    rubric: Rubric,
    submissions: Sequence[Submission],
    readings: Sequence[Reading],
    roster: Roster | None,
    remarks: Sequence[Sequence[Remark]],
) -> list[Graded]:
    """Return what each submission is worth by machine, and who of the roster handed nothing in.

    `readings` and `remarks` are in the submissions' order; what is returned is in order of names.
    """
    contents = contents_of(lab, readings)
    questions = read_questions(lab)
    graded = []
    for place, (submission, reading, content, found) in enumerate(
        zip(submissions, readings, contents, remarks, strict=True)
    ):
        unmarked = Graded(
            submission.name,
            submission.student.id if submission.student else None,
            problem=reading.problem,
            says=(*dict.fromkeys(submission.says), *_says(reading.contents, lab)),
            notes=tuple(_notes(content, lab)),
            runs=content.runs,
            brought=tuple(judge_files(lab, files) for files in content.brought),
            together=content.together,
            remarks=tuple(found),
            answers=_answers(content, questions),
            written=content.written,
            files=_files(submission),
            status=submission.student.status if submission.student else "",
            place=place,
            book=content.books.get(lab.name, ()),
        )
        marked = replace(unmarked, marks=tuple(make_marks(lab, rubric, content, unmarked)))
        graded.append(replace(marked, minutes=_minutes(marked)))
    handed_in = {entry.student for entry in graded}
    graded += [
        Graded(student.name, student.id, handed_in=False, status=student.status)
        for student in (roster.students if roster else [])
        if student.id not in handed_in
    ]
    return sorted(graded, key=lambda entry: entry.name.casefold())


def _answers(contents: Contents, questions: list[str]) -> tuple[Answer, ...]:
    return tuple(
        Answer(
            number,
            contents.places.get(plain(text)),
            contents.cited.get(plain(text), {}),
            contents.figures.get(plain(text), ()),
        )
        for number, text in enumerate(questions, start=1)
    )


def _files(submission: Submission) -> tuple[HandedFile, ...]:
    return tuple(
        HandedFile(str(one.path.absolute()), shown(one.path.name), one.remark, one.counts, one.named.feedback)
        for one in submission.handed_in
    )  # fmt: skip


def _minutes(entry: Graded) -> int:
    odd = len(entry.says) + sum(remark.is_odd for remark in entry.remarks)
    texts = (answer.text or "" for answer in entry.answers)
    return marking_minutes(texts, entry.open, odd + len(entry.written))


def _of_lab(contents: Contents, lab: Lab) -> Contents:
    return replace(
        contents,
        runs=tuple(run for run in contents.runs if run.lab == lab.name),
        together=tuple(found for found in contents.together if found.lab == lab.name),
    )


def _notes(contents: Contents, lab: Lab) -> list[str]:
    """What is as it may be, and explains marks."""
    old = [run for run in contents.runs if run.pitfall and run.case is None]
    if not old or lab.name in contents.books:
        return []
    return [
        "made without cases, as before there were lab books: predictions are marked by hand, hints cost "
        "nothing, and no point is lost by either"
    ]


def _says(contents: Contents, lab: Lab) -> list[str]:
    """What the instructor should know of what was not read."""
    lines = [f"refused: {line}" for line in contents.refused]
    labs = {run.lab for run in contents.runs}
    if labs and lab.name not in labs:
        lines.append(f"its runs are of {', '.join(sorted(labs))}, none of {lab.name}")
    lines += [f"not used: {line}" for line in contents.unusable[:MAX_NAMES]]
    if len(contents.unusable) > MAX_NAMES:
        lines.append(f"not used: {len(contents.unusable) - MAX_NAMES} more runs, for such reasons")
    for files in contents.brought:
        lines += [f"not used: {line}" for line in files.refused]
    if unread := contents.unread:
        more = f" and {len(unread) - MAX_NAMES} more" if len(unread) > MAX_NAMES else ""
        lines.append(
            f"no run, and no folder called trial-N or trial-N-MISTAKE-broken: "
            f"{', '.join(unread[:MAX_NAMES])}{more}; "
            f"./lab check FILES --lab {lab.name} --trial N checks such files"
        )
    return lines
