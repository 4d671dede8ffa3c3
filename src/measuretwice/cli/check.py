"""`lab check`: what is wrong with runs, ours or those that a person brings. A process apart reads them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measuretwice.backends.registry import what_differs
from measuretwice.base.apart import unforeseen
from measuretwice.base.errors import UserError
from measuretwice.base.signs import without_controls
from measuretwice.cli import terminal
from measuretwice.cli.archives import Unpacked, lay_open, places_for
from measuretwice.cli.case_books import CaseBooks, after_live
from measuretwice.cli.diagnose import (
    UNNAMED,
    Meant,
    Reference,
    check_brought,
    check_live,
    check_one,
    check_together,
    taken,
    told,
)
from measuretwice.cli.reading import NONSENSE, Part, Unread, read_apart
from measuretwice.live.session import FACTS
from measuretwice.measure import brought as bring
from measuretwice.runs.folder import PLAN, runs_in
from measuretwice.stats.intervals import binomial_interval

# So many files that can't be used are named; of the others only how many there are.
MOST_REFUSED = 3
Document = dict[str, Any]


def check_command(
    root: Path,
    targets: tuple[Path, ...],
    *,
    lab_name: str | None,
    trial: str | None,
    changes: tuple[str, ...],
    hint: int | None,
    as_json: bool,
) -> int:
    """Check and print; return 0 without findings, 1 with, 2 where a part of it can't be read. Where nothing can be,
    that is a UserError."""
    # What is called wrongly is said before anything is read.
    for target in targets:
        if problem := bring.unreadable(target):
            raise UserError(f"{target}: {problem}")
    with TemporaryDirectory(prefix="measuretwice-check-") as scratch:
        places = places_for(targets, Path(scratch))
        if hint and places.archives:
            print(
                "lab: an archive's lab book stays as it is; unpack it to note hints",
                file=sys.stderr,
            )
        meant = Meant(lab_name, trial, changes)
        try:
            return _Check(root, Path(scratch), places, hint, as_json).run(targets, meant)
        except UserError as error:
            raise UserError(places.named(str(error)), error.exit_code) from None


class _Check:
    """One call of the command. `unread` are the lines about what can't be read, as they come up."""

    def __init__(
        self, root: Path, scratch: Path, places: Unpacked, hint: int | None, as_json: bool
    ) -> None:
        self.root, self.scratch, self.places = root, scratch, places
        self.hint, self.as_json = hint, as_json
        self.unread: list[str] = []

    def run(self, targets: tuple[Path, ...], meant: Meant) -> int:
        looked = self._looked(targets)
        shut = [line for found in looked.values() for line in found["shut"]]
        self._say(f"{line}; it is left out" for line in shut)
        runs = [Path(run) for found in looked.values() for run in found["runs"]]
        books = CaseBooks(self.root, runs)
        if not self.as_json and not self.places.archives:
            books.before(self.hint)
        others = {place: found for place, found in looked.items() if not found["runs"]}
        held = self._with_files(others, bool(runs))
        live = [place for place in held if others[place]["live"]]
        brought = [place for place in held if place not in live]
        parts = [self._part(check_one, run) for run in runs]
        parts += [self._part(check_live, folder) for folder in live]
        if brought:
            parts.append(self._brought(brought, meant))
        # What judging needs is loaded once, here, and not by each process that reads.
        binomial_interval(10, 0.5, 0.9)
        documents = self._read(parts, _is_document)
        of_runs = [document for document in documents[: len(runs)] if document is not None]
        of_runs += self._together(of_runs)
        rest = documents[len(runs) :]
        found = of_runs + [document for document in rest if document is not None]
        if not found and self.unread:
            self._say(self.unread[:-1])
            raise UserError(self.unread[-1])
        unread_runs = [
            str(run) for run, document in zip(runs, documents, strict=False) if document is None
        ]
        judged = self._print(found, books, unread_runs)
        if not self.as_json:
            for folder, document in zip(live, rest, strict=False):
                if document is not None:
                    after_live(self.root, folder, document)
        # Last, where it is seen, and after what was printed before.
        sys.stdout.flush()
        self._say(self.unread)
        if any(document["findings"] for document in judged):
            return 1
        return 2 if shut or self.unread else 0

    def _looked(self, targets: tuple[Path, ...]) -> dict[Path, Document]:
        """What stands where something was named, by its place; archives are laid open."""
        pairs = list(zip(targets, self.places.targets, strict=True))
        parts = [Part(str(target), partial(_look, target, place)) for target, place in pairs]
        found = {}
        for (_, place), looked in zip(pairs, self._read(parts, _is_look), strict=True):
            if looked is not None:
                self._say(f"{line}; the rest is taken" for line in looked["refused"])
                found[place] = looked
        return found

    def _part(self, check: Callable[..., Document], folder: Path) -> Part:
        def work(reference_of: Reference) -> Document:
            return check(self.root, folder, self.hint, reference_of)

        return Part(self.places.named(str(folder)), work)

    def _brought(self, brought: list[Path], meant: Meant) -> Part:
        """All files that are no run's are of one, which who brings them knows."""
        more = f" and {len(brought) - 1} more" if len(brought) > 1 else ""

        def work(_: Reference) -> Document:
            return check_brought(self.root, brought, meant, self.hint)

        return Part(f"{self.places.named(str(brought[0]))}{more}", work)

    def _read(self, parts: list[Part], is_known: Callable[[Any], bool]) -> list[Document | None]:
        """Each part's answer, looked at as what comes from outside; None where there is none to use."""
        answers: list[Document | None] = []
        for part, answer in zip(
            parts, read_apart(self.root, parts, self.scratch), strict=True
        ):  # fmt: skip
            usable = not isinstance(answer, Unread) and is_known(answer)
            answers.append(answer if usable else None)
            if not usable:
                why = answer.why if isinstance(answer, Unread) else f"{part.name}: {NONSENSE}"
                self.unread.append(self.places.named(why))
        return answers

    def _together(self, documents: list[Document]) -> list[Document]:
        try:
            return check_together(self.root, documents, self.hint)
        except UserError as error:
            self.unread.append(str(error))
        except Exception as error:
            # Their values are strangers'.
            self.unread.append(f"{len(documents)} runs taken together: {unforeseen(error)}")
        return []

    def _with_files(self, others: dict[Path, Document], runs: bool) -> list[Path]:
        """Those of the others that hold anything; an empty folder is only named, but for a UserError where nothing
        else is there."""
        empty = [
            f"{place}: an empty folder, nothing was measured there"
            for place, found in others.items()
            if found["empty"]
        ]
        held = [place for place, found in others.items() if not found["empty"]]
        alone = empty.pop() if empty and not (held or runs or self.unread) else ""
        self._say(f"{line}; it is left out" for line in empty)
        if alone:
            raise UserError(alone)
        return held

    def _print(
        self, documents: list[Document], books: CaseBooks, unread: list[str]
    ) -> list[Document]:
        """Print, and return those that count: a solved case's earlier runs are no fault any more."""
        if self.as_json:
            print(json.dumps(self.places.named_in(documents), indent=2))
            return documents
        try:
            earlier = books.earlier(documents, unread)
        except UserError as error:
            self.unread.append(self.places.named(str(error)))
            books, earlier = CaseBooks(self.root, []), set()
        documents = [document for document in documents if document["run"] not in earlier]
        for document in documents:
            _print(document, self.hint, self.places)
        books.after(documents, unread)
        return documents

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            words = " ".join(self.places.named(line).split())
            print(f"lab: {without_controls(words)}", file=sys.stderr)


def _look(target: Path, place: Path, _: Reference) -> Document:
    """What stands where something was named; if that is an archive, in `place` once it is laid open."""
    refused = lay_open(target, place) if place != target else []
    runs = runs_in(place)
    return {
        "refused": refused,
        "runs": [str(run) for run in runs],
        "shut": _shut(place) if runs else [],
        "empty": place.is_dir() and not any(names for _, _, names in os.walk(place)),
        "live": (place / FACTS).is_file(),
    }


def _shut(target: Path) -> list[str]:
    """The folders beside runs that can't be looked into, with the reason. What is inside of a run, that run names."""
    found: list[str] = []

    def refuse(error: OSError) -> None:
        found.append(f"{error.filename}: can't be read ({error.strerror})")

    for _, folders, names in os.walk(target, onerror=refuse):
        if PLAN in names:
            folders.clear()
        folders.sort()
    return found


def _is_look(content: Any) -> bool:
    """Is it what _look returns?"""
    return (
        isinstance(content, dict)
        and all(_are_texts(content.get(name)) for name in ("refused", "runs", "shut"))
        and all(isinstance(content.get(name), bool) for name in ("empty", "live"))
    )


def _is_document(content: Any) -> bool:
    """Is it a document as check_one and its neighbours make it?"""
    if not isinstance(content, dict):
        return False
    plan = content.get("plan", {})
    findings = content.get("findings")
    return (
        all(isinstance(content.get(name), str) for name in ("run", "lab"))
        and all(isinstance(content.get(name), dict) for name in ("params", "measured"))
        and all(_is_plain(each) for name in ("params", "measured") for each in content[name].values())
        and isinstance(plan, dict)
        and all(_is_plain(each) for each in plan.values())
        and isinstance(findings, list)
        and all(map(_is_finding, findings))
        and isinstance(content.get("used", {}), dict)
        and _are_texts([*content.get("used", {}).values()])
        and all(_are_texts(content.get(name, [])) for name in ("missing", "refused"))
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
    return isinstance(content, list) and all(isinstance(each, str) for each in content)


def _is_plain(content: Any) -> bool:
    return isinstance(content, int | float | str | None)


def _print(document: Document, hint: int | None, places: Unpacked) -> None:
    out = terminal.console(sys.stdout)

    def say(line: str, style: str = "", soft_wrap: bool = True) -> None:
        # Names of files are no markup, and no pictures between colons.
        out.print(line, style=style, markup=False, emoji=False, soft_wrap=soft_wrap)

    findings = document["findings"]
    say(f"{places.named(document['run'])}: {_count(len(findings))}", "bold")
    if of_place := what_differs(str(document.get("plan", {}).get("where"))):
        say(f"  run on {of_place}")
    for line in taken(document):
        say(f"  {places.named(line)}")
    for finding in findings:
        heading, lines = told(finding, hint)
        say(f"  {heading}", "bold", soft_wrap=False)
        for line in lines:
            say(f"    {places.named(line)}", soft_wrap=False)
    if findings and hint is None:
        out.print("--hint 1, 2 or 3 helps a step further each.")
    # Last: what was found is what a person looks for.
    for line in document.get("missing", []):
        say(f"  not looked at: {places.named(line)}")
    refused = document.get("refused", [])
    for line in refused[:MOST_REFUSED]:
        say(f"  not used: {places.named(line)}")
    if (more := len(refused) - MOST_REFUSED) > 0:
        say(f"  not used: {more} more (--json names all)")


def _count(number: int) -> str:
    return {0: "no finding", 1: "1 finding"}.get(number, f"{number} findings")
