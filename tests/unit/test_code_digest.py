"""What a result and a notebook follow from: the packages that they import."""

import ast
import json
import sys
from contextlib import ExitStack
from pathlib import Path

from command_line import run_program

from measuretwice.base.paths import digest_of_packages
from measuretwice.lab import published_labs
from measuretwice.runs.folder import ARCHIVE, raw_folder
from measuretwice.runs.result import DERIVING
from measuretwice.site.notebooks import NOTEBOOK_PACKAGES

ROOT = Path(__file__).parents[2]
PACKAGES_IN_USE = """
import json
print(json.dumps([name.split(".")[1] for name in sys.modules if name.startswith("measuretwice.")]))
"""
# Derives runs: each a lab's folder, the run's, its raw files'.
DERIVE = """
import json, sys
from pathlib import Path
from measuretwice.runs.result import derive
from measuretwice.lab import read_lab, read_plan
folders = iter(map(Path, sys.argv[1:]))
for lab, run, raw in zip(folders, folders, folders):
    plan = json.loads((run / "plan.json").read_text())
    derive(lab, read_plan(read_lab(lab), plan, str(run)), raw)
"""


def packages_used_by(program: str, *arguments: Path) -> set[str]:
    """The packages of ours that a program has imported at its end, also late or by name."""
    code = f"import sys\n{program}{PACKAGES_IN_USE}"
    done = run_program(sys.executable, "-P", "-c", code, *arguments)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_what_deriving_runs_is_in_its_digest() -> None:
    """Of each lab its smallest recorded run."""
    folders: list[Path] = []
    with ExitStack() as unpacked:
        for lab in published_labs(ROOT).values():
            archives = (ROOT / "sample-data" / lab.folder.name).glob(f"*/*/{ARCHIVE}")
            run = min(archives, key=lambda path: path.stat().st_size).parent
            folders += [lab.folder, run, unpacked.enter_context(raw_folder(run))]
        assert packages_used_by(DERIVE, *folders) == set(DERIVING)


def test_what_notebooks_import_is_in_their_digest() -> None:
    imports = [
        ast.unparse(node)
        for source in sorted((ROOT / "solutions").glob("*.py"))
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("measuretwice")
    ]
    assert packages_used_by("\n".join(imports)) == set(NOTEBOOK_PACKAGES)


def test_a_modules_name_and_content_are_in_the_digest(tmp_path: Path) -> None:
    module = tmp_path / "parse" / "ss.py"
    module.parent.mkdir()
    module.write_text("")
    before = digest_of_packages("parse", root=tmp_path)
    module.write_text("# edited\n")
    edited = digest_of_packages("parse", root=tmp_path)
    module.rename(module.with_name("tc.py"))
    assert len({before, edited, digest_of_packages("parse", root=tmp_path)}) == 3
    (tmp_path / "grading.py").write_text("")
    assert digest_of_packages("parse", root=tmp_path) == digest_of_packages("parse", root=tmp_path)
