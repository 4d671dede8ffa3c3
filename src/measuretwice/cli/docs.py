"""`lab docs`: prepare the pages, then let mkdocs build or serve them, or make the offline zip."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import click

from measuretwice.base.errors import UserError
from measuretwice.base.files import pack_zip, wait_for, write_text
from measuretwice.base.paths import is_release
from measuretwice.cli.options import PATH, refuse, root_folder
from measuretwice.lab import published_labs

What = Literal["build", "serve", "offline"]
WATCHED = ("docs", "labs", "src/measuretwice/site/templates", "mkdocs.yml")


@click.command()
@click.option(
    "--build",
    "what",
    flag_value="build",
    default="build",
    help="Build into site/, which is the default.",
)
@click.option("--serve", "what", flag_value="serve", help="Show it on this machine, until Ctrl-C.")
@click.option(
    "--offline", "what", flag_value="offline", help="Make a zip to open without a network."
)
@click.option(
    "--check",
    "page",
    type=PATH,
    metavar="PAGE.md",
    help="Make only this page, list what is wrong with it, and show where its text is.",
)
@click.option("--instructor", is_flag=True, help="Include the answer key.")
@click.option("--out", type=PATH, metavar="DIR", help="Another folder, or another zip.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="For --serve."
)
def docs(what: What, page: Path | None, instructor: bool, out: Path | None, port: int) -> int:
    """Make this course's site: pages, with numbers and output from the recorded runs.

    --build writes it into site/ (with --instructor into site-instructor/), --serve shows it on
    this machine, --offline makes a zip of it. --check takes seconds, so use it after each change of a page.
    """
    root = root_folder()
    if page is not None:
        refuse("pages as they are written")
        return _check(root, page)
    need_mkdocs()
    if instructor:
        refuse("the site with answers")
    who = "-instructor" if instructor else ""
    pages = root / "build" / f"docs{who}"
    _say_what_runs(root)
    if what == "serve":
        _prepare(root, pages, instructor)
        return _serve(root, pages, instructor, port)
    with _alone(root / "build"):
        _prepare(root, pages, instructor)
        if what == "offline":
            site = root / "build" / f"site-offline{who}"
            status = _mkdocs(root, pages, ["build", "--site-dir", str(site)], OFFLINE="true")
            result = out or root / "build" / f"measuretwice{who}-offline.zip"
            if status == 0:
                _add_server(root, site)
                _zip(site, result)
                print(
                    f"{result}: unpack it and open measuretwice/index.html; or type python3 serve.py in that folder"
                )
            return status
        site = (out or root / f"site{who}").absolute()
        status = _mkdocs(root, pages, ["build", "--site-dir", str(site)])
    if status == 0:
        _add_server(root, site)
        print(site / "index.html")
    return status


def _check(root: Path, page: Path) -> int:
    """Make one page; return 0, or 1 where something is wrong with its prose."""
    from measuretwice.site.build import check_page

    pages = root.resolve() / "docs"
    if not page.exists():
        raise UserError(
            f"--check {page}: there is no such file; name it from here, as docs/index.md"
        )
    if page.name == "questions.md" and page.is_file():
        return _check_questions(root, page)
    if not page.resolve().is_relative_to(pages) or page.suffix != ".md" or not page.is_file():
        raise UserError(
            f"--check {page}: is no page; give a .md file below {pages}, or a lab's questions.md"
        )
    name = page.resolve().relative_to(pages).as_posix()
    text, problems = check_page(root, name)
    target = root / "build" / "checked" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    for line, problem in problems:
        print(f"docs/{name}, line {line}: {problem}")
    if not problems:
        print("Nothing is wrong. Only you can tell whether each word fits its fact.")
    print(f"Its text, with all numbers: {target}")
    return 1 if problems else 0


def _check_questions(root: Path, path: Path) -> int:
    """Compare a lab's questions with its rubric; return 0, or 1 where their points differ."""
    from measuretwice.grading.rubric import read_rubric, unmatched_points

    folder = path.resolve().parent
    labs = [lab for lab in published_labs(root).values() if lab.folder.resolve() == folder]
    if not labs:
        raise UserError(f"--check {path}: no lab has it; give labs/NN-<lab>/questions.md")
    rubric = read_rubric(labs[0])
    problems = unmatched_points(labs[0], rubric) if rubric else []
    print(
        "\n".join(f"{path}: {problem}" for problem in problems)
        or "Nothing is wrong: each question has its points in rubric.toml."
    )
    return 1 if problems else 0


def need_mkdocs() -> None:
    """UserError where the site can't be built for want of it."""
    if importlib.util.find_spec("mkdocs") is None:
        raise UserError("the site needs mkdocs, which is not here: ./lab docs installs it")


def build_site(root: Path, out: Path) -> int:
    """Build the site of a students' release into `out`; return mkdocs' exit status."""
    pages = root / "build" / "docs"
    _say_what_runs(root)
    _prepare(root, pages, instructor=False)
    status = _mkdocs(root, pages, ["build", "--site-dir", str(out)])
    if status == 0:
        _add_server(root, out)
    return status


def _prepare(root: Path, pages: Path, instructor: bool) -> None:
    """Make what mkdocs reads. A release's pages are made already, from runs that it hasn't all."""
    settings = pages.with_suffix(".yml")
    if is_release(root):
        settings.parent.mkdir(exist_ok=True)
        text = "# Made by ./lab docs.\nINHERIT: ../mkdocs.yml\ndocs_dir: ../docs/pages\n"
        write_text(settings, text)
        return
    from measuretwice.cli.release import described
    from measuretwice.site.build import prepare

    prepare(root, pages, instructor=instructor, commands=described())


def _say_what_runs(root: Path) -> None:
    """Say where pages will only show recorded runs; a release's are made already."""
    if is_release(root):
        return
    from measuretwice.backends.browser import find_machine

    if find_machine() is None:
        print(
            "these pages won't run experiments, only show recorded ones: the machine for that, which comes with the "
            "checkout, is older than its scripts. bash scripts/browser/build.sh builds a new one, in some five minutes",
            file=sys.stderr,
        )


def _alone(build: Path) -> AbstractContextManager[None]:
    """Wait for other builds in this checkout: all prepare their pages in one folder."""
    build.mkdir(exist_ok=True)
    return wait_for(
        build / "docs.lock",
        lambda: print("another ./lab docs is at work here: waiting for it", file=sys.stderr),
    )


def _command(pages: Path, arguments: list[str]) -> list[str]:
    verb, *rest = arguments
    return [
        sys.executable, "-P", "-m", "mkdocs", "--quiet", verb,
        "--strict", "--config-file", str(pages.with_suffix(".yml")), *rest,
    ]  # fmt: skip


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "NO_MKDOCS_2_WARNING": "1", **more}


def _mkdocs(root: Path, pages: Path, arguments: list[str], **more: str) -> int:
    command = _command(pages, arguments)
    return subprocess.run(command, cwd=root, env=_environment(**more), check=False).returncode


def _add_server(root: Path, site: Path) -> None:
    """Opened as files, pages can't run trials, and say that this serves them: so it is in every site."""
    (site / "serve.py").write_bytes((root / "scripts/docs/serve.py").read_bytes())


def _zip(site: Path, target: Path) -> None:
    """One folder of files, in order and with one date: the same site is the same zip."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    files = (path for path in site.rglob("*") if path.is_file())
    part.write_bytes(
        pack_zip({f"measuretwice/{path.relative_to(site).as_posix()}": path for path in files})
    )
    part.replace(target)


def _serve(root: Path, pages: Path, instructor: bool, port: int) -> int:
    """mkdocs shows the prepared pages; what changes in docs/ or labs/ is prepared anew."""
    where = f"127.0.0.1:{port}"
    print(f"http://{where}/ (Ctrl-C ends it)", flush=True)
    # --livereload is mkdocs' default, but newer versions of click lose it.
    command = _command(pages, ["serve", "--livereload", "--dev-addr", where])
    server = subprocess.Popen(command, cwd=root, env=_environment())
    try:
        prepared = _newest(root)
        while server.poll() is None:
            time.sleep(0.5)
            if (newest := _newest(root)) != prepared:
                prepared = newest
                try:
                    _prepare(root, pages, instructor)
                except UserError as error:
                    print(f"lab: {error}", file=sys.stderr)
    finally:
        server.terminate()
        server.wait()
    return server.returncode


def _newest(root: Path) -> tuple[int, float]:
    times = [
        path.stat().st_mtime
        for name in WATCHED
        for path in (root / name, *(root / name).rglob("*"))
        if path.is_file()
    ]
    return len(times), max(times, default=0.0)
