"""The pip that Python brings for new environments: ours have none of their own (see find_pip in ./lab)."""

from __future__ import annotations

import ensurepip
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


def download(folder: Path, *packages: str) -> list[Path]:
    """Fetch these packages' wheels without what they need; the test is skipped where no registry can be reached."""
    done = subprocess.run(
        [*pip_command(), "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(folder), *packages],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"no network: {done.stderr.strip().splitlines()[-1:]}")
    return sorted(folder.glob("*.whl"))


def pip_command() -> list[str]:
    """Return the words that start pip, out of its wheel as it stands."""
    bundled = Path(ensurepip.__file__).with_name("_bundled")
    folders = [bundled, Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or bundled)]
    wheels = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
    assert wheels, "this Python brings no pip"
    return [sys.executable, "-I", f"{wheels[-1]}/pip"]
