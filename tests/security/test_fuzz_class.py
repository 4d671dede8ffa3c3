"""What a lecturer gives the kit, and what comes back to it: rosters, marks, tables, what was read of hand-ins."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
from hostile import Hostile, amounts, explore, files, watched
from hypothesis import strategies as st

from measuretwice.audit import audit_table, lines_of, read_choices, read_rate_bps
from measuretwice.base.errors import UserError
from measuretwice.grading.gradebook import HEADINGS, MarkLine, add_lines, read_marks
from measuretwice.grading.output import LIST, write_files
from measuretwice.grading.rerun import compare, known_reruns, read_finished
from measuretwice.grading.roster import SEEDS_EACH, Roster, read_roster
from measuretwice.grading.submission import (
    Agreement,
    CaseNotes,
    Contents,
    MatchedNumber,
    RaisedFinding,
    Reading,
    SetFinding,
    StudentFiles,
    SubmittedRun,
)

ROSTERS = {
    "plain": "Student ID,Name,Email address\ns1,Ada Lovelace,ada@example.org\ns2,Alan Turing,alan@example.org\n",
    "dealt": "Student ID,Name,lab,seed,commands\ns1,Ada,mathis,100,./lab run\ns2,Alan,mathis,200,./lab run\n",
    "moodle": '"Identifier","Full name","Email address","Status"\n"Participant 11","A B","a@x.org","Submitted"\n'
    '"Participant 12","C, D","c@x.org","No submission"\n',
    "canvas": "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
    "\"Lovelace, Ada\",1,s1,ada,A\n\"Student, Test\",9,,x,A\n",
    "german": "sep=;\r\nMatrikelnummer;Nachname;Vorname\r\n1;Müller;Jörg\r\n2;Ärmel;Zoë\r\n",
}  # fmt: skip


@cache
def rosters() -> dict[str, bytes]:
    encoded = {name: text.encode() for name, text in ROSTERS.items()}
    encoded["old"] = ROSTERS["german"].encode("cp1252")
    encoded["utf-16"] = ROSTERS["plain"].encode("utf-16")
    encoded["marked"] = b"\xef\xbb\xbf" + ROSTERS["canvas"].encode()
    return encoded


@amounts
def test_a_roster_is_read_or_refused(amount: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            roster = read_roster(path)
            assert isinstance(roster, Roster)
            assert roster.students
            for student in roster.students:
                assert student.id
                assert student.keys is not None
                assert student.names is not None
                assert student.seed is None or student.seed % SEEDS_EACH == 0
            # What goes back into the system that it came from.
            roster.table.to_bytes([[*line.cells, "=1+1"] for line in roster.table.lines])

    known = [Hostile(b"\xff\xfe\x00"), Hostile(b'"'), Hostile(b"\xef\xbb\xbf"), Hostile(b"\r\r")]
    explore(amount, files(rosters()), check, few=60, known=known)


LINES = [MarkLine("s1", 1, "a prediction", 2.0), MarkLine("s1", None, "the whole report", None)]
MARKS = {
    "marks.csv": (
        f"\ufeff{','.join(HEADINGS)}\ns1,Ada,1,a prediction,2,\"1,5\",well said\n"
        "s1,Ada,,the whole report,,-1,late\ns9,Nobody,1,x,2,1,\n"
    ).encode()
}  # fmt: skip


@amounts
def test_a_lecturers_marks_are_read_or_refused(amount: str, tmp_path: Path) -> None:
    path = tmp_path / "marks.csv"

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            marks = read_marks(path, LINES)
            for line in LINES:
                points = marks.of(line).points
                assert points is None or isinstance(points, float)
                assert points is None or line.of is None or 0 <= points <= line.of
        with watched(tmp_path, UserError):
            add_lines(path, [MarkLine("s2", 1, "a reason", 1.0, "=Alan")])
            assert path.read_bytes().startswith(hostile.content)

    explore(amount, files(MARKS), check, few=60)


TABLES = {
    "flows": b"run,algorithm,goodput (Mbit/s),share,total (Mbit/s),jain\n1,reno,4.2,0.42,10,0.97\n1,cubic,5.8,0.58,10,0.97\n",
    "model": b"goodput_mbps;rtt_ms;loss_ratio;mss;C\n9,5;20;0,001;1460;1,31\n4,7;40;0,001;1460;1,29\n",
    "losses": b"# flow goodput losses segments halvings\n1 9.1e6 12 10000 11\n2 8.7e6 14 10100 12\n",
    "utf-16": "flow\tgoodput Mbit/s\n1\t4.5\n2\t5.5\n".encode("utf-16"),
}
# The interval of a single flow's C has no end; numbers of which a float doesn't hold the square.
ONE_FLOW = b"goodput_mbps,rtt_ms,loss_ratio,mss\n9.5,20,0.001,1460\n"
HUGE = [ONE_FLOW + b"9e300,20,0.001,1460\n", ONE_FLOW + b"9.5,20,1e-320,1460\n"]
CHOICES: list[tuple[tuple[str, ...], str | None, int | None]] = [
    ((), None, None),
    ((), "10gbit", 1460),
    (("goodput=goodput:Mbit/s,rtt=rtt_ms:ms",), "100 Mbit/s", 1448),
]


@amounts
@pytest.mark.parametrize(("columns", "rate", "mss"), CHOICES, ids=["plain", "rate", "columns"])
def test_a_table_is_audited_or_refused(
    amount: str, columns: tuple[str, ...], rate: str | None, mss: int | None, tmp_path: Path
) -> None:
    """As `./lab audit FILE.csv` does."""

    def check(hostile: Hostile) -> None:
        with watched(tmp_path, UserError):
            report = audit_table(
                hostile.content,
                "table.csv",
                read_choices(columns),
                rate_bps=None if rate is None else read_rate_bps(rate),
                mss_bytes=mss,
            )
            assert "\n".join(lines_of(report))
            json.dumps(asdict(report), allow_nan=False)

    explore(amount, files(TABLES), check, few=60, known=[Hostile(ONE_FLOW), *map(Hostile, HUGE)])


@amounts
def test_what_says_which_column_is_which_is_read_or_refused(amount: str, tmp_path: Path) -> None:
    def check(text: str) -> None:
        with watched(tmp_path, UserError):
            read_choices((text,))
        with watched(tmp_path, UserError):
            assert read_rate_bps(text) > 0

    words = st.sampled_from(
        ["goodput", "=", ",", ":", "Mbit/s", "rtt", "10gbit", "\x1b", "1e999", " "]
    )
    explore(amount, st.one_of(st.text(max_size=80), st.lists(words).map("".join)), check, few=40)


OUR_RUN = SubmittedRun(
    run="trial-07-seed1-b402df08", lab="mathis", trial=7, pitfall=None, stage=None, seed=1, plan="b402df08",
    params={"rtt_ms": 6, "loss_ratio": 0.1, "congestion_control": "reno"}, changed=("rtt_ms=6",),
    findings=(RaisedFinding("offload", "error", "1", "2"),), digest="0" * 64, cookies=("a" * 37,),
    agreement=Agreement({"result.json": 2}, 5, ("other",), "goodput_bps", "0" * 16, True, ("DONE",)),
    files={"romeo/ss.txt": "1" * 64}, sketches={"romeo/ss.txt": (1, 2, 3)},
)  # fmt: skip


@cache
def readings() -> dict[str, bytes]:
    contents = Contents(
        refused=("a",), unusable=("b",), runs=(OUR_RUN,),
        together=(SetFinding("mathis", "x", "1", "2", None, "broken", ("a", "b")),),
        brought=(StudentFiles("trial-07", 7, None, None, {"goodput_bps": 1.5}, ("c",), ("ss",), True, {"0": "a"}, ("c",)),),
        unread=("d",), answers={"Why?": "So."}, quotes={"Why?": {"r": ["raw/a"]}}, written=("r.pdf",),
        cited={"Why?": {"l": "p"}}, figures={"Why?": (MatchedNumber("1.5", "r", "goodput_bps", 1.5),)},
        books={"mathis": (CaseNotes(1, "5 Mbit/s", True, True, True, True, 1, 0, "loss", False, True),)},
    )  # fmt: skip
    return {
        "contents": Reading(contents).to_json(),
        "problem": Reading(problem="not read").to_json(),
    }


@amounts
def test_what_a_reading_process_says_is_of_its_types_or_a_value_error(
    amount: str, tmp_path: Path
) -> None:
    for whole in readings().values():
        assert Reading.from_json(whole).to_json() == whole

    def check(hostile: Hostile) -> None:
        with watched(tmp_path):
            try:
                reading = Reading.from_json(hostile.content)
            except ValueError:
                return
            assert isinstance(reading, Reading)
            assert isinstance(reading.contents, Contents)
            assert all(isinstance(run, SubmittedRun) for run in reading.contents.runs)
            reading.to_json()

    explore(amount, files(readings()), check, few=40)


@amounts
def test_what_was_run_again_is_read_or_run_once_more(amount: str, tmp_path: Path) -> None:
    path = tmp_path / "again.json"
    cached = json.dumps({"0" * 64: {"romeo/ss.txt": "1" * 64}, "1" * 64: {}}).encode()

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path):
            found = read_finished(path)
            assert all(
                isinstance(digest, str) for digests in found.values() for digest in digests.values()
            )
            known_reruns([Contents(runs=(OUR_RUN,))], found)
            for digests in found.values():
                assert compare(OUR_RUN, digests).says

    explore(amount, files({"again.json": cached}), check, few=40)


@amounts
def test_a_list_of_what_was_written_leads_nowhere_else(amount: str, tmp_path: Path) -> None:
    """.written.json, beside pages that a lecturer edits: what isn't named there any more is removed."""
    out = tmp_path / "out"
    write_files(out, {"a.html": b"a", "b/c.html": b"c"})
    whole = (out / LIST).read_bytes()
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"a")

    def check(hostile: Hostile) -> None:
        shutil.rmtree(out)
        write_files(out, {"a.html": b"a", "b/c.html": b"c"})
        (out / LIST).write_bytes(hostile.content)
        with watched(out, UserError):
            write_files(out, {"a.html": b"x"})
        assert outside.read_bytes() == b"a"

    explore(amount, files({"list": whole}), check, few=40)
