"""The same prepared pages, built by Zensical, the successor of the theme: the change is one line when it comes.

At night: only a change of the theme, its settings or its version can break it.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import editions
import pytest
from browsing import from_elsewhere, open_page
from command_line import run_program
from serving import served

pytestmark = [
    pytest.mark.nightly(
        "only the theme's settings or its version break it; by day mkdocs builds the same prepared pages, strictly"
    ),
    pytest.mark.slow,
]
pytest.importorskip("zensical", reason="MEASURETWICE_SETUP=dev ./lab has it")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def theirs(student: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The students' site, as Zensical builds it, strictly, from what mkdocs read."""
    return editions.once(tmp_path_factory, "zensical", build) / "build/site"


def build(root: Path) -> None:
    folder = root / "build"
    shutil.copytree(editions.STUDENTS_PAGES, folder / "docs")
    shutil.copytree(ROOT / "docs/includes", root / "docs/includes")
    shutil.copy(editions.STUDENTS_PAGES.with_suffix(".yml"), folder)
    words = ("-P", "-m", "zensical", "build", "-f", folder / "docs.yml")
    built = run_program(sys.executable, *words, cwd=ROOT)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]


def headings(site: Path) -> dict[str, str]:
    """Each page's first heading, without marks."""
    found = {}
    for path in sorted(site.rglob("index.html")):
        text = path.read_text(encoding="utf-8").partition("<article")[2]
        first = re.search(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)
        title = html.unescape(re.sub(r"<[^>]+>", "", first[1])) if first else ""
        found[path.relative_to(site).as_posix()] = " ".join(title.replace("¶", "").split())
    return found


def test_it_builds_the_same_pages(student: Path, theirs: Path) -> None:
    ours = headings(student)
    assert len(ours) > 100
    assert all(ours.values())
    assert headings(theirs) == ours


def test_its_pages_have_their_formulas_code_and_figures(student: Path, theirs: Path) -> None:
    for name in headings(student):
        texts = [(site / name).read_text(encoding="utf-8") for site in (student, theirs)]
        for sign in ("<math ", 'class="interactive"', "<details", "<pre ", "<img ", "<svg class="):
            counts = [text.partition("<article")[2].count(sign) for text in texts]
            assert counts[0] == counts[1], f"{name}: {sign}"


def test_its_pages_are_quiet_and_ask_nobody_else(browser: Any, theirs: Path) -> None:
    page, messages, asked = open_page(browser)
    with served(theirs) as address:
        for name in ("", "start/", "modules/01-mathis/case-05/", "modules/01-mathis/explorer/"):
            page.goto(address + name, wait_until="networkidle")
    assert messages == []
    assert from_elsewhere(asked, address) == []
    page.context.close()
