"""The site: its labs, what the kit's files hold for pages on it, and the glossary."""

from __future__ import annotations

import re
from typing import Any

from measuretwice.runs.recorded import read_set, set_folders, still_verified, verifications
from measuretwice.runs.result import Result
from measuretwice.site import fields, navigation
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.registry import site_word
from measuretwice.site.words.subjects import LabWords, SiteWords

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


@site_word('fields("measured", lab("mathis").run("mtu-broken"))', name="fields")
def fields_table(_: SiteWords, part: str, example: Result | None = None) -> Block:
    """What each field of a part of a run's files is, as a table, from `measure/fields.py` and `site/fields.py`; with an `example`,
    a recorded run, its values too."""
    of_run = fields.values_of(part, example) if example else None
    return Block(fields.table_of(part, of_run))


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


@site_word("feedback", fact=True)
def feedback(site: SiteWords) -> str:
    """Where readers say what is wrong, as `extra` in mkdocs.yml has it; empty where it doesn't."""
    settings = site.root / "mkdocs.yml"
    return navigation.feedback(settings.read_text(encoding="utf-8")) if settings.is_file() else ""


@site_word("runs_here", fact=True)
def runs_here(site: SiteWords) -> bool:
    """Whether this site has the browser's machine, so that its pages run trials themselves."""
    return any(words.runs_here for words in site.labs.values())


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
            if still_verified(noted, recorded):
                found["sets"] += 1
                found["runs"] += len(recorded.runs)
                found["real_s"] += noted[recorded.name].real_s
    return found


@site_word("graded_class", fact=True)
def graded_class(site: SiteWords) -> dict[str, Block]:
    """A made-up class, dealt seeds and graded, as `make site-assets` recorded it: `.roster`, `.dealt`,
    `.listing`, `.terminal`, `.marks`, `.import`."""
    folder = site.root / "docs/includes/graded-class"
    return {
        path.stem: Block(f"```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```")
        for path in sorted(folder.glob("*.*"))
    }
