"""The lab's scales and trials, its testbed, and the audit of published tables."""

from __future__ import annotations

import csv
import io

from measuretwice.audit import audit_table
from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    cell,
    mbit,
    measured,
    ms,
    param,
    param_cell,
    percent,
    runs_as_rows,
    set_cell,
    size,
    table,
    whole,
)
from measuretwice.facts.values import count
from measuretwice.tcp.model import MATHIS_CONSTANTS, bdp_bytes, payload_limit, shaped_goodput_bps

from .runs import ONE_FLOW, RENO


def set_settings(f: Facts, sets: RecordedSets) -> None:
    """Set what the trials are set to, what a testbed must show, and what the audit finds."""
    _front(f, sets)
    _testbed(f, sets)
    _audit(f, sets)


def _front(f: Facts, sets: RecordedSets) -> None:
    """The lab's scales and trials, and what a link carries."""
    f.link_carries = percent(payload_limit(1, wire=False))
    f.wire_carries = percent(payload_limit(1))
    f.wire_carries_plain = percent(payload_limit(1, 1460, timestamps=False))
    f.c_even = Number(MATHIS_CONSTANTS["sqrt(3/2)"].value)
    f.c_random = Number(MATHIS_CONSTANTS["1.31"].value)
    f.front_room = size(sets.trial(RENO)["wmem_max_bytes"])
    f.edge_lasts = whole(sets.trial(RENO)["duration_s"] / 60, "minutes")
    presets = sets.lab.file.parameters["scale"].sets
    f.scales = table(
        ("scale", "rate", "buffer", "in BDP of 20 ms", "flows"),
        (
            (
                name,
                whole(float(preset["rate_mbit"]), "Mbit/s"),
                size(float(preset["buffer_bytes"])),
                whole(float(preset["buffer_bytes"]) / bdp_bytes(float(preset["rate_mbit"]), 20)),
                whole(float(preset["flows"])),
            )
            for name, preset in presets.items()
        ),
    )
    f.first_try_index = Number(measured(sets.run("first-try"), "jains_index"))
    f.all_trials = table(
        ("trial", "what it is", "flows", "rivals"),
        (
            (
                Number(n),
                row.title,
                Number(of["flows"]),
                Number(of["rival_flows"]) if of["rival"] != "none" else "",
            )
            for n, row in sets.lab.trials.items()
            for of in [sets.trial(n)]
        ),
    )


def _testbed(f: Facts, sets: RecordedSets) -> None:
    """What a testbed must show before anything is measured on it: an idle path, one flow alone, and a link in use."""
    alone, ten = sets.run("edge-once", ONE_FLOW), sets.run("edge-once", RENO)
    f.edge_idle = ms(measured(alone, "path_rtt_ms"))
    f.edge_rtt = ms(param(alone, "rtt_ms"))
    f.edge_one_flow = mbit(measured(alone, "goodput_bps"))
    f.edge_most = mbit(shaped_goodput_bps(param(alone, "rate_mbit")))
    f.edge_sum = mbit(measured(ten, "goodput_bps"))
    f.edge_use = percent(measured(ten, "utilisation"))
    f.other_scales = runs_as_rows(
        (sets.run(name, RENO) for name in ("intermediate", "core")),
        {
            "scale": lambda run: f"{set_cell(run)}, {count(measured(run, 'flows'))} flows",
            "round trip, idle": cell("path_rtt_ms", ms),
            "must be": param_cell("rtt_ms", ms),
            "sum of all flows": lambda run: mbit(measured(run, "goodput_bps"), 4),
            "can be at most": lambda run: mbit(shaped_goodput_bps(param(run, "rate_mbit")), 4),
            "link in use": cell("utilisation", percent),
            "one flow alone": lambda run: mbit(
                measured(sets.run(f"{set_cell(run)}-alone"), "goodput_bps"), 4
            ),
        },
    )
    single = sets.run("core-alone")
    window_mb = measured(single, "goodput_bps") * measured(single, "rtt_mean_ms") / 8e9
    room_mb = param(single, "wmem_max_bytes") / 1e6
    f.single_window, f.single_room = Number(window_mb, "MB"), Number(room_mb, "MB")
    f.single_is_held_by_its_window = (
        measured(single, "utilisation") < 0.95
        and measured(single, "all_queue_drops") == 0
        and measured(single, "retransmits") == 0
        and measured(single, "queue_delay_mean_ms") < 0.1
        and window_mb < 0.9 * room_mb
    )


def _audit(f: Facts, sets: RecordedSets) -> None:
    """The rows of audit.csv, published results, and what can't be true in each."""
    content = (sets.lab.folder / "audit.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    problems: dict[int, list[str]] = {}
    for problem in audit_table(content, "audit.csv").problems:
        for line in problem.lines:
            # A row's line in the file is its number and the headings'.
            problems.setdefault(line - 1, []).append(problem.text)
    columns = ("name", "link", "asked", "flows", "total", "squares", "jain")
    f.audited = table(
        ("row", "what", "link", "flows asked for", "flows", "total", "squares", "index"),
        ((str(n), *(row[name] for name in columns)) for n, row in enumerate(rows, 1)),
    )
    f.audit_fails = table(
        ("row", "what", "what can't be true"),
        ((str(n), rows[n - 1]["name"], "; ".join(texts)) for n, texts in sorted(problems.items())),
    )
    f.audit_rows, f.audit_failing = Number(len(rows)), Number(len(problems))
    rest = [row for n, row in enumerate(rows, 1) if n not in problems]
    beyond = [row for row in rest if float(row["total"]) > payload_limit(float(row["link"]))]
    f.all_the_rest_fail_with_the_mtu = len(beyond) == len(rest)
