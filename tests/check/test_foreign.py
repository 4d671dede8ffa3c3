"""Files that people have, in the forms of public bug reports and questions: what is said of each.

The cases stand in tests/check/foreign/*.toml, a file for each tool that they are about: what was asked, the exit
code, the findings, words that must be said and words that must not. A case's own files are in the folder of its
name; a packed one is unpacked first. With `like` it has another case's settings and other files besides.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import ROOT, call_lab

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Value, load_lab
from measuretwice.measure.imported import ImportedFiles, read_files

FOLDER = Path(__file__).parent / "foreign"
# The numbers of the cases that the review handed over, as their folders have them.
HANDED_OVER = """
    00 01 02 03 04 06 07 09 10 12 13 14 15 17 18 19 20 21 23 24 26 27 28 29 29b 29d 30 31 32 33 34 37 38 39 40 41 41c 42b
    43 45 48 49 60 62 64 66 67 67--nano 67-t 67-tt 67-ttt 67-tttt 67-ttttt 68 69 70 71 73 74 75 76 77 78 80 81 82 83 85 86
    88 89 90 90-audit 91 94 94b 94c 95 95b 96 97 97b 98 99 99b
""".split()
# A finding's heading, where all is said of it.
HEADING = re.compile(r"^  ([a-z0-9-]+) \((?:error|warning|note)\)$", re.M)


@dataclass(frozen=True)
class Case:
    """What was asked of which files, and what is right to answer.

    `handed_over` is its number among the cases with which the review of issue 41 began. `set` are settings of the run, `without` files of the case that it is `like`. `audit` are the words of
    ./lab audit, in the folder of the files, in place of those of ./lab check.
    """

    name: str
    what: str
    exit: int
    finds: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    like: str = ""
    without: tuple[str, ...] = ()
    lab: str = ""
    trial: int = 1
    set: Mapping[str, str | float] | None = None
    audit: tuple[str, ...] = ()
    handed_over: str = ""


def _cases() -> Iterator[Case]:
    for table in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(table.read_text())["case"]:
            yield Case(**entry)


CASES = {case.name: case for case in _cases()}


def lay_out(case: Case, folder: Path) -> None:
    """Copy a case's files into a folder, those of the case that it is like first."""
    if case.like:
        lay_out(CASES[case.like], folder)
    for name in case.without:
        (folder / name).unlink()
    for source in sorted((FOLDER / case.name).glob("**/*")):
        target = folder / source.relative_to(FOLDER / case.name)
        if source.is_dir():
            target.mkdir(exist_ok=True)
        elif source.suffix == ".gz":
            target.with_suffix("").write_bytes(gzip.decompress(source.read_bytes()))
        else:
            shutil.copy(source, target)


def _settings(case: Case) -> dict[str, str | float]:
    """Return the settings of a case, its own over those of the case that it is like."""
    return (_settings(CASES[case.like]) if case.like else {}) | {**(case.set or {})}


def lab_of(case: Case) -> tuple[Lab, dict[str, Value]]:
    """Return the lab that a case is asked of, and its settings there."""
    lab = load_lab(ROOT, case.lab or CASES[case.like].lab)
    return lab, {**lab.defaults(), **lab.trials[case.trial].set, **_settings(case)}


def _words(case: Case) -> list[str]:
    """Return the words to ask with; all that is known is asked for."""
    if case.audit:
        return ["audit", *case.audit]
    lab = case.lab or CASES[case.like].lab
    words = ["check", "in", "--lab", lab, "--trial", str(case.trial), "--hint", "3"]
    return words + [word for key, value in _settings(case).items() for word in ("--set", f"{key}={value}")]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_people_bring(name: str, tmp_path: Path) -> None:
    """The exit code, the findings and the words are the right ones."""
    case = CASES[name]
    folder = tmp_path if case.audit else tmp_path / "in"
    folder.mkdir(exist_ok=True)
    lay_out(case, folder)
    done = call_lab(*_words(case), cwd=tmp_path, COLUMNS="1000")
    said = done.stdout + done.stderr
    assert (done.returncode, sorted(HEADING.findall(said))) == (case.exit, sorted(case.finds)), said
    flat = " ".join(said.split())
    assert [words for words in case.says if words not in said and words not in flat] == [], said
    assert [words for words in case.never if words in flat] == [], said


def test_every_folder_of_files_is_a_case() -> None:
    """No file lies there that nothing asks about."""
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} <= CASES.keys()


def test_every_case_that_was_handed_over_is_one() -> None:
    assert sorted(case.handed_over for case in CASES.values() if case.handed_over) == HANDED_OVER


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if not case.audit and case.exit != 2]
)
def test_no_file_is_both_used_and_left_out(name: str, tmp_path: Path) -> None:
    """Nor is a line said twice."""
    lay_out(CASES[name], tmp_path)
    brought = read_files([tmp_path], *lab_of(CASES[name]))
    refused = [line.split(": ", 1)[0] for line in brought.refused]
    assert {*refused} & {*brought.used} == set()
    for lines in (brought.refused, brought.missing, brought.notes):
        assert len({*lines}) == len(lines)


# Files as people keep them: packed, in other encodings, in Markdown, several tools' outputs in one; and those that hold no text.

HONEST = CASES["honest"]
NAMES = ("iperf3.json", "ping.txt", "ss.txt", "tc-before.txt", "tc-after.txt", "tcpdump.txt")
PROMPT = "\x1b]0;me@romeo: ~\x07\x1b[01;32mme@romeo\x1b[00m:\x1b[01;34m~\x1b[00m$ \x1b[?2004h"


def fenced(*texts: str) -> str:
    return "# Run 3\n\nOn Monday.\n\n" + "\n".join(f"```console\n{text}```\n\nThen:\n" for text in texts)  # fmt: skip


def typescript(*texts: str) -> str:
    """What script(1) records of a shell with colours."""
    shown = "".join(f"{PROMPT}next\n\x1b[?2004l\r{text}" for text in texts)
    return f'Script started on 2026-11-20 10:00:00+00:00 [TERM="xterm"]\n{shown}{PROMPT}exit\n'.replace("\n", "\r\n")  # fmt: skip


KEPT: dict[str, Callable[[str], bytes]] = {
    ".txt.gz": lambda text: gzip.compress(text.encode()),
    ".xz": lambda text: lzma.compress(text.encode()),
    ".bz2": lambda text: bz2.compress(text.encode()),
    " of today (1).txt": lambda text: text.encode("utf-16"),
    "-dos.txt": lambda text: text.replace("\n", "\r\n").encode(),
    ".md": lambda text: fenced(text).encode(),
}
TOGETHER: dict[str, Callable[..., str]] = {
    "one-after-the-other": lambda *texts: "\n".join(texts),
    "fenced": fenced,
    "typescript": typescript,
}
NO_TEXT = {
    "screen.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a picture or a printed page; bring what the tool printed"),
    "report.pdf": (b"%PDF-1.7\n1 0 obj", "a picture or a printed page"),
    "table.xlsx": (b"PK\3\4" + bytes(26) + b"[Content_Types].xml", "a workbook or a document of an office program"),
    "table.ods": (b"PK\3\4" + bytes(26) + b"mimetypeapplication/vnd.oasis", "a workbook or a document of an office program"),
    "all.zip": (b"PK\3\4" + bytes(26) + b"iperf3.json", "packed (zip): unpack it first, or name it by itself"),
    "all.7z": (b"7z\xbc\xaf\x27\x1c", "packed: unpack it first"),
    "damaged.xz": (lzma.compress(b"x" * 1000)[:40], "packed by lzma, and damaged"),
    "eth2.pcap.xz": (lzma.compress(b"\xd4\xc3\xb2\xa1" + bytes(20)), "xzcat eth2.pcap.xz | tcpdump -n -e -r -"),
    "out.bin": (bytes(range(256)) * 4, "no text, but bytes that a program reads"),
    "ss.txt": (b"", "empty: what was to be written into it never came"),
    "ping.txt": (b" \n\n", "empty: what was to be written into it never came"),
}  # fmt: skip


def honest(folder: Path, without: tuple[str, ...] = ()) -> None:
    folder.mkdir()
    lay_out(HONEST, folder)
    for name in without:
        (folder / name).unlink()


def read(folder: Path) -> ImportedFiles:
    return read_files([folder], *lab_of(HONEST))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_the_same_however_it_is_kept(name: str, tmp_path: Path) -> None:
    honest(tmp_path / "plain")
    plain = read(tmp_path / "plain")
    text = (tmp_path / "plain" / name).read_text()
    for number, (ending, keep) in enumerate(KEPT.items()):
        folder = tmp_path / str(number)
        honest(folder, without=(name,))
        (folder / f"{name.split('.')[0]}{ending}").write_bytes(keep(text))
        kept = read(folder)
        assert (kept.measured, kept.unread, kept.missing) == (plain.measured, [], plain.missing), ending  # fmt: skip


@pytest.mark.parametrize("way", TOGETHER)
@pytest.mark.parametrize(
    "names",
    [("iperf3.json", "ping.txt"), ("ping.txt", "iperf3.json"), ("ss.txt", "tc-after.txt"), ("ping.txt", "tcpdump.txt")],
)  # fmt: skip
def test_several_tools_in_one_file_are_all_read(
    way: str, names: tuple[str, str], tmp_path: Path
) -> None:
    honest(tmp_path / "plain")
    plain = read(tmp_path / "plain")
    texts = [(tmp_path / "plain" / name).read_text() for name in names]
    honest(tmp_path / "mixed", without=names)
    (tmp_path / "mixed/all.txt").write_text(TOGETHER[way](*texts))
    mixed = read(tmp_path / "mixed")
    # The time in script's first line may be of a look, too.
    plain.measured["ss_samples"] = mixed.measured["ss_samples"]
    assert (mixed.measured, mixed.unread, mixed.missing) == (plain.measured, [], plain.missing)


@pytest.mark.parametrize("name", NO_TEXT)
def test_what_holds_no_text_is_named(name: str, tmp_path: Path) -> None:
    data, words = NO_TEXT[name]
    honest(tmp_path / "in")
    (tmp_path / "in" / name).write_bytes(data)
    (line,) = read(tmp_path / "in").refused
    assert words in line
    if data.strip():
        with pytest.raises(UserError) as refused:
            read_files([tmp_path / "in" / name], *lab_of(HONEST))
        assert words in str(refused.value)
