"""What a result and a notebook follow from: the code that they import, and no other."""

import ast
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from measuretwice.base.imports import digest_of_code, files_of_code, names_in
from measuretwice.base.paths import PACKAGE
from measuretwice.lab import published_labs
from measuretwice.runs.archive import ARCHIVE, raw_folder

ROOT = Path(__file__).parents[2]
DERIVE = "measuretwice.runs.derive"
SOURCES = [*sorted(PACKAGE.rglob("*.py")), *sorted((ROOT / "solutions").glob("*.py"))]
NOTEBOOK = names_in(ROOT / "solutions/02-buffers.py") | names_in(ROOT / "solutions/common.py")
# Derives runs (each a lab's folder, the run's, its raw files'), and says what was imported for it.
SAY_IMPORTS = """
import json, sys
from pathlib import Path
from measuretwice.runs.derive import derive
from measuretwice.lab import read_lab, read_plan
places = iter(map(Path, sys.argv[1:]))
for lab, run, raw in zip(places, places, places):
    plan = json.loads((run / "plan.json").read_text())
    derive(lab, read_plan(read_lab(lab), plan, str(run)), raw)
print(*(m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "measuretwice"), sep="\\n")
"""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_are_those_that_pythons_parser_finds(path: Path) -> None:
    wanted: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wanted |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "of our modules each is imported by its whole name"
            wanted |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    assert names_in(path) == wanted


def test_what_deriving_runs_is_in_its_digest() -> None:
    """Also what is imported late, or by name: of each lab its smallest recorded run."""
    places: list[Path] = []
    with ExitStack() as unpacked:
        for lab in published_labs(ROOT).values():
            archives = (ROOT / "sample-data" / lab.folder.name).glob(f"*/*/{ARCHIVE}")
            run = min(archives, key=lambda path: path.stat().st_size).parent
            places += [lab.folder, run, unpacked.enter_context(raw_folder(run))]
        done = subprocess.run(
            [sys.executable, "-P", "-c", SAY_IMPORTS, *map(str, places)],
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    used = {Path(line) for line in done.stdout.splitlines()}
    assert PACKAGE / "runs/derive.py" in used
    assert used - set(files_of_code([DERIVE])) == set()


def digests(package: Path) -> tuple[bytes, bytes]:
    """What tells whether runs are derived anew, and whether a notebook is run anew."""
    return digest_of_code(DERIVE, root=package), digest_of_code(*NOTEBOOK, root=package)


@cache
def unedited() -> tuple[bytes, bytes]:
    return digests(PACKAGE)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to be edited."""
    copy = tmp_path_factory.mktemp("source") / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "derives", "draws"),
    [
        # A notebook takes its measured values from the recorded results.
        ("measure/run.py", True, False),
        ("measure/connections.py", True, True),
        ("parse/ss.py", True, True),
        ("tcp/model.py", True, True),
        ("checks/engine.py", True, True),
        ("runs/result.py", True, True),
        ("figures/style.py", False, True),
        ("runs/recorded.py", False, True),
        ("grading/marks.py", False, False),
        ("site/build.py", False, False),
        ("cli/main.py", False, False),
        ("execute/job.py", False, False),
        ("backends/virtual.py", False, False),
        ("live/session.py", False, False),
    ],
)
def test_an_edit_counts_where_it_can_change_something(
    place: str, derives: bool, draws: bool, package: Path
) -> None:
    """`derives`: runs are derived anew; `draws`: a notebook is run anew."""
    with open(package / place, "a") as file:
        file.write("# edited\n")
    before, after = unedited(), digests(package)
    assert (after[0] != before[0], after[1] != before[1]) == (derives, draws)
    shutil.copyfile(PACKAGE / place, package / place)


def test_who_imports_by_name_has_its_whole_package_counted(tmp_path: Path) -> None:
    package = tmp_path / PACKAGE.name
    (package / "kinds").mkdir(parents=True)
    (package / "kinds/first.py").write_text("import pkgutil\n")
    (package / "kinds/second.py").write_text("")
    (package / "other.py").write_text("")
    found = files_of_code(["measuretwice.kinds.first"], package)
    assert [path.name for path in found] == ["first.py", "second.py"]
