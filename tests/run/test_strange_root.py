"""MEASURETWICE_ROOT may name somebody else's checkout: what only reads its labs runs nothing of it."""

from __future__ import annotations

import shlex
import shutil
import unicodedata
from pathlib import Path

import pytest
from command_line import ROOT, start_lab

RECORDED = ROOT / "sample-data/01-mathis/case-05-broken"


@pytest.fixture
def strange(tmp_path: Path) -> tuple[Path, Path]:
    """A checkout all of whose programs leave a mark, outside and from within a virtual kernel; and the mark."""
    root, mark = tmp_path / "strange", tmp_path / "mark"
    for name in ("labs", "scripts", "sample-data/01-mathis/case-05-broken"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    written = shlex.quote(str(mark))
    for path in root.glob("scripts/**/*.sh"):
        path.write_text(f"touch {written}\n{path.read_text()}")
    for path in root.glob("scripts/**/*.mjs"):
        path.write_text(f"import fs from 'node:fs'; fs.writeFileSync({str(mark)!r}, '');\n")
    reaching = f"mkdir /tmp/m && mount -t hostfs none /tmp/m -o / && touch /tmp/m{written}; "
    for path in root.glob("labs/*/nodes/*.sh"):
        path.write_text(f"{reaching}:\n{path.read_text()}")
    return root, mark


def run_of(folder: Path) -> Path:
    return min(path.parent for path in folder.glob("*/plan.json"))


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "mathis"],
        ["doctor"],
        ["check", str(run_of(RECORDED))],
        ["show", str(run_of(RECORDED)), "iperf3"],
        ["plot", str(run_of(RECORDED))],
        ["report", str(RECORDED)],
        ["progress", "mathis"],
    ],
    ids=lambda words: words[0],
)
def test_what_reads_runs_nothing_of_it(
    tmp_path: Path, strange: tuple[Path, Path], words: list[str]
) -> None:
    root, mark = strange
    made = {"plot": "made", "report": "made.html"}.get(words[0])
    out = ["--out", str(tmp_path / made)] if made else []
    done = start_lab(*words, *out, cwd=tmp_path, MEASURETWICE_ROOT=str(root))
    print(done.stdout, done.stderr)
    assert done.returncode in (0, 1), done.stderr
    assert not mark.exists()


@pytest.mark.kernel
def test_check_of_an_edited_run_does_neither(tmp_path: Path, strange: tuple[Path, Path]) -> None:
    """Such a run is compared with what the lab's own scripts set up: not with what a stranger's do."""
    root, mark = strange
    out = tmp_path / "runs"
    start_lab("edit", "mathis", "--out", out)
    script = out / "mathis/edit/nodes/romeo.sh"
    script.write_text(script.read_text() + "# mine\n")
    ran = start_lab("run", "mathis", "--trial", "7", "--duration", "2", "--out", out)
    assert ran.returncode == 0, ran.stderr
    done = start_lab("check", run_of(out / "mathis"), MEASURETWICE_ROOT=str(root))
    assert done.returncode in (0, 1), done.stderr
    assert "findings" not in done.stderr
    assert not mark.exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("lab.toml", 'title = "', 'title = "\\u001b]0;owned\\u0007', "lab.toml: lab.title: control"),
        ("lab.toml", "[parameters]\n", '[parameters]\n"\\u001b[2J" = 1\n', "lab.toml: parameters: control"),
        ("lab.toml", 'symptom = "', 'symptom = "\\u202e', "lab.toml: pitfalls.0.symptom: control"),
        ("trials.csv", "\n2,", "\n2\x1b[31m,", "trials.csv, line 3: control"),
    ],
)  # fmt: skip
def test_a_labs_words_are_no_orders_to_a_terminal(
    tmp_path: Path, file: str, old: str, new: str, says: str
) -> None:
    folder = tmp_path / "labs/01-mathis"
    shutil.copytree(ROOT / "labs/01-mathis", folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    for words in (["list"], ["doctor"]):
        done = start_lab(*words, MEASURETWICE_ROOT=str(tmp_path))
        assert says in done.stdout + done.stderr
        output = (done.stdout + done.stderr).replace("\n", "")
        assert [s for s in output if unicodedata.category(s) in ("Cc", "Cf")] == []


def test_a_lab_has_a_name_that_can_be_printed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "labs/01-mathis", tmp_path / "labs/01-mathis")
    shutil.copytree(ROOT / "labs/01-mathis", tmp_path / "labs/02-\x1b[2Jmathis")
    done = start_lab("list", MEASURETWICE_ROOT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mathis: ")
    assert "\x1b" not in done.stdout
