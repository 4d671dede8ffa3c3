"""The site as students, instructors and a browser see it, built once a session."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import browsers_machine
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def lab_docs() -> Callable[..., subprocess.CompletedProcess[str]]:
    return _lab_docs


def _lab_docs(*arguments: str) -> subprocess.CompletedProcess[str]:
    """./lab docs, as this Python runs it."""
    return subprocess.run(
        [sys.executable, "-m", "measuretwice", "docs", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _built(temporary: pytest.TempPathFactory, name: str, *arguments: str) -> Path:
    """What these arguments build; once for all of pytest's workers."""
    base = temporary.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"site-{name}"
    folder.mkdir(exist_ok=True)
    out, done = folder / name, folder / "done"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            built = _lab_docs(*arguments, "--out", str(out))
            assert built.returncode == 0, built.stderr
            done.touch()
    return out


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the students' site, with the browser's machine where that can be had."""
    browsers_machine.ready()
    return _built(tmp_path_factory, "student", "--build")


@pytest.fixture(scope="session")
def instructor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the instructors' site."""
    return _built(tmp_path_factory, "instructor", "--build", "--instructor")


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The offline zip."""
    return _built(tmp_path_factory, "offline.zip", "--offline")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _served(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def served() -> Callable[[Path], AbstractContextManager[str]]:
    """Serves a folder, and says where."""
    return _served


@pytest.fixture(scope="session")
def address(student: Path) -> Iterator[str]:
    """Where the students' site is served."""
    with _served(student) as address:
        yield address


def chromium_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by playwright."""
    path = chromium_path()
    if path is None:
        pytest.skip("no chromium here: apt-get install chromium, or MEASURETWICE_SETUP=dev ./lab")
    api = pytest.importorskip("playwright.sync_api", reason="MEASURETWICE_SETUP=dev ./lab has it")
    with api.sync_playwright() as play:
        # As root, and in containers without user namespaces, Chromium's sandbox can't start.
        chromium = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
