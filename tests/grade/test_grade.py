"""A class graded: from recorded runs under made-up names, honest, copied, damaged and hostile."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab
from example_class import RECORDED, copy_run, graded_class, make_class
from html_page import check_page

from measuretwice.grading.evidence import cookies_in
from measuretwice.grading.reader import read_all, read_submission
from measuretwice.grading.submission import Contents, Reading
from measuretwice.lab import load_lab
from measuretwice.report.markdown import read_places
from measuretwice.report.report import make_report, render_html
from measuretwice.runs.folder import digest_of
from measuretwice.runs.remeasure import read_run

ROOT = Path(__file__).parents[2]
PITFALLS = ("mtu", "offload", "rtt-doubling", "netem-limit", "timestamps")
HOSTILE = "<script>alert(1)</script>\x1b[31m=1+1|"


def recorded(name: str) -> Path:
    return next(iter(sorted((ROOT / "sample-data/01-mathis" / name).glob("trial-*"))))


def grade(*arguments: str | Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return call_lab("grade", *arguments, MEASURETWICE_ROOT=str(root))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("class")
    return make_class(ROOT, load_lab(ROOT, "mathis"), PITFALLS, folder)


@pytest.fixture(scope="module")
def graded(made: tuple[Path, Path], bare: Path) -> dict[str, Any]:
    """The class graded with its seeds: by name."""
    handed, dealt = made
    before = {p: p.stat().st_mtime_ns for p in handed.rglob("*")}
    done = grade(handed, "--deal", dealt, "--json", root=bare)
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert {p: p.stat().st_mtime_ns for p in handed.rglob("*")} == before
    document = json.loads(done.stdout)
    assert document["lab"] == "mathis"
    return {student["name"].split(",")[0]: student for student in document["students"]}


def mark(student: dict[str, Any], pitfall: str) -> dict[str, Any]:
    of_case = [mark for mark in student["marks"] if mark["pitfall"] == pitfall]
    return next(mark for mark in of_case if not mark["predicted"])


def prediction(student: dict[str, Any], pitfall: str) -> dict[str, Any]:
    of_case = [mark for mark in student["marks"] if mark["pitfall"] == pitfall]
    return next(mark for mark in of_case if mark["predicted"])


def test_an_honest_student(graded: dict[str, Any]) -> None:
    ada = graded["Lovelace"]
    assert ada["student"] == "s1815"
    assert len(ada["runs"]) == 4
    assert not ada["says"]
    assert {remark["kind"] for remark in ada["remarks"]} == {"same seed"}
    mtu = mark(ada, "mtu")
    assert mtu["shown"].startswith("yes, trial-09-mtu-broken-seed")
    assert "names the finding; quotes romeo/ss-last.txt" in mtu["diagnosed"]
    assert mtu["fixed"].startswith("yes, ")
    assert mtu["again"].startswith("yes, only the mistake's settings differ")
    assert "in the lab book after hint 1" in mtu["diagnosed"]
    # A quarter of what the ladder has of two points is certain; all of it is possible.
    assert (mtu["low"], mtu["high"], mtu["points"]) == (0.375, 1.5, 1.5)
    argued = prediction(ada, "mtu")
    assert argued["predicted"].startswith("yes (number and unit, a reason)")
    assert (argued["low"], argued["high"], argued["points"]) == (0.25, 0.5, 0.5)
    # Shown, fixed, and not a word about it: nothing above Shown is possible.
    offload = mark(ada, "offload")
    assert offload["diagnosed"] == "no: not answered after hint 3"
    assert (offload["low"], offload["high"]) == (0.75, 0.75)
    bare = prediction(ada, "offload")
    assert (bare["low"], bare["high"]) == (0, 0)
    assert "no unit, no reason" in bare["predicted"]
    assert mark(ada, "timestamps")["high"] == prediction(ada, "timestamps")["high"] == 0
    assert (ada["low"], ada["high"]) == (1.375, 4.75)
    assert ada["notes"] == []


def test_without_a_report_answers_are_open(graded: dict[str, Any]) -> None:
    grace = graded["Hopper"]
    assert not grace["remarks"]
    assert "by hand" in mark(grace, "rtt-doubling")["diagnosed"]
    rtt = mark(grace, "rtt-doubling")
    assert (rtt["low"], rtt["high"]) == (0.375, 1.5)
    # Made before there were lab books: what couldn't be then costs nothing.
    before = prediction(grace, "rtt-doubling")
    assert (before["low"], before["high"]) == (0, 0.5)
    assert "nothing is lost by that" in before["predicted"]
    assert any("no point is lost" in line for line in grace["notes"])
    assert mark(grace, "mtu")["high"] == 0
    others = [row for row in grace["marks"] if row["pitfall"] is None]
    assert all(row["low"] == 0 and row["high"] == row["points"] for row in others)


def test_another_students_runs(graded: dict[str, Any]) -> None:
    euler = graded["Euler"]
    assert {remark["kind"] for remark in euler["remarks"]} == {"seed", "copy"}
    assert any("was dealt to Lovelace, Ada" in remark["says"] for remark in euler["remarks"])
    assert mark(euler, "mtu")["shown"].startswith("open: trial-09-mtu-broken")
    assert mark(euler, "mtu")["low"] == 0
    assert euler["low"] == 0


def test_whose_plan_lies_about_its_seed(
    made: tuple[Path, Path], bare: Path, tmp_path: Path
) -> None:
    """The same bytes under two seeds, each its student's own: one of the two was rewritten."""
    _, dealt = made
    rows = list(csv.DictReader(io.StringIO(dealt.read_text())))
    for who in (0, 1):
        copy_run(
            recorded("case-05-broken"),
            tmp_path / "in" / rows[who]["SIS User ID"],
            int(rows[who]["seed"]) + 7,
        )
    # ... and some bytes were changed, so that a digest of all wouldn't show it.
    log = next((tmp_path / "in/s1906").rglob("ss-last.txt"))
    log.write_text(log.read_text() + "\n")
    done = grade(tmp_path / "in", "--deal", dealt, "--json", root=bare)
    students = [student for student in json.loads(done.stdout)["students"] if student["handed_in"]]
    for student in students:
        assert [r["kind"] for r in student["remarks"]] == ["copy"]
        assert student["remarks"][0]["says"].startswith("55 of 56 raw files the same as")
        assert student["low"] == 0
    [line] = [line for line in json.loads(done.stdout)["says"] if "--again all" in line]
    assert line.startswith(
        "2 runs are claimed by two seeds, and nothing in the folders tells whose"
    )


def test_recorded_runs(tmp_path: Path) -> None:
    """As they are in sample-data, archive and all; and with another seed and changed bytes."""
    shutil.copytree(recorded("case-05-broken"), tmp_path / "in/lazy/run")
    folder = copy_run(recorded("case-05-broken"), tmp_path / "in/sly", 1_234_500)
    log = folder / "raw/romeo/ss-last.txt"
    log.write_text(log.read_text() + "\n")
    done = grade(tmp_path / "in", "--json")
    lazy, sly = json.loads(done.stdout)["students"]
    assert [r["says"] for r in lazy["remarks"] if r["kind"] == "recorded"] == [
        "same as the recorded run of the course; anyone who runs it with that seed gets the same, "
        "so it may be honest"
    ]
    assert any("has a flow of a recorded run" in r["says"] for r in sly["remarks"])
    assert lazy["low"] == sly["low"] == 0
    assert len(lazy["runs"]) == 1
    assert lazy["runs"][0]["findings"][0]["id"] == "mtu"


def test_the_same_seed_proves_nothing(bare: Path, tmp_path: Path) -> None:
    for name in ("ada", "grace"):
        copy_run(recorded("case-05-broken"), tmp_path / "in" / name, 1)
    done = grade(tmp_path / "in", root=bare)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same seed, so the same bytes: that proves nothing" in done.stdout
    assert (tmp_path / "in-grades/grades.html").is_file()


def test_a_hostile_submission_is_graded_all_the_same(graded: dict[str, Any]) -> None:
    gauss = graded["Gauss"]
    # However much is refused of an archive, it is one line.
    assert len(gauss["says"]) == 1
    assert gauss["says"][0].startswith("refused: 3 of gausscarl_105_9005_x.zip: its path leads out")
    assert gauss["low"] == 0.375
    assert graded["Turing"]["handed_in"] is False


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("plan.json", lambda p: p.write_text("[" * 200_000)),
        ("plan.json", lambda p: p.write_text(re.sub(r'"rtt_ms": [0-9.]+', '"rtt_ms": NaN', p.read_text()))),
        ("plan.json", lambda p: p.write_text(p.read_text().replace('"trial": 9', '"trial": 1' + "0" * 5000))),
        ("plan.json", lambda p: p.write_text(p.read_text().replace('"mathis"', '"../../etc"'))),
        ("plan.json", lambda p: p.write_text('{"lab": "mathis"}')),
        ("plan.json", lambda p: p.write_bytes(os.urandom(5000))),
        ("raw/romeo/iperf3.json", lambda p: p.write_text("[" * 200_000)),
        ("raw/romeo/iperf3.json", lambda p: p.write_text(re.sub(r'"bits_per_second":\s*[0-9.e+]+', '"bits_per_second": 1e999', p.read_text()))),
        ("raw/romeo/iperf3.json", lambda p: p.write_text("9" * 10_000)),
        ("raw/romeo/ss.txt", lambda p: p.write_bytes(os.urandom(50_000))),
        ("raw/romeo/ping.txt", lambda p: p.unlink()),
        ("DONE", lambda p: p.unlink()),
    ],
)  # fmt: skip
def test_a_damaged_run_is_refused_in_words(
    tmp_path: Path, name: str, write: Callable[[Path], Any]
) -> None:
    good = Path(__file__).parents[1] / "data/report/trial-07-seed1-b402df08"
    shutil.copytree(good, tmp_path / "in/good")
    bad = copy_run(recorded("case-05-broken"), tmp_path / "in", 5)
    path = bad / name
    if not path.exists():
        path = next(iter(sorted((bad / "raw").rglob("*" + path.suffix))))
    write(path)
    (tmp_path / "work").mkdir()
    contents = read_submission(ROOT, [tmp_path / "in"], tmp_path / "work/tree")
    assert Reading.from_json(Reading(contents).to_json()) == Reading(contents)
    assert [run.run for run in contents.runs] == ["good"]
    assert len(contents.unusable) == 1
    assert str(tmp_path) not in contents.unusable[0]


def test_result_json_is_never_trusted(tmp_path: Path) -> None:
    run = copy_run(recorded("case-05-fixed"), tmp_path / "in", 5)
    (run / "result.json").write_text('{"findings": [{"id": "mtu"}], "measured": {}}')
    contents = read_submission(ROOT, [tmp_path / "in"], tmp_path / "tree")
    assert contents.runs[0].findings == ()


def test_the_digest_is_the_recordings(tmp_path: Path) -> None:
    run = copy_run(recorded("case-05-fixed"), tmp_path / "in", 5)
    contents = read_submission(ROOT, [tmp_path / "in"], tmp_path / "tree")
    assert contents.runs[0].digest == digest_of(run / "raw")
    assert contents.runs[0].cookies == tuple(sorted(cookies_in((run / "raw").rglob("*.json"))))
    assert contents.runs[0].cookies


def test_a_run_handed_in_twice_counts_once(tmp_path: Path) -> None:
    run = copy_run(recorded("case-05-fixed"), tmp_path / "in", 5)
    shutil.copytree(run, tmp_path / "in/again/deeper/run")
    (tmp_path / "in/report.md").write_text("# Something of my own")
    contents = read_submission(ROOT, [tmp_path / "in"], tmp_path / "tree")
    assert len(contents.runs) == 1
    assert not contents.unusable
    assert contents.written == ("report.md",)


def test_a_mistake_in_a_set_of_runs(bare: Path, tmp_path: Path) -> None:
    """One fixed run of five raises no finding, and is no proof that anything was fixed."""
    for stage in ("broken", "fixed"):
        found = sorted((ROOT / f"sample-data/01-mathis/case-13-{stage}").glob("trial-*"))
        for run in found:
            copy_run(run, tmp_path / "in/whole", int(run.name.rsplit("seed", 1)[1]))
        for run in found if stage == "broken" else found[:1]:
            copy_run(run, tmp_path / "in/part", int(run.name.rsplit("seed", 1)[1]))
    document = json.loads(grade(tmp_path / "in", "--json", root=bare).stdout)
    part, whole = document["students"]
    assert mark(whole, "cherry-picking")["shown"].startswith("yes")
    assert mark(whole, "cherry-picking")["fixed"].startswith("yes")
    assert mark(part, "cherry-picking")["shown"].startswith("yes")
    assert mark(part, "cherry-picking")["fixed"] == "no"


def test_files_of_a_testbed(bare: Path, tmp_path: Path) -> None:
    """By the name of their folder; byte for byte the same under two names, they are copied."""
    run = copy_run(recorded("case-05-broken"), tmp_path / "run", 1)
    for name in ("ada", "grace"):
        shutil.copytree(run / "raw", tmp_path / f"in/{name}/trial-09-mtu-broken")
    (tmp_path / "in/ada/notes").mkdir()
    (tmp_path / "in/ada/notes/ping.txt").write_text("PING")
    done = grade(tmp_path / "in", "--lab", "mathis", "--json", root=bare)
    ada, grace = json.loads(done.stdout)["students"]
    assert ada["brought"][0]["findings"][0]["id"] == "mtu"
    assert [remark["says"] for remark in ada["remarks"]] == [
        "a test in common with the submission of grace, and two tests never are the same"
    ]
    assert mark(ada, "mtu")["low"] == 0
    assert mark(ada, "mtu")["high"] > 0
    assert any("notes/ping.txt" in line for line in ada["says"])
    assert not any("notes/ping.txt" in line for line in grace["says"])


def test_a_machines_own_facts_may_be_the_same(bare: Path, tmp_path: Path) -> None:
    """What ethtool, nstat and an idle path's ping print is the same for two honest students."""
    for name, trials in (("ada", "offloads-off"), ("grace", "offloads-off")):
        runs = sorted((ROOT / "sample-data/01-mathis" / trials).glob("trial-*"))
        run = copy_run(runs[name == "grace"], tmp_path / name, 1)
        shutil.copytree(run / "raw", tmp_path / f"in/{name}/trial-03")
    done = grade(tmp_path / "in", "--lab", "mathis", "--json", root=bare)
    ada, grace = json.loads(done.stdout)["students"]
    assert ada["brought"][0]["problem"] is grace["brought"][0]["problem"] is None
    assert ada["remarks"] == grace["remarks"] == []
    # Seen against the course's own, they are no testbed's.
    both = json.loads(grade(tmp_path / "in", "--lab", "mathis", "--json").stdout)["students"]
    assert [remark["kind"] for student in both for remark in student["remarks"]] == ["recorded"] * 2


def test_answers_in_the_html_alone(tmp_path: Path) -> None:
    run = copy_run(recorded("case-05-broken"), tmp_path / "in", 5)
    lab = load_lab(ROOT, "mathis")
    data = read_run(ROOT, run, "run")
    questions = [
        " ".join(text.split())
        for text in re.split(r"(?m)^[0-9]+\. ", (lab.folder / "questions.md").read_text())[1:]
    ]
    from datetime import UTC, datetime

    html = render_html(
        make_report(
            [data], title=None, author=None, made=datetime(2026, 1, 1, tzinfo=UTC),
            answers={questions[4]: "Line one <b>\n\nline two"},
        )
    )  # fmt: skip
    (tmp_path / "in/report.html").write_text(html)
    contents = read_submission(ROOT, [tmp_path / "in"], tmp_path / "tree")
    assert len(contents.answers) == len(questions)
    assert [answer for answer in contents.answers.values() if answer] == [
        "Line one <b>\n\nline two"
    ]


def test_reading_answers_takes_time_in_proportion() -> None:
    text = "**Question 1.** x\n\nYour answer:\n\n" * 30_000
    began = time.process_time()
    assert read_places(text) == {}
    assert len(read_places(text + "here\n<!-- end of answer -->\n")) == 1
    assert time.process_time() - began < 5


def test_a_submission_that_hangs_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(root: Path, sources: list[Path], tree: Path, *_: object) -> Contents:
        if sources[0].name == "hangs":
            time.sleep(60)
        if sources[0].name == "eats":
            bytearray(40 * 2**30)
        if sources[0].name == "dies":
            os.kill(os.getpid(), 9)
        if sources[0].name == "lies":
            return Contents(unread=(tree,))  # type: ignore[arg-type]
        if sources[0].name == "babbles":
            return Contents(unread=(1,))  # type: ignore[arg-type]
        tree.mkdir()
        (tree / "x").touch()
        return Contents(written=(str(tree),))

    monkeypatch.setattr("measuretwice.grading.reader.read_submission", read)
    names = ["hangs", "eats", "dies", "good", "lies", "babbles"]
    found = dict(read_all(ROOT, [[tmp_path / name] for name in names], 4, wall_s=4))
    assert "took more than" in str(found[0].problem)
    assert "MemoryError" in str(found[1].problem)
    assert "was killed" in str(found[2].problem)
    assert found[3].problem is None
    assert not Path(found[3].contents.written[0]).exists()
    # What JSON can't hold isn't sent; what is sent and isn't of the right types isn't taken.
    assert "TypeError" in str(found[4].problem)
    assert found[5] == Reading(problem="not read: what was read of it is no description of runs")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{}[",
        b'["contents"]',
        b'{"contents": {"runs": [{"run": "x"}]}}',
        b'{"contents": {"unread": [1]}}',
        b'{"contents": {"answers": {"question": ["answer"]}}}',
        b'{"problem": {"text": "x"}}',
    ],
)
def test_what_the_reading_process_sends_is_checked(sent: bytes) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Reading.from_json(sent)


# What is written


def test_names_are_text(bare: Path, tmp_path: Path) -> None:
    """In a zip's names, the submission's own and the roster: no markup, no formula, no escape."""
    copy_run(
        recorded("case-05-broken"),
        tmp_path / "run" / HOSTILE.replace("/", "").replace("\x1b", ""),
        1,
    )
    (tmp_path / "in").mkdir()
    shutil.make_archive(str(tmp_path / "in" / "=cmd()<script>x"), "zip", tmp_path / "run")
    (tmp_path / "in" / "@SUM(A1)<img src=x onerror=alert(1)>\x1b]0;x\x07").mkdir()
    with zipfile.ZipFile(tmp_path / "in/x.zip", "w") as packed:
        packed.writestr("../<script>alert(1)</script>", "x")
    done = grade(tmp_path / "in", "--out", tmp_path / "out", root=bare)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    text = (tmp_path / "out/grades.html").read_text()
    check_page(text)
    for name in ("grades", "marks"):
        content = (tmp_path / f"out/{name}.csv").read_text(encoding="utf-8-sig")
        assert content.isprintable() or set(content) - set("\n") == {
            sign for sign in content if sign.isprintable()
        }
        rows = list(csv.reader(io.StringIO(content)))
        assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)
        assert any(cell.startswith("'=cmd") for row in rows for cell in row)


def test_the_page_is_one_that_everyone_can_read(
    made: tuple[Path, Path], graded: dict[str, Any]
) -> None:
    text = (made[0].with_name("submissions-grades") / "grades.html").read_text()
    page = check_page(text)
    assert page.names.count("table") == 1
    out = made[0].with_name("submissions-grades")
    assert all(link[0] == "#" or (out / link).is_file() for link in page.links)
    assert len({link for link in page.links if link.startswith("marking/")}) == 5


def test_what_is_imported(made: tuple[Path, Path], graded: dict[str, Any]) -> None:
    out = made[0].with_name("submissions-grades")
    rows = list(csv.reader(io.StringIO((out / "grades-for-import.csv").read_text())))
    # lib/gradebook_importer.rb: what it looks for in the first lines, and where.
    assert rows[0][:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert rows[0][5:] == ["Measure Twice: mathis"]
    assert rows[1] == ["Lovelace, Ada", "101", "s1815", "ada", "Tuesday", "1.38"]
    assert rows[-1][0] == "Turing, Alan"
    # Nothing handed in: nothing is set.
    assert rows[-1][5] == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch"], "no folder"),
        (["in", "--lab", "nosuch"], "there is no lab 'nosuch'"),
        (["in", "--out", "in/out"], "among the submissions"),
        (["in", "--roster", "nosuch.csv"], "No such file"),
        (["in", "--roster", "class.csv", "--deal", "class.csv"], "give one"),
        (["in", "--deal", "class.csv"], "has no seeds"),
        (["in"], "say which lab to grade"),
    ],
)
def test_wrong_usage(tmp_path: Path, bare: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "in/ada").mkdir(parents=True)
    (tmp_path / "class.csv").write_text("Student ID\n1\n")
    paths = [
        tmp_path / argument
        if argument[0] != "-" and argument not in ("nosuch", "calibrate")
        else argument
        for argument in arguments
    ]
    done = grade(*paths, root=bare)
    assert done.returncode == 2, done.stdout
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert says in done.stderr
    assert not (tmp_path / "in/out").exists()


@pytest.mark.nightly("what the class is made with: this file, test_marking_pages.py")
def test_the_class_on_the_page_is_what_the_commands_make_of_it() -> None:
    """What the page on grading shows was recorded by `make site-assets`."""
    recorded_texts = {path.name: path.read_text(encoding="utf-8") for path in RECORDED.iterdir()}
    assert recorded_texts == graded_class(ROOT)
