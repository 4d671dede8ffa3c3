"""Rosters in the forms in which systems and spreadsheets write them: in, and out again with marks."""

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.grading.gradebook import fill_marks
from measuretwice.grading.roster import Roster, read_roster
from measuretwice.grading.text_table import read_table

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Form:
    """A file as a system exports it: of Ada and René, who are in line `first` and the next."""

    text: str
    ids: tuple[str, str]
    names: tuple[str, str]
    column: str
    first: int = 2
    encoding: str = "utf-8"
    suffix: str = ".csv"
    title: str | None = None
    mark: str = "7.5"


FORMS = {
    "canvas": Form(
        "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77),Quiz (78),Current Score\r\n"
        ",,,,,Manual Posting,,\r\n"
        "    Points Possible,,,,,10.00,5.00,(read only)\r\n"
        '"Lovelace, Ada",101,00815,ada,Tue,,4.00,80.00\r\n'
        '"Descartes, René",102,00816,rene,Tue,3.00,,60.00\r\n'
        '"Student, Test",103,,abcdef,Tue,,,\r\n',
        ("00815", "00816"), ("Lovelace, Ada", "Descartes, René"), "Lab 1 (77)", 4, title="Lab 1",
    ),
    "canvas in German": Form(
        "\ufeffLastName;FirstName;ID;SIS Login ID;Section;Lab 1 (77);Current Score\n"
        "    Points Possible;;;;;10,00;(read only)\n"
        "Lovelace;Ada;101;ada;Di;;80,00\nDescartes;René;102;rene;Di;;\nStudent;Test;103;t;Di;;\n",
        ("ada", "rene"), ("Ada Lovelace", "René Descartes"), "Lab 1 (77)", 3, title="Lab 1 (77)", mark="7,5",
    ),
    "moodle's gradebook": Form(
        'First name,Surname,"ID number",Institution,Department,"Email address","Assignment: Lab 1 (Real)",'
        '"Last downloaded from this course"\n'
        "Ada,Lovelace,815,,,ada@x.example,-,1700000000\nRené,Descartes,816,,,rene@x.example,-,1700000000\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Assignment: Lab 1 (Real)", title="Lab 1",
    ),
    "moodle's worksheet": Form(
        'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
        '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
        '"Participant 4711","Ada Lovelace",ada@x.example,"Submitted for grading - 1 day late",,10.00,Yes,'
        '"Monday, 3 October 2026, 10:41 PM",-,\n'
        '"Participant 4712","René Descartes",rene@x.example,"No submission",,10.00,Yes,-,-,\n',
        ("ada@x.example", "rene@x.example"), ("Ada Lovelace", "René Descartes"), "Grade",
    ),
    "moodle's worksheet, blind": Form(
        'Identifier,Status,Grade,"Maximum Grade","Grade can be changed","Last modified (grade)"\n'
        '"Participant 4711",Submitted,,10.00,Yes,-\n"Participant 4712",Submitted,,10.00,Yes,-\n',
        ("Participant 4711", "Participant 4712"), ("Participant 4711", "Participant 4712"), "Grade",
    ),
    "moodle's worksheet in German": Form(
        'ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann geändert werden",'
        '"Zuletzt geändert (Bewertung)"\n'
        'Teilnehmer/in4711,"Ada Lovelace",ada@x.example,"Zur Bewertung abgegeben",,"10,00",Ja,-\n'
        'Teilnehmer/in4712,"René Descartes",rene@x.example,"Nicht abgegeben",,"10,00",Ja,-\n',
        ("ada@x.example", "rene@x.example"), ("Ada Lovelace", "René Descartes"), "Bewertung", mark="7,5",
    ),
    "blackboard": Form(
        '\ufeff"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Last Access"\t"Availability"\t'
        '"Lab 1 [Total Pts: 10 Score] |12345"\r\n'
        '"Lovelace"\t"Ada"\t"ada"\t"815"\t"2026-10-03"\t"Yes"\t""\r\n'
        '"Descartes"\t"René"\t"rene_d"\t"816"\t"2026-10-03"\t"Yes"\t""\r\n',
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Lab 1 [Total Pts: 10 Score] |12345",
        encoding="utf-16-le", suffix=".xls", title="Lab 1",
    ),
    "brightspace": Form(
        "OrgDefinedId,Username,Last Name,First Name,Lab 1 Points Grade <Numeric MaxPoints:10>,End-of-Line Indicator\n"
        "#815,#ada,Lovelace,Ada,,#\n#816,#rene,Descartes,René,,#\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Lab 1 Points Grade <Numeric MaxPoints:10>", title="Lab 1",
    ),
    "excel in German": Form(
        "sep=;\r\n;;;;;\r\nVorname;Nachname;Matrikelnummer;Note;;\r\n"
        "Ada;Lovelace;815;;;\r\nRené;Descartes;816;;;\r\n;;;;;\r\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Note", 4, encoding="cp1252", mark="7,5",
    ),
    "a German list": Form(
        "Teilnehmerliste Rechnernetze;;;\r\nStand: 3.10.2026;;;\r\n\r\nName;Vorname;Anmeldename;Punkte\r\n"
        "Lovelace;Ada;ada;\r\nDescartes;René;rene;\r\n",
        ("ada", "rene"), ("Ada Lovelace", "René Descartes"), "Punkte", 5, encoding="cp1252", mark="7,5",
    ),
    "excel in French, on a Macintosh": Form(
        "Nom;Prénom;Numéro étudiant;Note\rLovelace;Ada;815;\rDescartes;René;816;\r",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Note", encoding="mac_roman", mark="7,5",
    ),
    "moodle in French": Form(
        "Prénom,\"Nom de famille\",\"Numéro d’identification\",\"Adresse de courriel\",\"Devoir : Lab 1 (Brut)\"\n"
        "Ada,Lovelace,815,a@x.example,-\nRené,Descartes,816,r@x.example,-\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Devoir : Lab 1 (Brut)", title="Lab 1",
    ),
    "moodle in Spanish": Form(
        'Nombre,Apellido(s),"Número de ID","Dirección de correo","Tarea: Lab 1 (Real)"\n'
        "Ada,Lovelace,815,a@x.example,-\nRené,Descartes,816,r@x.example,-\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Tarea: Lab 1 (Real)", title="Lab 1",
    ),
    "moodle in Dutch": Form(
        "Voornaam,Achternaam,ID-nummer,E-mailadres,Beoordeling\n"
        "Ada,Lovelace,815,a@x.example,\nRené,Descartes,816,r@x.example,\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Beoordeling",
    ),
    "moodle in Portuguese": Form(
        'Nome,Apelido,"Número de identificação","Endereço de email",Nota\n'
        "Ada,Lovelace,815,a@x.example,\nRené,Descartes,816,r@x.example,\n",
        ("815", "816"), ("Ada Lovelace", "René Descartes"), "Nota",
    ),
}  # fmt: skip
CENTRAL = "Jméno a příjmení;Login;Body\r\nČapek Jiří;capek;\r\nŁukasiewicz Łucja;lu;\r\n"
BOTH = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


def put(tmp_path: Path, form: Form) -> Path:
    path = tmp_path / f"class{form.suffix}"
    path.write_bytes(form.text.encode(form.encoding))
    return path


def filled(roster: Roster, form: Form, marks: dict[str, float | None]) -> list[list[str]]:
    export = fill_marks(
        roster, marks, form.title or "Measure Twice: mathis", 10, named=form.title is not None
    )
    assert export.column == form.column
    assert not export.added
    assert export.name == f"grades-for-import{form.suffix}"
    before = roster.path.read_bytes()
    # The mark at its beginning, and below encoding, delimiter and ends of lines: as they were.
    assert export.content[:2] == before[:2]
    back = roster.path.with_name(f"back{form.suffix}")
    back.write_bytes(export.content)
    old, new = read_table(roster.path), read_table(back)
    assert new.form == old.form
    assert (b"\r\n" in before) == (new.form.newline == "\r\n") or form.encoding == "utf-16-le"
    assert [line.number for line in new.lines] == [line.number for line in old.lines]
    return [list(line.cells) for line in new.lines]


@BOTH
def test_in(tmp_path: Path, form: Form) -> None:
    roster = read_roster(put(tmp_path, form))
    assert tuple(student.id for student in roster.students) == form.ids
    assert tuple(student.name for student in roster.students) == form.names
    assert [student.line for student in roster.students] == [form.first, form.first + 1]


@BOTH
def test_out(tmp_path: Path, form: Form) -> None:
    """The same rows and columns, one cell filled: whoever has no mark keeps what was there."""
    roster = read_roster(put(tmp_path, form))
    old = [list(line.cells) for line in roster.table.lines]
    new = filled(roster, form, {form.ids[0]: 7.5, form.ids[1]: None})
    differ = [
        (row, column)
        for row, cells in enumerate(old)
        for column, text in enumerate(cells)
        if text != new[row][column]
    ]
    assert [len(cells) for cells in old] == [len(cells) for cells in new]
    (row, column) = differ[0]
    assert len(differ) == 1
    assert roster.table.lines[row].number == form.first
    assert roster.heading.cells[column].strip() == form.column
    assert new[row][column] == form.mark


@BOTH
def test_dealt_and_back(tmp_path: Path, form: Form) -> None:
    """A dealt roster keeps its system's form, and what is imported has no word of seeds."""
    path = put(tmp_path, form)
    assert call_lab("deal", path, "--lab", "mathis", "--term", "autumn").returncode == 0
    dealt = read_roster(tmp_path / f"class-mathis-seeds{form.suffix}")
    assert dealt.lab == "mathis"
    assert tuple(student.id for student in dealt.students) == form.ids
    assert dealt.table.form.encoding == read_table(path).form.encoding
    assert all(student.seed for student in dealt.students)
    export = fill_marks(
        dealt, dict.fromkeys(form.ids, 7.5), form.title or "x", 10, named=form.title is not None
    )
    text = export.content.decode(form.encoding)
    assert "seed" not in text
    assert "./lab run" not in text
    plain = fill_marks(
        read_roster(path), dict.fromkeys(form.ids, 7.5), form.title or "x", 10,
        named=form.title is not None,
    )  # fmt: skip
    assert export.content == plain.content


def test_central_europe(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes(CENTRAL.encode("cp1250"))
    roster = read_roster(tmp_path / "c.csv")
    assert [student.id for student in roster.students] == ["capek", "lu"]
    assert "Central Europe" in roster.says[0]
    assert "Jméno" in roster.says[0]


def test_a_guess_is_told_with_a_name(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes("Name,Student ID\nRené,1\n".encode("cp1252"))
    roster = read_roster(tmp_path / "c.csv")
    assert roster.says == (
        "c.csv: read as Windows, Western Europe (cp1252), where a name reads 'René'; if that is wrong, "
        "save the file as 'CSV UTF-8'",
    )


def test_moodles_number_is_kept(tmp_path: Path) -> None:
    roster = read_roster(put(tmp_path, FORMS["moodle's worksheet"]))
    assert [student.number for student in roster.students] == ["4711", "4712"]
    assert "1 day late" in roster.students[0].status


def test_a_new_column_where_there_is_none(tmp_path: Path) -> None:
    form = FORMS["canvas"]
    export = fill_marks(
        read_roster(put(tmp_path, form)), {"00815": 7.5}, "Measure Twice: mathis", 10, named=False
    )
    rows = list(csv.reader(io.StringIO(export.content.decode("utf-8-sig"))))
    assert export.added
    assert rows[0][-1] == "Measure Twice: mathis"
    assert [row[-1] for row in rows] == ["Measure Twice: mathis", "", "10", "7.5", "", ""]
    # Brightspace's last column stays the last.
    export = fill_marks(
        read_roster(put(tmp_path, FORMS["brightspace"])), {"815": 1}, "New", 10, named=True
    )
    assert export.content.decode().splitlines()[1] == "#815,#ada,Lovelace,Ada,,1,#"


@pytest.mark.parametrize(
    ("title", "says"),
    [
        ("Section", "has words in the column 'Section'"),
        ("Current Score", "the column 'Current Score' is read-only"),
    ],
)
def test_a_column_that_takes_no_marks(tmp_path: Path, title: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        fill_marks(read_roster(put(tmp_path, FORMS["canvas"])), {}, title, 10, named=True)


def test_two_columns_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("Student ID,Lab 1 (7),Lab 1 (8)\n1,,\n")
    with pytest.raises(UserError, match="has 'Lab 1 \\(7\\)', 'Lab 1 \\(8\\)'; give the whole"):
        fill_marks(read_roster(tmp_path / "c.csv"), {}, "Lab 1", 10, named=True)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"Student ID,Name\n1,a\n\n2,b\n1,c\n", "lines 2 and 5 have the same Student ID"),
        (b"Student ID,Name\n1,a\n,b\n", "line 3 has no Student ID"),
        (b"Student ID,Name\n1,a\n2,b,c,d\n", "line 3: 4 cells under 2"),
        (b'Student ID,Name\n1,a\n2,"b\n3,c\n', "line 3: can't be read, because a quote is opened"),
        (b"Student ID,Name\n1,a\n1.23E+08,b\n", "line 3: the id 1.23E.08 was shortened"),
        (b'Student ID,Name\n1,a\n"=cmd(1)",b\n', "line 3: the id '=cmd\\(1\\)' begins like a formula"),
        (b"Student ID,Name\n1," + b"x" * 200_000 + b"\n", "line 2: can't be read, because field larger"),
        (b"Student ID,Name\n" + b"1,a\n" * 20_001, "more than 20000 lines"),
        (b"Student ID,Name\n" + b"".join(b"%d,a\n" % n for n in range(5001)), "more than 5000 students"),
        (b"x" * (16 * 2**20 + 1), "larger than 16 MiB"),
        (b"PK\x03\x04rest", "a workbook; save it"),
        (b"\xd0\xcf\x11\xe0rest", "a workbook; save it"),
        (b"\xff\xfeS", "begins as utf-16-le and isn't"),
        ("Имя,Login\nЧехов Антон,1\n".encode("cp1251"), "no Western or Central European"),
        (b"", "is empty"),
        (b";;;\r\n;;;\r\n", "is empty"),
        (b"Name,Age\na,1\n", "line 1: no column with an id"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "c.csv").write_bytes(data)
    with pytest.raises(UserError, match=says):
        read_roster(tmp_path / "c.csv")


def test_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, says in ((tmp_path / "pipe", "neither a file"), (tmp_path / "no", "No such file"), (tmp_path, "directory")):  # fmt: skip
        with pytest.raises(UserError, match=says):
            read_roster(path)


def test_a_line_of_nobody_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("Student ID,Name,Points\n1,a,\n,,3.5\n")
    roster = read_roster(tmp_path / "c.csv")
    assert len(roster.students) == 1
    assert roster.says == ("c.csv, line 3: neither an id nor a name; taken for no student",)


def test_formulas_and_orders_to_a_terminal(tmp_path: Path) -> None:
    """What a spreadsheet would compute leaves as text, and numbers stay numbers."""
    (tmp_path / "c.csv").write_text(
        'Student ID,Name,Old,Lab\n1,"=HYPERLINK(1)",-5,\n2,\x1b]0;x\x07+1+1,-,\n3,"@SUM(A1)",+3.5,\n'
    )
    roster = read_roster(tmp_path / "c.csv")
    assert roster.students[0].name == "=HYPERLINK(1)"
    assert "\x1b" not in roster.students[1].name
    export = fill_marks(roster, {"1": 2}, "Lab", 10, named=True)
    rows = list(csv.reader(io.StringIO(export.content.decode())))
    assert [row[1] for row in rows[1:]] == ["'=HYPERLINK(1)", " ]0;x +1+1", "'@SUM(A1)"]
    assert [row[2] for row in rows[1:]] == ["-5", "-", "+3.5"]
    assert not any(text.startswith(("=", "@")) for row in rows for text in row)


def test_a_title_that_the_encoding_lacks(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes("Student ID,Name\n1,René\n".encode("cp1252"))
    with pytest.raises(UserError, match="cp1252, which has no '学'"):
        fill_marks(read_roster(tmp_path / "c.csv"), {"1": 1}, "学", 10, named=True)
