"""The command line: the table of its commands, and one clear line for whatever is called wrongly or goes wrong.

A command's module is imported when the command is called, so that ./lab answers at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from importlib import import_module
from typing import Any

import click

from measuretwice import __version__
from measuretwice.base.errors import UserError, without_controls
from measuretwice.base.paths import is_release
from measuretwice.cli.options import refuse, root_folder

# Each command: its function in this package, and its line in the list of commands, which is its help's first.
COMMANDS = {
    "audit": ("check.audit", "Find the rows in a table of results that can't be true, and the reason."),
    "check": ("check.check", "Diagnose runs: did each measure what it was meant to?"),
    "deal": ("grade.deal", "Deal each student of a class a seed of their own, with the commands to run."),
    "diff": ("show.diff", "Compare two runs: the settings, measured values and raw files that differ, side by side."),
    "docs": ("docs.docs", "Make this course's site: pages, with numbers and output from the recorded runs."),
    "doctor": ("doctor.doctor", "Check what this machine can run, and how to fix the rest."),
    "down": ("live.down", "Take down LAB, or all running labs. Files written on nodes stay."),
    "edit": ("edit.edit", "Make your own copy of LAB's node scripts and settings, to change and run."),
    "enter": ("live.enter", "Open a shell on NODE of the running lab in this terminal, or run COMMAND there."),
    "grade": ("grade.grade", "Grade a class's submissions as far as a machine can: runs, findings, points by the rubric."),
    "list": ("list.list_labs", "List the labs and their cases by symptom. For one LAB, list its trials and settings too."),
    "new": ("edit.new", "Begin a lab of your own, as a copy of one that runs, in labs/NN-NAME/."),
    "note": ("show.note", "Keep what you know so far about a case in your lab book."),
    "plan": ("plan.plan", "Plan a study of your own before its runs, freeze the plan, and analyse the runs as planned."),
    "plot": ("plot.plot", "Draw finished runs, as SVG with a CSV of the numbers: compared with the lab's model, or in the figures that its lab.toml has; or up to three runs over time."),
    "progress": ("list.progress", "Show where you are: which cases are solved in your lab books, and what is left."),
    "record": ("record.record", "Make LAB's recorded runs in sample-data/, or --verify them."),
    "release": ("release.release", "Make the kit that you give to students, without answers, in the new folder OUT."),
    "report": ("report.report", "Write what you hand in: one HTML file about all these runs, and the same as Markdown."),
    "run": ("run.run", "Measure trials of LAB, each in a virtual kernel of its own."),
    "show": ("show.show", "Make one raw file readable: its values, what each field means, and where it is."),
    "start": ("start.start", "Make your own first try, with the settings that come naturally, and see how it turns out."),
    "status": ("live.status", "Show which labs are running, since when, and where their files go."),
    "testbed": ("testbed.testbed", "Make what a testbed needs to build LAB's topology from real machines."),
    "up": ("live.up", "Bring LAB's network up in a virtual kernel, in real time, for ./lab enter."),
}  # fmt: skip
# What a students' release has not: marking, answers, and what makes recorded runs.
INSTRUCTORS = ("deal", "grade", "record", "release")


class LazyGroup(click.Group):
    """All of ./lab's commands, as far as the kit at hand has them, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands that the help shows."""
        left_out = INSTRUCTORS if is_release(root_folder()) else ()
        return sorted(name for name in COMMANDS if name not in left_out)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None for an unknown one; in a release, of an instructors' one what says where it is."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in INSTRUCTORS and is_release(root_folder()):
            return _elsewhere(cmd_name)
        module, function = COMMANDS[cmd_name][0].split(".")
        command = getattr(import_module(f"measuretwice.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing them."""
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        rows = [(name, self.commands[name].get_short_help_str(room)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    # click suggests one of these for a name that it doesn't know.
    commands={name: click.Command(name, help=line) for name, (_, line) in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="measuretwice")
def cli() -> None:
    """Measure Twice: reproduce published TCP results, and find out why the first try is wrong."""


def _elsewhere(name: str) -> click.Command:
    def say(**_: Any) -> None:
        refuse(f"./lab {name}")

    words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "help_option_names": []}
    return click.Command(name, context_settings=settings, params=[words], callback=say)


def _check_usage(arguments: list[str]) -> None:
    """Read the command line as if to run it, and complain as usual; ./lab asks before it installs."""
    top = cli.make_context("./lab", arguments)
    name, command, rest = cli.resolve_command(top, arguments)
    if name and command:
        with contextlib.suppress(click.exceptions.Exit):  # of --help
            command.make_context(name, rest, parent=top)


def _check_clock() -> None:
    """UserError where the clock shows a moment that has more nanoseconds than Python counts: much is dated by it."""
    try:
        time.time()
    except OverflowError:
        raise UserError(
            "this machine's clock shows a year after 2262: set it, as by timedatectl set-ntp true"
        ) from None


def main() -> None:
    """Run the command line: one clear line for whatever goes wrong, exit 2 for wrong usage."""
    try:
        _check_clock()
        if os.environ.get("MEASURETWICE_USAGE_ONLY"):
            _check_usage(sys.argv[1:])
            sys.exit(0)
        code = cli.main(prog_name="./lab", standalone_mode=False)
        # What can't be written is found out here, and not when the interpreter ends.
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except UserError as error:
        _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        sys.exit(0)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        _complain(f"{error.format_message().rstrip('.')}{hint}", 2)
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped; finished trials are kept, and the same command goes on from there", 130)
    except BrokenPipeError:
        # Whoever read our output has gone (as `| head` does).
        _drop_output()
        sys.exit(141)
    except OSError as error:
        _complain(_what_failed(error), 1)
    except Exception as error:
        # What is imported only when it is needed; without the first of all, __main__ says so.
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith(
            "measuretwice"
        ):
            _complain(
                f"this Python has no {error.name}: start it by ./lab, which has all it needs", 1
            )
        if os.environ.get("MEASURETWICE_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        _complain(
            f"a mistake of ours: {what} (MEASURETWICE_DEBUG=1 shows where; please report it)", 1
        )


def _drop_output() -> None:
    """Discard the output that waits to be written; the interpreter would try once more, and complain in its own
    words."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _output_fails() -> bool:
    """Return whether standard output can't be written to. The buffer may be lost already, so a byte is tried."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        _drop_output()
        return True
    return False


def _what_failed(error: OSError) -> str:
    """Say what the system refused, and of what, also where the error names no file."""
    reason = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {reason}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) and _output_fails():
        return f"standard output: {reason}; nothing that was finished is lost, the same command shows it again"
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the folder that you are in was removed: cd to another one, then run this again"
    return f"system: {reason}"


def _complain(message: str, code: int) -> None:
    # What stands in a file or is called so is no order to a terminal.
    with contextlib.suppress(OSError):  # of a terminal that was closed
        print(f"lab: {without_controls(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(code)
