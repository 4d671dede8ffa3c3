"""`lab testbed`: a lab's topology as a file for FABRIC or CloudLab; nodes.toml from a manifest."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from measuretwice.backends.ssh_nodes import node_list_text
from measuretwice.base.errors import UserError
from measuretwice.cli.options import PATH, root_folder
from measuretwice.lab import load_lab
from measuretwice.testbeds import cloudlab_profile, fabric_notebook, manifest_logins


@click.command()
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
def testbed(
    lab_name: str,
    fabric: bool,
    cloudlab: bool,
    manifest: Path | None,
    user: str | None,
    out: Path | None,
) -> int:
    """Make what a testbed needs to build LAB's topology from real machines.

    The notebook and the profile come from lab.toml, with nodes, networks, addresses and routes. This
    command itself reaches no testbed.
    """
    root = root_folder()
    lab = load_lab(root, lab_name)
    if fabric + cloudlab + (manifest is not None) != 1:
        raise UserError("say what to make: one of --fabric, --cloudlab and --manifest FILE")
    if user and manifest is None:
        raise UserError("--user names a login of a --manifest, so give both")
    if fabric:
        name, text, then = (
            f"{lab.name}-fabric.ipynb",
            fabric_notebook(lab),
            "open it on FABRIC's JupyterHub",
        )
    elif cloudlab:
        name, text = f"{lab.name}-cloudlab.py", cloudlab_profile(lab)
        then = "create a profile from it in CloudLab's portal"
    else:
        assert manifest is not None
        logins = manifest_logins(_read(manifest), lab, user)
        name, text = "nodes.toml", node_list_text(logins, f"{lab.name}, from {manifest.name}")
        then = f"./lab run {lab.name} --on {out or name}"
    path = out or Path(name)
    if str(path) == "-":
        sys.stdout.write(text)
        return 0
    _write(path, text)
    print(f"{path}: {then}")
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text") from None


def _write(path: Path, text: str) -> None:
    """Write the file, but not over another: somebody may have changed it."""
    try:
        if path.is_file() and path.read_bytes() == text.encode():
            return
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(
            f"{path}: is there already, and differs: delete it, or name another with --out"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: can't be written: {error.strerror}") from None
