"""What of a machine a walled program must not reach, and a machine without Landlock."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from command_line import run_program

ROOT = Path(__file__).parents[2]
ATTEMPTS = ROOT / "tests/security/attempts.sh"
SECRET = "secret-of-this-machine"


@dataclass(frozen=True)
class Machine:
    """What of the machine is to stay as it is: a folder with a secret, a process, listeners. And the run's folder."""

    outside: Path
    run: Path
    victim: subprocess.Popen[bytes]
    port: int
    name: str

    def script(self) -> str:
        settings = f"PORT={self.port}\nVICTIM={self.victim.pid}\nSOCKET_NAME={self.name}\n"
        return f"OUTSIDE={shlex.quote(str(self.outside))}\n{settings}{ATTEMPTS.read_text()}"


@contextmanager
def machine_outside(tmp_path: Path) -> Iterator[Machine]:
    """Put up what is to stay as it is, below this folder."""
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    run.mkdir()
    (outside / "secret").write_text(f"{SECRET}\n")
    # Whoever made the run's folder may have put links there; the guest mustn't follow them on this machine.
    (run / "link").symlink_to(outside)
    (run / "file-link").symlink_to(outside / "secret")
    name = f"measuretwice-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as by_path,
        subprocess.Popen(["sleep", "300"]) as victim,
    ):
        abstract.bind(f"\0{name}")
        abstract.listen()
        with contextlib.chdir(outside):
            by_path.bind("socket")
        by_path.listen()
        try:
            yield Machine(outside, run, victim, listener.getsockname()[1], name)
        finally:
            victim.kill()


def run_python(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python that may import the package and this module."""
    paths = f"{ROOT / 'src'}:{ROOT / 'tests/support'}"
    return run_program(sys.executable, "-P", "-c", program, *words, PYTHONPATH=paths)


def without_landlock() -> None:
    """This process and all that it starts find a kernel without Landlock: its system calls aren't there."""
    jump, load, back = 0x15, 0x20, 0x06
    first, last, missing = 444, 446, 0x00050000 | 38  # SECCOMP_RET_ERRNO, ENOSYS
    steps = [
        (load, 0, 0, 0),
        *((jump, last - number + 1, 0, number) for number in range(first, last + 1)),
        (back, 0, 0, 0x7FFF0000),
        (back, 0, 0, missing),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HL", len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
