"""What stands in, in a page's own Python, for libraries that a browser lacks."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scipy import special

from measuretwice.lab import find_labs, read_lab

ROOT = Path(__file__).parents[2]
IN_PAGE = ROOT / "src/measuretwice/in_page/stand_ins"
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
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(folder)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", sorted(find_labs(ROOT)))
def test_without_pydantic_a_lab_is_read_as_with_it(name: str) -> None:
    folder = read_lab(find_labs(ROOT)[name]).folder
    with_it, without = shown(folder), shown(folder, IN_PAGE)
    assert without.pop("by") == str(IN_PAGE / "pydantic.py")
    assert with_it.pop("by") != str(IN_PAGE / "pydantic.py")
    assert without == with_it


def stand_in() -> object:
    spec = importlib.util.spec_from_file_location("special", IN_PAGE / "scipy/special.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls() -> Iterator[tuple[str, tuple[float, ...]]]:
    """Functions with arguments as checks and reports have them: up to a million packets, two runs or two hundred."""
    drawn = random.Random(1)
    for _ in range(200):
        a, b = (10 ** drawn.uniform(-0.3, 6) for _ in range(2))
        yield "betainc", (a, b, drawn.betavariate(a, b))
        yield "betaincinv", (a, b, drawn.uniform(0.001, 0.999))
        count = drawn.randint(1, 10 ** drawn.randint(1, 6))
        yield "bdtr", (drawn.randint(0, count - 1), count, drawn.random())
        freedom, other = drawn.uniform(1, 200), drawn.randint(1, 60)
        yield "stdtr", (freedom, drawn.uniform(-6, 6))
        yield "stdtrit", (freedom, drawn.uniform(0.005, 0.9995))
        for name in ("fdtr", "fdtrc"):
            yield name, (other, drawn.randint(1, 60), drawn.uniform(0.01, 20))
        yield "fdtri", (other, drawn.randint(1, 60), drawn.uniform(0.01, 0.99))
        yield "ndtri", (drawn.uniform(1e-4, 1 - 1e-4),)


def test_statistics_are_scipys() -> None:
    module = stand_in()
    for name, arguments in calls():
        wanted = float(getattr(special, name)(*arguments))
        assert getattr(module, name)(*arguments) == pytest.approx(wanted, rel=1e-7, abs=1e-12), (
            name,
            arguments,
        )


def test_only_what_is_called_stands_in() -> None:
    """Whatever the package asks scipy.special for is there, but for what only figures and pages need."""
    asked = {
        name
        for path in (ROOT / "src/measuretwice/stats").glob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "from scipy.special import" in line
        for name in line.split("import")[1].replace(",", " ").split()
    }
    assert asked - {"nctdtr"} == {name for name, _ in calls()}
    assert all(hasattr(stand_in(), name) for name in asked - {"nctdtr"})
