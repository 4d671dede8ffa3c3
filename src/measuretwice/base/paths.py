"""Where the package itself stands."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# What must be on PYTHONPATH so that another Python finds the package.
SOURCE = PACKAGE.parent
CHECKOUT = SOURCE.parent
