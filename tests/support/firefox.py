"""Debian's Firefox, driven by WebDriver BiDi: playwright drives a build of its own only, which can't be had here.

Just enough for a test that runs a page's own code: open an address, and evaluate an expression in it.
https://www.w3.org/TR/webdriver-bidi/
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from websockets.sync.client import ClientConnection, connect

START_S = 120
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
MAX_BYTES = 2**28


class Firefox:
    """A browser with one page."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._ids = connection, count(1)
        self._command("session.new", capabilities={})
        [context] = self._command("browsingContext.getTree")["contexts"]
        self._context = context["context"]

    def open(self, address: str) -> None:
        self._command(
            "browsingContext.navigate", context=self._context, url=address, wait="complete"
        )

    def evaluate(self, expression: str, timeout_s: float = 300) -> Any:
        """What an expression, or the promise that it is, comes to, as JSON has it."""
        wrapped = f"Promise.resolve({expression}).then(JSON.stringify)"
        reply = self._command(
            "script.evaluate",
            timeout_s,
            expression=wrapped,
            target={"context": self._context},
            awaitPromise=True,
        )
        assert reply["type"] == "success", reply.get("exceptionDetails", {}).get("text")
        value = reply["result"].get("value")
        return None if value is None else json.loads(value)

    def _command(self, method: str, timeout_s: float = 60, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            reply = json.loads(self._connection.recv(timeout=timeout_s))
            if reply.get("id") == number:
                assert reply["type"] == "success", reply.get("message")
                return dict(reply["result"])


def firefox_path() -> str | None:
    return next((path for name in ("firefox-esr", "firefox") if (path := shutil.which(name))), None)


@contextmanager
def started_firefox(path: str) -> Iterator[Firefox]:
    """Start it without a window and with a profile of its own, which goes with it."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-firefox-") as profile:
        process = subprocess.Popen(
            [path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "HOME": profile, "MOZ_HEADLESS": "1"},
        )  # fmt: skip
        try:
            assert process.stderr is not None
            address = next(found[1] for line in process.stderr if (found := LISTENS.search(line)))
            with connect(
                f"{address}/session", max_size=MAX_BYTES, open_timeout=START_S
            ) as connection:
                yield Firefox(connection)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
