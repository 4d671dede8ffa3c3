"""What `make lint` holds of the package's shape: each limit is broken here once, in a copy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run_program

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program of .venv in `folder`, whose src/ holds the package."""
    return run_program(*words, cwd=folder, PYTHONPATH=str(folder / "src"), COLUMNS="200")


def test_make_lint_asks_for_all_of_them() -> None:
    """And make quick, which looks at less, for the same."""
    for target in ("lint", "quick"):
        done = run(ROOT, "make", "--dry-run", target)
        assert done.returncode == 0, done.stderr
        scripts = [f"scripts/lint/{name}.py" for name in ("sizes", "names", "pages", "titles")]
        for words in ("ruff check .", "mypy", "lint-imports", *scripts, "shipped.py lint"):
            assert words in done.stdout, words


# --- imports --------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contracts, to be broken."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignore = shutil.ignore_patterns("__pycache__", "templates")
    shutil.copytree(ROOT / "src/measuretwice", tmp_path / "src/measuretwice", ignore=ignore)
    return tmp_path


def imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, BIN / "lint-imports", "--no-cache")


def test_as_it_is_it_keeps_its_contracts(copy: Path) -> None:
    done = imports(copy)
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("package", "line", "says"),
    [
        # Upwards, by one floor and by all; across; hidden in a function.
        ("parse", "from measuretwice.cli.main import cli", "parse -> measuretwice.cli.main"),
        ("measure", "import measuretwice.checks", "measure is not allowed to import"),
        ("grading", "import measuretwice.testbeds", "grading is not allowed to import"),
        ("base", "def late(): import measuretwice.runs.result", "base is not allowed to import"),
        ("tcp", "import os", "tcp is not allowed to import os"),
        ("measure", "import matplotlib", "measure is not allowed to import matplotlib"),
        ("report", "import click", "report is not allowed to import click"),
    ],
)
def test_a_forbidden_import_is_found(copy: Path, package: str, line: str, says: str) -> None:
    module = copy / "src/measuretwice" / package / "__init__.py"
    module.write_text(module.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = imports(copy)
    assert done.returncode == 1, done.stdout
    assert says in " ".join(done.stdout.split())


def test_a_new_package_is_given_its_floor(copy: Path) -> None:
    (copy / "src/measuretwice/attic").mkdir()
    (copy / "src/measuretwice/attic/__init__.py").touch()
    done = imports(copy)
    assert done.returncode == 1
    assert "attic" in done.stdout


# --- sizes ----------------------------------------------------------------------------------

SIZES = ROOT / "scripts/lint/sizes.py"


def function_of(lines: int, indent: str = "") -> str:
    body = f"{indent}    pass\n" * (lines - 1)
    return f"{indent}def long_one() -> None:\n{body}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n" * 500, None),
        ("x = 1\n" * 501, "501 lines; a module has at most 500"),
        (function_of(60), None),
        (function_of(61), "long_one has 61 lines; a function has at most 60"),
        ("class Room:\n" + function_of(61, "    "), "long_one has 61 lines"),
        ("async " + function_of(61), "long_one has 61 lines"),
    ],
)
def test_what_is_too_large_is_named(tmp_path: Path, text: str, says: str | None) -> None:
    (tmp_path / "deeper").mkdir()
    module = tmp_path / "deeper" / "module.py"
    module.write_text(text, encoding="utf-8")
    done = run(tmp_path, sys.executable, SIZES, tmp_path)
    assert done.returncode == (1 if says else 0), done.stdout
    if says:
        assert done.stdout.startswith(f"{module}:")
        assert says in done.stdout


def test_sizes_are_those_of_the_package(tmp_path: Path) -> None:
    """Without a folder it is src/measuretwice that is looked at, wherever it is called."""
    done = run(tmp_path, sys.executable, SIZES)
    count = len(list((ROOT / "src/measuretwice").rglob("*.py")))
    assert done.stdout == f"{count} modules, each of a size\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("for run in runs:\n    pass\n", ""),
        ("for each in runs:\n    pass\n", ":1: a name 'each'"),
        ("def goodput(\n    one: float,\n) -> float: ...\n", ":2: a name 'one'"),
        ("def told() -> None: ...\n", ":1: a name 'told'"),
        ("print(each)\n", ""),
        ('def goodput() -> float:\n    """Return bit/s."""\n', ""),
        ('def goodput() -> float:\n    """What a flow had."""\n', ":1: goodput: its docstring"),
        ('def is_full() -> bool:\n    """Is the link full?"""\n', ":1: is_full: its docstring"),
    ],
)
def test_names_and_docstrings_of_the_dialect_are_named(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    done = run(tmp_path, sys.executable, ROOT / "scripts/lint/names.py", tmp_path)
    assert done.returncode == (1 if problem else 0), done.stdout
    assert problem in done.stdout


def test_nine_parameters_are_too_many_but_on_the_command_line(copy: Path) -> None:
    text = f"def many({', '.join('abcdefghi')}):  # type: ignore\n    return a\n"
    for name, found in (("measure", True), ("cli", False)):
        (copy / f"src/measuretwice/{name}/many.py").write_text(text, encoding="utf-8")
        done = run(copy, BIN / "ruff", "check", "--no-cache", f"src/measuretwice/{name}/many.py")
        assert ("PLR0913" in done.stdout) == found, done.stdout
        assert done.returncode == int(found)


# --- titles of commits ----------------------------------------------------------------------


def test_a_long_title_of_a_commit_is_named(tmp_path: Path) -> None:
    titles = ROOT / "scripts/lint/titles.py"
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for command, title in (("init", None), ("commit", "Say it in " + "x" * 62)):
        words = ["git", *person, command, "-q"]
        done = run(tmp_path, *words, *(["--allow-empty", "-m", title] if title else []))
        assert done.returncode == 0, done.stderr
    assert run(tmp_path, sys.executable, titles).returncode == 0
    run(tmp_path, "git", *person, "commit", "-q", "--allow-empty", "-m", "Say it in " + "x" * 63)
    done = run(tmp_path, sys.executable, titles)
    assert done.returncode == 1
    assert "a title of 73 characters; at most 72: Say it in x" in done.stdout


def test_without_git_no_titles_are_looked_at(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, ROOT / "scripts/lint/titles.py")
    assert done.returncode == 0
    assert done.stdout == "titles of commits: no git here, so none are looked at\n"
