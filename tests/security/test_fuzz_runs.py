"""What stands beside a run's raw files: result.json, provenance.json, a recorded set's results.json, a first try's steps."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile import LABS, ROOT, Hostile, amounts, explore, files, watched
from hostile_runs import lay_out, run_files, signed

from measuretwice.base.errors import UserError
from measuretwice.grading.evidence import find_agreement
from measuretwice.grading.submission import Agreement
from measuretwice.lab import load_lab
from measuretwice.runs.first_try_history import (
    STEPS,
    Try,
    outcome_of,
    read_tries,
    results_of_try,
    so_far,
    with_try,
)
from measuretwice.runs.folder import PLAN, PROVENANCE, RESULT
from measuretwice.runs.recorded import RecordedSet, read_set, results_of
from measuretwice.runs.remeasure import RunData, read_run
from measuretwice.runs.result import Result, from_json, read_result
from measuretwice.view.source import opened


@cache
def results() -> dict[str, bytes]:
    return {lab: run_files(lab)[RESULT] for lab in LABS}


@amounts
def test_a_result_is_one_or_refused(amount: str, tmp_path: Path) -> None:
    labs = {name: load_lab(ROOT, name) for name in LABS}
    run = lay_out({"DONE": b""}, tmp_path / "run")

    def check(hostile: Hostile) -> None:
        (run / RESULT).write_bytes(hostile.content)
        lab = labs.get(hostile.name, labs["mathis"])
        with watched(tmp_path, UserError):
            result = read_result(run, lab)
            assert isinstance(result, Result)
            assert result.folder == run
            assert result.lab == lab.name
            assert result.trial in lab.trials
            assert set(result.params) <= set(lab.file.parameters)
            json.dumps(result.to_json()).encode()
            assert isinstance(result.values, dict)
            hash(result.member.seed)

    explore(
        amount,
        files(results()),
        check,
        few=40,
        known=[Hostile(b"[" * 100_000), Hostile(b'{"params": {"rtt_ms": 1' + b"0" * 400 + b"}}")],
    )


@cache
def pages_pydantic() -> Any:
    """What stands in for pydantic in a page."""
    path = ROOT / "src" / "measuretwice" / "in_page" / "shims" / "pydantic.py"
    spec = importlib.util.spec_from_file_location("pages_pydantic", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


def from_json_in_a_page(document: object) -> object:
    if not isinstance(document, dict):
        raise ValueError("no object")
    return pages_pydantic().TypeAdapter(Result).validate_python({"folder": None, **document})


@amounts
@pytest.mark.parametrize("read", [from_json, from_json_in_a_page])
def test_what_is_no_result_is_a_value_error(
    amount: str, read: Callable[[Any], object], tmp_path: Path
) -> None:
    """As pages and recorded sets have them: a document that was read already."""

    def check(hostile: Hostile) -> None:
        try:
            document = json.loads(hostile.content)
        except (ValueError, RecursionError):
            return
        with watched(tmp_path), contextlib.suppress(ValueError):
            assert isinstance(read(document), Result)

    huge = json.loads(results()["mathis"])
    huge["ratio"] = huge["model"]["bandwidth_bps"] = 10**400
    explore(amount, files(results()), check, known=[Hostile(json.dumps(huge).encode())])


@amounts
@pytest.mark.parametrize("name", [PLAN, PROVENANCE, RESULT, "experiment.sh"])
def test_a_run_is_read_whole_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    """As `./lab report`, `check`, `show` and grading do, whatever one of its files holds."""
    whole = run_files()
    run = lay_out(whole, tmp_path / "trial-07-seed1-b402df08")

    def check(hostile: Hostile) -> None:
        (run / name).write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            data = read_run(ROOT, run, run.name)
            assert isinstance(data, RunData)
            agreement = find_agreement(data, run)
            assert isinstance(agreement, Agreement)
            assert all(type(seed) is int for seed in agreement.seeds.values())
        with watched(tmp_path, UserError), opened(run) as source:
            assert source.title.isprintable() or name == PLAN
            assert source.nodes == ["juliet", "romeo", "router"]

    explore(amount, files({name: whole[name]}, finish=signed), check, many=400)


@cache
def sets() -> dict[str, bytes]:
    """The smallest recorded set of each lab, with three of its runs."""
    found: dict[str, bytes] = {}
    for lab in LABS:
        paths = (ROOT / "sample-data").glob(f"[0-9]*-{lab}/*/results.json")
        document = json.loads(min(paths, key=lambda path: path.stat().st_size).read_bytes())
        found[lab] = json.dumps({**document, "runs": document["runs"][:3]}).encode()
    return found


@amounts
def test_a_recorded_set_is_one_or_refused(amount: str, tmp_path: Path) -> None:
    labs = {name: load_lab(ROOT, name) for name in LABS}

    def check(hostile: Hostile) -> None:
        (tmp_path / "results.json").write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            found = read_set(tmp_path)
            assert isinstance(found, RecordedSet)
            assert all(Path(run.name).name == run.name for run in found.runs)
        with watched(tmp_path, UserError):
            results = results_of(labs.get(hostile.name, labs["mathis"]), tmp_path)
            assert all(isinstance(result, Result) for result in results)
            assert all(result.run_dir.parent == tmp_path for result in results)

    lacking = json.loads(sets()["calibrate"])
    del lacking["runs"][0]["params"]["rtt_ms"]
    known = [Hostile(b"[" * 100_000), Hostile(json.dumps(lacking).encode(), "calibrate")]
    explore(amount, files(sets()), check, few=40, known=known)


@cache
def tries() -> dict[str, bytes]:
    first = {
        "cases": [], "seed": 7, "runs": ["case-01-trial-05-seed7-01234567"], "brief": "0 of 1", "supports": False,
        "predicted": "about 5",
    }  # fmt: skip
    second = {**first, "cases": [1, 2], "runs": ["trial-05-seed7-01234567", "trial-06-seed7-1"]}
    return {"steps.json": json.dumps({"steps": [first, second]}).encode()}


@amounts
def test_a_first_trys_states_are_read_or_refused(amount: str, tmp_path: Path) -> None:
    lab = load_lab(ROOT, "mathis")
    assert lab.file.first_try is not None
    shown = lab.file.first_try.shown

    def check(hostile: Hostile) -> None:
        (tmp_path / STEPS).write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            found = read_tries(tmp_path)
            assert isinstance(found, list)
            for step in found:
                assert isinstance(step, Try)
                assert isinstance(step.after, str)
                outcome_of(lab, shown, results_of_try(tmp_path, step, lab))
                with_try(found, step)
            assert isinstance(so_far(found), str)

    long = tries()["steps.json"].replace(b"trial-06-seed7-1", b"x" * 100_000)
    explore(amount, files(tries()), check, few=40, known=[Hostile(long)])
