"""A report as one HTML file, and the same as Markdown.

Every string that comes from a run's folder is data: it is cleaned of what a terminal or browser
would obey, and escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from measuretwice.report.markdown import clean, fence, inline_html, markdown_text
from measuretwice.report.report import Report

TEMPLATES = Path(__file__).parent / "templates"


def environment(*folders: Path, **options: Any) -> Environment:
    """Return jinja's environment for a report's templates: values are escaped, and one that is missing is an error.

    Templates in `folders` can use the report's.
    """
    return Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )


def render_html(report: Report, figures: Sequence[tuple[str, str]] | None = ()) -> str:
    """Return the report as one HTML file. `figures` are captions and SVG texts of our own; None where nothing could draw them."""
    room = environment(finalize=clean)
    room.filters["inline"] = inline_html
    drawings = [(caption, _drawing(svg)) for caption, svg in figures or ()]
    return room.get_template("report.html.j2").render(
        report=report, figures=drawings, undrawn=figures is None
    )


def render_markdown(report: Report, figures: Sequence[tuple[str, str]] | None = ()) -> str:
    """Return the same as Markdown. Of `figures` only the captions: drawings are in the HTML."""
    room = environment(finalize=markdown_text)
    room.filters |= {"fence": fence, "verbatim": Markup}
    captions = [caption for caption, _ in figures or ()]
    text = room.get_template("report.md.j2").render(
        report=report, figures=captions, undrawn=figures is None
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _drawing(svg: str) -> Markup:
    """The <svg> element alone: what stands before it in a file has no place in HTML."""
    start = svg.find("<svg")
    return Markup(svg[start:] if start >= 0 else "")
