"""Recorded runs that a page replays: their data as scripts, which it fetches when they are asked for.

A page from a file may fetch no data, but scripts: so each set is one, `assets/data/NN-<lab>/<set>.js`. They are
made once and kept in build/. Numbers are whole, each but the first as what it has more than the one before it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.paths import PACKAGE
from measuretwice.runs.recorded import SET_FILE
from measuretwice.runs.result import Result
from measuretwice.site.words.packets import packets_data
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.traces import traces_data

# Sets by name: of flows before queues that are looked at every few milliseconds, and of signatures.
PACKETS, SIGNATURES = "packets-", ("signatures", "signature-of-highspeed")


def replays(words: LabWords) -> dict[str, Path]:
    """Return the scripts with what a lab's pages replay, by name."""
    found = {name: _kept(words, name, [name], packets_data) for name in packet_sets(words)}
    known = [name for name in SIGNATURES if _is_recorded(words, name)]
    if known:
        found[SIGNATURES[0]] = _kept(words, SIGNATURES[0], known, traces_data)
    return found


def replay(words: LabWords, name: str) -> dict[str, Any]:
    """Return what the script of that name holds; UserError where its set isn't recorded."""
    known = replays(words)
    if name not in known:
        raise UserError(f"{words.lab.name}: there is no recorded set {name!r} to be replayed")
    text = known[name].read_text(encoding="utf-8")
    return dict(json.loads(text[text.index("=", text.index("]")) + 1 : -2]))


def script_of(words: LabWords, name: str) -> str:
    """Return a script's address, from the site's assets on."""
    return f"data/{words.lab.folder.name}/{name}.js"


def packet_sets(words: LabWords) -> list[str]:
    """Return the recorded sets that can be replayed packet by packet, in the lab's order."""
    names = [each.id for each in words.lab.file.recordings if each.id.startswith(PACKETS)]
    return [name for name in names if _is_recorded(words, name)]


def _is_recorded(words: LabWords, name: str) -> bool:
    return (words.set_folder(name) / SET_FILE).is_file()


Make = Callable[[LabWords, Sequence[Result]], dict[str, Any]]


def _kept(words: LabWords, name: str, sets: Sequence[str], make: Make) -> Path:
    """The script of that name, made where the one that is kept is of other runs or other code."""
    digest = hashlib.sha256(_code())
    for each in sets:
        digest.update((words.set_folder(each) / SET_FILE).read_bytes())
    folder = words.root / "build/replays" / words.lab.folder.name
    kept = folder / f"{name}-{digest.hexdigest()[:16]}.js"
    if not kept.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        data = make(words, [result for each in sets for result in words.results_of(each)])
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        part = kept.with_suffix(".part")
        part.write_text(f'(window.measureTwiceData??={{}})["{name}"]={text};\n', encoding="utf-8")
        for old in folder.glob(f"{name}-*.js"):
            if re.fullmatch(r"[0-9a-f]{16}", old.stem.removeprefix(f"{name}-")):
                old.unlink()
        part.rename(kept)
    return kept


@cache
def _code() -> bytes:
    here = Path(__file__)
    files = [
        here,
        *(here.with_name(f"{name}.py") for name in ("packets", "traces")),
        PACKAGE / "measure/connections.py",
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()
