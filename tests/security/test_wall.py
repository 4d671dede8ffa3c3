"""The wall around the virtual kernel's own process, tried from within: what could somebody do who has taken it over?

In seccomp mode a guest's program can reach the kernel's memory (the kernel's own stub.c says how), so that what this
process may ask of the machine is what counts. The wall's code is compiled out of the patch into a program that raises
it around itself and then tries everything a process may.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from outside import ROOT, SECRET, Machine, run_python

from measuretwice.base import landlock

PATCH = next(iter(ROOT.glob("scripts/kernel/confine/0001-*.patch")))
# What the kernel's own headers give that file: marks for the linker, and its words on the console.
HEADERS = {
    "init.h": "#define __init\n"
    "#define __uml_setup(name, function, help) int setup_wall(char *line, int *add) { return function(line, add); }\n",
    "kern_util.h": "",
    "os.h": "#include <stdio.h>\n#define os_warn(...) fprintf(stderr, __VA_ARGS__)\n",
}


def added_by_patch(name: str) -> str:
    """A file that the patch adds, as it is in the kernel's source."""
    part = re.search(
        rf"^\+\+\+ b/\S*/{re.escape(name)}\n(.*?)(?=^--- |\Z)", PATCH.read_text(), re.M | re.S
    )
    assert part, name
    return "\n".join(line[1:] for line in part[1].splitlines() if line.startswith("+")) + "\n"


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no compiler")
    folder = tmp_path_factory.mktemp("probe")
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    for name in ("wall.c", "wall.h"):
        (folder / name).write_text(added_by_patch(name))
    subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-D_LARGEFILE64_SOURCE", "-Wall", "-O1", "-I", folder, "-o", folder / "probe",
         folder / "wall.c", Path(__file__).with_name("probe.c")],
        check=True,
    )  # fmt: skip
    return folder / "probe"


def run_probe(probe: Path, machine: Machine, *, with_landlock: bool) -> str:
    read = machine.run.parent / "read"
    read.mkdir()
    (read / "file").write_text("to be read\n")
    wall = f"at:{machine.outside.parent},ro:{read},rw:{machine.run},bytes:1000000,files:100"
    words = [
        str(probe), str(read), str(machine.run), str(machine.outside), str(machine.port), machine.name,
        str(machine.victim.pid), wall, *(["landlock"] if with_landlock else []),
    ]  # fmt: skip
    start = "import os, sys, outside\n"
    if not with_landlock:
        start += "outside.without_landlock()\n"
    done = run_python(f"{start}os.execv(sys.argv[1], sys.argv[1:])", *words)
    assert done.stdout.endswith("all tried\n"), done
    return done.stdout


def check(output: str, machine: Machine) -> None:
    assert [line for line in output.splitlines() if line.endswith(": OUT")] == []
    for allowed in ("read", "write", "stream pair", "thread"):
        assert f"{allowed}: may" in output
    assert machine.victim.poll() is None
    assert (machine.outside / "secret").read_text() == f"{SECRET}\n"
    assert sorted(path.name for path in machine.outside.iterdir()) == ["secret", "socket"]
    assert not [path for path in machine.run.iterdir() if path.lstat().st_mode & 0o6000]
    assert (machine.run.parent / "read/file").stat().st_mode & 0o777 == 0o644


def test_who_takes_the_process_over_gets_nowhere(probe: Path, machine: Machine) -> None:
    if not landlock.version():
        pytest.skip("this machine's kernel has no Landlock")
    output = run_probe(probe, machine, with_landlock=True)
    check(output, machine)
    assert output.count(": held") > 50


def test_without_landlock_the_filter_stays(probe: Path, machine: Machine) -> None:
    """Then files are open to whoever takes the process over (SECURITY.md says so); the rest isn't."""
    output = run_probe(probe, machine, with_landlock=False)
    child = "a child: read outside: OUT\n"
    assert child in output
    check(output.replace(child, ""), machine)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("rw", "isn't understood"),
        ("ro:relative", "isn't understood"),
        ("bytes:many", "needs a number"),
    ],
)
def test_a_wall_that_cant_be_raised_is_no_kernel(
    probe: Path, tmp_path: Path, words: str, why: str
) -> None:
    command = [probe, tmp_path, tmp_path, tmp_path, "1", "x", "1", words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert why in done.stderr
