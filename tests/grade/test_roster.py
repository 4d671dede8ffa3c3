"""Rosters as systems export them, seeds that are dealt, and whose file is whose."""

import csv
import io
import json
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.cli.deal import deal_command
from measuretwice.grading.roster import SEEDS_EACH, Student, cell, csv_text, deal, read_roster
from measuretwice.grading.submissions import find_submissions

ROOT = Path(__file__).parents[2]
CANVAS = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77)
    Points Possible,,,,,100
"Lovelace, Ada",101,00815,ada,Tue,
"Émile O'Brien, Jr",102,00816,emile,Tue,
"Student, Test",103,,abcdef,Tue,
"""
MOODLE = "First name;Last name;ID number;Email address\r\nAda;Lovelace;;ada@x.example\r\nEm;B;7;em@x.example\r\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "class.csv"
    path.write_bytes(text.encode())
    return path


def test_canvas_roster(tmp_path: Path) -> None:
    roster = read_roster(written(tmp_path, CANVAS))
    assert [(one.id, one.name) for one in roster.students] == [
        ("00815", "Lovelace, Ada"),
        ("00816", "Émile O'Brien, Jr"),
    ]
    assert roster.students[0].names == {"lovelaceada", "adalovelace"}
    assert "emilejrobrien" not in roster.students[1].names
    assert "emileobrienjr" in roster.students[1].names


def test_moodle_roster(tmp_path: Path) -> None:
    """Not everyone has a number there: then the address is the id."""
    roster = read_roster(written(tmp_path, MOODLE))
    assert [one.id for one in roster.students] == ["ada@x.example", "em@x.example"]
    assert roster.students[0].name == "Ada Lovelace"
    assert {"ada", "ada@x.example"} <= roster.students[0].keys


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("Student,Mark\nAda,1\n", "no column with an id"),
        ("Student ID\n", "no students"),
        ("Student ID\n1\n1\n", "two have the same"),
        ("Student ID,Student ID\n1,2\n", "stands twice"),
        ('Student ID\n"=cmd()"\n', "begins like a formula"),
        ("Student ID,lab,seed\na,mathis,x\n", "line 2: the seed 'x'"),
        ("Student ID,lab,seed\na,mathis,100\nb,mathis,100\n", "two students have one seed"),
        ("Student ID,lab,seed\na,mathis,100\nb,queues,200\n", "several labs"),
    ],
)
def test_a_roster_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_roster(written(tmp_path, text))


def test_a_roster_in_latin_1(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_bytes(b"Student ID,Name\n1,Ren\xe9\n")
    with pytest.raises(UserError, match="not UTF-8"):
        read_roster(tmp_path / "class.csv")


def people(count: int) -> list[Student]:
    return [Student(f"s{n}", f"N{n}", {}) for n in range(count)]


def test_seeds() -> None:
    seeds = deal(people(2000), "mathis", "autumn")
    assert deal(people(2000)[::-1], "mathis", "autumn") == seeds
    assert len(set(seeds.values())) == 2000
    assert all(seed % SEEDS_EACH == 0 for seed in seeds.values())
    # Every one of a student's seeds is one that ./lab run takes, and none is a recorded run's.
    assert min(seeds.values()) >= SEEDS_EACH
    assert max(seeds.values()) + SEEDS_EACH - 1 < 2**31
    # Who comes later changes nobody else's.
    assert deal(people(100), "mathis", "autumn").items() <= seeds.items()
    assert deal(people(1), "mathis", "spring")["s0"] != seeds["s0"]
    assert deal(people(1), "queues", "autumn")["s0"] != seeds["s0"]


def test_seeds_that_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("measuretwice.grading.roster.LAST_BLOCK", 60)
    seeds = deal(people(50), "mathis", "autumn")
    assert len(set(seeds.values())) == 50


def test_dealt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CANVAS.replace("Lovelace, Ada", "=HYPERLINK(1)"))
    deal_command(ROOT, path, lab_name="mathis", term="autumn", out=None, as_json=True)
    said = json.loads(capsys.readouterr().out)
    dealt = tmp_path / "class-mathis-seeds.csv"
    rows = list(csv.DictReader(io.StringIO(dealt.read_text())))
    assert [row["SIS User ID"] for row in rows] == ["00815", "00816"]
    assert rows[0]["Student"] == "'=HYPERLINK(1)"
    assert [int(row["seed"]) for row in rows] == [one["seed"] for one in said]
    commands = rows[0]["commands"].split("\n")
    assert f"./lab run mathis --case 5 --seed {rows[0]['seed']}" in commands
    roster = read_roster(dealt)
    assert roster.lab == "mathis"
    assert roster.students[0].name == "=HYPERLINK(1)"
    assert roster.owner(roster.students[1].seeds[-1]) == roster.students[1]
    # Dealt again from what was dealt: the same.
    deal_command(ROOT, dealt, lab_name="mathis", term="autumn", out=tmp_path / "b", as_json=True)
    assert (tmp_path / "b").read_text() == dealt.read_text()


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_formula(text: str) -> None:
    said = next(csv.reader(io.StringIO(csv_text([[text]]))))[0]
    assert said[0] in "' "
    assert cell("a=1") == "a=1"


def test_whose_is_whose(tmp_path: Path) -> None:
    roster = read_roster(
        written(
            tmp_path,
            CANVAS + '"Noether, Emmy",200,00900,emmy,Tue,\n"Noether, Emmy",201,00901,emmy2,Tue,\n',
        )
    )
    folder = tmp_path / "handed"
    for name in (
        "Ada Lovelace_4711_assignsubmission_file_",
        "Ada Lovelace_4711_assignsubmission_onlinetext",
        "emileobrienjr_LATE_102_5555_00815 runs.zip",
        "Emmy Noether_4712_assignsubmission_file_",
        "00901-late",
        "somebody",
        ".DS_Store",
    ):
        (folder / name).mkdir(parents=True)
    (folder / "class.csv").write_text("x")
    (folder / "lovelaceada_101_5556_report.md").write_text("x")
    found, others = find_submissions(folder, roster)
    by_id = {one.student.id: one for one in found if one.student}
    # The number in the student's own part of the name is not the student's to choose by.
    assert by_id.keys() == {"00815", "00816", "00901"}
    assert len(by_id["00815"].sources) == 3
    assert len(by_id["00816"].sources) == 1
    nobody = {one.name: one.says for one in found if one.student is None}
    assert nobody.keys() == {"Emmy Noether", "somebody"}
    assert "fits 2" in nobody["Emmy Noether"][0]
    assert "nobody's" in nobody["somebody"][0]
    assert others == ["class.csv: no folder and no archive; not taken for a submission"]


def test_without_a_roster(tmp_path: Path) -> None:
    for name in ("ada", "grace.zip", "x_y_1_2_z.zip", "hopper_12_13_a.zip", "hopper_12_14_b.md"):
        (tmp_path / name).touch() if "." in name else (tmp_path / name).mkdir()
    (tmp_path / "evil\x1b[31m").mkdir()
    found, others = find_submissions(tmp_path, None)
    names = [one.name for one in found]
    assert names == ["ada", "evil\ufffd[31m", "grace", "hopper", "x_y_1_2_z"]
    assert [len(one.sources) for one in found] == [1, 1, 1, 2, 1]
    assert others == []


def test_no_class(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no submissions"):
        find_submissions(tmp_path, None)
    (tmp_path / "all.zip").touch()
    with pytest.raises(UserError, match="Unpack it first"):
        find_submissions(tmp_path / "all.zip", None)
