"""The commands of ./lab: what each takes, as click knows it. The work is done in their modules.

These are imported when they are called, so that ./lab answers at once.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from measuretwice import __version__
from measuretwice.base.seeds import LAST_SEED
from measuretwice.cli import class_commands, run_commands
from measuretwice.cli.edition import Commands
from measuretwice.cli.options import (
    AS_JSON,
    CASE,
    NO_EDIT,
    PATH,
    PITFALL,
    SHOW_ME,
    STAGE,
    root_folder,
)
from measuretwice.cli.types import Jobs


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="measuretwice")
def cli() -> None:
    """Measure Twice: reproduce published TCP results, and find out why the first try is wrong."""


for command in (*run_commands.COMMANDS, *class_commands.COMMANDS):
    cli.add_command(command)


@cli.command()
@AS_JSON
def doctor(as_json: bool) -> None:
    """Say what this machine can run, and what to do about the rest."""
    from measuretwice.cli import doctor as command_doctor

    sys.exit(command_doctor.doctor_command(root_folder(), as_json))


@cli.command("list")
@click.argument("lab_name", metavar="[LAB]", required=False)
@click.option(
    "--causes",
    is_flag=True,
    help="For instructors: each case's id, for --pitfall, and its cause.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="For instructors: also the settings that give a case's cause away.",
)
@AS_JSON
def list_labs(lab_name: str | None, causes: bool, every: bool, as_json: bool) -> None:
    """List the labs and their cases: what is seen, not why. For one LAB, its trials and settings too."""
    from measuretwice.cli import list as command_list

    sys.exit(
        command_list.list_command(
            root_folder(), lab_name, causes=causes, every=every, as_json=as_json
        )
    )


@cli.command()
@click.argument("lab_name", metavar="[LAB]", required=False)
@click.option("--out", type=PATH, help="Folder of runs.  [default: runs/ in the checkout]")
@AS_JSON
def progress(lab_name: str | None, **options: Any) -> None:
    """Say where you are: which cases are solved, according to your lab books, and what is left."""
    from measuretwice.cli import progress as command_progress

    sys.exit(command_progress.progress_command(root_folder(), lab_name, **options))


@cli.command()
@click.argument("name", metavar="NAME")
@click.option("--like", metavar="LAB", help="The lab to copy.  [default: the first, the smallest]")
def new(name: str, like: str | None) -> None:
    """Begin a lab of your own: a copy of one that runs, as labs/NN-NAME/.

    It is a draft: it can be listed, run, checked and changed, and no page shows it yet.
    """
    from measuretwice.cli import new as command_new

    sys.exit(command_new.new_command(root_folder(), name, like=like))


@cli.command()
@click.argument("lab_name", metavar="[LAB]", required=False)
@click.option(
    "--seed",
    type=click.IntRange(0, LAST_SEED),
    help="The number that all randomness starts from.  [default: your lab book's]",
)
@click.option(
    "--jobs",
    type=Jobs(),
    metavar=Jobs.name,
    help="Trials at a time; or the cluster that runs them.  [default: one a CPU]",
)
@click.option("--out", type=PATH, help="Folder of runs.  [default: runs/ in the checkout]")
@click.option("--fresh", is_flag=True, help="Measure again what is already measured.")
@click.option(
    "--open", "open_it", is_flag=True, help="Open the figure in the browser, if there is one."
)
@AS_JSON
def start(lab_name: str | None, **options: Any) -> None:
    """Make your own first try, with the settings that come naturally, and see what comes out.

    LAB is by default the first that has one. Each case that you solve changes the first try: the same command then
    runs it again with what you found, and says what it was so far. Stopped half-way, it goes on where it stopped.
    """
    from measuretwice.cli import start as command_start

    sys.exit(command_start.start_command(root_folder(), lab_name, **options))


@cli.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--trial", "--trials", "trials", help="7, 1-12,20 or all.  [default: all]")
@CASE
@SHOW_ME
@PITFALL
@STAGE
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a parameter of every trial.",
)
@click.option(
    "--duration",
    metavar="SECONDS",
    help="Length of each test; the same as --set duration_s=SECONDS.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, LAST_SEED),
    help="The number that all randomness starts from.  [default: 1; for a case, your lab book's]",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 10_000),
    help="Run each trial with this many seeds, counting up.  [default: 1]",
)
@click.option(
    "--jobs",
    type=Jobs(),
    metavar=Jobs.name,
    help="Trials at a time; or the cluster that runs them.  [default: one a CPU]",
)
@click.option(
    "--on",
    "where",
    default="virtual",
    show_default=True,
    metavar="virtual|host|browser|FILE",
    help="Where to run: in the virtual kernel; in namespaces of this machine's own, as root; in the "
    "machine that the site has for browsers, in node; or on the machines that FILE (nodes.toml) names, by ssh.",
)
@click.option(
    "--out",
    type=PATH,
    help="Folder for runs.  [default: runs/ in the checkout]",
)
@click.option(
    "--wall-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Give a trial up after this much real time.  [default: 120 s + its duration]",
)
@click.option("--fresh", is_flag=True, help="Measure again what is already measured.")
@NO_EDIT
@AS_JSON
def run(lab_name: str, **options: Any) -> None:
    """Measure trials of LAB, each in a virtual kernel of its own.

    What is already measured with the same settings is kept, so a run that was interrupted goes on
    where it stopped.
    """
    from measuretwice.cli import run as command_run

    sys.exit(command_run.run_command(root_folder(), lab_name, **options))


@cli.command()
@click.argument("lab_name", metavar="LAB")
@click.option(
    "--undo", is_flag=True, help="Put the copy aside: runs use the lab's own scripts again."
)
@click.option("--open", "open_it", is_flag=True, help="Open it in your editor ($EDITOR).")
@click.option("--out", type=PATH, help="Folder of runs.  [default: runs/ in the checkout]")
def edit(lab_name: str, **options: Any) -> None:
    """Make your own copy of LAB's node scripts and settings, to change them and to run them.

    It is put into the folder of runs, as LAB/edit/, and your runs use what you change in it. What is
    there already is never overwritten.
    """
    from measuretwice.cli import edit as command_edit

    sys.exit(command_edit.edit_command(root_folder(), lab_name, **options))


@cli.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--trial", metavar="N", help="Use this trial's settings.  [default: the first]")
@CASE
@SHOW_ME
@PITFALL
@STAGE
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a parameter.")
@click.option("--tmux", is_flag=True, help="Open the terminals at once, side by side.")
@NO_EDIT
def up(lab_name: str, **options: Any) -> None:
    """Bring LAB's network up in a virtual kernel, in real time, for ./lab enter.

    It stays until ./lab down. The settings stand in each shell's environment, where the node's
    script reads them.
    """
    from measuretwice.cli import live as command_live

    sys.exit(command_live.up_command(root_folder(), lab_name, **options))


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("node", metavar="NODE")
@click.argument("command", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--lab", "lab_name", metavar="LAB", help="Which lab, if two that are up have NODE.")
def enter(node: str, command: tuple[str, ...], lab_name: str | None) -> None:
    """Open a shell on NODE of the lab that is up, in this terminal, or run COMMAND there.

    You are root there, and only there. Files go into the node's own folder.
    """
    from measuretwice.cli import live as command_live

    sys.exit(command_live.enter_command(root_folder(), node, command, lab_name))


@cli.command()
@click.argument("lab_name", metavar="[LAB]", required=False)
def down(lab_name: str | None) -> None:
    """Take down the lab that is up, or all of them. What was written on nodes stays."""
    from measuretwice.cli import live as command_live

    sys.exit(command_live.down_command(root_folder(), lab_name))


@cli.command()
@AS_JSON
def status(as_json: bool) -> None:
    """Say which labs are up, since when, and where their files go."""
    from measuretwice.cli import live as command_live

    sys.exit(command_live.status_command(root_folder(), as_json))


@cli.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--fabric", is_flag=True, help="A notebook for FABRIC's JupyterHub.")
@click.option("--cloudlab", is_flag=True, help="A profile for CloudLab's portal.")
@click.option(
    "--manifest",
    type=PATH,
    metavar="FILE",
    help="nodes.toml, from the manifest of a CloudLab experiment.",
)
@click.option("--user", metavar="NAME", help="Whose login, if the manifest has several.")
@click.option(
    "--out",
    type=PATH,
    metavar="FILE",
    help="Another file, or - for standard output.",
)
def testbed(lab_name: str, **options: Any) -> None:
    """Make what a testbed needs to build LAB's topology from real machines.

    The notebook and the profile come from lab.toml: nodes, networks, addresses, routes. Nothing
    here reaches a testbed.
    """
    from measuretwice.cli import testbed as command_testbed

    sys.exit(command_testbed.testbed_command(root_folder(), lab_name, **options))


@cli.command()
@click.option(
    "--build", "what", flag_value="build", default="build", help="Into site/: the default."
)
@click.option("--serve", "what", flag_value="serve", help="On this machine, until Ctrl-C.")
@click.option("--offline", "what", flag_value="offline", help="A zip to open without a network.")
@click.option("--instructor", is_flag=True, help="With the answer key.")
@click.option("--out", type=PATH, metavar="DIR", help="Another folder, or another zip.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="For --serve."
)
def docs(**options: Any) -> None:
    """Make this course's site: pages, with numbers and output from the recorded runs.

    --build writes it into site/ (with --instructor into site-instructor/), --serve shows it on
    this machine, --offline makes a zip of it.
    """
    from measuretwice.cli import docs as command_docs

    sys.exit(command_docs.docs_command(root_folder(), **options))
