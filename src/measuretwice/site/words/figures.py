"""Figures on pages: drawn ones, and those that the reader can change."""

from __future__ import annotations

from measuretwice.lab import step_cases
from measuretwice.site.words import interactive as interactive_figures
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.interactive import StepRuns
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.traces import traces_data


@word('figure("stages", "what it shows, in words")')
def figure(words: LabWords, name: str, alt: str) -> str:
    """A figure of the recorded steps: `stages`, `first-and-last`; of the last step
    `measured-against-model`, `window-against-loss`; of the last two `spread`; and each of the lab's
    `[[figures]]` whose set is recorded."""
    return f"![{alt}](/assets/figures/{words.lab.folder.name}/{name}.svg){{ .figure }}"


@word('interactive("steps")')
def interactive(words: LabWords, name: str) -> Block:
    """The recorded steps as a figure whose steps the reader chooses; `interactive("explorer")`, the
    model with the reader's own numbers; `interactive("traces")`, the flows of the set `signatures` to
    be gone through in time."""
    if name == "traces":
        alt = "Each flow's window over time, and the queue below it"
        data = traces_data(words, words.results_of("signatures"))
        return interactive_figures.element(name, data, figure(words, "signatures", alt))
    picture = figure(words, "stages", "Goodput against the model, one panel for each step")
    return interactive_figures.block(words.lab, words.bounds, _named_steps(words), name, picture)


@word("steps_table()")
def steps_table(words: LabWords) -> Block:
    """Each trial's goodput over the model at each recorded step, as a table."""
    return interactive_figures.steps_table(words.bounds, _named_steps(words))


def _named_steps(words: LabWords) -> list[StepRuns]:
    titles = {recording.id: recording.title for recording in words.lab.file.recordings}
    return [
        StepRuns(titles[name], step_cases(words.lab, name), words.results_of(name))
        for name in words.steps
    ]
