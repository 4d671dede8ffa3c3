"""A run's raw files, one of them damaged, read by all that reads them: measured, checked, shown, drawn, compared."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile import LABS, ROOT, Hostile, amounts, explore, files, one_damaged, watched
from hostile_runs import lay_out, run_files, signed
from hypothesis import strategies as st

from measuretwice.base.errors import UserError
from measuretwice.checks import check_run, run_under_test
from measuretwice.lab import Lab, Plan
from measuretwice.measure import imported
from measuretwice.runs.remeasure import Remeasured, plan_in, remeasure
from measuretwice.view import words
from measuretwice.view.difference import compare
from measuretwice.view.over_time import read_over_time
from measuretwice.view.source import opened

# A run's capture and what it printed for people aren't read; a sample more or less changes nothing.
MOST_BYTES = 200_000


def raw_files(lab: str) -> st.SearchStrategy[Hostile]:
    """One of a run's raw files, damaged."""
    files = run_files(lab).items()
    return one_damaged(
        {name: text for name, text in files if name.startswith("raw/") and len(text) <= MOST_BYTES}
    )


class Damaged:
    """A run's folder in which one file at a time is another."""

    def __init__(self, lab: str, folder: Path) -> None:
        self.files = run_files(lab)
        self.folder = lay_out(self.files, folder / "run")
        self.lab, self.plan = plan_in(ROOT, self.folder / "plan.json")

    @contextmanager
    def with_file(self, hostile: Hostile) -> Iterator[None]:
        path = self.folder / hostile.name
        path.write_bytes(hostile.content)
        try:
            yield
        finally:
            path.write_bytes(self.files[hostile.name])


def known_of(run: Damaged) -> list[Hostile]:
    """Counters that no kernel counts to: 400 hexadecimal digits, and 400 decimal ones in iperf3's sums."""
    found = []
    for name, text in sorted(run.files.items()):
        if name.endswith("softnet_stat.after.txt"):
            found.append(Hostile(b"00000001 " + b"f" * 400 + b"\n" + text, name))
        if Path(name).match("iperf3*.json"):
            huge = re.sub(rb'"(bytes|timesecs)":\s*[0-9]+', rb'"\1": 1' + b"0" * 400, text)
            found.append(Hostile(huge, name))
    return found[:4]


def judge(lab: Lab, plan: Plan, found: Remeasured | imported.ImportedFiles) -> None:
    """Check what was measured, and write each finding as --json does."""
    case = run_under_test(lab, plan.params, found.measured, plan.trial, found.host_state)
    for finding in check_run(lab, case, 3):
        finding.to_json()


@amounts
@pytest.mark.parametrize("name", LABS)
def test_measured_and_checked_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    """As `./lab check RUN` does."""
    run = Damaged(name, tmp_path)

    def check(hostile: Hostile) -> None:
        with run.with_file(hostile), watched(tmp_path, UserError):
            again = remeasure(ROOT, run.folder)
            assert isinstance(again, Remeasured)
            judge(again.lab, again.plan, again)

    explore(amount, raw_files(name), check, few=8, many=300, known=known_of(run))


@amounts
@pytest.mark.parametrize("name", LABS)
def test_brought_and_checked_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    """As `./lab check FOLDER --lab LAB --trial N` does, a live lab's folder, and grading with files from a testbed."""
    run = Damaged(name, tmp_path)

    def check(hostile: Hostile) -> None:
        with run.with_file(hostile), watched(tmp_path, UserError):
            found = imported.read_files([run.folder / "raw"], run.lab, dict(run.plan.params))
            assert isinstance(found, imported.ImportedFiles)
            judge(run.lab, run.plan, found)
        with run.with_file(hostile), watched(tmp_path, UserError):
            found = imported.read_files([run.folder / hostile.name])
            assert isinstance(found, imported.ImportedFiles)

    explore(amount, raw_files(name), check, few=6, many=100)


@amounts
@pytest.mark.parametrize("name", LABS)
def test_shown_drawn_and_compared_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    """As `./lab show`, `./lab plot --over-time` and `./lab diff` do."""
    run = Damaged(name, tmp_path)
    whole = shutil.copytree(run.folder, tmp_path / "whole")

    def check(hostile: Hostile) -> None:
        with run.with_file(hostile):
            with watched(tmp_path, UserError), opened(run.folder) as source:
                [file] = [file for file in source.files if f"raw/{file.name}" == hostile.name]
                word = words.word_of(file, source)
                words.about(file, word)
                if word:
                    words.show(word, [file], source, ROOT)
                    # With its neighbours, as before and after a run.
                    words.show(word, words.files_of(word, source, file.node), source, ROOT)
            with watched(tmp_path, UserError):
                read_over_time(ROOT, run.folder, None)
            with watched(tmp_path, UserError), opened(run.folder) as source, opened(whole) as other:
                compare(ROOT, source, other)

    links = sorted(name for name in run.files if name.endswith("link.before.json"))
    known = [Hostile(text, links[0]) for text in (b"[]", b'[{"ifname": "lo"}]')]
    explore(amount, raw_files(name), check, few=4, many=60, known=known)


@amounts
@pytest.mark.parametrize("name", ["plan.json", "result.json"])
def test_a_runs_own_documents_are_shown_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    run = Damaged("mathis", tmp_path)
    whole = shutil.copytree(run.folder, tmp_path / "whole")
    word = words.BY_NAME[{"plan.json": "settings", "result.json": "measured"}[name]]

    def check(hostile: Hostile) -> None:
        (run.folder / name).write_bytes(hostile.content)
        with watched(tmp_path, UserError), opened(run.folder) as source:
            words.show(word, words.files_of(word, source, None), source, ROOT)
        with watched(tmp_path, UserError):
            read_over_time(ROOT, run.folder, None)
        with watched(tmp_path, UserError), opened(run.folder) as source, opened(whole) as other:
            compare(ROOT, source, other)
        if name == "plan.json":
            with watched(tmp_path, UserError):
                again = remeasure(ROOT, run.folder)
                judge(again.lab, again.plan, again)

    odd = json.loads(run.files[name])
    known = [
        Hostile(signed(json.dumps({**odd, "trial": [7]}).encode())),
        Hostile(signed(json.dumps({**odd, "lab": "x" * 100_000}).encode())),
    ]
    explore(amount, files({name: run.files[name]}, finish=signed), check, many=300, known=known)
