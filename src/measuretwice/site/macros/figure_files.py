"""Figures of recorded runs: drawn once, kept in build/, and shown with the caption that belongs to them.

Those of a lab, which lab.toml declares or its recorded steps have, and those of what is seen of each case.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.base.paths import PACKAGE
from measuretwice.figures.files import DARK, DESK, PHONE, Facts, draw_figure, write_for_pages
from measuretwice.figures.palette import in_the_dark
from measuretwice.figures.rows import NamedSet, Row, counted_runs, csv_text
from measuretwice.lab import Lab, after_cases, step_cases
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.lab.schema.results import FigureOf
from measuretwice.measure.over_time import OverTime
from measuretwice.runs.recorded import SET_FILE, read_set
from measuretwice.site.build_cache import digest_of, made_once
from measuretwice.site.macros import LabContext, macro
from measuretwice.site.macros.blocks import CAPTION, Block
from measuretwice.site.macros.lab import steps
from measuretwice.view.over_time import read_over_time

if TYPE_CHECKING:
    from measuretwice.figures.style import DescribedFigure

# Beside the pictures: what each is called or shows, its sizes; and captions of a case's, by stage.
FACTS = "figures.json"
CAPTIONS = "captions"
# A figure's pictures by layout and scheme, as they are named: the page's style shows the one that fits.
VARIANTS = {
    DESK: ".light .desk",
    DESK + DARK: ".dark .desk",
    PHONE: ".light .phone",
    PHONE + DARK: ".dark .phone",
}
# How a symptom's picture is named and headed: of the first try alone, or of that beside the run after it.
FIRST, BEFORE, AFTER = "first", "before", "after"
HEADINGS = {FIRST: "", BEFORE: "First try", AFTER: "After the change"}
# What a symptom's pictures follow from, besides recorded runs.
SYMPTOM_CODE = (
    *sorted((PACKAGE / "figures").glob("symptom*.py")),
    PACKAGE / "figures/style.py",
    PACKAGE / "figures/palette.py",
    PACKAGE / "figures/by_setting.py",
    PACKAGE / "measure/raw.py",
    PACKAGE / "view/over_time.py",
    PACKAGE / "measure/over_time.py",
    Path(__file__),
)


def figure(context: LabContext, name: str, alt: str, *, bare: bool = False) -> Block:
    """Return a figure of the recorded steps: `stages`, `first-and-last`; of the last step
    `measured-against-model`, `window-against-loss`; of the last two `spread`; and each of the lab's
    `[[figures]]` whose set is recorded. Below it its number on the page, its title, how many runs, and
    what its bars mean; without these where it is `bare=True`."""
    folder = drawn_figures(context)
    facts = read_object(folder / FACTS).get(name) if folder else None
    if facts is None:
        raise UserError(
            f"figure({name!r}): nothing that is recorded of {context.lab.name} is drawn so"
        )
    lab = context.lab.folder.name
    pictures = [
        picture(
            lab, f"{name}{variant}.svg", alt, facts["sizes"][variant.removesuffix(DARK)], classes
        )
        for variant, classes in VARIANTS.items()
    ]
    if bare:
        return Block("\n".join([*pictures, "{ .drawn }"]) + "\n")
    caption = (facts["caption"][:1].upper() + facts["caption"][1:]).rstrip(".")
    data = "" if name == "spread" else f" [Data](/assets/figures/{lab}/{name}.csv)."
    return Block(captioned(pictures, f"{facts['title']}. {caption}.{data}"))


@macro('symptom("mtu")')
def symptom(context: LabContext, name: str, stage: str = "broken") -> Block:
    """The figure of what is seen of a case's first try; `symptom("mtu", "fixed")`, that beside the run
    after the change, on the same axes. Its caption says of how many runs it is."""
    case = context.lab.pitfall(name)
    facts = read_object(symptom_pictures(context, case) / FACTS)
    lab = context.lab.folder.name
    pictures = [
        picture(lab, f"{file}{variant}.svg", facts[file]["alt"], facts[file]["size"], classes)
        for panel in range(len(case.figure))
        for kind in ((FIRST,) if stage == "broken" else (BEFORE, AFTER))
        if (file := _symptom_file(context, case, panel, kind)) in facts
        for variant, classes in (("", ".light"), (DARK, ".dark"))
    ]
    return Block(captioned(pictures, facts[CAPTIONS][stage], ".symptom") if pictures else "")


def picture(lab: str, file: str, alt: str, size: Sequence[int], classes: str) -> str:
    """Return a picture as Markdown, with the room that it takes."""
    width, height = size
    attributes = f'.figure {classes} width="{width}" height="{height}" loading="lazy"'
    return f"![{html.escape(alt)}](/assets/figures/{lab}/{file}){{ {attributes} }}"


def captioned(pictures: Sequence[str], caption: str, classes: str = "") -> str:
    """Return pictures with their caption as Markdown that may stand indented; the page numbers it."""
    lines = [
        *pictures,
        f'<span class="figcaption">{CAPTION} {caption}</span>',
        f'{{ .drawn {classes} role="figure" aria-label="Figure 0" }}\n',
    ]
    return "\n".join(lines)


def drawn_figures(context: LabContext) -> Path | None:
    """Return the folder with a lab's figures, drawn where those that are kept are of other runs; None for a lab without."""
    lab, sets = context.lab, context.sets
    step_names = sorted(steps(context))
    declared = [
        (figure, recorded)
        for figure in lab.file.figures
        if (recorded := [name for name in figure.sets if _can_show(context, name, figure)])
    ]
    if not step_names and not declared:
        return None
    names = [*step_names, *(name for _, recorded in declared for name in recorded)]
    digest = digest_of(
        *(sets.set_folder(name) / SET_FILE for name in names),
        *sorted((PACKAGE / "figures").glob("*.py")),
        Path(__file__),
        lab.path,
    )
    folder = context.root / "build/figures" / lab.folder.name / digest
    return made_once(folder, partial(_draw_figures, context, step_names, declared))


def _can_show(context: LabContext, name: str, figure: FigureOf) -> bool:
    """Whether a set is recorded, and since the lab has the figure's parameters."""
    if not context.sets.is_recorded(name):
        return False
    params = read_set(context.sets.set_folder(name)).runs[0].result.params
    return set(figure.parameters()) <= set(params)


def _draw_figures(
    context: LabContext,
    step_names: Sequence[str],
    declared: Sequence[tuple[FigureOf, list[str]]],
    out: Path,
) -> None:
    facts: Facts = {}
    shown = _shown_steps(context, step_names) if step_names else {}
    for figure, names in declared:
        shown[figure.id] = [(figure.id, [run for name in names for run in context.sets.runs(name)])]
    for name, sets in shown.items():
        # The first beside the last is the same figure of two steps.
        kind = "stages" if name == "first-and-last" else name
        rows: list[Row] = []
        facts[name] = write_for_pages(partial(_draw, context.lab, kind, sets, rows), out, name)
        (out / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
    if step_names and (draw := _spread(context)):
        facts["spread"] = write_for_pages(draw, out, "spread")
    (out / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _draw(lab: Lab, name: str, sets: list[NamedSet], rows: list[Row]) -> DescribedFigure:
    """Draw a figure, and leave in `rows` those of its first layout."""
    drawn, of_layout = draw_figure(lab, name, sets)
    rows += [] if rows else of_layout
    return drawn


def _shown_steps(context: LabContext, names: Sequence[str]) -> dict[str, list[NamedSet]]:
    """All steps side by side; the first beside the last; and the last in full."""
    # Titles tell what was wrong: pages call a step by the cases that lead to it, where it has some.
    sets: list[NamedSet] = []
    for name in names:
        cases = step_cases(context.lab, name)
        title = after_cases(cases) if cases else read_set(context.sets.set_folder(name)).title
        sets.append((title, context.sets.runs(name)))
    return {
        "first-and-last": [sets[0], sets[-1]] if len(sets) > 1 else sets,
        "stages": sets,
        "measured-against-model": sets[-1:],
        "window-against-loss": sets[-1:],
    }


def _spread(context: LabContext) -> Callable[[], DescribedFigure] | None:
    """What chance does to the runs of the last two steps: many have few losses, others many."""
    # matplotlib takes half a second to import, and figures are drawn seldom.
    from measuretwice.figures.against_model import spread

    last_two = [context.sets.runs(name) for name in steps(context)[-2:]]
    draw = partial(spread, last_two[0], last_two[-1], context.model_use.max_loss_ratio)
    return draw if draw() else None  # type: ignore[return-value]


def symptom_pictures(context: LabContext, case: Pitfall) -> Path:
    """Return the folder with a case's pictures, drawn where those that are kept are of other runs.

    UserError where a run hasn't what a panel shows.
    """
    names = [f"{case.id}-broken", f"{case.id}-fixed", *steps(context)[-1:]]
    recorded = [name for name in names if context.sets.is_recorded(name)]
    digest = digest_of(
        *SYMPTOM_CODE,
        repr(case.figure).encode(),
        *(context.sets.set_folder(name) / SET_FILE for name in recorded),
    )
    number = f"{context.lab.case_number(case):02d}"
    folder = context.root / "build/symptoms" / context.lab.folder.name / f"{number}-{digest}"
    return made_once(folder, partial(_draw_symptom, context, case), replaces=f"{number}-*")


def _draw_symptom(context: LabContext, case: Pitfall, out: Path) -> None:
    # matplotlib takes half a second to import, and figures are drawn seldom.
    from measuretwice.figures.style import size_of, svg_text
    from measuretwice.figures.symptoms import Stage, draw_stages

    @cache
    def over_time(run: Path) -> OverTime:
        return read_over_time(context.root, run, None)

    recorded = {
        stage: context.sets.runs(f"{case.id}-{stage}")
        for stage in ("broken", "fixed")
        if context.sets.is_recorded(f"{case.id}-{stage}")
    }
    last_step = [run for name in steps(context)[-1:] for run in context.sets.runs(name)]
    beside = [run for run in last_step if run.comparable]
    facts: Facts = {}
    same_axes = True
    for number, panel in enumerate(case.figure if "broken" in recorded else ()):
        shown: list[tuple[tuple[str, ...], list[Stage]]] = [
            ((FIRST,), [Stage("", recorded["broken"], beside)])
        ]
        if "fixed" in recorded:
            pair = zip((BEFORE, AFTER), recorded.values(), strict=True)
            stages = [Stage(HEADINGS[kind], runs, beside, kind == AFTER) for kind, runs in pair]
            shown.append(((BEFORE, AFTER), stages))
        for kinds, stages in shown:
            figures = draw_stages(context.lab, panel, stages, over_time)
            if len(figures) > 1 and len({figure.description for figure in figures}) == 1:
                # What was fixed is what was made of it: twice the same picture shows nothing.
                continue
            same_axes &= len({figure.axes[0].get_xlim() for figure in figures}) == 1
            for kind, figure in zip(kinds, figures, strict=True):
                file, text = _symptom_file(context, case, number, kind), svg_text(figure)
                (out / f"{file}.svg").write_text(text, encoding="utf-8")
                (out / f"{file}{DARK}.svg").write_text(in_the_dark(text), encoding="utf-8")
                heading = f"{HEADINGS[kind]}: " if HEADINGS[kind] else ""
                facts[file] = {"alt": heading + figure.description, "size": size_of(figure)}
    counts = [len(runs) for runs in recorded.values()]
    before, after = (counted_runs(part or [0]) for part in (counts[:1], counts[1:]))
    facts[CAPTIONS] = {
        "broken": f"What was measured at the first try, {before}",
        "fixed": (
            f"First try and after the change, {before} each"
            if before == after
            else f"First try, {before}, and after the change, {after}"
        )
        + (", on the same axes" if same_axes else "; their horizontal axes differ"),
    }
    (out / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _symptom_file(context: LabContext, case: Pitfall, panel: int, kind: str) -> str:
    return f"case-{context.lab.case_number(case):02d}-{panel + 1}-{kind}"
