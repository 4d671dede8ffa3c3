"""Cases that a question solves, from the prediction to solved, on the real kernel, as a student plays them."""

import json
from pathlib import Path

import pytest
from command_line import call_lab as lab
from command_line import lab_on_terminal

from measuretwice.book.prediction import number_of
from measuretwice.lab import load_lab
from measuretwice.runs.result import Result, read_result

ROOT = Path(__file__).parents[2]


class Played:
    """A case whose first try was made: its book, its runs, and the number that these give."""

    def __init__(self, folder: Path, lab_name: str, number: int, *options: str) -> None:
        self.out = ("--out", str(folder / "runs"))
        self.lab, self.number = load_lab(ROOT, lab_name), number
        self.judgement = self.lab.case(number).judgement
        assert self.judgement is not None
        self.place = folder / "runs" / lab_name
        self.first = lab(
            "run", lab_name, "--case", str(number), "--seed", "77", *options, *self.out
        )
        assert self.first.returncode == 0, self.first.stderr

    @property
    def runs(self) -> list[str]:
        return sorted(map(str, self.place.glob(f"case-{self.number:02d}-*")))

    @property
    def book(self) -> str:
        return (self.place / "lab-book.md").read_text()

    @property
    def given(self) -> float:
        """The number that the student's own runs give."""
        assert self.judgement is not None
        assert self.judgement.number is not None
        results: list[Result] = [
            result for run in self.runs if (result := read_result(Path(run), self.lab))
        ]
        number = number_of(self.judgement.number, results)
        assert number is not None
        return number

    def diagnose(self) -> None:
        words = "It asks for the wrong thing, whatever the network did."
        assert lab("check", *self.runs, "--diagnosis", words).returncode == 1
        assert f"- Diagnosis: {words}" in self.book

    def answer(self, letter: str, number: float | None = None) -> tuple[int, str]:
        options = ["--answer", letter, *([] if number is None else ["--number", f"{number:.4g}"])]
        done = lab("check", *self.runs, *options)
        return done.returncode, done.stdout + done.stderr

    def is_done(self) -> bool:
        [of_lab] = json.loads(lab("progress", self.lab.name, "--json", *self.out).stdout)
        return bool(of_lab["cases"][self.number - 1]["done"])


@pytest.mark.kernel
@pytest.mark.slow
def test_what_decides_between_two_disciplines_is_asked(tmp_path: Path) -> None:
    case = Played(tmp_path, "queues", 2)
    assert "Goodput of both flows: " in case.first.stdout
    assert "(trial 1), " in case.first.stdout
    checked = lab("check", *case.runs)
    assert checked.returncode == 1
    assert "Then comes a question" in checked.stdout
    # Choices tell the cause: they come after the diagnosis.
    assert "How long a packet waits" not in checked.stdout
    code, says = case.answer("c", case.given)
    assert (code, "first say what is off" in says) == (2, True)

    case.diagnose()
    asked = lab("check", *case.runs)
    assert asked.returncode == 1
    assert "  c: How long a packet waits" in asked.stdout
    assert "--answer LETTER --number NUMBER" in asked.stdout
    for letter, number, why in (
        ("a", case.given, "a: How much can the sum"),
        ("c", 2 * case.given, "your runs give another number, by more than 2 %"),
        ("c", None, "A number is missing"),
    ):
        code, says = case.answer(letter, number)
        assert code == 1, says
        assert why in says
        assert "Case 2 is solved" not in says
    code, says = case.answer("x", case.given)
    assert (code, "'x' is no answer: choose a to d" in says) == (2, True)
    assert not case.is_done()

    code, says = case.answer("C", 1.01 * case.given)
    assert code == 0, says
    assert "Case 2 is solved: answered right: How long a packet waits" in says
    assert "something is off" not in says
    assert case.is_done()
    again = lab("check", *case.runs)
    assert again.returncode == 0
    assert again.stdout.count("nothing is off but what its case is about") >= len(case.runs)
    assert f"- Judgement: c, {1.01 * case.given:.4g}" in case.book
    assert lab("report", str(case.place)).returncode == 0
    written = (case.place / "report.md").read_text()
    assert "answered c, " in written
    assert "solved" in written


@pytest.mark.kernel
@pytest.mark.slow
def test_a_person_is_asked_at_the_terminal(tmp_path: Path) -> None:
    case = Played(tmp_path, "queues", 5)
    code, output = lab_on_terminal(
        "check",
        *case.runs,
        answers=[
            ("What is it, in your own words?", "One row is the total\n"),
            ("Your answer, a letter", "a\n"),
            ("And the number", f"{case.given:.4g} Mbit/s\n"),
            ("Your answer, a letter", "b\n"),
            ("And the number", f"{case.given:.4g} Mbit/s\n"),
        ],
    )
    assert code == 0, output
    assert "a: How many rows does rates.txt have" in output
    assert "Case 5 is solved: answered right: The seconds of the test and" in output
    assert "- Diagnosis: One row is the total" in case.book
    assert case.is_done()


@pytest.mark.kernel
@pytest.mark.slow
def test_the_old_way_solves_it_too(tmp_path: Path) -> None:
    case = Played(tmp_path, "queues", 5)
    assert "Mean of host-1's rates: " in case.first.stdout
    fixed = lab("run", "queues", "--case", "5", "--set", "average=seconds", *case.out)
    assert fixed.returncode == 0, fixed.stderr
    done = lab("check", *case.runs)
    assert done.returncode == 0, done.stdout
    assert "Case 5 is solved, by case-05-" in done.stdout
    assert case.is_done()


@pytest.mark.kernel
@pytest.mark.slow
def test_a_spread_is_judged_with_any_seed(tmp_path: Path) -> None:
    case = Played(tmp_path, "queues", 7)
    assert "Standard deviations: pfifo_fast " in case.first.stdout
    assert "(8 values)" in case.first.stdout
    case.diagnose()
    code, says = case.answer("a", case.given)
    assert code == 1
    assert "Work out F for the report's" in says
    code, says = case.answer("d", case.given)
    assert code == 0, says
    assert case.is_done()


def test_a_number_needs_an_answer(tmp_path: Path) -> None:
    for options, says in (
        (("--number", "3"), "--number goes with --answer"),
        (("--answer", "a"), "no case of yours that asks a question"),
    ):
        done = lab("check", ROOT / "sample-data/05-queues/case-02-broken", *options)
        assert done.returncode == 2
        assert says in done.stderr
