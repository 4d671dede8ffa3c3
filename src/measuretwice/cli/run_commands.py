"""The commands of ./lab that look at runs which are there already. commands.py has them in its group."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from measuretwice.base.seeds import LAST_SEED
from measuretwice.cli.options import AS_JSON, NODE, PATH, root_folder


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", help="For files of your own: which lab.")
@click.option("--trial", help="For files of your own: which trial.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="... and what differed.")
@click.option("--hint", type=click.IntRange(1, 3), help="A step of help: 1, 2 or 3.")
@AS_JSON
def check(runs: tuple[Path, ...], **options: Any) -> None:
    """Diagnose runs: is each what it was meant to be?

    RUN is a folder that ./lab run made, an archive of such folders, or files of your own from any
    testbed: what iperf3, ss, tc, ping and tcpdump -e printed. Exit 0 without findings, 1 with, 2 for unusable input.
    """
    from measuretwice.cli import check as command_check

    sys.exit(command_check.check_command(root_folder(), runs, **options))


@click.command()
@click.argument("run", metavar="RUN", type=PATH)
@click.argument("what", metavar="[WHAT]", required=False)
@NODE
@click.option("--text", "as_text", is_flag=True, help="The file word for word.")
@AS_JSON
def show(run: Path, what: str | None, **options: Any) -> None:
    """Make one raw file readable: its values, with what each field means and where it stands.

    RUN is a folder that ./lab run made, one in sample-data/, a live lab's, or files of your own.
    Without WHAT, this lists what there is. WHAT is a word from that list, such as qdisc, ss, ping
    or nstat, or the name of a file.
    """
    from measuretwice.cli import show as command_show

    sys.exit(command_show.show_command(root_folder(), run, what, **options))


@click.command()
@click.argument("run_a", metavar="RUN", type=PATH)
@click.argument("run_b", metavar="RUN", type=PATH)
@AS_JSON
def diff(run_a: Path, run_b: Path, as_json: bool) -> None:
    """Compare two runs: the settings, measured values and raw files that differ, side by side.

    RUN is a folder that ./lab run made, one in sample-data/, a live lab's, or files of your own.
    Exit 0 if settings and raw files are the same, 1 if something differs, 2 for unusable
    input, as diff(1) does.
    """
    from measuretwice.cli import diff as command_diff

    sys.exit(command_diff.diff_command(root_folder(), run_a, run_b, as_json=as_json))


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.html",
    help="Where to write.  [default: report.html in the runs' common folder; of sample-data, in runs/]",
)
@click.option("--title", help="The report's title.  [default: the lab's]")
@click.option("--author", help="Who hands it in.")
@AS_JSON
def report(runs: tuple[Path, ...], **options: Any) -> None:
    """Write what you hand in: one HTML file about all these runs, and the same as Markdown.

    RUN is a folder that ./lab run made, one that holds several, or an archive of them. All values
    are recomputed from the raw files. Answers that you wrote into the Markdown stay when it is made again.
    """
    from measuretwice.cli import report as command_report

    sys.exit(command_report.report_command(root_folder(), runs, **options))


@click.command()
@click.argument("targets", metavar="LAB|RUN...", nargs=-1, required=True)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="ID",
    help="Of a lab with a model measured-against-model, window-against-loss or stages, else one of "
    "its lab.toml.  [default: all that apply]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, LAST_SEED),
    default=1,
    show_default=True,
    help="For LAB: the runs with this seed.",
)
@click.option(
    "--out",
    type=PATH,
    help="Folder for figures.  [default: in the checkout runs/figures/LAB/, or .../over-time/]",
)
@click.option(
    "--over-time",
    is_flag=True,
    help="A run's window, round-trip time, queue and losses; two runs are shown beside each other.",
)
@click.option("--node", metavar="NODE", help="With --over-time: only this node's connections.")
@click.option(
    "--text",
    "as_text",
    is_flag=True,
    help="With --over-time: as text too. In a terminal that is always so.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the figures in the browser.")
@click.option("--json", "as_json", is_flag=True, help="The rows, as one JSON document on stdout.")
def plot(targets: tuple[str, ...], **options: Any) -> None:
    """Draw finished runs, as SVG with a CSV of the numbers beside it: compared with the lab's model, or
    in the figures that its lab.toml has; or one or two runs over time.

    LAB means its runs with the lab's own settings, the newest of each trial. RUN is the folder
    of a run, or one that holds runs: all of these. Each folder of runs is a panel of the
    stages, or has figures of its own; TITLE=RUN gives it a title.

    With --over-time, RUN, with a title or without, may also be a live lab's folder, or one of files of your own with ss's
    output sampled: each sample after a line '# t=UNIX-TIME'.
    """
    from measuretwice.cli import plot as command_plot

    sys.exit(command_plot.plot_command(root_folder(), targets, **options))


@click.command()
@click.argument("path", metavar="FILE.csv", type=PATH)
@click.option(
    "--columns",
    multiple=True,
    metavar="NAME=COLUMN[:UNIT],...",
    help="Which column is what, if its heading doesn't say. NAME= leaves it out.",
)
@click.option("--rate", metavar="RATE", help="The link's rate, such as 10gbit.")
@click.option(
    "--mss", type=click.IntRange(1, 65535), metavar="BYTES", help="Data in a segment, for C."
)
@AS_JSON
def audit(path: Path, **options: Any) -> None:
    """Audit a table of results, anybody's: which rows can't be true, and why.

    FILE.csv has a line of headings, then a line for each flow or run: rates, round-trip times, losses and
    halvings; or sums, squares and Jain's indices; shares; constants. Everything that follows from other
    columns is recomputed. Exit 0 where nothing is off, 1 where something is, 2 where the table
    can't be read.
    """
    from measuretwice.cli import audit as command_audit

    sys.exit(command_audit.audit_command(path, **options))


COMMANDS = (check, show, diff, report, plot, audit)
