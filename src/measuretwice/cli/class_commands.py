"""The commands of ./lab for who gives the course: its recordings, its class. commands.py has them in its group."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from measuretwice.cli.options import AS_JSON, PATH, root_folder
from measuretwice.cli.types import Runs


@click.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--verify", is_flag=True, help="Run it all again and compare byte for byte.")
@click.option(
    "--note",
    is_flag=True,
    help="With --verify: note in sample-data/ each set that comes out the same; sets with a note are left out.",
)
@click.option(
    "--facts", is_flag=True, help="Measure nothing: only compute facts.json from what is recorded."
)
@click.option("--only", multiple=True, metavar="SET", help="Only this set, or this pitfall's two.")
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Trials at a time.  [default: one a CPU]"
)
@AS_JSON
def record(lab_name: str, **options: Any) -> None:
    """Make LAB's recorded runs in sample-data/, or --verify them.

    Exit 0 where all is recorded or comes out the same, 1 where something differs.
    """
    from measuretwice.cli import record as command_record

    sys.exit(command_record.record_command(root_folder(), lab_name, **options))


@click.command()
@click.argument("roster", metavar="ROSTER.csv", type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", required=True, help="For which lab.")
@click.option(
    "--term", metavar="WORD", required=True, help="A word of yours that students don't know."
)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.csv",
    help="Where to write.  [default: ROSTER-LAB-seeds.csv beside the roster]",
)
@AS_JSON
def deal(roster: Path, **options: Any) -> None:
    """Deal each student of a class a seed of their own, with the commands to run.

    ROSTER.csv is what your learning management system exports: a heading, then a line for each
    student. The same word deals the same seeds again. ./lab grade holds runs against them.
    """
    from measuretwice.cli import deal as command_deal

    sys.exit(command_deal.deal_command(root_folder(), roster, **options))


@click.command()
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", help="Which lab.  [default: the runs' own]")
@click.option(
    "--roster",
    "roster_file",
    type=PATH,
    metavar="ROSTER.csv",
    help="The class, as your learning management system exports it.",
)
@click.option(
    "--deal",
    "deal_file",
    type=PATH,
    metavar="DEALT.csv",
    help="The class with its seeds, as ./lab deal wrote it.",
)
@click.option(
    "--assignment",
    metavar="TITLE",
    help="The column's title in the CSV.  [default: the lab's name]",
)
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Folder for the grades.  [default: FOLDER-grades, beside it]",
)
@click.option(
    "--again",
    type=Runs(),
    help="Run this many runs of each submission again, disputed ones first, and compare the bytes.",
)
@click.option(
    "--costly", is_flag=True, help="With --again: also what takes more than a minute of CPU time."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Submissions, and runs, at a time.  [default: one a CPU]",
)
@AS_JSON
def grade(folder: Path, **options: Any) -> None:
    """Grade a class's submissions as far as a machine can: runs, findings, points by the rubric.

    FOLDER holds a folder or archive for each student, as your learning management system packs
    them. Everything is measured again from the raw files; nothing in them is executed, nothing written
    among them. What --again runs is planned here, from the settings that a run's plan names. Exit 0 where all is well, 1 where there is something to look at.
    """
    from measuretwice.cli import grade as command_grade

    sys.exit(command_grade.grade_command(root_folder(), folder, **options))


@click.command()
@click.argument("out", metavar="OUT", type=PATH)
@click.option(
    "--students", is_flag=True, required=True, help="For students, which is all there is."
)
@click.option("--site", is_flag=True, help="With its site, built, in OUT/site.")
@click.option(
    "--archive", "packed", type=click.Choice(["zip", "tar.gz"]), help="Packed as well, beside OUT."
)
def release(out: Path, students: bool, **options: Any) -> None:
    """Make the kit that you give to students, in the new folder OUT: without answers.

    It has no solutions, keys, rubrics, pages for instructors, tests or fixed runs. What is wrong in
    each case is in it, as the hints need it, but out of sight.
    """
    from measuretwice.cli import release as command_release

    sys.exit(command_release.release_command(root_folder(), out, **options))


COMMANDS = (record, deal, grade, release)
