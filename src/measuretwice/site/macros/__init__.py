"""The macros that a page's template may write in braces, a module for each subject; here is their table.

A new macro is a function in a module of this package under `@macro("how a page writes it")`; it needs to be named
nowhere else. Its docstring's first paragraph is its help, in workshop/words.md too, which `make words` writes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from measuretwice.base.errors import UserError
from measuretwice.facts import Facts, RecordedSets, read_facts
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import ModelUse

Function = TypeVar("Function", bound=Callable[..., Any])
# What a macro is about, its function's first argument: a lab (LabContext) or the site (SiteContext). Those of the scope
# model (`model.NAME`) and filters (`x | NAME`) have only what the page gives them.
Scope = Literal["lab", "site", "model", "filter"]
NAME = re.compile(r"(?:\w+ \| |(?:own|it|model)\.)?(\w+)")


@dataclass(frozen=True)
class Macro:
    """A macro: its scope, how a page writes it, and the function that answers."""

    scope: Scope
    usage: str
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """The name in its usage."""
        match = NAME.match(self.usage)
        assert match, self.usage
        return match[1]

    @property
    def is_value(self) -> bool:
        """Whether it is written without parentheses."""
        return self.scope != "filter" and "(" not in self.usage

    @property
    def qualified(self) -> bool:
        """Whether a page of a lab, too, names the lab before it: `own.NAME`. Not every lab has an answer to these."""
        return self.usage.startswith(("own.", "it."))

    @property
    def help(self) -> str:
        """Its docstring up to the first empty line, as what it is rather than what it does."""
        text = (inspect.getdoc(self.function) or "").split("\n\n")[0]
        text = " ".join(text.split()).removeprefix("Return ")
        return text[:1].upper() + text[1:]


class MacroTable:
    """Macros by scope and name."""

    def __init__(self) -> None:
        self._macros: dict[tuple[Scope, str], Macro] = {}

    def add(self, usage: str, scope: Scope = "lab") -> Callable[[Function], Function]:
        """Return the decorator that adds a function as the macro in `usage`."""

        def register(function: Function) -> Function:
            macro = Macro(scope, usage, function)
            key = (scope, macro.name)
            assert key not in self._macros, f"{macro.name} is registered twice"
            self._macros[key] = macro
            return function

        return register

    def of(self, scope: Scope) -> dict[str, Macro]:
        """Return a scope's macros by name, module after module, whichever was imported first."""
        macros = sorted(self._macros.values(), key=lambda macro: macro.function.__module__)
        return {macro.name: macro for macro in macros if macro.scope == scope}


MACROS = MacroTable()
macro = MACROS.add


@cache
def load_macros() -> MacroTable:
    """Return the table with the macros of every module beside this one."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
    return MACROS


class MacroNamespace:
    """A scope's macros as attributes; `about` are their first arguments."""

    def __init__(self, macros: dict[str, Macro], *about: object) -> None:
        self._macros, self._about = macros, about

    def __getattr__(self, name: str) -> Any:
        """Return a macro's value, kept for the next time, or what is to be called."""
        if name.startswith("_") or name not in self._macros:
            raise AttributeError(f"there is no word {name!r}")
        macro = self._macros[name]
        if not macro.is_value:
            return partial(macro.function, *self._about)
        self.__dict__[name] = macro.function(*self._about)
        return self.__dict__[name]

    def unqualified(self) -> dict[str, Any]:
        """Return those by name that pages write without a lab before them."""
        names = [name for name, macro in self._macros.items() if not macro.qualified]
        return {name: getattr(self, name) for name in names}


class LabContext(MacroNamespace):
    """A lab as pages know it: each macro about labs is an attribute.

    `runs_here`: the site has the browser's machine, and its pages run trials themselves.
    """

    def __init__(self, root: Path, lab: Lab, *, runs_here: bool = False) -> None:
        super().__init__(load_macros().of("lab"), self)
        self.root, self.lab, self.runs_here = root, lab, runs_here
        self.sets = RecordedSets(root, lab)

    @property
    def model_use(self) -> ModelUse:
        """Which parameters the lab's model takes, and where it ends; UserError for a lab without a model."""
        if self.lab.file.model is None:
            raise UserError(f"{self.lab.name}: its lab.toml has no [model]")
        return self.lab.file.model

    @cached_property
    def facts(self) -> Facts:
        """The lab's facts, as they were computed last."""
        return read_facts(self.root, self.lab)


@dataclass(frozen=True)
class SiteContext:
    """A site as pages know it: the kit's folder, its labs by name, and who reads.

    `instructor`: with the answers. `release`: a students' release, without any page for instructors.
    """

    root: Path
    labs: dict[str, LabContext]
    instructor: bool
    release: bool = False

    def lab(self, name: str) -> LabContext:
        """Return a lab's context; UserError names the labs that there are."""
        if name not in self.labs:
            raise UserError(f"there is no lab {name!r}; there are {', '.join(self.labs)}")
        return self.labs[name]
