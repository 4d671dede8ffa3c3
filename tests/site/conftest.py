"""The site as students, instructors and a browser see it: each edition is made once a session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import editions
import pytest
from browsing import watched_page
from serving import served


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the students' site, built with the browser's machine where that can be had."""
    return editions.student(tmp_path_factory)


@pytest.fixture(scope="session")
def instructor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the instructors' site, built: for tests at night, it takes the notebooks' runs and a build."""
    return editions.site(tmp_path_factory, "instructor", "--build", "--instructor")


@pytest.fixture(scope="session")
def instructors_pages() -> editions.Pages:
    """The instructors' pages, prepared one by one."""
    return editions.Pages(instructor=True)


@pytest.fixture(scope="session")
def offline(student: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The offline zip, of the pages that the students' site was made of."""
    return editions.site(tmp_path_factory, "offline.zip", "--offline")


@pytest.fixture(scope="session")
def release(student: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A students' release without its site."""
    return editions.release(tmp_path_factory)


@pytest.fixture(scope="session")
def address(student: Path) -> Iterator[str]:
    """Where the students' site is served."""
    with served(student) as address:
        yield address


def chromium_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by playwright."""
    path = chromium_path()
    if path is None:
        pytest.skip("no chromium here: apt-get install chromium, or MEASURETWICE_SETUP=dev ./lab")
    api = pytest.importorskip("playwright.sync_api", reason="MEASURETWICE_SETUP=dev ./lab has it")
    with api.sync_playwright() as play:
        # As root, and in containers without user namespaces, Chromium's sandbox can't start.
        chromium = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page_without_scripts(browser: Any) -> Iterator[Any]:
    """A page of a reader whose browser runs no scripts."""
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of a reader who wants no motion; it fails the test if its console complains."""
    with watched_page(browser, viewport={"width": 1280, "height": 1000}) as page:
        yield page
