"""The site's pages, prepared: templates in docs/ become Markdown in build/, which mkdocs reads.

    docs/**/*.md          pages, with words in {{ }} that recorded runs and the model fill in
    docs/assets/          copied as they are
    docs/includes/        for the pages' use, no pages themselves
    docs/instructors/key/ only for the instructors' site

Pages that a lab needs and nobody has written yet are made from templates here.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from measuretwice.base.errors import UserError
from measuretwice.base.paths import PACKAGE
from measuretwice.figures.files import write_figure
from measuretwice.figures.spread import spread
from measuretwice.figures.style import save_svg
from measuretwice.grading import rubric
from measuretwice.lab import Lab, find_labs, read_lab
from measuretwice.measure.fields import FieldWords
from measuretwice.runs.recorded import SET_FILE, read_set, results_of
from measuretwice.site import notebooks as docs_notebook
from measuretwice.site import print as docs_print
from measuretwice.site import reference as docs_reference
from measuretwice.site.example_class import graded_class
from measuretwice.site.excerpts import Block
from measuretwice.site.filters import FILTERS
from measuretwice.site.maps import labs_map, pitfalls_map
from measuretwice.site.statistics import StatisticsWords
from measuretwice.site.words import LabWords, ModelWords
from measuretwice.stats import two_samples
from measuretwice.testbeds import files as testbed_files

TEMPLATES = Path(__file__).parent / "templates"
MARK = re.compile(r"^([ \t]*)\x02([0-9]+)\x03[ \t]*$", re.MULTILINE)
INLINE = re.compile(r"\x02([0-9]+)\x03")
KEY = "instructors/key"
# Words that not every lab can answer: pages ask for own.expected_ratio.
RARE = frozenset({"bounds", "expected_ratio"})


@dataclass
class Site:
    """What is being prepared: from `root`/docs into `out`, for students or for instructors."""

    root: Path
    out: Path
    instructor: bool
    labs: dict[str, LabWords]
    blocks: list[str] = field(default_factory=list)
    written: set[Path] = field(default_factory=set)

    def environment(self) -> Environment:
        """Jinja's usual signs, but comments are {## ##}: {# opens an attribute list's anchor."""
        room = Environment(
            loader=FileSystemLoader([self.root / "docs", TEMPLATES]),
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            comment_start_string="{##",
            comment_end_string="##}",
            finalize=self._keep,
        )
        room.filters |= FILTERS
        return room

    def _keep(self, value: Any) -> Any:
        """A block of lines is put in at the end, when it is known how far in it stands."""
        if not isinstance(value, Block):
            return value
        self.blocks.append(value)
        return f"\x02{len(self.blocks) - 1}\x03"

    def render(self, template: str, page: str, **extra: Any) -> None:
        """Render one page; UserError with the template's name and line for what is wrong in it."""
        words = {
            "lab": self._lab,
            "labs": list(self.labs.values()),
            "model": ModelWords,
            "statistics": StatisticsWords,
            "two_samples": two_samples,
            "fields": FieldWords,
            "instructor": self.instructor,
            "glossary": self._glossary,
            "labs_map": lambda: labs_map(list(self.labs.values())),
            "reliability": _reliability(self.root),
            "graded_class": lambda name, pitfalls: graded_class(self.root, name, tuple(pitfalls)),
            "pitfalls_map": lambda name: pitfalls_map(self._lab(name)),
            **self._own_words(page),
            **extra,
        }
        self.blocks.clear()
        room = self.environment()
        try:
            text = room.get_template(template).render(words)
        except (
            TemplateError,
            UserError,
            ArithmeticError,
            ValueError,
            TypeError,
            KeyError,
        ) as error:
            raise UserError(f"{self._place(template, error)}: {_said(error)}") from None
        text = MARK.sub(lambda found: _indented(self.blocks[int(found[2])], found[1]), text)
        text = INLINE.sub(lambda found: self.blocks[int(found[1])], text)
        self.write(page, text)

    def write(self, page: str, text: str) -> None:
        """Write a page, if it is another than the one there: mkdocs watches these files."""
        # A path from the site's root, as words give it, is made one from this page.
        up = "../" * page.count("/")
        text = re.sub(r"(?<=\]\()/(?=assets/)", up, text)
        path = self.out / page
        self.written.add(path)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def _own_words(self, page: str) -> dict[str, Any]:
        """A page in a lab's folder knows that lab's words without naming it."""
        for words in self.labs.values():
            if page.startswith(f"modules/{words.folder}/"):
                names = [name for name in dir(words) if name[0] != "_" and name not in RARE]
                return {name: getattr(words, name) for name in names} | {"own": words}
        return {}

    def _lab(self, name: str) -> LabWords:
        if name not in self.labs:
            raise UserError(f"there is no lab {name!r}; there are {', '.join(self.labs)}")
        return self.labs[name]

    def _glossary(self) -> Block:
        path = self.root / "docs/includes/glossary.md"
        return docs_reference.glossary(path.read_text(encoding="utf-8"))

    def _place(self, template: str, error: Exception) -> str:
        """Where in which page an error arose: the innermost line of a template."""
        if (line := getattr(error, "lineno", None)) is not None:
            return f"docs/{getattr(error, 'name', None) or template}, line {line}"
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename.endswith((".md", ".j2"))
        ]  # fmt: skip
        if not frames:
            return f"docs/{template}"
        path = Path(frames[-1].filename)
        name = path.relative_to(self.root) if path.is_relative_to(self.root) else path.name
        return f"{name}, line {frames[-1].lineno}"


def _reliability(root: Path) -> dict[str, Any] | None:
    """What `make torture` recorded; None where it hasn't yet."""
    path = root / "sample-data" / "reliability.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _indented(text: str, by: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "\n".join(by + line if line else "" for line in lines)


def prepare(root: Path, out: Path, *, instructor: bool = False) -> None:
    """Make `out`, which mkdocs then reads, from `root`/docs. What it no longer holds goes."""
    labs = {name: LabWords(root, read_lab(folder)) for name, folder in find_labs(root).items()}
    site = Site(root, out, instructor, labs)
    source = root / "docs"
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.is_dir() or name.startswith("includes/"):
            continue
        if name.startswith(f"{KEY}/") and not instructor:
            continue
        if path.suffix == ".md":
            site.render(name, name)
        else:
            _copy(path, out / name)
            site.written.add(out / name)
    _made_pages(site)
    _pages_to_print(site)
    _figures(site)
    _rubrics(site)
    _testbeds(site)
    if instructor:
        _answer_keys(site)
    for path in sorted(out.rglob("*"), reverse=True):
        if path.is_file() and path not in site.written:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _copy(source: Path, target: Path) -> None:
    if not target.is_file() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _made_pages(site: Site) -> None:
    """The pages that follow from the labs, the commands and the checks, where docs/ has no own."""

    def make(template: str, page: str, **extra: Any) -> None:
        if not (site.root / "docs" / page).is_file():
            site.render(template, page, **extra)

    for words in site.labs.values():
        place = f"modules/{words.folder}"
        make("module.md.j2", f"{place}/index.md")
        if words.questions().strip():
            make("questions.md.j2", f"{place}/questions.md")
        for pitfall in words.pitfalls:
            make("pitfall.md.j2", f"{place}/{pitfall.id}.md", one=pitfall)
    make(
        "command-line.md.j2",
        "reference/command-line.md",
        commands=docs_reference.commands(),
    )
    make("lab-toml.md.j2", "reference/lab-toml.md", tables=docs_reference.lab_file_tables())
    checks = docs_reference.checks(list(site.labs.values()))
    make("checks.md.j2", "reference/checks.md", checks=checks)


def _pages_to_print(site: Site) -> None:
    """Each module on one page, where the navigation has a place for it."""
    navigation = (site.root / "mkdocs.yml").read_text(encoding="utf-8")
    for words in site.labs.values():
        place = site.out / "modules" / words.folder
        names = docs_print.module_pages(navigation, words.folder)
        pages = {
            name: (place / f"{name}.md").read_text(encoding="utf-8")
            for name in names
            if place / f"{name}.md" in site.written
        }
        if pages:
            text = docs_print.one_page(words.about.title, words.folder, pages)
            site.write(f"modules/{words.folder}/print.md", text)


def _figures(site: Site) -> None:
    """Draw each lab's figures from its recorded runs, unless they are of just these."""
    for words in site.labs.values():
        samples = site.root / "sample-data" / words.folder
        lab = read_lab(site.root / "labs" / words.folder)
        sets = sorted(samples.glob(f"*/{SET_FILE}"))
        steps = [path.parent for path in sets if read_set(path.parent).step]
        declared = [
            (figure, samples / figure.of)
            for figure in lab.file.figures
            if (samples / figure.of / SET_FILE).is_file()
        ]
        if not steps and not declared:
            continue
        drawn_by = sorted((PACKAGE / "figures").glob("*.py"))
        used = [*steps, *(folder for _, folder in declared)]
        sources = [*(step / SET_FILE for step in used), *drawn_by, Path(__file__)]
        if declared:
            sources.append(lab.path)
        seen = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
        kept = site.out.parent / "figures" / words.folder / seen.hexdigest()[:16]
        if not kept.is_dir():
            part = kept.with_name("part")
            shutil.rmtree(kept.parent, ignore_errors=True)
            part.mkdir(parents=True)
            if steps:
                _draw(lab, steps, part)
                _draw_spread(words, part)
            for figure, folder in declared:
                write_figure(lab, figure.id, [(figure.of, results_of(lab, folder))], part)
            part.rename(kept)
        for path in kept.iterdir():
            target = site.out / "assets/figures" / words.folder / path.name
            _copy(path, target)
            site.written.add(target)


def _draw(lab: Lab, steps: list[Path], out: Path) -> None:
    """All steps side by side; the first beside the last; and the last in full."""
    sets = [(read_set(step).title, results_of(lab, step)) for step in steps]
    ends = [sets[0], sets[-1]] if len(sets) > 1 else sets
    write_figure(lab, "stages", ends, out)
    for kind in ("svg", "csv"):
        (out / f"stages.{kind}").rename(out / f"first-and-last.{kind}")
    write_figure(lab, "stages", sets, out)
    for name in ("measured-against-model", "window-against-loss"):
        write_figure(lab, name, sets[-1:], out)


def _draw_spread(words: LabWords, out: Path) -> None:
    """What chance does to the runs of the last two steps: many have few losses, others many."""
    last_two = [words.runs(step) for step in words.steps[-2:]]
    figure = spread(last_two[0], last_two[-1], words.bounds.max_loss_ratio)
    if figure is not None:
        save_svg(figure, out / "spread.svg")


def _rubrics(site: Site) -> None:
    """Each lab's rubric as CSV, for a learning management system."""
    for words in site.labs.values():
        if words.rubric:
            site.write(f"assets/rubrics/{words.folder}.csv", rubric.csv_text(words.rubric))


def _testbeds(site: Site) -> None:
    """What `./lab testbed` makes of each lab, to be fetched where there is no checkout."""
    for lab in map(read_lab, find_labs(site.root).values()):
        name = f"assets/testbeds/{lab.name}"
        site.write(f"{name}-fabric.ipynb", testbed_files.fabric_notebook(lab))
        site.write(f"{name}-cloudlab.py", testbed_files.cloudlab_profile(lab))


def _answer_keys(site: Site) -> None:
    """The solution notebooks as pages, with what their cells say of the recorded runs."""
    for words in site.labs.values():
        path = site.root / "solutions" / f"{words.folder}.py"
        if path.is_file():
            kept = site.root / "build/keys"
            for name, content in docs_notebook.notebook_files(site.root, path, kept).items():
                site.write(f"{KEY}/{name}", content.decode())
