"""A file of another run in place of one's own, of another seed or another trial: what its neighbours counted contradicts it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.checks import check_run, run_under_test
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.remeasure import remeasure

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
COUNTED = ("link.after.json", "nstat.after.json", "qdisc.after.json")
# A run, another one, and of which nodes which of the other's files contradict the rest of the one's.
SWAPS = {
    ("01-mathis/case-13-fixed/trial-07-seed2", "01-mathis/case-13-broken/trial-07-seed1"): {
        "juliet": ("iperf3-server.json", "link.after.json", "nstat.after.json"),
        "romeo": ("iperf3.json", "ss.txt", "ss-last.txt", "link.after.json", "nstat.after.json"),
        "router": COUNTED,
    },
    ("02-buffers/case-06-fixed/trial-01-seed10", "02-buffers/case-06-fixed/trial-01-seed20"): {
        "d1": ("iperf3-server.json", *COUNTED),
        "g1": ("link.after.json", "qdisc.after.json", "queue.txt"),
        "s1": ("iperf3.json", "ss.txt", *COUNTED),
    },
    ("05-queues/two-arms-once/trial-01-seed1", "05-queues/two-arms-once/trial-21-seed1"): {
        "host-1": ("iperf3.json", "ss.txt", *COUNTED),
        "host-3": ("iperf3-server-5201.json", *COUNTED),
        "router-1": (*COUNTED, "queue.txt"),
    },
    ("03-scale/edge-once/trial-05-seed1", "03-scale/edge-once/trial-04-seed1"): {
        "router": (*COUNTED, "queue.txt", "summary.txt", "groups.txt"),
        "sender-0": ("iperf3-1.json", "ss.txt", "events.txt", "link.after.json", "nstat.after.json"),
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=SWAPS, ids=lambda pair: pair[0])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Path, dict[str, tuple[str, ...]]]]:
    """Yield a run that may be changed, another one's raw files, and the files that are put in place of the first one's."""
    one, other = (SAMPLES / name for name in request.param)
    run = tmp_path_factory.mktemp("swapped") / one.name
    run.mkdir()
    for path in one.iterdir():
        if path.is_file() and not path.name.startswith("raw"):
            shutil.copy(path, run)
    with raw_folder(one) as own, raw_folder(other) as foreign:
        shutil.copytree(own, run / "raw")
        yield run, foreign, SWAPS[request.param]


def said(run: Path) -> str:
    """Return the findings on a run, or why it is refused."""
    try:
        again = remeasure(ROOT, run)
    except UserError as error:
        return str(error)
    under_test = run_under_test(
        again.lab, again.plan.params, again.measured, again.plan.trial, again.host_state
    )
    return " ".join(finding.id for finding in check_run(again.lab, under_test))


def test_each_file_of_another_run_is_found(
    pair: tuple[Path, Path, dict[str, tuple[str, ...]]],
) -> None:
    run, foreign, swaps = pair
    assert said(run) == ""
    silent = []
    for node, names in swaps.items():
        for name in names:
            path = run / "raw" / node / name
            own = path.read_bytes()
            path.write_bytes((foreign / node / name).read_bytes())
            words = said(run)
            if not words:
                silent.append(f"{node}/{name}")
            elif "run again" in words:
                assert "is of another run" in words
            path.write_bytes(own)
    assert silent == []
    assert said(run) == ""


def test_at_least_thirty_files_are_swapped() -> None:
    assert sum(len(names) for nodes in SWAPS.values() for names in nodes.values()) >= 30
