"""`lab new`: a lab of one's own, begun as a copy of one that runs."""

from __future__ import annotations

import click

from measuretwice.cli.options import root_folder
from measuretwice.lab.load import find_labs, read_lab
from measuretwice.lab.new import add_pages, copy_lab


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--like", metavar="LAB", help="The lab to copy.  [default: the first, the smallest]")
def new(name: str, like: str | None) -> int:
    """Begin a lab of your own, as a copy of one that runs, in labs/NN-NAME/.

    The copy is a draft, so you can list, run, check and change it, but no page shows it yet. Called again for
    a draft, it begins a page for each case that came since.
    """
    root = root_folder()
    begun = find_labs(root).get(name)
    if begun and not like and (lab := read_lab(begun)).file.lab.draft:
        pages = add_pages(root, lab)
        print(
            f"docs/modules/{begun.name}/: pages begun: {len(pages)}; what was there stays as it was"
        )
        return 0
    lab = copy_lab(root, name, like)
    pages = add_pages(root, lab)
    folder = f"labs/{lab.folder.name}"
    print(
        f"{folder}: {lab.file.lab.title}\n"
        f"It runs already: ./lab run {name} --trial {min(lab.trials)}\n"
        "As a draft it appears on no page, and needs no recorded runs. What comes next:\n"
        f"  1. {folder}/lab.toml: title, network, parameters, trials, and what you expect of them\n"
        f"  2. {folder}/nodes/: what each node does; questions.md: the questions\n"
        f"  3. ./lab record {name}: its recorded runs, into sample-data/{lab.folder.name}/\n"
        f"  4. {folder}/facts.py: numbers from its recorded runs, by name\n"
        f"  5. docs/modules/{lab.folder.name}/: its pages, {len(pages)} begun, each with a line in mkdocs.yml\n"
        "  6. remove draft = true from lab.toml; then make test tells you what is missing"
    )
    return 0
