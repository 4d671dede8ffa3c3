"""Rosters as systems export them, seeds that are dealt, and whose file is whose."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.grading import systems
from measuretwice.grading.roster import SEEDS_EACH, Student, deal_seeds, read_roster
from measuretwice.grading.submission import find_submissions
from measuretwice.grading.text_table import cell, csv_text

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
    assert [(student.id, student.name) for student in roster.students] == [
        ("00815", "Lovelace, Ada"),
        ("00816", "Émile O'Brien, Jr"),
    ]
    assert roster.students[0].names == {"lovelaceada", "adalovelace"}
    assert "emilejrobrien" not in roster.students[1].names
    assert "emileobrienjr" in roster.students[1].names


def test_moodle_roster(tmp_path: Path) -> None:
    """Not everyone has a number there: then the address is the id."""
    roster = read_roster(written(tmp_path, MOODLE))
    assert [student.id for student in roster.students] == ["ada@x.example", "em@x.example"]
    assert roster.students[0].name == "Ada Lovelace"
    assert {"ada", "ada@x.example"} <= roster.students[0].keys


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("Student,Mark\nAda,1\n", "no column with an id"),
        ("Student ID\n", "no students"),
        ("Student ID\n1\n1\n", "lines 2 and 3 have the same"),
        ("Student ID,Student ID\n1,2\n", "stands twice"),
        ('Student ID\n"=cmd()"\n', "begins like a formula"),
        ("Student ID,lab,seed\na,mathis,x\n", "line 2: the seed 'x'"),
        (
            "Student ID,lab,seed\na,mathis,100\nb,mathis,100\n",
            "lines 2 and 3: two students have the same seed",
        ),
        ("Student ID,lab,seed\na,mathis,100\nb,queues,200\n", "several labs"),
    ],
)
def test_a_roster_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_roster(written(tmp_path, text))


def people(count: int) -> list[Student]:
    return [Student(f"s{n}", f"N{n}", {}) for n in range(count)]


def test_seeds() -> None:
    seeds = deal_seeds(people(2000), "mathis", "autumn")
    assert deal_seeds(people(2000)[::-1], "mathis", "autumn") == seeds
    assert len(set(seeds.values())) == 2000
    assert all(seed % SEEDS_EACH == 0 for seed in seeds.values())
    # Every one of a student's seeds is one that ./lab run takes, and none is a recorded run's.
    assert min(seeds.values()) >= SEEDS_EACH
    assert max(seeds.values()) + SEEDS_EACH - 1 < 2**31
    # Who comes later changes nobody else's.
    assert deal_seeds(people(100), "mathis", "autumn").items() <= seeds.items()
    assert deal_seeds(people(1), "mathis", "spring")["s0"] != seeds["s0"]
    assert deal_seeds(people(1), "queues", "autumn")["s0"] != seeds["s0"]


def test_seeds_that_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("measuretwice.grading.roster.LAST_BLOCK", 60)
    seeds = deal_seeds(people(50), "mathis", "autumn")
    assert len(set(seeds.values())) == 50


def test_dealt(tmp_path: Path) -> None:
    path = written(tmp_path, CANVAS.replace("Lovelace, Ada", "=HYPERLINK(1)"))
    of_term = ("--lab", "mathis", "--term", "autumn")
    dealt_students = json.loads(call_lab("deal", path, *of_term, "--json").stdout)
    dealt = tmp_path / "class-mathis-seeds.csv"
    rows = list(csv.DictReader(io.StringIO(dealt.read_text(encoding="utf-8-sig"))))
    # The points' line and the made-up student's stay, without a seed.
    assert [bool(row["seed"]) for row in rows] == [False, True, True, False]
    rows = [row for row in rows if row["seed"]]
    assert [row["SIS User ID"] for row in rows] == ["00815", "00816"]
    assert rows[0]["Student"] == "'=HYPERLINK(1)"
    assert [int(row["seed"]) for row in rows] == [student["seed"] for student in dealt_students]
    commands = rows[0]["commands"].split("\n")
    # A command that a student gets names no cause.
    assert commands[4] == f"./lab run mathis --case 5 --seed {rows[0]['seed']}"
    assert not any("mtu" in command for command in commands)
    roster = read_roster(dealt)
    assert roster.lab == "mathis"
    assert roster.students[0].name == "=HYPERLINK(1)"
    assert roster.owner(roster.students[1].seeds[-1]) == roster.students[1]
    # Dealt again from what was dealt: the same.
    assert call_lab("deal", dealt, *of_term, "--out", tmp_path / "b").returncode == 0
    assert (tmp_path / "b").read_text() == dealt.read_text()


def test_dealt_seeds_are_never_replaced(tmp_path: Path) -> None:
    """Students may have them: another word, another lab, another file in that place are refused."""
    path = written(tmp_path, CANVAS)

    def again(lab: str = "mathis", term: str = "autumn") -> str:
        words = ("--lab", lab, "--term", term, "--out", tmp_path / "dealt.csv")
        return call_lab("deal", path, *words).stderr

    assert again() == ""
    before = (tmp_path / "dealt.csv").read_bytes()
    for options, says in (
        ({"term": "spring"}, "has other seeds for 2 of 2 students (the first in line 3)"),
        ({"lab": "queues"}, "has the seeds of mathis, not of queues"),
    ):
        assert says in again(**options)
        assert (tmp_path / "dealt.csv").read_bytes() == before
    # Who joins gets a seed, and everybody else keeps theirs.
    path.write_bytes((CANVAS + '"Noether, Emmy",200,00900,emmy,Tue,\n').encode())
    assert again() == ""
    assert set(before.splitlines()) < set((tmp_path / "dealt.csv").read_bytes().splitlines())
    for content, says in (("x", "is no dealt roster"), (CANVAS, "without seeds")):
        (tmp_path / "dealt.csv").write_text(content)
        assert says in again()
        assert (tmp_path / "dealt.csv").read_text() == content


def test_a_lab_that_cant_be_graded_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(ROOT / "labs", root / "labs")
    (root / "labs/01-mathis/rubric.toml").unlink()
    path = written(tmp_path, CANVAS)
    dealt = call_lab(
        "deal", path, "--lab", "mathis", "--term", "autumn", MEASURETWICE_ROOT=str(root)
    )
    assert "mathis has no rubric.toml: ./lab grade can't mark it" in dealt.stdout


@pytest.mark.parametrize("text", ["=1", "+1+1", "-1-1", "@x", "\t=1", "\r=1", "-cmd|x", "+"])
def test_no_formula(text: str) -> None:
    written_cell = next(csv.reader(io.StringIO(csv_text([[text]]))))[0]
    assert written_cell[0] in "' "
    assert cell("a=1") == "a=1"
    assert [cell(text) for text in ("-", "-1", "+1,5", "-3 %")] == ["-", "-1", "+1,5", "'-3 %"]


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
    by_id = {submission.student.id: submission for submission in found if submission.student}
    # The number in the student's own part of the name is not the student's to choose by.
    assert by_id.keys() == {"00815", "00816", "00901"}
    assert len(by_id["00815"].paths) == 3
    assert len(by_id["00816"].paths) == 1
    nobody = {
        submission.name: submission.problems for submission in found if submission.student is None
    }
    assert nobody.keys() == {"Emmy Noether", "somebody"}
    assert "fits 2" in nobody["Emmy Noether"][0]
    assert "nobody's" in nobody["somebody"][0]
    assert others == ["class.csv: no folder and no archive; not taken for a submission"]


def test_what_systems_call_files(tmp_path: Path) -> None:
    """Blackboard's attempts, of which the last counts; Brightspace's folders; Moodle's numbers, blind too."""
    roster = read_roster(
        written(
            tmp_path,
            "Identifier,Username,Full name,ID\nParticipant 4711,ada,Ada Lovelace,1\n"
            "Participant 4712,rene_d,René Descartes,2\nParticipant 4713,emmy,Emmy Noether,3\n",
        )
    )
    folder = tmp_path / "handed"
    for name in (
        "Lab 1_ada_attempt_2026-10-03-22-41-07_x.zip",
        "Lab 1_ada_attempt_2026-10-03-22-41-07.txt",
        "Lab 1_ada_attempt_2026-10-01-09-00-00_x_emmy_attempt_2026-12-01-09-00-00_x.zip",
        "Lab 1_rene_d_attempt_2026-10-02-10-00-00_runs.zip",
        "Participant_4713_assignsubmission_file_",
        "123-456 - Emmy Noether - 3 October, 2026 1041 PM",
        "noetheremmy_LATE_3_99_x.zip",
    ):
        (folder / name).mkdir(parents=True)
    found, others = find_submissions(folder, roster)
    assert others == []
    by_id = {submission.student.id: submission for submission in found if submission.student}
    assert by_id.keys() == {"ada", "rene_d", "emmy"}
    assert [(attempt.counts, attempt.remark) for attempt in by_id["ada"].handed_in] == [
        (False, "2026-10-01 09:00:00, an earlier attempt; not marked"),
        (True, "2026-10-03 22:41:07"),
    ]
    assert [path.name[-5:] for path in by_id["ada"].counted] == ["x.zip"]
    says = {attempt.named.system: attempt.remark for attempt in by_id["emmy"].handed_in}
    assert says == {"brightspace": "3 October, 2026 1041 PM", "moodle": "", "canvas": "late"}
    feedback = {attempt.named.system: attempt.named.feedback for attempt in by_id["emmy"].handed_in}
    assert feedback == {
        "brightspace": "123-456 - Emmy Noether - 3 October, 2026 1041 PM/feedback.html",
        "moodle": "Participant_4713_assignsubmission_file_/feedback.html",
        "canvas": "noetheremmy_LATE_3_99_feedback.html",
    }


def test_without_a_roster(tmp_path: Path) -> None:
    for name in ("ada", "grace.zip", "x_y_1_2_z.zip", "hopper_12_13_a.zip", "hopper_12_14_b.md"):
        (tmp_path / name).touch() if "." in name else (tmp_path / name).mkdir()
    (tmp_path / "evil\x1b[31m").mkdir()
    found, others = find_submissions(tmp_path, None)
    names = [submission.name for submission in found]
    assert names == ["ada", "evil\ufffd[31m", "grace", "hopper", "x_y_1_2_z"]
    assert [len(submission.paths) for submission in found] == [1, 1, 1, 2, 1]
    assert others == []


def test_no_class(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no submissions"):
        find_submissions(tmp_path, None)
    (tmp_path / "all.zip").touch()
    with pytest.raises(UserError, match="Unpack it first"):
        find_submissions(tmp_path / "all.zip", None)


@pytest.fixture
def own_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the systems' files, read instead of the kit's own."""

    def forget() -> None:
        systems.systems.cache_clear()
        systems.headings.cache_clear()

    shutil.copytree(systems.FOLDER, tmp_path / "systems")
    monkeypatch.setattr(systems, "FOLDER", tmp_path / "systems")
    forget()
    yield tmp_path / "systems"
    forget()


def test_another_system_is_a_file(tmp_path: Path, own_systems: Path) -> None:
    (own_systems / "opal.toml").write_text(
        "[files]\nname = '(?P<user>_[a-z]+)@(?P<attempt>[0-9]+)\\.zip'\nwhen = 'attempt {attempt}'\n"
        '[headings]\nstudent_id = ["Immatrikulationsnummer"]\n'
    )
    roster = tmp_path / "class.csv"
    roster.write_text("Immatrikulationsnummer,Vorname,Nachname\nada,Ada,Lovelace\n")
    (tmp_path / "handed-in").mkdir()
    (tmp_path / "handed-in/_ada@2.zip").touch()
    [found], _ = find_submissions(tmp_path / "handed-in", read_roster(roster))
    assert found.student is not None
    assert found.student.id == "ada"
    assert [attempt.remark for attempt in found.handed_in] == ["attempt 2"]


@pytest.mark.parametrize("text", ["[files]\nname = '('\n", "[files]\nnme = 'x'\n", "[files\n"])
def test_a_wrong_file_of_a_system_is_named(tmp_path: Path, own_systems: Path, text: str) -> None:
    (own_systems / "opal.toml").write_text(text)
    (tmp_path / "class.csv").write_text("id\nada\n")
    with pytest.raises(UserError, match=r"opal\.toml: "):
        read_roster(tmp_path / "class.csv")
