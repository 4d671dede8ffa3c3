"""Words register where they are defined: a page's template may use these and no others.

A new word is a function in a module of this package, with one of the decorators below. Its
docstring's first paragraph is its help, in workshop/words.md too. Such a module needs to be named
nowhere else.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

Answer = TypeVar("Answer", bound=Callable[..., Any])


@dataclass(frozen=True)
class Word:
    """A word: its name, how a page writes it, what it is, and what answers.

    A fact stands for a value, and is written without parentheses. Not every lab has an answer to
    a rare word: pages of a lab write it `own.NAME`.
    """

    name: str
    usage: str
    help: str
    answer: Callable[..., Any]
    fact: bool
    rare: bool

    @property
    def module(self) -> str:
        """The name of the module that defines it, where the words of one subject stand together."""
        return self.answer.__module__


def _help(answer: Callable[..., Any]) -> str:
    """A function's docstring up to its first empty line, as what it is rather than what it does."""
    text = " ".join((inspect.getdoc(answer) or "").split("\n\n")[0].split()).removeprefix("Return ")
    return text[:1].upper() + text[1:]


class Vocabulary:
    """Words of one sort, by their names. Called, it is the decorator that adds one."""

    def __init__(self) -> None:
        self._words: dict[str, Word] = {}

    def __call__(
        self, usage: str, *, name: str = "", fact: bool = False, rare: bool = False
    ) -> Callable[[Answer], Answer]:
        """Add a function as the word `name`, by default its own. `usage` shows it as pages write it."""

        def register(answer: Answer) -> Answer:
            known_as = name or answer.__name__
            assert known_as not in self._words, f"{known_as} is registered twice"
            self._words[known_as] = Word(known_as, usage, _help(answer), answer, fact, rare)
            return answer

        return register

    def words(self) -> dict[str, Word]:
        """Return its words by name, module after module, whichever was imported first."""
        _load()
        ordered = sorted(self._words.values(), key=lambda entry: entry.module)
        return {entry.name: entry for entry in ordered}


word = Vocabulary()  # about a lab: the function takes a LabWords
site_word = Vocabulary()  # about the whole site: it takes a SiteWords
model_word = Vocabulary()  # `model.NAME`
number_filter = Vocabulary()  # `x | NAME`


@cache
def _load() -> None:
    """Import every module beside this one, so that each word has registered."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


class Words:
    """A vocabulary's words as attributes. Each is about the same things, its first arguments."""

    def __init__(self, vocabulary: Vocabulary, *about: object) -> None:
        self._words, self._about = vocabulary.words(), about

    def __getattr__(self, name: str) -> Any:
        """What a word answers if it is a fact, kept for the next time; else what is to be called."""
        if name.startswith("_") or name not in self._words:
            raise AttributeError(f"there is no word {name!r}")
        entry = self._words[name]
        if not entry.fact:
            return partial(entry.answer, *self._about)
        self.__dict__[name] = entry.answer(*self._about)
        return self.__dict__[name]

    def everywhere(self) -> dict[str, Any]:
        """All words but the rare ones, by name."""
        return {name: getattr(self, name) for name, entry in self._words.items() if not entry.rare}
