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
# # The queues lab: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/05-queues`.
# Each section answers one of the questions in `labs/05-queues/questions.md`
# and shows what full marks look like.
#
# The recorded runs of the cases have seed 1. A student has another seed, and so other moments at which the senders
# start, other waits of the hosts, and other random drops: compare the argument with this one, not the numbers.

# %%
import statistics

import pandas as pd
from common import Recordings, say
from IPython.display import display

from measuretwice import parse
from measuretwice.checks import queue_discipline as checks_queue

sets = Recordings("queues")
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
                "ECN": run.params["ecn"],
                **{value: four_digits(run.measured.get(value)) for value in values},
            }
            for run in runs(name)
        ]
    )


meant = sets.trial(1)

# %% [markdown]
# ## Question 1: the design
#
# Of a frame of 1514 bytes, 1448 are data, because timestamps are on. Both flows together can't have more than
# that share of the rate, and while the link is full their mean is half of it, whatever the discipline.
#
# *Full marks.* Both bounds, with the headers taken off; delay under load (ping-busy.txt, ss.txt), drops and marks
# (queue.txt), queue length (queue.txt), how evenly the flows share (both iperf3.json).

# %%
most = f["wrong-metric.data_rate"].value
say(f"At most {most:.2f} Mbit/s for one flow, and a mean of {most / 2:.2f} Mbit/s for two.")

# %% [markdown]
# ## Question 2: the queue
#
# *Full marks.* red's counters in router-1 (no drops, no backlog); drops and backlog of tbf on
# router-2's cable to host-3; the rates of both. The source would have had to print `tc -s qdisc` of every interface after the
# run.

# %%
with raw("no-bottleneck-broken") as folder:
    rows = []
    for node in ("router-1", "router-2"):
        text = (folder / node / "qdisc.after.json").read_text()
        for one in parse.parse_tc_qdiscs(text, node):
            if one.kind in ("red", "tbf") and (one.sent_packets or 0) > 1000:
                rows.append((node, one.dev, one.kind, one.sent_packets, one.drops))
display(pd.DataFrame(rows, columns=["node", "dev", "kind", "packets", "drops"]))
measured = runs("no-bottleneck-broken")[0].measured
say(
    f"red's link was {measured['utilisation'] * 100:.1f} % in use, and its queue held {measured['queue_mean_packets']:.3f} packets "
    f"on average; ping took {measured['busy_ping_mean_ms']:.1f} ms even so."
)

# %% [markdown]
# ## Question 3: the metric
#
# *Full marks.* All four values of both runs; delay for users (it is what they feel, and it
# differs, whereas throughput doesn't); drops or marks and queue length for those who run the network.

# %%
display(
    table(
        "wrong-metric-broken",
        "goodput_bps", "utilisation", "busy_ping_mean_ms", "queue_mean_packets", "queue_drops",
    )
)  # fmt: skip

# %% [markdown]
# ## Question 4: the control arm
#
# *Full marks.* The output of `tc qdisc show` and `sysctl net.core.default_qdisc`, and which file in
# /usr/lib/sysctl.d sets it. An experiment that leaves the discipline to the system has another control arm on
# another system. Inside tbf there is a bfifo with tbf's own limit.
#
# Both runs are called pfifo_fast below, because that is the setting. In the first, fq_codel was there.

# %%
display(table("default-qdisc-broken", "busy_ping_mean_ms", "queue_mean_packets", "queue_drops"))
display(table("default-qdisc-fixed", "busy_ping_mean_ms", "queue_mean_packets", "queue_drops"))

# %% [markdown]
# ## Question 5: limits
#
# *Full marks.* RED needs 366000 B. The limit that the source typed is just that, and the one that it printed, 346000 B, is
# less. In case 4 every drop is a `pdrop` and `early` is 0, since the queue can't pass min. With 346000 B two long flows never
# come near the limit, so nothing changes. With many short flows that start at once, something would.

# %%
say(f"max plus burst is {f.red_room_needed.value} B. The longest queue in either run:")
columns = ("red_limit_bytes", "queue_max_bytes", "queue_drops", "busy_ping_mean_ms")
display(table("red-limits-broken", *columns))
display(table("red-limits-fixed", *columns))

# %% [markdown]
# ## Question 6: idle time
#
# Scell_log is the logarithm, to the base 2, of the unit in which red counts idle time, in ticks of its clock. The longer a packet
# takes on the link, the larger it is. A factor of ten is 3.3 doublings, and Scell_log is a whole number.
#
# *Full marks.* The two values, and 2 to the power of their difference: 8, near the factor of ten between 10 and 100 Mbit/s. red
# begins to count idle time when it is asked for a packet and has none, but tbf doesn't ask an empty queue.

# %%
broken = runs("red-limits-broken")[0].measured
fixed = runs("red-limits-fixed")[0].measured
doublings = broken["red_cell_log"] - fixed["red_cell_log"]
say(
    f"{broken['red_cell_log']} and {fixed['red_cell_log']}: 2 to the power of {doublings} is {2**doublings}."
)
display(
    pd.DataFrame(
        [(mbit, checks_queue.cell_log(mbit, 1000, 6)) for mbit in (1, 10, 20, 50, 100, 1000)],
        columns=["Mbit/s", "Scell_log"],
    )
)

# %% [markdown]
# ## Question 7: averages
#
# The row that doesn't belong in `rates.txt` is iperf3's total. If it is equal to the mean, the sum of squares stays and n grows by one. So the
# deviation is multiplied by √((n − 1)/n), and for ten seconds it shrinks by 5 %.
#
# *Full marks.* Both pairs of numbers; that the deviation moves more, because the total is near the mean; √(9/10).

# %%
with raw("summary-row-broken") as folder:
    rows = [
        [float(word) for word in line.split()]
        for line in (folder / "host-1" / "rates.txt").read_text().splitlines()
    ]
seconds = [row[2] / 1e6 for row in rows if row[1] - row[0] < 1.5]
everything = [row[2] / 1e6 for row in rows]
for name, values in (("seconds", seconds), ("all rows", everything)):
    say(
        f"{name}: n = {len(values)}, mean {statistics.mean(values):.3f}, deviation {statistics.stdev(values):.3f} Mbit/s"
    )
expected = ((len(seconds) - 1) / len(seconds)) ** 0.5
say(
    f"The deviation came out {statistics.stdev(everything) / statistics.stdev(seconds):.3f} times as large; expected {expected:.3f}."
)

# %% [markdown]
# ## Question 8: cells
#
# *Full marks.* The pairs from iperf3's "connected" or ss; a check that builds the set of pairs from the
# data, compares it with all ordered pairs between the two sides, and counts each.

# %%
rows = []
for run in runs("copied-cell-broken"):
    for flow in run.flows:
        rows.append((run.trial, run.params["receiver"], flow.node, flow.to_address))
display(pd.DataFrame(rows, columns=["trial", "receiver meant", "from", "to"]))

# %% [markdown]
# ## Question 9: significance
#
# *Full marks.* t and F with p (for two sides twice that for one). A ratio of about 3. The two flows aren't two values, because one's
# gain is the other's loss. Welch's test with the runs' mean delays.

# %%
small = f.case("small-n")
one_way = small.p_one_way.value
[(_, noticed), *_] = small.noticeable.rows
say(
    f"Published: t = {small.means_t.value:.2f}, p = {small.means_p.value:.2f}; F = {f.printed_f.value:.2f}, "
    f"p = {2 * one_way:.2f} on both sides, {one_way:.2f} on one. Eight values notice a ratio of {noticed.value:.1f}; "
    f"a ratio of 1.5 takes {small.values_needed}."
)
[_, (_, count, *_)] = small.delays.rows
say(f"Delay, n = {count} runs each: t = {small.welch_t.value:.1f}, p = {small.welch_p.value:.2g}.")
figure("two-arms", runs("two-arms"))

# %% [markdown]
# ## Question 10: today's disciplines
#
# With a queue for each flow, ping waits in a queue of its own, which is empty, so it tells you nothing about
# how long the flows' packets wait. So fq is among the best by ping, but CoDel, RED and PIE are ahead of it by the flows' RTT.
# ECN replaces nearly all drops by marks and saves retransmissions; delay stays about as it was.
#
# *Full marks.* Both orders; the reason above; counts of drops and marks; a choice, and the value that speaks for it.

# %%
means_by = pd.DataFrame(
    [
        {
            "discipline": discipline,
            "ECN": ecn,
            "busy_ping_mean_ms": ping.middle_value,
            "rtt_mean_ms": rtt.middle_value,
            "queue_drops": drops.value,
            "queue_marks": marks.value,
            "jains_index": jain.middle_value,
        }
        for discipline, ecn, _, ping, rtt, _, drops, marks, jain in f.disciplines.rows
    ]
).set_index(["discipline", "ECN"])
display(means_by.sort_values("busy_ping_mean_ms").map(four_digits))
display(means_by.sort_values("rtt_mean_ms").map(four_digits))
figure("disciplines", runs("disciplines"))
figure("windows-and-queue", runs("two-arms-once"))

# %% [markdown]
# ## Question 11: what is reproduced
#
# *Full marks.* The source found throughput a little higher with FIFO, and calls that inconclusive. Over 2 ms it isn't higher, because a full link
# fixes the sum, but over 100 ms it is. It concluded that RED has a significantly larger spread, which its own numbers don't show. The cause:
# RED had no queue, or none that is proved, and on a full link throughput can't differ. Still open are where the queue really was
# on their testbed, and how long their round trips took.

# %%
display(
    table("no-bottleneck-broken", "goodput_bps", "busy_ping_mean_ms", "queue_drops"),
    table("no-bottleneck-fixed", "goodput_bps", "busy_ping_mean_ms", "queue_drops"),
)
