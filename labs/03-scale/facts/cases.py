"""The lab's cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

from collections.abc import Iterator

from measuretwice.facts import (
    Excerpt,
    Facts,
    Number,
    RecordedSets,
    cell,
    excerpt,
    factor,
    mbit,
    measured,
    ms,
    param,
    param_cell,
    per,
    percent,
    runs_as_rows,
    seconds,
    size,
    stage_cell,
    table,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.tcp.model import USUAL_FRAME_BYTES, bdp_bytes, drain_ms, shaped_goodput_bps

from .runs import RENO

STAGES = ("broken", "fixed")
# What a case's table of settings shows, by the fact's name.
SETTINGS = {
    "flows": param_cell("flows", Number),
    "rate": param_cell("rate_mbit", lambda rate_mbit: whole(rate_mbit, "Mbit/s")),
    "rtt": param_cell("rtt_ms", ms),
    "buffer": param_cell("buffer_bytes", size),
    "lasts": param_cell("duration_s", seconds),
    "warmup": param_cell("warmup_s", seconds),
}


def set_cases(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    _standing_queue(f.case("standing-queue"), sets)
    _halving_counter(f.case("halving-counter"), sets)
    _loss_definition(f.case("loss-definition"), sets)
    _offload_at_scale(f.case("offload-at-scale"), sets)
    _unequal_intervals(f.case("unequal-intervals"), sets)
    _missing_flows(f.case("missing-flows"), sets)
    _mislabelled_row(f.case("mislabelled-row"), sets)
    _fair_share(f.case("fair-share"), sets)


def _standing_queue(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "standing-queue", "flows rate rtt buffer lasts warmup")
    f.summary, f.summary_fixed = _summaries("standing-queue")
    f.ping = excerpt("standing-queue-broken", "sender-0/ping.txt", last=2)
    f.ss = excerpt("standing-queue-broken", "sender-0/ss.txt", grep="bytes_acked", last=1)
    f.idle = ms(measured(broken, "path_rtt_ms"))
    f.queue = size(measured(broken, "queue_mean_bytes"))
    f.queue_takes = ms(measured(broken, "queue_delay_mean_ms"))
    f.rtt_mean = ms(measured(broken, "rtt_mean_ms"))
    buffer_bytes = param(broken, "buffer_bytes")
    path_bytes = bdp_bytes(param(broken, "rate_mbit"), param(broken, "rtt_ms"))
    f.buffer_bdps = whole(buffer_bytes / path_bytes)
    f.the_path_is_not_idle = measured(broken, "queue_mean_bytes") > 0.3 * buffer_bytes
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "run": stage_cell,
            "RTT in the model": cell("own_rtt_ms", ms),
            "C by halvings": cell("own_c_by_halvings", Number),
        },
    )
    by_rtt, by_c = (factor(fixed, broken, name) for name in ("own_rtt_ms", "own_c_by_halvings"))
    f.c_follows_rtt = abs(by_c / by_rtt - 1) < 0.02
    c = measured(fixed, "own_c_by_halvings")
    f.c_is_where_it_should_be = f.c_even.value <= c <= f.c_random.value
    f.c_broken, f.c_fixed = Number(measured(broken, "own_c_by_halvings")), Number(c)
    f.halvings = whole(measured(fixed, "halvings"))
    f.halvings_each = Number(measured(fixed, "halvings") / measured(fixed, "flows"))
    f.counted = seconds(measured(fixed, "duration_s"))
    f.index = Number(measured(fixed, "jains_index"), digits=2)
    f.c_of_half_an_hour = Number(measured(sets.run("edge-long", RENO), "c_by_halvings"))


def _halving_counter(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "halving-counter", "flows rate buffer lasts warmup")
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
            "run": stage_cell,
            "halvings": cell("own_halvings", whole),
            "losses for each halving": cell("own_losses_per_halving", Number),
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
    f.by_events = Number(measured(broken, "own_losses") / measured(broken, "halvings"))
    f.by_counter = f.losses_each


def _loss_definition(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "loss-definition", "flows rate rtt")
    f.summary, f.summary_fixed = _summaries("loss-definition")
    f.counters = excerpt(
        "loss-definition-broken",
        "sender-0/nstat.after.json",
        counters=["TcpRetransSegs", "TcpExtTCPDSACKRecv", "TcpExtTCPDSACKUndo"],
    )
    f.ss = excerpt("loss-definition-broken", "sender-0/ss.txt", grep="bytes_acked", last=1)
    rate_bps = param(broken, "rate_mbit") * 1e6
    full_ms = param(broken, "rtt_ms") + drain_ms(
        param(broken, "buffer_bytes"), param(broken, "rate_mbit")
    )
    window = rate_bps * full_ms / 8e3 / USUAL_FRAME_BYTES / param(broken, "flows")
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
    f.more_is_resent_than_dropped = per(broken, "retransmits", "queue_drops") > 1.5
    f.more_halvings_than_drops = measured(broken, "halvings") > measured(broken, "queue_drops")
    f.flows_did_the_same = all(
        broken.measured[name] == fixed.measured[name]
        for name in ("segments", "retransmits", "queue_drops", "halvings", "goodput_bps")
    )


def _offload_at_scale(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "offload-at-scale", "flows rate buffer lasts warmup")
    f.summary, f.summary_fixed = _summaries("offload-at-scale")
    f.counters = excerpt(
        "offload-at-scale-broken",
        "sender-0/nstat.after.json",
        counters=["TcpRetransSegs", "TcpExtTCPDSACKRecv"],
    )
    f.queue_sample = excerpt("offload-at-scale-broken", "router/queue.txt", last=1)
    f.resent = whole(measured(broken, "retransmits"))
    f.drops = whole(measured(broken, "queue_drops"))
    f.resent_each = Number(per(broken, "retransmits", "queue_drops"))
    f.waiting = whole(measured(broken, "queue_mean_packets"))
    f.spurious = whole(measured(broken, "spurious_retransmits"))
    f.few_are_needless = per(broken, "spurious_retransmits", "retransmits") < 0.05
    f.more_is_resent_than_dropped = per(broken, "retransmits", "queue_drops") > 1.3
    f.fixed_resends_each_drop = abs(per(fixed, "retransmits", "queue_drops") - 1) < 0.05
    f.packet = whole(measured(broken, "queue_packet_bytes"))
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "run": stage_cell,
            "packets in the queue, mean": cell("queue_mean_packets", whole),
            "bytes in a packet": cell("queue_packet_bytes", whole),
            "drops": cell("queue_drops", whole),
            "retransmitted": cell("retransmits", whole),
            "losses for each halving": cell("own_losses_per_halving", Number),
        },
    )


def _unequal_intervals(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "unequal-intervals", "flows rate lasts")
    f.table, f.table_fixed = (
        excerpt(f"unequal-intervals-{stage}", "router/flows.txt") for stage in STAGES
    )
    f.summary, f.summary_fixed = _summaries("unequal-intervals", first=4)
    f.first, f.last = (
        excerpt("unequal-intervals-broken", f"sender-{n}/iperf3-1.json", grep='"timesecs"')
        for n in (0, 8)
    )
    sum_fixed = mbit(measured(fixed, "own_sum_bps"))
    f.sum = mbit(measured(broken, "own_sum_bps"))
    f.most = mbit(shaped_goodput_bps(param(broken, "rate_mbit")))
    f.spread = seconds(param(broken, "start_spread_ms") / 1000)
    f.index, f.index_fixed = (Number(measured(run, "own_jain")) for run in (broken, fixed))
    f.both = table(
        ("rates over", "sum", "Jain's index"),
        (
            ("each flow's own time", f.sum, f.index),
            ("the time in which all were there", sum_fixed, f.index_fixed),
        ),
    )


def _missing_flows(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "missing-flows", "flows rate lasts warmup")
    f.summary, f.summary_fixed = _summaries("missing-flows")
    f.table = excerpt("missing-flows-broken", "router/flows.txt")
    f.error = excerpt("missing-flows-broken", "sender-3/iperf3-2.json", grep="error")
    f.streams = Number(param(broken, "streams_count"))
    f.ran = whole(measured(broken, "flows"))
    f.sum = mbit(measured(broken, "own_sum_bps"))
    f.index = Number(measured(broken, "own_jain"))
    # Of the same rates as the printed index: the flows that didn't run are zeros in it.
    f.index_of_these = Number(
        measured(broken, "own_jain") * param(broken, "flows") / measured(broken, "flows")
    )
    f.index_fixed = Number(measured(fixed, "own_jain"))
    f.flows_fixed = Number(param(fixed, "flows"))
    f.counted_fixed = seconds(measured(fixed, "duration_s"))
    f.the_link_is_full = measured(broken, "own_sum_bps") > 0.98 * shaped_goodput_bps(
        param(broken, "rate_mbit")
    )
    f.index_is_low = (
        measured(broken, "own_jain") <= measured(broken, "flows") / param(broken, "flows")
        and measured(fixed, "own_jain") > measured(broken, "own_jain") + 0.2
    )


def _mislabelled_row(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "mislabelled-row", "rate rtt lasts warmup")
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
    used = measured(fixed, "goodput_bps") / shaped_goodput_bps(param(fixed, "rate_mbit"))
    f.a_clear_winner_and_no_bound_broken = measured(fixed, "rival_share") > 0.6 and used < 1.002


def _fair_share(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = _stages(f, sets, "fair-share", "flows rate rtt lasts warmup")
    share, share_fixed = measured(broken, "rival_share"), measured(fixed, "rival_share")
    f.groups = excerpt("fair-share-broken", "router/groups.txt")
    f.reno_flows = Number(param(broken, "flows") - 1)
    f.twice = Number(2 * param(broken, "flows"))
    f.bbr_part, f.reno_part, f.bbr_part_fixed = map(percent, (share, 1 - share, share_fixed))
    printed = measured(broken, "own_rival_share")
    f.bbr_printed, f.reno_printed = percent(printed), percent(1 - printed)
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
            "flows": param_cell("flows", Number),
            "BBR's share": cell("rival_share", percent),
            "the fair share": cell("rival_fair_share", percent),
            "times its fair share": cell("rival_multiple", Number),
        },
    )
    f.bbr_has_the_smaller_part = max(share, share_fixed) < 0.5
    f.share_hardly_follows_the_flows = abs(share_fixed / share - 1) < 0.15
    f.far_above_its_fair_share = measured(fixed, "rival_multiple") > 3
    f.share_factor = Number(share_fixed / share, digits=2)
    f.times_factor = Number(factor(fixed, broken, "rival_multiple"), digits=2)


def _stages(f: Facts, sets: RecordedSets, case: str, settings: str) -> tuple[Result, Result]:
    """Set what a case's first run is set to, those of SETTINGS that its page quotes; return both recorded runs."""
    broken, fixed = sets.stages(case)
    for name in settings.split():
        setattr(f, name, SETTINGS[name](broken))
    return broken, fixed


def _summaries(case: str, **lines: int) -> Iterator[Excerpt]:
    """What the router printed in either stage of a case."""
    return (excerpt(f"{case}-{stage}", "router/summary.txt", **lines) for stage in STAGES)
