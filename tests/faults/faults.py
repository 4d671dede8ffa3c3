"""The other proof of the checker: faults injected one at a time, of kinds that no lab stages.

    make checker-faults                         all kinds, each five times, and as many honest runs
    make checker-faults ARGS='--times 1'        once each
    make checker-faults ARGS='--kind mtu-one'   one kind
    make checker-faults ARGS='--kept'           only the kinds that judge: no check was written with them in view

A fault is put into a run between the lab's own set-up and its measurement, while it is measured, or
into its files afterwards; the plan knows nothing of it. Then the run is checked as `lab check` does
it with files from somebody's own testbed. Prints, for each kind, how many runs got the right cause, only another
or `unexplained`, or nothing at all; and how many honest runs were blamed. Exits 1 where one is silent or blamed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from measuretwice.backends.script import experiment_script, memory_mb, reader_interval_us
from measuretwice.backends.uml import (
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    Kernel,
    find_kernel,
    run_inside,
)
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError
from measuretwice.checks import check_run
from measuretwice.execute.batch import open_batch
from measuretwice.execute.dispatch import dispatcher
from measuretwice.execute.job import Job
from measuretwice.execute.reference import reference_conditions
from measuretwice.lab import Lab, Plan, Value, load_lab
from measuretwice.runs.reread import measure_again

ROOT = Path(__file__).parents[2]
BEFORE = "snapshot before "
# Findings that say nothing against a run: it is short, and says so.
HARMLESS = frozenset({"duration"})


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a run.

    `before` are shell lines for the guest after the set-up, before the first snapshot; `during` the same
    after it, each in the background; `exports` are settings that differ from the plan's, of which the run knows.
    `damage` is done to the finished run's folder; its second argument is another run's, of the same settings.
    """

    before: Sequence[str] = ()
    during: Sequence[str] = ()
    exports: Mapping[str, Value] = field(default_factory=dict)
    damage: Callable[[Path, Path], None] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of fault: the labs it is for, how one is drawn, and the findings that are its right cause.

    `make` gets the lab, the run's parameters and a source of chance.
    """

    name: str
    causes: frozenset[str]
    make: Callable[[Lab, Mapping[str, Value], random.Random], Fault]
    labs: tuple[str, ...] = ("mathis", "buffers", "scale", "variants", "queues")


class Faulty(Virtual):
    """The virtual kernel, with a fault in it."""

    def __init__(self, kernel: Kernel, fault: Fault) -> None:
        super().__init__(kernel)
        self.fault = fault

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        fault = self.fault
        meant = replace(plan, params={**plan.params, **fault.exports})
        text = experiment_script(lab, meant, Path(INSIDE_ROOT), f"{INSIDE_RUN}/raw", INSIDE_SAMPLER)
        head, mark, tail = text.partition(BEFORE)
        first, newline, rest = tail.partition("\n")
        lines = "".join(f"{line}\n" for line in fault.before)
        background = "".join(f"({line}) &\n" for line in fault.during)
        (work / "experiment.sh").write_text(
            f"{head}{lines}{mark}{first}{newline}{background}{rest}", encoding="utf-8"
        )
        run_inside(
            self._uml, root, work, plan.kernel_seed, wall_limit_s,
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
    return chance.choice((1, 41, 42, 44)), {"duration_s": 4, "rate_mbit": chance.choice((50, 100))}


@dataclass(frozen=True)
class Case:
    """One run of the proof, and the kind of its fault; None for an honest one."""

    kind: Kind | None
    lab: Lab
    job: Job
    fault: Fault


def cases(kinds: Iterable[Kind], times: int, honest: int, out: Path, seed: int) -> list[Case]:
    """Draw every run of the proof. The same seed draws the same."""
    kernel = find_kernel(ROOT)
    if kernel is None:
        raise UserError("the virtual kernel isn't there yet: ./lab run mathis --trial 7 builds it")
    labs = {
        name: load_lab(ROOT, name) for name in ("mathis", "buffers", "scale", "variants", "queues")
    }
    wanted = [(kind, n) for kind in kinds for n in range(times)]
    wanted += [(None, n) for n in range(honest)]  # type: ignore[list-item]
    drawn = []
    for number, (kind, n) in enumerate(wanted):
        chance = random.Random(f"{seed} {kind.name if kind else 'honest'} {n}")
        names = kind.labs if kind else tuple(labs)
        lab = labs[names[n % len(names)]]
        trial, changes = cheap(lab, chance)
        batch = open_batch(ROOT, lab, out / str(number), Virtual(kernel), wall_limit_s=900)
        job = batch.job(trial, seed=chance.randrange(1, 10**6), changes=changes)
        fault = kind.make(lab, job.plan.params, chance) if kind else Fault()
        drawn.append(
            Case(
                kind, lab, replace(job, backend=Faulty(kernel, replace(fault, damage=None))), fault
            )
        )
    return drawn


def findings(case: Case, folder: Path) -> list[str]:
    """What the checker says of a run, as of one from somebody's own testbed; or that it can't be read."""
    try:
        again = measure_again(ROOT, folder)
    except UserError:
        return ["refused"]
    reference = reference_conditions(ROOT, case.lab, case.job.plan.params)
    found = check_run(
        case.lab, again.plan.params, again.measured, trial=again.plan.trial,
        conditions=again.conditions, reference=reference,
    )  # fmt: skip
    return [finding.id for finding in found]


def verdict(case: Case, found: Sequence[str]) -> str:
    """right, said (another cause, or `unexplained`), silent; or honest, blamed."""
    told = [name for name in found if name not in HARMLESS]
    if case.kind is None:
        return "blamed" if told else "honest"
    if not told and "duration" not in case.kind.causes:
        return "silent"
    return "right" if {*found} & case.kind.causes or "refused" in found else "said"


def prove(kinds: Sequence[Kind], times: int, honest: int, seed: int, talk: bool) -> list[str]:
    """Run the proof, print its table where `talk`, and return what is wrong: silent or blamed runs."""
    started = time.monotonic()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    raised: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="measuretwice-faults-") as out:
        drawn = cases(kinds, times, honest, Path(out), seed)
        by_folder = {case.job.folder: case for case in drawn}
        with dispatcher(drawn[0].job.backend, None, len(drawn)) as crew:
            for done, (job, outcome) in enumerate(crew.run_all([case.job for case in drawn]), 1):
                case = by_folder[job.folder]
                name = case.kind.name if case.kind else f"honest, {case.lab.name}"
                if isinstance(outcome, UserError):
                    # A run that fails has said so.
                    found = ["refused"]
                else:
                    if case.fault.damage:
                        case.fault.damage(job.folder, _twin(case, Path(out)))
                    found = findings(case, job.folder)
                told = verdict(case, found)
                table[name][told] += 1
                raised[name].update(found or ["nothing"])
                if told in ("silent", "blamed"):
                    wrong.append(
                        f"{name}, {case.lab.name}, {job.plan.params}: {', '.join(found) or 'nothing'}"
                        f" {list(case.fault.before) or list(case.fault.during) or dict(case.fault.exports)}"
                    )
                if talk and sys.stderr.isatty():
                    print(f"\r{done} of {len(drawn)} runs", end="", file=sys.stderr, flush=True)
    if talk:
        _print(table, raised, time.monotonic() - started)
        print("\n".join(wrong))
    return wrong


def _twin(case: Case, out: Path) -> Path:
    """Another honest run of the same settings, with another seed."""
    plan = replace(case.job.plan, seed=case.job.plan.seed + 1)
    job = replace(
        case.job, plan=plan, out=case.job.out / "twin", backend=Faulty(find_kernel(ROOT), Fault())
    )
    with dispatcher(job.backend, None, 1) as crew:
        for _, outcome in crew.run_all([job]):
            if isinstance(outcome, UserError):
                raise outcome
    return job.folder


def _print(
    table: Mapping[str, Counter[str]], raised: Mapping[str, Counter[str]], seconds: float
) -> None:
    print(f"\n{'kind':28} {'runs':>5} {'right':>6} {'said':>5} {'silent':>7} {'blamed':>7}  raised")
    sums: Counter[str] = Counter()
    for name, counts in sorted(table.items()):
        sums += counts
        ids = ", ".join(f"{one} {count}" for one, count in raised[name].most_common(4))
        cells = " ".join(
            f"{counts[word]:{width}}"
            for word, width in (("right", 6), ("said", 5), ("silent", 7), ("blamed", 7))
        )
        print(f"{name:28} {counts.total():5} {cells}  {ids}")
    faults = sums["right"] + sums["said"] + sums["silent"]
    print(
        f"{sums.total()} runs in {seconds / 60:.0f} minutes; of {faults} with a fault {sums['right']} got the right cause, "
        f"{sums['said']} another or none by name, {sums['silent']} nothing; of {sums['honest'] + sums['blamed']} honest "
        f"ones {sums['blamed']} were blamed"
    )


def main() -> int:
    from fault_kinds import KEPT, KNOWN

    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--times", type=int, default=5, help="runs of each kind")
    options.add_argument("--honest", type=int, help="honest runs [as many as with faults]")
    options.add_argument("--seed", type=int, default=1, help="draws other settings and faults")
    options.add_argument("--kind", action="append", default=[], help="this kind, not all")
    options.add_argument("--kept", action="store_true", help="only the kinds that judge")
    chosen = options.parse_args()
    wrong = []
    for title, kinds in (
        ("kinds that the checks were written with", KNOWN),
        ("kinds kept to judge them", KEPT),
    ):
        kinds = [kind for kind in kinds if not chosen.kind or kind.name in chosen.kind]
        if not kinds or (chosen.kept and kinds is KNOWN):
            continue
        honest = len(kinds) * chosen.times if chosen.honest is None else chosen.honest
        print(f"== {title}: {len(kinds)}", flush=True)
        wrong += prove(kinds, chosen.times, honest, chosen.seed, True)
    return 1 if wrong else 0


if __name__ == "__main__":
    # Kinds import this module by its name: so does whoever runs it.
    from faults import main as run

    sys.exit(run())
