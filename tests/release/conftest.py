"""A students' release, made once for all of pytest's workers."""

from pathlib import Path

import editions
import pytest


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The students' site, that of tests/site."""
    return editions.student(tmp_path_factory)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release as ./lab makes it, without its site; with a .venv that is ready."""
    return editions.release(tmp_path_factory)


@pytest.fixture(scope="session")
def release_with_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its site, which takes a build: for tests at night."""
    return editions.release(tmp_path_factory, with_site=True)
