"""The macros of pages: registered where they are defined, listed for those who write pages, and answered from recorded runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from measuretwice.backends.ssh_nodes import read_node_list
from measuretwice.base.errors import UserError
from measuretwice.lab import load_lab
from measuretwice.site.macros import (
    LabContext,
    Macro,
    MacroNamespace,
    MacroTable,
    Scope,
    SiteContext,
    load_macros,
)
from measuretwice.site.macros.blocks import in_words
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


CALIBRATE = LabContext(ROOT, load_lab(ROOT, "calibrate"))


def test_a_set_says_how_long_it_took() -> None:
    assert 0 < CALIBRATE.sets.real_s(CALIBRATE.run("readings", trial=2)) < 600
    assert CALIBRATE.took("readings").endswith(("min", "s", "\u00a0h"))


def test_long_lines_wrap_and_short_ones_do_not() -> None:
    wide = CALIBRATE.excerpt("readings", "romeo/ss.txt", trial=2, last=1)
    assert wide.startswith('```{ .text .wrapped title="romeo/ss.txt" ')
    narrow = CALIBRATE.excerpt("readings", "romeo/ping.txt", trial=2, last=1)
    assert narrow.startswith('```{ .text title="romeo/ping.txt" ')


def test_counts_in_words() -> None:
    assert [in_words(n) for n in (0, 8, 13)] == ["none", "eight", "13"]


def test_every_recorded_reading_is_as_expected() -> None:
    """The module says of these runs that they read back what was set."""
    for name in ("readings", "wide-buffer"):
        for run in CALIBRATE.runs(name):
            for e in run.expectations:
                assert e.ok, f"{name}, trial {run.trial}: {e}"
    again = [e for run in CALIBRATE.runs("loss-again") for e in run.expectations]
    counts = [e for e in again if e.confidence]
    assert len(counts) == 2 * len(CALIBRATE.runs("loss-again"))
    # One in a hundred may lie outside; three of forty would be no chance.
    assert sum(not e.ok for e in counts) < 3


def test_what_a_testbed_costs(tmp_path: Path) -> None:
    mathis = LabContext(ROOT, load_lab(ROOT, "mathis"))
    assert mathis.hours == 60 * 240 / 3600
    # Its trials say how large they are, and that sets how long they last.
    scale = LabContext(ROOT, load_lab(ROOT, "scale"))
    assert 0 < scale.hours < 100
    assert (len(scale.layout.machines), len(scale.layout.networks)) == (22, 3)
    assert (mathis.layout.cores, mathis.layout.memory_gb, mathis.layout.disk_gb) == (6, 24, 30)
    shown = tmp_path / "nodes.toml"
    shown.write_text("\n".join(mathis.node_list.splitlines()[1:-1]), encoding="utf-8")
    nodes = read_node_list(shown, ["romeo", "router", "juliet"])
    assert nodes.destinations["router"] == "you@router.example.org"
