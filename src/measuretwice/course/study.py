"""A study's plan, plan.toml: what is asked, compared and decided, written before the runs, and what it says of a run.

    STUDY/plan.toml      a student writes it
    STUDY/pilots/        runs made before the plan
    STUDY/runs/          the plan's runs

A plan may come from somebody else. It is data: its words are printed, and its settings are those of a lab or refused.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import stat
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Literal, cast, get_args

from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError, shortened, without_controls
from measuretwice.base.files import write_text
from measuretwice.lab import UNSET, Lab, Value, find_labs, load_lab, select_trials, trial_params
from measuretwice.measure.fields import CATALOGUE, known, unit_of
from measuretwice.runs.result import Result

PLAN_FILE = "plan.toml"
PILOTS, RUNS = "pilots", "runs"
TEMPLATE = Path(__file__).with_name("templates") / PLAN_FILE
MOST_BYTES = 2**20
MOST_RUNS = 10_000
LIKELY = 0.6
# What may stay empty; and what besides while pilots are still looked at.
OPTIONAL = frozenset({"author", "archive"})
OPEN = OPTIONAL | {
    "question",
    "claim",
    "source",
    "refuted_by",
    "runs.per_trial",
    "runs.reason",
    "analysis",
}
KEYS = {
    "": {"question", "claim", "source", "author", "archive", "lab", "quantity", "matters", "refuted_by", "a", "b", "runs", "analysis"},
    "a": {"name", "trials", "set"},
    "b": {"name", "trials", "set"},
    "runs": {"per_trial", "first_seed", "reason"},
    "analysis": {"compare", "confidence", "above", "below"},
}  # fmt: skip
NAME = re.compile(r"[a-z][a-z0-9_]*")
Compare = Literal["difference", "ratio", "mean"]
Verdict = Literal["holds", "doesn't hold", "can't tell"]


@dataclass(frozen=True)
class Expression:
    """A measured value, or sums and differences of them, one of which may be divided by another."""

    text: str
    upper: tuple[tuple[int, str], ...]
    lower: tuple[tuple[int, str], ...] = ()

    @property
    def names(self) -> list[str]:
        return [name for _, name in (*self.upper, *self.lower)]

    @property
    def unit(self) -> str:
        """The unit, where its values have one in common; nothing for a quotient, a count or a share."""
        units = {unit_of(name) for name in self.names}
        return units.pop() if len(units) == 1 and not self.lower else ""

    def value(self, result: Result) -> float | None:
        """Return a run's value; None where the run doesn't have all of it, or would divide by zero."""
        upper = _sum(self.upper, result)
        lower = _sum(self.lower, result) if self.lower else 1.0
        if upper is None or lower is None or lower == 0:
            return None
        value = upper / lower
        return value if math.isfinite(value) else None


def _sum(terms: Iterable[tuple[int, str]], result: Result) -> float | None:
    total = 0.0
    for sign, name in terms:
        value = result.value(name)
        if value is None:
            return None
        total += sign * value
    return total


def read_expression(text: str) -> Expression:
    """Read a quantity: `NAME`, `NAME - NAME`, `NAME + NAME / NAME`. UserError for another form and unknown names."""
    parts = text.split("/")
    if len(parts) > 2:
        raise UserError(f"quantity: {shortened(text)}: at most one / has a meaning here")
    sums = []
    for part in parts:
        words = part.split()
        if len(words) % 2 == 0 or any(word not in ("+", "-") for word in words[1::2]):
            raise UserError(
                f"quantity: {shortened(text)}: expected a measured value, or several with + or - between them, and spaces"
            )
        signs = [1, *(1 if word == "+" else -1 for word in words[1::2])]
        sums.append(tuple(zip(signs, words[::2], strict=True)))
    expression = Expression(" ".join(text.split()), *sums)
    for name in expression.names:
        if name != "ratio" and (not NAME.fullmatch(name) or not known(name)):
            near = difflib.get_close_matches(name, CATALOGUE, n=2, cutoff=LIKELY)
            hint = f"near it are {', '.join(near)}" if near else "./lab check RUN --json lists them"
            raise UserError(f"quantity: no measured value is called {shortened(name)}; {hint}")
    return expression


@dataclass(frozen=True)
class Setting:
    """One of the settings that are compared: A or B, the trials that it is measured in, and what is set in them."""

    letter: str
    name: str
    trials: tuple[int, ...]
    changes: dict[str, Value]

    @property
    def title(self) -> str:
        return f"{self.letter} {self.name}"


@dataclass(frozen=True)
class Rule:
    """How a study is decided: what is compared, with which interval, between which limits a claim holds."""

    compare: Compare
    confidence: float
    above: float | None
    below: float | None

    @property
    def estimate(self) -> str:
        return {"difference": "B - A", "ratio": "B / A", "mean": "the mean of A"}[self.compare]

    @property
    def region(self) -> str:
        """Return in words where the interval has to lie."""
        if self.above is not None and self.below is not None:
            return f"between {self.above:g} and {self.below:g}"
        return f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"

    @property
    def in_words(self) -> str:
        percent = f"{100 * self.confidence:g}"
        return (
            f"the claim holds if the whole {percent} % interval of {self.estimate} lies {self.region}; it doesn't hold if "
            "the whole interval lies outside; otherwise nobody can tell"
        )

    def judge(self, low: float, high: float) -> Verdict:
        """Return what an interval says."""
        above = -math.inf if self.above is None else self.above
        below = math.inf if self.below is None else self.below
        if above < low and high < below:
            return "holds"
        return "doesn't hold" if high <= above or low >= below else "can't tell"


@dataclass(frozen=True)
class Study:
    """A plan that is complete, and its text as it was read."""

    text: str
    lab: Lab
    question: str
    claim: str
    source: str
    author: str
    archive: str
    quantity: Expression
    matters: float
    refuted_by: str
    settings: tuple[Setting, ...]
    per_trial: int
    first_seed: int
    reason: str
    rule: Rule

    @property
    def seeds(self) -> range:
        """The seeds of the plan's runs."""
        return range(self.first_seed, self.first_seed + self.per_trial)

    def planned(self, setting: Setting) -> list[tuple[int, int]]:
        """Return the trial and seed of each run that the plan has of a setting."""
        return [(trial, seed) for trial in setting.trials for seed in self.seeds]

    def setting_of(
        self, lab: str, trial: int, params: Mapping[str, Value], where: str = "virtual"
    ) -> Setting | None:
        """Return the setting that a run is of, by what its plan sets; None where it is of neither."""
        if lab != self.lab.name or trial not in self.lab.trials:
            return None
        edges = self.lab.file.topology.edges
        # Other places have no such cables and hosts: their plans leave them out.
        left_out = edges.parameters if edges and where not in ("virtual", "browser") else ()
        for setting in self.settings:
            if trial in setting.trials:
                wanted = trial_params(self.lab, trial, changes=setting.changes)
                names = (wanted.keys() | params.keys()) - set(left_out)
                if all(wanted.get(name) == params.get(name) for name in names):
                    return setting
        return None


def begin_study(root: Path, folder: Path, lab: str | None) -> Path:
    """Write the template of a plan; return its path. UserError where there is a plan already, or no such lab."""
    path = folder / PLAN_FILE
    if path.exists() or path.is_symlink():
        raise UserError(f"{path}: is there already, and stays as it is; name another folder")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; name a folder")
    name = load_lab(root, lab).name if lab else ""
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(lab=name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: can't be made ({error.strerror}); name another folder"
        ) from None
    write_text(path, text)
    return path


def read_text_of(path: Path, what: str) -> str:
    """Return the text of a study's file. UserError where it isn't there, is no plain file, too large, or no UTF-8."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{path}: not a plain file; it should be {what}")
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        begin = f"; ./lab plan new {path.parent} begins one" if path.name == PLAN_FILE else ""
        raise UserError(f"{path}: {error.strerror}{begin}") from None
    if len(data) > MOST_BYTES:
        raise UserError(f"{path}: larger than {MOST_BYTES >> 20} MiB; it should be {what}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UserError(f"{path}: isn't UTF-8; save it as plain text in UTF-8") from None


def read_study(root: Path, folder: Path, *, is_open: bool = False) -> Study:
    """Return the plan in a folder; `is_open` takes one whose words and number of runs aren't decided yet. UserError with the
    first thing that is missing or wrong, and how many others are."""
    path = folder / PLAN_FILE
    text = read_text_of(path, "a study's plan")
    study, problems = parse_study(root, text, may_lack=OPEN if is_open else OPTIONAL)
    if study is None:
        first, *others = problems
        more = f" (and {len(others)} more; ./lab plan freeze {folder} lists them)" if others else ""
        raise UserError(f"{path}: {first}{more}")
    return study


def parse_study(
    root: Path, text: str, *, may_lack: Collection[str] = OPTIONAL
) -> tuple[Study | None, list[str]]:
    """Return the plan that a text is; or None, and a line for each thing in it that is missing or wrong."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [
            f"not TOML: {shortened(error, 200)}; text has quotes around it, a number has none"
        ]
    except (ValueError, RecursionError):
        return None, ["not TOML that can be read; begin again with ./lab plan new"]
    reader = _Reader(document, may_lack)
    study = reader.study(root, text)
    return (None if reader.problems else study), reader.problems


class _Reader:
    """Reads a plan's fields, and gathers what is wrong with them."""

    def __init__(self, document: Mapping[str, object], may_lack: Collection[str]) -> None:
        self.problems: list[str] = []
        self.may_lack = may_lack
        self.tables: dict[str, Mapping[str, object]] = {"": document}
        for name in ("a", "b", "runs", "analysis"):
            table = document.get(name, {})
            if not isinstance(table, Mapping):
                self.problems.append(f"{name}: expected a table that begins with [{name}]")
                table = {}
            self.tables[name] = table
        for name, table in self.tables.items():
            for key in table:
                if key not in KEYS[name]:
                    near = difflib.get_close_matches(key, KEYS[name], n=1, cutoff=LIKELY)
                    hint = f"; did you mean {near[0]}?" if near else ""
                    self.problems.append(
                        f"{_named(name, shortened(key))}: no field of a plan{hint}"
                    )

    def study(self, root: Path, text: str) -> Study | None:
        question = self.words("", "question")
        if question and not question.rstrip().endswith("?"):
            self.problems.append("question: ask it as a question, with a question mark at its end")
        words = {key: self.words("", key) for key in ("claim", "source", "author", "archive", "refuted_by")}  # fmt: skip
        lab, quantity = self.lab(root), self.quantity()
        matters = self.number("", "matters")
        rule = self.rule()
        if matters is not None and rule:
            least = 1 if rule.compare == "ratio" else 0
            if matters <= least:
                self.problems.append(f"matters: expected more than {least}, got {matters:g}")
        settings = self.settings(lab, rule.compare if rule else "difference")
        per_trial = self.whole("runs", "per_trial", 1, MOST_RUNS)
        first_seed = self.whole("runs", "first_seed", 0, LAST_SEED - MOST_RUNS)
        reason = self.words("runs", "reason")
        if (
            self.problems
            or lab is None
            or quantity is None
            or matters is None
            or rule is None
            or per_trial is None
            or first_seed is None
        ):
            return None
        return Study(
            text=text,
            lab=lab,
            question=question,
            quantity=quantity,
            matters=matters,
            settings=settings,
            per_trial=per_trial,
            first_seed=first_seed,
            reason=reason,
            rule=rule,
            **words,
        )

    def words(self, table: str, key: str) -> str:
        value = self.tables[table].get(key, "")
        if not isinstance(value, str):
            self.problems.append(f"{_named(table, key)}: expected text in quotes")
            return ""
        if not value.strip() and _named(table, key) not in self.may_lack:
            self.problems.append(f"{_named(table, key)}: still empty")
        return without_controls(" ".join(value.split()))

    def number(self, table: str, key: str) -> float | None:
        value = self.tables[table].get(key, "")
        if value == "":
            self.problems.append(f"{_named(table, key)}: still empty")
            return None
        try:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError
            number = float(value)
            if not math.isfinite(number):
                raise ValueError
        except (ValueError, OverflowError):
            self.problems.append(
                f"{_named(table, key)}: expected a number without quotes, got {shortened(value)}"
            )
            return None
        return number

    def whole(self, table: str, key: str, low: int, high: int) -> int | None:
        if self.tables[table].get(key, "") == "" and _named(table, key) in self.may_lack:
            return low
        number = self.number(table, key)
        if number is None:
            return None
        if not number.is_integer() or not low <= number <= high:
            self.problems.append(
                f"{_named(table, key)}: expected a whole number from {low} to {high}, got {number:g}"
            )
            return None
        return int(number)

    def lab(self, root: Path) -> Lab | None:
        name = self.words("", "lab")
        if not name:
            return None
        if name not in find_labs(root):
            labs = ", ".join(find_labs(root))
            self.problems.append(f"lab: there is no lab {shortened(name)}; there are {labs}")
            return None
        return load_lab(root, name)

    def quantity(self) -> Expression | None:
        text = self.words("", "quantity")
        if not text:
            return None
        try:
            return read_expression(text)
        except UserError as error:
            self.problems.append(str(error))
            return None

    def rule(self) -> Rule | None:
        compare = self.words("analysis", "compare")
        if compare and compare not in get_args(Compare):
            self.problems.append(
                f"analysis.compare: expected difference, ratio or mean, got {shortened(compare)}"
            )
            return None
        confidence = self.number("analysis", "confidence")
        if confidence is not None and not 0.5 <= confidence < 1:
            self.problems.append(
                f"analysis.confidence: expected 0.5 or more and less than 1, such as 0.95, got {confidence:g}"
            )
            return None
        limits = {
            key: self.number("analysis", key)
            for key in ("above", "below")
            if self.tables["analysis"].get(key, "") != ""
        }
        if not limits and "analysis" in self.may_lack:
            limits = {"above": 0.0}
        if not limits:
            self.problems.append("analysis: give above, below, or both")
        above, below = limits.get("above"), limits.get("below")
        if above is not None and below is not None and above >= below:
            self.problems.append(
                f"analysis: above = {above:g} and below = {below:g} leave nothing between them"
            )
        if compare == "ratio":
            self.problems += [
                f"analysis.{key}: expected a factor above 0, got {limit:g}"
                for key, limit in limits.items()
                if limit is not None and limit <= 0
            ]
        if not compare or confidence is None or (above is None and below is None):
            return None
        return Rule(cast("Compare", compare), confidence, above, below)

    def settings(self, lab: Lab | None, compare: Compare) -> tuple[Setting, ...]:
        letters = ("a",) if compare == "mean" else ("a", "b")
        if compare == "mean" and "b" in self.tables[""]:
            self.problems.append('b: compare = "mean" is about setting A alone; remove [b]')
        settings = [self.setting(lab, letter) for letter in letters]
        read = tuple(setting for setting in settings if setting)
        if lab and len(read) == 2 and not self.problems and _overlap(lab, *read):
            self.problems.append("a, b: the two are the same trials with the same settings")
        return read

    def setting(self, lab: Lab | None, letter: str) -> Setting | None:
        name, trials = self.words(letter, "name"), self.words(letter, "trials")
        changes = self.tables[letter].get("set", {})
        if not isinstance(changes, Mapping):
            self.problems.append(
                f"{letter}.set: expected settings in braces, as {{ rate_mbit = 50 }}"
            )
            return None
        if lab is None or not trials:
            return None
        try:
            numbers = tuple(select_trials(lab, trials))
        except UserError as error:
            self.problems.append(f"{letter}.trials: {str(error).removeprefix('--trial ')}")
            return None
        values: dict[str, Value] = {}
        for key, value in changes.items():
            try:
                values[key] = _setting_value(lab, key, value, f"{letter}.set")
            except UserError as error:
                self.problems.append(str(error))
        return Setting(letter.upper(), name, numbers, values)


def _named(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def _setting_value(lab: Lab, name: str, value: object, where: str) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UserError(f"{where}: {shortened(name)}: expected a number, or a word in quotes")
    parameter = lab.file.parameters.get(name)
    if value == UNSET and parameter and parameter.default is None:
        return UNSET
    return lab.read_value(name, value, where)


def _overlap(lab: Lab, a: Setting, b: Setting) -> bool:
    """Return whether some run would be of both settings."""
    return any(
        trial_params(lab, trial, changes=a.changes) == trial_params(lab, trial, changes=b.changes)
        for trial in set(a.trials) & set(b.trials)
    )
