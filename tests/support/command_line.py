"""The command line for tests: called in the test's own process, or started as ./lab starts it.

To start Python and to load the package takes half a second of a CPU, thousands of times longer
than most of what is asked for. So tests call the same function that ./lab hands over to, with the
words, the environment, the folder and the output of a process of its own. What can only be seen
of a process (signals, a PATH without a tool, the start itself) is started; that both say the
same of every command holds tests/unit/test_command_line.py.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from measuretwice.cli.main import main

ROOT = Path(__file__).parents[2]


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
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(["lab", *words], code or 0, said, complained)


def start_lab(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, as ./lab starts it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "measuretwice", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
