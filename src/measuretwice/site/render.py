"""Templates become Markdown: the words in {{ }} are filled in."""

from __future__ import annotations

import posixpath
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, TemplateError
from jinja2.ext import Extension

from measuretwice.base.errors import UserError
from measuretwice.site import markup
from measuretwice.site.kit_facts import kit_facts
from measuretwice.site.layouts import front_matter, laid_out
from measuretwice.site.page_facts import PageFacts, facts_behind
from measuretwice.site.tags import Holds, require
from measuretwice.site.words.blocks import Block, numbered
from measuretwice.site.words.registry import (
    Words,
    model_word,
    number_filter,
    site_word,
)
from measuretwice.site.words.subjects import LabWords, SiteWords

STAGES = ("broken", "fixed")
TEMPLATES = Path(__file__).parent / "templates"
# Where a block is to be put in: alone on its line, or within one.
MARK = re.compile(r"^([ \t]*)\x02([0-9]+)\x03[ \t]*$", re.MULTILINE)
INLINE = re.compile(r"\x02([0-9]+)\x03")
# A comment behind text, with the space before it. jinja would take the line's end along with it.
BEHIND_TEXT = re.compile(r"(?<=\S)[ \t]*\{##[^\n]*?##\}")
# Before text further in, in a fold, jinja would take the line's beginning along with a comment or a tag.
COMMENT_BEFORE_TEXT = re.compile(r"^([ \t]+)\{##[^\n]*?##\}[ \t]*(?=\S)", re.MULTILINE)
TAG_BEFORE_TEXT = re.compile(r"^([ \t]+\{%)(?= holds )", re.MULTILINE)


class _LinesStayLines(Extension):
    """Comments beside text go before jinja sees them, so that a line still begins and ends where it did, and no space
    stays before a stop; a sentence behind {% holds %} stays as far in."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return a template whose lines jinja leaves alone."""
        source = COMMENT_BEFORE_TEXT.sub(r"\1", BEHIND_TEXT.sub("", source))
        return TAG_BEFORE_TEXT.sub(r"\1+", source)


class Renderer:
    """Fills in the words of one site's templates: those of docs/, and those beside this module."""

    def __init__(self, site: SiteWords) -> None:
        self._site = site
        self._words = {
            **Words(site_word, site).everywhere(),
            "model": Words(model_word),
        }
        self._kit_facts = kit_facts(site.root)
        self._blocks: list[str] = []
        self._environment = self._make_environment()

    def render(self, template: Path, page: str, **extra: Any) -> str:
        """Return the text of the page that a template makes, of docs/ or of TEMPLATES.

        `extra` are words for this page alone. UserError with its name and line for what is wrong in it.
        """
        front = front_matter(template.read_text(encoding="utf-8"))
        words = {**self._words, **self._lab_words(page, front), **extra}
        folder = TEMPLATES if template.is_relative_to(TEMPLATES) else self._site.root / "docs"
        name = template.relative_to(folder).as_posix()
        self._blocks.clear()
        try:
            for fact in re.findall(r"(?:not )?[\w.]+", front.get("relies_on", "")):
                require(facts_behind(words["f"]), fact)
            if "story" in front:
                words["story"] = self._story(template, words)
            text = self._environment.get_template(name).render(words)
            text = laid_out(text, lambda layout, more: self._fill(layout, {**words, **more}))
        except (
            TemplateError,
            UserError,
            ArithmeticError,
            ValueError,
            TypeError,
            KeyError,
        ) as error:
            why = str(error) or type(error).__name__
            raise UserError(f"{self._place(name, error)}: {why}") from None
        text = self._filled_in(text, page, words)
        text = MARK.sub(lambda mark: _indented(self._blocks[int(mark[2])], mark[1]), text)
        return numbered(INLINE.sub(lambda mark: self._blocks[int(mark[1])], text))

    def _fill(self, template: str, words: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(words)

    def _story(self, template: Path, words: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The steps of the story that a page's front matter tells, their words filled in."""
        front = template.read_text(encoding="utf-8").partition("\n---\n")[0]
        code = self._environment.compile(front, filename=str(template))
        known = self._environment.make_globals(None)
        try:
            filled = Template.from_code(self._environment, code, known).render(words)
            told = yaml.safe_load(filled)
        except yaml.YAMLError as error:
            raise UserError(f"its front matter is no YAML: {error}") from None
        return list(told["story"])

    def _filled_in(self, text: str, page: str, words: dict[str, Any]) -> str:
        """Figures, verdicts, questions, and links to cases. UserError with the page's name."""

        def case(lab: str, name: str) -> tuple[int, str]:
            of = self._site.lab(lab) if lab else words.get("it", words.get("own"))
            if of is None:
                raise UserError(
                    f"[case](case:{name}): this page is no lab's: name it, case:LAB/{name}"
                )
            file = f"modules/{of.folder}/{of.case_page(name)}"
            return of.case_number(name), posixpath.relpath(file, posixpath.dirname(page))

        try:
            text = markup.link_cases(text, case)
            text = markup.show_symptoms(text, lambda name: words["symptom"](name))
            text = markup.ask_questions(text, lambda *question: words["asks"](*question))
            return markup.fill_in(
                text, facts_behind(words["f"]), lambda name, alt: words["figure"](name, alt)
            )
        except UserError as error:
            raise UserError(f"docs/{page}: {error}") from None

    def _make_environment(self) -> Environment:
        """Jinja's usual signs, but comments are {## ##}: {# opens an attribute list's anchor."""
        environment = Environment(
            loader=FileSystemLoader([self._site.root / "docs", TEMPLATES]),
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            comment_start_string="{##",
            comment_end_string="##}",
            finalize=self._keep,
            extensions=[_LinesStayLines, Holds],
        )
        filters = number_filter.words()
        environment.filters |= {name: entry.answer for name, entry in filters.items()}
        return environment

    def _keep(self, value: Any) -> Any:
        """A block of lines is put in at the end, when it is known how far in it stands."""
        if not isinstance(value, Block):
            return value
        self._blocks.append(value)
        return f"\x02{len(self._blocks) - 1}\x03"

    def _lab_words(self, page: str, front: Mapping[str, str]) -> dict[str, Any]:
        """A page in a lab's folder knows that lab's words and facts without naming it; any other page has, as `it`, the
        lab that its front matter names, or the facts of the kit itself."""
        for words in self._site.labs.values():
            if page.startswith(f"modules/{words.lab.folder.name}/"):
                case = front.get("case", "")
                facts = PageFacts(words, case or front.get("facts", ""))
                known = words.everywhere() | {"own": words, "f": facts}
                return known | (_of_case(words, case) if case else {})
        if "lab" not in front:
            return {"f": PageFacts(None, others=self._kit_facts)}
        words = self._site.lab(front["lab"])
        return {
            "it": words,
            "f": PageFacts(words, front.get("facts", "")),
            "figure": words.figure,
            "symptom": words.symptom,
        }

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
        path, root = Path(frames[-1].filename), self._site.root
        name = path.relative_to(root) if path.is_relative_to(root) else path.name
        return f"{name}, line {frames[-1].lineno}"


def _indented(text: str, by: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "\n".join(by + line if line else "" for line in lines)


def _of_case(words: LabWords, case: str) -> dict[str, Any]:
    """On a page of a case the checker's words are of its own runs: `{{ finding() }}`, `{{ finding("fixed") }}`."""

    def finding(stage: str = "broken") -> Any:
        return words.finding(f"{case}-{stage}" if stage in STAGES else stage)

    return {"finding": finding}
