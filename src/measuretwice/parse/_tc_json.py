"""tc's JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measuretwice.parse._json import JsonObject, load
from measuretwice.parse._tc_fields import COUNTERS, OPTIONS, RED_STATS, Quantity
from measuretwice.parse._text import foreign
from measuretwice.parse.errors import ParseError

_PLACE = {"kind", "class", "handle", "dev", "root", "parent", "leaf", "refcnt", "options", "stats"}


def read_json(text: str, source: str, what: str) -> Iterator[dict[str, Any]]:
    """The fields of each qdisc or class (`what`) of a JSON document."""
    expected = f"the output of `tc -j -s {what} show`"
    document = load(text, source, expected)
    if not isinstance(document, list):
        raise foreign(text, source, expected)
    # A qdisc names its kind "kind", a class names it "class".
    kind_key = "kind" if what == "qdisc" else "class"
    for index, item in enumerate(document):
        entry = JsonObject.of(item, f"$[{index}]", source)
        if kind_key not in entry.data:
            raise ParseError(source, f"$[{index}].{kind_key}", f"missing; expected {expected}")
        yield _entry(entry, what, entry.need_text(kind_key))


def _entry(entry: JsonObject, what: str, kind: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "kind": kind,
        "handle": entry.need_text("handle"),
        "dev": entry.text("dev"),
        "root": entry.flag("root") or False,
        "parent": entry.text("parent"),
    }
    if what == "class":
        # A class has its options beside its name and its counters inside `stats`.
        leaf = entry.text("leaf")
        values["leaf"] = leaf and f"{leaf.removeprefix('0x')}:"
        stats = entry.child("stats") or JsonObject({}, f"{entry.path}.stats", entry.source)
        options = entry
        values["options"] = {k: v for k, v in entry.data.items() if k not in _PLACE}
    else:
        stats = entry
        options = entry.child("options") or JsonObject({}, f"{entry.path}.options", entry.source)
        values["options"] = options.data
    values["stats"] = {k: v for k, v in stats.data.items() if k not in _PLACE and k not in COUNTERS}
    for key, name in COUNTERS.items():
        values[name] = stats.integer(key)
    for key, (name, quantity) in OPTIONS.get((what, kind), {}).items():
        values[name] = _value(options, key, quantity)
    if (what, kind) == ("qdisc", "red"):
        for key, name in RED_STATS.items():
            values[name] = stats.integer(key)
    elif (what, kind) == ("qdisc", "netem"):
        _read_netem(options, values)
    return values


def _value(options: JsonObject, key: str, quantity: Quantity) -> float | bool | None:
    if quantity is Quantity.FLAG:
        return options.flag(key)
    if quantity in (Quantity.COUNT, Quantity.SIZE):
        return options.integer(key)
    number = options.number(key)
    if number is None:
        return None
    # Rates are in bytes per second; times, outside of netem, in microseconds.
    return number * 8 if quantity is Quantity.RATE else number / 1e6


def _read_netem(options: JsonObject, values: dict[str, Any]) -> None:
    delay = options.child("delay")
    if delay:
        values["delay_s"] = delay.need_number("delay")
        values["jitter_s"] = delay.number("jitter")
    loss = options.child("loss-random")
    if loss:
        values["loss_ratio"] = loss.need_number("loss")
    rate = options.child("rate")
    if rate:
        values["rate_bps"] = _value(rate, "rate", Quantity.RATE)
