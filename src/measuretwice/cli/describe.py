"""The commands of ./lab as the site's reference shows them."""

from __future__ import annotations

import inspect
import re

import click

from measuretwice.cli.main import cli
from measuretwice.site.reference import Command, Option, cell


def described() -> list[Command]:
    """Return every command of ./lab as click knows it."""
    commands = []
    top = click.Context(cli, info_name="./lab")
    for name in sorted(cli.commands):
        command = cli.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        records = [
            record
            for parameter in command.get_params(context)
            if isinstance(parameter, click.Option)
            and "--help" not in parameter.opts
            and (record := parameter.get_help_record(context)) is not None
        ]
        options = [Option(cell(_plain(names)), cell(_plain(text))) for names, text in records]
        usage = command.get_usage(context).removeprefix("Usage: ")
        help_text = inspect.cleandoc(command.help or "")
        commands.append(Command(name, " ".join(usage.split()), help_text, options))
    return commands


def _plain(text: str) -> str:
    """click's words for a range in plain ones: [1<=x<=3] becomes [1 to 3]."""
    text = re.sub(r"\b(INTEGER|FLOAT)( RANGE)?\b", "N", text)
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
    return text.replace("x>=", "at least ").replace("x>", "more than ")
