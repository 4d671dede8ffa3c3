"""Figures on pages: drawn ones, and those that the reader can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.figures.files import DARK
from measuretwice.lab import step_cases
from measuretwice.site.words import interactive as interactive_figures
from measuretwice.site.words import moving
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.drawn import VARIANTS, captioned, facts_of, picture, sentence
from measuretwice.site.words.interactive import StepRuns
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords


@word('figure("stages", "what it shows, in words")')
def figure(words: LabWords, name: str, alt: str, *, bare: bool = False) -> Block:
    """A figure of the recorded steps: `stages`, `first-and-last`; of the last step
    `measured-against-model`, `window-against-loss`; of the last two `spread`; and each of the lab's
    `[[figures]]` whose set is recorded. Below it its number on the page, its title, how many runs, and
    what its bars mean; without these where it is `bare=True`."""
    facts = facts_of(words, name)
    if facts is None:
        raise UserError(
            f"figure({name!r}): nothing that is recorded of {words.lab.name} is drawn so"
        )
    lab = words.lab.folder.name
    pictures = [
        picture(
            lab, f"{name}{variant}.svg", alt, facts["sizes"][variant.removesuffix(DARK)], classes
        )
        for variant, classes in VARIANTS.items()
    ]
    if bare:
        return Block("\n".join([*pictures, "{ .drawn }"]) + "\n")
    data = "" if name == "spread" else f" [Data](/assets/figures/{lab}/{name}.csv)."
    return Block(captioned(pictures, f"{facts['title']}. {sentence(facts['caption'])}.{data}"))


@word('interactive("steps")')
def interactive(words: LabWords, name: str, steps: Sequence[Mapping[str, Any]] = ()) -> Block:
    """The recorded steps as a figure whose steps the reader chooses; `interactive("explorer")`, the
    model with the reader's own numbers. `interactive("traces", story)`, the flows of the set `signatures` on
    one clock; `interactive("packets", story)`, the sets `packets-...` packet by packet; `interactive("edges", story)`, the
    facts `edges` and `arrivals` by the speed of the hosts' cables. The page's front matter tells the `story`: of each
    step `ask`, `do`, `seen`, and what it sets."""
    if name == "traces":
        alt = "Each flow's window over time, and the queue below it"
        data = moving.traces_figure(words, steps)
        return interactive_figures.element(name, data, figure(words, "signatures", alt, bare=True))
    if name == "packets":
        return interactive_figures.element(name, *moving.packets_figure(words, steps))
    if name == "edges":
        return interactive_figures.element(name, *moving.edges_figure(words, steps))
    alt = "Goodput against the model, one panel for each step"
    drawn = figure(words, "stages", alt, bare=True)
    return interactive_figures.block(words.lab, words.model_use, _named_steps(words), name, drawn)


@word("steps_table()")
def steps_table(words: LabWords) -> Block:
    """Each trial's goodput over the model at each recorded step, as a table."""
    return interactive_figures.steps_table(words.model_use, _named_steps(words))


def _named_steps(words: LabWords) -> list[StepRuns]:
    titles = {recording.id: recording.title for recording in words.lab.file.recordings}
    return [
        StepRuns(titles[name], step_cases(words.lab, name), words.results_of(name))
        for name in words.steps
    ]
