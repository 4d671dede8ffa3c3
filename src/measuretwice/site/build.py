"""The site's pages, prepared: templates in docs/ become Markdown in build/, which mkdocs reads.

    docs/**/*.md          pages, with words in {{ }} that recorded runs and the model fill in
    docs/assets/          copied as they are
    docs/includes/        for the pages' use, no pages themselves
    docs/layouts/         what pages of one kind have in common
    docs/instructors/key/ only for the instructors' site

Pages that a lab needs and nobody has written yet are made from templates here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.lab import find_labs, published_labs
from measuretwice.lab.schema.file import SCHEMA_FILE
from measuretwice.site import assets, reference
from measuretwice.site import print as paper
from measuretwice.site.cards import add_cards
from measuretwice.site.descriptions import described
from measuretwice.site.folder import Folder
from measuretwice.site.kept import KeptPages, kept_pages
from measuretwice.site.machine import add_machine, find_parts
from measuretwice.site.navigation import (
    INSTRUCTORS,
    KEY,
    module_pages,
    navigation,
    release_settings,
    site_settings,
)
from measuretwice.site.reference import Command
from measuretwice.site.render import TEMPLATES, Renderer
from measuretwice.site.words.cases import case_page
from measuretwice.site.words.course import kit_address
from measuretwice.site.words.questions import questions
from measuretwice.site.words.subjects import LabWords, SiteWords


@dataclass(frozen=True)
class Site:
    """What is being prepared: what its pages know, how they are filled in, and where they go."""

    words: SiteWords
    renderer: Renderer
    pages: Folder
    kept: KeptPages

    def add(self, template: Path, page: str, **extra: Any) -> None:
        """Add the page that a template makes, unless it is there; UserError for what is wrong in it."""
        if self.kept.still_right(page, template) and self.pages.keep(page):
            return
        self.write(page, self.renderer.render(template, page, **extra))

    def write(self, page: str, text: str) -> None:
        """Write a page with a description, its own or one by its kind."""
        labs = {words.lab.folder.name: words.lab for words in self.words.labs.values()}
        self.pages.write(page, described(text, page, labs))


def prepare(
    root: Path,
    out: Path,
    *,
    instructor: bool = False,
    release: bool = False,
    commands: Sequence[Command] = (),
) -> None:
    """Make `out`, which mkdocs then reads, from `root`/docs. What it no longer holds goes.

    Beside it stands what mkdocs shall know of the site: settings_of(out). `commands` are those of
    ./lab, for the reference. For a students' `release` there is no page for instructors.
    """
    settings = (root / "mkdocs.yml").read_text(encoding="utf-8")
    if release:
        settings = release_settings(settings)
    parts = find_parts()
    labs = {
        name: LabWords(root, lab, runs_here=parts is not None)
        for name, lab in published_labs(root).items()
    }
    words, pages = SiteWords(root, labs, instructor, release), Folder(out)
    also = f"runs here {parts is not None}, kit {kit_address(words)}"
    with kept_pages(root, out.with_suffix(".kept.json"), also=also) as kept:
        site = Site(words, Renderer(words), pages, kept)
        _written_pages(site)
        _made_pages(site, commands)
        _add_the_rest(site, settings)
        if parts:
            add_machine(root, [known.lab for known in labs.values()], parts, pages)
    pages.sweep()
    beside = Folder(out.parent)
    beside.write(settings_of(out).name, site_settings(settings, out.name, instructor=instructor))


def settings_of(pages: Path) -> Path:
    """The file that mkdocs reads, beside the folder of its prepared pages."""
    return pages.with_suffix(".yml")


def _add_the_rest(site: Site, settings: str) -> None:
    """What pages show besides text, and the pages that are made of others."""
    root, pages = site.words.root, site.pages
    pages.copy(root / SCHEMA_FILE, f"reference/{Path(SCHEMA_FILE).name}")
    nav = navigation(settings)
    labs = list(site.words.labs.values())
    for words in labs:
        _page_to_print(site, words, nav)
        assets.add_figures(words, pages)
        assets.add_symptoms(words, pages)
        assets.add_replays(words, pages)
        if not site.words.release:
            assets.add_rubric(words, pages)
        assets.add_testbed_files(words.lab, pages)
    if site.words.instructor:
        for name, text in assets.answer_keys(root, [words.lab for words in labs]).items():
            site.write(f"{KEY}/{name}", text)
    add_cards(settings, [words.lab for words in labs], pages)


def _written_pages(site: Site) -> None:
    """The pages that docs/ has, filled in, and the files beside them as they are."""
    source = site.words.root / "docs"
    shown = {words.lab.folder for words in site.words.labs.values()}
    drafts = [
        f"modules/{at.name}/" for at in find_labs(site.words.root).values() if at not in shown
    ]
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.is_dir() or name.startswith(("includes/", "layouts/", *drafts)):
            continue
        if name.startswith(f"{KEY}/") and not site.words.instructor:
            continue
        if name.startswith(f"{INSTRUCTORS}/") and site.words.release:
            continue
        if path.suffix == ".md":
            site.add(path, name)
        else:
            site.pages.copy(path, name)


def _made_pages(site: Site, commands: Sequence[Command]) -> None:
    """The pages that follow from the labs, the commands and the checks, where docs/ has no own."""
    docs = site.words.root / "docs"

    def make(template: str, page: str, **extra: Any) -> None:
        if not (docs / page).is_file():
            site.add(TEMPLATES / template, page, **extra)

    labs = list(site.words.labs.values())
    for words in labs:
        place = f"modules/{words.lab.folder.name}"
        make("module.md.j2", f"{place}/index.md")
        if questions(words).strip():
            make("questions.md.j2", f"{place}/questions.md")
        make("sheet.md.j2", f"{place}/sheet.md")
        for pitfall in words.lab.file.pitfalls:
            make("pitfall.md.j2", f"{place}/{case_page(words, pitfall.id)}", staged=pitfall)
    make("command-line.md.j2", "reference/command-line.md", commands=commands)
    make("lab-toml.md.j2", "reference/lab-toml.md", tables=reference.lab_file_tables())
    checks = reference.checks([words.lab for words in labs])
    make("checks.md.j2", "reference/checks.md", checks=checks)


def _page_to_print(site: Site, words: LabWords, nav: str) -> None:
    """A module on one page, without its answers; for instructors with them."""
    lab = words.lab
    place = f"modules/{lab.folder.name}"
    parts = site.pages.pages(place, module_pages(nav, lab.folder.name))
    if parts:
        answers = site.words.instructor
        text = paper.one_page(lab.file.lab.title, lab.folder.name, parts, answers=answers)
        site.write(f"{place}/print.md", text)
