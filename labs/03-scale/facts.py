"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime

from measuretwice.audit import audit_table
from measuretwice.facts import (
    Excerpt,
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    cell,
    column,
    excerpt,
    judge,
    mbit,
    mean,
    measured,
    ms,
    param,
    percent,
    runs_as_rows,
    seconds,
    table,
    whole,
)
from measuretwice.facts.notation import count
from measuretwice.facts.values import Cell
from measuretwice.measure.arrivals import WINDOWS, window_arrivals
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import ratio_bounds
from measuretwice.tcp.model import MATHIS_CONSTANTS, bdp_bytes, payload_limit

# Trials by number: three algorithms alone, then three mixes, the first half of CUBIC and half of Reno.
RENO, CUBIC, BBR, CUBIC_IN_RENO, BBR_IN_RENO, BBR_IN_CUBIC, ONE_FLOW = range(1, 8)
STAGES = ("broken", "fixed")
FRAME_BYTES = 1514
HALF_HOUR = ("edge-long", "edge-long-30", "edge-long-50")
CROWDS = ("intermediate-300", "intermediate-500", "core")
EACH_SCALE = (*HALF_HOUR, "intermediate", "intermediate-300", "intermediate-500", "core-long")
BASE_DELAYS = ("core", "core-100-ms", "core-200-ms")
HALVES = ("core-half", "core-half-100-ms", "core-half-200-ms")
BY_BUFFER = ("core-default-windows", "core", "core-large-windows")
RENO_RUNS = (
    "edge-once", *HALF_HOUR, "edge-100-ms", "edge-200-ms", "intermediate", "intermediate-300",
    "intermediate-500", "core", "core-long",
)  # fmt: skip
INDEX_RUNS = (*RENO_RUNS[:-1], "core-100-ms", "core-200-ms")
MIXES = (
    "edge-once", "edge-100-ms", "edge-200-ms", "intermediate", "intermediate-half", "core",
    "core-large-windows", *HALVES,
)  # fmt: skip
EDGE_CABLES = (
    "edge-cables-20", "edge-cables-50", "edge-cables-100", "edge-cables-200", "edge-cables-1000",
    "edge-ten-times", "edge-no-edges",
)  # fmt: skip
CORE_CABLES = (
    "core-cables-1100", "core-cables-2000", "core-cables-5000", "core-cables-10000",
    "core-cables-25000", "core-no-edges",
)  # fmt: skip
TRAINS = (
    "train-20", "train-50", "train-100", "train-200", "train-1000", "train-10000", "train-no-edges",
)  # fmt: skip
# Drops for each halving, counted after the warm-up and from the start.
BOTH_COUNTS = ("drops_per_halving", "all_drops_per_halving")
# The claims as they were published, and how they are taken where they give no range.
SAME_C, FAIR_INDEX = 1.1, 0.99
LOSSES_AT_EDGE, LOSSES_AT_CORE = 1.7, (6, 9)
UNFAIR_AT_CORE, UNFAIR_AT_EDGE = 0.5, 0.75
CUBIC_TAKES, BBR_TAKES = (0.7, 0.8), (0.35, 0.45)
BBR_TAKES_PUBLISHED, BBR_TAKES_REPRODUCED = 0.4, 0.0096
# Fewer halvings a flow than this don't even out; with fewer than the second slow start still shows.
EVEN_AFTER, SLOW_START_SHOWS = 20, 3
SOURCE_LASTS_S, SOURCE_RUNS = 1800, 18


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/03-scale/, and of the essay."""
    f = Facts()
    _front(f, sets)
    _audit(f, sets)
    _standing_queue(f.case("standing-queue"), sets)
    _halving_counter(f.case("halving-counter"), sets)
    _loss_definition(f.case("loss-definition"), sets)
    _offload_at_scale(f.case("offload-at-scale"), sets)
    _unequal_intervals(f.case("unequal-intervals"), sets)
    _missing_flows(f.case("missing-flows"), sets)
    _mislabelled_row(f.case("mislabelled-row"), sets)
    _fair_share(f.case("fair-share"), sets)
    _one_c(f, sets)
    _drops_for_each(f, sets)
    _ten_runs(f, sets)
    _how_long(f, sets)
    _fair_among_equals(f, sets)
    _fair_among_others(f, sets)
    _buffers(f, sets)
    _cost(f, sets)
    _essay(f, sets)
    _edges(f, sets)
    _from_the_start(f, sets)
    return f


def _front(f: Facts, sets: RecordedSets) -> None:
    """The lab's scales and trials, and what a testbed must show before anything is measured on it."""
    f.link_carries = percent(payload_limit(1, wire=False))
    f.wire_carries = percent(payload_limit(1))
    f.wire_carries_plain = percent(payload_limit(1, 1460, timestamps=False))
    f.c_even = Number(MATHIS_CONSTANTS["sqrt(3/2)"].value)
    f.c_random = Number(MATHIS_CONSTANTS["1.31"].value)
    f.edge_lasts = whole(sets.trial(RENO)["duration_s"] / 60, "minutes")
    presets = sets.lab.file.parameters["scale"].sets
    f.scales = table(
        ("scale", "rate", "buffer", "in BDP of 20 ms", "flows"),
        (
            (
                name,
                whole(float(preset["rate_mbit"]), "Mbit/s"),
                whole(float(preset["buffer_bytes"]), "B"),
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
    alone, ten = sets.run("edge-once", ONE_FLOW), sets.run("edge-once", RENO)
    f.edge_idle = ms(measured(alone, "path_rtt_ms"))
    f.edge_rtt = ms(param(alone, "rtt_ms"))
    f.edge_one_flow = mbit(measured(alone, "goodput_bps"))
    f.edge_most = mbit(_most_bps(alone))
    f.edge_sum = mbit(measured(ten, "goodput_bps"))
    f.edge_use = percent(measured(ten, "utilisation"))
    f.other_scales = runs_as_rows(
        (sets.run(name, RENO) for name in ("intermediate", "core")),
        {
            "scale": lambda run: f"{_set(run)}, {count(measured(run, 'flows'))} flows",
            "round trip, idle": cell("path_rtt_ms", ms),
            "must be": lambda run: ms(param(run, "rtt_ms")),
            "sum of all flows": lambda run: mbit(measured(run, "goodput_bps"), 4),
            "the link's share": lambda run: mbit(_most_bps(run), 4),
            "link in use": cell("utilisation", percent),
            "one flow alone": lambda run: mbit(
                measured(sets.run(f"{_set(run)}-alone"), "goodput_bps"), 4
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
        ((str(n), rows[n - 1]["name"], "; ".join(found)) for n, found in sorted(problems.items())),
    )
    f.audit_rows, f.audit_failing = Number(len(rows)), Number(len(problems))
    rest = [row for n, row in enumerate(rows, 1) if n not in problems]
    beyond = [row for row in rest if float(row["total"]) > payload_limit(float(row["link"]))]
    f.most_of_the_rest_fail_with_the_mtu = len(beyond) > len(rest) / 2


def _settings(f: Facts, run: Result) -> None:
    """What a case's table of settings shows."""
    f.flows = Number(param(run, "flows"))
    f.rate = whole(param(run, "rate_mbit"), "Mbit/s")
    f.rtt = ms(param(run, "rtt_ms"))
    f.buffer = whole(param(run, "buffer_bytes"), "B")
    f.lasts = seconds(param(run, "duration_s"))
    f.warmup = seconds(param(run, "warmup_s"))


def _standing_queue(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "standing-queue")
    f.summary, f.summary_fixed = _summaries("standing-queue")
    f.ping = excerpt("standing-queue-broken", "sender-0/ping.txt", last=2)
    f.ss = excerpt("standing-queue-broken", "sender-0/ss.txt", grep="bytes_acked", last=1)
    f.idle = ms(measured(broken, "path_rtt_ms"))
    f.queue = whole(measured(broken, "queue_mean_bytes"), "B")
    f.queue_takes = ms(measured(broken, "queue_delay_mean_ms"))
    f.rtt_mean = ms(measured(broken, "rtt_mean_ms"))
    buffer_bytes = param(broken, "buffer_bytes")
    path_bytes = bdp_bytes(param(broken, "rate_mbit"), param(broken, "rtt_ms"))
    f.buffer_bdps = whole(buffer_bytes / path_bytes)
    f.the_path_is_not_idle = measured(broken, "queue_mean_bytes") > 0.3 * buffer_bytes
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "RTT in the model": cell("own_rtt_ms", ms),
            "C by halvings": cell("own_c_by_halvings", Number),
        },
    )
    by_rtt, by_c = (
        measured(fixed, name) / measured(broken, name)
        for name in ("own_rtt_ms", "own_c_by_halvings")
    )
    f.c_follows_rtt = abs(by_c / by_rtt - 1) < 0.02
    c = measured(fixed, "own_c_by_halvings")
    f.c_is_where_it_should_be = f.c_even.value <= c <= f.c_random.value
    f.c_broken, f.c_fixed = Number(measured(broken, "own_c_by_halvings")), Number(c)
    f.halvings = whole(measured(fixed, "halvings"))
    f.halvings_each = Number(measured(fixed, "halvings") / measured(fixed, "flows"), digits=2)
    f.counted = seconds(measured(fixed, "duration_s"))
    f.index = Number(measured(fixed, "jains_index"), digits=2)
    f.c_of_half_an_hour = Number(measured(sets.run("edge-long", RENO), "c_by_halvings"))


def _halving_counter(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "halving-counter")
    f.summary, f.summary_fixed = _summaries("halving-counter")
    f.windows = excerpt("halving-counter-broken", "sender-0/cwnd.txt", falls=17)
    f.events = excerpt("halving-counter-broken", "sender-0/events.txt", last=6)
    f.interval, f.interval_fixed = (
        ms(1e3 * param(run, "sample_interval_s")) for run in (broken, fixed)
    )
    f.rtt_mean = ms(measured(broken, "rtt_mean_ms"))
    f.samples = whole(measured(broken, "rtt_mean_ms") / 1e3 / param(broken, "sample_interval_s"))
    f.losses_each = Number(measured(broken, "own_losses_per_halving"))
    f.fewer_losses_than_halvings = (
        measured(broken, "own_losses_per_halving") < 1 <= measured(fixed, "own_losses_per_halving")
    )
    f.fixed_counter_is_the_kernels = (
        abs(measured(fixed, "own_halvings") - measured(fixed, "halvings")) <= 2
    )
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "halvings": cell("own_halvings", whole),
            "losses for each": cell("own_losses_per_halving", Number),
            "C by halvings": cell("own_c_by_halvings", Number),
        },
    )
    f.losses, f.losses_fixed = (whole(measured(run, "own_losses")) for run in (broken, fixed))
    f.losses_differ = measured(broken, "own_losses") != measured(fixed, "own_losses")
    f.counted_halvings, f.counted_halvings_fixed = (
        whole(measured(run, "own_halvings")) for run in (broken, fixed)
    )
    f.halvings, f.halvings_fixed = (whole(measured(run, "halvings")) for run in (broken, fixed))
    f.losses_each_fixed = Number(measured(fixed, "own_losses_per_halving"))
    f.by_events = Number(measured(broken, "own_losses") / measured(broken, "halvings"), digits=2)
    f.by_counter = Number(measured(broken, "own_losses_per_halving"), digits=2)


def _loss_definition(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "loss-definition")
    f.summary, f.summary_fixed = _summaries("loss-definition")
    f.counters = excerpt(
        "loss-definition-broken",
        "sender-0/nstat.after.json",
        counters=["TcpRetransSegs", "TcpExtTCPDSACKRecv", "TcpExtTCPDSACKUndo"],
    )
    f.ss = excerpt("loss-definition-broken", "sender-0/ss.txt", grep="bytes_acked", last=1)
    rate_bps = param(broken, "rate_mbit") * 1e6
    full_ms = param(broken, "rtt_ms") + 8e3 * param(broken, "buffer_bytes") / rate_bps
    window = rate_bps * full_ms / 8e3 / FRAME_BYTES / param(broken, "flows")
    f.full_rtt, f.window = ms(full_ms), Number(window)
    f.regrows = Number(window / 2 * full_ms / 1e3, "seconds", 2)
    f.counted = whole(round(measured(broken, "duration_s")))
    f.drops = whole(measured(broken, "queue_drops"))
    f.resent = whole(measured(broken, "retransmits"))
    f.losses, f.losses_fixed = (whole(measured(run, "own_losses")) for run in (broken, fixed))
    f.counts_differ = measured(broken, "retransmits") != measured(broken, "own_losses")
    f.detour = ms(param(broken, "detour_ms"))
    f.detour_takes = percent(param(broken, "detour_percent") / 100)
    f.spurious = whole(measured(broken, "spurious_retransmits"))
    f.halvings = whole(measured(broken, "halvings"))
    f.more_is_resent_than_dropped = _over(broken, "retransmits", "queue_drops") > 1.5
    f.more_halvings_than_drops = measured(broken, "halvings") > measured(broken, "queue_drops")
    f.flows_did_the_same = all(
        broken.measured[name] == fixed.measured[name]
        for name in ("segments", "retransmits", "queue_drops", "halvings", "goodput_bps")
    )


def _offload_at_scale(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "offload-at-scale")
    f.summary, f.summary_fixed = _summaries("offload-at-scale")
    f.counters = excerpt(
        "offload-at-scale-broken",
        "sender-0/nstat.after.json",
        counters=["TcpRetransSegs", "TcpExtTCPDSACKRecv"],
    )
    f.queue_sample = excerpt("offload-at-scale-broken", "router/queue.txt", last=1)
    f.resent = whole(measured(broken, "retransmits"))
    f.drops = whole(measured(broken, "queue_drops"))
    f.resent_each = Number(_over(broken, "retransmits", "queue_drops"))
    f.waiting = whole(measured(broken, "queue_mean_packets"))
    f.spurious = whole(measured(broken, "spurious_retransmits"))
    f.few_are_needless = _over(broken, "spurious_retransmits", "retransmits") < 0.05
    f.more_is_resent_than_dropped = _over(broken, "retransmits", "queue_drops") > 1.3
    f.fixed_resends_each_drop = abs(_over(fixed, "retransmits", "queue_drops") - 1) < 0.05
    f.packet = whole(measured(broken, "queue_packet_bytes"))
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "packets in the queue, mean": cell("queue_mean_packets", whole),
            "bytes in a packet": cell("queue_packet_bytes", whole),
            "drops": cell("queue_drops", whole),
            "resent": cell("retransmits", whole),
            "losses for a halving": cell("own_losses_per_halving", Number),
        },
    )


def _unequal_intervals(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "unequal-intervals")
    f.table, f.table_fixed = (
        excerpt(f"unequal-intervals-{stage}", "router/flows.txt") for stage in STAGES
    )
    f.summary, f.summary_fixed = _summaries("unequal-intervals", first=4)
    f.first, f.last = (
        excerpt("unequal-intervals-broken", f"sender-{n}/iperf3-1.json", grep='"timesecs"')
        for n in (0, 8)
    )
    f.sum, f.sum_fixed = (mbit(measured(run, "own_sum_bps")) for run in (broken, fixed))
    f.most = mbit(_most_bps(broken))
    f.spread = seconds(param(broken, "start_spread_ms") / 1000)
    f.index, f.index_fixed = (Number(measured(run, "own_jain")) for run in (broken, fixed))
    f.both = table(
        ("rates over", "sum", "Jain's index"),
        (
            ("each flow's own time", f.sum, f.index),
            ("the time in which all were there", f.sum_fixed, f.index_fixed),
        ),
    )


def _missing_flows(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "missing-flows")
    f.summary, f.summary_fixed = _summaries("missing-flows")
    f.table = excerpt("missing-flows-broken", "router/flows.txt")
    f.error = excerpt("missing-flows-broken", "sender-3/iperf3-2.json", grep="error")
    f.streams = Number(param(broken, "streams_count"))
    f.ran = whole(measured(broken, "flows"))
    f.sum = mbit(measured(broken, "own_sum_bps"))
    f.index = Number(measured(broken, "own_jain"))
    f.index_of_these = Number(measured(broken, "jains_index"))
    f.index_fixed = Number(measured(fixed, "own_jain"))
    f.flows_fixed = Number(param(fixed, "flows"))
    f.counted_fixed = seconds(measured(fixed, "duration_s"))
    f.the_link_is_full = measured(broken, "own_sum_bps") > 0.98 * _most_bps(broken)
    f.index_is_low = (
        measured(broken, "own_jain") <= measured(broken, "flows") / param(broken, "flows")
        and measured(fixed, "own_jain") > measured(broken, "own_jain") + 0.2
    )


def _mislabelled_row(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "mislabelled-row")
    f.groups, f.groups_fixed = (
        excerpt(f"mislabelled-row-{stage}", "router/groups.txt") for stage in STAGES
    )
    f.table = excerpt("mislabelled-row-broken", "router/flows.txt")
    f.reno_flows = Number(param(broken, "flows") - param(broken, "rival_flows"))
    f.cubic_flows = Number(param(broken, "rival_flows"))
    f.share_printed, f.share_fixed = (
        percent(measured(run, "own_rival_share")) for run in (broken, fixed)
    )
    f.share = percent(measured(fixed, "rival_share"))
    f.of_flows = percent(measured(fixed, "rival_fair_share"))
    f.times_fair = Number(measured(fixed, "rival_multiple"))
    used = measured(fixed, "goodput_bps") / _most_bps(fixed)
    f.a_clear_winner_and_no_bound_broken = measured(fixed, "rival_share") > 0.6 and used < 1.002


def _fair_share(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "fair-share")
    share, share_fixed = measured(broken, "rival_share"), measured(fixed, "rival_share")
    f.groups = excerpt("fair-share-broken", "router/groups.txt")
    f.reno_flows = Number(param(broken, "flows") - 1)
    f.twice = Number(2 * param(broken, "flows"))
    f.bbr_part, f.reno_part, f.bbr_part_fixed = map(percent, (share, 1 - share, share_fixed))
    f.fair_part = percent(measured(broken, "rival_fair_share"))
    f.times_fair, f.times_fair_fixed = (
        Number(measured(run, "rival_multiple")) for run in (broken, fixed)
    )
    f.reno_each = mbit(measured(broken, "goodput_bps") * (1 - share) / (param(broken, "flows") - 1))
    f.bbr_has = mbit(measured(broken, "goodput_bps") * share)
    f.index = Number(measured(broken, "jains_index"))
    f.both = runs_as_rows(
        (broken, fixed),
        {
            "flows": lambda run: Number(param(run, "flows")),
            "BBR's share": cell("rival_share", percent),
            "the fair share": cell("rival_fair_share", percent),
            "times its fair share": cell("rival_multiple", Number),
        },
    )
    f.bbr_has_the_smaller_part = max(share, share_fixed) < 0.5
    f.share_hardly_follows_the_flows = abs(share_fixed / share - 1) < 0.15
    f.far_above_its_fair_share = measured(fixed, "rival_multiple") > 3
    f.share_factor = Number(share_fixed / share, digits=2)
    f.times_factor = Number(
        measured(fixed, "rival_multiple") / measured(broken, "rival_multiple"), digits=2
    )


def _one_c(f: Facts, sets: RecordedSets) -> None:
    """Reno alone, a run of each scale: C by halvings."""
    runs = [sets.run(name, RENO) for name in EACH_SCALE]
    c = column(runs, "c_by_halvings")
    f.c_is_one = max(c) <= SAME_C * min(c)
    f.c = Numbers(tuple(c))
    f.c_halvings = whole(sum(column(runs, "halvings")))
    f.c_least_certain = _by_chance(
        min(runs, key=lambda run: measured(run, "halvings")), "c_by_halvings"
    )
    up_to_a_hundred = column(runs[:4], "c_by_halvings")
    f.c_to_100 = Numbers(tuple(up_to_a_hundred))
    f.c_is_one_up_to_a_hundred = max(up_to_a_hundred) <= SAME_C * min(up_to_a_hundred)
    f.c_cubic = Number(measured(sets.run("edge-once", CUBIC), "c_by_halvings"))

    alone = [sets.run(name, RENO, seed=1) for name in RENO_RUNS]
    f.reno_runs = runs_as_rows(
        alone,
        {
            "run": _set,
            "flows": cell("flows", whole),
            "time counted": cell("duration_s", seconds),
            "halvings": cell("halvings", whole),
            "drops for each": cell("drops_per_halving", Number),
            "sent again for each": cell("retransmits_per_halving", Number),
            "C by drops": cell("c_by_drops", Number),
            "C by retransmissions": cell("c_by_retransmits", Number),
            "C by halvings, and chance": lambda run: _by_chance(run, "c_by_halvings"),
        },
    )
    f.three_c = runs_as_rows(
        alone,
        {
            "run": _set,
            "root of drops for each halving": cell("drops_per_halving", _root),
            "C by drops over C by halvings": lambda run: Number(
                _over(run, "c_by_drops", "c_by_halvings")
            ),
            "root of retransmissions for each": cell("retransmits_per_halving", _root),
            "C by retransmissions over C by halvings": lambda run: Number(
                _over(run, "c_by_retransmits", "c_by_halvings")
            ),
            "flows without a halving": _never_halved,
            "retransmissions for each drop": lambda run: Number(
                _over(run, "retransmits", "queue_drops")
            ),
        },
    )
    far = [
        _set(run)
        for run in alone
        if not 0.95
        <= _over(run, "c_by_drops", "c_by_halvings") / measured(run, "drops_per_halving") ** 0.5
        <= 1.05
    ]
    f.root_runs = Number(len(alone))
    f.root_holds = Number(len(alone) - len(far))
    f.root_not = ", ".join(far)


def _drops_for_each(f: Facts, sets: RecordedSets) -> None:
    """Reno alone: drops for each halving, and C by drops."""
    edge = [sets.run(name, RENO) for name in HALF_HOUR]
    core, core_long = sets.run("core", RENO), sets.run("core-long", RENO)
    c_core, c_edge = _by_chance(core_long, "c_by_drops"), column(edge, "c_by_drops")
    edge_most = max(_by_chance(run, "c_by_drops").high_value for run in edge)
    f.c_drops_by_scale = judge((c_core.low_value, c_core.high_value), least=edge_most)
    f.c_drops_edge = Numbers(tuple(c_edge))
    f.c_drops_core = c_core
    f.c_drops_100 = Number(measured(sets.run("intermediate", RENO), "c_by_drops"))
    f.c_drops_factor = Number(c_core.middle_value / max(c_edge))
    f.c_drops_halvings = whole(sum(column([*edge, core_long], "halvings")))
    f.c_drops_paper = Numbers(
        tuple((losses / LOSSES_AT_EDGE) ** 0.5 for losses in LOSSES_AT_CORE), digits=2
    )

    at_edge = column(edge, "drops_per_halving")
    f.edge_has_1_7 = judge(
        (min(at_edge), max(at_edge)), least=LOSSES_AT_EDGE - 0.05, most=LOSSES_AT_EDGE + 0.05
    )
    f.drops_edge = Numbers(tuple(at_edge))
    f.edge_flows = Numbers(tuple(column(edge, "flows")))
    f.edge_halvings = whole(sum(column(edge, "halvings")))

    at_core = column([core, core_long], "drops_per_halving")
    low, high = LOSSES_AT_CORE
    f.core_has_6_to_9 = judge((min(at_core), max(at_core)), least=low, most=high)
    f.core_has_fewer = max(at_core) < low
    f.drops_core = Numbers(tuple(at_core))
    f.core_both = whole(sum(column([core, core_long], "halvings")))
    f.core_resent = whole(measured(core, "retransmits"))
    f.core_drops = whole(measured(core, "queue_drops"))
    f.core_spurious = whole(measured(core, "spurious_retransmits"))


def _ten_runs(f: Facts, sets: RecordedSets) -> None:
    """Ten flows of Reno at edge, ten runs; and six over a base delay of 100 ms."""
    runs = sets.runs("edge-ten-times", RENO)
    f.ten_last = seconds(param(runs[0], "duration_s"))
    f.ten_drops = Interval.of_mean(column(runs, "drops_per_halving"))
    f.ten_drops_each = Numbers(tuple(column(runs, "drops_per_halving")), digits=2)
    f.ten_c_drops = Interval.of_mean(column(runs, "c_by_drops"))
    f.ten_c_drops_each = Numbers(tuple(column(runs, "c_by_drops")))
    f.ten_c_resent = Interval.of_mean(column(runs, "c_by_retransmits"))
    f.ten_c = Interval.of_mean(column(runs, "c_by_halvings"))

    far = measured(sets.run("edge-100-ms", RENO), "drops_per_halving")
    six = sets.runs("edge-100-ms-six-times", RENO)
    each = column(six, "drops_per_halving")
    f.far_drops = Number(far)
    f.far_is_as_others = min(each) / 1.5 <= far <= 1.5 * max(each)
    f.six_each = Numbers(tuple(each))
    f.six_drops = Interval.of_mean(each)
    f.six_c = Interval.of_mean(column(six, "c_by_halvings"))


def _how_long(f: Facts, sets: RecordedSets) -> None:
    """A thousand flows at core: how many halvings a run has, and how many each needs."""
    reno, cubic, longer = (
        sets.run("core", RENO),
        sets.run("core", CUBIC),
        sets.run("core-long", RENO),
    )
    flows, rtt_s = measured(reno, "flows"), measured(reno, "rtt_mean_ms") / 1e3
    window = 1e6 * param(reno, "rate_mbit") / flows * rtt_s / 8 / measured(reno, "mss_bytes")
    f.core_flows = whole(flows)
    f.core_rtt = ms(measured(reno, "rtt_mean_ms"))
    f.core_window = Number(window, digits=2)
    f.core_regrows = seconds(window / 2 * rtt_s, 2)
    f.core_counted = seconds(measured(reno, "duration_s"))
    f.core_halvings = whole(measured(reno, "halvings"))
    f.core_each = Number(measured(reno, "halvings") / flows, digits=2)
    f.core_shows_slow_start = measured(reno, "halvings") < SLOW_START_SHOWS * flows
    f.cubic_counted = seconds(measured(cubic, "duration_s"))
    f.cubic_halvings = whole(measured(cubic, "halvings"))
    f.cubic_drops = Number(measured(cubic, "drops_per_halving"), digits=2)

    each = measured(longer, "halvings") / measured(longer, "flows")
    lost = sorted(flow.retransmits / flow.halvings for flow in longer.flows if flow.halvings)
    f.long_counted = seconds(measured(longer, "duration_s"))
    f.long_warmup = seconds(param(longer, "warmup_s"))
    f.long_halvings = whole(measured(longer, "halvings"))
    f.long_each = Number(each, digits=2)
    f.long_is_too_short = each < EVEN_AFTER
    f.long_drops = Number(measured(longer, "drops_per_halving"), digits=2)
    f.long_c = Number(measured(longer, "c_by_halvings"), digits=2)
    f.long_index = Number(measured(longer, "jains_index"))
    f.long_lucky = Number(lost[len(lost) // 10], digits=2)
    f.long_unlucky = Number(lost[9 * len(lost) // 10], digits=2)


def _fair_among_equals(f: Facts, sets: RecordedSets) -> None:
    """Jain's index of each algorithm alone."""
    ten = [sets.runs("edge-ten-times", trial) for trial in (RENO, CUBIC, BBR)]
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *_counted(sets.run(name, RENO)),
            *(Number(_index(sets, name, trial)) for trial in (RENO, CUBIC, BBR)),
        )
        for name in INDEX_RUNS
    ]
    rows.append(
        (
            "ten runs, edge",
            *_counted(ten[0][0]),
            *(Interval.of_mean(column(runs, "jains_index"), within=(0, 1)) for runs in ten),
        )
    )
    f.indices = table(("run", "flows", "time counted", "reno", "cubic", "bbr"), rows)
    edge = [_index(sets, name, trial) for name in HALF_HOUR for trial in (RENO, CUBIC)]
    f.even_at_edge = judge((min(edge), max(edge)), least=FAIR_INDEX)
    f.edge_index = Numbers(tuple(edge), digits=4)
    f.reno_index = Number(_index(sets, "edge-long", RENO))
    f.cubic_index = Number(_index(sets, "edge-long", CUBIC), digits=4)
    f.ten_are_even = min(_index(sets, "edge-long", trial) for trial in (RENO, CUBIC)) > FAIR_INDEX

    core = (_index(sets, "core-long", RENO), _index(sets, "core", CUBIC))
    too_short = f.holds("long_is_too_short")
    f.even_at_core = None if too_short else judge((min(core), max(core)), least=FAIR_INDEX)
    f.cubic_core_index = Number(core[1])
    f.core_reno_index = Number(_index(sets, "core", RENO))

    bbr_core = [_index(sets, name, BBR) for name in BASE_DELAYS]
    f.bbr_uneven_at_core = judge((min(bbr_core), max(bbr_core)), most=UNFAIR_AT_CORE)
    f.bbr_core_index = Numbers(tuple(bbr_core))
    bbr_edge = [_index(sets, name, BBR) for name in HALF_HOUR]
    f.bbr_uneven_at_edge = judge((min(bbr_edge), max(bbr_edge)), most=UNFAIR_AT_EDGE)
    f.bbr_edge_index = Numbers(tuple(bbr_edge), digits=5)
    f.bbr_more = Numbers(tuple(bbr_edge[1:]), digits=4)
    crowds = [_index(sets, name, BBR) for name in CROWDS]
    f.bbr_uneven_in_crowds = max(crowds) < UNFAIR_AT_CORE
    f.bbr_300, f.bbr_500, f.bbr_1000 = map(Number, crowds)
    f.bbr_counted = seconds(measured(sets.run("core", BBR), "duration_s"))

    bbr = sets.run("edge-once", BBR)
    f.bbr_ten = Number(_index(sets, "edge-once", BBR), digits=4)
    f.bbr_ten_are_even = _index(sets, "edge-once", BBR) >= FAIR_INDEX
    f.bbr_drops = whole(measured(bbr, "queue_drops"))
    f.bbr_queue = ms(measured(bbr, "queue_delay_mean_ms"))
    f.reno_queue = ms(measured(sets.run("edge-once", RENO), "queue_delay_mean_ms"))
    f.bbr_200 = Number(_index(sets, "edge-200-ms", BBR))
    f.bbr_200_drops = whole(measured(sets.run("edge-200-ms", BBR), "queue_drops"))

    far = sets.run("core-100-ms", RENO)
    rates = [flow.goodput_bps for flow in far.flows]
    f.far_index = Number(measured(far, "jains_index"))
    f.far_counted = seconds(measured(far, "duration_s"))
    f.far_each = Number(measured(far, "halvings") / measured(far, "flows"), digits=2)
    f.far_never = _never_halved(far)
    f.far_fastest = mbit(max(rates))
    f.far_median = mbit(statistics.median(rates))


def _fair_among_others(f: Facts, sets: RecordedSets) -> None:
    """Mixes of two algorithms: the rivals' part of the goodput."""
    f.mixes = runs_as_rows(
        (run for name in MIXES for run in sets.runs(name) if run.value("rival_share")),
        {
            "run": _set,
            "mix": _mix,
            "rivals' part": cell("rival_share", percent),
            "fair": cell("rival_fair_share", percent),
            "times the fair share": cell("rival_multiple", Number),
        },
    )
    tens = [
        sets.runs("edge-ten-times", trial) for trial in (CUBIC_IN_RENO, BBR_IN_RENO, BBR_IN_CUBIC)
    ]
    f.ten_mixes = table(
        ("mix, ten runs at edge", "times the fair share, 95 % interval"),
        (
            (
                "{rival} against {congestion_control}".format(**runs[0].params),
                Interval.of_mean(column(runs, "rival_multiple")),
            )
            for runs in tens
        ),
    )

    once = sets.run("edge-once", CUBIC_IN_RENO)
    f.cubic_once = percent(measured(once, "rival_share"))
    f.cubic_ten = _percent_of_mean(tens[0], "rival_share")
    low, high = CUBIC_TAKES
    f.edge_has_it_already = measured(once, "rival_share") >= low
    halves = [sets.run(name, CUBIC_IN_RENO) for name in HALVES]
    shares = column(halves, "rival_share")
    f.cubic_takes_70_to_80 = judge((min(shares), max(shares)), least=low, most=high)
    f.each_is_in_range = low <= min(shares) and max(shares) <= high
    f.cubic_core = Numbers.of([percent(share) for share in shares])
    f.cubic_flows = whole(measured(halves[0], "flows") / 2)
    f.queue_adds = ms(8 * param(halves[0], "buffer_bytes") / param(halves[0], "rate_mbit") / 1e3)
    f.cubic_rtts = Numbers.of([ms(rtt) for rtt in column(halves, "rtt_mean_ms")])

    few = [
        sets.run("edge-once", BBR_IN_RENO),
        sets.run("fair-share-fixed"),
        sets.run("intermediate", BBR_IN_RENO),
    ]
    parts, multiples = column(few, "rival_share"), column(few, "rival_multiple")
    f.bbr_few = Numbers.of([percent(part) for part in parts])
    f.bbr_beside = Numbers(tuple(flows - 1 for flows in column(few, "flows")))
    f.bbr_few_times = Numbers(tuple(multiples))
    f.bbr_few_are_near_40 = (
        max(parts) <= 1.3 * min(parts)
        and min(parts) >= 0.3
        and max(parts) <= 0.5
        and multiples == sorted(multiples)
    )
    f.bbr_200_ms = percent(measured(sets.run("edge-200-ms", BBR_IN_RENO), "rival_share"))


def _buffers(f: Facts, sets: RecordedSets) -> None:
    """One BBR flow at core, with three sizes of the hosts' largest socket buffers: Linux's default, a middle one that
    seemed ample, and a large one."""
    default, middle, large = (sets.run(name, BBR_IN_RENO) for name in BY_BUFFER)
    f.windows_sets = ", ".join(BY_BUFFER)
    f.windows_published = table(
        ("part", "what they said"),
        (
            (percent(BBR_TAKES_REPRODUCED), "highly fair"),
            (percent(BBR_TAKES_PUBLISHED), "40 % from thousands"),
        ),
    )
    shares = column([default, middle, large], "rival_share")
    f.bbr_default, f.bbr_middle, f.bbr_large = map(percent, shares)
    f.bbr_takes_40 = judge((shares[2], shares[2]), least=BBR_TAKES[0], most=BBR_TAKES[1])
    f.one_percent_is_fair = measured(default, "rival_multiple") < 2
    f.buffers_decide = shares[2] > 7 * shares[1] > 49 * shares[0]
    f.default_times = Number(measured(default, "rival_multiple"), digits=2)
    f.large_times = Number(measured(large, "rival_multiple"), digits=2)
    f.bbr_others = whole(measured(middle, "flows") - 1)
    f.default_send = _mib(default, "wmem_max_bytes")
    f.default_receive = _mib(default, "rmem_max_bytes")
    f.middle_buffers = _mib(middle, "rmem_max_bytes")
    f.large_buffers = _mib(large, "rmem_max_bytes")

    rtt_ms = measured(middle, "rtt_mean_ms")
    f.middle_rtt = ms(rtt_ms)
    f.needed = Number(BBR_TAKES_PUBLISHED * param(middle, "rate_mbit") * rtt_ms / 8e3, "MB", 2)
    beside = [
        measured(sets.run(name, BBR_IN_CUBIC), "rival_share")
        for name in ("core", "core-large-windows")
    ]
    f.cubic_middle, f.cubic_large = map(percent, beside)
    f.middle_held_it_too = beside[1] > 1.2 * beside[0]

    ceiling_bps = 8e3 * param(default, "wmem_max_bytes") / measured(default, "rtt_mean_ms")
    of_all = ceiling_bps / measured(default, "goodput_bps")
    f.ceiling = mbit(ceiling_bps)
    f.ceiling_part = percent(of_all, 2)
    f.ceiling_is_near = 0.5 <= of_all / BBR_TAKES_REPRODUCED <= 2


def _cost(f: Facts, sets: RecordedSets) -> None:
    """How long runs last, and what those of the source's design that aren't recorded would cost."""
    f.intermediate_lasts = seconds(param(sets.run("intermediate", RENO), "duration_s"))
    small, large = sets.run("edge-once", RENO), sets.run("core-no-edges", RENO)
    f.core_lasts = seconds(param(large, "duration_s"))
    f.long_lasts = seconds(param(sets.run("core-long", RENO), "duration_s"))
    took_s = _took_s(small)
    segments = (
        measured(small, "segments") * param(small, "duration_s") / measured(small, "duration_s")
    )
    a_second = measured(large, "segments") / measured(large, "duration_s")
    core_s = took_s / segments * a_second
    run_hours = core_s * SOURCE_LASTS_S / 3600
    f.edge_took = seconds(took_s, 2)
    f.edge_segments = Number(segments / 1e6, "million", 2)
    f.segment_takes = Number(1e6 * took_s / segments, "µs", 2)
    f.core_segments = whole(a_second / 1e3, "thousand")
    f.core_second = Number(core_s, "s", 2)
    f.run_takes = Number(run_hours, "hours", 2)
    f.design_takes = whole(SOURCE_RUNS * run_hours, "hours")
    f.core_memory = Number(param(large, "memory_bytes") / 2**30, "GiB", 2)


def _essay(f: Facts, sets: RecordedSets) -> None:
    """What docs/story.md says beside the three sizes of buffers."""
    default, middle, large = (sets.run(name, BBR_IN_RENO) for name in BY_BUFFER)
    f.core_rate = Number(param(default, "rate_mbit") / 1e3, "Gbit/s")
    names = (f"{f.default_send}, Linux's default", f.middle_buffers, f.large_buffers)
    f.by_buffer = table(
        ("largest buffer", "BBR's part", "times the fair share"),
        (
            (
                name,
                percent(measured(run, "rival_share")),
                Number(measured(run, "rival_multiple"), digits=2),
            )
            for name, run in zip(names, (default, middle, large), strict=True)
        ),
    )
    f.middle_factor = Number(param(middle, "wmem_max_bytes") / param(default, "wmem_max_bytes"))
    f.middle_cant_hold_it = f.needed.value * 1e6 > 2 * param(middle, "wmem_max_bytes")
    f.bbr_ten_runs = _percent_of_mean(sets.runs("edge-ten-times", BBR_IN_RENO), "rival_share")
    f.few_or_many_alike = min(f.bbr_ten_runs.middle_value, f.bbr_large.value) > 30
    once = sets.run("edge-once", BBR_IN_RENO)
    f.bbr_once = percent(measured(once, "rival_share"))
    f.bbr_once_rtt = ms(measured(once, "rtt_mean_ms"))
    f.edge_rate = whole(param(once, "rate_mbit"), "Mbit/s")


def _edges(f: Facts, sets: RecordedSets) -> None:
    """Ten Reno flows at edge, ten runs of each speed of the hosts' cables from the slowest on; a thousand at core, a run
    of each."""
    edge = [sets.runs(name, RENO) for name in EDGE_CABLES]
    core = [sets.runs(name, RENO) for name in CORE_CABLES]
    f.cable = whole(sets.trial(RENO)["cable_mbit"], "Mbit/s")
    f.wait = whole(sets.trial(RENO)["processing_us"], "µs")
    f.edge_kind = f"{edge[0][0].params['flows']} flows at {f.edge_rate}"
    f.core_kind = f"{core[0][0].params['flows']} flows at {f.core_rate}"
    f.edges = table(
        ("flows", "cables (Mbit/s)", "runs", "after the warm-up", "from the start"),
        (
            (
                kind,
                Number(param(runs[0], "cable_mbit"))
                if runs[0].params["cable_mbit"]
                else "no speed",
                whole(len(runs)),
                *(_mean_or_one(runs, name) for name in BOTH_COUNTS),
            )
            for kind, of_kind in ((f.edge_kind, edge), (f.core_kind, core))
            for runs in of_kind
        ),
    )
    trains = [sets.other("mathis").run(name) for name in TRAINS]
    windows = [window_arrivals(sets.raw_text(run, "router/acks.txt"), "acks.txt") for run in trains]
    f.arrivals = table(
        ("cables (Mbit/s)", *(f"of a window of {size} (µs)" for size in WINDOWS)),
        (
            (whole(param(run, "cable_mbit")), *(Numbers(tuple(times)) for times in arrived))
            for run, arrived in zip(trains, windows, strict=True)
        ),
    )
    f.train_rtt = ms(param(trains[0], "rtt_ms"))
    f.slowest_train_takes_longer = windows[0][-1][-1] > 1e3 * param(trains[0], "rtt_ms")

    f.cables_last = seconds(param(edge[0][0], "duration_s"))
    means = {
        "drops for each halving": "drops_per_halving",
        "C by drops": "c_by_drops",
        "C by halvings": "c_by_halvings",
    }
    f.cables_edge = table(
        ("cables", "a host waits at most", *means, "Jain's index"),
        (
            (
                _cable(runs[0]),
                _wait(runs[0]),
                *(Interval.of_mean(column(runs, name)) for name in means.values()),
                Interval.of_mean(column(runs, "jains_index"), within=(0, 1)),
            )
            for runs in edge
        ),
    )
    f.core_cables_counted = seconds(measured(core[0][0], "duration_s"))
    f.cables_core = runs_as_rows(
        (run for run, *_ in core),
        {
            "cables": _cable,
            "a host waits at most": _wait,
            "halvings": cell("halvings", whole),
            "drops for each": cell("drops_per_halving", Number),
            "C by drops": cell("c_by_drops", Number),
            "C by retransmissions": cell("c_by_retransmits", Number),
            "C by halvings": cell("c_by_halvings", Number),
            "Jain's index": cell("jains_index", Number),
        },
    )
    (slow, slow_all), (clean, clean_all) = (
        [mean(runs, name) for name in BOTH_COUNTS] for runs in (edge[0], edge[-1])
    )
    f.clean, f.slow, f.clean_all, f.slow_all = map(Number, (clean, slow, clean_all, slow_all))
    f.slow_and_clean_are_alike = slow < 2 * clean and clean < 2 * slow
    f.slow_has_more = slow > clean
    f.slow_start_overshoots_less = slow_all < clean_all / 2
    after, of_all = ([measured(run, name) for run, *_ in core] for name in BOTH_COUNTS)
    f.core_after = Numbers(tuple(after))
    f.core_after_is_low = max(after) < min(of_all) / 2
    f.core_start_is_high_on_fast = of_all[-1] > 5 * of_all[0]
    f.no_cable_gives_6_to_9 = not any(6 <= each <= 9 for each in after)
    plain, usual = (
        measured(sets.run(name, RENO), "drops_per_halving")
        for name in ("core-no-edges", "core-cables-10000")
    )
    f.core_clean, f.core_usual = Number(plain), Number(usual)
    f.trains_do_little_at_core = plain < 2 * usual


def _from_the_start(f: Facts, sets: RecordedSets) -> None:
    """Drops for each halving counted after the warm-up and from the start, and how the second goes on falling at core
    with cables without a speed."""
    f.both_counts = table(
        ("flows", "cables", "after the warm-up", "from the start"),
        (
            (what, _cable(runs[0]), *(Number(mean(runs, name)) for name in BOTH_COUNTS))
            for what, names in (
                ("ten, at edge", EDGE_CABLES),
                ("a thousand, at core", CORE_CABLES),
            )
            for runs in (sets.runs(name, RENO) for name in names)
        ),
    )
    run = sets.run(CORE_CABLES[-1], RENO)
    drops, cut = measured(run, "queue_drops"), measured(run, "halvings")
    start_drops = measured(run, "all_queue_drops") - drops
    start_cut = measured(run, "all_halvings") - cut
    drops_s, cut_s = (value / measured(run, "duration_s") for value in (drops, cut))
    f.start_drops, f.start_halvings = whole(start_drops), whole(start_cut)
    f.drops_a_second = Number(drops_s, digits=2)
    f.halvings_a_second = Number(cut_s, digits=2)
    f.six_after, f.nine_after = (
        Number((start_drops - ratio * start_cut) / (ratio * cut_s - drops_s) / 60, "minutes", 2)
        for ratio in LOSSES_AT_CORE
    )


def _stages(f: Facts, sets: RecordedSets, case: str) -> tuple[Result, Result]:
    """Both recorded runs of a case, and as facts what the first is set to."""
    broken, fixed = (sets.run(f"{case}-{stage}") for stage in STAGES)
    _settings(f, broken)
    return broken, fixed


def _summaries(case: str, **lines: int) -> Iterator[Excerpt]:
    """What the router printed in either stage of a case."""
    return (excerpt(f"{case}-{stage}", "router/summary.txt", **lines) for stage in STAGES)


def _stage(run: Result) -> str:
    return _set(run).rpartition("-")[2]


def _set(run: Result) -> str:
    """The name of the recorded set that a run is in."""
    return run.run_dir.parent.name


def _most_bps(run: Result) -> float:
    """The most goodput that a run's link allows, as its shaper counts frames."""
    return payload_limit(param(run, "rate_mbit") * 1e6, wire=False)


def _took_s(run: Result) -> float:
    """How long a run took by the clock on the wall, in seconds."""
    document = json.loads((run.run_dir / "provenance.json").read_text(encoding="utf-8"))
    begun, ended = (datetime.fromisoformat(document[key]) for key in ("started", "ended"))
    return (ended - begun).total_seconds()


def _index(sets: RecordedSets, name: str, trial: int) -> float:
    return measured(sets.run(name, trial), "jains_index")


def _counted(run: Result) -> tuple[Number, Number]:
    """How many flows a run has, and the time in which they were counted."""
    return whole(measured(run, "flows")), seconds(measured(run, "duration_s"))


def _cable(run: Result) -> Cell:
    cable = param(run, "cable_mbit")
    return whole(cable, "Mbit/s") if cable else "no speed"


def _wait(run: Result) -> Number:
    """How long a run's hosts wait at most until they look at a packet."""
    return whole(param(run, "processing_us"), "µs")


def _mean_or_one(runs: Sequence[Result], name: str) -> Number | Interval:
    values = column(runs, name)
    return Interval.of_mean(values) if len(values) > 1 else Number(values[0])


def _by_chance(run: Result, name: str) -> Interval:
    """A run's C, and how far it would move if each halving came by itself, at random."""
    low, high = ratio_bounds(measured(run, "halvings")) or (0, 0)
    value = measured(run, name)
    return Interval(value, low * value, high * value)


def _percent_of_mean(runs: Sequence[Result], name: str) -> Interval:
    """The mean of a ratio over runs, in percent."""
    return Interval.of_mean([100 * ratio for ratio in column(runs, name)], "%")


def _never_halved(run: Result) -> Number:
    """How many of a run's flows had no halving, `42 of 1000`."""
    return whole(sum(not flow.halvings for flow in run.flows), f"of {count(len(run.flows))}")


def _root(value: float) -> Number:
    return Number(value**0.5)


def _over(run: Result, name: str, other: str) -> float:
    """One measured value of a run over another."""
    return measured(run, name) / measured(run, other)


def _mix(run: Result) -> str:
    rivals = measured(run, "rivals_found")
    return (
        f"{count(rivals)} {run.params['rival']} against "
        f"{count(measured(run, 'flows') - rivals)} {run.params['congestion_control']}"
    )


def _mib(run: Result, name: str) -> Number:
    return whole(param(run, name) / 2**20, "MiB")
