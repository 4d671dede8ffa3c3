"""`lab release`: the kit for students, without answers, as a folder, an archive and a site."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from measuretwice.base.errors import UserError
from measuretwice.cli.describe import described
from measuretwice.cli.docs import build_site, need_mkdocs
from measuretwice.cli.edition import INSTRUCTORS
from measuretwice.release.students import archive, make_release


def release_command(
    root: Path, out: Path, *, site: bool, packed: Literal["zip", "tar.gz"] | None
) -> int:
    """Make the release and say where it is; return 0."""
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
        raise UserError("the release's site can't be built; what mkdocs says of it is above")
    # Made on the way, and made again by any ./lab docs.
    for path in (release / "build").glob("*"):
        path.unlink()
    (release / "build").rmdir()
