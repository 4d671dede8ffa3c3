"""One submission read: every run in it measured anew, and what its report answers.

It returns plain data (what JSON can hold) and judges nothing. It runs in a process of its own,
with little memory and time: whatever a file does to it, the other submissions are graded.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.checks.sets import check_set
from measuretwice.grading.unpack import Opened, shown
from measuretwice.lab import Lab, trial_params
from measuretwice.measure import brought as bring
from measuretwice.report.report import read_places
from measuretwice.runs.folder import DONE, runs_in
from measuretwice.runs.reread import RunData, read_run

Document = dict[str, Any]
MAX_RUNS = 400
MAX_REPORT_BYTES = 8 * 2**20
MAX_ANSWER = 20_000
MAX_QUOTES = 100
# So much of a line is no coincidence.
QUOTED = 16
# iperf3 draws it for each test, from the system's randomness: two tests don't have the same.
COOKIE = re.compile(rb'"cookie":\s*"([a-z2-7]{16,64})"')
# Output of a test that is under way. What describes a machine may well be the same on another, and
# ping's times, in the virtual kernel, of another seed.
NEVER_THE_SAME = frozenset({"iperf3", "iperf2", "ss", "tcpdump"})
# What a folder of a student's own files says of them.
MEANT = re.compile(r"trial-([0-9]{1,4})(?:-([a-z][a-z0-9-]*)-(broken|fixed))?\b")
WRITTEN = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".tex", ".pages", ".ipynb", ".md", ".html", ".htm")  # fmt: skip
RUN_FILES = frozenset(
    {"plan.json", "provenance.json", "result.json", DONE, "experiment.sh", "experiment.log",
     "console.txt"}
)  # fmt: skip
DRAWN = (".svg", ".png", ".jpg", ".jpeg", ".csv")


def read_submission(root: Path, sources: list[Path], tree: Path) -> Document:
    """Lay the submission's files open below `tree`, an empty folder's place, and read them."""
    opened = Opened(tree)
    tree.mkdir()
    for source in sources:
        opened.take(source)
    runs, unusable = _runs(root, tree)
    of_runs = {tree / name for name in (*(run.name for run, _ in runs), *unusable)}
    loose = [p for p in sorted(tree.rglob("*")) if p.is_file() and not _of_run(p, of_runs)]
    places, written = _report(loose, tree)
    brought, unread = _brought([p for p in loose if p.suffix.lower() not in WRITTEN + DRAWN], tree)
    return {
        "refused": opened.refused,
        "unusable": [said for said in unusable.values() if said],
        "runs": [document for _, document in runs],
        "together": _together([run for run, _ in runs]),
        "brought": brought,
        "unread": unread,
        "places": places,
        "quotes": _quotes(places, [run for run, _ in runs], tree),
        "written": written,
    }


def _of_run(path: Path, folders: set[Path]) -> bool:
    """Is it one of the files that a run's folder has? A report may well stand beside them."""
    if path.parent in folders and path.name in RUN_FILES:
        return True
    return any(one.name == "raw" and one.parent in folders for one in path.parents)


def _runs(root: Path, tree: Path) -> tuple[list[tuple[RunData, Document]], dict[str, str]]:
    """Each run once, and by its folder why another can't be used."""
    found: dict[tuple[str, str], tuple[RunData, Document]] = {}
    unusable: dict[str, str] = {}
    for number, folder in enumerate(runs_in(tree)):
        name = folder.relative_to(tree).as_posix()
        if number >= MAX_RUNS:
            unusable[name] = f"{shown(name)}: more than {MAX_RUNS} runs; not read"
            continue
        try:
            run = read_run(root, folder, name)
            document = _document(run, folder)
        except UserError as error:
            unusable[name] = shown_line(str(error).replace(f"{tree}/", ""))
        except Exception as error:
            unusable[name] = shown_line(f"{name}: can't be read ({type(error).__name__}: {error})")
        else:
            known = (run.plan.digest, document["digest"])
            if known in found:
                unusable[name] = ""
            else:
                found[known] = (run, document)
    return list(found.values()), unusable


def shown_line(text: str) -> str:
    """A line with words of a submission in it: shortened, and nothing that a terminal would obey."""
    return " ".join(shown(part) for part in text.split(" "))[:400]


def _document(run: RunData, folder: Path) -> Document:
    plan, result = run.plan, run.result
    changed = _changed(run)
    return {
        "run": run.name,
        "lab": plan.lab,
        "trial": plan.trial,
        "pitfall": plan.pitfall,
        "stage": plan.stage,
        "seed": plan.seed,
        "plan": plan.digest,
        "params": plan.params,
        "changed": changed,
        "findings": [
            {key: getattr(finding, key) for key in ("id", "severity", "measured", "expected")}
            for finding in result.findings
        ],
        "digest": _digest(run.digests),
        "cookies": sorted(cookies(folder / "raw")),
    }


def _digest(digests: dict[str, str]) -> str:
    """The same as archive.digest_of: one SHA-256 of all raw files, with their names."""
    named = {name.removeprefix("raw/"): digest for name, digest in digests.items()}
    lines = [f"{named[name]}  {name}\n" for name in sorted(named)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def cookies(raw: Path) -> set[str]:
    """What iperf3 called each of a run's tests."""
    return _cookies([path for path in raw.rglob("*") if path.is_file()])


def _cookies(files: list[Path]) -> set[str]:
    return {found.decode() for path in files for found in COOKIE.findall(path.read_bytes())}


def _changed(run: RunData) -> list[str]:
    """Which settings are others than the lab's for this trial and stage."""
    plan = run.plan
    meant = trial_params(run.lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage)
    names = sorted(meant.keys() | plan.params.keys())
    return [f"{n}={plan.params.get(n)}" for n in names if plan.params.get(n) != meant.get(n)]


def _together(runs: list[RunData]) -> list[Document]:
    """What no single run shows: the finding, and which stages' runs it is about."""
    by_lab: dict[str, tuple[Lab, list[RunData]]] = {}
    for run in runs:
        by_lab.setdefault(run.lab.name, (run.lab, []))[1].append(run)
    found = []
    for lab, own in by_lab.values():
        for told in check_set(lab, [run.result.member for run in own]):
            of = own[told.members[0]].plan
            finding = told.finding
            found.append(
                {
                    "lab": lab.name,
                    "id": finding.id,
                    "measured": finding.measured,
                    "expected": finding.expected,
                    "pitfall": of.pitfall,
                    "stage": of.stage,
                    "runs": [own[place].name for place in told.members],
                }
            )
    return found


# Files of their own


def _brought(files: list[Path], tree: Path) -> tuple[list[Document], list[str]]:
    """Files that ./lab check takes, by the folder that says what they are; and those in none."""
    groups: dict[Path, list[Path]] = defaultdict(list)
    unread: list[str] = []
    for path in files:
        below = path.relative_to(tree).parents
        own = next((tree / one for one in below if MEANT.match(one.name)), None)
        if own is None:
            unread.append(shown(path.relative_to(tree).as_posix()))
        else:
            groups[own].append(path)
    return [_measured(folder, paths, tree) for folder, paths in groups.items()], unread


def _measured(folder: Path, paths: list[Path], tree: Path) -> Document:
    meant = MEANT.match(folder.name)
    assert meant is not None  # what made it a group
    name = shown(folder.relative_to(tree).as_posix())
    document: Document = {
        "folder": name,
        "trial": int(meant[1]),
        "pitfall": meant[2],
        "stage": meant[3],
        "measured": {},
        "refused": [],
        "missing": [],
        "digests": {},
        "cookies": [],
    }
    try:
        found = bring.read_files(paths[: bring.MAX_FILES])
    except UserError as error:
        return {**document, "refused": [shown_line(str(error).replace(f"{tree}/", ""))]}
    except Exception as error:
        return {**document, "refused": [shown_line(f"{type(error).__name__}: {error}")]}
    return {
        **document,
        "measured": found.measured,
        "refused": [shown_line(line.replace(f"{tree}/", "")) for line in found.refused][:20],
        "missing": found.missing,
        "digests": {
            hashlib.sha256(path.read_bytes()).hexdigest(): shown(path.relative_to(tree).as_posix())
            for kind, path in ((kind, Path(name)) for kind, name in found.used.items())
            if kind in NEVER_THE_SAME
        },
        "cookies": sorted(_cookies(paths)),
    }


# The report


def _report(files: list[Path], tree: Path) -> tuple[dict[str, str], list[str]]:
    """What stands in the places for answers, by question; and other documents, to be read by hand."""
    places: dict[str, str] = {}
    written = []
    for path in files:
        suffix = path.suffix.lower()
        if suffix not in WRITTEN:
            continue
        found: dict[str, str] = {}
        if suffix in (".md", ".html", ".htm") and path.stat().st_size <= MAX_REPORT_BYTES:
            text = bring.tidy(path.read_bytes())
            found = read_places(text) if suffix == ".md" else _from_page(text)
        if not found:
            written.append(shown(path.relative_to(tree).as_posix()))
        for asked, answer in found.items():
            key = plain(asked)
            # Of two reports, the one that says more.
            if len(answer) >= len(places.get(key, "")):
                places[key] = answer.strip()[:MAX_ANSWER]
    return places, written


def plain(question: str) -> str:
    """A question's words without its markup: Markdown and HTML have the same."""
    return " ".join(re.sub(r"[`*_\\]", "", question).split())


class _Page(HTMLParser):
    """The places for answers in a report's HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, str] = {}
        self._said: list[str] = []
        self._asked = ""
        self._answering = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._answering:
            self._answering += tag == "div"
        elif tag == "p":
            self._said = []
        elif tag == "div" and ("class", "answer") in attrs:
            self._answering, self._said = 1, []

    def handle_endtag(self, tag: str) -> None:
        if self._answering and tag == "div":
            self._answering -= 1
            if not self._answering and self._asked:
                self.places[self._asked] = "".join(self._said).strip()
                self._asked = ""
        elif not self._answering and tag == "p":
            found = re.match(r"\s*Question [0-9]+\.\s*(.*)", "".join(self._said), re.DOTALL)
            self._asked = found[1] if found else self._asked

    def handle_data(self, data: str) -> None:
        self._said.append(data)


def _from_page(text: str) -> dict[str, str]:
    if 'class="answer"' not in text:
        return {}
    page = _Page()
    page.feed(text)
    page.close()
    return page.places


def _quotes(places: dict[str, str], runs: list[RunData], tree: Path) -> Document:
    """For each question, which raw files hold a line that its answer quotes: by run."""
    lines = {
        (asked, line)
        for asked, answer in places.items()
        for line in (said.strip(" \t>*-") for said in re.split(r"[\n`]", answer))
        if len(line) >= QUOTED
    }
    searched = [(asked, line.encode()) for asked, line in sorted(lines)[:MAX_QUOTES]]
    found: dict[str, dict[str, list[str]]] = {}
    if not searched:
        return found
    for run in runs:
        folder = tree / run.name
        for path in sorted((folder / "raw").rglob("*")):
            if not path.is_file():
                continue
            content = path.read_bytes()
            for asked, line in searched:
                if line in content:
                    files = found.setdefault(asked, {}).setdefault(run.name, [])
                    name = path.relative_to(folder).as_posix()
                    if name not in files:
                        files.append(name)
    return found
