"""Evidence of whose run it is: does its folder agree with itself, and which files are of one test?

A folder has its seed and settings in five places, and who rewrites a plan seldom rewrites
provenance.json, result.json, the script and the folder's name with it. All these are untrusted:
they are compared with what follows from the plan, and never used.

Two tests of different seeds share few long numbers; of one test nearly all are shared, also after
somebody has written another cookie, port or time into it. So a file's sketch is made of its long
numbers in order, without times of day: the smallest hashes of rows of them (Broder, "On the
resemblance and containment of documents", 1997).
"""

from __future__ import annotations

import hashlib
import heapq
import re
import shlex
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from measuretwice.backends import REPEATING
from measuretwice.backends.script import environment, plain_exports
from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.grading.submission import Agreement, Contents, Sketch
from measuretwice.lab import Lab, Plan, Value, kernel_seed, with_unlisted
from measuretwice.parse import ParseError, parse_tc_qdiscs
from measuretwice.runs.folder import ARCHIVE, PLAN, PROVENANCE, RESULT, command_again, raw_files
from measuretwice.runs.recorded import read_set, set_folders
from measuretwice.runs.remeasure import RunData
from measuretwice.runs.result import code_digest
from measuretwice.runs.unpack import printable

MAX_NAMES = 3

SCRIPT = "experiment.sh"
MAX_SCRIPT_BYTES = 2**20
_FOLDER = re.compile(r"-seed([0-9]+)-([0-9a-f]{8})$")
_SCRIPT_HEAD = re.compile(r"^# \S+, trial ([0-9]+), seed ([0-9]+):", re.MULTILINE)
_EXPORT = re.compile(r"^export ([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)
_CLIENT = b'"connecting_to"'
_PORT = re.compile(rb'"local_port":\s*([0-9]+)')
_SS_PORT = re.compile(rb"\S+:([0-9]+) +\S+:[0-9]+ ")
_OPTIONS = ("--trial", "--pitfall", "--stage", "--case", "--set", "--show-me")

# iperf3 draws it for each test, from the system's randomness: two tests don't have the same.
COOKIE = re.compile(rb'"cookie":\s*"([a-z2-7]{16,64})"')
# With so many random losses two seeds have little in common; with fewer, all that lies between them.
MIN_LOSSES = 50
# Enough to estimate the share of common rows to some four percent.
SKETCH_SIZE = 128
# Consecutive numbers in a row: a single one may be one of few that a tool can print.
ROW_NUMBERS = 3
# With fewer rows a file says too little of its test.
MIN_ROWS = 40
# Files are of one test from this share of common rows on. Of two seeds it was an eighth at most,
# in every case of every lab.
MIN_LIKENESS = 0.5
_NUMBER = re.compile(rb"[0-9][0-9.]{7,}")
# tcpdump's output: sequence numbers from 0 on are the same for every seed.
_CAPTURE = re.compile(rb"\A[^\n]* > [^\n]*(?:: tcp|Flags \[|length)")
# Seconds since 1970 with a fraction: the first thing that somebody shifts, and the same for all in virtual time.
_TIME = re.compile(rb"[0-9]{10}\.[0-9]+")

# Shorter answers may be the same by chance.
MIN_WORDS = 12
# Rows of so many words are compared; alike answers share at least this part of them.
ROW_WORDS = 4
MIN_SAME_WORDS = 0.7
_WORD = re.compile(r"[^\W\d_]+")
# Lines of a tool's output: indented or fenced, as Markdown has it.
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)

WordRows = frozenset[tuple[str, ...]]


def few(names: Sequence[str]) -> str:
    """Return some of the names, and how many more there are."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


# A folder against its own plan


def find_agreement(data: RunData, folder: Path) -> Agreement:
    """Compare the seeds and settings that a run's folder names with its plan."""
    plan = data.plan
    result = _read_json(folder / RESULT)
    script = _read_script(folder / SCRIPT)
    head, name = _SCRIPT_HEAD.search(script), _FOLDER.search(data.name)
    command = re.search(
        r"--seed[ =]([0-9]{1,20})\b", str((data.provenance or {}).get("command", ""))
    )
    seeds = {
        PROVENANCE: _whole(int(command[1])) if command else None,
        RESULT: _whole(result.get("seed")),
        SCRIPT: _whole(int(head[2][:20])) if head else None,
        "the folder's name": _whole(int(name[1][:20])) if name else None,
    }
    planned_seed = _whole(_read_json(folder / PLAN).get("kernel_seed"))
    contradictions = [
        *_provenance_contradictions(data),
        *(_result_contradictions(plan, result) if result else ()),
        *_script_contradictions(plan, script),
        *(
            ["the folder's name has another plan's digest"]
            if name and name[2] != plan.digest
            else []
        ),
        *_port_contradictions(folder / "raw"),
    ]
    return Agreement(
        {where: seed for where, seed in seeds.items() if seed not in (None, plan.seed)},
        planned_seed if planned_seed not in (None, plan.kernel_seed) else None,
        tuple(contradictions),
        _edited_values(data, result),
        printable(result.get("derived_by", ""))[:16],
        result.get("derived_by") == code_digest(data.lab.folder),
        tuple(file for file in (PROVENANCE, RESULT, SCRIPT) if not (folder / file).is_file()),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return with_unlisted(read_object(path))
    except (OSError, ValueError, RecursionError, TypeError):
        return {}


def _read_script(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > MAX_SCRIPT_BYTES:
        return ""
    return plain_exports(path.read_text(encoding="utf-8", errors="replace"))


def _whole(value: object) -> int | None:
    """Return a seed; -1 for a number that can't be one, None for what is no whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 2**63 else -1


def _provenance_contradictions(data: RunData) -> Iterator[str]:
    plan, provenance = data.plan, data.provenance
    if provenance is None:
        return
    try:
        planned = _options(command_again(plan, data.lab, ""))
    except UserError:
        planned = None
    noted = _options(str(provenance.get("command", "")))
    if planned and noted and planned != noted:
        yield f"{PROVENANCE}'s command has other options than the plan's"
    kernel = provenance.get("kernel")
    if plan.where in REPEATING and isinstance(kernel, dict):
        # What decides a run's bytes; an older kit's kernel has one key for all.
        key = kernel.get("results_key") or kernel.get("key", "")
        named = (str(kernel.get("version", "")), str(key)[:16])
        if not all(part in plan.kernel for part in named):
            yield f"{PROVENANCE} names another kernel than the plan"
        if isinstance(kernel.get("programs"), dict) and kernel["programs"] != plan.tools:
            yield f"{PROVENANCE} names other versions of tools than the plan"
    if (provenance.get("edited") or None) != (plan.edited or None):
        yield f"{PROVENANCE} and the plan differ on whose node scripts they were"


def _options(command: str) -> list[tuple[str, str]] | None:
    """Return the options that decide what a command runs, but for the seed; None where it is no ./lab run.

    The seed is compared by itself: an older kit may have written it into its commands.
    """
    try:
        words = shlex.split(command.split(" --on ")[0])
    except ValueError:
        return None
    if words[:2] != ["./lab", "run"]:
        return None
    return sorted(
        (word, words[index + 1] if index + 1 < len(words) and word != "--show-me" else "")
        for index, word in enumerate(words)
        if word in _OPTIONS
    )


def _result_contradictions(plan: Plan, result: Mapping[str, Any]) -> Iterator[str]:
    for name in ("lab", "trial", "pitfall", "stage", "case"):
        if result.get(name) != getattr(plan, name):
            yield f"{RESULT} is of another {name}"
    params = result.get("params")
    if isinstance(params, dict) and params != plan.params:
        names = params.keys() | plan.params.keys()
        others = sorted(str(name) for name in names if params.get(name) != plan.params.get(name))
        yield f"{RESULT} has other settings than the plan: {_few_printable(others)}"


def _script_contradictions(plan: Plan, script: str) -> Iterator[str]:
    head = _SCRIPT_HEAD.search(script)
    if head and head[1] != str(plan.trial):
        yield f"{SCRIPT} is of another trial"
    planned = environment(plan)
    for name, value in _EXPORT.findall(script):
        if name in planned and not _same_setting(value, shlex.quote(planned[name])):
            yield f"{SCRIPT} has another {name}"


def _same_setting(value: str, planned: str) -> bool:
    """Return whether a script's variable is the plan's; an older one may have more digits of the same number."""
    try:
        return value == planned or float(value) == float(planned)
    except ValueError:
        return False


def _port_contradictions(raw: Path) -> Iterator[str]:
    """Yield a line where iperf3 and ss of one node didn't see one connection. Of two runs the ports differ."""
    for node in sorted(path for path in raw.glob("*") if path.is_dir()):
        outputs = [path.read_bytes() for path in sorted(node.glob("*.json"))]
        ports = {port for text in outputs if _CLIENT in text for port in _PORT.findall(text)}
        for log in sorted(node.glob("ss*.txt")):
            seen = set(_SS_PORT.findall(log.read_bytes()))
            if ports and seen and not ports & seen:
                yield f"{node.name}'s iperf3 and {log.name} have no connection in common"


def _edited_values(data: RunData, result: Mapping[str, Any]) -> str:
    """Return the names of values in result.json that the raw files don't hold; "" where there are none."""
    noted = result.get("measured")
    if not isinstance(noted, dict):
        return ""
    measured = data.result.measured
    return _few_printable(
        sorted(str(name) for name in noted if noted[name] != measured.get(name, noted[name]))
    )


def _few_printable(names: Sequence[str]) -> str:
    """Return some names of a stranger's; counted as they are, shortened where they are shown."""
    return few([printable(name)[:40] for name in names])


# Files of one test


def cookies_in(files: Iterable[Path]) -> set[str]:
    """Return iperf3's names of its tests, in whichever of the files they stand."""
    return {cookie.decode() for path in files for cookie in COOKIE.findall(path.read_bytes())}


def sketch(content: bytes) -> Sketch | None:
    """Return the sketch of a raw file; None where it has too few long numbers to tell it from others."""
    numbers = [text for text in _NUMBER.findall(content) if not _TIME.fullmatch(text)]
    rows = {
        b" ".join(row)
        for row in zip(*(numbers[start:] for start in range(ROW_NUMBERS)), strict=False)
    }
    if len(rows) < MIN_ROWS:
        return None
    return tuple(heapq.nsmallest(SKETCH_SIZE, set(map(zlib.crc32, rows))))


def sketches(lab: Lab, params: Mapping[str, Value], raw: Mapping[str, bytes]) -> dict[str, Sketch]:
    """Return the sketches of a run's raw files, by name; none of a run in which the seed decides too little."""
    if not _is_random(lab, params, raw):
        return {}
    by_name = {
        name: sketch(content) for name, content in raw.items() if not _CAPTURE.search(content)
    }
    return {name: hashes for name, hashes in by_name.items() if hashes}


def _is_random(lab: Lab, params: Mapping[str, Value], raw: Mapping[str, bytes]) -> bool:
    """Return whether chance is at work: hosts that take a random time, or random losses."""
    edges = lab.file.topology.edges
    if edges and params.get(edges.processing):
        return True
    for name, content in raw.items():
        if name.endswith("/qdisc.after.json"):
            try:
                qdiscs = parse_tc_qdiscs(content.decode(errors="replace"), name)
            except ParseError:
                continue
            # What a full queue dropped follows from the settings; and of packets that an offload made large, few are lost.
            losses = (
                min(q.drops or 0, (q.loss_ratio or 0) * (q.sent_packets or 0)) for q in qdiscs
            )
            if max(losses, default=0) >= MIN_LOSSES:
                return True
    return False


def likeness(first: Sketch, second: Sketch) -> float:
    """Estimate the share, 0 to 1, of two files' rows of numbers that are in both."""
    a, b = set(first), set(second)
    smallest = heapq.nsmallest(SKETCH_SIZE, a | b)
    return sum(number in a and number in b for number in smallest) / len(smallest)


def alike_groups(runs: Sequence[Mapping[str, Sketch]]) -> Iterator[tuple[str, list[int]]]:
    """Yield the name of a raw file and the indexes of the runs that have it of one test, by pairs or by others between them."""
    by_name: dict[str, dict[Sketch, set[int]]] = defaultdict(lambda: defaultdict(set))
    for index, run in enumerate(runs):
        for name, hashes in run.items():
            by_name[name][hashes].add(index)
    for name, group_by_sketch in by_name.items():
        hash_sets = {hashes: frozenset(hashes) for hashes in group_by_sketch}
        for a, b in combinations([*group_by_sketch], 2):
            if group_by_sketch[a] is group_by_sketch[b]:
                continue
            # The number of common hashes is a bound, and quicker to find.
            common = len(hash_sets[a] & hash_sets[b])
            if 2 * common < MIN_LIKENESS * min(len(a), len(b)) or likeness(a, b) < MIN_LIKENESS:
                continue
            joined = group_by_sketch[a] | group_by_sketch[b]
            for hashes, group in group_by_sketch.items():
                if group <= joined:
                    group_by_sketch[hashes] = joined
        for group in {min(group): group for group in group_by_sketch.values()}.values():
            if len(group) > 1:
                yield name, sorted(group)


# The course's own runs


@dataclass(frozen=True)
class RecordedTrace:
    """A recorded run: its set and name, the kernel's seed, its raw files' digests and sketches."""

    name: str
    kernel_seed: int
    files: dict[str, str]
    sketches: dict[str, Sketch]


@dataclass(frozen=True)
class Recorded:
    """A lab's recorded runs: digests of their raw files, trial and seed by iperf3's cookie, and traces of
    those whose raw files are kept."""

    digests: frozenset[str] = frozenset()
    tests: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    traces: tuple[RecordedTrace, ...] = ()


def read_recorded(root: Path, lab: Lab) -> Recorded:
    """Read what sample-data/ has of a lab; nothing where it has none."""
    digests: set[str] = set()
    tests: dict[str, tuple[int, int]] = {}
    traces = []
    for folder in set_folders(root / "sample-data" / lab.folder.name):
        for recorded in read_set(folder).runs:
            digests.add(recorded.raw_sha256)
            result = recorded.result
            if not (result.run_dir / ARCHIVE).is_file():
                continue
            raw = raw_files(result.run_dir)
            for content in raw.values():
                for cookie in COOKIE.findall(content):
                    tests[cookie.decode()] = (result.trial, result.seed)
            traces.append(
                RecordedTrace(
                    f"{folder.name}/{recorded.name}",
                    kernel_seed(lab.name, result.trial, result.seed),
                    {name: hashlib.sha256(content).hexdigest() for name, content in raw.items()},
                    sketches(lab, result.params, raw),
                )
            )
    return Recorded(frozenset(digests), tests, tuple(traces))


# Answers in the same words


def same_words(
    contents: Sequence[Contents], lab: str, questions: Mapping[str, int]
) -> dict[tuple[int, str], set[int]]:
    """Return by submission's index and answer ("question 3") the other submissions that have it in the same
    words, also where case, spaces, punctuation or numbers were changed. `questions` are numbers by text.
    """
    texts = [_texts(content, lab, questions) for content in contents]
    others: dict[tuple[int, str], set[int]] = defaultdict(set)
    for answer in dict.fromkeys(key for text in texts for key in text):
        holders = [index for index, text in enumerate(texts) if answer in text]
        for first, second in combinations(holders, 2):
            a, b = texts[first][answer], texts[second][answer]
            if len(a & b) >= MIN_SAME_WORDS * len(a | b):
                others[first, answer].add(second)
                others[second, answer].add(first)
    return dict(sorted(others.items()))


def _texts(content: Contents, lab: str, questions: Mapping[str, int]) -> dict[str, WordRows]:
    """Return a submission's texts that are long enough, by what they answer."""
    rows_by_text: dict[str, WordRows] = {}
    for question, answer in content.answers.items():
        if question in questions:
            quoted = content.cited.get(question, {})
            rows_by_text[f"question {questions[question]}"] = _word_rows(answer, quoted)
    for notes in content.books.get(lab, ()):
        rows_by_text[f"prediction of case {notes.case}"] = _word_rows(notes.prediction or "")
        rows_by_text[f"diagnosis of case {notes.case}"] = _word_rows(notes.diagnosis or "")
    return {answer: rows for answer, rows in rows_by_text.items() if rows}


def _word_rows(text: str, quoted: Iterable[str] = ()) -> WordRows:
    """Return the rows of a student's own words, without quoted output; none of a text that is too short."""
    for line in quoted:
        text = text.replace(line, " ")
    text = _INDENTED.sub(" ", _FENCED.sub(" ", text))
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    if len(words) < MIN_WORDS:
        return frozenset()
    return frozenset(
        tuple(words[start : start + ROW_WORDS]) for start in range(len(words) - ROW_WORDS + 1)
    )
