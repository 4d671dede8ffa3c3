"""The meanings of a run's fields, held against the code that writes them and recorded runs."""

import ast
import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from measuretwice.checks import Finding
from measuretwice.lab import Plan, find_labs, load_lab
from measuretwice.measure import fields as catalogue
from measuretwice.measure.flows import Flow
from measuretwice.runs.result import Prediction, Result, Verdict
from measuretwice.site import reference as docs_fields

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/measuretwice"
RUNS = sorted(ROOT.glob("sample-data/*/*/*/DONE"))


def recorded(name: str) -> list[dict[str, Any]]:
    assert RUNS
    return [json.loads((done.parent / name).read_text(encoding="utf-8")) for done in RUNS]


def keys_written(*files: str) -> set[str]:
    """Every literal key of the dicts, of the items set, and of the pairs that are yielded, in source files' functions."""
    written = set()
    for file in files:
        tree = ast.parse((SOURCES / file).read_text(encoding="utf-8"))
        for function in tree.body:
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                keys: list[ast.expr | None] = []
                if isinstance(node, ast.Dict):
                    keys = list(node.keys)
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    keys = [node.slice]
                elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
                    keys = [*node.value.elts[:1]]
                written |= {key.value for key in keys if isinstance(key, ast.Constant)}
    return {key for key in written if isinstance(key, str)}


def names(table: Iterable[Any]) -> list[str]:
    return [field.name for field in table]


def test_everything_that_is_measured_has_a_meaning() -> None:
    assert keys_written("measure/run.py") == set(names(catalogue.ONE_FLOW))
    for result in recorded("result.json"):
        if "flows" not in result:
            assert set(result["measured"]) <= set(names(catalogue.ONE_FLOW))


def test_several_flows() -> None:
    """Each value of a flow has a meaning, of a few flows or of many; and so has what they do together."""
    assert set(names(fields(Flow))) == {*names(catalogue.FLOW), *names(catalogue.FLOW_OF_MANY)}
    assert set(catalogue.OF_NODE) <= set(names(catalogue.FLOW))
    written = keys_written(
        "measure/flows.py", "measure/queue.py", "measure/student_tables.py", "measure/delays.py", "tcp/traces.py",
    )  # fmt: skip
    assert written == {*names(catalogue.FEW_FLOWS), *names(catalogue.MANY_FLOWS)}


def test_what_a_persons_files_have_beside() -> None:
    beside = keys_written("measure/imported/__init__.py") - set(names(catalogue.ONE_FLOW))
    assert beside == set(names(catalogue.IMPORTED))


def test_every_recorded_value_and_every_value_that_a_lab_names_is_in_the_catalogue() -> None:
    for path in ROOT.glob("sample-data/*/*/results.json"):
        for run in json.loads(path.read_text(encoding="utf-8"))["runs"]:
            catalogue.require(run["measured"], str(path))
    for name in find_labs(ROOT):
        file = load_lab(ROOT, name).file
        catalogue.require({expectation.measured for expectation in file.expect} - {"ratio"}, name)


def test_a_name_that_nothing_measures_is_refused() -> None:
    catalogue.require(["goodput_bps", "host_2_goodput_bps", "queue_kind"], "a test")
    with pytest.raises(KeyError, match="goodput_bsp"):
        catalogue.require(["goodput_bps", "goodput_bsp"], "a test")
    with pytest.raises(KeyError, match="host_2_rtt"):
        catalogue.require(["host_2_rtt"], "a test")


def test_members_of_a_family() -> None:
    values = ["host_2_received_flows", "received_flows", "flows", "host_3_received_flows"]
    assert catalogue.members("*_received_flows", values) == {
        "host_2": "host_2_received_flows",
        "host_3": "host_3_received_flows",
    }


def test_result() -> None:
    model = set(docs_fields.MODEL)
    there = [name for name in names(fields(Result)) if name not in ("folder", "findings")]
    assert sorted(there) == sorted(docs_fields.RESULT)
    assert names(fields(Verdict)) == list(docs_fields.EXPECTATION)
    assert names(fields(Prediction)) == list(docs_fields.MODEL)
    for result in recorded("result.json"):
        # What only some results have; which code derived it isn't kept.
        others = {"flows", "case", "edited", "derived_by"} - {*result}
        assert [*result] == [key for key in docs_fields.RESULT if key not in others]
        assert result["model"] is None or set(result["model"]) == model
        for verdict in result["expectations"]:
            assert list(verdict) == list(docs_fields.EXPECTATION)
    assert list(Finding("", "", "", "").to_json()) == list(docs_fields.FINDING)


def test_plan_and_provenance() -> None:
    assert [*names(fields(Plan)), "kernel_seed", "digest"] == list(docs_fields.PLAN)
    for plan in recorded("plan.json"):
        assert list(plan) == [
            key for key in docs_fields.PLAN if key not in ("case", "edited") or key in plan
        ]
    for provenance in recorded("provenance.json"):
        assert list(provenance) == [
            key
            for key in docs_fields.PROVENANCE
            if key not in ("raw_of", "confined") or key in provenance
        ]


def test_recorded_sets() -> None:
    for path in ROOT.glob("sample-data/*/*/results.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert list(document) == list(docs_fields.RECORDED_SET), path.parent.name
        for run in document["runs"]:
            assert set(run) <= {*docs_fields.RESULT, "run", "raw_sha256"}


def test_units() -> None:
    assert catalogue.unit_of("goodput_bps") == "bit/s"
    assert catalogue.unit_of("bytes_acked") == "B"
    assert catalogue.unit_of("virtual_start_ns") == "ns"
    assert catalogue.unit_of("duration_s") == "s"
    assert catalogue.unit_of("flows") == ""
    assert catalogue.unit_of("retransmits") == ""
