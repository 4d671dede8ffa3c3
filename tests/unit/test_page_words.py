"""The words of pages: registered where they are defined, and listed for those who write pages."""

from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.lab import load_lab
from measuretwice.site.macros.table import (
    LabContext,
    Macro,
    MacroNamespace,
    MacroTable,
    Scope,
    SiteContext,
    load_macros,
)
from measuretwice.site.reference import macro_list

ROOT = Path(__file__).parents[2]
SCOPES: tuple[Scope, ...] = ("lab", "site", "model", "filter")


def test_the_list_is_the_one_in_the_workshop() -> None:
    recorded = (ROOT / "workshop/words.md").read_text(encoding="utf-8")
    assert recorded == macro_list(), "the words have changed: make words"


@pytest.mark.parametrize("scope", SCOPES)
def test_every_macro_says_what_it_is(scope: Scope) -> None:
    macros = load_macros().of(scope)
    assert macros
    for name, macro in macros.items():
        assert macro.help.endswith((".", ")")), name


@pytest.mark.parametrize(
    ("usage", "name", "is_value", "qualified"),
    [
        ('run("mtu-broken")', "run", False, False),
        ("own.expected_ratio", "expected_ratio", True, True),
        ('it.minutes_of("mtu")', "minutes_of", False, True),
        ("x | sig(3)", "sig", False, False),
    ],
)
def test_a_macros_usage_says_its_name_and_kind(
    usage: str, name: str, is_value: bool, qualified: bool
) -> None:
    macro = Macro("filter" if "|" in usage else "lab", usage, len)
    assert (macro.name, macro.is_value, macro.qualified) == (name, is_value, qualified)


def test_every_fact_of_each_lab_has_an_answer() -> None:
    for name in ("calibrate", "queues"):
        assert {"trials", "layout", "run"} <= set(
            LabContext(ROOT, load_lab(ROOT, name)).unqualified()
        )


def test_a_rare_word_is_not_everywhere_and_says_where_it_has_no_answer() -> None:
    words = LabContext(ROOT, load_lab(ROOT, "calibrate"))
    assert "expected_ratio" not in words.unqualified()
    with pytest.raises(UserError, match="expects no range of the ratio"):
        words.expected_ratio  # noqa: B018


def test_an_unknown_word_is_none() -> None:
    words = LabContext(ROOT, load_lab(ROOT, "calibrate"))
    with pytest.raises(AttributeError, match="no word 'nosuchword'"):
        words.nosuchword  # noqa: B018
    with pytest.raises(UserError, match="no lab 'nosuchlab'"):
        SiteContext(ROOT, {"calibrate": words}, instructor=False).lab("nosuchlab")


def test_macros_register_by_name_once_and_values_are_asked_for_once() -> None:
    asked = []
    table = MacroTable()

    @table.add("answer")
    def answer(about: str) -> str:
        """Return what it
        is about.

        More that the list leaves out.
        """
        asked.append(about)
        return about.upper()

    namespace = MacroNamespace(table.of("lab"), "x")
    assert (namespace.answer, namespace.answer, asked) == ("X", "X", ["x"])
    assert table.of("lab")["answer"].help == "What it is about."
    with pytest.raises(AssertionError, match="twice"):
        table.add("answer")(len)
