"""Modules of benchmarks/, which is no package: what its programs import from each other, for the tests that hold it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    """Return benchmarks/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the module that they are of.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
