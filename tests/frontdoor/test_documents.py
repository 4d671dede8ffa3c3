"""The developers' documents and forms: what they name is there."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from measuretwice.cli.main import cli

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/measuretwice"
# What stands at the top, the workshop's pages, and what GitHub shows to those who write to us.
WORKSHOP = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "workshop").rglob("*.md"))]  # fmt: skip
PROSE = [*WORKSHOP, *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT"))]  # fmt: skip
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
SUFFIX = r"\.(?:c|cff|css|csv|j2|js|json|md|patch|py|sh|toml|txt|yml)"
FILE = re.compile(rf"(?:[\w.<>*-]+/)*[\w.<>*-]+{SUFFIX}|(?:[\w.<>*-]+/)+")
DOTTED = re.compile(r"[a-z]\w*(?:\.[A-Za-z_]\w*)+")
PLACEHOLDER = re.compile(r"<\w+>|\bN{2}\b|\b[A-Z]{2,}\b")
# Below which a document may name a path.
PLACES = [
    ROOT, PACKAGE, ROOT / "docs", *sorted((ROOT / "labs").iterdir()),
    ROOT / "scripts/kernel", ROOT / "scripts/browser",
]  # fmt: skip


def names_in(module: Path) -> set[str]:
    """What a module defines: functions, classes with their members, constants."""

    def of(body: list[ast.stmt]) -> set[str]:
        found: set[str] = set()
        for node in body:
            if isinstance(node, ast.ClassDef):
                found |= {node.name, *(f"{node.name}.{member}" for member in of(node.body))}
            elif isinstance(node, ast.FunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
        return found

    return of(ast.parse(module.read_text(encoding="utf-8")).body)


@functools.cache
def all_names() -> set[str]:
    """`package.module`, `package.module.name`, and `package.name` for short."""
    found: set[str] = set()
    for path in PACKAGE.glob("*/**/*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        found.add(module)
        for name in names_in(path):
            found |= {f"{module}.{name}", f"{parts[0]}.{name}"}
    return found


PACKAGES = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
# Files that runs leave and recordings hold have a page of their own.
OF_A_RUN = set(TICKED.findall((ROOT / "docs/reference/run-folder.md").read_text(encoding="utf-8")))
# What people write themselves.
OF_PEOPLE = {"nodes.toml", "class.csv"}
# What commands make isn't tracked. But site/ is the package, and so is what is Python in runs/.
MADE = tuple(
    line[1:]
    for line in (ROOT / ".gitignore").read_text().splitlines()
    if re.fullmatch(r"/[\w-]+/", line) and line != "/site/"
)


def is_there(path: str) -> bool:
    if path in OF_A_RUN | OF_PEOPLE or (path.startswith(MADE) and not path.endswith(".py")):
        return True
    patterns = [path, PLACEHOLDER.sub("*", path)]
    return any(any(place.glob(pattern.rstrip("/"))) for place in PLACES for pattern in patterns)


def stale(text: str) -> list[str]:
    """Paths and names in backticks that nothing in the checkout answers to."""
    found = []
    for word in TICKED.findall(FENCED.sub("", text)):
        word = word.removeprefix("./")
        if FILE.fullmatch(word):
            good = is_there(word)
        elif DOTTED.fullmatch(word) and word.split(".")[0] in PACKAGES:
            good = word in all_names()
        else:
            continue
        found += [] if good else [word]
    return found


@pytest.mark.parametrize("path", WORKSHOP, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_and_names_are_there(path: Path) -> None:
    assert stale(path.read_text(encoding="utf-8")) == []


def test_what_is_stale_is_found() -> None:
    good = "`cli/run.py`, `labs/NN-<lab>/lab.toml`, `cli.measure_jobs`, `lab.plan.Plan.seed`, `runs/x/`"
    assert stale(good) == []
    bad = (
        "`cli/walk.py`, `labs/NN-<lab>/lab.yml`, `cli.walk_jobs`, `lab.plan.Plan.seeds`, `rums/x/`"
    )
    assert len(stale(bad)) == 5


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", TICKED.sub("", text))
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []


@pytest.mark.parametrize("path", [*PROSE, *FORMS], ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_tasks_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    code = "\n".join([*FENCED.findall(text), *TICKED.findall(text)])
    tasks = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)) - tasks == set()
    assert set(re.findall(r"\./lab ([a-z]+)", code)) - set(cli.commands) == set()


@pytest.mark.parametrize("path", WORKSHOP, ids=lambda path: str(path.relative_to(ROOT)))
def test_decorators_are_used(path: Path) -> None:
    sources = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    for name in re.findall(r"`@(\w+)", path.read_text(encoding="utf-8")):
        assert re.search(rf"^ *@{name}\b", sources, re.MULTILINE), name


def test_the_picture_is_the_contract() -> None:
    """The layers as drawn are those that `make lint` holds."""
    picture = FENCED.search((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert picture
    drawn = [
        sorted(re.findall(r"(?:^  |\|  )([a-z_]+) ", line))
        for line in picture[0].splitlines()
        if re.match(r"  [a-z]", line)
    ]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert ["__main__"] + [" | ".join(names) for names in drawn] == layers  # fmt: skip


@pytest.mark.parametrize("path", FORMS, ids=lambda path: str(path.stem))
def test_forms_for_issues(path: Path) -> None:
    """What GitHub asks of a form: names, texts, and fields that can be told apart."""
    form: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert fields
    names = [field["id"] for field in fields]
    assert len(set(names)) == len(names)
    for field in fields:
        assert field["type"] in ("input", "textarea", "dropdown", "checkboxes")
        assert field["attributes"]["label"]
        assert (field["type"] in ("dropdown", "checkboxes")) == ("options" in field["attributes"])
