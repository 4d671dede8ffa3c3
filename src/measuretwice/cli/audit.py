"""`lab audit`: which rows of a published table can't be true, and what they recompute to."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict
from pathlib import Path

import click

from measuretwice.audit import audit_table, lines_of, read_choices, read_rate_bps, read_rtt_s
from measuretwice.base.errors import UserError
from measuretwice.cli.options import AS_JSON, PATH
from measuretwice.cli.show import plain_text, print_paged

MAX_BYTES = 4 * 2**20


@click.command()
@click.argument("path", metavar="FILE.csv", type=PATH)
@click.option(
    "--columns",
    multiple=True,
    metavar="NAME=COLUMN[:UNIT],...",
    help="Which column is what, if its heading isn't clear. NAME= leaves it out.",
)
@click.option("--rate", metavar="RATE", help="The link's rate, such as 10gbit.")
@click.option(
    "--mss", type=click.IntRange(1, 65535), metavar="BYTES", help="Data in a segment, for C."
)
@click.option("--rtt", metavar="TIME", help="The round-trip time, such as 40ms, for C.")
@AS_JSON
def audit(
    path: Path,
    columns: tuple[str, ...],
    rate: str | None,
    mss: int | None,
    rtt: str | None,
    as_json: bool,
) -> int:
    """Find the rows in a table of results that can't be true, and the reason.

    FILE.csv has a line of headings, then a line for each flow or run: rates, bytes and times, round-trip times, losses
    and halvings; or sums, squares and Jain's indices; shares; constants. A Markdown file may have several tables.
    Everything that follows from other columns is recomputed. Exit status: 0 if nothing is off, 1 if something is, 2
    if the table can't be read. It is 3 if nothing is off as far as could be checked, but an option had no effect or a
    cell couldn't be read.
    """
    report = audit_table(
        _content(path),
        path.name,
        read_choices(columns),
        rate_bps=None if rate is None else read_rate_bps(rate),
        mss_bytes=mss,
        rtt_s=None if rtt is None else read_rtt_s(rtt),
    )
    if as_json:
        print(json.dumps(asdict(report), indent=2, allow_nan=False))
    else:
        print_paged(lambda out: out.print(plain_text("\n".join(lines_of(report)))))
    return 1 if report.problems else 3 if report.unseen else 0


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
