"""A lab's figures: drawn once of its recorded runs, kept in build/, and shown as a page shows them."""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from measuretwice.base.files import read_object
from measuretwice.base.paths import PACKAGE
from measuretwice.figures.files import DARK, DESK, PHONE, Facts, draw_figure, write_for_pages
from measuretwice.figures.rows import NamedSet, Row, csv_text
from measuretwice.lab import Lab, after_cases, step_cases
from measuretwice.lab.schema.results import FigureOf
from measuretwice.runs.recorded import SET_FILE, read_set, results_of
from measuretwice.site.words.blocks import CAPTION
from measuretwice.site.words.subjects import LabWords

if TYPE_CHECKING:
    from measuretwice.figures.style import DescribedFigure

# Beside the pictures: what each is called, its caption, its sizes.
FACTS = "figures.json"
# Its pictures by layout and scheme, as they are named: the page's style shows the one that fits.
VARIANTS = {
    DESK: ".light .desk",
    DESK + DARK: ".dark .desk",
    PHONE: ".light .phone",
    PHONE + DARK: ".dark .phone",
}


def picture(lab: str, file: str, alt: str, size: Sequence[int], classes: str) -> str:
    """Return a picture as Markdown, with the room that it takes."""
    width, height = size
    look = f'.figure {classes} width="{width}" height="{height}" loading="lazy"'
    return f"![{html.escape(alt)}](/assets/figures/{lab}/{file}){{ {look} }}"


def captioned(pictures: Sequence[str], caption: str, classes: str = "") -> str:
    """Return pictures with their caption as Markdown that may stand indented; the page numbers it."""
    return "\n".join(
        [
            *pictures,
            f'<span class="figcaption">{CAPTION} {caption}</span>',
            f'{{ .drawn {classes} role="figure" aria-label="Figure 0" }}\n',
        ]
    )


def sentence(text: str) -> str:
    """Return a text with a capital, without a stop at its end."""
    return (text[:1].upper() + text[1:]).rstrip(".")


def facts_of(words: LabWords, name: str) -> Facts | None:
    """Return what is known of a drawn figure; None where none of that name is drawn."""
    folder = drawn_figures(words)
    return read_object(folder / FACTS).get(name) if folder else None


def drawn_figures(words: LabWords) -> Path | None:
    """Return the folder with a lab's figures, drawn where those that are kept are of other runs.

    None for a lab without.
    """
    lab = words.lab
    steps = sorted(words.samples / name for name in words.steps)
    declared = []
    for figure in lab.file.figures:
        folders = [words.samples / name for name in figure.sets]
        if recorded := [folder for folder in folders if _can_show(folder, figure)]:
            declared.append((figure, recorded))
    if not steps and not declared:
        return None
    used = [
        folder / SET_FILE
        for folder in (*steps, *(folder for _, folders in declared for folder in folders))
    ]
    sources = [*used, *sorted((PACKAGE / "figures").glob("*.py")), Path(__file__), lab.path]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    kept = words.root / "build/figures" / lab.folder.name / digest[:16]
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Another site may be made of the same checkout meanwhile: each draws in a folder of its own.
        with tempfile.TemporaryDirectory(dir=kept.parents[1]) as folder:
            part = Path(folder) / "part"
            part.mkdir()
            _draw(words, steps, declared, part)
            with contextlib.suppress(OSError):
                part.rename(kept)
        for old in kept.parent.iterdir():
            if old != kept:
                shutil.rmtree(old, ignore_errors=True)
    return kept


def _can_show(folder: Path, figure: FigureOf) -> bool:
    """Is the set recorded, and since the lab has the figure's parameters?"""
    if not (folder / SET_FILE).is_file():
        return False
    return set(figure.parameters()) <= set(read_set(folder).runs[0].result.params)


def _draw(
    words: LabWords, steps: list[Path], declared: Sequence[tuple[FigureOf, list[Path]]], out: Path
) -> None:
    lab, facts = words.lab, {}
    sets: dict[str, list[NamedSet]] = _of_steps(words, steps) if steps else {}
    for figure, folders in declared:
        results = [result for folder in folders for result in results_of(lab, folder)]
        sets[figure.id] = [(figure.id, results)]
    for name, shown in sets.items():
        # The first beside the last is the same figure of two steps.
        kind = "stages" if name == "first-and-last" else name
        rows: list[Row] = []
        facts[name] = write_for_pages(partial(_drawn, lab, kind, shown, rows), out, name)
        (out / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
    if steps and (draw := _spread(words)):
        facts["spread"] = write_for_pages(draw, out, "spread")
    (out / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _drawn(lab: Lab, name: str, sets: list[NamedSet], rows: list[Row]) -> DescribedFigure:
    """Draw a figure, and leave in `rows` those of its first layout."""
    drawn, shown = draw_figure(lab, name, sets)
    rows += [] if rows else shown
    return drawn


def _of_steps(words: LabWords, steps: list[Path]) -> dict[str, list[NamedSet]]:
    """All steps side by side; the first beside the last; and the last in full."""
    # Titles tell what was wrong: pages call a step by the cases that lead to it, where it has some.
    sets: list[NamedSet] = []
    for step in steps:
        cases = step_cases(words.lab, step.name)
        title = after_cases(cases) if cases else read_set(step).title
        sets.append((title, results_of(words.lab, step)))
    return {
        "first-and-last": [sets[0], sets[-1]] if len(sets) > 1 else sets,
        "stages": sets,
        "measured-against-model": sets[-1:],
        "window-against-loss": sets[-1:],
    }


def _spread(words: LabWords) -> Callable[[], DescribedFigure] | None:
    """What chance does to the runs of the last two steps: many have few losses, others many."""
    # matplotlib takes half a second to import, and figures are drawn seldom.
    from measuretwice.figures.spread import spread

    last_two = [words.results_of(step) for step in words.steps[-2:]]
    most = words.model_use.max_loss_ratio
    draw = partial(spread, last_two[0], last_two[-1], most)
    return draw if draw() else None  # type: ignore[return-value]
