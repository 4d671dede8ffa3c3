"""The one tag of pages: `{% holds "name" %}` stands before a sentence that rests on a fact of the page's lab. It has no
end; `{% holds "not name" %}` is for words that rest on its being false."""

from __future__ import annotations

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from measuretwice.base.errors import UserError
from measuretwice.facts import Facts
from measuretwice.site.page_facts import PageFacts, facts_behind


class Holds(Extension):
    """Stops the build, by name, where that fact isn't true. It shows nothing."""

    tags = {"holds"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the node that asks for the fact."""
        token = next(parser.stream)
        asked = [nodes.Name("f", "load"), parser.parse_expression()]
        call = self.call_method("_require", asked)
        return nodes.Output([call]).set_lineno(token.lineno)

    def _require(self, f: PageFacts, name: str) -> str:
        require(facts_behind(f), name)
        return ""


def require(f: Facts, name: str) -> None:
    """UserError where a page's words rest on a judgement that isn't true, or, by `not NAME`, isn't false."""
    bare = name.removeprefix("not ")
    wanted = bare == name
    if (judged := f.holds(bare)) is not wanted:
        is_now = "can't be told" if judged is None else f"is {str(judged).lower()}"
        raise UserError(
            f"{bare} {is_now}, and the words here rest on its being {str(wanted).lower()}: write what the facts say "
            "(facts.py, beside the lab's lab.toml, has what decides it)"
        )
