"""What a lab is: its trials and parameters, its machines, its questions, how it is marked."""

from __future__ import annotations

from typing import Any

from measuretwice.backends.ssh_nodes import node_list_text
from measuretwice.grading.rubric import Rubric, read_rubric
from measuretwice.lab.schema.file import About
from measuretwice.lab.schema.parameters import Parameter
from measuretwice.report.markdown import fence
from measuretwice.runs.result import goodput_means
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords
from measuretwice.testbeds import Layout, layout_of


@word("name", fact=True)
def name(words: LabWords) -> str:
    """The lab's name, as `./lab run` takes it."""
    return words.lab.name


@word("folder", fact=True)
def folder(words: LabWords) -> str:
    """Its folder's name in labs/, sample-data/ and docs/modules/: `01-mathis`."""
    return words.lab.folder.name


@word("about", fact=True)
def about(words: LabWords) -> About:
    """What lab.toml says of the lab: `.title`, `.minutes`, `.needs`, `.objectives`, `.source`."""
    return words.lab.file.lab


@word("parameters", fact=True)
def parameters(words: LabWords) -> dict[str, Parameter]:
    """Its parameters by name, as lab.toml has them: `.default`, `.min`, `.max`, `.choices`,
    `.help`."""
    return dict(words.lab.file.parameters)


@word("trial(7)")
def trial(words: LabWords, number: int) -> dict[str, Any]:
    """A trial's parameters, as `.rtt_ms`, and its `.number`, `.title`."""
    params = words.sets.trial(number)
    return {**params, "number": number, "title": words.lab.trials[number].title}


@word("trials", fact=True)
def trials(words: LabWords) -> list[dict[str, Any]]:
    """All of them, in order."""
    return [trial(words, number) for number in words.lab.trials]


@word("hours", fact=True)
def hours(words: LabWords) -> float:
    """How long all its trials measure, one after the other, in hours of a real clock."""
    lab = words.lab
    defaults = lab.defaults()
    trials = [row.set for row in lab.trials.values()]
    params = [{**defaults, **lab.presets({**defaults, **row}), **row} for row in trials]
    return sum(float(values["duration_s"]) for values in params) / 3600


@word("goodput", fact=True)
def goodput(words: LabWords) -> str:
    """What the lab's tables, `./lab run` and reports call goodput: over which time, by whose count."""
    lab = words.lab
    return goodput_means(lab, {**lab.defaults(), **next(iter(lab.trials.values())).set})


@word("layout", fact=True)
def layout(words: LabWords) -> Layout:
    """What a testbed builds for the lab: `.machines`, `.networks`, `.interfaces`,
    `.most_interfaces`, `.cores`, `.memory_gb`, `.disk_gb`."""
    return layout_of(words.lab)


@word("node_list", fact=True)
def node_list(words: LabWords) -> Block:
    """A `nodes.toml` for the lab as an example, with names of machines that nobody has."""
    names = [machine.name for machine in layout(words).machines]
    destinations = {machine: f"you@{machine}.example.org" for machine in names}
    text = node_list_text(destinations, f"{words.lab.name}: where each node is")
    return Block(fence(text, 'toml title="nodes.toml"'))


@word("runs_here", fact=True)
def runs_here(words: LabWords) -> bool:
    """Whether the site has the browser's machine, so that its pages make runs themselves."""
    return words.runs_here


@word("rubric", fact=True)
def rubric(words: LabWords) -> Rubric | None:
    """How the report is marked: `.criteria`, `.ladder`, `.points`; none where the lab has no
    rubric. Its CSV is at `/assets/rubrics/NN-<lab>.csv`."""
    return read_rubric(words.lab)
