"""Any run over time: windows, round-trip times, the queue, losses, as lists ready to be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Value
from measuretwice.measure.connections import Trace, traces_by_port
from measuretwice.measure.imported import busiest_port
from measuretwice.measure.over_time import OverTime, add_ping, add_queue, add_trace
from measuretwice.measure.queue import Queue, queue_of
from measuretwice.parse import ParseError, parse_ping
from measuretwice.view.documents import called, lab_of, listed_of, settings_of
from measuretwice.view.programs import data_ports, is_sampled, samples_of
from measuretwice.view.source import RawFile, Source, opened, printable
from measuretwice.view.words import word_of

# More lines than that in a panel can't be told apart.
MOST_FLOWS = 3
MOST_QUEUES = 2


def read_over_time(root: Path, target: Path, node: str | None) -> OverTime:
    """Return what a run's raw files say over time, of all nodes or of one's connections.

    UserError where nothing in it was sampled over time.
    """
    with opened(target) as source:
        source.of_node(node)
        traces, notes = _traces(source, node)
        lab = lab_of(root, source.plan)
        queues = list(_queues(source, lab))
        if not traces and not queues:
            raise UserError(
                f"{target}: nothing in it was sampled over time: no connection in ss's output with "
                "lines '# t=SECONDS', and no queue so"
            )
        settings, strange = settings_of(root, source)
        notes += strange
        subtitle = _subtitle(lab, source.plan, settings)
        listed = listed_of(root, lab, source) or set()
        names = (
            {name: called(lab, name) for name in lab.file.parameters if name in listed}
            if lab
            else {}
        )
        run = OverTime(printable(source.title), settings, subtitle, called=names, notes=notes)
        times = [trace.time_s for trace in traces] or [queue.time_s for _, queue in queues]
        start_s, end_s = min(moments[0] for moments in times), max(moments[-1] for moments in times)
        several = len({trace.node for trace in traces}) < len(traces)
        for trace in traces:
            node_name = printable(trace.node)
            port = f"port {trace.local_port}"
            label = f"{node_name} {port}".strip() if several or not node_name else node_name
            add_trace(run, trace, label, start_s)
        for name, queue in queues:
            add_queue(run, name, queue, start_s, end_s)
        for file in source.files:
            if any(file.node == trace.node for trace in traces):
                _add_ping(run, file, start_s, end_s)
    if not queues:
        run.notes.append("no queue was sampled")
    return run


def _subtitle(lab: Lab | None, plan: dict[str, Any], settings: dict[str, Value]) -> str:
    """A run's trial with its values, as ./lab run prints it; empty where the plan isn't the lab's."""
    try:
        title = lab.trials[plan["trial"]].title_with(settings) if lab else ""
        return printable(lab.listed_title(title)) if lab else ""
    except (KeyError, TypeError):
        return ""


def _traces(source: Source, node: str | None) -> tuple[list[Trace], list[str]]:
    """The first connections with data, a node after the other; and how many more there are."""
    traces: list[Trace] = []
    count = 0
    for file in _logs(source, node):
        ports = [port for named in data_ports(file.node, source.files).values() for port in named]
        count += len(ports) or 1
        if len(traces) >= MOST_FLOWS:
            continue
        try:
            traces += _traces_of(file, ports)[: MOST_FLOWS - len(traces)]
        except ParseError as error:
            raise UserError(str(error)) from None
    notes = [f"the first {len(traces)} of {count} connections"] if count > len(traces) > 0 else []
    return traces, notes


def _logs(source: Source, node: str | None) -> Iterator[RawFile]:
    """Each node's largest file of ss in which samples have their times."""
    largest: dict[str, RawFile] = {}
    for file in source.files:
        word = word_of(file, source)
        if not word or word.name != "ss" or node not in (None, file.node):
            continue
        before = largest.get(file.node)
        if (before is None or before.size_bytes < file.size_bytes) and is_sampled(file.read()):
            largest[file.node] = file
    yield from largest.values()


def _traces_of(file: RawFile, ports: Sequence[int]) -> list[Trace]:
    """The traces of some ports of a file; where none of these is in it, of the port that sent most."""
    text = file.read()
    wanted = list(ports)[:MOST_FLOWS]
    if wanted:
        by_port = traces_by_port(file.node, samples_of(text, file.name, wanted), wanted)
        if by_port:
            return [by_port[port] for port in sorted(by_port)]
    samples = samples_of(text, file.name)
    return list(traces_by_port(file.node, samples, busiest_port(samples)).values())


def _queues(source: Source, lab: Lab | None) -> Iterator[tuple[str, Queue]]:
    """The sampled queues: of each the qdisc that its lab means, else the innermost."""
    place = lab.file.collect.queue if lab else None
    count = 0
    for file in source.files:
        word = word_of(file, source)
        if not word or word.name != "queue" or count >= MOST_QUEUES:
            continue
        kind = place.kind if place and place.file == file.base else None
        try:
            queue = queue_of(file.read(), file.name, kind, allow_truncated_tail=True)
        except ParseError as error:
            raise UserError(str(error)) from None
        count += 1
        yield printable(f"{file.node} {queue.kind}".strip()), queue


def _add_ping(run: OverTime, file: RawFile, start_s: float, end_s: float) -> None:
    if not file.base.startswith("ping") or not file.base.endswith(".txt"):
        return
    try:
        ping = parse_ping(file.read(), file.name)
    except (ParseError, UserError) as error:
        run.notes.append(str(error))
        return
    label = printable(f"{file.node}, {file.base.removesuffix('.txt')}".removeprefix(", "))
    add_ping(run, label, ping, start_s, end_s)
