# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The latency lab: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/06-latency`.
# Each section answers one of the questions in `labs/06-latency/questions.md` and shows what
# full marks look like.
#
# The recorded runs of the cases have seed 1. A student has another seed, and with it another round-trip
# time or other rooms of the FIFOs: compare the argument with this one, not the numbers.

# %%
import statistics

import pandas as pd
from common import Recordings, say
from IPython.display import display

from measuretwice import parse
from measuretwice.measure.delays import read_streams
from measuretwice.stats import intervals

sets = Recordings("latency")
lab, f = sets.lab, sets.facts
runs, raw, figure = sets.runs, sets.raw, sets.figure
print(lab.file.lab.title)


# %%
def four_digits(value: float | None) -> str:
    """A measured number as the tables have it; nothing where there is none."""
    return "" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def table(name: str, *values: str) -> pd.DataFrame:
    """Measured values of a set's runs, a row a run."""
    return pd.DataFrame(
        [
            {
                "trial": run.trial,
                "discipline": run.params["discipline"],
                **{value: four_digits(run.measured.get(value)) for value in values},
            }
            for run in runs(name)
        ]
    )


def both(case: str, *values: str) -> None:
    """Measured values of a case's runs: the first try, then the fixed one."""
    display(table(f"{case}-broken", *values), table(f"{case}-fixed", *values))


def shown(fact: object) -> None:
    """A fact's table as the pages have it."""
    say(str(fact))


def counters(name: str, *nodes: str) -> None:
    """What each queue of some nodes let through and dropped, of those that had packets."""
    rows = []
    with raw(name) as folder:
        for node in nodes:
            text = (folder / node / "qdisc.after.json").read_text()
            for one in parse.parse_tc_qdiscs(text, node):
                if (one.sent_packets or 0) > 100:
                    rows.append((node, one.dev, one.kind, one.sent_packets, one.drops))
    display(pd.DataFrame(rows, columns=["node", "interface", "kind", "packets", "drops"]))


def delays_to(name: str, node: str, run: int = 0) -> list[float]:
    """How much longer than the fastest one each of the call's packets to a node took, in ms."""
    with raw(name, run) as folder:
        streams = read_streams(lab.file.collect.flows.delays, folder)
    [stream] = [stream for stream in streams if stream.node == node]
    return stream.delays_ms


# %% [markdown]
# ## Question 1: the path
#
# Room over rate is how long the last packet of a full queue waits. A ping passes both of the router's queues, one in each
# direction, and with these rates it finds the modem's and the provider's empty.
#
# *Full marks.* All four queues with these times. The router's two are the only ones that those at home can set. The sum of the
# idle path's round trip and both of the router's times.

# %%
shown(f.queues)
say(f"Both of the router's queues full: a ping of {f.both_full_ping}.")

# %% [markdown]
# ## Question 2: who waits
#
# *Full marks.* Bulk flows: iperf3.json and ss.txt; goodput; the user notices how long a transfer takes. Pings: ping-busy.txt; a
# percentile; they stand for whoever sends little. The call: call.txt; the share that is late or lost; the user notices gaps.
# Pages: pages.txt; the median and the 95th percentile of a page's time; the user notices all of that time. Under a FIFO all
# four are in one queue. Under fq_codel each flow has its own, so those that send less than their share hardly wait. That helps
# pings and the call most, and pages, too, if they are short.

# %%
shown(f.percentiles)

# %% [markdown]
# ## Question 3: the queue
#
# *Full marks.* The router's fq_codel dropped nothing and held nothing, while the modem's FIFO dropped packets. A queue forms in
# front of each link to which packets come faster than it sends. On the way up, the highest rate at which fq_codel can still
# have the queue is the link's own. On the way down it must be lower, because packets pass the link first. At any lower rate fq_codel
# has the queue once slow start is over, and the price is the part of the link's rate that is left unused.

# %%
counters("wrong-side-broken", "router", "modem", "isp")
counters("wrong-side-fixed", "router", "modem", "isp")
both("wrong-side", "busy_ping_mean_ms", "queue_delay_mean_ms", "queue_drops", "utilisation")

# %% [markdown]
# ## Question 4: marks
#
# *Full marks.* tcp_ecn of laptop and server; the name `dctcp-reno` in ss; no IpExtInECT0Pkts and no IpExtInCEPkts at the server.
# Whether packets may be marked is decided in the handshake: the SYN of whoever opens the connection asks, and the SYN-ACK grants it. iperf3 was told
# `dctcp`. It prints what the kernel made of that, `dctcp-reno`, and no error.

# %%
for stage in ("broken", "fixed"):
    run = runs(f"dctcp-without-ecn-{stage}")[0]
    grown = sets.counters_grown(run, "server")
    say(
        f"{stage}: {grown['IpExtInECT0Pkts']} packets came to the server unmarked, though they might have been marked, "
        f"and {grown['IpExtInCEPkts']} came marked."
    )
both("dctcp-without-ecn", "rtt_mean_ms", "path_rtt_ms", "goodput_bps", "retransmits")

# %% [markdown]
# ## Question 5: two directions
#
# Downwards, more comes than the provider's link carries, and the router's second queue would let all of it through. So
# the provider's FIFO fills. Upwards, the flows wait for ACKs, which come through that FIFO, so they don't keep their own link full.
#
# *Full marks.* The provider's drops, and none in the router's second queue. The call to the phone is late, and the one to the server
# hardly ever is. Four runs of trial 1: above the link's rate a queue stays at the provider's end, and below it only slow start leaves one
# there. The nearer the two rates are, the longer it takes to empty. Each per cent of rate costs about a per cent of goodput. The step
# from just above the link's rate to just below it removes most of the wait.

# %%
counters("shaped-above-broken", "router", "modem", "isp")
both(
    "shaped-above",
    "busy_ping_mean_ms", "queue_delay_mean_ms", "utilisation", "server_late_ratio", "phone_late_ratio",
)  # fmt: skip

# %% [markdown]
# ## Question 6: time
#
# *Full marks.* The last sample of ss and the first answer to a ping, with their times. The flows' own round trip contradicts
# the pings. A check: the first answer must come before the last sample. A probe also misses the load if it takes
# another path, is in another class, or ends before the flows have reached the link's rate.

# %%
late = f.case("after-the-load")
say(
    f"The last sample of ss is at {late.last_sample}, and the first answer came {late.pings_after} later. The flows' own round "
    f"trip is {late.flows_rtt} on average, and ping's {late.ping_mean}."
)
both("after-the-load", "busy_ping_mean_ms", "busy_ping_beside_ratio", "rtt_mean_ms")

# %% [markdown]
# ## Question 7: shares
#
# Fair queueing gives each flow that wants it an even share of the router's rate.
#
# *Full marks.* The rate over the number of flows, the call included. The call's rate with 42 B of headers. Two runs, with `call_bytes`
# a little below and a little above the size at which the call sends just its share. Pings are far below their share, so their queue
# is nearly always empty. Whatever a flow sends above its share can't arrive while the others use theirs. So that part of its
# packets is lost, and its own long queue delays the rest.

# %%
apart = f.case("probe-apart")
say(
    f"An even share is {apart.fair_share}, and the call sends {apart.call_rate_with_headers}, headers included."
)
lost = 1 - apart.fair_share.value / apart.call_rate_with_headers.value
say(
    f"So {lost * 100:.0f} % of its packets must be lost while all others use their shares; {apart.lost_up} were."
)
share_bytes = (
    apart.fair_share.value
    * 1e6
    / 8
    * 0.001
    * runs("probe-apart-broken")[0].params["call_interval_ms"]
)
say(f"So its packets stop being late at about {share_bytes - 42:.0f} B of `call_bytes`.")
display(
    table(
        "probe-apart-broken",
        "busy_ping_p50_ms", "server_delay_p50_ms", "server_lost_ratio", "server_late_ratio",
    )
)  # fmt: skip

# %% [markdown]
# ## Question 8: a tail
#
# An interval of a percentile has an upper end only if at least one value lies beyond the true percentile. With n independent values
# the probability that none does is 0.99 to the power of n for the 99th percentile, and 0.999 to the power of n for the 99.9th. A
# 95 % interval allows 2.5 % for that.
#
# *Full marks.* The five numbers from one file. For a report of one line it is the share that is late, since users notice that. How many
# packets each of the two percentiles needs, and about how many independent ones these packets count as, by the correlation of
# neighbours.

# %%
delays = delays_to("mean-hides-broken", "server")
say(
    f"{len(delays)} packets: mean {statistics.fmean(delays):.3g} ms, "
    + ", ".join(
        f"{100 * share:g}th percentile {intervals.percentile(delays, share):.3g} ms"
        for share in (0.5, 0.95, 0.99)
    )
    + f". By the correlation of neighbours they count as about {intervals.effective_count(delays):.0f}."
)
shown(f.samples_needed)
display(
    table(
        "mean-hides-broken",
        "busy_ping_mean_ms", "server_delay_p50_ms", "server_delay_p99_ms", "server_late_ratio",
    )
)  # fmt: skip

# %% [markdown]
# ## Question 9: a burst
#
# *Full marks.* The burst from tc.txt, and its bytes over the link's rate. Pings by the second, with the seconds in which the burst
# was in the modem. For 5 ms, the link's rate times 5 ms.

# %%
burst = f.case("large-burst")
say(f"{burst.burst} keep the link busy for {burst.burst_takes}.")
shown(burst.both_by_second)
link_mbit = runs("large-burst-broken")[0].params["link_up_mbit"]
say(f"For 5 ms: {link_mbit * 1e6 / 8 * 0.005:.0f} B.")

# %% [markdown]
# ## Question 10: the tail
#
# *Full marks.* A figure whose logarithmic axis is the share that waited longer, or one that shows the slowest hundredth in another way. The discipline
# with the lowest median, and the one with the lowest 99th percentile. One 99th percentile a run, at least six runs, and an interval of these. Packets of one run wait one behind the other, so a run is one
# value, however many packets it has. In the first recorded run of fq_codel the call waits longer than in the other nine. The
# hash that sorts flows into queues has put the call into an upload's queue; with 4096 queues the call waits as usual. A report that judges fq_codel by this run alone is wrong.

# %%
shown(f.tails)
figure("call-tails", runs("home-tails"))
shown(f.percentiles)

# %% [markdown]
# ## Question 11: shares
#
# DualPI2 drops packets of the classic queue with some probability, and marks those of the short queue in proportion to that
# probability's square root. A scalable sender answers a mark with a smaller cut. The two together are meant to give both kinds about the same rate.
# DCTCP reacts a little to every mark, so its queue can be kept far shorter. Where DCTCP is alone, the price is that the queue runs
# empty now and then, as 'link in use' shows in the first table.
#
# *Full marks.* Both goodputs with an interval over runs, and both waits. The coupling in the student's own words. Other rates and
# round trips, at which the shares aren't even, and what no run shows, such as other numbers of flows, or short flows. These are
# DCTCP's results, on a path whose filter puts packets with ECT(0) into the short queue.

# %%
for name in ("dctcp_table", "share_table"):
    shown(f[name])

# %% [markdown]
# ## Question 12: what is reproduced
#
# *Full marks.* CoDel's queue and its use of the link depend on rate, flows and round trip. The ratio of waits depends on the FIFO's
# room, and 'ten times' means nothing until it is clear ten times what. DCTCP's wait and its share depend on rate and round trip. fq_codel as
# a default helps where its host has the narrowest link, and in this home that is the modem. A choice for a home names two rates below
# the link's, and the student's own values that speak for it.
#
# In the table of FIFOs the wait is a ping's, through the queues of both directions, and the time that a queue takes to empty is
# that of the one upwards. So the wait can be longer.

# %%
for name in ("codel_table", "fifo_table", "default_table"):
    shown(f[name])
for name, claim in (
    ("codel_keeps_the_delay_near_its_target", "CoDel keeps the delay near its target"),
    ("codel_costs_no_utilisation", "CoDel costs no utilisation"),
    (
        "a_tenth_of_the_wait",
        "With fq_codel or CAKE a ping waits a tenth as long as with a FIFO, or less",
    ),
    ("dualpi2_keeps_scalable_flows_below_2_ms", "DualPI2 keeps scalable flows below 2 ms"),
    ("dualpi2_shares_evenly", "DualPI2 shares evenly"),
    ("a_default_is_enough", "fq_codel as a default is enough"),
):
    word = {True: "holds", False: "doesn't hold", None: "undecided"}[f.holds(name)]
    say(f"{claim}: {word}")
