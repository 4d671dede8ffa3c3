"""The reproduction's later tables of two testbeds, cell by cell beside the runs that are recorded here."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    Table,
    measured,
    param,
    percent,
    seconds,
    set_cell,
    table,
    whole,
)
from measuretwice.facts.values import Cell, count
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import ratio_bounds

from .runs import BBR, CUBIC, RENO, pooled_c

CLOUDLAB, FABRIC = "CloudLab", "FABRIC"
UP_TO_1_GBIT = (
    "edge-long", "edge-long-30", "edge-long-50", "intermediate", "intermediate-300",
    "intermediate-500",
)  # fmt: skip
FAR = ("edge-100-ms", "edge-200-ms", "core-100-ms", "core-200-ms")
# Which set is of which algorithm's cells; core's Reno was also run for longer.
CELLS = (*UP_TO_1_GBIT, *FAR[:2], "core", *FAR[2:])
CELLS_OF_RENO = tuple("core-long" if name == "core" else name for name in CELLS)
ALGORITHMS = {"reno": RENO, "cubic": CUBIC, "bbr": BBR}
MIB_OVER_MB = 2**20 / 1e6
# With fewer halvings a flow than this, most of what is counted is the end of slow start.
SETTLED_AFTER = 3
HEADINGS = ("cell", "here", CLOUDLAB, f"here / {CLOUDLAB}", FABRIC, f"here / {FABRIC}")


@dataclass(frozen=True)
class Published:
    """One cell of the published tables, of each testbed by name: its row's numbers by column."""

    rows: Mapping[str, Mapping[str, float]]

    def value(self, testbed: str, name: str) -> float:
        """Return a testbed's number; KeyError for a column that there isn't."""
        return self.rows[testbed][name]

    def drops_each(self, testbed: str) -> float:
        """Return a testbed's drops for each halving, both counted from the start."""
        return self.value(testbed, "drops") / self.value(testbed, "halvings")


def set_testbeds(f: Facts, sets: RecordedSets) -> None:
    """Set what testbeds.md quotes."""
    losses = published_losses(sets)
    cells = [
        (run, losses[_key(run)]) for run in (sets.run(name, RENO, seed=1) for name in CELLS_OF_RENO)
    ]
    _constants(f, cells)
    _losses(f, cells)
    _how_often(f, cells)
    _own_edge(f, sets, cells[0][1])
    fairness = published_fairness(sets)
    _fairness(f, sets, fairness)
    _evenness(f, cells, fairness)


def published_losses(sets: RecordedSets) -> dict[tuple[str, ...], Published]:
    """Return the published cells of Reno alone, by base delay (ms) and flows."""
    return _cells(sets, "losses.csv", "testbed", "rtt_ms", "flows")


def published_fairness(sets: RecordedSets) -> dict[tuple[str, ...], Published]:
    """Return the published cells of one algorithm alone, by base delay (ms), flows and algorithm."""
    return _cells(sets, "fairness.csv", "testbed", "rtt_ms", "flows", "algorithm")


def _cells(
    sets: RecordedSets, name: str, testbed: str, *keys: str
) -> dict[tuple[str, ...], Published]:
    """Return the cells of a published table by base delay, flows, and whatever else is asked for."""
    text = (sets.lab.folder / "published" / name).read_text()
    found: dict[tuple[str, ...], dict[str, Mapping[str, float]]] = {}
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        key = tuple(row[name] for name in keys)
        numbers = {k: float(v) for k, v in row.items() if k not in (testbed, "algorithm")}
        found.setdefault(key, {})[row[testbed]] = numbers
    return {key: Published(rows) for key, rows in found.items()}


def _key(run: Result, *more: str) -> tuple[str, ...]:
    return (str(run.params["rtt_ms"]), str(run.params["flows"]), *more)


def _name(run: Result) -> str:
    """Return a cell in words: `core, 1000 flows, 20 ms`."""
    flows, rtt_ms = (count(param(run, name)) for name in ("flows", "rtt_ms"))
    return f"{run.params['scale']}, {flows} flows, {rtt_ms} ms"


def _beside(
    cells: Sequence[tuple[Result, Published]],
    ours: Callable[[Result], float],
    theirs: Callable[[Published, str], float],
) -> Table:
    """Return a row a cell: our value, then each testbed's and what ours is of it."""
    return table(
        HEADINGS,
        [tuple(_row(run, ours(run), [theirs(cell, t) for t in cell.rows])) for run, cell in cells],
    )


def _row(run: Result, our: float, theirs: Sequence[float]) -> Iterator[Cell]:
    yield _name(run)
    yield Number(our)
    for value in theirs:
        yield from (Number(value), Number(our / value))


def _constants(f: Facts, cells: Sequence[tuple[Result, Published]]) -> None:
    """Reno alone, a run of each cell: C by halvings, by drops and by retransmissions, beside both testbeds' of 2024."""
    rows = []
    for run, cell in cells:
        our, (low, high) = measured(run, "c_by_halvings"), _chance(run)
        name, mine, *theirs = _row(
            run, our, [cell.value(t, "c_by_halvings") for t in (CLOUDLAB, FABRIC)]
        )
        reach = f"{Number(low * our)} to {Number(high * our)}"
        rows.append((name, mine, reach, _each(run), *theirs))
    f.testbed_c = table((*HEADINGS[:2], "by chance", "halvings per flow", *HEADINGS[2:]), rows)
    for label, names in (("settled", None), ("up_to_1_gbit", UP_TO_1_GBIT)):
        chosen = [
            (measured(run, "c_by_halvings"), cell)
            for run, cell in cells
            if (set_cell(run) in names if names else not _unsettled(run))
        ]
        apart = [abs(c / cell.value(CLOUDLAB, "c_by_halvings") - 1) for c, cell in chosen]
        setattr(f, f"testbed_c_{label}", Number(len(chosen)))
        setattr(f, f"testbed_c_{label}_apart", percent(max(apart), 2))
    both = [cell.value(t, "c_by_halvings") for _, cell in cells for t in (CLOUDLAB, FABRIC)]
    f.testbed_c_span = percent(max(both) / min(both) - 1, 2)
    few = [(run, cell) for run, cell in cells if set_cell(run) in UP_TO_1_GBIT]
    f.testbed_fabric_apart = percent(
        max(abs(measured(run, "c_by_halvings") / cell.value(FABRIC, "c_by_halvings") - 1) for run, cell in few),
        2,
    )  # fmt: skip
    f.testbed_c_agrees = f.testbed_c_up_to_1_gbit_apart.value < 1.1
    unsettled = [run for run, _ in cells if _unsettled(run)]
    f.unsettled_c = Numbers(tuple(measured(run, "c_by_halvings") for run in unsettled))
    f.unsettled_pooled = Numbers(tuple(map(pooled_c, unsettled)))
    f.unsettled_each = Numbers(tuple(_each(run).value for run in unsettled), digits=2)
    f.unsettled_are_core_far = {set_cell(run) for run in unsettled} == set(FAR[2:])
    f.testbed_c_drops = _beside(
        cells,
        lambda run: measured(run, "c_by_drops"),
        lambda cell, testbed: cell.value(testbed, "c_by_drops"),
    )
    f.testbed_c_retransmissions = _beside(
        cells,
        lambda run: measured(run, "c_by_retransmits"),
        lambda cell, testbed: cell.value(testbed, "c_by_retransmissions"),
    )


def _losses(f: Facts, cells: Sequence[tuple[Result, Published]]) -> None:
    """Reno alone, a run of each cell: drops for each halving after the warm-up; and what they would be if counted from the
    start for as long as CloudLab's runs lasted, computed from the start's own and the steady rates of each."""
    rows: list[tuple[Cell, ...]] = []
    apart = []
    for run, cell in cells:
        theirs = [cell.drops_each(testbed) for testbed in (CLOUDLAB, FABRIC)]
        as_long = _as_long(run, cell.value(CLOUDLAB, "lasts_s"))
        apart.append(as_long / theirs[0])
        rows.append((
            _name(run), Number(measured(run, "drops_per_halving")), Number(as_long), Number(theirs[0]),
            Number(as_long / theirs[0]), Number(theirs[1]),
        ))  # fmt: skip
    f.testbed_drops = table(
        ("cell", "here, after the warm-up", f"from the start, for as long as {CLOUDLAB}", CLOUDLAB,
         f"from the start / {CLOUDLAB}", FABRIC),
        rows,
    )  # fmt: skip
    f.as_long_of_cloudlab = Numbers(tuple(apart))
    core = next(cell for run, cell in cells if set_cell(run) == "core-long")
    f.fabric_core_resent = Number(
        core.value(FABRIC, "retransmissions") / core.value(FABRIC, "drops"), digits=2
    )
    long = next(run for run, _ in cells if set_cell(run) == "core-long")
    start = measured(long, "all_queue_drops") - measured(long, "queue_drops")
    f.core_overshoot = whole(start)
    f.cloudlab_core_drops = whole(core.value(CLOUDLAB, "drops"))
    f.core_overshoots_more = start > core.value(CLOUDLAB, "drops")
    fabric = {set_cell(run): cell.drops_each(FABRIC) for run, cell in cells}
    by_flows = sorted(
        (param(run, "flows"), fabric[set_cell(run)])
        for run, _ in cells
        if param(run, "rtt_ms") == 20
    )
    f.fabric_drops_fall_with_flows = all(
        more < fewer for (_, fewer), (_, more) in pairwise(by_flows)
    )
    equal = [
        _name(run)
        for run, cell in cells
        if cell.value(CLOUDLAB, "retransmissions") == cell.value(CLOUDLAB, "drops")
    ]
    f.cloudlab_resends_each_drop_once = Number(len(equal))
    f.cells = Number(len(cells))


def _how_often(f: Facts, cells: Sequence[tuple[Result, Published]]) -> None:
    """Reno alone, a run of each cell: halvings a second of all flows, and what the testbeds' larger buffers do to them."""
    f.testbed_halvings = _beside(
        cells,
        lambda run: measured(run, "halvings") / measured(run, "duration_s"),
        lambda cell, testbed: cell.value(testbed, "halvings") / cell.value(testbed, "lasts_s"),
    )
    f.mib_more = percent(MIB_OVER_MB - 1, 2)
    run, cell = cells[0]
    longer = 1 + (MIB_OVER_MB - 1) * measured(run, "queue_delay_mean_ms") / measured(
        run, "rtt_mean_ms"
    )
    f.mib_halvings_fewer = percent(1 - longer**-2, 2)
    of_cloudlab = cell.value(CLOUDLAB, "halvings") / cell.value(CLOUDLAB, "lasts_s")
    f.edge_halvings_fewer = percent(
        1 - of_cloudlab * measured(run, "duration_s") / measured(run, "halvings"), 2
    )
    middle = next(cell for run, cell in cells if set_cell(run) == "intermediate")
    sent_bps = 1514 * 8 * middle.value(CLOUDLAB, "sent_packets") / middle.value(CLOUDLAB, "lasts_s")
    f.intermediate_sent = Number(sent_bps / 1e9, "Gbit/s")
    core = next(cell for run, cell in cells if set_cell(run) == "core-long")
    f.core_carried = Numbers(
        tuple(core.value(testbed, "goodput_kbps") / 1e6 for testbed in (CLOUDLAB, FABRIC)), "Gbit/s"
    )


def _own_edge(f: Facts, sets: RecordedSets, cell: Published) -> None:
    """Ten Reno flows at edge, ten short runs: how far single ones lie apart, and CloudLab's value."""
    with_offloads = sets.run("core-offloads-on", RENO)
    f.offloads_start = whole(
        measured(with_offloads, "all_queue_drops") - measured(with_offloads, "queue_drops")
    )
    runs = sets.runs("edge-ten-times", RENO)
    each = [_each(run).value for run in runs]
    f.testbed_ten_each = Numbers(tuple(each), digits=2)
    f.testbed_ten_c = Interval.of_mean([measured(run, "c_by_halvings") for run in runs])
    f.cloudlab_c_is_inside_ten = cell.value(CLOUDLAB, "c_by_halvings") in f.testbed_ten_c
    f.testbed_ten_drops = Interval.of_mean([measured(run, "drops_per_halving") for run in runs])


def _fairness(f: Facts, sets: RecordedSets, fairness: Mapping[tuple[str, ...], Published]) -> None:
    """Each algorithm alone, a run of each cell: Jain's index beside both testbeds' of 2024, and how long each was counted."""
    for algorithm, trial in ALGORITHMS.items():
        rows: list[tuple[Cell, ...]] = []
        for name in CELLS_OF_RENO if algorithm == "reno" else CELLS:
            run = sets.run(name, trial, seed=1)
            cell = fairness[_key(run, algorithm)]
            rows.append((
                _name(run), seconds(measured(run, "duration_s"), 2),
                Number(measured(run, "jains_index"), digits=4),
                *(
                    shown
                    for testbed in (CLOUDLAB, FABRIC)
                    for shown in (
                        seconds(cell.value(testbed, "lasts_s")),
                        Number(cell.value(testbed, "index"), digits=4),
                    )
                ),
            ))  # fmt: skip
        setattr(
            f,
            f"testbed_index_{algorithm}",
            table(("cell", "counted here", "here", "counted", CLOUDLAB, "counted", FABRIC), rows),
        )
    core = [fairness[_key(sets.run(name, BBR), "bbr")] for name in ("core", *FAR[2:])]
    for testbed in (CLOUDLAB, FABRIC):
        indices = tuple(cell.value(testbed, "index") for cell in core)
        setattr(f, f"bbr_core_{testbed.lower()}", Numbers(indices, digits=4))


def _evenness(
    f: Facts,
    cells: Sequence[tuple[Result, Published]],
    fairness: Mapping[tuple[str, ...], Published],
) -> None:
    """Reno alone, a run of each cell: what is missing to an index of 1, times the halvings of a flow."""
    rows: list[tuple[Cell, ...]] = []
    ours, of_testbeds, larger = [], [], []
    for run, cell in cells:
        flows, indices = param(run, "flows"), fairness[_key(run, "reno")]
        missing = (1 - measured(run, "jains_index")) * _each(run).value
        theirs = [
            (1 - indices.value(t, "index")) * cell.value(t, "halvings") / flows for t in cell.rows
        ]
        rows.append((_name(run), *(Number(value, digits=2) for value in (missing, *theirs))))
        if not _unsettled(run):
            ours.append(missing)
        of_testbeds.append(theirs)
        larger.append(min(theirs) > missing)
    f.testbed_evenness = table(("cell", "here", CLOUDLAB, FABRIC), rows)
    f.evenness_here = Numbers(tuple(ours), digits=2)
    f.evenness_cloudlab, f.evenness_fabric = (
        Numbers(of_one, digits=2) for of_one in zip(*of_testbeds, strict=True)
    )
    f.testbeds_are_less_even = all(larger)
    core = next(run for run, _ in cells if set_cell(run) == "core-long")
    f.core_misses = Number((1 - measured(core, "jains_index")) * _each(core).value, digits=2)
    needed = f.core_misses.value / 0.01
    f.core_needs_each = Number(needed, digits=2)
    f.core_needs = seconds(needed * measured(core, "duration_s") / _each(core).value, 2)


def _each(run: Result) -> Number:
    return Number(measured(run, "halvings") / measured(run, "flows"))


def _unsettled(run: Result) -> bool:
    """Return whether a run's flows had so few halvings each that slow start is most of what is counted."""
    return _each(run).value < SETTLED_AFTER


def _chance(run: Result) -> tuple[float, float]:
    return ratio_bounds(measured(run, "halvings")) or (0, 0)


def _as_long(run: Result, lasts_s: float) -> float:
    """Return drops for each halving from the start on, in a run of lasts_s that goes on as it did after its warm-up."""
    drops, halvings = (
        (
            measured(run, f"all_{name}") - measured(run, name),
            measured(run, name) / measured(run, "duration_s"),
        )
        for name in ("queue_drops", "halvings")
    )
    return (drops[0] + drops[1] * lasts_s) / (halvings[0] + halvings[1] * lasts_s)
