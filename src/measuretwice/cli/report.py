"""`lab report`: one HTML file, and the same as Markdown, from the runs that a student hands in."""

from __future__ import annotations

import json
from pathlib import Path

import click

from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, PATH, root_folder
from measuretwice.course.report import opened_for_report, read_report_runs, write_report
from measuretwice.report.markdown import clean
from measuretwice.report.report import run_to_json


@click.command()
@click.argument("targets", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.html",
    help="Where to write.  [default: report.html in the runs' common folder; for runs in sample-data/, in runs/]",
)
@click.option("--title", help="The report's title.  [default: the lab's]")
@click.option("--author", help="Who hands it in.")
@AS_JSON
def report(
    targets: tuple[Path, ...],
    out: Path | None,
    title: str | None,
    author: str | None,
    as_json: bool,
) -> int:
    """Write what you hand in: one HTML file about all these runs, and the same as Markdown.

    RUN is a folder that ./lab run made, one that holds several, or an archive of them. All values
    are recomputed from the raw files. If you make it again, answers that you wrote into the Markdown stay.
    """
    root = root_folder()
    with opened_for_report(root, targets, out) as (opened, page):
        terminal.complain(f"{line}; the rest is taken" for line in opened.refused)
        about = read_report_runs(root, opened.targets, page)
        terminal.complain(f"not used: {clean(opened.named(line))}" for line in about.unusable)
        write_report(about, title=title, author=author)
        if as_json:
            print(json.dumps([run_to_json(run) for run in about.runs], indent=2))
        else:
            many = "s" if len(about.runs) != 1 else ""
            print(clean(f"{len(about.runs)} run{many}: {about.page} and {about.notes.name}"))
        return 0
