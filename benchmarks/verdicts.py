"""Verdicts of Linux's own selftests, read from what they print, and compared between two kernels. Text in, values out.

Not to be run: selftests.py uses it, and tests/unit/test_verdicts.py holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# What a program ends with, by kselftest's convention (tools/testing/selftests/kselftest.h), and timeout(1)'s.
PASSED, SKIPPED = 0, 4
TIMED_OUT = (124, 137)

# KTAP: `ok 3 name # SKIP why`; a test within a test is printed behind `# ` or blanks.
_TAP = re.compile(r"^[#\s]*(?P<word>ok|not ok) +\d+ +(?:- +)?(?P<name>.*?)\s*$")
_DIRECTIVE = re.compile(r"\s*# *(?P<word>SKIP|XFAIL|TODO)(?:ped)?\b.*$", re.IGNORECASE)
# Shell tests: `TEST: name   [ OK ]`, and `    name    [FAIL]`.
_BRACKETS = re.compile(
    r"^\s*(?:TEST: *)?(?P<name>\S.*?)\s*\[ *(?P<word>OK|PASS|FAIL|SKIP|XFAIL|XPASS) *\]\s*$"
)
# ... `PASS: name`, `FAIL: name`, `SKIP: name`.
_COLON = re.compile(r"^\s*\[?(?P<word>PASS|ok|OK|FAIL|fail|SKIP|XFAIL)\]?: +(?P<name>\S.*?)\s*$")
# ... and `name    ok`, in columns.
_COLUMNS = re.compile(r"^\s*(?P<name>[^\s#].*?) {2,}(?P<word>ok|fail|FAIL|skip|SKIP)\b.*$")
_WORDS = {
    "ok": "pass",
    "pass": "pass",
    "xfail": "pass",
    "todo": "pass",
    "xpass": "fail",
    "not ok": "fail",
    "fail": "fail",
    "skip": "skip",
}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# What differs between two runs that say the same: process ids, moments, random names.
_VARYING = re.compile(r"\b(?:\d+(?:\.\d+)? ?(?:ns|us|ms|s|sec|seconds|MB/s|calls/s)\b|[0-9a-f]{8,}\b|pid \d+)|(?<=-)[A-Za-z0-9]{6}\b(?=[):]|$)")  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One program's end: its verdict (pass, fail, skip, timeout), each check's that it names, and why it was skipped."""

    verdict: str
    checks: dict[str, str] = field(default_factory=dict)
    why: str = ""


def read_outcome(text: str, code: int | None) -> Outcome:
    """Return what a test that printed `text` and ended with `code` says; code None is for one that was stopped."""
    checks = _numbered(_checks(text))
    if code is None or code in TIMED_OUT:
        return Outcome("timeout", checks)
    words = set(checks.values())
    if code == SKIPPED or (code == PASSED and (words == {"skip"} or re.search(r"^1\.\.0 # SKIP", text, re.MULTILINE))):  # fmt: skip
        return Outcome("skip", checks, _why_skipped(text))
    return Outcome("pass" if code == PASSED and "fail" not in words else "fail", checks)


def _checks(text: str) -> Iterator[tuple[str, str]]:
    for raw in text.splitlines():
        line = _COLOURS.sub("", raw)
        if found := _TAP.match(line):
            name, word = found["name"], found["word"]
            if directive := _DIRECTIVE.search(name):
                name, word = name[: directive.start()], directive["word"]
        elif found := _BRACKETS.match(line) or _COLON.match(line) or _COLUMNS.match(line):
            name, word = found["name"], found["word"]
        else:
            continue
        yield _VARYING.sub("_", name.strip()) or "unnamed", _WORDS[word.lower()]


def _numbered(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Names that come again get a number."""
    times: dict[str, int] = {}
    numbered = {}
    for name, word in pairs:
        times[name] = times.get(name, 0) + 1
        numbered[name if times[name] == 1 else f"{name} ({times[name]})"] = word
    return numbered


def _why_skipped(text: str) -> str:
    lines = [line.strip(" #\t") for line in text.splitlines() if re.search("skip", line, re.IGNORECASE)]  # fmt: skip
    return lines[-1][:160] if lines else ""


def units(tries: Sequence[Outcome], own: bool = False) -> dict[str, list[str]]:
    """Return each unit's verdicts over all tries: the checks that a program names, or the program itself, called "".

    With `own` a program's own verdict counts besides its checks'.
    """
    found: dict[str, list[str]] = {}
    for tried in tries:
        named = dict(tried.checks)
        if own or not named:
            named[""] = tried.verdict
        for name, verdict in named.items():
            found.setdefault(name, []).append(verdict)
    return found


@dataclass(frozen=True)
class Agreement:
    """How many units two kernels agree in, by verdict; which differ, and which vary within one kernel or weren't reached in one."""

    same: dict[str, int]
    differ: dict[str, list[str]]
    vary: list[str]


def compare(stock: Sequence[Outcome], patched: Sequence[Outcome]) -> Agreement:
    """Compare all tries of one program on two kernels.

    A unit differs where no verdict was had on both; it varies where one kernel gave two, and then tells nothing.
    One that only one kernel named is "absent" on the other, unless the program was stopped there by its time limit: then it
    tells nothing, either.
    """
    # That it doesn't end in time is a verdict that no check tells.
    own = any(tried.verdict == "timeout" for tried in (*stock, *patched))
    ones, others = units(stock, own), units(patched, own)
    same: dict[str, int] = {}
    differ, vary = {}, []
    for name in [*ones, *(name for name in others if name not in ones)]:
        one, other = set(ones.get(name, ["absent"])), set(others.get(name, ["absent"]))
        if name and (_is_cut(one, stock) or _is_cut(other, patched)):
            vary.append(name)
        elif not one & other:
            differ[name] = ["/".join(sorted(one)), "/".join(sorted(other))]
        elif len(one | other) > 1:
            vary.append(name)
        else:
            (verdict,) = one
            same[verdict] = same.get(verdict, 0) + 1
    return Agreement(same, differ, vary)


def _is_cut(verdicts: set[str], tries: Sequence[Outcome]) -> bool:
    """Return whether a unit is absent because no try came so far before it was stopped."""
    return verdicts == {"absent"} and any(tried.verdict == "timeout" for tried in tries)


def total(agreements: Mapping[str, Agreement]) -> dict[str, int]:
    """Return how many units were the same by verdict, differed and varied, over all programs."""
    counted: dict[str, int] = {}
    for agreement in agreements.values():
        for verdict, number in agreement.same.items():
            counted[verdict] = counted.get(verdict, 0) + number
        counted["differ"] = counted.get("differ", 0) + len(agreement.differ)
        counted["vary"] = counted.get("vary", 0) + len(agreement.vary)
    return counted
