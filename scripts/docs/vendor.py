#!/usr/bin/env python3
"""Fetch what pages load besides the theme, in exact versions: docs/assets/vendor/.

    python3 scripts/docs/vendor.py

`npm pack` fetches each package from the registry that this machine is set up for; what comes must
have the SHA-256 below. To renew one: change its version, run, compare the licence, and put in the
digest that the refusal prints.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "docs/assets/vendor"

# package: version, SHA-256 of its archive, and of its files which goes where in vendor/.
PACKAGES: dict[str, tuple[str, str, dict[str, str]]] = {
    "iframe-worker": (
        "1.0.4",
        "e8c5d12d87829c503afba01d67772ea9f4aba5b7ae57a0c98e1917711030efbb",
        {"shim/index.js": "iframe-worker/"},
    ),
}


def fetch(package: str, version: str, digest: str, folder: Path) -> Path:
    """Return the package's archive in `folder`; ends the program where it is another one."""
    command = ["npm", "pack", "--silent", f"{package}@{version}"]
    said = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    archive = folder / said.stdout.split()[-1]
    seen = hashlib.sha256(archive.read_bytes()).hexdigest()
    if seen != digest:
        sys.exit(f"{package} {version}: its SHA-256 is {seen}, expected {digest}")
    return archive


def unpack(archive: Path, wanted: dict[str, str], into: Path) -> None:
    """Copy the wanted files and the licence."""
    with tarfile.open(archive) as tar:
        for entry in tar:
            name = entry.name.removeprefix("package/")
            target = next((to for start, to in wanted.items() if name.startswith(start)), None)
            if name == "LICENSE":
                target = next(iter(wanted.values()))
            content = tar.extractfile(entry) if entry.isfile() else None
            if target is None or content is None:
                continue
            path = into / target / Path(name).name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "vendor"
        for package, (version, digest, wanted) in PACKAGES.items():
            unpack(fetch(package, version, digest, Path(folder)), wanted, made)
        shutil.rmtree(VENDOR, ignore_errors=True)
        shutil.copytree(made, VENDOR)
    total = sum(path.stat().st_size for path in VENDOR.rglob("*") if path.is_file())
    print(f"{VENDOR}: {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
