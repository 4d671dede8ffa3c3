"""What root inside leaves in a run's folder, for whoever reads it on the machine afterwards; and links in a stranger's checkout."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
from command_line import call_lab
from outside import ROOT, SECRET

from measuretwice.backends.browser import guest_files
from measuretwice.base.errors import UserError
from measuretwice.base.files import TAIL_BYTES, remove_folder, tail_of
from measuretwice.lab import read_lab

RUN = ("run", "mathis", "--trial", "7", "--duration", "2", "--seed", "5")
pytestmark = pytest.mark.kernel


def edited(folder: Path, lines: str) -> None:
    """A student's own copy of the router's script, which does this before all else."""
    assert call_lab("edit", "mathis", "--out", folder).returncode == 0
    script = folder / "mathis/edit/nodes/router.sh"
    first, rest = script.read_text().split("\n", 1)
    script.write_text(f"{first}\n{lines}\n{rest}")


def only_run(folder: Path) -> Path:
    runs = [path.parent for path in folder.glob("mathis/*/DONE")]
    assert len(runs) == 1
    return runs[0]


@pytest.mark.slow
def test_what_a_run_says_of_itself_is_ours(tmp_path: Path) -> None:
    """Or a later honest run would be taken to have the same packets."""
    edited(tmp_path, 'echo \'{"lab": "mathis", "trial": 8}\' >/run/measuretwice/plan.json || :')
    done = call_lab(*RUN, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    plan = json.loads((only_run(tmp_path) / "plan.json").read_text())
    assert plan["trial"] == 7
    assert plan["edited"]


@pytest.mark.slow
def test_a_failed_steps_last_line_is_text(tmp_path: Path) -> None:
    edited(tmp_path, "printf '\\033]0;TITLE\\007\\033[31mred\\n'; exit 1")
    done = call_lab(*RUN, "--out", tmp_path)
    assert done.returncode == 1
    assert "red" in done.stderr
    assert "\x1b" not in done.stderr
    assert "\x07" not in done.stderr


@pytest.mark.slow
def test_a_failed_step_names_no_file_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "evil.log").write_text(f"{SECRET}\n")
    edited(
        tmp_path,
        "(sleep 0; echo ../../../../evil evil >/run/measuretwice/raw/failed; kill -9 1) & exit 1",
    )
    done = call_lab(*RUN, "--out", tmp_path / "runs")
    assert SECRET not in done.stderr + done.stdout
    assert "a mistake of ours" not in done.stderr


def test_a_logs_end_is_all_that_is_read(tmp_path: Path) -> None:
    log = tmp_path / "console.txt"
    with log.open("wb") as file:
        file.truncate(2**33)
        file.seek(0, os.SEEK_END)
        file.write(b"the last line\n")
    assert tail_of(log).endswith("the last line\n")
    assert len(tail_of(log)) == TAIL_BYTES
    (tmp_path / "link").symlink_to(log)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert [tail_of(tmp_path / name) for name in ("link", "pipe", "nothing", "folder")] == [""] * 4


def test_folders_however_deep_are_removed(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
    remove_folder(tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A checkout of somebody else's, and beside it a secret of the machine's."""
    root = tmp_path / "stranger"
    shutil.copytree(ROOT / "labs", root / "labs")
    shutil.copytree(ROOT / "scripts", root / "scripts")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text(f"{SECRET}\n")
    return root


@pytest.mark.parametrize("name", ["scripts", "labs"])
def test_a_link_in_place_of_a_folder_is_not_shown(name: str, stranger: Path) -> None:
    """hostfs and Landlock both would follow it."""
    place = stranger / name
    if name == "labs":
        (stranger / "real").mkdir()
        place.rename(stranger / "real/labs")
        place.symlink_to(stranger / "real/labs")
    else:
        shutil.rmtree(place)
        place.symlink_to(stranger.parent / "outside")
    done = call_lab(*RUN, "--out", stranger.parent / "runs", MEASURETWICE_ROOT=str(stranger))
    assert done.returncode != 0
    assert f"{place}: isn't a folder" in done.stderr
    assert not list((stranger.parent / "runs").rglob("raw/*/*"))


def test_a_link_in_a_lab_is_refused(stranger: Path) -> None:
    (stranger / "labs/01-mathis/nodes/leak.sh").symlink_to(stranger.parent / "outside/secret")
    edit, testbed = ("edit", "mathis"), ("testbed", "mathis", "--fabric")
    for words in (RUN, edit, (*RUN, "--on", "browser"), testbed):
        out = stranger.parent / "runs"
        done = call_lab(*words, "--out", out, MEASURETWICE_ROOT=str(stranger))
        assert done.returncode == 2, done.stderr
        problem = "01-mathis/nodes/leak.sh: a link; a lab's files belong in its own folder"
        assert problem in done.stderr
        assert not out.exists() or SECRET not in "".join(
            path.read_text(errors="replace") for path in out.rglob("*") if path.is_file()
        )


def test_nor_a_link_among_scripts(stranger: Path) -> None:
    (stranger / "scripts/leak.sh").symlink_to(stranger.parent / "outside/secret")
    with pytest.raises(UserError, match=r"leak\.sh: a link"):
        guest_files(read_lab(stranger / "labs/01-mathis"), stranger)


def test_a_pipe_in_place_of_lab_toml_holds_nobody_up(stranger: Path) -> None:
    place = stranger / "labs/01-mathis/lab.toml"
    place.unlink()
    os.mkfifo(place)
    done = call_lab("list", MEASURETWICE_ROOT=str(stranger))
    assert "lab.toml: isn't a plain file" in done.stdout + done.stderr
