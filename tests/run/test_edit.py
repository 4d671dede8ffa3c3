"""./lab edit: a student's own copy of the node scripts, which their runs use, and nobody else's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest
from command_line import call_lab, start_lab

from measuretwice.backends.script import EDITED, experiment_script
from measuretwice.grading.reader import read_submission
from measuretwice.lab import (
    OwnScripts,
    Toolchain,
    load_lab,
    make_plan,
    read_copy,
    with_unlisted,
)

ROOT = Path(__file__).parents[2]
MATHIS = load_lab(ROOT, "mathis")
NODES = ROOT / "labs/01-mathis/nodes"
WIDER = 'mtu "$MTU_BYTES"', "mtu 4352"


def edit(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = call_lab("edit", "mathis", *arguments, "--out", out)
    return done


def change(out: Path, node: str, before: str, after: str) -> Path:
    script = out / f"mathis/edit/nodes/{node}.sh"
    text = script.read_text()
    assert before in text
    script.write_text(text.replace(before, after))
    return script


def test_a_copy_is_the_labs_scripts_and_never_overwritten(tmp_path: Path) -> None:
    first = edit(tmp_path)
    assert first.returncode == 0, first.stderr
    folder = tmp_path / "mathis/edit"
    assert {path.name for path in (folder / "nodes").iterdir()} == {
        path.name for path in NODES.iterdir()
    }
    assert "./lab run mathis --case N" in first.stdout
    assert "mathis/edit" in first.stdout
    # All settings stand in comments: as it is, a copy changes nothing.
    assert read_copy(tmp_path, MATHIS).changes == ""
    script = change(tmp_path, "romeo", *WIDER)
    again = edit(tmp_path)
    assert again.returncode == 0
    assert "changed: romeo.sh" in again.stdout
    assert "mtu 4352" in script.read_text()


def test_undo_deletes_nothing(tmp_path: Path) -> None:
    edit(tmp_path)
    change(tmp_path, "romeo", *WIDER)
    undone = edit(tmp_path, "--undo")
    assert undone.returncode == 0
    assert read_copy(tmp_path, MATHIS).changes == ""
    [aside] = (tmp_path / "mathis").glob("edit-until-*")
    assert "mtu 4352" in (aside / "nodes/romeo.sh").read_text()
    assert aside.name in undone.stdout
    assert "no copy" in edit(tmp_path, "--undo").stdout
    # A new copy is the lab's again.
    edit(tmp_path)
    assert read_copy(tmp_path, MATHIS).changes == ""


@pytest.mark.parametrize(
    ("node", "written", "says"),
    [
        (
            "romeo.sh",
            "f() {\n  fi\n}\n",
            "romeo.sh: line 2: syntax error near unexpected token `fi'",
        ),
        # Of this one bash -n speaks, and exits with 0.
        ("romeo.sh", "f() {\n  [[ ; ]]\n}\n", "romeo.sh: line 2: unexpected token"),
        ("helper.py", "x = 1\ndef f(:\n", "helper.py: line 2: "),
        ("../settings.toml", "rtt_ms = \n", "settings.toml: Invalid value (at line 1"),
        ("../settings.toml", "rtt_ms = -3\n", "settings.toml: rtt_ms: rtt_ms: expected"),
        ("../settings.toml", "no_such = 3\n", "has no parameter 'no_such'"),
        ("../settings.toml", "rtt_ms = [3]\n", "rtt_ms: expected a number or a word"),
    ],
)
def test_what_cant_be_run_is_one_line_with_its_place(
    tmp_path: Path, node: str, written: str, says: str
) -> None:
    edit(tmp_path)
    (tmp_path / "mathis/edit/nodes" / node).write_text(written)
    done = call_lab("run", "mathis", "--trial", "7", "--out", tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list((tmp_path / "mathis").glob("trial-*"))


def test_an_editor_opens_on_a_terminal_only(tmp_path: Path) -> None:
    refused = edit(tmp_path, "--open")
    assert refused.returncode == 2
    assert "no terminal" in refused.stderr
    assert not (tmp_path / "mathis/edit").exists()
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "# mine" >>"$1/nodes/romeo.sh"\n')
    editor.chmod(0o755)
    environment = {**os.environ, "EDITOR": str(editor)}
    environment.pop("VISUAL", None)
    words = ["edit", "mathis", "--open", "--out", str(tmp_path)]
    output, status = pexpect.run(
        f"{ROOT / 'lab'} {' '.join(words)}", env=environment, withexitstatus=True, timeout=60
    )
    assert status == 0, output
    assert b"changed: romeo.sh" in output


def test_a_folder_that_cant_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = start_lab("edit", "mathis", "--out", tmp_path / "file")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_plans_tell_own_scripts_and_others_keep_their_digests() -> None:
    toolchain = Toolchain("virtual", "linux", {}, {"romeo.sh": "0" * 16, "lib.sh": "1" * 16})
    plain = make_plan(MATHIS, 7, seed=1, toolchain=toolchain)
    assert "edited" not in plain.to_json()
    own = OwnScripts((("romeo.sh", b"true\n"),))
    used = Toolchain("virtual", "linux", {}, toolchain.scripts, own.digests)
    edited = make_plan(MATHIS, 7, seed=1, toolchain=used)
    assert edited.digest != plain.digest
    assert edited.to_json()["edited"] == own.digests
    assert edited.scripts == {**toolchain.scripts, **own.digests}
    script = experiment_script(MATHIS, edited, ROOT, "/run/x/raw", None)
    assert f'lab="${{out%/*}}"/{EDITED}/labs/01-mathis' in script


@pytest.mark.nightly(
    "own scripts in a plan, in a run that fails: this file; a case solved with them: tests/live/test_live.py"
)
@pytest.mark.kernel
@pytest.mark.slow
def test_a_case_is_solved_with_own_scripts(tmp_path: Path) -> None:
    """The scripts that were edited are what ran; the run, its book and grading say so."""
    out = tmp_path / "runs"
    broken = call_lab("run", "mathis", "--case", "5", "--seed", "77", "--out", out)
    assert broken.returncode == 0, broken.stderr
    [first] = (out / "mathis").glob("case-05-*")
    edit(out)
    for node in ("romeo", "router"):
        change(out, node, *WIDER)
    # One interface of the four is forgotten.
    half = call_lab("run", "mathis", "--case", "5", "--out", out)
    assert "your own copy is used (romeo.sh, router.sh)" in half.stderr
    [forgotten] = {*(out / "mathis").glob("case-05-*")} - {first}
    assert call_lab("check", forgotten).returncode == 1
    change(out, "juliet", *WIDER)
    assert call_lab("run", "mathis", "--case", "5", "--out", out).returncode == 0
    [fixed] = {*(out / "mathis").glob("case-05-*")} - {first, forgotten}
    checked = call_lab("check", fixed)
    assert checked.returncode == 0, checked.stdout
    assert "nothing is off any more" in checked.stdout
    plan, provenance = (
        json.loads((fixed / f"{name}.json").read_text()) for name in ("plan", "provenance")
    )
    assert set(plan["edited"]) == {"juliet.sh", "romeo.sh", "router.sh"}
    assert provenance["edited"] == plan["edited"]
    assert with_unlisted(plan)["params"]["mtu_bytes"] == 1500
    assert '+  ip link set dev "$to_juliet" mtu 4352' in (fixed / "edit.diff").read_text()
    assert not (fixed / EDITED).exists()
    assert "own juliet.sh" in (out / "mathis/lab-book.md").read_text()
    # The lab's own again, where that is asked for: it is measured already.
    plain = call_lab("run", "mathis", "--case", "5", "--no-edit", "--out", out)
    assert "1 of 1 are measured already" in plain.stderr
    handed_in = tmp_path / "handed-in"
    shutil.copytree(fixed, handed_in / fixed.name)
    contents = read_submission(ROOT, [handed_in], tmp_path / "tree")
    [run] = contents.runs
    assert run.stage is None
    assert any(change.startswith("own juliet.sh (") for change in run.changed)
    assert contents.unread == ()


@pytest.mark.kernel
def test_what_fails_inside_is_named_by_its_line(tmp_path: Path) -> None:
    edit(tmp_path)
    script = change(tmp_path, "romeo", "prepare() {\n", "prepare() {\n  no_such_command\n")
    line = 1 + script.read_text().splitlines().index("  no_such_command")
    done = call_lab("run", "mathis", "--trial", "7", "--duration", "2", "--out", tmp_path)
    assert done.returncode == 1
    assert f"failed: romeo.sh: line {line}: no_such_command: command not found" in done.stderr
