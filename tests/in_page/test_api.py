"""What a page asks of the kit, answered by the archive that pages load: without any library of this machine's.

The guest's files are those of recorded runs: what the kit makes of them in a page must be what it makes of them here.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab
from page_worker import FACTS, Worker, add_recorded, give

from measuretwice.backends.browser import ALGORITHMS
from measuretwice.base.files import read_object
from measuretwice.book.lab_book import read_notes
from measuretwice.in_page.api import PageApi
from measuretwice.lab import load_lab, published_labs, read_lab, read_questions, with_unlisted
from measuretwice.report.markdown import read_answers
from measuretwice.site.machine import kit_archive
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.browser_run import fix_run, stage_run

ROOT = Path(__file__).parents[2]


def said_here(*words: str | Path) -> str:
    """What ./lab prints for the same words."""
    return call_lab(*words).stdout


# Each lab that a page runs, and each number of hints.
@pytest.mark.parametrize(
    ("lab", "case", "given", "hint"),
    [
        ("mathis", 5, "01-mathis/case-05-broken", None),
        ("mathis", 5, "01-mathis/case-05-broken", 1),
        ("buffers", 3, "02-buffers/case-03-broken", 2),
        ("variants", 4, "04-variants/case-04-broken", 3),
        ("queues", 4, "05-queues/case-04-broken", None),
    ],
)
def test_a_page_says_what_check_says(
    worker: Worker, lab: str, case: int, given: str, hint: int | None
) -> None:
    folder = worker.run(lab, given, case=case, seed=1)
    answer = worker.ask("check", lab=lab, folders=[folder], hint=hint)
    options = ["--hint", str(hint)] if hint else []
    printed = said_here("check", worker.runs / lab / folder, *options)
    _, of_place, *lines = printed.splitlines()
    assert "the browser's machine" in of_place
    # Below the findings: how a diagnosis is written down there, and what to change once the cause was told.
    end = next(place for place, line in enumerate(lines) if line.startswith(f"Case {case}: "))
    # A terminal has notes above them, too.
    begin = lines.index(f"  {answer['documents'][0]['findings'][0]['heading']}")
    lines, after = (
        [line for line in lines[begin:end] if not line.startswith("--hint")],
        lines[end:],
    )
    said = answer["said"].split("\n")
    assert (said == after[: len(said)]) is (hint == 3)
    assert said[0].startswith(f"Case {case}: ")
    lines_with_later_hints = [
        line
        for document in answer["documents"]
        for finding in document["findings"]
        for line in (finding["heading"], *finding["lines"])
    ]
    assert " ".join(lines_with_later_hints).split() == " ".join(lines).split()
    assert lines_with_later_hints


def test_a_question_is_judged_by_the_readers_own_runs(worker: Worker) -> None:
    asked = {"lab": "queues", "case": 5}
    assert worker.ask("judge", **asked, answer="b, 3")["counted"] == 0
    folder = worker.run("queues", "05-queues/case-05-broken", case=5, seed=1)
    says = worker.ask("check", lab="queues", folders=[folder])["said"]
    assert "the question comes below" in says
    assert "first say what is off" in worker.problem("judge", **asked, answer="b, 3")
    written = {"diagnoses": {"5": "the total is among the rows"}}
    wrong = worker.ask("judge", **asked, **written, answer="b, 3 Mbit/s")
    assert wrong["counted"] == 1
    assert "your runs give another number" in wrong["problems"][0]
    written_file = read_object(worker.runs / "queues" / folder / "result.json")
    assert "host_1_seconds_deviation_bps" not in written_file["measured"]
    result = with_unlisted(written_file)
    deviation = result["measured"]["host_1_seconds_deviation_bps"] / 1e6
    right = worker.ask("judge", **asked, answer=f"b, {deviation:.3g} Mbit/s")
    assert right["problems"] == []
    assert "Case 5 is solved: answered right" in right["outcome"]
    assert right["solved"]["5"].startswith("answered right: The seconds of the test and")
    assert "Case 5 is solved" in worker.ask("check", lab="queues", folders=[folder])["said"]
    notes = read_notes((worker.runs / "queues/lab-book.md").read_text(encoding="utf-8"))[5]
    assert notes.fixed
    assert len(notes.judgements) == 2


def kinds_of(worker: Worker, case: int) -> list[str]:
    """Of which kinds a case's entries in the lab book are, in order; none where it has no part."""
    of_case = [*worker.book.split(f"## Case {case}:"), ""][1].split("\n## ")[0]
    return re.findall(r"(?m)^- (\w+)", of_case)


def test_a_case_from_its_prediction_to_the_folder_handed_in(worker: Worker, tmp_path: Path) -> None:
    first = worker.run(
        "mathis", "01-mathis/case-05-broken", case=5, seed=1, predicted="66 Mbit/s, by the model"
    )
    end = worker.ask("finish")
    assert end["said"].startswith("Goodput. You predicted: 66 Mbit/s, by the model. Measured: ")
    assert "- Prediction: 66 Mbit/s, by the model\n" in worker.book
    worker.ask("check", lab="mathis", folders=[first], hint=1)
    fixed = worker.run(
        "mathis", "01-mathis/case-05-fixed", case=5, seed=1, changes=["mtu_bytes=4352"]
    )
    worker.ask("finish")
    answer = worker.ask("check", lab="mathis", folders=[fixed], diagnoses={"5": "the MTU"})
    assert [document["findings"] for document in answer["documents"]] == [[]]
    assert "nothing is off any more" in answer["said"]
    assert list(answer["solved"]) == ["5"]
    assert "mtu_bytes=4352" in answer["solved"]["5"]
    assert worker.ask("results", lab="mathis", case=5)["solved"] == answer["solved"]
    found = worker.ask("results", lab="mathis", case=5)
    assert [run["changes"] for run in found["runs"]] == [{}, {"mtu_bytes": "4352"}]
    second = ["Changed", "Run", "Diagnosis", "Outcome"]
    assert kinds_of(worker, 5) == ["Prediction", "Run", "Hint", *second]
    # Of three runs a report has a figure where something can draw it: a page can't.
    worker.run("mathis", "01-mathis/case-04-broken", case=4, seed=1)
    packed = tmp_path / "saved.zip"
    assert worker.ask("archive", lab="mathis", to=str(packed))["runs"] == 3
    assert "nothing is off any more" in said_here("check", packed)
    assert "3 runs: " in said_here("report", packed)
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path / "handed-in")
    assert "nothing is off any more" in said_here("check", tmp_path / "handed-in/mathis" / fixed)
    report = (tmp_path / "handed-in/mathis/report.html").read_text(encoding="utf-8")
    assert "Case 5" in report
    assert "a page draws none" in report


def test_a_first_try_is_made_in_a_page_and_says_what_it_came_to(worker: Worker) -> None:
    plan = worker.ask("plan_first_try", lab="queues", predicted="2 %")
    assert [job["trial"] for job in plan["jobs"]] == [1, 21]
    for job in plan["jobs"]:
        worker.ask("begin", folder=job["folder"])
        given = give(worker, f"05-queues/two-arms-once/trial-{job['trial']:02d}-seed1")
        made = worker.ask("conclude", folder=job["folder"], given=given, said="")
        assert all(file.startswith("start/queues/") for file in made["files"])
    lines = worker.ask("finish")["said"].splitlines()
    assert lines[0].startswith("pfifo_fast: goodput of both flows ")
    assert "They are " in lines[2]
    assert lines[3] == "You predicted: 2 %."
    found = worker.ask("first_try", lab="queues")
    assert [run["folder"] for run in found["runs"]] == [job["folder"] for job in plan["jobs"]]
    # Its settings tell a cause.
    assert all(not run["changes"] and not run["settings"] for run in found["runs"])
    assert worker.ask("listing", lab="queues", folder=plan["jobs"][0]["folder"])["files"]
    assert "- Prediction: 2 %" in (worker.runs / "queues/lab-book.md").read_text(encoding="utf-8")
    worker.ask("forget", lab="queues")
    assert worker.ask("first_try", lab="queues")["runs"] == []
    assert not [*worker.runs.rglob("DONE")]


def test_answers_written_on_a_page_are_in_the_report_saved_last(
    worker: Worker, tmp_path: Path
) -> None:
    """Also one to a question that waits for its case; what would end an answer's place is left out."""
    worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    packed = tmp_path / "saved.zip"

    def saved(**answers: str) -> dict[str, str]:
        worker.ask("archive", lab="mathis", to=str(packed), answers=answers)
        with zipfile.ZipFile(packed) as archive:
            report = archive.read("mathis/report.md").decode()
            assert ("uniform in log" in archive.read("mathis/report.html").decode()) == (
                "1" in answers
            )
        return read_answers(report)

    questions = read_questions(load_lab(ROOT, "mathis"))
    first = "Because\r\n<!-- end of answer -->\nthey are uniform in log(p)."
    assert saved(**{"1": first, "3": "156 of 1000", "99": "no question's", "2": " "}) == {
        questions[0]: "Because\n\nthey are uniform in log(p).",
        questions[2]: "156 of 1000",
    }
    assert saved(**{"3": "157"}) == {questions[2]: "157"}


def test_what_is_predicted_while_it_runs_comes_into_the_book(worker: Worker) -> None:
    [job] = worker.ask("plan", lab="mathis", case=5, seed=1)["jobs"]
    worker.ask("begin", folder=job["folder"])
    tar = give(worker, "01-mathis/case-05-broken")
    worker.ask("conclude", folder=job["folder"], given=tar, said="", predicted="2,8 Mbit/s")
    text = worker.ask("finish")["said"]
    assert "You predicted: 2,8 Mbit/s" in text
    assert kinds_of(worker, 5) == ["Prediction", "Run"]
    provenance = read_object(worker.runs / "mathis" / job["folder"] / "provenance.json")
    assert provenance["started"] <= provenance["ended"]


def test_what_was_predicted_of_one_run_is_not_held_against_one_with_other_values(
    worker: Worker,
) -> None:
    """A page keeps what was written in its field; whoever writes anew predicts anew."""
    for seed, words, is_held in ((1, "0.16", True), (2, "0.16", False), (3, "0.4", True)):
        worker.run("mathis", "01-mathis/case-01-broken", case=1, seed=seed, predicted=words)
        assert (f"You predicted: {words}." in worker.ask("finish")["said"]) == is_held
    # What isn't predicted again isn't noted again.
    assert kinds_of(worker, 1) == ["Prediction", "Run", "Run", "Prediction", "Run"]


def test_a_reader_is_told_which_values_their_run_has_before_it(worker: Worker) -> None:
    """A page's numbers are the recorded run's; a book that isn't there is begun, and keeps its seed."""
    first = worker.ask("dealt", lab="mathis", case=1)
    [seed] = (int(found) for found in re.findall(r"(?m)^- Seed: (\d+)$", worker.book))
    lab = read_lab(ROOT / "labs/01-mathis")
    own = lab.varied_by(lab.case(1), seed)
    assert first["says"] == (
        f"Your own run has loss_ratio {own['loss_ratio']}, rtt_ms {own['rtt_ms']}; "
        "the recorded run on the page has loss_ratio 0.1566, rtt_ms 6."
    )
    assert worker.ask("plan", lab="mathis", case=1)["dealt"] == first["says"]
    assert worker.ask("dealt", lab="mathis", case=1)["says"] == first["says"]
    assert "recorded run's values" in worker.ask("dealt", lab="mathis", case=1, seed=1)["says"]
    page = stage_run(LabContext(ROOT, lab, runs_here=True), "loss-percent", "broken")
    assert "&quot;dealt&quot;: true" in page
    for fixed_numbers in (
        stage_run(LabContext(ROOT, lab, runs_here=True), "loss-percent", "fixed"),
        stage_run(LabContext(ROOT, lab, runs_here=True), "cherry-picking", "broken"),
    ):
        assert "dealt" not in fixed_numbers


def test_a_solved_case_says_where_the_model_makes_no_claim(worker: Worker) -> None:
    """A ratio far from one beside 'nothing is off any more' asks for a word."""
    worker.run("mathis", "01-mathis/case-01-broken", case=1, seed=1, predicted="1.6 Mbit/s")
    assert worker.ask("finish")["said"] == (
        "Share of pings lost. You predicted: 1.6 Mbit/s. Measured: 0 (1 = all). "
        "The question asks for 0 to 1, or in %, so the two can't be compared."
    )
    fixed = worker.run(
        "mathis", "01-mathis/case-01-fixed", case=1, seed=1, changes=["loss_percent=15.66"]
    )
    text = worker.ask("check", lab="mathis", folders=[fixed])["said"]
    assert "nothing is off any more: share of pings lost 0 (1 = all) before, 0." in text
    assert "Not compared with the model: p is 0.157: from p = 0.02 on, timeouts rule" in text


def test_files_are_shown_as_in_a_terminal(worker: Worker) -> None:
    folder = worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    run = worker.runs / "mathis" / folder
    there = worker.ask("listing", lab="mathis", folder=folder)
    assert there == json.loads(said_here("show", run, "--json"))
    for what in ("ping", "ss", "qdisc", "settings", "nstat"):
        shown = worker.ask("show", lab="mathis", folder=folder, what=what)
        assert shown["blocks"] == json.loads(said_here("show", run, what, "--json"))["blocks"]
    assert "cwnd:" in worker.ask("show", lab="mathis", folder=folder, what="romeo/ss.txt")["text"]
    assert worker.ask("over_time", lab="mathis", folder=folder)["panels"]["cwnd"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"lab": "mathis", "case": 99}, "cases 1 to 13"),
        ({"lab": "mathis", "case": 5, "changes": ["rtt_ms=-3"]}, "rtt_ms: expected"),
        ({"lab": "mathis", "case": 5, "changes": ["nothing=3"]}, "no parameter 'nothing'"),
        ({"lab": "mathis", "trials": "7-3"}, "runs backwards"),
        ({"lab": "mathis", "case": 5, "show_me": True, "changes": ["rtt_ms=3"]}, "leave --set out"),
        ({"lab": "nosuch"}, "there is no lab"),
        ({"lab": "mathis", "case": 5, "seed": 1.5}, "seed 1.5: expected a whole number from 0 to"),
        ({"lab": "mathis", "case": 5, "seed": -3}, "seed -3: expected a whole number from 0 to"),
        ({"lab": "mathis", "trials": "7", "seed": 99999999999999}, "0 to 2147483647"),
        ({"lab": "mathis", "trials": "7", "repeat": 0}, "0 runs of each trial: expected a whole"),
        (
            {"lab": "mathis", "case": 13, "repeat": True},
            "True runs of each trial: expected a whole",
        ),
        ({"lab": "mathis", "case": 13, "repeat": 10001}, "a whole number from 1 to 10000"),
        ({"lab": "mathis", "case": 5, "changes": ["congestion_control=quux"]}, "quux: the browser"),
        ({"lab": "scale", "trials": "1", "changes": ["scale=core"]}, "more memory"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    worker: Worker, request_: dict[str, Any], says: str
) -> None:
    problem = worker.problem("plan", **request_)
    assert says in problem
    assert "\n" not in problem


def test_nothing_is_concluded_that_was_not_begun(worker: Worker) -> None:
    assert "run it again" in worker.problem("conclude", folder="nosuch", given="/nowhere", said="")


def test_a_set_of_runs_is_run_again_where_that_is_the_mistake(worker: Worker) -> None:
    jobs = worker.ask("plan", lab="mathis", case=13, seed=1)["jobs"]
    assert len(jobs) > 1
    assert len({job["folder"] for job in jobs}) == len(jobs)


def test_a_diagnosis_is_in_the_book_whatever_hints_were_taken(
    worker: Worker, tmp_path: Path
) -> None:
    """Written down it is noted at once; one that was written while no Python ran is noted when runs are saved."""
    folder = worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    worker.ask("finish")
    worker.ask("note", lab="mathis", diagnoses={"5": "small\n packets"})
    assert kinds_of(worker, 5) == ["Prediction", "Run", "Diagnosis"]
    worker.ask("check", lab="mathis", folders=[folder], hint=3, diagnoses={"5": "small packets"})
    assert kinds_of(worker, 5) == ["Prediction", "Run", "Diagnosis", "Hint"]
    written = {"5": "the MTU", "6": "timestamps", "99": "nothing", "first": "no case's"}
    packed = tmp_path / "saved.zip"
    answer = worker.ask("archive", lab="mathis", to=str(packed), diagnoses=written)
    assert (answer["runs"], answer["report"]) == (1, True)
    with zipfile.ZipFile(packed) as archive:
        notes = read_notes(archive.read("mathis/lab-book.md").decode())
    assert {case: notes[case].diagnosis for case in notes} == {5: "the MTU", 6: "timestamps"}
    assert notes[5].hints_before_diagnosis == 0


def test_a_page_names_what_to_change_once_there_is_a_diagnosis(worker: Worker) -> None:
    folder = worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    said = worker.ask("check", lab="mathis", folders=[folder])["said"]
    assert said == "Case 5: write down your diagnosis below, and the page tells you what to change."
    for name in ("plan.json", "result.json", "experiment.sh"):
        if (worker.runs / "mathis" / folder / name).exists():
            assert "mtu_bytes" not in (worker.runs / "mathis" / folder / name).read_text().lower()
    assert "mtu_bytes" not in worker.problem("plan", lab="mathis", case=5, changes=["mtu=9000"])
    said = worker.ask("check", lab="mathis", folders=[folder], diagnoses={"5": "x"})["said"]
    assert "mtu_bytes" not in said
    written = {"5": "packets are too small"}
    said = worker.ask("check", lab="mathis", folders=[folder], diagnoses=written)["said"]
    assert (
        "Case 5: your diagnosis is noted, right or wrong. The setting is mtu_bytes = 1500: " in said
    )
    assert "./lab" not in said
    problem = worker.problem("plan", lab="mathis", case=5, changes=["mtu=9000"])
    assert "near it is mtu_bytes" in problem


def test_a_diagnosis_after_the_last_hint_is_noted_too(worker: Worker) -> None:
    folder = worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    worker.ask("check", lab="mathis", folders=[folder], hint=3)
    worker.ask("note", lab="mathis", diagnoses={"5": "the MTU"})
    notes = read_notes(worker.book)[5]
    assert (notes.diagnosis, notes.hints_before_diagnosis) == ("the MTU", 3)


def test_hints_opened_on_a_page_come_before_the_diagnosis(worker: Worker) -> None:
    """A hint says nothing more than one that was taken already, and costs nothing once the case is fixed."""
    worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    worker.ask("finish")
    worker.ask("note", lab="mathis", hints={"5": "2", "6": "4", "99": "1", "first": "1"})
    assert kinds_of(worker, 5) == ["Prediction", "Run", "Hint"]
    worker.ask("note", lab="mathis", diagnoses={"5": "the MTU"}, hints={"5": "2"})
    worker.ask("note", lab="mathis", diagnoses={"5": "the MTU"}, hints={"5": "1"})
    assert kinds_of(worker, 5).count("Hint") == 1
    notes = read_notes(worker.book)
    assert list(notes) == [5]
    assert (notes[5].diagnosis, notes[5].hints_before_diagnosis) == ("the MTU", 2)


def test_lines_kept_on_a_page_are_in_the_book(worker: Worker) -> None:
    worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    worker.ask("note", lab="mathis", known={"5": "ss.txt: mss:536\nslow", "99": "x"})
    worker.ask("note", lab="mathis", known={"5": "ss.txt: mss:536\nslow"})
    assert kinds_of(worker, 5).count("Known") == 2
    worker.ask("note", lab="mathis", known={"5": "ss.txt: mss:536"})
    assert read_notes(worker.book)[5].known_lines == ["ss.txt: mss:536"]


def test_what_was_cancelled_or_failed_is_no_try(worker: Worker) -> None:
    """The book says what was measured, and no more."""
    [job] = worker.ask("plan", lab="mathis", case=5, seed=1, changes=["loss_ratio=0.17"])["jobs"]
    worker.ask("begin", folder=job["folder"])
    empty = worker.runs.with_name("empty.tar")
    tarfile.open(empty, "w").close()
    worker.problem("conclude", folder=job["folder"], given=str(empty), said="")
    assert kinds_of(worker, 5) == []
    worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1, predicted="1 Mbit/s")
    worker.ask("finish")
    assert kinds_of(worker, 5) == ["Prediction", "Run"]


def test_a_run_that_cannot_be_read_leaves_the_others(worker: Worker, tmp_path: Path) -> None:
    """As an earlier edition of the site kept one with half a seed: it is named, and left out."""
    good = worker.run("mathis", "01-mathis/case-05-broken", case=5, seed=1)
    worker.ask("finish")
    broken = worker.runs / "mathis" / good.replace("seed1", "seed1.5")
    shutil.copytree(worker.runs / "mathis" / good, broken)
    result = json.loads((broken / "result.json").read_text(encoding="utf-8"))
    (broken / "result.json").write_text(json.dumps({**result, "seed": 1.5}), encoding="utf-8")
    found = worker.ask("results", lab="mathis", case=5)
    assert [run["folder"] for run in found["runs"]] == [good]
    [line] = found["left_out"]
    assert line.startswith(f"{broken.name}: ")
    assert worker.ask("check", lab="mathis", folders=[good])["documents"]
    [job] = worker.ask("plan", lab="mathis", case=5, seed=1)["jobs"]
    assert job["finished"]
    packed = tmp_path / "saved.zip"
    assert worker.ask("archive", lab="mathis", to=str(packed))["runs"] == 1
    with zipfile.ZipFile(packed) as archive:
        assert not [name for name in archive.namelist() if broken.name in name]
    worker.ask("forget", lab="mathis")
    assert worker.ask("results", lab="mathis", case=5)["left_out"] == []


def test_a_book_alone_can_be_saved(worker: Worker, tmp_path: Path) -> None:
    assert "nothing of mathis" in worker.problem("archive", lab="mathis", to=str(tmp_path / "none"))
    worker.ask("plan", lab="mathis", case=5)
    answer = worker.ask("archive", lab="mathis", to=str(tmp_path / "saved.zip"))
    assert (answer["runs"], answer["report"]) == (0, False)


def test_the_page_knows_the_congestion_controls_of_its_machine() -> None:
    """By their names in the kernel, those of its configuration."""
    config = (ROOT / "scripts/kernel/config").read_text(encoding="utf-8")
    built = {name.lower() for name in re.findall(r"^CONFIG_TCP_CONG_(\w+)=y", config, re.MULTILINE)}
    assert built - {"advanced", "hstcp"} | {"highspeed", "reno"} == ALGORITHMS


def left_on_nodes(worker: Worker, given: str | None) -> str:
    """The tar file of a live lab's guest, where a person left what a recorded run has; or nothing."""
    tar = worker.runs.with_name("live.tar")
    with tarfile.open(tar, "w") as packed:
        empty = tarfile.TarInfo("raw/romeo")
        empty.type = tarfile.DIRTYPE
        packed.addfile(empty)
        packed.addfile(tarfile.TarInfo("history-romeo"), io.BytesIO())
        link = tarfile.TarInfo("raw/romeo/elsewhere")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
        if given:
            add_recorded(packed, given)
    return str(tar)


def test_a_live_lab_is_checked_as_in_a_terminal(worker: Worker) -> None:
    nodes = ["romeo", "router", "juliet"]
    live = worker.ask("live", lab="mathis", nodes=nodes, case=5)
    folder = worker.runs / "mathis" / live["folder"]
    facts = json.loads((folder / "live.json").read_text(encoding="utf-8"))
    script = (folder / "experiment.sh").read_text(encoding="utf-8")
    assert live["files"]["run/measuretwice/experiment.sh"] == script
    assert (facts["case"], facts["where"]) == (5, "browser")
    assert live["words"] == f"live {facts['kernel_seed']} 10000 romeo router juliet"
    assert "Seed" in worker.book
    answer = worker.ask(
        "live_files", lab="mathis", folder=live["folder"], given=left_on_nodes(worker, None)
    )
    assert answer == {"files": []}
    given = left_on_nodes(worker, "01-mathis/case-05-broken")
    answer = worker.ask("live_files", lab="mathis", folder=live["folder"], given=given)
    assert f"mathis/{live['folder']}/live.json" in answer["files"]
    assert not (folder / "raw/romeo/elsewhere").exists()
    answer = worker.ask("live_check", lab="mathis", folder=live["folder"], hint=1)
    first = answer["documents"][0]["findings"][0]
    printed = "".join(said_here("check", folder, "--hint", "1").split())
    for line in [first["heading"], *first["lines"], *answer["taken"], *answer["missing"]]:
        assert "".join(line.split()) in printed


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"nodes": ["romeo", "mercutio"]}, "no such node"),
        ({"nodes": ["romeo", "romeo"]}, "each once"),
        ({"nodes": []}, "one to 3"),
        ({"nodes": ["romeo"], "trial": "1-3"}, "give one number"),
        ({"nodes": ["romeo"], "changes": ["cable_mbit=10"]}, "leave it out"),
    ],
)
def test_what_cannot_be_up_is_said_in_one_line(
    worker: Worker, request_: dict[str, Any], says: str
) -> None:
    problem = worker.problem("live", lab="mathis", **request_)
    assert says in problem
    assert "\n" not in problem


def test_each_request_is_in_the_list_with_its_answer(tmp_path: Path) -> None:
    """workshop/page-api.md names all of them, in order, and the types that their annotations have."""
    api = PageApi(str(ROOT), str(tmp_path), "0123456789abcdef", FACTS)
    text = (ROOT / "workshop/page-api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|.*\|$", text, re.MULTILINE)
    assert {name for name, _, _ in listed} == api.requests.keys()
    for name, arguments, answer in listed:
        parameters = inspect.signature(api.requests[name]).parameters
        assert set(re.findall(r"`(\w+)`", arguments)) == parameters.keys(), name
        required = re.sub(r"\[.*?\]", "", arguments)
        needed = {
            known.name for known in parameters.values() if known.default is inspect.Parameter.empty
        }
        assert needed <= set(re.findall(r"`(\w+)`", required)), name
        given = inspect.signature(api.requests[name]).return_annotation
        types = {word.split(".")[-1] for word in re.findall(r"[\w.]+", given)}
        assert set(re.findall(r"(\w+)`", answer)) == types - {"dict", "str", "Any"}, name


def test_the_archive_is_the_same_twice(kit: Path) -> None:
    assert kit_archive(ROOT) == kit_archive(ROOT)
    assert not list(kit.rglob("*.pyc"))


def test_the_archive_tells_no_cause(kit: Path) -> None:
    """Who opens it finds what stands in a students' release: causes, hints and questions are sealed."""
    for lab in published_labs(ROOT).values():
        folder = kit / "labs" / lab.folder.name
        texts = "\n".join(
            path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
        )
        for pitfall in lab.file.pitfalls:
            assert not [hint for hint in pitfall.hints if hint in texts]
        assert not [path for path in folder.rglob("*") if path.name.startswith("facts")]
        assert read_lab(folder).file.pitfalls == lab.file.pitfalls


def test_a_changed_claim_needs_no_machine(worker: Worker) -> None:
    """No packet differs: the raw files of the run that is there are judged anew, as in a terminal."""
    first = worker.run("mathis", "01-mathis/case-12-broken", case=12)
    claim = {"lab": "mathis", "case": 12, "changes": ["constant_claimed=1.31"]}
    [job] = worker.ask("plan", **claim)["jobs"]
    begun = worker.ask("begin", folder=job["folder"])
    assert f"mathis/{job['folder']}/DONE" in begun["files_of_run"]
    assert "Nothing was measured again" in begun["said"]
    ss = [worker.runs / f"mathis/{name}/raw/romeo/ss.txt" for name in (first, job["folder"])]
    assert ss[0].read_bytes() == ss[1].read_bytes()
    [job] = worker.ask("plan", **{**claim, "changes": ["acknowledge=every-segment"]})["jobs"]
    assert "words" in worker.ask("begin", folder=job["folder"])


def test_what_is_too_much_for_a_pages_machine_is_said(worker: Worker) -> None:
    """Also by the page itself, which doesn't name the setting: it may be what the case is about."""
    problem = worker.problem("plan", lab="variants", trials="7", changes=["relay=on"])
    assert problem.startswith("relay=on is too much for the browser's machine: use the virtual")
    words = LabContext(ROOT, load_lab(ROOT, "variants"), runs_here=True)
    first, fixed = (stage_run(words, "terminated-tcp", stage) for stage in ("broken", "fixed"))
    assert first.startswith("This network is too large for the machine in a page. Use a terminal")
    assert "data-here=" in fixed
    assert "data-here=" in fix_run(words, "terminated-tcp")
