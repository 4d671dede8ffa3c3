"""The other proof of the checker: faults injected one at a time, of kinds that no lab stages.

    make checker-faults                         all kinds, each five times, and as many honest runs
    make checker-faults ARGS='--times 1'        once each
    make checker-faults ARGS='--kind mtu-one'   one kind
    make checker-faults ARGS='--kept'           only the kinds that judge: no check was written with them in view
    make checker-faults ARGS='--review'         the runs that a reviewer broke, once each
    make checker-faults ARGS='--scripts'        faults in node scripts: which changed a result, and were they named?
    make checker-faults ARGS='--swaps'          files of other runs, one by one
    make checker-faults ARGS='--odd 500'        so many honest runs with odd but legal settings
    make checker-faults ARGS=--record           and write the tables to the file that the site's page has them from;
                                                with --kind, only that kind's rows

A fault is put into a run before the lab's set-up, between it and the measurement, while it is measured, or
into its files afterwards; the plan knows nothing of it. Then the run is checked as `lab check` does
it with files from somebody's own testbed. Prints, for each kind, how many runs got the right cause, only another
or `unexplained`, or nothing at all; and how many honest runs were blamed. Exits 1 where one is silent or blamed.

What was measured stays in runs/faults/ (--keep), each run in a folder named by its kind and by a digest of all that
decides it. So a proof that was interrupted goes on where it was, and after a change of the checks nothing is measured again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import operator
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confusion import RECORD, TITLES, FaultTable, record, verdict

from measuretwice.backends.script import (
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    experiment_script,
    memory_mb,
    reader_interval_us,
)
from measuretwice.backends.virtual import Kernel, Virtual, find_kernel, run_inside
from measuretwice.base.errors import UserError
from measuretwice.base.files import write_json
from measuretwice.base.paths import digest_of_packages
from measuretwice.checks import check_run, run_under_test
from measuretwice.execute.batch import open_batch, reference_host_state
from measuretwice.execute.dispatch import dispatcher
from measuretwice.execute.job import Job
from measuretwice.lab import CheckedParams, Lab, Plan, Value, load_lab
from measuretwice.runs.folder import is_finished
from measuretwice.runs.remeasure import remeasure
from measuretwice.runs.result import DERIVING

ROOT = Path(__file__).parents[2]
LABS = ("mathis", "buffers", "scale", "variants", "queues", "calibrate", "latency")
# Whose turn it is among the runs of a kind: lab 03, with twenty hosts, takes as long as five others.
TURNS = ("mathis", "buffers", "variants", "queues", "calibrate", "scale") + 2 * (
    "mathis", "buffers", "variants", "queues", "calibrate",
)  # fmt: skip
# Lab 06 has no kinds but its own (latency_kinds.py), and honest runs.
HONEST_TURNS = (*TURNS, "latency")
# So many settings of each lab are drawn: what its scripts set up with them is found out once for each.
SETTINGS = 16
BEFORE = "snapshot before "
FIRST_STEP = "\nstep "
# Where in a run's raw files it stands that a line of the fault itself failed.
BOTCHED = "fault-failed"
WALL_LIMIT_S = 900
# Who can't be measured is refused, and should be told why: which words of a refusal name which cause.
REFUSALS = {
    "two-runs": "is of another run",
    "flows": "flows, and one was meant",
    "wrong-algorithm": "the kernel doesn't have it, or a route has another one locked",
    "duration": "the shortest was there for",
}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a run.

    `early` are shell lines for the guest before the lab's own set-up, `before` after it, before the first snapshot;
    `during` the same after that, each in the background; `exports` are settings that differ from the plan's, of which
    the run knows. `damage` is done to a copy of the finished run's folder; its second argument is
    another run's, of another seed and the same settings but for those of `twin_with`, where `twin` asks for one.
    """

    early: Sequence[str] = ()
    before: Sequence[str] = ()
    during: Sequence[str] = ()
    exports: Mapping[str, Value] = field(default_factory=dict)
    damage: Callable[[Path, Path], None] | None = None
    twin: bool = False
    twin_with: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A kind of fault: the labs it is for, how one is drawn, and the findings that are its right cause.

    `make` gets the lab, the run's parameters and a source of chance. `says` is what a checker should say of it;
    `settings` are its trial and changes of parameters, where they aren't drawn.
    """

    name: str
    causes: frozenset[str]
    make: Callable[[Lab, Mapping[str, Value], random.Random], Fault]
    labs: tuple[str, ...] = TURNS
    says: str = ""
    settings: tuple[int, Mapping[str, Value]] | None = None


class Faulty(Virtual):
    """The virtual kernel, with a fault in it."""

    def __init__(self, kernel: Kernel, fault: Fault) -> None:
        super().__init__(kernel)
        self.fault = fault

    def script(self, lab: Lab, plan: Plan) -> str:
        """The experiment's script with the fault's lines in it. One that fails leaves a note of it."""
        fault = self.fault
        params = CheckedParams(lab, plan.params | fault.exports, "a fault's settings")
        meant = replace(plan, params=params)
        text = experiment_script(lab, meant, Path(INSIDE_ROOT), f"{INSIDE_RUN}/raw", INSIDE_SAMPLER)
        note = f"trap ': >\"$out/{BOTCHED}\"' ERR"

        def lines(commands: Sequence[str]) -> str:
            return "\n".join([note, *commands, "trap - ERR\n"]) if commands else ""

        head, first_step, rest = text.partition(FIRST_STEP)
        middle, mark, tail = rest.partition(BEFORE)
        snapshot, newline, measuring = tail.partition("\n")
        background = "".join(f"({note}; {line}) &\n" for line in fault.during)
        return (
            f"{head}\n{lines(fault.early)}{first_step[1:]}{middle}{lines(fault.before)}"
            f"{mark}{snapshot}{newline}{background}{measuring}"
        )

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        (work / "experiment.sh").write_text(self.script(lab, plan), encoding="utf-8")
        run_inside(
            self._kernel, root, work, plan.kernel_seed, wall_limit_s,
            memory_mb=memory_mb(lab, plan), reader_interval_us=reader_interval_us(lab, plan),
        )  # fmt: skip


def cheap(lab: Lab, chance: random.Random) -> tuple[int, dict[str, Value]]:
    """A trial of a lab with settings drawn at random: honest, and of a few seconds' work."""
    draw = chance.uniform
    if lab.name == "mathis":
        rtt_ms, loss = round(draw(2, 40), 1), round(10 ** draw(-2.7, -1.95), 6)
        mss = chance.choice((536, 1460, 4312))
        per_s = 1.2 * loss**0.5 / (rtt_ms / 1e3)
        return 7, {
            "rtt_ms": rtt_ms, "loss_ratio": loss, "mss_bytes": mss, "mtu_bytes": max(1500, mss + 40),
            "duration_s": round(min(200.0, max(12.0, 250 / per_s))),
        }  # fmt: skip
    if lab.name == "buffers":
        rate = chance.choice((15, 20, 30))
        return chance.choice((1, 2, 3, 4)), {
            "rate_mbit": rate, "buffer_bytes": round(12500 * rate * draw(0.3, 1.5)), "duration_s": 30,
            "first_delay_ms": chance.choice((30, 45)), "second_delay_ms": chance.choice((15, 20)),
        }  # fmt: skip
    if lab.name == "scale":
        rate = chance.choice((15, 20, 30))
        return chance.choice((1, 2, 4)), {
            "rate_mbit": rate, "buffer_bytes": round(30000 * rate * draw(0.4, 1)), "duration_s": 30,
            "warmup_s": 5, "start_spread_ms": 1000, "rtt_ms": chance.choice((10, 20, 40)),
        }  # fmt: skip
    if lab.name == "variants":
        rate = chance.choice((15, 20, 30))
        return chance.choice((1, 2, 4)), {
            "rate_mbit": rate, "buffer_bytes": round(5000 * rate * draw(0.5, 2)), "duration_s": 25,
            "average_from_s": 12, "wire_rtt_ms": chance.choice((20, 40, 60)),
        }  # fmt: skip
    if lab.name == "calibrate":
        return chance.choice((
            (1, {"rtt_ms": round(draw(10, 60), 1), "rate_mbit": 30, "burst_bytes": 5000}),
            (2, {"rate_mbit": chance.choice((8, 10, 12))}),
            (3, {"rtt_ms": round(draw(5, 30), 1), "loss_ratio": round(draw(0.005, 0.03), 4), "ping_count": 3000}),
        ))  # fmt: skip
    if lab.name == "latency":
        # The router's rates stay the lowest of the path.
        return chance.choice((1, 2, 3, 4)), {
            "rtt_ms": chance.choice((20, 40, 80)), "link_up_mbit": chance.choice((10, 12)), "duration_s": 6,
            "up_flows": chance.choice((2, 4)), "down_flows": chance.choice((2, 4)),
        }  # fmt: skip
    return chance.choice((1, 41, 42, 44)), {"duration_s": 4, "rate_mbit": chance.choice((30, 50))}


@dataclass(frozen=True)
class FaultyRun:
    """One run of the proof; the kind of its fault, None for an honest one; its twin's job, where one is needed."""

    kind: Kind | None
    number: int
    lab: Lab
    job: Job
    fault: Fault
    twin: Job | None

    @property
    def name(self) -> str:
        return self.kind.name if self.kind else f"honest, {self.lab.name}"

    @property
    def failed(self) -> Path:
        """Where it stands why the run could not be measured: then the run itself has said so."""
        return self.job.out / "failed.txt"

    @property
    def words(self) -> str:
        """The run and its fault, in a line."""
        fault = self.fault
        what = [*fault.early, *fault.before, *fault.during] or dict(fault.exports) or ""
        return f"{self.name}, {self.number}, {self.lab.name}, {self.job.plan.params}: {what}"


def faulty_runs(
    kinds: Iterable[Kind],
    times: int,
    honest: int,
    keep: Path,
    seed: int,
    odd: Callable[[Lab, random.Random], tuple[int, dict[str, Value]]] | None = None,
) -> list[FaultyRun]:
    """Draw every run of the proof: of each kind the first, then of each the second. The same seed draws the same.

    Honest runs have settings of `cheap`; with `odd` each has settings of its own by that.
    """
    kernel = find_kernel()
    if kernel is None:
        raise UserError("the virtual kernel isn't there yet: ./lab run mathis --trial 7 builds it")
    labs = {name: load_lab(ROOT, name) for name in LABS}
    batches = {
        name: open_batch(ROOT, lab, keep, Virtual(kernel), wall_limit_s=WALL_LIMIT_S)
        for name, lab in labs.items()
    }
    wanted: list[tuple[float, Kind | None, int]] = [
        (n / times, kind, n) for kind in kinds for n in range(times)
    ]
    wanted += [(n / honest, None, n) for n in range(honest)]
    drawn = []
    for _, kind, n in sorted(wanted, key=operator.itemgetter(0)):
        name = kind.name if kind else "honest"
        chance = random.Random(f"{seed} {name} {n}")
        names = kind.labs if kind else HONEST_TURNS
        lab = labs[names[n % len(names)]]
        settings = kind.settings if kind else None
        if odd and not kind:
            settings = odd(lab, chance)
        trial, changes = settings or cheap(
            lab, random.Random(f"{seed} {chance.randrange(SETTINGS)}")
        )
        job = batches[lab.name].job(trial, seed=chance.randrange(1, 10**6), changes=dict(changes))
        fault = kind.make(lab, job.plan.params, chance) if kind else Fault()
        faulty = Faulty(kernel, replace(fault, damage=None))
        digest = hashlib.sha256(f"{faulty.script(lab, job.plan)}{job.plan.digest}".encode())
        out = keep / f"{re.sub('[^a-zA-Z0-9]+', '-', name)}-{n:03}-{digest.hexdigest()[:12]}"
        job = replace(job, backend=faulty, out=out)
        twin = None
        if fault.twin:
            params = CheckedParams(lab, job.plan.params | fault.twin_with, "a twin's settings")
            plan = replace(job.plan, seed=job.plan.seed + 1, params=params)
            twin = replace(job, plan=plan, out=out / "twin", backend=Faulty(kernel, Fault()))
        drawn.append(FaultyRun(kind, n, lab, job, fault, twin))
    return drawn


def measured(
    drawn: Sequence[FaultyRun], workers: int, *, strict: bool = True
) -> Iterator[FaultyRun]:
    """Measure what isn't measured yet, and yield each as soon as all its runs are there.

    RuntimeError where a line of a fault itself failed; unless `strict`, such a run is left out.
    """
    waiting = []
    for faulty_run in drawn:
        if faulty_run.failed.exists() or all(is_finished(job.folder) for job in _jobs(faulty_run)):
            yield faulty_run
        else:
            waiting.append(faulty_run)
    by_folder = {job.folder: faulty_run for faulty_run in waiting for job in _jobs(faulty_run)}
    todo = [
        job for faulty_run in waiting for job in _jobs(faulty_run) if not is_finished(job.folder)
    ]
    if not todo:
        return
    told: set[Path] = set()
    with dispatcher(todo[0].backend, workers, len(todo)) as crew:
        for job, outcome in crew.run_all(todo):
            faulty_run = by_folder[job.folder]
            if faulty_run.job.folder in told:
                continue
            work = job.folder.with_name(f".{job.folder.name}.work")
            botched = any((folder / "raw" / BOTCHED).exists() for folder in (job.folder, work))
            if botched and not strict:
                continue
            if botched:
                raise RuntimeError(
                    f"a line of the fault itself failed, see {job.out}: {faulty_run.words}"
                )
            if isinstance(outcome, UserError):
                if job is faulty_run.twin:
                    raise outcome
                faulty_run.failed.write_text(f"{outcome}\n", encoding="utf-8")
                told.add(faulty_run.job.folder)
                yield faulty_run
            elif all(is_finished(part.folder) for part in _jobs(faulty_run)):
                told.add(faulty_run.job.folder)
                yield faulty_run


def _jobs(faulty_run: FaultyRun) -> list[Job]:
    return [faulty_run.job, faulty_run.twin] if faulty_run.twin else [faulty_run.job]


def findings(faulty_run: FaultyRun) -> list[str]:
    """What the checker says of a run, as of one from somebody's own testbed; or that it can't be read.

    That is kept beside the run, until the checks or the faults are others.
    """
    if faulty_run.failed.exists():
        return refused(faulty_run.failed.read_text(encoding="utf-8"))
    code = digest_of_packages(*DERIVING).hex()
    own = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    facts = (faulty_run.lab.folder / "lab.toml").read_bytes() + (
        own if faulty_run.fault.damage else b""
    )
    known_by = hashlib.sha256(code.encode() + facts).hexdigest()
    cached_file = faulty_run.job.out / "findings.json"
    if cached_file.exists() and (cached := json.loads(cached_file.read_text()))["code"] == known_by:
        return list(cached["found"])
    if faulty_run.fault.damage is None:
        found = _checked(faulty_run, faulty_run.job.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="measuretwice-damaged-") as place:
            folder = Path(place) / faulty_run.job.folder.name
            shutil.copytree(faulty_run.job.folder, folder)
            faulty_run.fault.damage(folder, faulty_run.twin.folder if faulty_run.twin else folder)
            found = _checked(faulty_run, folder)
    write_json(cached_file, {"code": known_by, "found": found})
    return found


def _checked(faulty_run: FaultyRun, folder: Path) -> list[str]:
    return judged(faulty_run, folder)[0]


def judged(faulty_run: FaultyRun, folder: Path) -> tuple[list[str], Mapping[str, Any]]:
    """Return the findings on a run's files, as they stand in a folder, and what they measure; of one that is refused
    "refused", and what else its words say."""
    try:
        again = remeasure(ROOT, folder)
    except UserError as error:
        return refused(str(error)), {}
    reference = reference_host_state(ROOT, faulty_run.lab, faulty_run.job.plan.params)
    run = run_under_test(
        faulty_run.lab,
        again.plan.params,
        again.measured,
        again.plan.trial,
        again.host_state,
        reference,
    )
    return [finding.id for finding in check_run(faulty_run.lab, run)], again.measured


def refused(words: str) -> list[str]:
    """Return "refused", and the finding whose cause the words of a refusal name."""
    return ["refused", *(finding for finding, word in REFUSALS.items() if word in words)]


def prove(drawn: Sequence[FaultyRun], workers: int, talk: bool) -> FaultTable:
    """Run the proof; say what went wrong and how far it is on standard error, where `talk`."""
    table = FaultTable()
    for done, faulty_run in enumerate(measured(drawn, workers), 1):
        found = findings(faulty_run)
        outcome = verdict(faulty_run.kind.causes if faulty_run.kind else None, found)
        table.add(faulty_run.name, outcome, found)
        if talk and outcome in ("silent", "blamed"):
            print(
                f"{outcome}: {', '.join(found) or 'nothing'}: {faulty_run.words}", file=sys.stderr
            )
        if talk and (sys.stderr.isatty() or done % 20 == 0):
            print(f"{done} of {len(drawn)} runs", file=sys.stderr, flush=True)
    return table


def main() -> int:
    from fault_kinds import KNOWN
    from kept_kinds import KEPT
    from later_kinds import LATER
    from review_kinds import REVIEW

    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--times", type=int, help="runs of each kind [5; of faults in node scripts 1]"
    )
    options.add_argument("--honest", type=int, help="honest runs [as many as with faults]")
    options.add_argument("--seed", type=int, default=1, help="draws other settings and faults")
    options.add_argument("--kind", action="append", default=[], help="this kind, not all")
    options.add_argument("--kept", action="store_true", help="only the kinds that judge")
    options.add_argument("--known", action="store_true", help="only the others")
    options.add_argument("--review", action="store_true", help="the runs that a reviewer broke")
    options.add_argument("--workers", type=int, default=1, help="runs at a time")
    options.add_argument("--keep", type=Path, default=ROOT / "runs" / "faults", help="runs' folder")
    options.add_argument(
        "--record", nargs="?", type=Path, const=RECORD, help="keep the tables (JSON)"
    )
    options.add_argument(
        "--scripts", action="store_true", help="faults in node scripts, and what each changed"
    )
    options.add_argument(
        "--swaps", action="store_true", help="each kind of file of another run in place of its own"
    )
    options.add_argument(
        "--odd", type=int, default=0, help="so many honest runs with odd but legal settings"
    )
    chosen = options.parse_args()
    if chosen.scripts or chosen.odd or chosen.swaps:
        from effects import prove_all

        return prove_all(chosen)
    chosen.times = chosen.times or 5
    groups = {"known": () if chosen.kept else KNOWN}
    groups |= {} if chosen.known else {"kept": KEPT, "later": LATER}
    if chosen.review:
        groups, chosen.times = {"review": REVIEW}, 1
    wanted = {
        group: [kind for kind in kinds if not chosen.kind or kind.name in chosen.kind]
        for group, kinds in groups.items()
    }
    drawn = {
        group: faulty_runs(kinds, chosen.times, 0, chosen.keep, chosen.seed)
        for group, kinds in wanted.items()
    }
    honest = sum(map(len, drawn.values())) if chosen.honest is None else chosen.honest
    drawn["honest"] = faulty_runs([], 1, honest, chosen.keep, chosen.seed)
    tables = {group: prove(runs, chosen.workers, True) for group, runs in drawn.items() if runs}
    for group, table in tables.items():
        print(f"\n{TITLES[group]}\n\n{table}")
    if chosen.record:
        # As many honest runs as there are of some kinds say little of all.
        kept = {
            name: table for name, table in tables.items() if name != "honest" or not chosen.kind
        }
        says = {kind.name: kind.says for kinds in wanted.values() for kind in kinds if kind.says}
        record(chosen.record, kept, says, some_kinds=bool(chosen.kind))
    return 1 if any(table.wrong for table in tables.values()) else 0


if __name__ == "__main__":
    # Kinds import this module by its name: so does whoever runs it.
    from faults import main as run

    sys.exit(run())
