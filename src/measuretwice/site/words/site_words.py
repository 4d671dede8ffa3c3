"""The site: its labs, what the kit's files hold for pages on it, and the glossary."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.runs.recorded import read_set, set_folders
from measuretwice.runs.verified import stands, verifications
from measuretwice.site import navigation
from measuretwice.site.fields import FieldWords
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.registry import site_word
from measuretwice.site.words.subjects import LabWords, SiteWords

# The verdicts that tests/faults counts.
VERDICTS = ("right", "said", "silent", "honest", "blamed")
# How pages name the language of a recorded file.
LANGUAGES = {".csv": "csv", ".txt": "text"}


@site_word('lab("mathis")', name="lab")
def lab_words(site: SiteWords, name: str) -> LabWords:
    """A lab, whose words stand behind it: `lab("mathis").trial(7).rtt_ms`."""
    return site.lab(name)


@site_word("labs", fact=True)
def labs(site: SiteWords) -> list[LabWords]:
    """All labs, in order, as `lab` gives each."""
    return list(site.labs.values())


@site_word("instructor", fact=True)
def instructor(site: SiteWords) -> bool:
    """Whether this is the instructors' site."""
    return site.instructor


@site_word("release", fact=True)
def release(site: SiteWords) -> bool:
    """Whether this is the site of a students' release, which has no pages for instructors."""
    return site.release


@site_word("fields.measured", name="fields", fact=True)
def fields(_: SiteWords) -> type[FieldWords]:
    """What each field of a run's files is, from `measure/fields.py`, where a new field gets its meaning;
    `fields.plan` and kin likewise: each a list of `.name`, `.unit`, `.source`, `.meaning`."""
    return FieldWords


@site_word("glossary()")
def glossary(site: SiteWords) -> Block:
    """The words of the field that pages explain on hover, as a list with an anchor each."""
    text = (site.root / "docs/includes/glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\*\[([^\]]+)\]: *(.+)$", text, re.MULTILINE)
    entries.sort(key=lambda entry: entry[0].lower())
    parts = []
    for term, meaning in entries:
        anchor = re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")
        parts.append(f"## {term} {{ #{anchor} }}\n\n{meaning}\n")
    return Block("\n".join(parts))


def _object_in(path: Path) -> dict[str, Any] | None:
    """What a record holds, none where there is no such file; UserError where it can't be read."""
    try:
        return read_object(path) if path.is_file() else None
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: {error}; take it from git again") from None


@site_word("reliability", fact=True)
def reliability(site: SiteWords) -> dict[str, Any] | None:
    """What `make torture` recorded: `.cases`, each with `.what`, `.good`, `.times`, `.said`; none where
    it hasn't yet."""
    return _object_in(site.root / "sample-data" / "reliability.json")


@site_word("feedback", fact=True)
def feedback(site: SiteWords) -> str:
    """Where readers say what is wrong, as `extra` in mkdocs.yml has it; empty where it doesn't."""
    settings = site.root / "mkdocs.yml"
    return navigation.feedback(settings.read_text(encoding="utf-8")) if settings.is_file() else ""


@site_word("runs_here", fact=True)
def runs_here(site: SiteWords) -> bool:
    """Whether this site has the browser's machine, so that its pages run trials themselves."""
    return any(words.runs_here for words in site.labs.values())


@site_word("both_machines", fact=True)
def both_machines(site: SiteWords) -> dict[str, Any] | None:
    """What `make both-machines` recorded, by lab: `.ratio`, `.low`, `.high`, `.pairs`, `.duration_s`; none where it hasn't yet."""
    return _object_in(site.root / "sample-data" / "browsers-machine.json")


@site_word("browser_stopwatch", fact=True)
def browser_stopwatch(site: SiteWords) -> dict[str, Any] | None:
    """What `benchmarks/browser.py --record` timed: `.browsers`, by name a list of runs with `.lab`, `.case` or `.trials`,
    `.changes`, and seconds by step; `.terminal`, runs of the virtual kernel; `.look_s`. None where it hasn't yet."""
    return _object_in(site.root / "sample-data" / "browser-stopwatch.json")


@site_word("second_runs", fact=True)
def second_runs(site: SiteWords) -> dict[str, Any]:
    """Which recorded sets `./lab record --verify --note` found the same: `.sets` of `.of`, `.runs` in them, and `.real_s`, how
    long they took in all."""
    found: dict[str, Any] = {"sets": 0, "of": 0, "runs": 0, "real_s": 0}
    for words in site.labs.values():
        noted = verifications(words.samples)
        for folder in set_folders(words.samples):
            recorded = read_set(folder)
            found["of"] += 1
            if stands(noted, recorded):
                found["sets"] += 1
                found["runs"] += len(recorded.runs)
                found["real_s"] += noted[recorded.name].real_s
    return found


@site_word("checker_faults", fact=True)
def checker_faults(site: SiteWords) -> dict[str, Any] | None:
    """What `make checker-faults` recorded: `.known`, `.kept`, `.first`, `.later`, `.later_first`, `.honest`, `.review`, each with `.rows` (`.name`, `.runs`,
    `.right`, `.said`, `.silent`, `.blamed`, `.findings`, `.says`) and their sums by the same names; none where it hasn't yet.
    """
    recorded = _object_in(site.root / "docs/includes/checker-faults.json")
    if recorded is None:
        return None
    found = {}
    for group, kinds in recorded.items():
        rows = [_fault_row(name, row) for name, row in kinds.items()]
        sums = {word: sum(row[word] for row in rows) for word in ("runs", *VERDICTS)}
        found[group.removeprefix("kept-").replace("-", "_")] = {"rows": rows, **sums}
    return found


def _fault_row(name: str, row: dict[str, Any]) -> dict[str, Any]:
    counts = {word: row.get(word, 0) for word in VERDICTS}
    findings = [one for one in row["raised"] if one != "nothing"]
    return {"name": name, "runs": sum(counts.values()), **counts, "findings": findings, "says": row.get("says")}  # fmt: skip


@site_word("graded_class", fact=True)
def graded_class(site: SiteWords) -> dict[str, Block]:
    """A made-up class, dealt seeds and graded, as `make site-assets` recorded it: `.roster`, `.dealt`,
    `.listing`, `.terminal`, `.marks`, `.import`."""
    folder = site.root / "docs/includes/graded-class"
    return {
        path.stem: Block(f"```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```")
        for path in sorted(folder.glob("*.*"))
    }
