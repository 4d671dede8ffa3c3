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
# # The variants lab: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/04-variants`.
# Published values are typed in. Each section answers one of the questions in
# `labs/04-variants/questions.md` and shows what full marks look like.
#
# The recorded runs have seed 1, or seeds from 1 on where there are several. A student has another seed, and so, in
# many cases, another round-trip time and other losses: compare the argument with this one, not the numbers.

# %%

import pandas as pd
from common import Recordings, say
from IPython.display import display

from measuretwice.measure.connections import traces
from measuretwice.tcp import model
from measuretwice.tcp import traces as windows

sets = Recordings("variants")
lab, f = sets.lab, sets.facts
runs, raw, figure = sets.runs, sets.raw, sets.figure
print(lab.file.lab.title)


# %%
def table(*names: str) -> pd.DataFrame:
    """Both stages of a mistake, or others, by these measured values."""
    rows = [
        {"set": name, **{key: run.measured.get(key) for key in KEYS}}
        for name in names
        for run in runs(name)
    ]
    return pd.DataFrame(rows)


KEYS = (
    "steady_goodput_bps",
    "steady_rtt_ms",
    "cwnd_over_rate_ms",
    "tcp_min_rtt_ms",
    "rising_ratio",
)


# %% [markdown]
# ## Question 1: the path
#
# *Full marks.* The product, the full buffer's round trip, and the queues. These are the client's card (none
# unless set), air's netem in both directions (may drop, by limit and loss), the gateway's tbf (may
# drop), and wan's netem in both directions (must not).

# %%
meant = sets.trial(1)
bdp = model.bdp_bytes(meant["rate_mbit"], meant["wire_rtt_ms"])
full_ms = meant["wire_rtt_ms"] + 8e3 * meant["buffer_bytes"] / (meant["rate_mbit"] * 1e6)
say(f"BDP {bdp:.0f} B, {bdp / 1514:.0f} packets; with a full buffer {full_ms:.0f} ms.")

# %% [markdown]
# ## Question 2: the four rules
#
# *Full marks.*
#
# - Reno: a loss; keeps half (RFC 5681).
# - CUBIC: a loss; keeps 0.7, then C (t − K)³ + W_max with C = 0.4 (RFC 9438).
# - Vegas: more than 4 packets of its own in the queue; one segment less per round trip, one more below 2
#   (Brakmo and Peterson 1995).
# - BBR version 1: none as such; paces at the highest delivery rate of ten round trips, with a window of two
#   BDP (Cardwell and others 2016).

# %% [markdown]
# ## Question 3: the setting
#
# *Full marks.* ss (the word after the addresses), iperf3's JSON (`sender_tcp_congestion`), the round-trip
# time; sysctl-p.txt gives the reason. `#` at the end of the line fails as well, because it begins a comment
# only at the beginning of a line.

# %%
with raw("config-comment-broken") as folder:
    print((folder / "client" / "sysctl.conf").read_text())
    print((folder / "client" / "sysctl-p.txt").read_text())
display(table("config-comment-broken", "config-comment-fixed"))

# %% [markdown]
# ## Question 4: the sender's queue
#
# *Full marks.* The default is looked up when the interface first comes up, or its qdisc is deleted. To get fq
# onto it: `tc qdisc replace`, or make the interface again. The two runs hardly differ, because BBR has been paced
# by TCP's own timer since Linux 4.13.

# %%
for stage in ("broken", "fixed"):
    with raw(f"config-comment-{stage}") as folder:
        print((folder / "client" / "tc.txt").read_text())

# %% [markdown]
# ## Question 5: where TCP ends
#
# *Full marks.* The division. All four rows of the source are below 77 ms. Cwnd over rate can be more
# than the round trip if the window isn't full, because the application has nothing to send or because of BBR's cap.

# %%
with raw("terminated-tcp-broken") as folder:
    text = (folder / "client" / "ss.txt").read_text()
    (trace,) = traces(lab, folder)
    middle = len(trace.time_s) // 2
    near = windows.rate_bps(trace, trace.time_s[middle - 10], trace.time_s[middle + 10])
    window = trace.cwnd_segments[middle] * (trace.mss_bytes or 0)
    say(f"{window} B over {near / 1e6:.1f} Mbit/s: {8e3 * window / near:.1f} ms.")
    print((folder / "gateway" / "ss-gateway.txt").read_text()[:600])
say(
    "The source's rows: "
    + ", ".join(
        f"{8e3 * kbytes * 1024 / (mbit * 1e6):.2f} ms"
        for kbytes, mbit in ((65.6, 75.1), (5.70, 200), (38.5, 148), (4.28, 230))
    )
)
display(table("terminated-tcp-broken", "terminated-tcp-fixed"))

# %% [markdown]
# ## Question 6: ten seconds
#
# *Full marks.* One segment per round trip; the time from the last window to the BDP; the same for
# the source. Its mean over a minute follows from a straight line, as the link isn't full before the minute ends.

# %%
with raw("ten-seconds-broken") as folder:
    (trace,) = traces(lab, folder)
first = next(n for n, when in enumerate(trace.time_s) if when - trace.time_s[0] >= 3)
grown = trace.cwnd_segments[-1] - trace.cwnd_segments[first]
trips = (trace.time_s[-1] - trace.time_s[first]) / (meant["wire_rtt_ms"] / 1e3)
say(f"{grown} segments in {trips:.0f} round trips: {grown / trips:.2f} a round trip.")
left = (bdp / 1514 - trace.cwnd_segments[-1]) * meant["wire_rtt_ms"] / 1e3
say(f"From {trace.cwnd_segments[-1]} segments it is {left:.1f} s to the BDP.")
source_kbytes = [119, 136, 153, 170, 187, 202, 219, 236, 252, 269]
slope = (source_kbytes[-1] - source_kbytes[0]) / 9
at_30 = source_kbytes[0] + slope * 29.5
say(
    f"The source: {slope:.1f} KBytes a second; in the middle of a minute {at_30:.0f} KBytes, at 77 ms "
    f"{at_30 * 1024 * 8 / 0.077 / 1e6:.0f} Mbit/s."
)

# %% [markdown]
# ## Question 7: rows
#
# *Full marks.* Teeth by calculation (half the BDP in round trips; a few too many, since a queue and
# the repair of a loss take time as well) and by ssthresh's changes; aliasing.
# For a path of 100 ms an interval of about a second is enough, since a tooth takes many seconds.

# %%
with raw("averages-hide-fixed") as folder:
    (trace,) = traces(lab, folder)
cuts = windows.decreases(trace.time_s, trace.cwnd_segments, trace.ssthresh_segments)
seconds = trace.time_s[-1] - trace.time_s[0]
half = model.bdp_bytes(meant["rate_mbit"], 10) / 1514 / 2
say(f"By ss {len(cuts) / seconds:.1f} a second; by calculation {1 / (half * 0.010):.1f}.")

# %% [markdown]
# ## Question 8: one table
#
# *Full marks.* Two rows with the lines of ss of their times; the mean of the source's rates for BBR is
# 174 Mbit/s, but their total is given as 155.

# %%
rates = [63.7, 126, 161, 211, 205, 211, 205, 217, 179, 162]
say(f"The source's rates have a mean of {sum(rates) / len(rates):.0f} Mbit/s.")
for stage in ("broken", "fixed"):
    measured = runs(f"mixed-runs-{stage}")[0].measured
    say(f"{stage}: {measured['table_rows_foreign']} of {measured['table_rows']} rows are foreign.")

# %% [markdown]
# ## Question 9: signatures
#
# *Full marks.* Rules that are stated; 0.7; K from each window; cycles of BBR. ProbeRTT takes at least 200 ms
# and a round trip of every ten seconds, which is two to three per cent. Vegas's queue at its shortest may come
# out one below alpha, because the sampler also sees the moment between a departure and the next arrival.

# %%
found = {run.params["congestion_control"]: sets.signature(run) for run in runs("signatures")}
display(pd.DataFrame([vars(one) | {"convex": one.convex} for one in found["cubic"].epochs]))
cycle, band = found["bbr"].cycle, found["vegas"].band
gains = ", ".join(f"{gain:g} for {100 * share:.1f} %" for gain, share in cycle.gain_share.items())
phases = ", ".join(f"{gain:g} for {ms:.0f} ms" for gain, ms in cycle.phase_ms.items())
dips = ", ".join(
    f"{when:.1f} s (for {ms:.0f} ms)"
    for when, ms in zip(cycle.probe_rtt_s, cycle.probe_rtt_ms, strict=True)
)
say(
    f"BBR: a cycle takes {cycle.cycle_s:.2f} s. Its gains, by their share of the samples: {gains}. By the mean length of "
    f"a phase: {phases}. ProbeRTT is at {dips}."
)
say(
    f"Vegas: its queue holds {band.least_packets} packet at its shortest, and {band.mean_packets:.1f} on average."
)
figure("signatures", runs("signatures"))
figure("sequence", runs("sequence"))

# %% [markdown]
# ## Question 10: which is faster
#
# *Full marks.* How far one algorithm's runs lie apart. The interval of the difference with the number of runs, and
# the number from which on zero lies outside it. That in the pair with CUBIC ahead nobody else was sending in
# CUBIC's run. That BBR's neighbours were not measured, and what would measure them (the rival's own goodput).

# %%
pairs = {
    seed.value: {"CUBIC, Mbit/s": cubic.value, "BBR, Mbit/s": bbr.value}
    for seed, cubic, bbr, _ in f["one-server.pairs"].rows
}
display(pd.DataFrame.from_dict(pairs, orient="index").rename_axis("seed"))
cubic, bbr = (mean for _, _, mean, *_ in f["one-server.many"].rows)
apart = f["one-server.difference"]
say(
    f"Means {cubic.middle_value:.0f} and {bbr.middle_value:.0f} Mbit/s; the difference's 95 % "
    f"interval is {apart.low_value:.0f} to {apart.high_value:.0f}."
)

# %% [markdown]
# ## Question 11: what is reproduced
#
# *Full marks.* Each claim with a number, an interval and a verdict; path, buffer or time where it turns on
# these.

# %%
summary = []
for name in ("paths", "rivals"):
    for run in runs(name):
        summary.append(
            {
                "set": name,
                "hop": run.params["hop"],
                "relay": run.params["relay"],
                "algorithm": run.params["congestion_control"],
                "goodput, Mbit/s": run.measured["steady_goodput_bps"] / 1e6,
                "RTT, ms": run.measured["steady_rtt_ms"],
            }
        )
cells = pd.DataFrame(summary).groupby(["set", "relay", "hop", "algorithm"])
display(cells.agg(["mean", "std", "count"]))
