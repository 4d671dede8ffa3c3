"""`lab release`: the kit for students, without answers, as a folder, an archive and a site; and the commands of
./lab as its site's reference shows them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Literal

import click

from measuretwice.base.errors import UserError
from measuretwice.cli.docs import build_site, need_mkdocs
from measuretwice.cli.main import INSTRUCTORS, cli
from measuretwice.cli.options import PATH, root_folder
from measuretwice.release import archive, make_release
from measuretwice.site.reference import Command, Option, cell


@click.command()
@click.argument("out", metavar="OUT", type=PATH)
@click.option(
    "--students",
    is_flag=True,
    required=True,
    expose_value=False,
    help="Make it for students, the only choice.",
)
@click.option("--site", is_flag=True, help="Include its site, built, in OUT/site.")
@click.option(
    "--archive",
    "packed",
    type=click.Choice(["zip", "tar.gz"]),
    help="Pack it as well, next to OUT.",
)
def release(out: Path, site: bool, packed: Literal["zip", "tar.gz"] | None) -> int:
    """Make the kit that you give to students, without answers, in the new folder OUT.

    It has no solutions, keys, rubrics, pages for instructors, tests or fixed runs. The cause
    of each case is in it, because the hints need it, but out of sight.
    """
    root = root_folder()
    commands = [command for command in described() if command.name not in INSTRUCTORS]
    if site:
        need_mkdocs()
    make_release(root, out, commands=commands, add_site=_add_site if site else None)
    print(f"{out}: the kit for students, without answers")
    if site:
        print(f"{out / 'site' / 'index.html'}: its site")
    if packed:
        print(f"{archive(out.absolute(), packed)}: the same, packed")
    return 0


def _add_site(release: Path) -> None:
    if build_site(release, release / "site") != 0:
        raise UserError("the release's site can't be built; mkdocs's own message is above")
    # Made on the way, and made again by any ./lab docs.
    for path in (release / "build").glob("*"):
        path.unlink()
    (release / "build").rmdir()


# The commands, for the reference


def described() -> list[Command]:
    """Return every command of ./lab as click knows it."""
    top = click.Context(cli, info_name="./lab")
    return [
        described_one
        for name in sorted(cli.commands)
        if (command := cli.get_command(top, name)) is not None
        for described_one in _described(command, click.Context(command, info_name=name, parent=top))
    ]


def _described(command: click.Command, context: click.Context) -> list[Command]:
    """A command; of a group its commands, and itself before them."""
    records = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and "--help" not in parameter.opts
        and (record := parameter.get_help_record(context)) is not None
    ]
    # Names stand in backticks, where a bar needs no backslash, and would show one.
    options = [
        Option(" ".join(_plain(names).split()), cell(_plain(text))) for names, text in records
    ]
    usage = command.get_usage(context).removeprefix("Usage: ")
    help_text = inspect.cleandoc(command.help or "")
    name = context.command_path.removeprefix("./lab ")
    described_here = [Command(name, " ".join(usage.split()), help_text, options)]
    inner = command.commands if isinstance(command, click.Group) else {}
    for inner_name, inner_command in inner.items():
        described_here += _described(
            inner_command, click.Context(inner_command, info_name=inner_name, parent=context)
        )
    return described_here


def _plain(text: str) -> str:
    """click's words for a range in plain ones: [1<=x<=3] becomes [1 to 3]."""
    text = re.sub(r"\b(INTEGER|FLOAT)( RANGE)?\b", "N", text)
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
    return text.replace("x>=", "at least ").replace("x>", "more than ")
