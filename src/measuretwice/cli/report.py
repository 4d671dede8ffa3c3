"""`lab report`: one HTML file, and the same as Markdown, from the runs that a student hands in."""

from __future__ import annotations

import json
from pathlib import Path

from measuretwice.cli import terminal
from measuretwice.course.report import opened_for_report, read_report_runs, write_report
from measuretwice.report.markdown import clean
from measuretwice.report.report import document


def report_command(
    root: Path,
    targets: tuple[Path, ...],
    *,
    out: Path | None,
    title: str | None,
    author: str | None,
    as_json: bool,
) -> int:
    """Write the report; return 0 if at least one run could be used, else raise UserError."""
    with opened_for_report(root, targets, out) as (opened, page):
        terminal.complain(f"{line}; the rest is taken" for line in opened.refused)
        about = read_report_runs(root, opened.targets, page)
        terminal.complain(f"not used: {clean(opened.named(line))}" for line in about.unusable)
        write_report(about, title=title, author=author)
        if as_json:
            print(json.dumps([document(run) for run in about.runs], indent=2))
        else:
            many = "s" if len(about.runs) != 1 else ""
            print(clean(f"{len(about.runs)} run{many}: {about.page} and {about.notes.name}"))
        return 0
