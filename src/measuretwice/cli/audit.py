"""`lab audit`: which rows of a published table can't be true, and what they recompute to."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict
from pathlib import Path

from measuretwice.audit import audit_table, read_choices, read_rate_bps
from measuretwice.audit.text import lines_of
from measuretwice.base.errors import UserError
from measuretwice.cli.show import plain_text, print_paged

MAX_BYTES = 4 * 2**20


def audit_command(
    path: Path, *, columns: tuple[str, ...], rate: str | None, mss: int | None, as_json: bool
) -> int:
    """Audit and print; return 0 where nothing is off, 1 where something is. What can't be read is a
    UserError."""
    report = audit_table(
        _content(path),
        path.name,
        read_choices(columns),
        rate_bps=None if rate is None else read_rate_bps(rate),
        mss_bytes=mss,
    )
    if as_json:
        print(json.dumps(asdict(report), indent=2, allow_nan=False))
    else:
        print_paged(lambda out: out.print(plain_text("\n".join(lines_of(report)))))
    return 1 if report.problems else 0


def _content(path: Path) -> bytes:
    """A plain file's bytes; never waits for a pipe, never reads without end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if stat.S_ISDIR(facts.st_mode):
                raise UserError(f"{path}: a folder; name a table, such as FILE.csv")
            if not stat.S_ISREG(facts.st_mode):
                raise UserError(f"{path}: no plain file; write the table into one, and name that")
            if facts.st_size > MAX_BYTES:
                raise UserError(
                    f"{path}: {facts.st_size >> 20} MiB, and a table of results has no more than "
                    f"{MAX_BYTES >> 20}; keep a row for each flow or run"
                )
            return file.read(MAX_BYTES)
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
