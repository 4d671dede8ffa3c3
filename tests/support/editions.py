"""The editions of the site and of the kit, each made once for all of pytest's workers, and only as far as is asked for.

The students' site is built whole. Of the instructors' site and of a students' release, which differ from it in pages
that are left out or added, tests by day read the prepared pages; both are built whole at night.
"""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import browsers_machine
import pytest
import yaml
from command_line import start_lab
from markdown import Markdown

from measuretwice.lab import published_labs
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.markup import with_formulas
from measuretwice.site.render import Renderer

ROOT = Path(__file__).parents[2]
# Where ./lab docs and ./lab release leave the pages that they prepared.
STUDENTS_PAGES = ROOT / "build/docs"


def once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """What `make` puts at the path that it is given; the first worker that wants it makes it, the others wait."""
    base = temporary.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"made-{name}"
    folder.mkdir(exist_ok=True)
    out, done = folder / name, folder / "done"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(out)
            done.touch()
    return out


def site(temporary: pytest.TempPathFactory, name: str, *arguments: str) -> Path:
    """What ./lab docs makes with these arguments."""

    def build(out: Path) -> None:
        built = start_lab("docs", *arguments, "--out", str(out))
        assert built.returncode == 0, built.stderr

    return once(temporary, name, build)


def student(temporary: pytest.TempPathFactory) -> Path:
    """The folder of the students' site, with the browser's machine where that can be had."""
    browsers_machine.ready()
    return site(temporary, "student", "--build")


def release(temporary: pytest.TempPathFactory, *, with_site: bool = False) -> Path:
    """A students' release, with a .venv that is ready; its pages are those of docs/pages."""

    def make(out: Path) -> None:
        done = start_lab("release", str(out), "--students", *(["--site"] if with_site else []))
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == f"{out}: the kit for students, without answers"
        (out / ".venv").symlink_to((ROOT / ".venv").resolve())

    return once(temporary, "measure-twice-site" if with_site else "measure-twice", make)


class Pages:
    """Pages of docs/, each as the instructors' site or the students' has it, prepared when it is asked for."""

    def __init__(self, *, instructor: bool) -> None:
        labs = {name: LabContext(ROOT, lab) for name, lab in published_labs(ROOT).items()}
        self._renderer = Renderer(SiteContext(ROOT, labs, instructor=instructor))
        self.markdown = functools.cache(self._markdown)
        self.html = functools.cache(self._html)

    def _markdown(self, name: str) -> str:
        """The page docs/`name`, as mkdocs reads it."""
        return with_formulas(name, self._renderer.render(ROOT / "docs" / name, name))

    def _html(self, name: str) -> str:
        """What mkdocs makes of the page's text, without the theme's frame around it."""
        return html_of(self.markdown(name))


def html_of(text: str) -> str:
    """A prepared page as HTML, by the extensions that mkdocs.yml names."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    names, configs = [], {}
    for entry in yaml.safe_load(settings.partition("\nmarkdown_extensions:")[2]):
        known: dict[str, Any] = entry if isinstance(entry, dict) else {entry: {}}
        names += known
        configs |= known
    configs["pymdownx.snippets"]["base_path"] = [str(ROOT)]
    front = text.partition("\n---\n")[2] if text.startswith("---\n") else text
    return Markdown(extensions=names, extension_configs=configs).convert(front)
