"""Templates become Markdown: what stands in {{ }} is filled in, and pages that rest on a fact that isn't true are refused.

The one tag is `{% holds "name" %}`. It stands before a sentence that rests on a fact of the page's lab, and has no end;
`{% holds "not name" %}` is for words that rest on its being false.
"""

from __future__ import annotations

import posixpath
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from measuretwice.base.errors import UserError
from measuretwice.facts import Excerpt, Facts, Table
from measuretwice.lab.load import read_rules
from measuretwice.site import markup
from measuretwice.site.kit_facts import kit_facts
from measuretwice.site.layouts import front_matter, laid_out
from measuretwice.site.macros import LabContext, MacroNamespace, SiteContext, load_macros
from measuretwice.site.macros.blocks import Block, indented, numbered
from measuretwice.site.macros.cases import asks
from measuretwice.site.macros.excerpts import counters, excerpt
from measuretwice.site.macros.explained import explained
from measuretwice.site.macros.figure_files import figure, symptom
from measuretwice.site.macros.lab import finding

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


class _Holds(Extension):
    """Stops the build, by name, where a fact isn't true. It shows nothing."""

    tags = {"holds"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the node that asks for the fact."""
        token = next(parser.stream)
        asked = [nodes.Name("f", "load"), parser.parse_expression()]
        return nodes.Output([self.call_method("_require", asked)]).set_lineno(token.lineno)

    def _require(self, f: PageFacts, name: str) -> str:
        require(facts_behind(f), name)
        return ""


def require(f: Facts, name: str) -> None:
    """UserError where a page's words rest on a judgement that isn't true, or, by `not NAME`, isn't false."""
    bare = name.removeprefix("not ")
    wanted = bare == name
    if (judged := f.holds(bare)) is not wanted:
        is_now = "is undecided" if judged is None else f"is {str(judged).lower()}"
        raise UserError(
            f"{bare} {is_now}, and the words here rest on its being {str(wanted).lower()}: write what the facts say "
            f"(facts.json, beside the recorded sets, has it under {f.source(bare)!r})"
        )


class PageFacts:
    """What `{{ f.name }}` is on a page of a lab: a number or an interval, the lines of an excerpt, a table. A page of a
    case has that case's facts before the lab's; any other page of a lab names the case first: `{{ f.wrong_metric.ping }}`. What
    the lab has no fact of is looked up in `others`."""

    def __init__(
        self, context: LabContext | None, case: str = "", others: Facts | None = None
    ) -> None:
        self._context, self._case = context, case
        facts = others or Facts()
        if context:
            facts = context.facts.joined(facts)
        self._facts = facts.case(case) if case else facts
        self._cases = {pitfall.id for pitfall in context.lab.file.pitfalls} if context else set()

    def __str__(self) -> str:
        raise UserError(f"{self._case!r} is a case: say which of its facts")

    def __getattr__(self, name: str) -> Any:
        if self._context and (case := name.replace("_", "-")) in self._cases:
            return PageFacts(self._context, case)
        fact = self._facts[name]
        if fact is None or isinstance(fact, bool):
            raise UserError(
                f"the fact {name!r} is a judgement, which has no text: put it into words, behind {{% holds %}}"
            )
        if isinstance(fact, Table):
            return Block(fact)
        if isinstance(fact, Excerpt):
            assert self._context
            return _excerpt_lines(self._context, fact)
        return fact


def _excerpt_lines(context: LabContext, fact: Excerpt) -> Block:
    """An excerpt's lines; with each field explained, or as counters before and after the run, where it says so."""
    lines = dict(fact.lines)
    if tool := lines.pop("explained", None):
        return explained(context, tool, fact.of_set, fact.file, **lines)
    if names := lines.pop("counters", None):
        return counters(context, fact.of_set, fact.file.split("/")[0], names, **lines)
    return excerpt(context, fact.of_set, fact.file, **lines)


def facts_behind(quoted: PageFacts) -> Facts:
    """Return the facts themselves, as judgements are asked for."""
    return quoted._facts


class Renderer:
    """Fills in one site's templates: those of docs/, and those beside this module."""

    def __init__(self, site: SiteContext) -> None:
        self._site = site
        macros = load_macros()
        self._names = {
            **MacroNamespace(macros.of("site"), site).unqualified(),
            "model": MacroNamespace(macros.of("model")),
        }
        self._kit_facts = kit_facts(site.root)
        self._blocks: list[str] = []
        # Jinja's usual signs, but comments are {## ##}: {# opens an attribute list's anchor.
        self._environment = Environment(
            loader=FileSystemLoader([site.root / "docs", TEMPLATES]),
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            comment_start_string="{##",
            comment_end_string="##}",
            finalize=self._mark_block,
            extensions=[_LinesStayLines, _Holds],
        )
        filters = macros.of("filter")
        self._environment.filters |= {name: macro.function for name, macro in filters.items()}

    def render(self, template: Path, page: str, **extra: Any) -> str:
        """Return the text of the page that a template makes, of docs/ or of TEMPLATES.

        `extra` are names for this page alone. UserError with its name and line for what is wrong in it.
        """
        front = front_matter(template.read_text(encoding="utf-8"))
        context = self._context_of(page, front)
        names = {**self._names, **self._names_on(page, front, context), **extra}
        folder = TEMPLATES if template.is_relative_to(TEMPLATES) else self._site.root / "docs"
        name = template.relative_to(folder).as_posix()
        facts = facts_behind(names["f"])
        self._blocks.clear()
        try:
            for fact in re.findall(r"(?:not )?[\w.]+", front.get("relies_on", "")):
                require(facts, fact)
            if "story" in front:
                names["story"] = self._story(template, names)
            text = self._fill(name, names)
            text = laid_out(text, lambda layout, more: self._fill(layout, {**names, **more}))
        except (
            TemplateError,
            UserError,
            ArithmeticError,
            ValueError,
            TypeError,
            KeyError,
        ) as error:
            why = str(error) or type(error).__name__
            raise UserError(f"{self._where(name, error)}: {why}") from None
        try:
            text = self._with_markup(text, page, facts, context)
        except UserError as error:
            raise UserError(f"docs/{page}: {error}") from None
        text = MARK.sub(lambda mark: indented(self._blocks[int(mark[2])], mark[1]), text)
        return numbered(INLINE.sub(lambda mark: self._blocks[int(mark[1])], text))

    def _fill(self, template: str, names: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(names)

    def _story(self, template: Path, names: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The steps of the story that a page's front matter tells, filled in."""
        front = template.read_text(encoding="utf-8").partition("\n---\n")[0]
        code = self._environment.compile(front, filename=str(template))
        macros = self._environment.make_globals(None)
        try:
            filled = Template.from_code(self._environment, code, macros).render(names)
            return list(yaml.safe_load(filled)["story"])
        except yaml.YAMLError as error:
            raise UserError(f"its front matter is no YAML: {error}") from None

    def _with_markup(self, text: str, page: str, facts: Facts, context: LabContext | None) -> str:
        """Figures, verdicts, questions, and links to cases."""

        def of_page() -> LabContext:
            if context is None:
                raise UserError("this page is no lab's, and has no figure or question of one")
            return context

        def case(lab: str, name: str) -> tuple[int, str]:
            of = self._site.lab(lab) if lab else context
            if of is None:
                raise UserError(
                    f"[case](case:{name}): this page is no lab's: name it, case:LAB/{name}"
                )
            file = f"modules/{of.folder}/{of.case_page(name)}"
            return of.case_number(name), posixpath.relpath(file, posixpath.dirname(page))

        text = markup.link_cases(text, case)
        text = markup.show_symptoms(text, lambda name: symptom(of_page(), name))
        text = markup.ask_questions(text, lambda *question: asks(of_page(), *question))
        return markup.fill_in(
            text,
            facts,
            lambda name, alt: figure(of_page(), name, alt),
            lambda: read_rules(of_page().lab),
        )

    def _mark_block(self, value: Any) -> Any:
        """A block of lines is put in at the end, when it is known how far in it stands."""
        if not isinstance(value, Block):
            return value
        self._blocks.append(value)
        return f"\x02{len(self._blocks) - 1}\x03"

    def _context_of(self, page: str, front: Mapping[str, str]) -> LabContext | None:
        """The lab in whose folder a page is, or that its front matter names."""
        for context in self._site.labs.values():
            if page.startswith(f"modules/{context.lab.folder.name}/"):
                return context
        return self._site.lab(front["lab"]) if "lab" in front else None

    def _names_on(
        self, page: str, front: Mapping[str, str], context: LabContext | None
    ) -> dict[str, Any]:
        """A page in a lab's folder knows that lab's macros and facts without naming it; any other page has, as `it`, the
        lab that its front matter names, and the facts of the kit itself."""
        if context is None:
            return {"f": PageFacts(None, others=self._kit_facts)}
        if not page.startswith(f"modules/{context.lab.folder.name}/"):
            f = PageFacts(context, front.get("facts", ""), self._kit_facts)
            return {"it": context, "f": f}
        case = front.get("case", "")
        facts = PageFacts(context, case or front.get("facts", ""))
        names = context.unqualified() | {"own": context, "f": facts}
        return names | (_names_of_case(context, case) if case else {})

    def _where(self, template: str, error: Exception) -> str:
        """Return the page and the innermost line of a template where an error arose."""
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


def _names_of_case(context: LabContext, case: str) -> dict[str, Any]:
    """On a page of a case the checker's words are of its own runs: `{{ finding() }}`, `{{ finding("fixed") }}`."""

    def of_case(stage: str = "broken") -> Any:
        return finding(context, f"{case}-{stage}" if stage in STAGES else stage)

    return {"finding": of_case}
