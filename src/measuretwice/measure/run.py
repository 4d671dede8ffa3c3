"""From a run's raw files to its measured values. Reads files only: never the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from measuretwice.lab import Lab, Value
from measuretwice.measure import fields
from measuretwice.measure.flows import Flow, read_flows
from measuretwice.measure.one_flow import read_one_flow
from measuretwice.measure.values import Measured


def measure(lab: Lab, raw: Path, params: Mapping[str, Value]) -> tuple[Measured, list[Flow]]:
    """Return the measured values of the run whose nodes' files stand under `raw`/<node>/, and its
    flows where the lab has several.

    ParseError names the file and place that can't be read; OSError a file that is missing.
    """
    measured = read_one_flow(lab.file.collect, raw)
    flows, together = read_flows(lab, raw, params)
    measured |= together
    fields.require(measured, lab.name)
    return measured, flows
