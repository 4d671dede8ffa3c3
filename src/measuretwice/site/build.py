"""The site's pages, prepared: templates in docs/ become Markdown in build/, which mkdocs reads.

    docs/**/*.md          pages, with words in {{ }} that recorded runs and the model fill in
    docs/assets/          copied as they are
    docs/includes/        for the pages' use, no pages themselves
    docs/layouts/         what pages of one kind have in common
    docs/instructors/key/ only for the instructors' site

Pages that a lab needs and nobody has written yet are made from templates here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice import testbeds
from measuretwice.grading import rubric
from measuretwice.lab import Lab, find_labs, published_labs
from measuretwice.lab.schema import SCHEMA_FILE
from measuretwice.site import print as paper
from measuretwice.site import reference
from measuretwice.site.build_cache import BuildCache, PageFolder, build_cache, digest_of, made_once
from measuretwice.site.layouts import described, front_matter
from measuretwice.site.machine import add_machine, find_parts
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.macros.cases import case_page, questions
from measuretwice.site.macros.figure_files import drawn_figures, symptom_pictures
from measuretwice.site.macros.replay_figures import replays, script_address
from measuretwice.site.macros.site import kit_address
from measuretwice.site.navigation import (
    INSTRUCTORS,
    KEY,
    module_pages,
    navigation,
    release_settings,
    site_settings,
)
from measuretwice.site.notebooks import notebook_pages
from measuretwice.site.prose import problems_in
from measuretwice.site.reference import Command
from measuretwice.site.render import TEMPLATES, Renderer

SITE_URL = re.compile(r"^site_url: *[\"']?(https?://[^\"'\s#]+)", re.MULTILINE)
# The picture that a link to the site becomes elsewhere: its size, its colours, and what the course's says.
CARD_WIDTH, CARD_HEIGHT, CARD_DPI = 1200, 630, 100
GROUND, INK, FAINT, ACCENT = "#0b4f6c", "#ffffff", "#cfe3ec", "#ffb68a"
COURSE_CARD = (
    "Measure Twice",
    "Reproduce a TCP result. Find out why your first try was wrong.",
)


@dataclass(frozen=True)
class Site:
    """What is being prepared: what its pages know, how they are filled in, and where they go."""

    context: SiteContext
    renderer: Renderer
    pages: PageFolder
    cache: BuildCache

    @property
    def labs(self) -> list[LabContext]:
        return list(self.context.labs.values())

    def add(self, template: Path, page: str, **extra: Any) -> None:
        """Add the page that a template makes, unless it is there; UserError for what is wrong in it."""
        others = front_matter(template.read_text(encoding="utf-8")).get("reads")
        also = sorted((self.context.root / "docs").glob(others)) if others else []
        if not (self.cache.is_fresh(page, template, *also) and self.pages.keep(page)):
            self.write(page, self.renderer.render(template, page, **extra))

    def write(self, page: str, text: str) -> None:
        """Write a page with a description, its own or one by its kind."""
        labs = {context.lab.folder.name: context.lab for context in self.labs}
        self.pages.write(page, described(text, page, labs))


def check_page(root: Path, page: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the text of one page, docs/`page`, with its words filled in, as instructors read it; and what is wrong with its prose.

    UserError, with the line, for what keeps it from being made.
    """
    labs = {name: LabContext(root, lab) for name, lab in published_labs(root).items()}
    path = root / "docs" / page
    text = Renderer(SiteContext(root, labs, instructor=True)).render(path, page)
    return text, problems_in(path.read_text(encoding="utf-8"))


def prepare(
    root: Path,
    out: Path,
    *,
    instructor: bool = False,
    release: bool = False,
    commands: Sequence[Command] = (),
) -> None:
    """Make `out`, which mkdocs then reads, from `root`/docs. What it no longer holds goes.

    Beside it stands what mkdocs shall know of the site, OUT.yml. `commands` are those of ./lab, for the reference. For a
    students' `release` there is no page for instructors.
    """
    settings = (root / "mkdocs.yml").read_text(encoding="utf-8")
    if release:
        settings = release_settings(settings)
    parts = find_parts()
    labs = {
        name: LabContext(root, lab, runs_here=parts is not None)
        for name, lab in published_labs(root).items()
    }
    context, pages = SiteContext(root, labs, instructor, release), PageFolder(out)
    also = f"runs here {parts is not None}, kit {kit_address(context)}"
    with build_cache(root, out.with_suffix(".kept.json"), also=also) as cache:
        site = Site(context, Renderer(context), pages, cache)
        _add_written_pages(site)
        _add_made_pages(site, commands)
        _add_the_rest(site, settings)
        if parts:
            add_machine(root, [context.lab for context in site.labs], parts, pages)
    pages.sweep()
    of_mkdocs = out.with_suffix(".yml").name
    PageFolder(out.parent).write(
        of_mkdocs, site_settings(settings, out.name, instructor=instructor)
    )


def prepare_text(root: Path, out: Path) -> None:
    """Make in `out` only those pages that somebody wrote, or whose words are a lab's, as instructors of a site that runs
    trials read them: what `make lint` reads. No files beside them, no notebooks, and nothing for paper."""
    labs = {
        name: LabContext(root, lab, runs_here=True) for name, lab in published_labs(root).items()
    }
    context, pages = SiteContext(root, labs, instructor=True), PageFolder(out)
    with build_cache(root, out.with_suffix(".kept.json"), also="text") as cache:
        site = Site(context, Renderer(context), pages, cache)
        for path, name in _files_of_docs(site):
            if path.suffix == ".md":
                site.add(path, name)
        _add_pages_of_labs(site)
    pages.sweep()


def _add_written_pages(site: Site) -> None:
    """The pages that docs/ has, filled in, and the files beside them as they are."""
    for path, name in _files_of_docs(site):
        if path.suffix == ".md":
            site.add(path, name)
        else:
            site.pages.copy(path, name)


def _files_of_docs(site: Site) -> Iterator[tuple[Path, str]]:
    """Yield the files of docs/ that the site has, each with its name there."""
    root = site.context.root
    shown = {context.lab.folder for context in site.labs}
    drafts = [
        f"{place}/{at.name}"
        for at in find_labs(root).values()
        if at not in shown
        for place in ("modules", KEY, f"{INSTRUCTORS}/tuesday")
    ]
    left_out = ["includes/", "layouts/", *drafts]
    if not site.context.instructor:
        left_out.append(f"{KEY}/")
    if site.context.release:
        left_out.append(f"{INSTRUCTORS}/")
    for path in sorted((root / "docs").rglob("*")):
        name = path.relative_to(root / "docs").as_posix()
        if not path.is_dir() and not name.startswith(tuple(left_out)):
            yield path, name


def _add_made_pages(site: Site, commands: Sequence[Command]) -> None:
    """The pages that follow from the labs, the commands and the checks, where docs/ has no own."""
    _add_pages_of_labs(site)
    for context in site.labs:
        _make(site, "sheet.md.j2", f"modules/{context.lab.folder.name}/sheet.md")
    _make(site, "command-line.md.j2", "reference/command-line.md", commands=commands)
    _make(site, "lab-toml.md.j2", "reference/lab-toml.md", tables=reference.lab_file_tables())
    checks = reference.checks([context.lab for context in site.labs])
    _make(site, "checks.md.j2", "reference/checks.md", checks=checks)


def _add_pages_of_labs(site: Site) -> None:
    """Fronts, questions and cases that docs/ has no page of."""
    for context in site.labs:
        module = f"modules/{context.lab.folder.name}"
        _make(site, "module.md.j2", f"{module}/index.md")
        if questions(context).strip():
            _make(site, "questions.md.j2", f"{module}/questions.md")
        for pitfall in context.lab.file.pitfalls:
            page = f"{module}/{case_page(context, pitfall.id)}"
            _make(site, "pitfall.md.j2", page, staged=pitfall)


def _make(site: Site, template: str, page: str, **extra: Any) -> None:
    """Add a page by a template beside this module, where docs/ has no own."""
    if not (site.context.root / "docs" / page).is_file():
        site.add(TEMPLATES / template, page, **extra)


def _add_the_rest(site: Site, settings: str) -> None:
    """Add the files that pages show besides text, and the pages that are made of others."""
    root, pages = site.context.root, site.pages
    pages.copy(root / SCHEMA_FILE, f"reference/{Path(SCHEMA_FILE).name}")
    nav = navigation(settings)
    for context in site.labs:
        _add_page_to_print(site, context, nav)
        _add_files_of(context, pages)
        if not site.context.release and context.rubric:
            name = f"assets/rubrics/{context.lab.folder.name}.csv"
            pages.write(name, rubric.csv_text(context.rubric))
    if site.context.instructor:
        notebooks = [root / "solutions" / f"{context.lab.folder.name}.py" for context in site.labs]
        recorded = [notebook for notebook in notebooks if notebook.is_file()]
        for name, content in notebook_pages(root, recorded, root / "build/keys").items():
            site.write(f"{KEY}/{name}", content.decode())
    add_cards(settings, [context.lab for context in site.labs], pages)


def _add_page_to_print(site: Site, context: LabContext, nav: str) -> None:
    """A module on one page, without its answers; for instructors with them."""
    lab = context.lab
    module = f"modules/{lab.folder.name}"
    if parts := site.pages.pages(module, module_pages(nav, lab.folder.name)):
        answers = site.context.instructor
        text = paper.one_page(lab.file.lab.title, lab.folder.name, parts, answers=answers)
        site.write(f"{module}/print.md", text)


def _add_files_of(context: LabContext, pages: PageFolder) -> None:
    """A lab's figures, what is seen of its cases, the runs that pages replay, and what `./lab testbed` makes."""
    lab = context.lab
    folder = drawn_figures(context)
    pictures = sorted(folder.iterdir()) if folder else []
    for pitfall in lab.file.pitfalls:
        pictures += sorted(symptom_pictures(context, pitfall).glob("*.svg"))
    for path in pictures:
        pages.copy(path, f"assets/figures/{lab.folder.name}/{path.name}")
    for name, path in replays(context).items():
        pages.copy(path, f"assets/{script_address(context, name)}")
    pages.write(f"assets/testbeds/{lab.name}-fabric.ipynb", testbeds.fabric_notebook(lab))
    pages.write(f"assets/testbeds/{lab.name}-cloudlab.py", testbeds.cloudlab_profile(lab))


def add_cards(settings: str, labs: list[Lab], pages: PageFolder) -> None:
    """Put the pictures that links become into the site, each drawn once, if mkdocs.yml gives it an address: whoever shows
    one fetches it by its full address."""
    if not SITE_URL.search(settings):
        return
    cards = {"course": COURSE_CARD}
    for lab in labs:
        cards[lab.folder.name] = (lab.name.capitalize(), lab.file.lab.question or lab.file.lab.title)  # fmt: skip
    for name, texts in cards.items():
        digest = digest_of(Path(__file__), repr(texts).encode())

        def draw(folder: Path, texts: tuple[str, str] = texts) -> None:
            (folder / "card.png").write_bytes(card(*texts))

        folder = made_once(pages.path.parent / "cards" / name / digest, draw)
        pages.copy(folder / "card.png", f"assets/cards/{name}.png")


def card(title: str, says: str) -> bytes:
    """Return a PNG of 1200 by 630: what it is called, what it asks, and whose it is."""
    # matplotlib takes half a second to import, and cards are drawn seldom.
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(CARD_WIDTH / CARD_DPI, CARD_HEIGHT / CARD_DPI), dpi=CARD_DPI, facecolor=GROUND
    )
    FigureCanvasAgg(figure)
    # The site's own sign: a window that grows and is halved.
    x = [0.72, 0.79, 0.79, 0.86, 0.86, 0.93, 0.93]
    y = [0.1, 0.24, 0.17, 0.31, 0.2, 0.34, 0.22]
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.plot(x, y, color=ACCENT, linewidth=7, solid_joinstyle="round", solid_capstyle="round")
    figure.text(0.07, 0.8, title, color=INK, fontsize=46, fontweight="bold", va="center")
    lines = "\n".join(textwrap.wrap(says, 36))
    figure.text(0.07, 0.68, lines, color=FAINT, fontsize=30, va="top", linespacing=1.35)
    figure.text(0.07, 0.1, "Measure Twice: TCP and queueing, for real", color=FAINT, fontsize=17)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=CARD_DPI, facecolor=GROUND, metadata={"Software": None})
    return out.getvalue()
