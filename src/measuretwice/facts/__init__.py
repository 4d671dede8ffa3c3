"""Facts: what a lab's recorded runs say, computed once and by name; pages and notebooks quote them.

Each lab has a module `facts` beside its lab.toml, facts.py or a folder, with a function `facts(sets)`, which takes the
lab's RecordedSets and returns Facts. `./lab record` writes them to sample-data/NN-<lab>/facts.json.
"""

from measuretwice.facts.columns import (
    cell,
    column,
    mean,
    measured,
    param,
    runs_as_columns,
    runs_as_rows,
)
from measuretwice.facts.computed import compute, facts_file, read_facts, write_facts
from measuretwice.facts.judging import judge
from measuretwice.facts.sets import RecordedSets
from measuretwice.facts.values import (
    Excerpt,
    Fact,
    Facts,
    Interval,
    Judgement,
    Number,
    Numbers,
    Probability,
    Table,
    excerpt,
    mbit,
    ms,
    percent,
    seconds,
    table,
    whole,
)

__all__ = [
    "Excerpt",
    "Fact",
    "Facts",
    "Interval",
    "Judgement",
    "Number",
    "Numbers",
    "Probability",
    "RecordedSets",
    "Table",
    "cell",
    "column",
    "compute",
    "excerpt",
    "facts_file",
    "judge",
    "mbit",
    "mean",
    "measured",
    "ms",
    "param",
    "percent",
    "read_facts",
    "runs_as_columns",
    "runs_as_rows",
    "seconds",
    "table",
    "whole",
    "write_facts",
]
