"""Plans: all that decides a result decides the folder's name, and nothing else does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from measuretwice.backends import script as nodes
from measuretwice.lab import Plan, Toolchain, load_lab, make_plan

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")


def plan(**changes: Any) -> Plan:
    settings: dict[str, Any] = {
        "trial": 7,
        "seed": 1,
        "changes": {},
        "where": "virtual",
        "kernel": "k",
        "tools": {"iperf3": "3"},
        "scripts": {"a.sh": "0"},
    }
    settings |= changes
    toolchain = Toolchain(*(settings.pop(key) for key in ("where", "kernel", "tools", "scripts")))
    return make_plan(LAB, settings.pop("trial"), toolchain=toolchain, **settings)


@pytest.mark.parametrize(
    "change",
    [
        {"trial": 8},
        {"seed": 2},
        {"changes": {"rtt_ms": 7}},
        {"kernel": "other"},
        {"tools": {"iperf3": "4"}},
        {"scripts": {"a.sh": "1"}},
    ],
)
def test_what_decides_a_result_decides_the_folder(change: dict[str, Any]) -> None:
    assert plan(**change).folder_name != plan().folder_name
    assert plan().folder_name == plan().folder_name


def test_trial_values_come_before_defaults_and_changes_before_both() -> None:
    assert plan(trial=9).params["mss_bytes"] == 4312
    assert plan(trial=9).params["mtu_bytes"] == 4352
    assert plan(trial=9, changes={"mss_bytes": 1000}).params["mss_bytes"] == 1000


def test_a_stages_value_may_be_another_parameters() -> None:
    broken = plan(trial=5, pitfall="loss-percent", stage="broken")
    assert broken.params["loss_percent"] == broken.params["loss_ratio"] == 0.1566283969
    other = plan(trial=5, pitfall="loss-percent", stage="broken", changes={"loss_ratio": 0.25})
    assert other.params["loss_percent"] == 0.25


def test_environment_has_no_exponents() -> None:
    """Shells and tc read no 5e-05."""
    text = nodes.environment(plan(trial=53))["LOSS_RATIO"]
    assert "e" not in text
    assert float(text) == pytest.approx(0.0000559121270201603, rel=1e-12)


def test_experiment_is_valid_shell_with_every_step_in_order() -> None:
    script = nodes.experiment_script(LAB, plan(), Path("/a folder"), "/out of it", None)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    order = [
        "ip netns exec router sysctl -qw net.ipv4.ip_forward=1",
        "step router prepare",
        "step romeo validate",
        "snapshot before romeo router juliet",
        "background router capture stop",
        "background juliet serve wait",
        "step romeo measure",
        "end_background",
        "snapshot after romeo router juliet",
    ]
    places = [script.index(f"\n{line}\n") for line in order]
    assert places == sorted(places)


def test_trial_table_is_what_its_script_writes() -> None:
    script = ROOT / "labs" / "01-mathis" / "make_trials.py"
    assert subprocess.run([sys.executable, str(script), "--check"], check=False).returncode == 0


def test_trial_numbers_are_the_published_ones() -> None:
    """RTT first, then segment size, four p each; eight p are known."""
    known = {3: (6, 536), 5: (6, 1460), 9: (6, 4312), 17: (154.5, 1460), 53: (600, 1460)}
    for number, (rtt_ms, mss_bytes) in known.items():
        assert LAB.trials[number].set["rtt_ms"] == rtt_ms
        assert LAB.trials[number].set["mss_bytes"] == mss_bytes
    losses = [float(trial.set["loss_ratio"]) for trial in LAB.trials.values()]
    assert all(3e-5 <= loss <= 0.3 for loss in losses)
    assert sum(trial.notes["loss_from"] == "published" for trial in LAB.trials.values()) == 8


def test_a_title_names_the_runs_own_values() -> None:
    trial = LAB.trials[7]
    assert "rtt_ms 6" in trial.title
    assert trial.title_with({**LAB.defaults(), **trial.set}) == trial.title
    changed = trial.title_with({**LAB.defaults(), **trial.set, "rtt_ms": 8.5, "duration_s": 3})
    assert changed == trial.title.replace("rtt_ms 6", "rtt_ms 8.5")
    assert "duration_s" not in changed
