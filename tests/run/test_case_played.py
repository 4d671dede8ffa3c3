"""A lab from ./lab start and a case from the first try to the report, on the real kernel, as a student plays them."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from command_line import call_lab as lab
from command_line import lab_on_terminal

from measuretwice.backends.script import plain_exports
from measuretwice.book.lab_book import LabBook
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
LAST_HINT = "The MTU is 1500 bytes"


@pytest.mark.kernel
@pytest.mark.slow
def test_a_case_is_played_and_nobody_is_told(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "runs")]
    book = tmp_path / "runs/mathis/lab-book.md"
    first = lab("run", "mathis", "--case", "5", "--seed", "77", *out)
    assert first.returncode == 0, first.stderr
    [run] = book.parent.glob("case-05-trial-09-seed77-*")
    seen = first.stdout + first.stderr + (run / "plan.json").read_text()
    seen += (run / "result.json").read_text() + lab("check", str(run)).stdout
    seen += lab("check", str(run), "--hint", "1").stdout + run.name
    assert not re.search(r"\bmtu|OFF|verdict", seen)
    assert "far too slow" in first.stdout
    # The seed's own numbers, not the page's.
    assert json.loads((run / "plan.json").read_text())["params"]["rtt_ms"] != 6
    report = lab("report", str(book.parent))
    assert report.returncode == 0, report.stderr
    assert "mtu (error)" not in (book.parent / "report.md").read_text()

    # The last hint tells the cause: no keystroke leads to it, but any guess does.
    last = ("check", str(run), "--hint", "3")
    in_pipe, as_json = lab(*last), lab(*last, "--json")
    skipped = lab_on_terminal(
        *last, answers=[("no hint yet", "x\n"), ("three words or more", "\n")]
    )
    piped = [(done.returncode, done.stdout + done.stderr) for done in (in_pipe, as_json)]
    for code, said in (*piped, skipped):
        assert code == 2, said
        assert "--hint 3 --diagnosis 'WORDS'" in said
        assert LAST_HINT not in said
    assert "Hint: 3" not in book.read_text()
    code, asked = lab_on_terminal(
        *last, answers=[("no hint yet", "x\n"), ("three words or more", "no idea at all\n")]
    )
    assert (code, LAST_HINT in asked) == (1, True), asked
    assert "- Diagnosis: no idea at all\n- Hint: 3\n" in book.read_text()
    # Once told, it is told again.
    assert LAST_HINT in lab(*last).stdout
    assert LAST_HINT in lab(*last, "--json").stdout
    book.write_text(book.read_text() + "\nIt was the interfaces, at last.\n")
    # Without --seed the book's own is taken.
    own = lab("run", "mathis", "--case", "5", "--set", "mtu_bytes=4352", *out)
    assert own.returncode == 0, own.stderr
    [fixed] = {*book.parent.glob("case-05-*")} - {run}
    assert "-seed77-" in fixed.name
    checked = lab("check", str(fixed))
    assert checked.returncode == 0
    assert "nothing is off any more" in checked.stdout

    text = book.read_text()
    for entry in (
        "- Seed: 77",
        "- Hint: 1",
        "- Hint: 3",
        "- Changed: mtu_bytes=4352",
        "- Outcome: ",
    ):
        assert entry in text
    assert "It was the interfaces, at last." in text
    [mathis] = json.loads(lab("progress", "mathis", "--json", *out).stdout)
    case = mathis["cases"][4]
    assert (case["done"], case["hints"], case["runs"], case["shown"]) == (True, 3, 2, False)
    assert lab("report", str(book.parent)).returncode == 0
    written = (book.parent / "report.md").read_text()
    assert "mtu (error)" in written
    assert "mtu_bytes=4352" in written.split("## Summary")[0]

    shown = lab("run", "mathis", "--case", "5", "--show-me", *out)
    assert shown.returncode == 0, shown.stderr
    assert "- Shown: " in book.read_text()
    assert [*book.parent.glob("case-05-shown-trial-09-seed77-*")]


@pytest.mark.nightly("the same in a page, from recorded runs: tests/in_page/test_api.py")
@pytest.mark.kernel
@pytest.mark.slow
def test_a_claim_made_afterwards_fixes_no_case(tmp_path: Path) -> None:
    case = ["run", "mathis", "--case", "12", "--seed", "77", "--out", str(tmp_path / "runs")]
    book = tmp_path / "runs/mathis/lab-book.md"
    assert lab(*case).returncode == 0
    first = {*book.parent.glob("case-12-*")}
    again = lab(*case, "--set", "constant_claimed=1.31")
    # A claim changes no packet, so that nothing is measured anew.
    assert again.returncode == 0
    assert "Nothing was measured again" in again.stdout
    [claim] = {*book.parent.glob("case-12-*")} - first
    checked = lab("check", str(claim))
    assert checked.returncode == 0
    assert "Which run would come out differently" in checked.stdout
    raw = [(run / "raw/romeo/ss.txt").read_bytes() for run in (*first, claim)]
    assert raw[0] == raw[1]
    script = plain_exports((claim / "experiment.sh").read_text())
    assert "export CONSTANT_CLAIMED=1.31" in script
    assert json.loads((claim / "provenance.json").read_text())["raw_of"] == next(iter(first)).name
    assert "Outcome" not in book.read_text()
    before = {*book.parent.glob("case-12-*")}
    assert lab(*case, "--set", "acknowledge=every-segment").returncode == 0
    [decides] = {*book.parent.glob("case-12-*")} - before
    wrong = lab("check", str(decides))
    assert wrong.returncode == 1
    assert "this run decides, and nothing is wrong with it" in wrong.stdout
    both = lab(*case, "--set", "constant_claimed=1.31", "--set", "acknowledge=every-segment")
    assert "Nothing was measured again" in both.stdout
    # Solved: the runs before are no fault any more.
    done = lab("check", *map(str, book.parent.glob("case-12-*")))
    assert done.returncode == 0
    assert "Case 12 is solved, by case-12-" in done.stdout
    assert "something is off" not in done.stdout
    assert "- Outcome: " in book.read_text()
    assert "as before. The run measured the same" in lab("check", str(claim)).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run mathis --case 5 --trial 7", "--case N knows its trial and settings"),
        ("run mathis --case 5 --pitfall mtu --stage broken", "--case N knows its trial"),
        ("run mathis --show-me", "--show-me goes with --case N"),
        ("run mathis --case 99", "mathis has cases 1 to 13"),
        ("run mathis --case 5 --show-me --set mtu_bytes=4352", "leave --set out"),
        ("start calibrate", "calibrate has no first try of its own"),
        ("start nonsense", "there is no lab 'nonsense'"),
        ("start mathis --out /proc/nowhere", "can't be written to"),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, words: str, says: str) -> None:
    done = lab(*words.split(), *([] if "--out" in words else ["--out", str(tmp_path / "runs")]))
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "says"),
    [("--seed=-1", "Invalid value for '--seed'"), ("--trial=7", "No such option")],
)
def test_start_refuses_what_it_does_not_know(tmp_path: Path, option: str, says: str) -> None:
    done = lab("start", option, "--out", str(tmp_path))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.kernel
@pytest.mark.slow
def test_a_terminal_asks_for_the_prediction_first(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "runs"))
    case = ("run", "mathis", "--case", "5", "--seed", "78", *out)
    changed = ("--set", "duration_s=9")
    code, output = lab_on_terminal(*case, *changed, answers=[("Enter skips", "\x03")])
    assert code == 130, output
    assert "Traceback" not in output
    book = tmp_path / "runs/mathis/lab-book.md"
    assert "Prediction" not in book.read_text()
    assert "Changed" not in book.read_text()
    code, output = lab_on_terminal(
        *case,
        answers=[
            ("Enter skips", "./lab check runs/mathis/case-05-trial-09\n"),
            ("Only the number", "30 Mbit/s\n"),
            ("And why?", "since nothing else is different\n"),
        ],
    )
    assert code == 0, output
    assert output.index("Your prediction") < output.index("measuring")
    assert "You predicted: 30 Mbit/s, since nothing else is different. Measured:" in output
    assert "- Prediction: 30 Mbit/s, since nothing else is different" in book.read_text()


def test_progress_before_anything_is_run(tmp_path: Path) -> None:
    done = lab("progress", "--out", str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.startswith("not begun: mathis")


def test_hints_are_for_one_case_at_a_time(tmp_path: Path) -> None:
    lab_book = tmp_path / "mathis"
    for number, name in ((5, "trial-09-seed1"), (7, "trial-07-seed1")):
        shutil.copytree(
            ROOT / f"sample-data/01-mathis/case-{number:02d}-broken/{name}",
            lab_book / f"case-{number:02d}-{name}",
        )
        plan = lab_book / f"case-{number:02d}-{name}/plan.json"
        plan.write_text(json.dumps({**json.loads(plan.read_text()), "case": number}))
    LabBook(lab_book, load_lab(ROOT, "mathis")).open(1)
    done = lab("check", str(lab_book), "--hint", "3")
    assert done.returncode == 2
    assert "one case at a time" in done.stderr
    assert "The MTU" not in done.stdout
    assert "Hint" not in (lab_book / "lab-book.md").read_text()


@pytest.mark.nightly("the same on recorded runs: tests/unit/test_first_try.py")
@pytest.mark.kernel
@pytest.mark.slow
def test_the_first_try_moves_with_the_cases(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "runs")]
    first = lab("start", "queues", "--seed", "77", *out)
    assert first.returncode == 0, first.stderr
    assert "The claim: It makes no difference" in first.stdout
    assert "That supports the claim." in first.stdout
    assert "Next: ./lab run queues --case 1 " in first.stdout
    assert "Cases 1 and 2 can move your first try: ./lab start queues repeats it" in first.stdout
    assert not re.search("bottleneck|delay|access|rate_mbit", first.stdout + first.stderr)
    book = tmp_path / "runs/queues/lab-book.md"
    assert "- Seed: 77" in book.read_text()
    assert "## First try\n\n- Run: first try: " in book.read_text()
    runs = sorted((tmp_path / "runs/start/queues").glob("trial-*-seed77-*"))
    assert len(runs) == 2

    # Broken off half-way: what is finished is kept, and the book's seed is taken.
    finished_ns = (runs[0] / "result.json").stat().st_mtime_ns
    shutil.rmtree(runs[1])
    again = lab("start", "queues", *out)
    assert again.returncode == 0, again.stderr
    assert "1 of 2 are measured already" in again.stderr
    assert (runs[0] / "result.json").stat().st_mtime_ns == finished_ns
    assert sorted((tmp_path / "runs/start/queues").glob("trial-*")) == runs

    book.write_text(
        book.read_text()
        + "\n## Case 1: one\n\n- Outcome: nothing is off any more\n"
        + "\n## Case 2: two\n\n- Shown: the fixed run\n"
    )
    progress = lab("progress", "queues", *out).stdout
    assert "./lab start queues shows what your last cases did to it." in progress
    moved = lab("start", "queues", "--json", *out)
    assert moved.returncode == 0, moved.stderr
    document = json.loads(moved.stdout)
    assert document["cases"] == [1, 2]
    assert document["last"]
    assert not document["supports"]
    assert [step["after"] for step in document["so_far"]] == ["first try", "after cases 1 and 2"]
    assert document["next_case"] == 3
    assert document["figure"] is None
    assert {row["trial"] for row in document["runs"]} == {1, 21}
    started = lab("start", "queues", *out)
    assert "That does not support the claim." in started.stdout
    assert (
        "With what you found in cases 1 and 2: rate_mbit 100 instead of 1000 (case 1); access_mbit, which was 100, no longer set (case 1); what counts is ping under load instead of goodput of both flows."
        in started.stdout
    )
    assert "No case that is left moves your first try." in started.stdout
    assert "first try: " in started.stdout
    found = tomllib.loads((ROOT / "labs/05-queues/lab.toml").read_text())["first_try"]["found"]
    assert found
    assert found in started.stdout
    assert " · after cases 1 and 2: " in lab("progress", "queues", *out).stdout


def test_a_broken_file_of_states_is_one_line_before_anything_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "start/mathis"
    folder.mkdir(parents=True)
    (folder / "steps.json").write_text("{")
    for command in (["start", "mathis"], ["progress", "mathis"]):
        done = lab(*command, "--out", str(tmp_path))
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert "steps.json: can't be read" in done.stderr
    assert [*folder.iterdir()] == [folder / "steps.json"]
