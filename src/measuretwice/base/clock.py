"""The time that is written into what is made."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from measuretwice.base.errors import UserError


def now() -> datetime:
    """Now, or the time in SOURCE_DATE_EPOCH (reproducible-builds.org/specs/source-date-epoch)."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise UserError(
            f"SOURCE_DATE_EPOCH={given}: expected seconds since 1970; unset it"
        ) from None
