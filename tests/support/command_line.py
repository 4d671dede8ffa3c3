"""The command line for tests: called in the test's own process, or started as ./lab starts it.

To start Python and to load the package takes half a second of a CPU, thousands of times longer
than most of what is asked for. So tests call the same function that ./lab hands over to, with the
words, the environment, the folder and the output of a process of its own. What can only be seen
of a process (signals, a PATH without a tool, the start itself) is started; that both say the
same of every command holds tests/unit/test_command_line.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from measuretwice.cli.main import main

ROOT = Path(__file__).parents[2]
LAB = (sys.executable, "-P", "-m", "measuretwice")


def call_lab(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Call the command line with these words, in this process; `cwd` and `environment` for so long."""
    words = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["lab", *words])
        patch.setattr(sys, "stdin", io.StringIO())
        patch.chdir(cwd or Path.cwd())
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code
    assert code is None or isinstance(code, int), code
    output, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(["lab", *words], code or 0, output, complained)


def start_lab(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, as ./lab starts it."""
    return run_program(*LAB, *arguments, cwd=cwd, **environment)


def run_program(
    *words: str | Path, cwd: Path | None = None, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; it finds the package, and `given` on its standard input."""
    return subprocess.run(
        list(map(str, words)),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def begin_lab(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start ./lab in a process group of its own, and don't wait for its end."""
    return subprocess.Popen(
        [*LAB, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition; AssertionError where it doesn't come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def lab_on_terminal(
    *arguments: str | Path,
    answers: Sequence[tuple[str, str]] = (),
    columns: int = 80,
    lines: int = 1000,
    **environment: str,
) -> tuple[int, str]:
    """Start ./lab on a terminal of this size; the exit code, and what the terminal got.

    `answers`: what to wait for, and the keys to press then. A line's end is a newline; colours are
    left out.
    """
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        [*LAB, *map(str, arguments)],
        env={
            **{name: os.environ[name] for name in os.environ if name not in ("COLUMNS", "LINES")},
            "PYTHONPATH": str(ROOT / "src"),
            "TERM": "xterm",
            "NO_COLOR": "1",
            **environment,
        },
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        # It's their terminal then, and a Ctrl-C among the keys reaches them.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(its)
    got, to_answer = b"", list(answers)
    # Linux answers a read with EIO once nobody has the other end open.
    with contextlib.suppress(OSError):
        while select.select([ours], [], [], 120)[0] and (part := os.read(ours, 65536)):
            got += part
            if to_answer and to_answer[0][0].encode() in got:
                os.write(ours, to_answer.pop(0)[1].encode())
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", got.decode())
    return process.wait(timeout=60), text.replace("\r\n", "\n")
