"""What a machine can judge of a case's prediction: that it is there, came first, and what it has.

Whether its reason is a good one, only a person can say; whether it came true, nobody asks. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.grading.contents import CaseNotes, Contents, OurRun
from measuretwice.grading.graded import AnyRun, Mark
from measuretwice.grading.rubric import Criterion
from measuretwice.lab import Lab
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.measure.fields import unit_of

BY_HAND = "by hand"
NO_BOOK_THEN = "a run without a case, which has no lab book: nothing is lost by that"


def notes_of(contents: Contents, lab: Lab, pitfall: Pitfall) -> CaseNotes | None:
    """Return what the hand-in's lab book has of a case; None where there is nothing."""
    number = lab.case_number(pitfall)
    return next((one for one in contents.books.get(lab.name, ()) if one.case == number), None)


def had_no_book(broken: Sequence[AnyRun]) -> bool:
    """Was the mistake run in a way that keeps no lab book: before there were any, or on a testbed?"""
    return bool(broken) and not any(isinstance(run, OurRun) and run.case for run in broken)


def mark_of_prediction(
    lab: Lab,
    criterion: Criterion,
    pitfall: Pitfall,
    contents: Contents,
    broken: Sequence[AnyRun],
    *,
    certain: bool,
    unread: bool,
) -> Mark:
    """Return the mark. `certain`: nothing is odd about a run of the case; `unread`: not all was read."""
    notes = notes_of(contents, lab, pitfall)
    full = criterion.points
    low, high = 0.0, 0.0
    if not broken and not unread:
        said = "no run of it"
    elif notes is not None:
        said, share_low, share_high = _judged(
            notes, needs_unit=bool(unit_of(pitfall.predict.value))
        )
        low, high = share_low * full if certain else 0.0, share_high * full
    elif had_no_book(broken):
        said, high = f"{BY_HAND}: {NO_BOOK_THEN}", full
    elif lab.name in contents.books or contents.places:
        # The book has no word of it, or the report none of a book.
        said, high = "no", full if unread else 0.0
    else:
        said, high = f"{BY_HAND}: no lab book in what was handed in; ask for it", full
    return Mark(
        criterion.question,
        criterion.title,
        pitfall.id,
        full,
        low,
        high,
        predicted=said,
        case=lab.case_number(pitfall),
    )


def _judged(notes: CaseNotes, *, needs_unit: bool) -> tuple[str, float, float]:
    """What it has, in words; and which shares are certain and possible."""
    if notes.prediction is None:
        return "no", 0.0, 0.0
    if not notes.first:
        return "no: it stands after the first run", 0.0, 0.0
    measured = notes.number and (notes.unit or not needs_unit)
    number = "number and unit" if notes.number and notes.unit else "number"
    lacks = ("" if notes.number else "no number") or ("" if measured else "no unit")
    parts = [lacks or number, "a reason" if notes.reason else "no reason"]
    said = f"yes ({', '.join(parts)})"
    if notes.reason:
        said += f"; if the reason is one: {BY_HAND}"
    return said, 0.5 * measured, 0.5 * measured + 0.5 * notes.reason
