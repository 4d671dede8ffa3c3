"""What results.md reads off the sets that decide, beyond the verdicts: where CoDel waits and what it costs, where DCTCP does, and who
gains from fair queueing."""

from __future__ import annotations

from measuretwice.facts import (
    Facts,
    Interval,
    RecordedSets,
    column,
    mean,
    mean_interval,
    ms,
    percents,
    size,
)
from measuretwice.tcp.model import USUAL_FRAME_BYTES, drain_ms

from .runs import flows_wait, median_over_runs, pings_took, ratio_of_pairs, runs_of

HOME, START = "home", "home-start"
# Of the link, how much less counts as less.
LESS_USED = 0.03


def set_readings(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md says beside its tables."""
    _of_codel(f, sets)
    _of_dctcp(f, sets)
    _of_a_home(f, sets)
    _of_its_start(f, sets)


def _of_codel(f: Facts, sets: RecordedSets) -> None:
    """CoDel by the number of flows, over a long path, and at a home: the call's median wait, and use of the link less than a FIFO's."""
    four, fast, far, single, sixteen, home = (
        median_over_runs(column(runs_of(sets, name, "codel"), "server_delay_p50_ms"), "ms")
        for name in ("codel", "codel-100-mbit", "codel-100-ms", "codel-1-flow", "codel-16-flows", HOME)
    )  # fmt: skip
    f.codel_delay_1, f.codel_delay_16, f.codel_delay_home = single, sixteen, home
    f.codel_waits_longer_with_more_flows = (
        single.high_value < four.low_value and four.high_value < sixteen.low_value
    )
    f.codel_waits_longest_at_home = home.low_value > max(
        wait.high_value for wait in (four, fast, far, single)
    )
    usual, of_one, of_far, of_home = (
        _loss(sets, name) for name in ("codel", "codel-1-flow", "codel-100-ms", HOME)
    )
    f.codel_loss_1, f.codel_loss_far, f.codel_loss_home = of_one, of_far, of_home
    f.codel_loses_with_one_flow = of_one.low_value > 2
    f.codel_loses_over_100_ms = of_far.low_value > max(1.9, usual.high_value)


def _loss(sets: RecordedSets, name: str) -> Interval:
    """Return how much less of the link CoDel uses than a FIFO with the same seed, in percent of it."""
    fifo, codel = (
        percents(runs_of(sets, name, discipline), "utilisation")
        for discipline in ("bfifo", "codel")
    )
    return Interval.of_mean([a - b for a, b in zip(fifo, codel, strict=True)], "%", 2)


def _of_dctcp(f: Facts, sets: RecordedSets) -> None:
    """DCTCP where the link is slow or fast, or the path short: alone, and beside CUBIC."""
    slow, short = "dctcp-10-mbit", "dctcp-10-ms"
    wait = Interval.of_mean(flows_wait(sets.runs(slow)), "ms")
    f.dctcp_wait_slow = wait
    f.dctcp_waits_longer_at_10_mbit = wait.low_value > 2
    f.packet_takes_slow = ms(
        drain_ms(USUAL_FRAME_BYTES, float(sets.runs(slow)[0].params["router_up_mbit"])), 2
    )
    f.dctcp_uses_less_alone = all(
        mean(sets.runs(name), "utilisation")
        < mean(sets.runs(name.replace("dctcp", "dctcp-and-cubic")), "utilisation") - LESS_USED
        for name in (slow, short)
    )
    f.share_slow, f.share_fast = (
        ratio_of_pairs(*(column(sets.runs(name), f"{node}_goodput_bps") for node in ("laptop", "phone")))
        for name in ("dctcp-and-cubic-10-mbit", "dctcp-and-cubic-100-mbit")
    )  # fmt: skip
    f.dctcp_gets_little_at_10_mbit = f.share_slow.high_value < 0.5
    f.dctcp_gets_more_at_100_mbit = f.share_fast.low_value > 1.5


def _of_a_home(f: Facts, sets: RecordedSets) -> None:
    """A full home's pages, downloads and call by its router's discipline, and what waits in a FIFO of 1000 packets."""
    fifo, codel, fq_codel = (runs_of(sets, HOME, name) for name in ("bfifo", "codel", "fq_codel"))
    pages = [mean_interval(of, "phone_transfer_p50_ms", "ms") for of in (fifo, codel, fq_codel)]
    f.page_fifo, f.page_codel, f.page_fq_codel = pages
    f.pages_are_faster_with_fq_codel = (
        pages[2].high_value < pages[1].low_value and pages[1].high_value < pages[0].low_value
    )
    f.late_fifo, f.late_fq_codel = (
        Interval.of_mean(percents(of, "server_late_ratio"), "%", within=(0, 100))
        for of in (fifo, fq_codel)
    )
    by_packets = sets.runs("home-fifo-1000-packets")
    f.queued_packet = size(
        round(mean(by_packets, "queue_mean_bytes") / mean(by_packets, "queue_mean_packets"))
    )
    with_fifo, with_fq_codel = (mean_interval(of, "server_goodput_bps") for of in (fifo, fq_codel))
    f.downloads_are_faster_with_fq_codel = with_fq_codel.low_value > with_fifo.high_value


def _of_its_start(f: Facts, sets: RecordedSets) -> None:
    """A full home's pings in the first seconds, and after them."""
    first, later = (
        {
            discipline: Interval.of_mean(pings_took(runs_of(sets, name, discipline)))
            for discipline in ("bfifo", "codel", "fq_codel")
        }
        for name in (START, HOME)
    )
    f.codel_struggles_at_the_start, f.fq_codel_struggles_at_the_start = (
        first[name].low_value > later[name].high_value for name in ("codel", "fq_codel")
    )
    f.fifo_waits_less_at_the_start = first["bfifo"].high_value < later["bfifo"].low_value
