"""The browser's machine, in node: its builder, and a trial in it through the kit's own commands."""

import json
import shutil
import subprocess
from pathlib import Path

import browsers_machine
import pytest
from command_line import call_lab, run_program

from measuretwice.backends.browser import find_machine, fitted_sampling, guest_files, guest_words
from measuretwice.in_page.machine import given_to_live_guest
from measuretwice.lab import Toolchain, load_lab, make_plan
from measuretwice.runs.folder import digest_of

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / "scripts/browser/build.sh"

needs_machine = pytest.mark.skipif(
    bool(browsers_machine.lacking()), reason=browsers_machine.lacking()
)


def builder(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_program("bash", BUILDER, *arguments, **environment)


def test_the_builder_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    wrong = builder("--nonsense")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    problem = "unknown option --nonsense (--help shows the options)"
    assert wrong.stderr == f"browser/build.sh: {problem}\n"
    assert builder("--path", MEASURETWICE_CACHE=str(tmp_path)).returncode == 3
    file = tmp_path / "file"
    file.touch()
    refused = builder(MEASURETWICE_CACHE=str(file))
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "MEASURETWICE_CACHE" in refused.stderr or "packages are missing" in refused.stderr


def test_its_key_follows_from_what_it_is_made_of(tmp_path: Path) -> None:
    for folder in ("scripts/browser", "scripts/kernel", "docs/assets/machine"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    own = [str(tmp_path / "scripts/browser/build.sh"), "--key"]
    before = subprocess.run(["bash", *own], capture_output=True, text=True, check=True).stdout
    assert before == builder("--key").stdout
    seen = {before}
    inputs = [
        "scripts/browser/config", "scripts/browser/guest-init.c", "scripts/browser/packages.txt",
        "scripts/browser/hot-functions.txt", "scripts/browser/profile.tar.xz", "scripts/browser/save.mjs", "scripts/kernel/config", "scripts/kernel/ss-sampler.c", "docs/assets/machine/machine.mjs",
        *(str(path.relative_to(tmp_path)) for path in tmp_path.glob("scripts/browser/patches/*")),
    ]  # fmt: skip
    for name in inputs:
        text = (tmp_path / name).read_bytes()
        added = (
            f"{'0' * 64} pool/none none\n" if name.endswith("packages.txt") else "CONFIG_NONE=y\n"
        )
        (tmp_path / name).write_bytes(text + added.encode())
        seen.add(subprocess.run(["bash", *own], capture_output=True, text=True, check=True).stdout)
        (tmp_path / name).write_bytes(text)
    assert len(seen) == 1 + len(inputs)


def test_a_long_trial_samples_less_often_where_its_samples_stay_in_memory() -> None:
    lab = load_lab(ROOT, "mathis")
    meant = lab.defaults()
    assert fitted_sampling(lab, meant) == {}
    assert fitted_sampling(lab, {**meant, "duration_s": 9000}) == {"sample_interval_s": 0.6}
    # What a person asks for stays as it is.
    asked = {**meant, "duration_s": 9000, "sample_interval_s": 0.05}
    assert fitted_sampling(lab, asked) == {}


def test_the_guest_gets_what_a_trial_reads() -> None:
    names = set(guest_files(load_lab(ROOT, "mathis"), ROOT))
    read = {
        "scripts/lib.sh",
        "scripts/snapshot.sh",
        "scripts/after/state.sh",
        "labs/01-mathis/nodes/romeo.sh",
    }
    assert {f"run/lab/{name}" for name in read} <= names
    assert not [name for name in names if len(name) > 100]


@pytest.mark.nightly(
    "trials in a page, checked there: tests/site/test_runs_here.py; the machine in node: the live shells, below"
)
@needs_machine
@pytest.mark.kernel
@pytest.mark.slow
def test_a_trial_gives_the_same_bytes_each_time_and_the_checker_agrees(tmp_path: Path) -> None:
    found = []
    for n in (1, 2):
        out = tmp_path / str(n)
        done = call_lab(
            "run", "mathis", "--trial", "7", "--set", "duration_s=20", "--on", "browser", "--out", str(out)
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        [run] = (out / "mathis").glob("trial-07-*")
        found.append(digest_of(run / "raw"))
    assert found[0] == found[1]
    plan = json.loads((run / "plan.json").read_text())
    assert (plan["where"], plan["kernel"].split()[2]) == ("browser", "i686")
    assert call_lab("check", str(run)).returncode == 0
    again = json.loads((run / "provenance.json").read_text())["command"]
    assert again.endswith("--set duration_s=20 --on browser")


# On each node what a page of a case says; then what all that is for.
TYPED = [
    ["router", "router.sh prepare && echo set: $?", "set: 0"],
    ["juliet", "juliet.sh prepare && echo set: $?", "set: 0"],
    ["romeo", "sudo -E romeo.sh prepare && echo set: $?", "set: 0"],
    ["romeo", "ping -c 3 -i 0.2 10.10.2.100 | tee ping.txt", "rtt min"],
    ["romeo", "enter router", "router"],
    ["romeo", "tc qdisc show | grep -c netem", "2"],
    ["romeo", "exit; exit", "romeo"],
    ["romeo", "enter mercutio; echo then: $?", "then: 2"],
]


@pytest.mark.nightly("CI runs it: by day live/test_live.py, the same agent in the virtual kernel")
@needs_machine
@pytest.mark.kernel
@pytest.mark.slow
def test_live_shells_are_on_their_nodes_in_real_time() -> None:
    machine = find_machine()
    assert machine is not None
    lab = load_lab(ROOT, "mathis")
    nodes = ["romeo", "router", "juliet"]
    toolchain = Toolchain("browser", machine.name, machine.programs, {}, None)
    plan = make_plan(
        lab, 7, seed=1, toolchain=toolchain, changes={"cable_mbit": 0, "processing_us": 0}
    )
    asked = {
        "words": guest_words(lab, plan, nodes),
        "files": given_to_live_guest(lab, plan, ROOT),
        "nodes": nodes,
        "typed": [[nodes.index(node), command, shown] for node, command, shown in TYPED],
    }
    script = Path(__file__).with_name("live_machine.mjs")
    done = run_program("node", script, machine.folder, given=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rtt_ms = plan.params["rtt_ms"]
    assert f"rtt min/avg/max/mdev = {rtt_ms:.3f}" in found["files"]["raw/romeo/ping.txt"]
    assert "one of: juliet romeo router" in found["text"][0]
    assert "warning" not in "".join(found["text"])
    assert "romeo.sh prepare" in found["files"]["history-romeo"]
    # A machine that waits for keys leaves the CPU to others: measured, some 2 %.
    assert found["idle_cpu_s"] < 0.6


@pytest.mark.nightly(
    "which files a lab's machine gets: this file; Python in a lab's node: tests/run/test_record.py, lab 03"
)
@needs_machine
@pytest.mark.slow
def test_nodes_that_call_python_find_it(tmp_path: Path) -> None:
    """Lab 03's router works up its senders' files in Python, which the machine gets for such labs alone."""
    done = call_lab(
        "run", "scale", "--trial", "1", "--set", "flows=1", "--set", "duration_s=6", "--set", "warmup_s=1",
        "--on", "browser", "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [run] = (path.parent for path in tmp_path.rglob("DONE"))
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["measured"]["flows"] == 1
    assert result["measured"]["goodput_bps"] > 8e7
    guest = (run / "plan.json").read_text(encoding="utf-8")
    assert '"python3": "3.11.2-6+deb12u8"' in guest
