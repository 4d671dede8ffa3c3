"""What stands in, in a page's own Python, for libraries that a browser lacks."""

import json
import os
import sys
from pathlib import Path

import pytest
from command_line import run_program

from measuretwice.lab import find_labs, read_lab

ROOT = Path(__file__).parents[2]
IN_PAGE = ROOT / "src/measuretwice/in_page/shims"
# Printed by either: all that a lab's file says, and what its cases' first runs are set to.
SHOW = """
import json, sys
from pathlib import Path
import pydantic
from measuretwice.lab import read_lab, trial_params

def plain(value):
    if hasattr(type(value), "model_fields"):
        return {"a": type(value).__name__, **{name: plain(getattr(value, name)) for name in type(value).model_fields}}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)

lab = read_lab(Path(sys.argv[1]))
cases = [
    trial_params(lab, pitfall.trial, case=number, seed=seed)
    for number, pitfall in enumerate(lab.file.pitfalls, start=1)
    for seed in (1, 2)
]
print(json.dumps({"by": pydantic.__file__, "file": plain(lab.file), "cases": cases}))
"""


def shown(folder: Path, *first: Path) -> dict[str, object]:
    paths = os.pathsep.join(map(str, [*first, ROOT / "src"]))
    done = run_program(sys.executable, "-c", SHOW, folder, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", sorted(find_labs(ROOT)))
def test_without_pydantic_a_lab_is_read_as_with_it(name: str) -> None:
    folder = read_lab(find_labs(ROOT)[name]).folder
    with_it, without = shown(folder), shown(folder, IN_PAGE)
    assert without.pop("by") == str(IN_PAGE / "pydantic.py")
    assert with_it.pop("by") != str(IN_PAGE / "pydantic.py")
    assert without == with_it
