"""What each flow of a recorded set got over time: kept where a set's raw files aren't, so that a time course can be
looked at without running anything again.

sample-data/NN-<lab>/<set>/acked.csv.xz     a line a flow: `trial`, `seed`, `node`, `local_port`, `remote_port`,
`congestion_control`, and `acked_bytes`: what ss saw acknowledged in each ten seconds since the run's first sample, one number
behind the other. The last, shorter ten seconds are left out.
"""

from __future__ import annotations

import csv
import io
import itertools
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab
from measuretwice.measure.connections import read_connections
from measuretwice.runs.folder import ARCHIVE, raw_folder
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import jains_index

SERIES_FILE = "acked.csv.xz"
STEP_S = 10
HEAD = ("trial", "seed", "node", "local_port", "remote_port", "congestion_control", "acked_bytes")


@dataclass(frozen=True)
class FlowSeries:
    """One flow of one recorded run: `acked_bytes` in each `STEP_S` seconds, from the run's first sample on."""

    trial: int
    seed: int
    node: str
    local_port: int
    remote_port: int
    congestion_control: str
    acked_bytes: tuple[int, ...]


def series_of(lab: Lab, result: Result, raw: Path) -> Iterator[FlowSeries]:
    """Yield the series of each flow of a run whose raw files are in `raw`; none of a lab with a single flow.

    ParseError where its files can't be read.
    """
    files = lab.file.collect.flow_files
    if files is None:
        return
    connections = read_connections(files, raw)
    begin_s = min((c.trace.time_s[0] for c in connections), default=0.0)
    for connection in connections:
        trace = connection.trace
        steps = int((trace.time_s[-1] - begin_s) / STEP_S)
        until = [round(trace.acked_at(begin_s + STEP_S * n)) for n in range(1, steps + 1)]
        yield FlowSeries(
            result.trial,
            result.seed,
            trace.node,
            trace.local_port,
            connection.ends.remote_port,
            connection.last.congestion_control or "unknown",
            tuple(after - before for before, after in itertools.pairwise([0, *until])),
        )


def write_series(folder: Path, series: Sequence[FlowSeries]) -> None:
    """Write a set's series into its folder, in place of what stood there; nothing where there are none."""
    if not series:
        return
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(HEAD)
    for flow in series:
        rows.writerow(
            (*(getattr(flow, name) for name in HEAD[:-1]), " ".join(map(str, flow.acked_bytes)))
        )
    content = lzma.compress(text.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)
    (folder / SERIES_FILE).write_bytes(content)


def read_series(folder: Path) -> list[FlowSeries]:
    """Return the series of a recorded set; UserError where it has none, or the file is damaged."""
    path = folder / SERIES_FILE
    try:
        rows = csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode()))
        return [
            FlowSeries(
                int(row["trial"]),
                int(row["seed"]),
                row["node"],
                int(row["local_port"]),
                int(row["remote_port"]),
                row["congestion_control"],
                tuple(map(int, row["acked_bytes"].split())),
            )
            for row in rows
        ]
    except FileNotFoundError:
        raise UserError(f"{path}: there is none; record the set again with ./lab record") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, lzma.LZMAError) as error:
        raise UserError(f"{path}: is damaged ({error}); take it from git again") from None


def series_of_run(lab: Lab, result: Result) -> list[FlowSeries]:
    """Return what each flow of a run got over time: from its raw files where it has them, else from its recorded set.

    UserError where neither is there.
    """
    folder = result.run_dir
    if (folder / "raw").is_dir() or (folder / ARCHIVE).is_file():
        with raw_folder(folder) as raw:
            return list(series_of(lab, result, raw))
    key = (result.trial, result.seed)
    return [flow for flow in read_series(folder.parent) if (flow.trial, flow.seed) == key]


def jains_over_time(series: Sequence[FlowSeries], steps: int = 1) -> list[tuple[int, float]]:
    """Return Jain's index of flows over time: the seconds since the run's first sample at which a span of `steps` times
    `STEP_S` ends, and the index of what each flow got in it. Spans in which not all flows were there are left out."""
    common = min((len(flow.acked_bytes) for flow in series), default=0)
    begun = max(
        (next((n for n, got in enumerate(flow.acked_bytes) if got), common) for flow in series),
        default=0,
    )
    return [
        (
            STEP_S * end,
            jains_index([float(sum(flow.acked_bytes[end - steps : end])) for flow in series]),
        )
        for end in range(begun + 1 + steps, common + 1, steps)
    ]
