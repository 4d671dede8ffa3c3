"""The lab book: a student's own file, which commands add to and never rewrite."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import (
    BOOK,
    LabBook,
    is_in_words,
    read_notes,
    read_seed,
    with_entry,
)
from measuretwice.book.prediction import is_one_number, number_in
from measuretwice.cli.show import note
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
WRITTEN = """# My book

I moved the seed down here.

* Seed: 4711

## case 3: slow

- Prediction: 1,200 Mbit/s,
  or a little less
- Hint: 1
- Hint: 2

It was late. Tomorrow more.

## Case 11: a window

- Prediction: none
- Diagnosis: something
- Diagnosis: **another connection**, by its port
- Outcome: nothing is off any more

## Other thoughts

- Prediction: not of a case
"""


def test_what_a_student_wrote_is_read_as_it_stands() -> None:
    notes = read_notes(WRITTEN)
    assert sorted(notes) == [3, 11]
    assert notes[3].prediction == "1,200 Mbit/s, or a little less"
    assert (notes[3].hints, notes[3].diagnosis, notes[3].fixed) == (2, None, False)
    assert notes[11].prediction is None
    assert notes[11].diagnosis == "**another connection**, by its port"
    assert notes[11].fixed
    assert read_seed(WRITTEN) == 4711


def test_an_entry_goes_to_the_end_of_its_case_and_all_else_stays() -> None:
    text = with_entry(WRITTEN, 3, "slow", "Run", "case-03-x: 7 Mbit/s")
    assert text.replace("- Run: case-03-x: 7 Mbit/s\n", "") == WRITTEN
    assert read_notes(text)[3].of("Run") == ["case-03-x: 7 Mbit/s"]
    text = with_entry(text, 5, "far too slow", "Prediction", "66 Mbit/s")
    assert (
        text.index("## case 3") < text.index("## Case 5: far too slow") < text.index("## Case 11")
    )
    text = with_entry(text, 12, "two constants", "Hint", "1")
    assert [*read_notes(text)] == [3, 5, 11, 12]
    assert read_notes(text)[11] == read_notes(WRITTEN)[11]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "## Case 1", "## Case 1\n## Case 2\n", "no newline at the end"]
)
def test_whatever_stands_there_an_entry_can_be_added(text: str) -> None:
    after = with_entry(text, 1, "fast", "Prediction", "3")
    assert read_notes(after)[1].prediction == "3"
    assert with_entry(after, 1, "fast", "Hint", "2").count("## Case 1") == 1


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("66 Mbit/s", 66),
        ("about 1,200 B", 1200),
        ("3e-4", 3e-4),
        (".5 of it", 0.5),
        ("2,8", 2.8),
        ("0,125 of all", 0.125),
        ("1,234,567.5", 1234567.5),
        ("66, since 70 is the model's", 66),
        ("half", None),
        ("", None),
    ],
)
def test_a_predictions_number(words: str, number: float | None) -> None:
    assert number_in(words) == number


@pytest.mark.parametrize(
    ("words", "unit", "is_one"),
    [
        ("40 Mbit/s", "Mbit/s", True),
        ("about 40", "Mbit/s", True),
        ("65 segments, as Vegas keeps its window small", "segments", True),
        ("BBR will have 40 Mbit/s", "Mbit/s", True),
        ("0.4", "(1 = all)", True),
        ("25.7*0.93", "Mbit/s", False),
        ("between 40 and 50 Mbit/s", "Mbit/s", False),
        ("a lot", "Mbit/s", False),
        ("clear; ./lab check runs/variants/case-01-trial-04", "ms", False),
        ("./lab run variants --case 2", "segments", False),
        ("runs/variants/case-01", "ms", False),
    ],
)
def test_a_command_is_no_prediction(words: str, unit: str, is_one: bool) -> None:
    assert is_one_number(words, unit) is is_one


def test_the_first_call_begins_it_with_a_seed_that_stays(tmp_path: Path) -> None:
    book = LabBook(tmp_path / "mathis", LAB)
    assert book.all_notes() == {}
    assert book.open(4711) == 4711
    assert book.open() == book.open(5) == 4711
    book.add(5, "Prediction", "66\nMbit/s")
    text = (tmp_path / "mathis" / BOOK).read_text()
    assert f"## Case 5: {LAB.case(5).symptom}\n\n- Prediction: 66 Mbit/s\n" in text
    assert "Mathis" in text.splitlines()[0]


def test_seeds_that_are_drawn_are_not_the_pages(tmp_path: Path) -> None:
    seeds = {LabBook(tmp_path / str(n), LAB).open() for n in range(20)}
    assert 1 not in seeds
    assert len(seeds) > 10


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe\x00", "isn't text in UTF-8"),
        (b"# no seed\n", "has no seed"),
        (b"x" * 2**21, "larger than"),
    ],
)
def test_a_book_that_cant_be_read_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / BOOK).write_bytes(content)
    with pytest.raises(UserError, match=says):
        LabBook(tmp_path, LAB).open()
    assert (tmp_path / BOOK).read_bytes() == content


@pytest.mark.parametrize(
    ("diagnosis", "is_enough"),
    [
        ("x", False),
        ("no idea", False),
        ("the the the", False),
        ("aaa bbb 123", False),
        ("segments are cut", True),
        ("路由器的队列太短了", True),
        ("очередь мала", True),
    ],
)
def test_a_diagnosis_is_in_some_words(diagnosis: str, is_enough: bool) -> None:
    assert is_in_words(diagnosis) is is_enough


def test_a_word_of_the_cause_is_a_diagnosis_too(tmp_path: Path) -> None:
    book = LabBook(tmp_path / "mathis", load_lab(ROOT, "mathis"))
    book.open(1)
    for case, words in ((4, "x"), (5, "MTU!"), (6, "mtu"), (99, "mtu")):
        book.path.write_text(
            f"{book.path.read_text()}\n## Case {case}: it\n\n- Diagnosis: {words}\n"
        )
    assert book.known_cases() == {5}


def test_what_is_known_is_what_was_not_dropped_again() -> None:
    text = (
        "## Case 5: x\n\n- Known: ss.txt: mss:536\n- Known: slow\n- Dropped: slow\n- Known: none\n"
    )
    assert read_notes(text)[5].known_lines == ["ss.txt: mss:536"]


def test_a_line_of_a_run_is_kept_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    book = LabBook(tmp_path / "mathis", load_lab(ROOT, "mathis"))
    run = tmp_path / "mathis/case-05-trial-9-seed7"
    (run / "raw/romeo").mkdir(parents=True)
    (run / "raw/romeo/ss.txt").write_text("ESTAB\n\t cubic  mss:536\n")
    (run / "plan.json").write_text('{"lab": "mathis", "case": 5}')
    (run / "DONE").touch()

    def kept(*words: str) -> str:
        result = CliRunner().invoke(note, [str(run), *words], standalone_mode=False)
        return str(result.exception or result.output)

    assert "of no case that you have begun" in kept("it", "is", "slow")
    book.open(7)
    assert kept("romeo/ss.txt:2") == "case 5: romeo/ss.txt: cubic mss:536\n"
    assert kept("it", "is", "slow") == kept("it is slow") == "case 5: it is slow\n"
    assert kept("ss.txt:3") == "ss.txt:3: romeo/ss.txt has 2 lines"
    assert "\x1b" not in kept("\x1b[31mred")
    assert book.notes(5).known_lines == [
        "romeo/ss.txt: cubic mss:536",
        "it is slow",
        "\ufffd[31mred",
    ]
