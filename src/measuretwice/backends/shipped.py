"""What is known of the machines that come with the checkout: was one built again here, and compared?"""

from __future__ import annotations

import hashlib

from measuretwice.base.files import read_object
from measuretwice.base.paths import CHECKOUT, cache_folder

MACHINES = CHECKOUT / "machines"
# What scripts/machines/verify.py found, beside the machines that were unpacked.
NOTE = "verified.json"


def damaged_archive(kind: str) -> str | None:
    """Say what is wrong with the archive of the shipped machine of this kind; None where it is its manifest's."""
    name = f"machines/{kind}.tar.xz"
    try:
        with open(MACHINES / f"{kind}.tar.xz", "rb") as archive:
            digest = hashlib.file_digest(archive, "sha256").hexdigest()
        same = digest == read_object(MACHINES / f"{kind}.json")["sha256"]
    except FileNotFoundError:
        return f"{name} is missing: git checkout machines, or download the kit anew"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{name} can't be compared with its manifest ({error}): git checkout machines"
    return None if same else f"{name} isn't what its manifest names: git checkout machines"


def verification(kind: str) -> str:
    """Say whether the shipped machine of this kind was built again here, and what came out."""
    try:
        shipped_now = read_object(MACHINES / f"{kind}.json")["sha256"]
        noted = read_object(cache_folder() / NOTE)[kind]
        if noted["sha256"] != shipped_now:
            raise KeyError(kind)
        day, files, runs = noted["day"], list(noted["files"]), noted["runs"]
    except (OSError, ValueError, KeyError, TypeError):
        return "not built again from source on this machine; make machines-verify does it, and compares"
    if not files:
        return f"built again from source here on {day}: the same byte for byte"
    if not runs:
        return f"built again from source here on {day} by another compiler: the same runs, byte for byte"
    return f"built again from source here on {day}: its runs come out otherwise"
