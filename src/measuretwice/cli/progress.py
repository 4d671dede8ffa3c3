"""`lab progress`: where a student is, by their lab books."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from measuretwice.book.book import LabBook
from measuretwice.book.notes import Notes
from measuretwice.cli import terminal
from measuretwice.cli.tries import told_so_far
from measuretwice.lab import Lab, load_lab, published_labs


def progress_command(root: Path, lab_name: str | None, out: Path | None, as_json: bool) -> int:
    """Print each case of a lab, or of all labs that have been begun; return 0."""
    runs = out or terminal.default_out(root)
    labs = [load_lab(root, lab_name)] if lab_name else list(published_labs(root).values())
    documents = [
        {**_document(lab, book), "first_try": told_so_far(lab, runs, book)}
        for lab in labs
        if lab.file.pitfalls
        for book in [LabBook(runs / lab.name, lab)]
    ]
    if as_json:
        print(json.dumps(documents, indent=2))
        return 0
    begun = [document for document in documents if document["book"] or lab_name]
    for document in begun:
        _print(document)
    rest = [document["lab"] for document in documents if document not in begun]
    if rest:
        has_first_try = next(each["first_try"] for each in documents if each["lab"] == rest[0])
        command = f"start {rest[0]}" if has_first_try else f"run {rest[0]} --case 1"
        print(f"not begun: {', '.join(rest)} (./lab {command})")
    return 0


def _document(lab: Lab, book: LabBook) -> dict[str, Any]:
    notes = book.all_notes()
    cases = [
        _case(number, pitfall.symptom, pitfall.minutes, notes.get(number, Notes(number)))
        for number, pitfall in enumerate(lab.file.pitfalls, start=1)
    ]
    return {
        "lab": lab.name,
        "book": str(book.path) if book.exists else None,
        "cases": cases,
        "minutes_left": sum(case["minutes"] for case in cases if not case["done"]),
    }


def _case(number: int, symptom: str, minutes: int, notes: Notes) -> dict[str, Any]:
    return {
        "case": number,
        "symptom": symptom,
        "minutes": minutes,
        "predicted": notes.prediction,
        "runs": len(notes.of("Run")),
        "hints": notes.hints,
        "diagnosis": notes.diagnosis,
        "shown": notes.shown,
        "done": notes.mended,
    }


def _print(document: dict[str, Any]) -> None:
    out = terminal.console(sys.stdout)
    cases = document["cases"]
    done = sum(case["done"] for case in cases)
    out.print(
        f"{document['lab']}: {done} of {len(cases)} cases, about {document['minutes_left']} minutes left",
        style="bold",
    )
    rows = [
        [
            str(case["case"]),
            case["symptom"],
            _step(case),
            str(case["hints"] or ""),
            case["predicted"] or "",
        ]
        for case in cases
    ]
    terminal.print_rows(out, ["case", "what is seen", "so far", "hints", "predicted"], rows, {0, 3})
    if document["first_try"]:
        out.print(f"\n{document['first_try']}", markup=False, soft_wrap=True)
    if document["book"]:
        out.print(f"\nYour lab book: {terminal.relative(Path(document['book']))}\n", soft_wrap=True)


def _step(case: dict[str, Any]) -> str:
    """How far a case is, in a word or two."""
    if case["done"]:
        return "solved"
    if case["shown"]:
        return "shown"
    if case["diagnosis"]:
        return "diagnosed"
    return "run" if case["runs"] else ""
