"""How far each claim's number moves with what isn't in the claim: a seed, the hosts' wait, the length, the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from measuretwice.facts import Facts, Interval, Number, RecordedSets, column, mean, table, us, whole
from measuretwice.facts.sets import param
from measuretwice.runs.result import Result

from .runs import BBR, BBR_IN_RENO, CUBIC_IN_RENO, OTHERS_WAIT, RENO
from .waits import MIXES_WAIT, USUAL, WAITS

# From which ratio of two values on the one has moved.
MOVED = 1.1
HEADINGS = (
    "what is measured", "ten seeds", "another wait of the hosts", "half an hour", "Linux in real time",
)  # fmt: skip
WITNESS = "witness.json"
# Of the witness's settings, those with ten flows, by what runs in them.
WITNESSED = {
    RENO: "ten Reno",
    CUBIC_IN_RENO: "five CUBIC among ten",
    BBR_IN_RENO: "one BBR among ten",
    BBR: "ten BBR",
}


@dataclass(frozen=True)
class Claim:
    """A measured value of one trial, and the set in which its hosts wait longer."""

    called: str
    name: str
    trial: int
    waiting: str
    percent: bool = False


CLAIMS = (
    Claim("drops for each halving (Reno)", "drops_per_halving", RENO, WAITS[-1]),
    Claim("C by drops (Reno)", "c_by_drops", RENO, WAITS[-1]),
    Claim("C by halvings (Reno)", "c_by_halvings", RENO, WAITS[-1]),
    Claim("Jain's index (Reno)", "jains_index", RENO, WAITS[-1]),
    Claim("Jain's index (BBR)", "jains_index", BBR, OTHERS_WAIT[0]),
    Claim("what five CUBIC flows take from five Reno flows (%)", "rival_share", CUBIC_IN_RENO, MIXES_WAIT, percent=True),
    Claim("what one BBR flow takes from nine Reno flows (%)", "rival_share", BBR_IN_RENO, MIXES_WAIT, percent=True),
)  # fmt: skip


def set_moves(f: Facts, sets: RecordedSets) -> None:
    """Set the table of ten flows at edge: a row a claim, a column for each thing that may move it."""
    witness = sets.kit_record(WITNESS)
    rows = [
        [claim.called, _ends(claim, sets.runs(USUAL, claim.trial)), _by_wait(claim, sets), _by_length(claim, sets),
         _by_kernel(claim, witness)]
        for claim in CLAIMS
    ]  # fmt: skip
    late_us = [late for setting in witness["settings"] for late in setting["late_mean_us"]]
    f.witness_wait = us(2 * sum(late_us) / len(late_us))
    f.moves = table(HEADINGS, rows)
    f.moved_by_wait, f.moved_by_length, f.moved_by_kernel = (
        whole(sum("**" in row[column_] for row in rows)) for column_ in (2, 3, 4)
    )
    f.unmoved = " and ".join(str(row[0]) for row in rows if not any("**" in cell for cell in row))
    f.claims_looked_at = whole(len(rows))
    f.claims_with_a_length = whole(sum(bool(row[3]) for row in rows))


def witnessed_shares(sets: RecordedSets, trial: int) -> tuple[Interval, Interval]:
    """Return what the rivals of a mix took in percent: by the machine's own kernel in real time, and by the virtual one."""
    for setting in sets.kit_record(WITNESS)["settings"]:
        if setting["setting"] == WITNESSED[trial]:
            (row,) = (row for row in setting["values"] if row["name"] == "rival_share")
            host, virtual = (
                Interval.of_mean([100 * part for part in row[where]], "%")
                for where in ("host", "virtual")
            )
            return host, virtual
    raise KeyError(WITNESSED[trial])


def _ends(claim: Claim, runs: Sequence[Result]) -> str:
    """Return the least and the most of single runs."""
    values = column(runs, claim.name)
    return _change(claim, min(values), max(values), "to")


def _by_wait(claim: Claim, sets: RecordedSets) -> str:
    """Return the means at both waits; of BBR alone two runs of half an hour."""
    waiting = sets.runs(claim.waiting, claim.trial)
    usual = sets.runs("edge-long" if claim.waiting in OTHERS_WAIT else USUAL, claim.trial)
    longest = us(param(waiting[0], "processing_us"))
    change = _change(claim, mean(usual, claim.name), mean(waiting, claim.name))
    return f"{change} at {longest}"


def _by_length(claim: Claim, sets: RecordedSets) -> str:
    """Return the mean of ten runs of three minutes, and one of half an hour; empty where there is none."""
    longer = sets.runs("edge-long", claim.trial)
    if not longer:
        return ""
    return _change(claim, mean(sets.runs(USUAL, claim.trial), claim.name), mean(longer, claim.name))


def _by_kernel(claim: Claim, witness: Mapping[str, Any]) -> str:
    """Return the virtual kernel's mean and the host's, of a smaller link; empty where that value wasn't compared."""
    for setting in witness["settings"]:
        if setting["setting"] == WITNESSED[claim.trial]:
            for row in setting["values"]:
                if row["name"] == claim.name:
                    return _change(claim, row["virtual_mean"], row["host_mean"])
    return ""


def _change(claim: Claim, first: float, second: float, word: str = "→") -> str:
    """Return two values, in bold where they are further apart than `MOVED`."""
    scale = 100 if claim.percent else 1
    text = f"{Number(scale * first)} {word} {Number(scale * second)}"
    return f"**{text}**" if max(first, second) > MOVED * min(first, second) else text
