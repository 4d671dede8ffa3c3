"""What a recorded set keeps of each flow over time."""

from dataclasses import replace
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.lab import load_lab
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.recorded import results_of
from measuretwice.runs.series import (
    SERIES_FILE,
    STEP_S,
    FlowSeries,
    jains_over_time,
    read_series,
    series_of,
    write_series,
)

ROOT = Path(__file__).parents[2]


def flow(*acked_bytes: int) -> FlowSeries:
    return FlowSeries(1, 1, "sender-0", 40000, 5201, "reno", acked_bytes)


def test_series_come_back_as_they_were_written(tmp_path: Path) -> None:
    flows = [flow(1, 20, 300), replace(flow(0, 7), seed=2, congestion_control="bbr")]
    write_series(tmp_path, flows)
    assert read_series(tmp_path) == flows


def test_a_set_without_series_says_so_and_a_damaged_one_too(tmp_path: Path) -> None:
    write_series(tmp_path, [])
    with pytest.raises(UserError, match="record the set again"):
        read_series(tmp_path)
    write_series(tmp_path, [flow(1, 2)])
    whole = (tmp_path / SERIES_FILE).read_bytes()
    for damaged in (b"", whole[:40], b"trial,seed\n1,1\n"):
        (tmp_path / SERIES_FILE).write_bytes(damaged)
        with pytest.raises(UserError, match="is damaged"):
            read_series(tmp_path)


def test_jains_index_over_time_begins_when_all_flows_are_there() -> None:
    even, late = flow(90, 50, 50, 50, 50), flow(0, 10, 50, 50, 0)
    assert jains_over_time([even, late]) == [(30, 1.0), (40, 1.0), (50, 0.5)]
    assert jains_over_time([even, late], steps=2) == [(40, 1.0)]
    assert jains_over_time([]) == []
    # One flow that never gets anything: there is no moment to begin at.
    assert jains_over_time([even, flow(0, 0, 0, 0, 0)]) == []


@pytest.mark.parametrize(("lab", "name"), [("scale", "edge-once"), ("buffers", "each-once")])
def test_series_add_up_to_what_a_run_measured(lab: str, name: str) -> None:
    loaded = load_lab(ROOT, lab)
    result = results_of(loaded, ROOT / "sample-data" / loaded.folder.name / name)[0]
    with raw_folder(result.run_dir) as raw:
        flows = [*series_of(loaded, result, raw)]
    assert len(flows) == len(result.flows)
    seconds = STEP_S * len(flows[0].acked_bytes)
    assert seconds == pytest.approx(result.params["duration_s"], abs=2 * STEP_S)
    for series, measured in zip(flows, result.flows, strict=True):
        assert series.local_port == measured.local_port
        whole_bps = 8 * sum(series.acked_bytes) / seconds
        assert whole_bps == pytest.approx(measured.goodput_bps, rel=0.35)
