"""A table of faults and of what the checker said of them.

python confusion.py     prints the tables that were recorded last
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from measuretwice.base.files import write_json

# The tables that were recorded; the site's page reads them.
RECORD = Path(__file__).parents[2] / "docs" / "includes" / "checker-faults.json"
TITLES = {
    "known": "Kinds of faults that the checks were written with",
    "kept": "Kinds kept to judge the checks",
    "kept-first": "The same, when they judged for the first time",
    "later": "Kinds kept to judge the checks a second time",
    "later-first": "The same, when they judged for the first time",
    "review": "Runs that a reviewer broke",
    "honest": "Honest runs",
    "scripts": "Faults in node scripts that changed a result",
    "swaps": "Files of another run that changed a figure",
    "odd": "Honest runs with odd settings",
}
# Findings that say nothing against a run: it is short, and says so.
HARMLESS = frozenset({"duration"})
WORDS = ("right", "said", "silent", "honest", "blamed")
RAISED = 5


def verdict(causes: Collection[str] | None, found: Sequence[str]) -> str:
    """right, said (another cause, or `unexplained`), silent; of an honest run, which has no causes, honest or blamed."""
    telling = {name for name in found if name not in HARMLESS}
    if causes is None:
        return "blamed" if telling else "honest"
    if telling.union(found if "duration" in causes else ()) & {*causes}:
        return "right"
    return "said" if telling else "silent"


@dataclass
class FaultTable:
    """Of each kind, how often each verdict came, and how many runs each finding was raised in."""

    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    raised: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, name: str, verdict_name: str, found: Sequence[str]) -> None:
        self.verdicts[name][verdict_name] += 1
        self.raised[name].update(set(found) or {"nothing"})

    @property
    def sums(self) -> Counter[str]:
        return sum(self.verdicts.values(), Counter())

    @property
    def wrong(self) -> int:
        """Runs whose fault was passed over, and honest ones that were blamed."""
        return self.sums["silent"] + self.sums["blamed"]

    def __str__(self) -> str:
        lines = [f"{'':28} {'runs':>5} {' '.join(f'{word:>7}' for word in WORDS)}  findings"]
        for name, counts in [*sorted(self.verdicts.items()), ("all", self.sums)]:
            cells = " ".join(f"{counts[word] or '':>7}" for word in WORDS)
            ids = ", ".join(
                f"{finding} {n}" for finding, n in self.raised[name].most_common(RAISED)
            )
            lines.append(f"{name:28} {counts.total():5} {cells}  {ids}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            name: {**_plain(counts, WORDS), "raised": dict(self.raised[name].most_common())}
            for name, counts in sorted(self.verdicts.items())
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Mapping[str, Any]]) -> Self:
        table = cls()
        for name, row in content.items():
            table.verdicts[name] = Counter({word: row[word] for word in WORDS if word in row})
            table.raised[name] = Counter(row["raised"])
        return table


def record(
    path: Path,
    tables: Mapping[str, FaultTable],
    says: Mapping[str, str],
    *,
    some_kinds: bool = False,
) -> None:
    """Keep these tables; of others that the file has, it keeps what it had. `says` are what a checker should say of a kind.

    With `some_kinds`, a table's other kinds keep their rows too. The first tables of the kept kinds stay beside all later ones.
    """
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for group, table in tables.items():
        rows = table.to_json()
        for name in rows:
            if name in says:
                rows[name]["says"] = says[name]
        if some_kinds:
            rows = dict(sorted({**document.get(group, {}), **rows}.items()))
        document[group] = rows
    for judging in document.keys() & {"kept", "later"}:
        document.setdefault(f"{judging}-first", document[judging])
    write_json(path, document)


def _plain(counts: Mapping[str, int], words: Sequence[str]) -> dict[str, int]:
    return {word: counts[word] for word in words if counts[word]}


if __name__ == "__main__":
    for group, rows in json.loads(RECORD.read_text(encoding="utf-8")).items():
        print(f"{TITLES[group]}\n\n{FaultTable.from_json(rows)}\n")
