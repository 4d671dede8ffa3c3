"""The pip that Python brings for new environments: ours have none of their own (see find_pip in ./lab)."""

from __future__ import annotations

import ensurepip
import sys
import sysconfig
from pathlib import Path


def pip_command() -> list[str]:
    """Return the words that start pip, out of its wheel as it stands."""
    places = [
        Path(ensurepip.__file__).with_name("_bundled"),
        sysconfig.get_config_var("WHEEL_PKG_DIR"),
    ]
    wheels = [wheel for place in places if place for wheel in Path(place).glob("pip-*.whl")]
    assert wheels, "this Python brings no pip"
    return [sys.executable, "-I", f"{wheels[-1]}/pip"]
