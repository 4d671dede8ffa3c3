"""Running the command line: what is called wrongly, and what goes wrong, is one clear line."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time

import click

from measuretwice.base.errors import UserError, without_controls
from measuretwice.cli.commands import cli


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
    """What still waits to be written goes nowhere; the interpreter would try once more, and complain in its own words."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _output_fails() -> bool:
    """Can nothing be written to standard output? What waited to be written may be lost already, so a byte is tried."""
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
