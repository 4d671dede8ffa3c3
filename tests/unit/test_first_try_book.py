"""The first try in the lab book: a prediction is noted before anything is run, and asked for once."""

from pathlib import Path

import pytest

from measuretwice.book.lab_book import LabBook
from measuretwice.cli import start, terminal
from measuretwice.course.progress import changes_by_cases, open_try
from measuretwice.lab import load_lab, plan_try

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")


def test_a_run_that_is_broken_off_keeps_the_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = open_try(LAB, tmp_path, 7)
    book = state.book
    book.add(5, "Prediction", "80 Mbit/s")
    asked: list[str] = []
    answers = iter(["", "all sixty, the model is old and proven"])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr(terminal, "ask_person", answer)
    assert [start._ask(state, measures=True) for _ in range(3)] == [
        "",
        *2 * ["all sixty, the model is old and proven"],
    ]
    assert len(asked) == 2
    text = book.text
    assert text.index("- Seed: 7") < text.index("## First try") < text.index("## Case 5")
    assert book.notes(5).prediction == "80 Mbit/s"
    book.add_first_try("Run", "first try: 0 of 60")
    book.add_first_try("Run", "first try: 0 of 60")
    assert book.first_try().of("Run") == ["first try: 0 of 60"]
    assert LabBook(tmp_path / LAB.name, LAB).open() == 7


def test_it_says_which_mends_were_used() -> None:
    assert changes_by_cases(LAB, plan_try(LAB, ())) == ""
    number = LAB.case_number(LAB.pitfall("offload"))
    said = changes_by_cases(LAB, plan_try(LAB, {*range(1, number + 1)}))
    assert "With what you found in cases 1" in said
    assert "offloads as the trial has it" in said
