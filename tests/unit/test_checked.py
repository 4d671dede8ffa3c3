"""What a file says a run was: only what its lab can have becomes settings, and a plan."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from edited_labs import refusal

from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError
from measuretwice.lab import CheckedParams, complaints, load_lab, read_lab, read_plan, trial_params
from measuretwice.lab.schema.parameters import is_reserved

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
RECORDED = ROOT / "sample-data/01-mathis/case-05-fixed/trial-09-seed1/plan.json"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"bash_env": "$(id)"}, "mathis has no setting bash_env"),
        ({"path": "/tmp"}, "mathis has no setting path"),
        ({"RTT_MS": 6}, "no setting RTT_MS"),
        ({3: 6}, "name is 3"),
        ({"rtt_ms": "6"}, "rtt_ms: expected a number, got 6"),
        ({"rtt_ms": True}, "rtt_ms: expected a number, got True"),
        ({"rtt_ms": None}, "rtt_ms: expected a number, got None"),
        ({"rtt_ms": [6]}, "rtt_ms: expected a number"),
        ({"rtt_ms": float("nan")}, "rtt_ms: expected a number, got nan"),
        ({"rtt_ms": float("inf")}, "rtt_ms: expected a number, got inf"),
        ({"rtt_ms": 10**400}, "rtt_ms: expected a number, got one of 401 digits"),
        ({"rtt_ms": -1}, "rtt_ms: expected"),
        ({"rtt_ms": 1e9}, "rtt_ms: expected"),
        ({"mss_bytes": 1460.5}, "whole number"),
        ({"loss_ratio": '0; system("id")'}, "loss_ratio: expected a number"),
        ({"congestion_control": 3}, "congestion_control: expected a word"),
        ({"congestion_control": "reno; id"}, "congestion_control: expected a name"),
        ({"congestion_control": "reno\n"}, "congestion_control: expected a name"),
        ({"congestion_control": "a" * 65}, "congestion_control: expected a name"),
        ({"offloads": "maybe"}, "offloads: expected one of"),
        ({"offloads": "\x1b]0;x\x07"}, "offloads: expected one of"),
    ],
)
def test_what_a_lab_cant_have(setting: dict[Any, Any], why: str) -> None:
    params = {**trial_params(LAB, 7), **setting}
    with pytest.raises(UserError) as raised:
        CheckedParams(LAB, params, "a file")
    assert str(raised.value).startswith("a file: ")
    assert why in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 400
    assert len(complaints(LAB, params)) == 1


def test_what_a_lab_can_have_stays_as_it_is() -> None:
    params = trial_params(LAB, 7)
    checked = CheckedParams(LAB, params, "a file")
    assert dict(checked) == params
    assert checked | {"rtt_ms": 8} == {**params, "rtt_ms": 8}
    assert deepcopy(checked) is checked
    assert dict(pickle.loads(pickle.dumps(checked))) == params
    with pytest.raises(TypeError):
        checked["rtt_ms"] = 8  # type: ignore[index]


def with_digest(document: dict[str, Any]) -> dict[str, Any]:
    decided = {k: v for k, v in document.items() if k not in ("kernel_seed", "digest")}
    digest = sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:8]
    return {**document, "digest": digest}


def change(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: with_digest({**document, **fields})


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (change(trial=10**9), "no trial 1000000000"),
        (change(trial="7"), "trial: input should be a valid integer"),
        (change(seed=-5), f"seed: expected 0 to {LAST_SEED}"),
        (change(seed=10**400), "seed: expected"),
        (change(case=99), "no case 99"),
        (change(case=True), "case: input should be a valid integer"),
        (change(pitfall="$(id)"), "no pitfall"),
        (change(stage="other"), "stage: "),
        (change(lab="calibrate"), "lab: expected mathis"),
        (change(where="\x1b[2J"), "where: expected a short line"),
        (change(kernel="k" * 201), "kernel: expected a short line"),
        (change(tools={"ip": 3}), "tools.ip: input should be a valid string"),
        (change(scripts={"../../x.sh": "0"}), "is no script's name"),
        (change(edited={"/etc/passwd": "0"}), "is no script's name"),
        (change(edited=["router.sh"]), "edited: input should be an object"),
        (change(recipe=None), "recipe: input should be a valid integer"),
        (change(more="x"), "more: no field of a plan"),
        (change(params=[]), "params: input should be an object"),
        (lambda document: {**document, "seed": 2}, "was changed after the run"),
        (lambda document: {k: v for k, v in document.items() if k != "tools"}, "tools: field required"),
    ],
)  # fmt: skip
def test_a_plan_that_a_lab_cant_have(
    edit: Callable[[dict[str, Any]], dict[str, Any]], why: str
) -> None:
    document = json.loads(RECORDED.read_text())
    assert read_plan(LAB, document, "plan.json").to_json() == document
    with pytest.raises(UserError) as raised:
        read_plan(LAB, edit(document), "plan.json")
    said = str(raised.value)
    assert said.startswith("plan.json: ")
    assert why in said
    assert said.isprintable()


def test_every_recorded_plan_passes() -> None:
    plans = sorted(ROOT.glob("sample-data/*/*/*/plan.json"))
    assert len(plans) > 100
    for path in plans:
        document = json.loads(path.read_text())
        assert read_plan(load_lab(ROOT, document["lab"]), document, str(path)).to_json() == document


@pytest.mark.parametrize(
    "name",
    ["bash_env", "env", "path", "ifs", "ps4", "shellopts", "bashopts", "ld_preload", "ld_library_path",
     "pythonpath", "python_home", "home", "out", "ready_file", "ss_sampler", "lc_all", "tmpdir"],
)  # fmt: skip
def test_names_that_programs_read_for_themselves(name: str, tmp_path: Path) -> None:
    assert is_reserved(name)
    added = f'[parameters]\n{name} = {{ help = "x", pattern = "[a-z]+" }}\n'
    said = refusal(tmp_path, "[parameters]\n", added)
    assert f"parameters.{name}: node scripts would find it as" in said


def test_no_lab_has_such_a_name() -> None:
    for path in sorted((ROOT / "labs").glob("0*/lab.toml")):
        assert not [name for name in read_lab(path.parent).file.parameters if is_reserved(name)]
