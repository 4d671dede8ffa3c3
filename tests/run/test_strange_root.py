"""MEASURETWICE_ROOT may name somebody else's checkout: what only reads its labs runs nothing of it."""

from __future__ import annotations

import shlex
import shutil
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
