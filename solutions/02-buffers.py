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
# # The buffers lab: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/02-buffers`.
# Each section answers one of the questions in `labs/02-buffers/questions.md`
# and shows what full marks look like.
#
# The recorded runs have seed 1, or seeds from 1 on where there are several. A student has another seed, and so
# other moments at which the senders start: compare the argument with this one, not the numbers.

# %%
import json
import math
from pathlib import Path

import pandas as pd
from common import Recordings, say
from IPython.display import display

from measuretwice.measure.connections import traces
from measuretwice.measure.student_tables import read_rows
from measuretwice.tcp import model
from measuretwice.tcp import traces as windows

sets = Recordings("buffers")
lab, f = sets.lab, sets.facts
runs, raw, figure = sets.runs, sets.raw, sets.figure
print(lab.file.lab.title)


# %%
def qdisc(folder: Path, node: str, kind: str) -> dict:
    """A node's qdisc of that kind, as tc's JSON has it at the end."""
    found = json.loads((folder / node / "qdisc.after.json").read_text())
    return next(one for one in found if one["kind"] == kind)


# %% [markdown]
# ## Question 1: the design
#
# The delays are on the hosts and on g2 because a queue that makes a delay must not be the queue
# that is measured. On g1 netem and tbf would share one interface, and a full netem would pass for a
# full buffer.
#
# *Full marks.* Both products in bytes and packets; both round-trip times with a full buffer; the
# reason for the place of the delays.

# %%
meant = sets.trial(1)
full_ms = 8e3 * meant["buffer_bytes"] / (meant["rate_mbit"] * 1e6)
paths_ms = {
    name: 2 * meant[key] + meant["back_delay_ms"]
    for name, key in (("s1", "first_delay_ms"), ("s2", "second_delay_ms"))
}
pd.DataFrame(
    [
        {
            "path": name,
            "RTT ms": rtt_ms,
            "BDP bytes": model.bdp_bytes(meant["rate_mbit"], rtt_ms),
            "BDP packets": round(model.bdp_bytes(meant["rate_mbit"], rtt_ms) / 1514),
            "RTT with a full buffer, ms": rtt_ms + full_ms,
        }
        for name, rtt_ms in paths_ms.items()
    ]
)

# %% [markdown]
# ## Question 2: validation
#
# *Full marks.* netem on s1 (data), tbf on g1 (data), none on g2 towards d1, netem on d1 (ACKs), netem
# on g2 (ACKs), none on g1 towards s1. Limits are read from qdisc.after.json, and only tbf may drop.

# %%
with raw("hidden-queue-fixed") as folder:
    rows = []
    for node in ("s1", "s2", "g1", "g2", "d1", "d2"):
        for one in json.loads((folder / node / "qdisc.after.json").read_text()):
            if one["kind"] != "noqueue":
                limit = one["options"].get("limit", "as a time: see question 3")
                rows.append((node, one["dev"], one["kind"], limit, one["packets"], one["drops"]))
    display(pd.DataFrame(rows, columns=["node", "dev", "kind", "limit", "packets", "drops"]))

# %% [markdown]
# ## Question 3: the suffix
#
# *Full marks.* The limit from rate, lat and burst; 'mbit' in a size is 1024 · 1024 bits; 1.25Mb is
# 1024 · 1024 bytes times 1.25, which is what the reproduction had.

# %%
with raw("size-suffix-broken") as folder:
    options = qdisc(folder, "g1", "tbf")["options"]
limit = options["lat"] / 1e6 * options["rate"] + options["burst"]
say(
    f"lat {options['lat']} µs · rate {options['rate']} B/s + burst {options['burst']} B = {limit:.0f} B. "
    f"1.25 · 2²⁰ / 8 = {1.25 * 2**20 / 8:.0f} B. With 1.25Mb: {1.25 * 2**20:.0f} B, "
    f"{100 * (1.25 * 2**20 / meant['buffer_bytes'] - 1):.1f} % more than 1.25 MB."
)

# %% [markdown]
# ## Question 4: whose BDP
#
# *Full marks.* One BDP of s1's path and two of s2's; a tenth is 125 000 bytes for one and 62 500 for
# the other.

# %%
measured = runs("whose-bdp-broken")[0].measured
say(
    f"The buffer is {measured['buffer_bdp_ratio_min']:.2f} BDP of the longer path and "
    f"{measured['buffer_bdp_ratio_max']:.2f} of the shorter. A tenth: "
    + " or ".join(
        f"{0.1 * model.bdp_bytes(meant['rate_mbit'], ms):.0f} B ({name})"
        for name, ms in paths_ms.items()
    )
    + "."
)

# %% [markdown]
# ## Question 5: hidden queues
#
# *Full marks.* ACKs on d1 and d2, data on s1 and s2; the next ACK replaces a lost one. TCP learns
# of a drop in its own host's queue at once, so not every drop is a retransmission. 1000 packets at 100 Mbit/s
# are 1000 · 1514 · 8 / 10⁸ = 121 ms of delay in one host, half of that in slow start.

# %%
with raw("hidden-queue-broken") as folder:
    display(
        pd.DataFrame(
            [
                (node, *(qdisc(folder, node, "netem")[key] for key in ("packets", "drops")))
                for node in ("s1", "s2", "d1", "d2")
            ],
            columns=["node", "packets", "drops"],
        )
    )
broken = runs("hidden-queue-broken")[0].measured
say(
    f"{broken['retransmits']} retransmissions, {broken['queue_drops']} drops in g1, "
    f"{broken['other_qdisc_drops']} elsewhere. 1000 packets are {1000 * 1514 * 8 / 1e8 * 1e3:.0f} ms at 100 Mbit/s."
)

# %% [markdown]
# ## Question 6: fields
#
# *Full marks.* The words are counted; the three that have gone since 2016 (`rate 0bit 0pps`) are named. A
# check that needs no JSON: `awk 'NF < 31 { exit 1 }'`, or a test that word 29 is 'backlog'.

# %%
with raw("field-number-broken") as folder:
    line = (folder / "g1" / "queue-text.txt").read_text().splitlines()[-1]
words = line.split()
print(line)
say(
    f"{len(words)} words; 'backlog' is word {words.index('backlog') + 1}, the packets word {words.index('backlog') + 3}."
)

# %% [markdown]
# ## Question 7: units
#
# *Full marks.* The row at which the time goes back; a row of MBytes beside ss; 2.3 %. A mean
# that is about 2 % too small is as plausible as the right one, and only a second source shows the difference.

# %%
with raw("units-broken") as folder:
    rows = read_rows((folder / "s2" / "cwnd.txt").read_text())
back = [n for n in range(1, len(rows.time_s)) if rows.time_s[n] < rows.time_s[n - 1]]
# The rows of MBytes were appended, so they begin where the time goes back.
large = rows.values[back[0] :]
for n in back:
    say(f"Row {n + 1} goes from {rows.time_s[n - 1]} s back to {rows.time_s[n]} s.")
say(
    f"{len(large)} of {len(rows.values)} rows were MBytes, each {100 * (1 - 1000 / 1024):.1f} % too small."
)

# %% [markdown]
# ## Question 8: decreases
#
# The rule: a decrease is where ss's ssthresh changes after the first slow start, and the kept share is the
# new ssthresh over cwnd in the sample before. For HighSpeed TCP the kept share is above 1 − b(w). Linux takes
# the decrease from the table in RFC 3649's appendix B, which has steps, and gives all windows of a step the decrease
# of its upper end. The rest is the window's growth between the sample and the loss. The
# loss that ends HighSpeed TCP's first slow start is left out, because Linux halves the window there.
#
# *Full marks.* A rule; all decreases; each against b(w) at its own window, and the table's steps as the
# reason for most of the difference with the large buffer. At these windows HighSpeed TCP gives up a third or more,
# which isn't the 'small portion' that the reproduction expected.

# %%
table = []
for number, run in enumerate(runs("each-once")):
    with raw("each-once", number) as folder:
        for trace in traces(lab, folder):
            for one in windows.decreases(
                trace.time_s, trace.cwnd_segments, trace.ssthresh_segments
            ):
                algorithm = run.params["congestion_control"]
                says = {"cubic": model.CUBIC_KEPT_RATIO, "reno": model.RENO_KEPT_RATIO}.get(
                    algorithm, 1 - model.highspeed_decrease_ratio(one.window_segments)
                )
                table.append(
                    {
                        "trial": run.trial,
                        "algorithm": algorithm,
                        "flow": trace.node,
                        "window, segments": one.window_segments,
                        "kept": one.kept_ratio,
                        "kept by the RFC": says,
                        "kept by Linux": 1
                        - model.linux_highspeed_decrease_ratio(one.window_segments)
                        if algorithm == "highspeed"
                        else says,
                    }
                )
decreases = pd.DataFrame(table)
display(decreases[decreases["algorithm"] != "bbr"].groupby(["trial", "algorithm", "flow"]).median())

# %% [markdown]
# ## Question 9: one run
#
# *Full marks.* Two seeds with opposite conclusions, shown. A number of runs from the spread
# (n of about 2 (2 s/d)² for a difference d and a standard deviation s of each), and the check. With other
# seeds zero may be in the interval even then; "these runs don't tell the trials apart" is full marks as well.

# %%
by_trial = {
    trial: {
        run.seed: run.measured["jains_index"] for run in runs("one-run-fixed") if run.trial == trial
    }
    for trial in (1, 2)
}
jain = pd.DataFrame(by_trial).rename(columns={1: "large buffer", 2: "small buffer"})
display(jain.rename_axis("seed"))
one, other = (list(values.values()) for values in by_trial.values())
apart = f["one-run.difference"]
spread = math.sqrt((pd.Series(one).var() + pd.Series(other).var()) / 2)
needed = 2 * (2 * spread / abs(apart.middle_value)) ** 2
say(
    f"Means {f['one-run.mean_large'].value:.3f} and {f['one-run.mean_small'].value:.3f}; the difference's 95 % interval is "
    f"{apart.low_value:.3f} to {apart.high_value:.3f}. "
    f"With a standard deviation of {spread:.3f} this difference takes about {needed:.0f} runs of each trial to show."
)

# %% [markdown]
# ## Question 10: convergence
#
# A rate is a window over a round-trip time. Equal goodputs need windows in the ratio of the
# round-trip times: 2 with an empty buffer, (100 + 100)/(50 + 100) = 1.33 with a full one. So a larger
# buffer brings equal windows and equal rates nearer to each other.
#
# A run without convergence has no convergence time, only a lower bound: the run's length. Leaving it out makes the
# mean too small; count such runs, and give medians.
#
# *Full marks.* The two ratios; the dashed line; the runs that never converge are counted.

# %%
shown = runs("each-once")
figure("windows-and-queue", shown)

# %%
figure("window-against-window", shown)

# %% [markdown]
# ## Question 11: what is reproduced
#
# *Full marks.* Each claim with its author, a number with an interval, and a verdict. A mention that two flows
# and one rate were tested, and that the paper had a model and
# simulations, not Linux.

# %%
summary = []
for run in runs("thirty-times"):
    summary.append(
        {
            "algorithm": run.params["congestion_control"],
            "buffer, bytes": run.params["buffer_bytes"],
            "jain": run.measured["jains_index"],
            "link in use": run.measured["utilisation"],
            "runs that converged": run.measured["sustained_convergence_s"] is not None,
        }
    )
cells = pd.DataFrame(summary).groupby(["algorithm", "buffer, bytes"])
display(
    cells.agg(
        {"jain": ["mean", "std", "count"], "link in use": "mean", "runs that converged": "mean"}
    )
)
