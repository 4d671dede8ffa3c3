#!/usr/bin/env python3
"""Make the solution notebooks: each NN-name.py, run whole, becomes NN-name.ipynb.

    make solutions
    solutions/build.py --out FOLDER 01-mathis

The sources are percent scripts (jupytext), which read well in a diff. A notebook is made, not
kept: it holds what its cells printed on the recorded runs in sample-data/.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).parent
CELL_SECONDS = 300


def build(source: Path, out: Path) -> NotebookNode:
    """Run a percent script as a notebook and write it to `out`; CellExecutionError where it fails."""
    notebook = jupytext.read(source)
    NotebookClient(
        notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(source.parent)}}
    ).execute()
    nbformat.write(notebook, out / f"{source.stem}.ipynb")
    return notebook


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", help="which notebooks, as 01-mathis; else all")
    options.add_argument("--out", type=Path, default=HERE, help="folder for the notebooks")
    chosen = options.parse_args()
    for source in sorted(HERE.glob("[0-9]*.py")):
        if chosen.names and source.stem not in chosen.names:
            continue
        print(f"{source.stem}: running every cell on the recorded runs", file=sys.stderr)
        build(source, chosen.out)
        print(chosen.out / f"{source.stem}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
