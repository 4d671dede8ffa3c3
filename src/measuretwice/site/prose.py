"""What a page's prose may not hold: a measured number that is typed, and a word that judges a number and rests on nothing.

A number with a unit that measurements have stands in {{ }}, in code, in a formula, in what the authors themselves published
("What the authors saw"), or in a sentence that says where it is from, {## published: who ##} or {## set ##}, which readers
don't see. The mark stands in the sentence or behind it, and goes for the same number elsewhere on the page. Where a word such
as "hardly" or "inside" stands in one sentence with a number of a run, its paragraph says on which fact it rests,
{% holds "name" %}, or names the test that holds it, {## held: test_... ##}.

Whether a word means what its fact says, no program can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

UNITS = r"[MGk]?bit/s|ms|%|segments?|packets?|losses|loss|drops?|retransmissions?|timeouts?"
TYPED = re.compile(rf"(?<![\w.$-])\d[\d.,\u00a0\u202f ]*(?: |\xa0|&nbsp;)?(?:{UNITS})(?!\w)")
PUBLISHED = re.compile(r"^#+ What (the authors|the literature|they)\b.*$")
JUDGING = re.compile(
    r"\b(inside|outside|thousands|hundreds|dozens|each time|every time|whatever|nearly|almost|hardly"
    r"|clearly|always|never|none|grew|fell|rose|by far|far (?:above|below|from)"
    r"|(?:far )?(?:higher|lower|larger|smaller|longer|shorter|faster|slower|fewer|more|less) than)\b",
    re.IGNORECASE,
)
# A number as pages show it: a fact, or an expression that ends in a filter for numbers.
NUMBER = re.compile(
    r"\{\{ f\.[\w.]+ \}\}|\{\{[^{}]*\| *(?:sig|count|percent|mbit|ms|seconds|times|bytes)\b[^{}]*\}\}"
)
FROM_ELSEWHERE = re.compile(r"\{## (published: \S.*?|set) ##\}", re.DOTALL)
HELD = re.compile(r"\{## held: (\w+) ##\}")
HOLDS = re.compile(r"\{% holds ")
# A card's claim is what others say; its verdict is computed.
CLAIM = re.compile(r'^ *!!! verdict "[^"\n]*"\n(?:(?!\{##)[^\n])*', re.MULTILINE)
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
FENCE = re.compile(r"^( *)(```+).*?^ *\2 *$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
# What can't be a typed number.
COMPUTED = (
    CLAIM, FRONT_MATTER, FENCE,
    re.compile(r"\{\{.*?\}\}", re.DOTALL),
    re.compile(r"\{%.*?%\}", re.DOTALL),
    CODE, FORMULA,
    re.compile(r"\$[^$\n]+\$"),
    re.compile(r"<[^>\n]+>"),
    # How sure an interval is, is chosen; "Elsewhere" asks about a case that is made up.
    re.compile(r"(?<![\d.])9[059](?:\.\d+)?(?: |\xa0|&nbsp;)?%"),
    re.compile(r"^\*\*Elsewhere:?\*\*.*?(?:\n *\n|\Z)", re.DOTALL | re.MULTILINE),
)  # fmt: skip
# What judges nothing: tables, headings, and questions; and what is on the page on a condition.
UNJUDGED = (
    CLAIM, FRONT_MATTER, FENCE, CODE, FORMULA,
    re.compile(r"^ *(?:\||#).*$", re.MULTILINE),
    re.compile(r"\*\*[^*]*\?\*\*"),
    re.compile(r"\{% (?:if|elif|else)\b.*?(?=\{% (?:elif|else|endif)\b)", re.DOTALL),
)  # fmt: skip
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*({])")


# A fact's name that has lost a brace.
BRACES_AMISS = re.compile(r"\{ ?(f\.[\w.]+)[ }]*|(?<![\w.])(f\.[\w.]+) ?\}+")


def problems_in(text: str) -> list[tuple[int, str]]:
    """Return what is wrong with a page's prose, in order: the line, and what to do."""
    typed = [
        (line, f"{number!r} is typed. Take it from a run or the model with {{{{ }}}}, or say in its sentence where it is from: "
         "{## published: who ##} or {## set ##}")
        for line, number in typed_numbers(text)
    ]  # fmt: skip
    judging = [
        (line, f"{word!r} judges a number. Name the fact on which it rests ({{% holds \"name\" %}}), or name what holds it: "
         "{## held: test_... ##}, {## set ##}")
        for line, word in judged_numbers(text)
    ]  # fmt: skip
    amiss = [
        (line + paragraph[: braces.start()].count("\n"),
         f"'{braces[0].strip()}' is shown as it stands: it is {{{{ {(braces[1] or braces[2]).strip('.')} }}}}")
        for line, paragraph in _paragraphs(text, COMPUTED, " ")
        for braces in BRACES_AMISS.finditer(paragraph)
    ]  # fmt: skip
    return sorted(typed + judging + amiss)


def typed_numbers(text: str) -> list[tuple[int, str]]:
    """Return the numbers with a measured unit that stand in a page's prose: the line, and the words."""
    typed: list[tuple[int, str]] = []
    from_elsewhere: set[str] = set()
    published = False
    for line, paragraph in _paragraphs(text, COMPUTED, "·"):
        if heading := re.search(r"^#+ .*$", paragraph, re.MULTILINE):
            published = bool(PUBLISHED.match(heading[0]))
        if published:
            continue
        for begin, sentence in _marked_sentences(paragraph):
            numbers = list(TYPED.finditer(sentence))
            if FROM_ELSEWHERE.search(sentence):
                from_elsewhere.update(_plain(number[0]) for number in numbers)
            else:
                typed += [
                    (line + paragraph[: begin + number.start()].count("\n"), number[0])
                    for number in numbers
                ]
    return [(line, number) for line, number in typed if _plain(number) not in from_elsewhere]


def _plain(number: str) -> str:
    return number.replace("&nbsp;", " ").replace("\xa0", " ")


def _marked_sentences(paragraph: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence, with the mark that stands in it or behind it, and where in the paragraph it begins."""
    begin = 0
    for end in [*(stop.end() for stop in SENTENCE.finditer(paragraph)), len(paragraph)]:
        if not FROM_ELSEWHERE.match(paragraph, end):
            yield begin, paragraph[begin:end]
            begin = end


def judged_numbers(text: str) -> list[tuple[int, str]]:
    """Return the sentences with a number and a word that judges it, and nothing that holds the word: the line, and the word."""
    numbers = []
    for line, paragraph in _paragraphs(text, UNJUDGED, " "):
        if HELD.search(paragraph) or HOLDS.search(paragraph):
            continue
        for begin, sentence in _marked_sentences(paragraph):
            plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ", sentence, flags=re.DOTALL)
            word = NUMBER.search(sentence) and JUDGING.search(plain)
            if word and not FROM_ELSEWHERE.search(sentence):
                begin += len(sentence) - len(sentence.lstrip())
                numbers.append((line + paragraph[:begin].count("\n"), word[0]))
    return numbers


def _paragraphs(
    text: str, left_out: Sequence[re.Pattern[str]], sign: str
) -> Iterator[tuple[int, str]]:
    """Yield each paragraph with the line on which it begins; what is left out becomes as many signs."""
    for pattern in left_out:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", sign, match[0]), text)
    line = 1
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        yield line, paragraph
        line += paragraph.count("\n")
