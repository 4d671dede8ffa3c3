"""The commands' group: in a students' release, instructors' commands are elsewhere, and are said to be."""

from __future__ import annotations

from typing import Any

import click

from measuretwice.base.edition import is_release
from measuretwice.base.errors import UserError
from measuretwice.cli.options import root_folder

# What a release has not: marking, answers, and what makes recorded runs.
INSTRUCTORS = ("deal", "grade", "record", "release")


class Commands(click.Group):
    """All of ./lab's commands, as far as the kit at hand has them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands that the help shows."""
        names = super().list_commands(ctx)
        return [name for name in names if name not in INSTRUCTORS or not is_release(root_folder())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; in a release, of an instructors' one what says where it is."""
        if cmd_name in INSTRUCTORS and is_release(root_folder()):
            return _elsewhere(cmd_name)
        return super().get_command(ctx, cmd_name)


def _elsewhere(name: str) -> click.Command:
    def say(**_: Any) -> None:
        refuse(f"./lab {name}")

    words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "help_option_names": []}
    return click.Command(name, context_settings=settings, params=[words], callback=say)


def refuse(what: str) -> None:
    """UserError where the kit at hand is a students' release."""
    if is_release(root_folder()):
        raise UserError(f"{what} is in the instructors' checkout; this is the students' release")
