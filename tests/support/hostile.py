"""Files that somebody damaged on purpose, made of real ones in small steps; and a watch over who reads them.

A test says which files a reader is made for, and what it may do with any other: return a value, or raise the error that
it documents. `explore` tries many; `make test` the same few each time, `make test-nightly` a thousand others each night.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
LABS = ("calibrate", "mathis", "buffers", "scale", "variants", "queues")
FEW, MANY = 12, 1000
# Of the processor's time, for one file: whoever needs more hangs.
MOST_S = 10
# Of an error's text.
MOST_CHARACTERS = 8000
amounts = pytest.mark.parametrize(
    "amount",
    [
        pytest.param("few", id="few"),
        pytest.param(
            "many",
            id="many",
            marks=[pytest.mark.slow, pytest.mark.nightly("the same with a dozen files: [few]")],
        ),
    ],
)

# As they stand in a file of JSON.
LEAVES = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + 400 * "0", "9" * 5000, "-0", "-0.0", "0", "-1", "0.1", "1e-320",
    "1e300", "4294967296", "9223372036854775808", "-9223372036854775809", "true", "false", "null", '""', '"$(id)"', '"`id`"',
    '"; id #"', r'"\u001b]0;x\u0007"', r'"\u0000"', r'"\ud800"', r'"\u202egnp"', r'"a\nb"', '"../../x"', '"/etc/passwd"', '"nan"',
    '"1e999"', '"٣"', '"1_0"', '"0x10"', '" 5"', '"=rtt_ms"', '"--help"', '"<script>"', '"{0.__class__}"', '"%s%n"',
    '"' + "x" * 100_000 + '"', "[]", "{}", "[[]]", "[null]", '[""]', "[1, 2]", '{"": null}', '{"a": {"b": [NaN]}}',
    "[" * 500 + "]" * 500, "[" * 2000 + "]" * 2000, '{"a":' * 2000 + "1" + "}" * 2000, "[" + "0," * 2000 + "0]",
)  # fmt: skip
KEYS = (
    "bash_env", "BASH_ENV", "env", "path", "ld_preload", "ifs", "ps4", "shellopts", "pythonpath", "__class__", "__init__", "self",
    "", " ", "a b", "x=$(id)", "../x", "folder", "run_dir", "findings", "params", "edited", "case", "\ud800", "\x1b[2J", "\n", "0",
)  # fmt: skip
NUMBERS = (
    "0", "-0", "-1", "1.5", "nan", "inf", "-nan", "1e999", "1e-320", "9" * 20, "9" * 39, "9" * 400, "9" * 5000, "0x10", "1_0", "٣",
    "²", "", ".", "1.2.3", "1,5", "1e", "00", "-", "+", "1e300", "NaN", "2147483648", "18446744073709551616",
)  # fmt: skip
PIECES = (
    b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b]0;x\x07", b"\xc3", b"\xed\xa0\x80", b"\n", b"\r", b"\r\n", b'"', b"'", b"`",
    b",", b";", b"\t", b"[", b"{", b"}", b"<", b"=", b"#", b"# t=", b"-", b" " * 3000, b"(" * 3000, b"[" * 3000, b"\\", b"\x85",
    "\N{LINE SEPARATOR}".encode(), "\N{RIGHT-TO-LEFT OVERRIDE}".encode(), "é".encode("latin-1"), b"PK\x03\x04", b"\x1f\x8b",
)  # fmt: skip
TREE = ("leaf", "drop", "rename", "twice", "add", "swap")
IN_LINES = ("drop line", "double line", "swap lines", "cut line")
TEXT = ("number", *IN_LINES, "insert", "delete", "truncate", "flip", "other file")


@dataclass(frozen=True)
class Step:
    """One damage: `where` counts places of its sort and begins anew behind the last."""

    how: str
    where: int
    what: int


@dataclass(frozen=True)
class Hostile:
    """A file's content, and of which file by which steps it came about: that is what a failed test shows."""

    content: bytes
    name: str = "as it is"
    steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        if not self.steps:
            return f"Hostile({self.content[:3000]!r})"
        return f"<{self.name} after {self.steps}: {self.content[:600]!r}>"


def files(
    bases: Mapping[str, bytes], *, most: int = 4, finish: Callable[[bytes], bytes] | None = None
) -> st.SearchStrategy[Hostile]:
    """Damaged files of these, by name, and some that never were any. `finish` is what an author of such a file would
    do at the end, as to compute a digest anew; it is left out at times."""
    known = sorted(bases)

    def make(name: str, steps: list[Step], finished: bool) -> Hostile:
        content = damaged(bases[name], steps, bases)
        if finished and finish:
            content = finish(content)
        return Hostile(content, name, (*steps, Step("finish", 0, 0)) if finished else tuple(steps))

    step = st.builds(
        Step, st.sampled_from(TREE + TEXT), st.integers(0, 2**20), st.integers(0, 2**10)
    )
    in_tree = st.builds(Step, st.sampled_from(TREE), st.integers(0, 2**20), st.integers(0, 2**10))
    steps = st.one_of(
        st.lists(in_tree, min_size=1, max_size=most), st.lists(step, min_size=1, max_size=most)
    )
    finished = st.booleans() if finish else st.just(False)
    made = st.builds(make, st.sampled_from(known), steps, finished)
    never = st.builds(Hostile, st.binary(max_size=300), st.sampled_from(known))
    return st.one_of(*[made] * 7, never)


def one_damaged(
    bases: Mapping[str, bytes], *, finish: Callable[[bytes], bytes] | None = None
) -> st.SearchStrategy[Hostile]:
    """One of these files by its name, each as often as any other; it is damaged by itself."""
    return st.sampled_from(sorted(bases)).flatmap(
        lambda name: files({name: bases[name]}, finish=finish)
    )


def damaged(content: bytes, steps: Sequence[Step], others: Mapping[str, bytes]) -> bytes:
    """Return a content after these steps. Those of a tree are done first, where it is one."""
    content = in_tree(content, [step for step in steps if step.how in TREE])
    for step in steps:
        if step.how in TEXT:
            content = in_text(content, step, others)
    return content


# --- trees ----------------------------------------------------------------------------------------

# What stands in a tree for a text of LEAVES, and before a key that stands twice.
_MARK, _TWICE = "\ue000", "\ue001"


def in_tree(content: bytes, steps: Sequence[Step]) -> bytes:
    """Return JSON with its tree damaged; where it is none, the text with numbers replaced."""
    if not steps:
        return content
    try:
        tree = {"": json.loads(content)}
    except (ValueError, RecursionError):
        for step in steps:
            content = in_text(content, Step("number", step.where, step.what), {})
        return content
    for step in steps:
        places = list(_places(tree))
        parent, key = places[step.where % len(places)]
        _change(parent, key, step)
        tree.setdefault("", f"{_MARK}{step.what % len(LEAVES)}{_MARK}")
    text = json.dumps(tree[""])
    text = re.sub(r'"\\ue000(\d+)\\ue000"', lambda found: LEAVES[int(found[1])], text)
    return text.replace("\\ue001", "").encode("utf-8", "surrogatepass")


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a tree, in order: what holds it, and the key or number there."""
    items: Iterable[tuple[Any, Any]] = node.items() if isinstance(node, dict) else ()
    if isinstance(node, list):
        items = enumerate(node)
    for key, child in list(items):
        yield node, key
        yield from _places(child)


def _change(parent: Any, key: Any, step: Step) -> None:
    leaf = f"{_MARK}{step.what % len(LEAVES)}{_MARK}"
    name = KEYS[step.what % len(KEYS)]
    here = parent[key]
    if step.how == "leaf":
        parent[key] = leaf
    elif step.how == "drop":
        del parent[key]
    elif step.how == "swap":
        others = list(parent) if isinstance(parent, dict) else range(len(parent))
        other = others[step.what % len(others)]
        parent[key], parent[other] = parent[other], parent[key]
    elif step.how == "add" and isinstance(here, dict):
        here[name] = leaf
    elif step.how == "add" and isinstance(here, list):
        here.append(here[0] if here and step.what % 2 else leaf)
    elif isinstance(parent, dict) and step.how == "rename":
        parent[name] = parent.pop(key)
    elif isinstance(parent, dict) and step.how == "twice":
        parent[_TWICE + key] = leaf
    else:
        parent[key] = leaf


# --- texts and bytes --------------------------------------------------------------------------------


def in_text(content: bytes, step: Step, others: Mapping[str, bytes]) -> bytes:
    """Return a content with one step of TEXT done to it."""
    if step.how == "number":
        found = list(re.finditer(rb"\d+(?:\.\d+)?", content))
        if not found:
            return content
        place = found[step.where % len(found)]
        number = NUMBERS[step.what % len(NUMBERS)].encode()
        return content[: place.start()] + number + content[place.end() :]
    if step.how in IN_LINES:
        return b"".join(_in_lines(content.splitlines(keepends=True), step))
    at = step.where % (len(content) + 1)
    if step.how == "insert":
        return content[:at] + PIECES[step.what % len(PIECES)] + content[at:]
    if step.how == "delete":
        return content[:at] + content[at + 1 + step.what % 50 :]
    if step.how == "truncate":
        return content[:at]
    if step.how == "flip" and at < len(content):
        return content[:at] + bytes([content[at] ^ (1 << step.what % 8)]) + content[at + 1 :]
    if step.how == "other file" and others:
        other = others[sorted(others)[step.what % len(others)]]
        return content[:at] + other[at:]
    return content


def _in_lines(lines: list[bytes], step: Step) -> list[bytes]:
    if not lines:
        return lines
    at, other = step.where % len(lines), step.what % len(lines)
    if step.how == "drop line":
        del lines[at]
    elif step.how == "double line":
        lines.insert(other, lines[at])
    elif step.how == "swap lines":
        lines[at], lines[other] = lines[other], lines[at]
    elif step.how == "cut line":
        lines[at] = lines[at][: len(lines[at]) // 2]
    return lines


# --- trying -----------------------------------------------------------------------------------------


def explore(
    amount: str,
    strategy: st.SearchStrategy[Any],
    check: Callable[[Any], None],
    *,
    known: Sequence[Any] = (),
    few: int = FEW,
    many: int = MANY,
) -> None:
    """Check what is `known` to have gone wrong once, then many of the strategy's: with `few`, the same each time."""
    for example in known:
        check(example)
    nightly = amount == "many"
    tried = given(strategy)(check)
    settings(
        max_examples=many if nightly else few,
        derandomize=not nightly,
        database=None,
        deadline=None,
        print_blob=True,
        # To make a failing example smaller takes many more of them: that is for the night.
        phases=(Phase.generate, Phase.shrink) if nightly else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )(tried)()


# --- watching ---------------------------------------------------------------------------------------


class Escape(BaseException):
    """What no reader may do. No `except Exception` catches it."""


_STARTS = frozenset(
    "subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty pty.spawn os.startfile "
    "socket.connect socket.bind socket.sendto socket.getaddrinfo socket.gethostbyname urllib.Request "
    "pickle.find_class webbrowser.open".split()
)  # fmt: skip
# Which arguments are paths, and which the folders that these are meant from.
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.mkdir": ((0, 2),), "os.remove": ((0, 1),), "os.rmdir": ((0, 1),), "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)), "os.symlink": ((1, 2),), "os.chmod": ((0, 2),), "os.chown": ((0, 3),),
    "os.utime": ((0, 3),), "os.truncate": ((0, None),), "shutil.move": ((0, None), (1, None)),
}  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# What may be read beside the folder: the checkout, Python with its packages, and what the system says of itself.
_OF_PYTHON = (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__))
_OF_THE_SYSTEM = ("/proc", "/dev/null", "/usr/share/zoneinfo")
_READABLE = tuple({os.path.realpath(path) for path in (ROOT, *_OF_PYTHON, *_OF_THE_SYSTEM)})
_watched: list[Path] = []
_hooked: list[bool] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    if event in _STARTS:
        raise Escape(f"{event}{arguments!r:.200}")
    if event == "open":
        path, mode, flags = arguments
        if isinstance(path, int) or path is None:
            return
        writes = bool((flags or 0) & _WRITING) or any(sign in (mode or "") for sign in "wax+")
        _check_path(event, path, None, () if writes else _READABLE)
    for at, folder in _CHANGES.get(event, ()):
        _check_path(event, arguments[at], None if folder is None else arguments[folder], ())


def _check_path(event: str, path: Any, folder: int | None, others: tuple[str, ...]) -> None:
    if isinstance(path, int):
        return
    text = os.fsdecode(path)
    if folder is not None and folder >= 0 and not os.path.isabs(text):
        text = f"/proc/self/fd/{folder}/{text}"
    # Where it is, whatever links lead there; of what is removed or made, the folder that it is in.
    real = os.path.join(os.path.realpath(os.path.dirname(text) or "."), os.path.basename(text))
    if event == "open":
        real = os.path.realpath(text)
    # What shutil.rmtree looks into it names by its last part alone.
    if others and not os.path.isabs(text):
        return
    inside = (os.path.realpath(_watched[-1]), *others)
    if not any(real == place or real.startswith(f"{place}{os.sep}") for place in inside):
        raise Escape(f"{event} of {real}")


def _hang(*_: object) -> None:
    raise Escape(f"more than {MOST_S} s of work")


@contextmanager
def watched(folder: Path, *errors: type[Exception]) -> Iterator[None]:
    """What runs in here may read and write below `folder`, and read the checkout. It may raise `errors`, whose text
    is one line; anything else fails the test: another error, another file, a process, a connection, a hang."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    before = tempfile.tempdir, sys.dont_write_bytecode, signal.signal(signal.SIGVTALRM, _hang)
    tempfile.tempdir, sys.dont_write_bytecode = str(folder), True
    _watched.append(folder)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        yield
    except errors as error:
        _check_line(error)
    except Escape as escape:
        raise AssertionError(str(escape)) from escape
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _watched.pop()
        tempfile.tempdir, sys.dont_write_bytecode, handler = before
        signal.signal(signal.SIGVTALRM, handler)


def _check_line(error: Exception) -> None:
    kind, line = type(error).__name__, str(error)
    assert line, f"{kind} says nothing"
    assert "\n" not in line, f"{kind} in several lines: {line[:300]!r}"
    assert len(line) < MOST_CHARACTERS, f"{kind} of {len(line)} characters: {line[:300]!r}"
