"""The registry of checks: what each says of itself, held against what it does."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from measuretwice.checks import KINDS, Finding, FindingKind, RunUnderTest, engine, registry
from measuretwice.checks.registry import Check, SetCheck
from measuretwice.lab import find_labs, load_lab
from measuretwice.measure import fields

ROOT = Path(__file__).parents[2]
MODULES = sorted(engine.SUBJECTS, key=lambda module: module.__name__)


def calls(code: ModuleType | Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The name of each function called in `code` with a literal text as its first argument."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(code)))):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            yield name, str(node.args[0].value)


def asked(code: ModuleType | Callable[..., Any]) -> set[str]:
    """The measured values that `code` asks for by name; KeyError for one that nothing measures."""
    names = {
        text
        for name, text in calls(code)
        if name in ("measured", "measured_text", "measured_group")
    }
    # What another method of a run asks for by itself.
    if ".flows_both_ways()" in inspect.getsource(code):
        names |= asked(registry.RunUnderTest.flows_both_ways)
    fields.require(names, str(code))
    return names


def entries(module: ModuleType) -> list[Check | SetCheck]:
    found = registry.checks_of(module)
    assert found, f"{module.__name__} has no check"
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])
def test_what_a_module_raises_is_what_it_registers(module: ModuleType) -> None:
    raised = {text for name, text in calls(module) if name == "Finding"}
    assert raised == {kind.id for entry in entries(module) for kind in entry.raises}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])
def test_what_a_module_asks_for_is_what_it_needs(module: ModuleType) -> None:
    checks = [entry for entry in entries(module) if isinstance(entry, Check)]
    for entry in checks:
        assert asked(entry.function) <= entry.needs, entry.function.__name__
    needed = {name for entry in checks for name in entry.needs}
    # round_trip asks for several in a loop.
    assert needed - asked(module) <= {"rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms"}
    # What a function beside the checks asks for, those need that call it.
    assert asked(module) <= needed


def test_every_module_of_checks_is_asked() -> None:
    there = {path.stem for path in (ROOT / "src/measuretwice/checks").glob("*.py")}
    others = {"__init__", "engine", "registry"}
    assert there - others == {module.__name__.split(".")[-1] for module in MODULES}


def test_every_finding_has_a_description_and_has_hints() -> None:
    staged = {
        pitfall.finding
        for name in find_labs(ROOT)
        for pitfall in load_lab(ROOT, name).file.pitfalls
    }
    assert staged <= set(KINDS)
    for kind in KINDS.values():
        assert kind.description
        # What a lab stages has hints there. Those here stay for a kit without that lab, so that a new lab may stage any finding.
        assert kind.hints or kind.id in staged, kind.id


@pytest.fixture
def unregistered() -> Iterator[None]:
    before = list(registry._registry)
    yield
    registry._registry[:] = before


@pytest.mark.usefixtures("unregistered")
def test_a_check_that_needs_what_nothing_measures_fails_when_it_is_imported() -> None:
    with pytest.raises(KeyError, match="goodput_bsp"):

        @registry.check(FindingKind("slow", "The goodput."), needs=("goodput_bsp",))
        def slow(run: RunUnderTest) -> Finding | None:
            return None


@pytest.mark.usefixtures("unregistered")
def test_a_check_gets_only_what_it_needs() -> None:
    @registry.check(FindingKind("slow", "The goodput."), needs=("goodput_bps",))
    def slow(run: RunUnderTest) -> Finding | None:
        run.measured("goodput_bps")
        run.measured("duration_s")
        return None

    with pytest.raises(KeyError, match="duration_s"):
        slow(RunUnderTest({}, {"goodput_bps": 1.0, "duration_s": 2.0}))


@pytest.mark.usefixtures("unregistered")
def test_a_check_raises_only_what_it_is_registered_for() -> None:
    @registry.check(FindingKind("slow", "The goodput."), needs=())
    def slow(run: RunUnderTest) -> Finding | None:
        return Finding("fast", "", "", "")

    with pytest.raises(KeyError, match="fast"):
        slow(RunUnderTest({}, {}))
