"""The solution notebooks as pages: their text, what their cells printed, and the code folded.

A notebook is run on the recorded runs, once: what it said is kept under build/ until it, the runs
or the package change.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.paths import digest_of_packages
from measuretwice.facts.computed import FILE
from measuretwice.figures.palette import in_the_dark
from measuretwice.report.markdown import fence
from measuretwice.runs.recorded import SET_FILE, set_folders
from measuretwice.runs.result import DERIVING
from measuretwice.site.build_cache import digest_of, made_once

# What notebooks import.
NOTEBOOK_PACKAGES = (*DERIVING, "audit", "book", "facts", "figures")


def notebook_pages(root: Path, sources: Sequence[Path], cache: Path) -> dict[str, bytes]:
    """Return the pages of solution notebooks and their figures, by name: `01-mathis.md`, ...

    `cache` is a folder for what was run before. The others run side by side, one a CPU. UserError
    where a cell fails.
    """
    folders = [cache / source.stem / _digest(root, source) for source in sources]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        notebooks = [
            pool.submit(made_once, folder, partial(_make, root, source))
            for source, folder in zip(sources, folders, strict=True)
        ]
        try:
            for notebook in notebooks:
                notebook.result()
        finally:
            # After a failure none begins any more.
            pool.shutdown(cancel_futures=True)
    return {path.name: path.read_bytes() for folder in folders for path in sorted(folder.iterdir())}


def _make(root: Path, source: Path, folder: Path) -> None:
    """Run a notebook and put its page and figures into `folder`."""
    _execute(root, source, folder)
    notebook = folder / f"{source.stem}.ipynb"
    document = json.loads(notebook.read_text(encoding="utf-8"))
    notebook.unlink()
    for name, content in pages_of(document, source.stem).items():
        (folder / name).write_text(content, encoding="utf-8")


def _digest(root: Path, source: Path) -> str:
    """Sixteen hex digits of all that a notebook's output follows from."""
    shared = root / "solutions/common.py"
    # How an output becomes Markdown is decided here.
    sources = [source, shared, root / "solutions/build.py", Path(__file__)]
    sources += [folder / SET_FILE for folder in set_folders(root / "sample-data" / source.stem)]
    sources += (root / "sample-data" / source.stem).glob(FILE)
    sources += sorted(path for path in (root / "labs" / source.stem).iterdir() if path.is_file())
    code = digest_of_packages(*NOTEBOOK_PACKAGES)
    return digest_of(*sources, code)


def _execute(root: Path, source: Path, out: Path) -> None:
    print(f"{source.name}: running every cell on the recorded runs", file=sys.stderr)
    script = str(root / "solutions/build.py")
    command = [sys.executable, "-P", script, "--out", str(out), source.stem]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UserError(f"{source.name} doesn't run whole: {lines[-1]}", 1)


def pages_of(notebook: dict[str, Any], name: str) -> dict[str, str]:
    """Return a run notebook as one page and its figures, by file name."""
    parts: list[str] = []
    figures: dict[str, str] = {}
    for cell in notebook["cells"]:
        source = _text(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif source:
            code = f"```python\n{source}\n```".replace("\n", "\n    ")
            parts.append(f'??? note "How this is computed"\n\n    {code}')
            parts += [_shown(output, figures, name) for output in _joined(cell["outputs"])]
    return {f"{name}.md": "\n\n".join(filter(None, parts)) + "\n", **figures}


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A cell's outputs, with what it printed in one: on a busy machine that comes in pieces."""
    joined: list[dict[str, Any]] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" and last.get("name") == output.get("name", ""):
            last["text"] = _text(last["text"]) + _text(output["text"])
        else:
            joined.append(dict(output))
    return joined


def _shown(output: dict[str, Any], figures: dict[str, str], name: str) -> str:
    """One output of a cell as Markdown; a figure goes into `figures`."""
    if output["output_type"] == "stream":
        return str(fence(_text(output["text"]).strip("\n")))
    data = output["data"]
    if "image/svg+xml" in data:
        file = f"{name}-{len(figures) + 1}.svg"
        dark = file.replace(".svg", "-dark.svg")
        figures[file] = _text(data["image/svg+xml"])
        figures[dark] = in_the_dark(figures[file])
        size = " ".join(re.findall(r'\b(?:width|height)="\d+"', figures[file])[:2])
        return (
            "\n".join(
                f"![Figure, computed from the recorded runs]({name}){{ .figure {scheme} {size} }}"
                for name, scheme in ((file, ".light"), (dark, ".dark"))
            )
            + "\n{ .drawn .wide }"
        )
    if "text/markdown" in data:
        return _text(data["text/markdown"])
    if "text/html" in data:
        return _table(_text(data["text/html"]))
    return str(fence(_text(data["text/plain"])))


def _text(lines: str | list[str]) -> str:
    """Notebooks hold text whole or as a list of lines."""
    return lines if isinstance(lines, str) else "".join(lines)


def _table(html: str) -> str:
    """pandas' table without its own style, so that it has the site's."""
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    html = re.sub(r' (?:border|class|style)="[^"]*"', "", html)
    # Above its row numbers there is nothing, which is no heading.
    html = re.sub(r"<th([^>]*)>\s*</th>", r"<td\1></td>", html)
    return "\n".join(line.strip() for line in html.splitlines() if line.strip())
