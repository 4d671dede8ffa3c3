"""The meanings of a run's fields, held against the code that writes them and recorded runs."""

import ast
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from measuretwice.checks.finding import Finding
from measuretwice.lab import Plan
from measuretwice.measure import fields as docs_fields
from measuretwice.measure.flows import Flow
from measuretwice.measure.many_flows import CrowdFlow
from measuretwice.runs.result import Prediction, Result, Verdict

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/measuretwice"
RUNS = sorted(ROOT.glob("sample-data/*/*/*/DONE"))


def recorded(name: str) -> list[dict[str, Any]]:
    assert RUNS
    return [json.loads((done.parent / name).read_text(encoding="utf-8")) for done in RUNS]


def keys_written(file: str, *, outside: tuple[str, ...] = ()) -> set[str]:
    """Every literal key of the dicts, and of the items set, in a source file's functions."""
    tree = ast.parse((SOURCES / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found = set()
    for function in functions:
        if function.name in outside:
            continue
        for node in ast.walk(function):
            keys: list[ast.expr | None] = []
            if isinstance(node, ast.Dict):
                keys = list(node.keys)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                keys = [node.slice]
            found |= {k.value for k in keys if isinstance(k, ast.Constant)}
    return {key for key in found if isinstance(key, str)}


def test_everything_that_is_measured_has_a_meaning() -> None:
    assert keys_written("measure/one_flow.py") == set(docs_fields.MEASURED)
    for result in recorded("result.json"):
        if "flows" not in result:
            assert set(result["measured"]) <= set(docs_fields.MEASURED)


def test_many_flows() -> None:
    assert [one.name for one in fields(Flow)] == list(docs_fields.FLOW)
    alone = ("traces", "queue", "_flow", "_queue")
    written = keys_written("measure/flows.py", outside=alone) | keys_written(
        "measure/facts.py", outside=()
    )
    written |= keys_written("tcp/steady_state.py", outside=())
    assert written == set(docs_fields.TOGETHER)


def test_a_crowd_of_flows() -> None:
    assert [one.name for one in fields(CrowdFlow)] == list(docs_fields.CROWD_FLOW)
    assert keys_written("measure/many_flows.py") == set(docs_fields.CROWD)


def test_result() -> None:
    model = set(docs_fields.MODEL)
    there = [one.name for one in fields(Result) if one.name != "folder"]
    assert sorted(there) == sorted(docs_fields.RESULT)
    assert [one.name for one in fields(Verdict)] == list(docs_fields.EXPECTATION)
    assert [one.name for one in fields(Prediction)] == list(docs_fields.MODEL)
    for result in recorded("result.json"):
        wanted = [key for key in docs_fields.RESULT if key != "flows" or key in result]
        assert [*result, "derived_by"] == wanted
        assert result["model"] is None or set(result["model"]) == model
        for one in result["expectations"]:
            assert list(one) == list(docs_fields.EXPECTATION)
        for one in result["findings"]:
            assert list(one) == list(docs_fields.FINDING)
    assert [field.name for field in fields(Finding)] == list(docs_fields.FINDING)


def test_plan_and_provenance() -> None:
    assert [*(one.name for one in fields(Plan)), "kernel_seed", "digest"] == list(docs_fields.PLAN)
    for plan in recorded("plan.json"):
        assert list(plan) == list(docs_fields.PLAN)
    for provenance in recorded("provenance.json"):
        assert list(provenance) == list(docs_fields.PROVENANCE)


def test_recorded_sets() -> None:
    for path in ROOT.glob("sample-data/*/*/results.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert list(document) == list(docs_fields.RECORDED_SET), path.parent.name
        for run in document["runs"]:
            assert set(run) <= {*docs_fields.RESULT, "run", "raw_sha256"}


def test_units() -> None:
    assert docs_fields.unit_of("goodput_bps") == "bit/s"
    assert docs_fields.unit_of("bytes_acked") == "B"
    assert docs_fields.unit_of("virtual_start_ns") == "ns"
    assert docs_fields.unit_of("duration_s") == "s"
    assert docs_fields.unit_of("flows") == ""
    assert docs_fields.unit_of("retransmits") == ""
