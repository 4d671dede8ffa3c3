"""Reading what people bring in a process apart, within the limits that grading has for hand-ins.

What can't be read, and what needs more than the limits, is said in a line that begins with its name, and the rest is read.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from measuretwice.base import limited_process
from measuretwice.base.errors import UserError
from measuretwice.base.limited_process import (
    LimitedProcess,
    allow_more_work,
    describe_unforeseen,
)
from measuretwice.base.paths import CHECKOUT
from measuretwice.course.findings import Reference
from measuretwice.course.wording import UNNAMED
from measuretwice.execute.batch import reference_host_state
from measuretwice.lab import Lab, Value, load_lab
from measuretwice.measure.host_state import HostState

# Of two thousand files, each with a reason why it isn't used, there is a hundredth of that to say.
MOST_ANSWER_BYTES = 64 * 2**20
NONSENSE = "not read: what was read of it is nothing that reading gives"


@dataclass(frozen=True)
class Part:
    """One thing to be read: what a line about it begins with, and the work, whose answer is of JSON's types."""

    name: str
    work: Callable[[Reference], Any]


@dataclass(frozen=True)
class Unread:
    """Why a part wasn't read, in a line."""

    why: str


def read_apart(root: Path, parts: Sequence[Part], scratch: Path) -> Iterator[Any]:
    """Yield each part's answer, or Unread, in order. Its temporary files go into `scratch`, for whoever ends it.

    What an answer holds comes from outside: whoever takes it checks it.
    """
    left = list(parts)
    while left:
        process = LimitedProcess(partial(_read, tuple(left), scratch))
        try:
            lives = True
            while left and lives:
                answer, lives = _answer(root, process, left.pop(0))
                yield answer
        finally:
            process.end()


def _answer(root: Path, process: LimitedProcess, part: Part) -> tuple[Any, bool]:
    """Return a part's answer, and whether the process goes on to the next."""
    deadline = time.monotonic() + limited_process.WALL_S
    while True:
        if not process.pipe.poll(max(0.0, deadline - time.monotonic())):
            return Unread(
                f"{part.name}: not read: took longer than {limited_process.WALL_S:.0f} s"
            ), False
        try:
            message = json.loads(process.pipe.recv_bytes(MOST_ANSWER_BYTES))
        except (EOFError, OSError):
            return Unread(f"{part.name}: {process.failure()}"), False
        except (ValueError, RecursionError):
            return Unread(f"{part.name}: {NONSENSE}"), False
        match message:
            case {"answer": answer}:
                return answer, True
            case {"problem": str(problem)}:
                return Unread(problem), True
            case {"lab": str(lab), "params": dict(params)}:
                asked = time.monotonic()
                process.pipe.send(_reference(lab, params))
                deadline += time.monotonic() - asked
            case _:
                return Unread(f"{part.name}: {NONSENSE}"), False


def _reference(lab: str, params: Mapping[str, Value]) -> HostState | str:
    """Return the nodes' state that the lab's scripts set, or why that isn't known.

    It is measured in this process: a virtual kernel needs more than the limits.
    """
    try:
        # The settings are checked by that lab's own schema; another root's scripts aren't run.
        return reference_host_state(CHECKOUT, load_lab(CHECKOUT, lab), params) or ""
    except UserError as error:
        return str(error)
    except Exception as error:
        # The settings are a stranger's.
        return describe_unforeseen(error)


def _read(parts: Sequence[Part], scratch: Path, pipe: Connection) -> None:
    """In the process: the work, part by part. The answers are JSON, not pickles."""
    tempfile.tempdir = str(scratch)

    def ask(part: Part, root: Path, lab: Lab, params: Mapping[str, Value]) -> HostState | None:
        pipe.send_bytes(json.dumps({"lab": lab.name, "params": dict(params)}).encode())
        # From who has started us: none of it is from outside.
        reply = pipe.recv()
        if isinstance(reply, str) and reply:
            raise UserError(f"{part.name}: {reply}")
        return reply or None

    for part in parts:
        allow_more_work()
        pipe.send_bytes(_said(part, partial(ask, part)))


def _said(part: Part, ask: Reference) -> bytes:
    try:
        return json.dumps({"answer": part.work(ask)}).encode()
    except UserError as error:
        problem = str(error)
    except Exception as error:
        problem = f"{part.name}: {describe_unforeseen(error)}"
    return json.dumps({"problem": problem}).encode()


def is_look(content: Any) -> bool:
    """Return whether it is what check's _look returns."""
    return (
        isinstance(content, dict)
        and all(_are_texts(content.get(name)) for name in ("refused", "runs", "unreadable"))
        and all(isinstance(content.get(name), bool) for name in ("empty", "live"))
    )


def is_document(content: Any) -> bool:
    """Is it a findings.Document?"""
    if not isinstance(content, dict):
        return False
    plan = content.get("plan", {})
    findings = content.get("findings")
    return (
        all(isinstance(content.get(name), str) for name in ("run", "lab"))
        and all(isinstance(content.get(name), dict) for name in ("params", "measured"))
        and all(_is_plain(value) for name in ("params", "measured") for value in content[name].values())
        and isinstance(plan, dict)
        and all(_is_plain(value) for value in plan.values())
        and isinstance(findings, list)
        and all(map(_is_finding, findings))
        and isinstance(content.get("used", {}), dict)
        and _are_texts([*content.get("used", {}).values()])
        and all(_are_texts(content.get(name, [])) for name in ("missing", "refused", "unread", "looked_at", "limits", "notes"))
        and _is_plain(content.get("case"))
    )  # fmt: skip


def _is_finding(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and content.get("severity") in UNNAMED
        and all(
            isinstance(content.get(name), str)
            for name in ("id", "measured", "expected", "why", "page", "off")
        )
        and isinstance(content.get("hint"), str | None)
        and _are_texts(content.get("consequences"))
    )


def _are_texts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(text, str) for text in content)


def _is_plain(content: Any) -> bool:
    return isinstance(content, int | float | str | None)
