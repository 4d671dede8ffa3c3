"""What the reference pages say, taken from the code that does it: commands, lab.toml, checks."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from measuretwice.checks.catalogue import GENERAL_HINTS
from measuretwice.lab import FigureOf, Lab, Pitfall, schema
from measuretwice.site.words.blocks import Block, folded_hints

# What each finding's check looks at. A test holds these against the findings that checks can raise.
LOOKS_AT = {
    "flows": "How many data connections iperf3 names, against how many were meant.",
    "offload": "The largest packet that tcpdump printed on the router, or the mean one in its queue, against MSS and headers.",
    "mtu": "The MSS that ss prints, against the one that was meant and the MTU of the path.",
    "timestamps": "The MSS that ss prints: is it 12 bytes, a timestamp option, too small?",
    "segment-size": "The MSS that ss prints, where neither MTU nor timestamps explain it.",
    "rtt-doubling": "The smallest round-trip time: is it twice the one that was meant?",
    "round-trip-time": "The smallest round-trip time of TCP, or ping's, against the one that was meant.",
    "wrong-socket": "The ports in the lines of ss that were kept, against the port that iperf3 names.",
    "netem-limit": "The room in netem's queue, against what slow start may have under way.",
    "loss-percent": "The router's drops: a hundred times fewer than p makes?",
    "loss-ratio": "The router's drops, against the counts that chance allows for p.",
    "other-drops": "The drops of every other qdisc on the path.",
    "receiver-drops": "What the receiver's kernel dropped from its own out-of-order queue.",
    "queueing": "The mean round-trip time over the smallest, and the share of the link in use.",
    "retransmissions": "The sender's retransmissions, against every drop that is accounted for.",
    "link-rate": "Goodput, against what the link can carry less its headers.",
    "bandwidth": "iperf3's rate, against the bytes that ss says were acknowledged.",
    "path": "The window over the rate, which is a time, against the path's round-trip time.",
    "duration": "How many losses the run had. With n of them p is known to about 1/√n.",
    "model-domain": "Whether the run is held against a model at a p where timeouts rule.",
    "ack-policy": "The constant that was measured, against the one that was claimed.",
    "size-suffix": "The buffer that the qdisc says it has, against the one that was meant.",
    "field-number": "A queue's lengths taken from tc's text, against its JSON over the same time.",
    "units": "A window's trace taken from iperf3's text, against ss: its times, and its sizes.",
    "whose-bdp": "The buffer over each flow's own bandwidth-delay product, against what it is called.",
    "one-run": "Trials that are compared by a value: the interval of the difference of their means.",
    "default-qdisc": "Which qdisc tc prints below the link's rate, or on the sender, against the one that was meant.",
    "no-bottleneck": "Whether the queue that is looked at ever had packets in it.",
    "red-limits": "red's limit, against its max and a burst together.",
    "red-bandwidth": "The unit of idle time that tc gave red, against the one for the link's rate.",
    "wrong-metric": "The share of the link in use, where throughput is to tell disciplines apart.",
    "summary-row": "Whether one of the rows that were averaged spans the others.",
    "copied-cell": "The addresses in iperf3's own files, and whether two trials agree in every value.",
    "small-n": "How many values an arm has, against what the claim that is made of them needs.",
    "wrong-algorithm": "The congestion control that the kernel names, against the one that was meant.",
    "terminated-tcp": "TCP's smallest round-trip time, and cwnd over rate, against ping's.",
    "ten-seconds": "Whether the rate rises through the whole time over which it is averaged.",
    "averages-hide": "The lowest row of a table of rates, against the lowest tenth of a second by ss.",
    "mixed-runs": "The windows in a table, against those of the connection that it is said to be of.",
    "missing-flows": "Flows in the files, against those that were asked for and the n of your own index.",
    "unequal-intervals": "Your own sum of goodputs, against ss over the time in which all flows were there.",
    "standing-queue": "The round-trip time that you put into the model, against the mean of ss's.",
    "halving-counter": "Halvings that you counted from samples, against the kernel's own events.",
    "loss-definition": "Retransmissions against the router's drops, where you call the one a loss.",
    "mislabelled-row": "Your own sum of each algorithm's flows, against what their connections add up to.",
    "fair-share": "A rival's part of the goodput over its part of the flows, where you judge by percent.",
    "cherry-picking": "How often each trial of a set was run, and whether all have the same settings.",
}


# The command line


@dataclass(frozen=True)
class Option:
    names: str
    help: str


@dataclass(frozen=True)
class Command:
    """A command of ./lab: how it is called, what it does, its options. `cli` says it."""

    name: str
    usage: str
    help: str
    options: list[Option]


def cell(text: str) -> str:
    """Text for a cell of a table, on one line."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# lab.toml


@dataclass(frozen=True)
class Key:
    name: str
    type: str
    must: bool


@dataclass(frozen=True)
class Table:
    """A table of lab.toml: the keys that it takes."""

    title: str
    help: str
    keys: list[Key]


def lab_file_tables() -> list[Table]:
    """Return the tables of lab.toml, outermost first, from the models that read it."""
    names = (
        "LabFile About Topology Node Link End Parameter TrialTable InlineTrial Run Step Collect NodeFile "
        "QdiscAt FlowFiles CrowdFiles QueueAt SenderAt ModelUse Checks Expectation Pitfall Stage Again Elsewhere "
        "Factors Recording FigureOf Panel"
    ).split()
    return [_table(getattr(schema, name)) for name in names]


def _table(model: type[BaseModel]) -> Table:
    """A model's keys. Of one with several kinds, those of all kinds; needed is what each needs."""
    kinds = model.__subclasses__() or [model]
    names = dict.fromkeys(name for kind in kinds for name in kind.model_fields)
    keys = []
    for name in names:
        fields = [kind.model_fields.get(name) for kind in kinds]
        types = dict.fromkeys(cell(_type(field.annotation)) for field in fields if field)
        must = all(field is not None and field.is_required() for field in fields)
        keys.append(Key(name, ", ".join(types), must))
    own = model.__dict__.get("__doc__")
    return Table(model.__name__, inspect.cleandoc(own) if own else "", keys)


def _type(annotation: Any) -> str:
    """A type in words of TOML."""
    plain = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if annotation in plain:
        return plain[annotation]
    if annotation is type(None):
        return ""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is list:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return f"table of {_type(inner[1])}"
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if hasattr(annotation, "__metadata__"):
        return _type(inner[0])
    if inner:
        return " or ".join(dict.fromkeys(said for one in inner if (said := _type(one))))
    # All kinds of figures are shown as one table.
    name = (FigureOf if issubclass(annotation, FigureOf) else annotation).__name__
    return f"[{name}](#{name.lower()})"


# Checks


@dataclass(frozen=True)
class CheckEntry:
    """A finding: what is looked at, its hints, and where labs stage it as (title, page)."""

    id: str
    looks_at: str
    hints: Block
    pages: list[tuple[str, str]]


def checks(labs: list[Lab]) -> list[CheckEntry]:
    """Return every finding that the checker can raise."""
    staged: dict[str, list[tuple[Lab, Pitfall]]] = {}
    for lab in labs:
        for pitfall in lab.file.pitfalls:
            staged.setdefault(pitfall.finding, []).append((lab, pitfall))
    found = []
    for name, looks_at in LOOKS_AT.items():
        ladders = [pitfall.hints for _, pitfall in staged.get(name, ())]
        ladder = ladders[0] if ladders else GENERAL_HINTS.get(name)
        pages = [
            (pitfall.title, f"../modules/{lab.folder.name}/{pitfall.id}.md")
            for lab, pitfall in staged.get(name, ())
        ]
        found.append(CheckEntry(name, looks_at, folded_hints(ladder) if ladder else Block(), pages))
    return found
