"""What students hand in: reports, lab books, archives, and whole folders of all that, one of their files damaged."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import tarfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import pytest
from hostile import ROOT, Hostile, amounts, explore, files, one_damaged, watched
from hostile_runs import lay_out, run_files, signed
from hypothesis import strategies as st

from measuretwice.base.errors import UserError
from measuretwice.base.files import unpack_tar
from measuretwice.book.lab_book import BOOK, LabBook, with_entry, with_first_try
from measuretwice.book.prediction import how_far_off, quantity_of, stated_number
from measuretwice.grading.answers import (
    find_quotes,
    match_numbers,
    read_books,
    read_reports,
)
from measuretwice.grading.reader import read_submission
from measuretwice.grading.submission import CaseNotes, Contents, Reading
from measuretwice.in_page.storage import WRITTEN, RunStore, note_written, pack
from measuretwice.lab import load_lab
from measuretwice.runs.folder import raw_files, raw_folder
from measuretwice.runs.remeasure import read_run
from measuretwice.runs.unpack import Extractor

QUESTION = "Why is the goodput lower than the link's rate?"
REPORT = f"""# Report

**Question 1.** {QUESTION}

Your answer:

It was 25.7 Mbit/s, as `1700000006.884614 IP 10.4.1.2.58422` shows, 0.57 % of losses.
> cwnd:27 ssthresh:20 bytes_sent:1

<!-- end of answer -->

<!-- lab book of mathis -->

```text
# Lab book
- Seed: 4711
## Case 1: slow
- Prediction: about 5 Mbit/s, because of the losses
```

""".encode()
PAGE = f"""<html><p>Question 1. {QUESTION}</p><div class="answer">It was <b>25.7</b> Mbit/s<div>x</div></div>
<pre class="lab-book" data-lab="mathis"># Lab book
- Seed: 4711
## Case 1: slow
- Prediction: 5 Mbit/s</pre></html>""".encode()
BOOKS = {
    BOOK: b"""# Lab book: A model of a thousand flows

- Seed: 4711

## First try

- Prediction: 0.5

## Case 1: Too slow

- Prediction: about 1,200 kbit/s (25.7*0.93), because 3e-4 of the packets are lost on the way
  and more words of it
- Run: case-01-trial-05-seed4711-01234567: 5.2 Mbit/s
- Hint: 1
- Diagnosis: loss in percent
- Outcome: fixed

## Case 12: None

- Prediction: none
- Shown: yes
"""
}  # fmt: skip


@amounts
def test_a_lab_book_is_read_and_added_to_or_refused(amount: str, tmp_path: Path) -> None:
    lab = load_lab(ROOT, "mathis")
    asked = [quantity_of(pitfall.predict) for pitfall in lab.file.pitfalls]

    def check(hostile: Hostile) -> None:
        book = LabBook(tmp_path, lab)
        book.path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            for notes in [*book.all_notes().values(), book.first_try()]:
                assert isinstance(notes.hints + notes.hints_before_diagnosis, int)
                assert isinstance(notes.knows_cause or notes.predicted_first, bool)
                for quantity in asked:
                    prediction = notes.prediction or ""
                    assert how_far_off(prediction, 5.2, quantity.unit) is not None
                    number = stated_number(prediction, quantity.unit)
                    assert number is None or isinstance(number[0], float)
            text = book.text
            assert with_entry(text, 1, "Too slow", "Hint", "2").count("- Hint: 2") >= 1
            assert "- Prediction: 7" in with_first_try(text, "Prediction", "7")
            book.add(1, "Hint", "3")
            assert isinstance(book.open(), int)
        with watched(tmp_path):
            books, problems = read_books(ROOT, [book.path], {"mathis": text_of(hostile)}, tmp_path)
            assert all(isinstance(case, CaseNotes) for cases in books.values() for case in cases)
            assert all(isinstance(problem, str) for problem in problems)

    known = [Hostile(b"## Case " + "١".encode() + b"\n- Seed: " + "²".encode())]
    explore(amount, files(BOOKS), check, few=60, known=known)


def text_of(hostile: Hostile) -> str:
    return hostile.content.decode("utf-8", "replace")


@amounts
@pytest.mark.parametrize("name", ["report.md", "report.html"])
def test_a_reports_answers_are_read(amount: str, name: str, tmp_path: Path) -> None:
    run = lay_out(run_files(), tmp_path / "trial-07-seed1-b402df08")
    data = read_run(ROOT, run, run.name)
    path = tmp_path / name

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path):
            reports = read_reports([path], tmp_path)
            for texts in (reports.answers, reports.books):
                assert all(isinstance(text, str) for pair in texts.items() for text in pair)
            assert reports.documents in ([], [name])
            find_quotes(reports.answers, [run.name], tmp_path)
            match_numbers(reports.answers, [data])

    known = [
        Hostile(PAGE.replace(b"It was", b"<![x[" + b"&#9999999999999;&#xd800;")),
        Hostile(PAGE.replace(b"<b>", b"<!" + b"[" * 200)),
        Hostile(PAGE.replace(b"It was", b"<div>" * 50_000)),
    ]
    base = {"report.md": REPORT} if name == "report.md" else {"report.html": PAGE}
    explore(amount, files(base), check, few=60, known=known)


# --- archives ---------------------------------------------------------------------------------------

NAMES = (
    "trial-07-seed1-b402df08/plan.json", "../outside.txt", "/tmp/mt-outside.txt", "..\\outside.txt", "C:\\outside.txt", "link",
    "link/inside.txt", "a/../../outside.txt", "a/./b", "", ".", "/", "a//b", "x" * 250, "a/" * 40 + "b", "\x1b]0;x\x07", "a\nb",
    "\udcff", "a:b", "nul", "~/x", "dir/", "inner.zip", "raw.tar.xz", ".hidden/x", "é", "e\u0301", "A", "a",
)  # fmt: skip
KINDS = (
    tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE,
    tarfile.FIFOTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b"Z",
)  # fmt: skip
Entry = tuple[str, int, str]
# What packs a tar, by the name's end.
PACKERS = {
    ".tar": bytes,
    ".tar.gz": gzip.compress,
    ".tar.xz": lzma.compress,
    ".tar.bz2": bz2.compress,
    ".tgz": gzip.compress,
}


def entries() -> st.SearchStrategy[list[Entry]]:
    """A name, a sort of entry, and where it leads."""
    return st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 15), st.sampled_from(NAMES)), min_size=1, max_size=6
    )  # fmt: skip


def tar_of(made: list[Entry]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, leads in made:
            info = tarfile.TarInfo(name)
            info.type = KINDS[kind % len(KINDS)]
            info.linkname = leads
            info.mode = 0o7777
            content = leads.encode("utf-8", "replace")
            info.size = len(content) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zip_of(made: list[Entry]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name that stands twice is meant
        for name, kind, leads in made:
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode() or "x")
            info.external_attr = (0o120777, 0o100644, 0o010644, 0o060644, 0o040755)[kind % 5] << 16
            info.compress_type = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)[
                kind % 3
            ]
            packed.writestr(info, leads.encode("utf-8", "replace"))
    return out.getvalue()


@cache
def a_run_packed() -> dict[str, bytes]:
    """A run's files as an archive of each sort."""
    plain, zipped = io.BytesIO(), io.BytesIO()
    few = {f"run/{name}": text for name, text in run_files().items() if len(text) < 5000}
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, text in few.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in few.items():
            packed.writestr(name, text)
        packed.writestr("inner.tgz", gzip.compress(plain.getvalue()))
    found = {f"a{end}": packer(plain.getvalue()) for end, packer in PACKERS.items()}
    return {**found, "a.zip": zipped.getvalue()}


def archives() -> st.SearchStrategy[Hostile]:
    """Archives with hostile entries, whole and damaged; and damaged ones of a run."""
    tars = st.builds(
        lambda made, end: Hostile(PACKERS[end](tar_of(made)), f"a{end}"),
        entries(),
        st.sampled_from(sorted(PACKERS)),
    )
    zips = st.builds(lambda made: Hostile(zip_of(made), "a.zip"), entries())
    whole = st.one_of(tars, zips)
    damaged = whole.flatmap(lambda hostile: files({hostile.name: hostile.content}))
    return st.one_of(whole, damaged, one_damaged(a_run_packed()))


def check_plain(folder: Path) -> None:
    """Nothing below a folder but files and folders, none of which runs by itself or is shared."""
    for path in folder.rglob("*"):
        assert path.is_file() or path.is_dir()
        assert not path.is_symlink()
        if path.is_file():
            assert path.stat().st_nlink == 1
            assert not path.stat().st_mode & 0o6000


@amounts
def test_an_archive_is_laid_open_in_its_folder(amount: str, tmp_path: Path) -> None:
    def check(hostile: Hostile) -> None:
        scratch = tmp_path / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        path = scratch / hostile.name
        path.write_bytes(hostile.content)
        into = scratch / "into"
        into.mkdir()
        with watched(scratch):
            extractor = Extractor(into)
            extractor.extract(path)
            check_plain(into)
            assert all(line.isprintable() for line in extractor.summary)
        assert sorted(os.listdir(scratch)) == sorted(["into", hostile.name])

    explore(amount, archives(), check, few=60)


@amounts
def test_a_recorded_runs_archive_is_unpacked_or_refused(amount: str, tmp_path: Path) -> None:
    def check(hostile: Hostile) -> None:
        (tmp_path / "raw.tar.xz").write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            for name, content in raw_files(tmp_path).items():
                assert isinstance(content, bytes)
                assert ".." not in name.split("/")
        with watched(tmp_path, UserError), raw_folder(tmp_path) as raw:
            check_plain(raw)

    tars = entries().map(lambda made: Hostile(lzma.compress(tar_of(made)), "raw.tar.xz"))
    base = {"raw.tar.xz": a_run_packed()["a.tar.xz"]}
    explore(amount, st.one_of(tars, files(base)), check, few=60)


@amounts
def test_what_a_guest_gives_is_unpacked_in_its_folder(amount: str, tmp_path: Path) -> None:
    """The tar of a live lab's files: what is in it, a person may have made. That it is a tar, we saw to."""

    def check(made: list[Entry]) -> None:
        scratch = tmp_path / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        into = scratch / "into"
        into.mkdir(parents=True)
        path = scratch / "given.tar"
        path.write_bytes(tar_of(made))
        with watched(scratch):
            with contextlib.suppress(tarfile.TarError, OSError):
                unpack_tar(path, into, plain=True)
            check_plain(into)
        assert sorted(os.listdir(scratch)) == ["given.tar", "into"]

    explore(amount, entries(), check, few=60)


# --- whole submissions ------------------------------------------------------------------------------


@cache
def submission() -> dict[str, bytes]:
    run = {f"runs/trial-07-seed1-b402df08/{name}": text for name, text in run_files().items()}
    romeo = {name: text for name, text in run_files().items() if "raw/romeo" in name}
    brought = {f"trial-07/{name}": text for name, text in romeo.items()}
    written = {"report.md": REPORT, "page/report.html": PAGE, f"runs/mathis/{BOOK}": BOOKS[BOOK]}
    return {**run, **brought, **written}


@amounts
def test_a_submission_is_read_and_what_was_read_comes_back(amount: str, tmp_path: Path) -> None:
    lab = load_lab(ROOT, "mathis")
    given = lay_out(submission(), tmp_path / "given")
    tree = tmp_path / "tree"

    def check(hostile: Hostile) -> None:
        (given / hostile.name).write_bytes(hostile.content)
        shutil.rmtree(tree, ignore_errors=True)
        with watched(tmp_path):
            contents = read_submission(ROOT, [given], tree, None, lab)
            assert isinstance(contents, Contents)
            reading = Reading(contents)
            assert Reading.from_json(reading.to_json()).to_json() == reading.to_json()
            lines = [*contents.refused, *contents.unusable, *contents.unread]
            assert all(line.isprintable() and len(line) < 1000 for line in lines)
        (given / hostile.name).write_bytes(submission()[hostile.name])

    explore(amount, one_damaged(submission(), finish=signed), check, many=400)


@amounts
def test_what_a_page_keeps_is_packed_and_read(amount: str, tmp_path: Path) -> None:
    """Runs that a browser kept, answers, hints and diagnoses: packed for handing in, then read as any other archive."""
    lab = load_lab(ROOT, "mathis")
    runs = tmp_path / "runs"

    def check(example: tuple[Hostile, str, dict[str, str]]) -> None:
        hostile, name, texts = example
        shutil.rmtree(tmp_path / "scratch", ignore_errors=True)
        shutil.rmtree(runs, ignore_errors=True)
        run = lay_out(run_files(), runs / "mathis" / "trial-07-seed1-b402df08")
        (run / name).write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            store = RunStore()
            store.quarantine_unreadable(runs / "mathis", lab)
            assert all(line.isprintable() for line in store.lines(runs / "mathis"))
            note_written(lab, runs / "mathis", dict.fromkeys(WRITTEN, texts), begin=True)
            pack(ROOT, lab, runs, tmp_path / "mathis-runs.zip", texts)
            scratch = tmp_path / "scratch"
            scratch.mkdir()
            contents = read_submission(
                ROOT, [tmp_path / "mathis-runs.zip"], scratch / "tree", None, lab
            )
            assert not contents.refused
            reading = Reading(contents)
            assert Reading.from_json(reading.to_json()).to_json() == reading.to_json()

    documents = {
        name: run_files()[name] for name in ("plan.json", "result.json", "provenance.json")
    }
    written = st.dictionaries(
        st.sampled_from(["1", "2", "12", "999", "²", "x"]), st.text(max_size=40), max_size=3
    )
    names = st.sampled_from(sorted(documents))
    explore(amount, st.tuples(one_damaged(documents), names, written), check, few=6, many=200)
