"""What was measured of the kit itself, by name, for pages that are no lab's: `{{ f.honest_runs }}`.

Each of its records stands in a file that a command writes: the browser's machine with a stopwatch, both machines compared,
sweeps that were killed, runs that were broken on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.facts import Facts, Number, Table, percent, table, whole
from measuretwice.facts.values import Cell
from measuretwice.site.witnesses import (
    NS3,
    SELFTESTS,
    STOCK,
    WITNESS,
    set_ns3,
    set_selftests,
    set_stock,
    set_witness,
)

STOPWATCH = "sample-data/browser-stopwatch.json"
BOTH_MACHINES = "sample-data/browsers-machine.json"
KILLED = "sample-data/reliability.json"
FAULTS = "docs/includes/checker-faults.json"
# A lab's interval leaves 1 out by chance that often.
OUT_BY_CHANCE = 0.05
# Faults of which only those count that changed a result or a figure by more than a twentieth, by their group in the record.
SCRIPTS = {
    "scripts": "faults in node scripts that changed a result",
    "swaps": "a file swapped for another run's, where that changed a figure",
}
# How files that nobody here had seen were judged: a table each, with the case, a word and why.
FOREIGN = {
    "handed_over.tsv": "handed over by a reviewer, after the faults they revealed were fixed",
    "unseen_first_try.tsv": "never seen before, at first try",
    "unseen_second_try.tsv": "others, after some of the faults revealed by these were fixed",
    "unseen_third_try.tsv": "others again, after the rest were fixed",
    "unseen_fourth_try.tsv": "mostly what plain searches found first",
    "unseen_fifth_try.tsv": "found in the same way, after many of these faults were fixed",
}
# What is said of the others, each with what counts as it.
NOT_RIGHT = {
    "unclear": ("unclear", "note?"),
    "refused": ("refused",),
    "silent": ("silent",),
    "wrong": ("wrong", "crash"),
}
VERDICTS = ("right", "said", "silent", "honest", "blamed")


def kit_facts(root: Path) -> Facts:
    """Return the facts of those records that are there; UserError for one that can't be read."""
    f = Facts()
    for name, add in RECORDS.items():
        path = root / name
        if not path.is_file():
            continue
        try:
            add(f, read_object(path))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{path}: {error}; take it from git again") from None
    judged = [
        row
        for name, called in FOREIGN.items()
        for row in _judged(root / "tests/faults" / name, called)
    ]
    if judged:
        f.foreign_files = table(
            ("other people's files", "inputs", "right", "share", *NOT_RIGHT), judged
        )
    return f


def _judged(path: Path, called: str) -> Iterator[tuple[Cell, ...]]:
    """Yield how many inputs of a table were judged right; nothing without one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    words = [
        line.split("\t")[1]
        for line in lines
        if line.count("\t") >= 2 and line.split("\t")[1] != "verdict"
    ]
    if words:
        right = words.count("right")
        others = (whole(sum(word in group for word in words)) for group in NOT_RIGHT.values())
        yield called, whole(len(words)), whole(right), percent(right / len(words), 2), *others


def _stopwatch(f: Facts, record: Mapping[str, Any]) -> None:
    """How long pages take to fetch and to run, from `benchmarks/browser.py --record`."""
    fetched = sum(record["bytes"].values())
    f.page_fetches = Number(fetched / 1e6, "MB", 2)
    f.kernel_is = Number(record["bytes"]["machine"] / 1e6, digits=2)
    f.fetched_at_20_mbit = Number(8 * fetched / 20e6, "s", 2)
    f.stopwatch_processor = str(record["processor"])
    f.looked_for = Number(record["look_s"], "s")
    compared = record["terminal"][0]
    f.compared_run = (
        f"trial {compared['trials']} of {compared['lab'].capitalize()} for "
        f"{compared['changes']['duration_s']} s"
    )
    f.terminal_takes = Number(compared["whole_s"], "s", 2)
    of_browser = {}
    for browser, rows in record["browsers"].items():
        [of_browser[browser]] = (
            row["whole_s"]
            for row in rows
            if (row["lab"], row.get("trials")) == (compared["lab"], compared["trials"])
        )
        setattr(f, f"{browser.lower()}_takes", Number(of_browser[browser], "s"))
        setattr(f, f"{browser.lower()}_fetches_in", Number(rows[0]["fetch_s"], "s", 2))
    f.pages_are_slower = min(of_browser.values()) > compared["whole_s"]
    f.stopwatch = table(
        ("run", "browser", "start", "run", "whole", "again"),
        (
            (
                _run_of(row), browser, Number(row["start_s"], digits=2), Number(row["run_s"]),
                Number(row["whole_s"]), Number(row["again_s"]) if "again_s" in row else "",
            )
            for browser, rows in record["browsers"].items()
            for row in rows
        ),
    )  # fmt: skip


def _run_of(row: Mapping[str, Any]) -> str:
    trials = str(row.get("trials", ""))
    which = (
        f"case {row['case']}"
        if "case" in row
        else f"trial{'s' * (',' in trials)} {trials.replace(',', ' and ')}"
    )
    changes = "".join(f", `{name}={value}`" for name, value in row["changes"].items())
    return f"{row['lab'].capitalize()}, {which}{changes}"


def _both_machines(f: Facts, record: Mapping[str, Any]) -> None:
    """Goodput in the browser's machine over that in the virtual kernel, from `make both-machines`."""
    f.both_machines = table(
        ("lab", "runs", "length", "mean ratio", "95 % interval"),
        (
            (
                lab, whole(len(row["pairs"])), _length_of(row),
                Number(row["ratio"], digits=3 if row["ratio"] < 1 else 4), _ends(row),
            )
            for lab, row in record.items()
        ),
    )  # fmt: skip
    left_out = [lab for lab, row in record.items() if not _holds_1(row)]
    f.only_variants_leaves_1_out = left_out == ["variants"]
    f.compared_labs = whole(len(record))
    f.one_leaves_1_out_by_chance = percent(1 - (1 - OUT_BY_CHANCE) ** len(record), 2)
    variants = record["variants"]
    far = sorted((_off(pair), pair["trial"], _of(pair)) for pair in variants["pairs"])
    f.variants_runs = whole(len(far))
    *others, last = (f"trial {trial} ({Number(ratio, digits=2)})" for _, trial, ratio in far[:3])
    f.variants_furthest = f"{', '.join(others)} and {last}"
    again = variants["again"]
    seeds = [pair["seed"] for pair in again["pairs"]]
    f.again_trials = str(again["trials"])
    f.again_seeds = f"{min(seeds)} to {max(seeds)}"
    f.again_runs = whole(len(again["pairs"]))
    f.again_ratio, f.again_ends = f"{again['ratio']:.3f}", _ends(again)
    f.again_holds_1 = _holds_1(again)


def _length_of(row: Mapping[str, Any]) -> Cell:
    """How long each of the runs is, and with which settings."""
    length = Number(row["duration_s"], "s")
    changes = "".join(f", `{change}`" for change in row["changes"])
    return f"{length}{changes}" if changes else length


def _ends(row: Mapping[str, Any]) -> str:
    """The interval of a ratio, to three decimals on both sides of 1."""
    return f"{row['low']:.3f} to {row['high']:.3f}"


def _holds_1(row: Mapping[str, Any]) -> bool:
    return bool(row["low"] <= 1 <= row["high"])


def _of(pair: Mapping[str, Any]) -> float:
    return float(pair["browser_bps"] / pair["virtual_bps"])


def _off(pair: Mapping[str, Any]) -> float:
    """How far from 1 a pair's ratio is: 1 for the same, less for either side."""
    return min(_of(pair), 1 / _of(pair))


def _killed(f: Facts, record: Mapping[str, Any]) -> None:
    """What became of sweeps that were killed, from `make torture`."""
    f.killed_on = datetime.fromisoformat(record["recorded"]).strftime("%d %B %Y").lstrip("0")
    f.killed_on_cpus = whole(record["machine"]["cpus"])
    f.killed_sweep = " ".join(record["sweep"])
    f.killed = table(
        ("what was done", "came out as it should"),
        ((case["what"], whole(case["good"], f"of {case['times']}")) for case in record["cases"]),
    )
    f.said_when_killed = "\n\n".join(
        f"{case['what'][0].upper()}{case['what'][1:]}:\n\n```text\n" + "\n".join(case["said"]) + "\n```"
        for case in record["cases"]
        if case["said"]
    )  # fmt: skip


def _faults(f: Facts, record: Mapping[str, Any]) -> None:
    """How many faults the checks find, from `make checker-faults`."""
    f.faults = table(
        ("which faults", "runs", "right", "said", "silent"),
        (
            (called.format(len(record[group])), *_counted(record[group].values()))
            for group, called in (
                ("known", "{} known kinds"),
                ("kept-first", "{} kept kinds, the first time, blind"),
                ("kept", "{} kept kinds, today"),
                ("later-first", "{} kinds kept later, the first time, blind"),
                ("later", "{} kinds kept later, today"),
                ("review", "runs that a reviewer had broken"),
            )
        ),
    )
    f.fault_runs = whole(
        sum(
            _counted(record[group].values())[0].value
            for group in ("known", "kept", "honest", "later", "review")
        )
    )
    f.blind_runs = _counted(record["kept-first"].values())[0]
    f.blind_runs_later = _counted(record["later-first"].values())[0]
    f.honest_runs = _counted(record["honest"].values())[0]
    f.no_honest_run_is_blamed = not any(kind.get("blamed") for kind in record["honest"].values())
    f.known_faults, f.kept_faults, f.faults_kept_later = (
        _kinds(record[group]) for group in ("known", "kept", "later")
    )
    f.script_faults = table(
        ("what was changed", "runs", "right", "said", "silent"),
        (
            (called, *_counted(record[group].values()))
            for group, called in SCRIPTS.items()
            if group in record
        ),
    )
    odd = record.get("odd", {})
    f.odd_runs = _counted(odd.values())[0]
    f.no_odd_run_is_blamed = bool(odd) and not any(lab.get("blamed") for lab in odd.values())
    f.odd_runs_too_short = whole(
        sum(
            lab["raised"].get(name, 0)
            for lab in odd.values()
            for name in ("duration", "ten-seconds")
        )
    )
    f.reviewed_faults = table(
        ("what was broken", "found", "findings"),
        (
            (what, next((word for word in ("right", "said") if row.get(word)), "**silent**"), _findings(row))
            for what, row in record["review"].items()
        ),
    )  # fmt: skip


def _counted(rows: Iterable[Mapping[str, Any]]) -> list[Number]:
    """How many runs there are, and how many of each verdict."""
    kinds = list(rows)
    counts = [sum(kind.get(verdict, 0) for kind in kinds) for verdict in VERDICTS]
    return [whole(sum(counts)), *map(whole, counts[:3])]


def _kinds(group: Mapping[str, Any]) -> Table:
    """A row a kind of fault: its runs by verdict, and the commonest findings."""
    return table(
        ("kind", "runs", "right", "said", "silent", "commonest findings"),
        (
            (f"{kind}: {row['says']}" if row.get("says") else kind, *_counted([row]), _findings(row))
            for kind, row in group.items()
        ),
    )  # fmt: skip


def _findings(row: Mapping[str, Any]) -> str:
    return ", ".join([finding for finding in row["raised"] if finding != "nothing"][:3])


# By file, what sets its facts.
RECORDS = {
    STOPWATCH: _stopwatch, BOTH_MACHINES: _both_machines, KILLED: _killed, FAULTS: _faults,
    WITNESS: set_witness, NS3: set_ns3, STOCK: set_stock, SELFTESTS: set_selftests,
}  # fmt: skip
