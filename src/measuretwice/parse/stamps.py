"""Times in logs, in any of the usual forms: before a line, or on a line of their own."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

# Times of day, and times since a start, are smaller than that: they aren't Unix times.
UNIX_TIME_S = 1e8

_UNIX = r"(?P<unix>\d{10}(?:[.,]\d{1,9})?|\d{13}|\d{16}|\d{19})(?![\d:])"
_CLOCK = r"(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d+)?)(?: *(?P<half>[AP])M\b)?"
_DATE = r"(?:(?P<date>\d{4}-\d\d-\d\d)|\d{4}/\d\d/\d\d)[T _]"
# A date in words, in any language: Fri Nov 15, or 15. nov. 2024.
_WORDS = r"(?:(?:[^\W\d]{2,9}|\d{1,2}|\d{4})[.,]{0,2} +){0,4}"
_ZONE = r"(?P<zone> ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?(?: [A-Z]{3,4}\b)?"
_ELAPSED = r"(?P<elapsed>\d+[.,]\d+)"
_BEFORE = re.compile(
    rf"[\[(<]?(?:{_UNIX}|(?:{_DATE}|{_WORDS}){_CLOCK}{_ZONE}|{_ELAPSED}(?=[\s,;|\])]))[\])>]?[,;|:]?[ \t]?"
)
_ALONE = re.compile(
    rf"(?<![\d.]){_UNIX}|{_DATE}{_CLOCK}{_ZONE}|^\W*(?:[A-Za-z][\w ]*\W+)?{_ELAPSED}\W*$"
)
_CLOCK_ALONE = re.compile(rf"(?<!\d)(?<!\d:){_CLOCK}")


class Stamp(NamedTuple):
    """A time before a line (s), and the rest of that line."""

    time_s: float
    rest: str


def stamp_of(line: str) -> Stamp | None:
    """Return the time that a line begins with, as `ts` writes it; None where there is none."""
    mark = _BEFORE.match(line)
    return Stamp(_time_s(mark), line[mark.end() :]) if mark else None


def time_in(line: str) -> float | None:
    """Return the time that a line of its own has (s), as `date` and `watch` write it; None where there is none."""
    mark = _ALONE.search(line) or _CLOCK_ALONE.search(line)
    return _time_s(mark) if mark else None


def _time_s(mark: re.Match[str]) -> float:
    """A line's time: Unix time where it says that, else that of its clock (s since midnight, or since a start)."""
    parts = mark.groupdict()
    if unix := parts.get("unix"):
        whole, _, rest = unix.replace(",", ".").partition(".")
        return float(f"{whole[:10]}.{whole[10:]}{rest}")
    if elapsed := parts.get("elapsed"):
        return float(elapsed.replace(",", "."))
    hour, minute = int(parts["hour"]), int(parts["minute"])
    second = float(parts["second"].replace(",", "."))
    if half := parts.get("half"):
        hour = hour % 12 + (12 if half == "P" else 0)
    clock_s = hour * 3600 + minute * 60 + second
    date, zone = parts.get("date"), (parts.get("zone") or "").strip()
    if not date or not zone:
        return clock_s
    try:
        day = datetime.fromisoformat(f"{date}T00:00:00{'+00:00' if zone[0] in 'ZUG' else zone}")
    except ValueError:
        return clock_s
    return day.timestamp() + clock_s
