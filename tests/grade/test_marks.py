"""The lecturer's marks: kept whatever is graded again, and counted wherever points are handed on."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab
from example_class import copy_run

from measuretwice.base.errors import UserError
from measuretwice.grading.gradebook import (
    FILE,
    HEADINGS,
    WHOLE,
    add_lines,
    mark_lines,
    read_marks,
    with_marks,
)
from measuretwice.grading.output import write_files
from measuretwice.grading.results import Graded
from measuretwice.grading.scoring import Mark

ROOT = Path(__file__).parents[2]
RUN = next(iter(sorted((ROOT / "sample-data/01-mathis/case-05-broken").glob("trial-*"))))


def student(id: str, name: str = "René, Ł") -> Graded:
    marks = (
        Mark(1, "Design, in full", None, 6, 0, 6),
        Mark(2, "The mistake mtu", "mtu", 4, 1, 4),
    )
    return Graded(name, id, marks=marks)


CLASS = [student("s1"), student("s2", "Ada"), Graded("Alan", "s3", handed_in=False)]


def filled(path: Path, form: str = "utf-8-sig", delimiter: str = ",") -> None:
    """As a lecturer's spreadsheet saves it."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    for row in rows:
        if row[0] == "s1" and row[2] == "1":
            row[-2:] = ["4,5", "Good.\nWhich claim?"]
        if row[0] == "s1" and row[3] == WHOLE:
            row[-2:] = ["-2", "late"]
        row[1] = row[1] if row[0] == "id" else "name"
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    path.write_bytes(out.getvalue().encode(form))


@pytest.mark.parametrize(
    ("form", "delimiter"), [("utf-8-sig", ","), ("cp1252", ";"), ("utf-16", "\t"), ("utf-8", ";")]
)
def test_marks_are_read_from_what_a_spreadsheet_saves(
    tmp_path: Path, form: str, delimiter: str
) -> None:
    path = tmp_path / FILE
    assert add_lines(path, mark_lines(CLASS)) == 6
    filled(path, form, delimiter)
    before = path.read_bytes()
    marks = read_marks(path, mark_lines(CLASS))
    ada, alan = (with_marks(CLASS[index], marks) for index in (1, 2))
    first = with_marks(CLASS[0], marks)
    assert [(mark.given, mark.remark) for mark in first.marks] == [
        (4.5, "Good.\nWhich claim?"),
        (None, ""),
    ]
    # What is given, what is certain, and what is taken off.
    assert first.total == 4.5 + 1 - 2
    assert (first.open, first.remark) == (1, "late")
    assert ada.open == 2
    assert alan.total is None
    # Nobody new: not a byte is touched. Somebody new: only lines at the end.
    assert add_lines(path, mark_lines(CLASS)) == 0
    assert path.read_bytes() == before
    more = [*CLASS, student("s4", "=cmd()")]
    assert add_lines(path, mark_lines(more)) == 3
    assert path.read_bytes().startswith(before)
    again = read_marks(path, mark_lines(more))
    assert with_marks(CLASS[0], again) == first
    assert "'=cmd()" in path.read_bytes().decode(form)


def test_a_last_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / FILE
    add_lines(path, mark_lines(CLASS[:1]))
    path.write_bytes(path.read_bytes().rstrip())
    add_lines(path, mark_lines(CLASS))
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    assert rows[0] == list(HEADINGS)
    assert [len(row) for row in rows] == [7] * 7


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("s1,x,1,\"Design, in full\",6,ten,", "line 2: 'ten' is no number of points"),
        ("s1,x,1,\"Design, in full\",6,7,", "line 2: 7 points for a criterion of 6"),
        ("s1,x,1,\"Design, in full\",6,-1,", "line 2: -1 points"),
        ("s1,x,1,\"Design, in full\",6,1,\ns1,x,1,\"Design, in full\",6,2,", "lines 2 and 3: two marks"),
        ("s1,x,1,\"Design", "line 2: can't be read, because a quote"),
        ("s1,x,1,\"Design, in full\",6,1e3,", "line 2: '1e3' is no number"),
    ],
)  # fmt: skip
def test_a_mark_that_cant_be_meant(tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / FILE
    path.write_text(",".join(HEADINGS) + "\n" + row + "\n")
    before = path.read_bytes()
    with pytest.raises(UserError, match=says):
        read_marks(path, mark_lines(CLASS))
    assert path.read_bytes() == before


def test_marks_of_nobody_stay_and_are_told(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(",".join(HEADINGS) + "\ns9,x,1,Old criterion,6,3,mine\n")
    marks = read_marks(path, mark_lines(CLASS))
    assert "line 2: of no student or criterion that is graded here" in marks.says[0]
    add_lines(path, mark_lines(CLASS))
    assert "s9,x,1,Old criterion,6,3,mine\n" in path.read_text()
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(UserError, match="has no column id or question"):
        read_marks(tmp_path / "other.csv", [])


def test_what_was_edited_is_kept(tmp_path: Path) -> None:
    assert write_files(tmp_path, {"a.csv": b"1", "sub/b.html": b"1"}) == []
    assert write_files(tmp_path, {"a.csv": b"2", "sub/b.html": b"1"}) == []
    (tmp_path / "a.csv").write_text("my own")
    remarks = write_files(tmp_path, {"a.csv": b"3"})
    assert remarks == ["a.csv was edited since it was written: kept as a.yours-1.csv"]
    assert (tmp_path / "a.yours-1.csv").read_text() == "my own"
    assert (tmp_path / "a.csv").read_text() == "3"
    # What isn't made any more goes, unless it was edited.
    assert not (tmp_path / "sub/b.html").exists()
    (tmp_path / "a.csv").write_text("my own again")
    assert write_files(tmp_path, {}) == []
    assert (tmp_path / "a.csv").read_text() == "my own again"
    # A list from elsewhere leads nowhere else.
    (tmp_path / "x").mkdir()
    (tmp_path / "x/.written.json").write_text(json.dumps({"../a.csv": "0", "/etc/passwd": "0"}))
    write_files(tmp_path / "x", {})
    assert (tmp_path / "a.csv").exists()


def grade(*arguments: str | Path) -> Any:
    return call_lab("grade", *arguments)


@pytest.mark.slow
def test_a_second_grade_loses_nothing(tmp_path: Path) -> None:
    """Marks, remarks and hand edits survive; the marks stand on every page and in the file to import."""
    (tmp_path / "class.csv").write_bytes(
        "Vorname;Nachname;Matrikelnummer;Note\r\nAda;Lovelace;815;\r\nRené;Descartes;816;\r\n".encode(
            "cp1252"
        )
    )
    copy_run(RUN, tmp_path / "in/815", 1)
    (tmp_path / "in/816").mkdir()
    first = grade(tmp_path / "in", "--roster", tmp_path / "class.csv", "--json")
    assert first.returncode == 1, first.stderr
    out = tmp_path / "in-grades"
    # Of René nothing could be read: the cell stays empty, and isn't 0.
    assert (out / "grades-for-import.csv").read_bytes().decode("cp1252").splitlines() == [
        "Vorname;Nachname;Matrikelnummer;Note", "Ada;Lovelace;815;0", "René;Descartes;816;",
    ]  # fmt: skip
    rows = list(csv.reader(io.StringIO((out / FILE).read_text(encoding="utf-8-sig"))))
    mine = next(row for row in rows if row[0] == "815" and row[2] == "12")
    mine[-2:] = ["6.5", "Where is the <b>interval</b>?"]
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows(rows)
    (out / FILE).write_bytes(text.getvalue().encode("cp1252"))
    (out / "grades-for-import.csv").write_text("typed by hand")
    before = (out / FILE).read_bytes()
    second = grade(tmp_path / "in", "--roster", tmp_path / "class.csv")
    assert "grades-for-import.csv was edited since it was written: kept as" in second.stdout
    assert (out / "grades-for-import.yours-1.csv").read_text() == "typed by hand"
    assert (out / FILE).read_bytes() == before
    assert "Ada;Lovelace;815;6,5\r\n" in (out / "grades-for-import.csv").read_bytes().decode(
        "cp1252"
    )
    for page in ("marking/815-adalovelace.html", "feedback/815-adalovelace.html"):
        content = (out / page).read_text()
        assert "Where is the &lt;b&gt;interval&lt;/b&gt;?" in content
        assert re.search(r"6\.5\s*/ 8|6\.5 / 8", content)
    # A mark that can't be meant stops all, and nothing is written.
    (out / FILE).write_bytes(before.replace(b";6.5;", b";65;"))
    pages = (out / "grades.html").read_bytes()
    third = grade(tmp_path / "in", "--roster", tmp_path / "class.csv")
    assert third.returncode == 2
    assert "65 points for a criterion of 8; nothing is changed" in third.stderr
    assert len(third.stderr.splitlines()) == 1
    assert (out / "grades.html").read_bytes() == pages
