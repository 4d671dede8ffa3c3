"""What is known of the machines that come with the checkout: was one built again here, and compared?"""

from __future__ import annotations

from measuretwice.base.files import read_object
from measuretwice.base.paths import CHECKOUT, cache_folder

MACHINES = CHECKOUT / "machines"
# What scripts/machines/verify.py found, beside the machines that were unpacked.
NOTE = "verified.json"


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
