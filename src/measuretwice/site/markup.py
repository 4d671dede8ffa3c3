r"""What pages write in Markdown and the kit fills in, once their {{ }} are: figures and cards of verdicts.

![Boxes of each flow's goodput](figure:two-arms)      alone on its line: a figure of the page's lab, with that alt text
![What is seen](symptom:mtu)                          the figure of a case's symptom, whose alt text is of its numbers

!!! verdict "red_keeps_the_queue_short"               a card, whose verdict is that fact's; cards that follow each
    **The claim**, according to whom                  other make a strip
    Here: what was found
    of how many · [Evidence](#where)              (how it is judged stands in the lab's rules.toml)

| **sum** | **in all** |                               in a table: the sum of the numbers above it

[case](case:mtu), [Case](case:mtu), or [case](case:buffers/one-run): a link to a case's page, which says its number

!!! asks "loss" "pings lost"                          a question with a field for its answer, which has that name
    How many of 100 pings will be lost?               among the lab's pages, and is of that

$p$, and by itself $$ \frac{1}{p} $$                  formulas, from TeX to MathML: browsers set them without a script, and
                                                      readers' software says them; the second scrolls where it is too wide
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from latex2mathml.converter import convert

from measuretwice.base.errors import UserError
from measuretwice.facts import Facts
from measuretwice.lab.schema.results import Rule
from measuretwice.site.macros.blocks import indented

FIGURE = re.compile(r"^([ \t]*)!\[([^\n]*)\]\(figure:([^)\s]+)\)[ \t]*$", re.MULTILINE)
SYMPTOM = re.compile(r"^([ \t]*)!\[[^\n]*\]\(symptom:([^)\s]+)\)[ \t]*$", re.MULTILINE)
CARD = r'!!! verdict "(?P<name>[^"\n]*)"\n(?P<body>(?:    [^\n]*\n|\n)*)'
CARDS = re.compile(rf"^(?:{CARD.replace('?P<name>', '').replace('?P<body>', '')})+", re.MULTILINE)
TABLE = re.compile(r"^(?:\|.*\n)+", re.MULTILINE)
SUM = "| **sum** |"
CASE_LINK = re.compile(r"\[([Cc]ase)\]\(case:(?:([a-z0-9]+)/)?([a-z0-9-]+)\)")
EVIDENCE = re.compile(r"[ \t]*·[ \t]*(\[Evidence\]\([^)\s]*\))$")
QUESTION = re.compile(r'^!!! asks "([^"\n]+)" "([^"\n]+)"\n {4}([^\n]+)$', re.MULTILINE)
MISSPELT = re.compile(r"^!!! (?!verdict\b)(ver\w+) ", re.MULTILINE)
# Of formulas. As in Markdown's own rules for them, code holds none, and a dollar beside a space isn't one's sign. What is
# left as it is comes first: fenced blocks, scripts and styles, code within a line.
FORMULAS = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^[ \t]*(?P=fence)[ \t]*$"
    r"|<(?P<tag>script|style|pre|math|svg)\b.*?</(?P=tag)>"
    r"|(?<![`\\])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)"
    r"|^(?P<before>[ \t]*)\$\$(?P<block>(?:(?!\n[ \t]*\n).)+?)\$\$[ \t]*$"
    r"|(?<![\\$])\$(?![\s$])(?P<line>(?:\\.|[^\\$\n]|\n(?![ \t]*\n))+?)(?<!\s)\$(?!\$)",
    re.MULTILINE | re.DOTALL,
)
# By what a claim came to: its card's class, which has a shape of its own, and its words.
VERDICTS = {
    True: ("holds", "holds"),
    False: ("fails", "doesn't hold"),
    None: ("open", "undecided"),
}


def fill_in(
    text: str,
    facts: Facts,
    figure: Callable[[str, str], str],
    rules: Callable[[], Mapping[str, Rule]],
) -> str:
    """Return a page's Markdown with its figures and cards; `figure` draws one by its name and its alt text, and `rules`
    returns how the page's lab judges each claim.

    UserError for a card that isn't whole, that has no rule, or whose fact is no judgement.
    """
    if match := MISSPELT.search(text):
        raise UserError(f"there are no blocks '!!! {match[1]}': is it '!!! verdict'?")
    text = TABLE.sub(lambda table: _summed(table[0]), text)
    text = CARDS.sub(lambda strip: _strip(strip[0], facts, rules()), text)
    return FIGURE.sub(lambda match: indented(figure(match[3], match[2]), match[1]), text)


def _summed(table: str) -> str:
    """A table whose row `**sum**` has the sum of the first cells above it."""
    if SUM not in table:
        return table
    cells = [line.split("|")[1].strip() for line in table.splitlines()]
    return table.replace(SUM, f"| **{sum(int(cell) for cell in cells if cell.isdecimal())}** |")


def show_symptoms(text: str, symptom: Callable[[str], str]) -> str:
    """Return a page with the figures of cases' symptoms; `symptom` draws that of a case by its id."""
    return SYMPTOM.sub(lambda match: indented(symptom(match[2]), match[1]), text)


def link_cases(text: str, case: Callable[[str, str], tuple[int, str]]) -> str:
    """Return a page whose links to cases lead there; `case` says a case's number and address by its lab (empty: the
    page's own) and its id."""

    def linked(match: re.Match[str]) -> str:
        number, address = case(match[2] or "", match[3])
        return f"[{match[1]} {number}]({address})"

    return CASE_LINK.sub(linked, text)


def ask_questions(text: str, ask: Callable[[str, str, str], str]) -> str:
    """Return a page with its questions; `ask` makes one of its name, what is asked, and what is to be predicted."""
    return QUESTION.sub(lambda match: ask(match[1], match[3], match[2]), text)


def _strip(text: str, facts: Facts, rules: Mapping[str, Rule]) -> str:
    cards = (
        _card(facts, match["name"], match["body"], rules.get(match["name"]))
        for match in re.finditer(CARD, text)
    )
    body = "\n".join(cards)
    return f'<div class="verdicts" role="list" markdown="1">\n\n{body}\n</div>\n\n'


def _card(facts: Facts, name: str, body: str, rule: Rule | None) -> str:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    evidence = EVIDENCE.search(lines[-1]) if len(lines) == 3 else None
    if evidence is None:
        raise UserError(
            f"verdict {name!r}: expected three indented lines, the claim, what was found, and of how many runs · [Evidence](#...); there are {len(lines)}"
        )
    claim, result, of = lines[0], lines[1], lines[2][: evidence.start()]
    shape, verdict = VERDICTS[facts.holds(name)]
    if rule is None:
        raise UserError(
            f"verdict {name!r}: the lab's rules.toml has no table [{name}], which states how it is judged"
        )
    cells = (("word", verdict), ("claim", claim), ("value", result), ("n", of), ("at", evidence[1]))
    spans = "\n".join(f'<span class="verdicts__{kind}">{text}</span>' for kind, text in cells)
    judged = (
        '<details class="verdicts__rule" data-search-exclude><summary>How it is judged</summary>'
        f"{rule.rule} Tried over: {rule.tried}.</details>"
    )
    return (
        f'<div class="verdicts__one verdicts__one--{shape}" role="listitem" markdown="span">\n'
        f"{spans}\n{judged}\n</div>\n"
    )


def with_formulas(page: str, text: str) -> str:
    """Return a page's Markdown with its formulas as MathML; UserError for one that can't be read."""

    def formula(match: re.Match[str]) -> str:
        if (tex := match["block"]) is not None:
            # In its own box it can be scrolled, by the keyboard too.
            box = f'<div class="formula" tabindex="0">{_mathml(page, tex, "block")}</div>'
            return f"{match['before']}{box}"
        if (tex := match["line"]) is not None:
            # In a box of its own it may begin a line: Markdown would take bare MathML there for a block.
            return f'<span class="formula">{_mathml(page, tex, "inline")}</span>'
        return match[0]

    return FORMULAS.sub(formula, text) if "$" in text else text


def _mathml(page: str, tex: str, display: str) -> str:
    try:
        mathml = convert(" ".join(tex.split()), display=display)
    except Exception as error:
        raise UserError(f"{page}: ${tex}$ is no formula: {error}") from None
    # An unknown command, or a brace of which there is no other, is taken for a name.
    if re.search(r">[{}]|\\\w", mathml):
        raise UserError(f"{page}: ${tex}$ has a command that isn't known, or a brace too many")
    # Each letter as a character's number, lest Markdown find an abbreviation, an emphasis or a link in it.
    return re.sub(r">([^<]+)<", lambda match: f">{_spelled(match[1])}<", mathml)


def _spelled(text: str) -> str:
    return re.sub(
        r"&#?\w+;|.", lambda match: match[0] if len(match[0]) > 1 else f"&#{ord(match[0])};", text
    )
