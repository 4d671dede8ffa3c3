"""Pages quote facts, and aren't made where a fact that their words rest on isn't true; verdicts come first, comments are seen by
nobody."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.facts import Excerpt, Facts, Interval, Number, Table
from measuretwice.lab import load_lab
from measuretwice.lab.load import read_rules
from measuretwice.lab.schema.results import Rule
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.markup import VERDICTS, fill_in, show_symptoms
from measuretwice.site.render import Renderer

ROOT = Path(__file__).parents[2]
PAGE = "modules/05-queues/page.md"


def made(tmp_path: Path, text: str, **facts: object) -> str:
    page = tmp_path / "docs" / PAGE
    page.parent.mkdir(parents=True)
    page.write_text(text, encoding="utf-8")
    words = LabContext(ROOT, load_lab(ROOT, "queues"))
    words.facts = Facts(facts)  # type: ignore[arg-type]
    return Renderer(SiteContext(tmp_path, {"queues": words}, instructor=False)).render(page, PAGE)


def test_facts_are_quoted(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        "It takes {{ f.wait }}.\n\n    {{ f.all }}\n",
        wait=Number(83.7, "ms"), all=Table(("n",), ((Number(1),),)),
    )  # fmt: skip
    assert text == "It takes 83.7\u00a0ms.\n\n    | n |\n    |---:|\n    | 1 |\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{ f.weight }}", "page.md, line 1: there is no fact 'weight'"),
        ('\n{% holds "short" %}It is short.', "page.md, line 2: short is false, and the words here rest on its being true"),
        ('{% holds "open" %}', "open is undecided"),
        ('{% holds "wait" %}', "the fact 'wait' is no judgement"),
        ("---\nstory:\n  - ask: a: b\n---\n", "page.md: its front matter is no YAML"),
        ("---\nstory:\n  - ask: {{ f.weight }}\n---\n", "page.md, line 3: there is no fact 'weight'"),
        ("---\nrelies_on: [short]\n---\nIt is short.", "page.md: short is false, and the words here rest"),
        ('!!! verdict "wait"\n    a\n    b\n    c · [Evidence](#d)\n', "the fact 'wait' is no judgement"),
        ('!!! verdict "short"\n    a\n    b\n', "verdict 'short': expected three indented lines"),
        ("{{ f.short }}", "a judgement"),
        ("{{ f.wrong_metric }}", "'wrong-metric' is a case: say which"),
        ("{{ f.wai }}", "there is no fact 'wai'; is it 'wait'?"),
        ('{% holds "not open" %}', "open is undecided"),
        ('!!! verdit "short"\n    a\n', "no blocks '!!! verdit': is it '!!! verdict'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError) as raised:
        made(tmp_path, text, short=False, open=None, wait=Number(1))
    assert says in str(raised.value)


def test_what_a_page_rests_on_is_not_shown(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        '---\ndescription: "x"\nrelies_on: [a, not b, red_limits.c]\n---\n{% holds "a" %}It is so.\n',
        a=True, b=False, **{"red-limits.c": True},
    )  # fmt: skip
    assert text == '---\ndescription: "x"\n---\nIt is so.\n'


def test_the_story_of_a_page_quotes_facts_and_stays_out_of_its_text(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        """---
hide: [toc]
story:
  - ask: How long?
    seen: >-
      It waits {{ f.wait }},
      and no "more".
    to: {{ f.wait.bare }}
  - {ask: "And then?", others: true}
lab: queues
---
{{ story[0].seen }} {{ story[0].to + 1 }} {{ story[1].others }}
""",
        wait=Number(83.5, "ms"),
    )
    assert text == '---\nhide: [toc]\n---\nIt waits 83.5\u00a0ms, and no "more". 84.5 True\n'


def test_a_line_in_a_fold_stays_as_far_in(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        '    {## set ##} One.\n\n    {% holds "a" %}Two.{## set ##}\n\n    {## set ##}\n    Three.\n',
        a=True,
    )
    assert text == "    One.\n\n    Two.\n\n    Three.\n"


def test_cards_and_figures() -> None:
    text = """Before.

!!! verdict "a"
    **A**, according to us
    Here: 1
    2 runs · [Evidence](#x)

!!! verdict "b"
    **B**, according to them
    Here: 2
    3 runs · [Evidence](y.md)

- A list

    ![Some boxes](figure:two)
"""
    filled = fill_in(
        text,
        Facts({"a": True, "b": None}),
        lambda name, alt: f"[{name}: {alt}]\nits caption",
        lambda: {name: Rule(rule=f"{name} is judged.", tried="one seed") for name in "ab"},
    )
    assert filled.count('<div class="verdicts" ') == 1
    assert filled.count("verdicts__one--holds") == filled.count("verdicts__one--open") == 1
    assert (
        '<span class="verdicts__n">3 runs</span>\n<span class="verdicts__at">[Evidence](y.md)</span>'
        in filled
    )
    assert filled.count('<details class="verdicts__rule" data-search-exclude>') == 2
    assert "a is judged. Tried over: one seed.</details>" in filled
    assert filled.endswith("    [two: Some boxes]\n    its caption\n")


def test_a_card_without_a_rule_is_refused() -> None:
    text = '!!! verdict "a"\n    **A**\n    Here: 1\n    2 runs · [Evidence](#x)\n'
    with pytest.raises(UserError, match=r"'a': the lab's rules.toml has no table"):
        fill_in(text, Facts({"a": True}), lambda name, alt: "", dict)


def test_rules_are_read_and_what_is_wrong_in_them_is_named(tmp_path: Path) -> None:
    lab = replace(load_lab(ROOT, "scale"), folder=tmp_path)
    assert read_rules(lab) == {}
    path = tmp_path / "rules.toml"
    for text, said in (
        ('[a]\nrule = "It holds."\n', "a.tried"),
        ('[a]\nrule = "It holds."\ntried = ""\n', "tried"),
        ("[a\n", "rules.toml"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=said):
            read_rules(lab)
    path.write_text('[a]\nrule = "It holds."\ntried = "one seed"\n')
    assert read_rules(lab)["a"].tried == "one seed"


def test_a_question_has_a_field_for_its_answer(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        'It is so.\n\n!!! asks "loss" "pings lost"\n    How many of {{ f.n }}?\n',
        n=Number(5),
    )
    assert text.startswith("It is so.\n\n**How many of 5?**\n\n<div")
    assert 'data-case="queues loss"' in text
    assert 'data-quantity="pings lost"' in text


def test_a_cases_symptom_stands_alone_on_its_line() -> None:
    text = "Look:\n\n    ![What is seen](symptom:mtu)\n\nNot ![What is seen](symptom:mtu) here.\n"
    shown = show_symptoms(text, lambda name: f"[{name}]\nits caption\n")
    assert (
        shown == "Look:\n\n    [mtu]\n    its caption\n\nNot ![What is seen](symptom:mtu) here.\n"
    )


def test_intervals_as_pages_use_them(tmp_path: Path) -> None:
    text = made(tmp_path, "{{ f.c.middle }} ({{ f.c.ends }})", c=Interval(1.22, 1.2, 1.24, "ms"))
    assert text == "1.22\u00a0ms (1.20 to 1.24)"


def test_excerpts_with_fields_explained_and_counters(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        "{{ f.line }}\n\n{{ f.counted }}\n",
        line=Excerpt("copied-cell-fixed", "host-1/ss.txt", {"last": 1, "trial": 6, "explained": "ss"}),
        counted=Excerpt("copied-cell-fixed", "host-1/nstat.after.json", {"trial": 6, "counters": ["TcpInSegs"]}),
    )  # fmt: skip
    assert '<div class="explained"' in text
    assert "counter    before  after  difference" in text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("one {## set ##}\n\ntwo\n", "one\n\ntwo\n"),
        ("| a | {## set ##}\n|---|\n", "| a |\n|---|\n"),
        ("98 % {## published: they ##}, and\n", "98 %, and\n"),
        ("{## of its own ##}\nnext\n", "next\n"),
        ("{{ 1 }} {## measured ##} {{ 2 }}\n", "1 2\n"),
        ("## word { #anchor }\n", "## word { #anchor }\n"),
    ],
)
def test_a_comment_behind_text_takes_no_line_and_leaves_no_space(
    tmp_path: Path, source: str, text: str
) -> None:
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text(source)
    assert Renderer(SiteContext(tmp_path, {}, instructor=False)).render(page, "page.md") == text


RESULTS = [
    "01-mathis/not-reproduced.md",
    *(f"{lab}/results.md" for lab in ("02-buffers", "03-scale", "04-variants", "05-queues")),
]


def test_each_verdict_has_a_shape_of_its_own() -> None:
    css = (ROOT / "docs/assets/extra.css").read_text(encoding="utf-8")
    shapes = [
        re.findall(rf"verdicts__one--{shape} {{ --shape: (.*)", css)[0]
        for shape, _ in VERDICTS.values()
    ]
    assert len(set(shapes)) == len(VERDICTS) == 3


@pytest.mark.parametrize("page", RESULTS)
def test_pages_of_results_begin_with_verdicts(page: str) -> None:
    text = (ROOT / "docs/modules" / page).read_text(encoding="utf-8")
    assert text.index("!!! verdict") < text.index("\n## "), "the verdicts come first"
    assert text.count("!!! verdict") >= 5


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("It takes a while.\n", 0, "Nothing is wrong."),
        ("\nIt takes 3 ms.\n", 1, "docs/page.md, line 2: '3 ms' is typed."),
        ("---\nlab: queues\n---\nIt hardly takes {{ f.rate }}.\n", 1, "line 4: 'hardly' judges a number."),
        ("---\nlab: queues\n---\n{{ f.rat }}\n", 2, "docs/page.md, line 4: there is no fact 'rat'; is it 'rate' (What trials 1"),
    ],
)  # fmt: skip
def test_one_page_is_checked_in_seconds(tmp_path: Path, text: str, status: int, says: str) -> None:
    for name in ("labs", "sample-data", "mkdocs.yml", "solutions"):
        (tmp_path / name).symlink_to(ROOT / name)
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text(text)
    done = call_lab("docs", "--check", str(page), MEASURETWICE_ROOT=str(tmp_path))
    assert done.returncode == status
    assert says in done.stdout + done.stderr
    if status < 2:
        made = (tmp_path / "build/checked/page.md").read_text()
        assert ("100\u00a0Mbit/s" in made) is ("f.rate" in text)


def test_what_is_no_page_is_refused() -> None:
    done = call_lab("docs", "--check", str(ROOT / "README.md"))
    assert done.returncode == 2
    assert "is no page; give a .md file below" in done.stderr
    done = call_lab("docs", "--check", "docs/nowhere.md")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "docs/nowhere.md: there is no such file" in done.stderr


def test_questions_are_compared_with_their_points(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "labs/03-scale", tmp_path / "labs/03-scale")
    questions = tmp_path / "labs/03-scale/questions.md"
    done = call_lab("docs", "--check", str(questions), MEASURETWICE_ROOT=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    questions.write_text(questions.read_text().replace("(8 ", "(9 ", 1))
    done = call_lab("docs", "--check", str(questions), MEASURETWICE_ROOT=str(tmp_path))
    assert done.returncode == 1
    assert "question 1: 9 points asked, 8 in rubric.toml" in done.stdout
