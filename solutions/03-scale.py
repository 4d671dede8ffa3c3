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
# # The scale lab: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/03-scale`.
# Published values are typed in. Names with `own_` are what a run's own scripts wrote into its summary. Each section answers one of the questions in
# `labs/03-scale/questions.md` and shows what full marks look like.
#
# The recorded runs have seed 1, or seeds from 1 on where there are several. A student has another seed, and so
# other moments at which the flows start: compare the argument with this one, not the numbers.

# %%
from collections import defaultdict
from dataclasses import replace

import pandas as pd
from common import Recordings, say
from IPython.display import display

from measuretwice.audit import audit_table
from measuretwice.tcp import model

sets = Recordings("scale")
lab, f = sets.lab, sets.facts
runs, raw, figure = sets.runs, sets.raw, sets.figure
print(lab.file.lab.title)


# %%
def stages(pitfall: str, *values: str) -> pd.DataFrame:
    """Measured values of both stages of a mistake."""
    return pd.DataFrame(
        {
            stage: {value: runs(f"{pitfall}-{stage}")[0].measured.get(value) for value in values}
            for stage in ("broken", "fixed")
        }
    )


def lines(pitfall: str, file: str) -> list[list[str]]:
    """A raw file of a broken stage, in words."""
    with raw(f"{pitfall}-broken") as folder:
        return [line.split() for line in (folder / file).read_text().splitlines()]


# %% [markdown]
# ## Question 1: bounds
#
# *Full marks.* The link's rate times 1448/1538 (1448/1514 where a shaper counts frames); at least one loss for
# each halving; the base delay. For the index 1/n to 1, and no more than 1 − k/n with k flows missing.
# Files: summary.txt, events.txt with queue.txt, ss.txt, flows.txt.

# %%
scales = lab.file.parameters["scale"].sets
display(
    pd.DataFrame(
        {
            name: {
                "Mbit/s on Ethernet": model.payload_limit(values["rate_mbit"]),
                "Mbit/s by a shaper's count": model.payload_limit(values["rate_mbit"], wire=False),
                "least index": 1 / values["flows"],
            }
            for name, values in scales.items()
        }
    )
)

# %% [markdown]
# ## Question 2: the round trip
#
# Draining the queue takes its bytes divided by the link's rate. That time plus the base delay is the mean RTT, to about 1 %.
# A full buffer adds 240 ms at edge, 200 at intermediate, 300 at core. So base delays of 20 and 200 ms
# make round trips that differ by far less than a factor of ten.
#
# *Full marks.* The sum, compared with ss; core with all three delays; that results 'by RTT' are by base delay.

# %%
display(
    stages(
        "standing-queue", "queue_mean_bytes", "queue_delay_mean_ms", "rtt_mean_ms",
        "own_rtt_ms", "own_c_by_halvings",
    )
)  # fmt: skip
display(
    pd.DataFrame(
        {
            name: {
                f"RTT (ms) over {delay} ms, buffer full": delay
                + 8e3 * values["buffer_bytes"] / (values["rate_mbit"] * 1e6)
                for delay in (20, 100, 200)
            }
            for name, values in scales.items()
        }
    )
)

# %% [markdown]
# ## Question 3: the counter
#
# *Full marks.* A list of samples with a flat one between two falls; the factor over all flows; C goes
# with the root because it is proportional to √p. Sample less often than once in a round trip, so that a whole recovery
# lies between two samples; but then several halvings of a slow flow may pass for one. No interval is right for all.

# %%
display(stages("halving-counter", "own_halvings", "halvings", "queue_drops", "own_c_by_halvings"))
broken = runs("halving-counter-broken")[0].measured
factor = broken["own_counted_halvings"] / broken["halvings"]
say(f"The counter is off by a factor of {factor:.1f}, whose root is {factor**0.5:.2f}.")
samples = [(float(t), int(w)) for t, w in lines("halving-counter", "sender-0/cwnd.txt")]
falls = [
    n for n in range(1, len(samples)) if samples[n][1] < samples[n - 1][1] and samples[n][0] > 10
]
if falls:
    display(pd.DataFrame(samples[falls[0] - 3 : falls[0] + 20], columns=["s", "segments"]))

# %% [markdown]
# ## Question 4: the loss
#
# *Full marks.* Drops by the router's counter, needless retransmissions by the receivers' duplicate SACKs
# (TcpExtTCPDSACKRecv); both over times that are named. Below, `spurious_retransmits` covers the whole run, and
# the other rows only the time that is counted. A halving for a packet that was only late is undone when the duplicate
# SACK comes.

# %%
display(
    stages("loss-definition", "queue_drops", "retransmits", "spurious_retransmits", "own_losses")
)

# %% [markdown]
# ## Question 5: the unit
#
# *Full marks.* Backlog over qlen, more than 1514; that a drop of such a packet is counted once and
# costs several segments; 2064 over 1223 means 1.69 segments in a dropped packet, on average.

# %%
display(stages("offload-at-scale", "queue_packet_bytes", "queue_drops", "retransmits"))
say(f"The reproduction: {2064 / 1223:.2f} segments for each drop.")

# %% [markdown]
# ## Question 6: the sum
#
# Each flow lasts t, and the starts are spread over s. So all bytes pass within t + s, but each flow's rate is over t,
# and the sum is at most (t + s)/t of the link. For a thousandth: t = 1000·s.
#
# *Full marks.* The formula, the check, and 5000 s for a spread of five.

# %%
display(stages("unequal-intervals", "own_sum_bps", "goodput_bps", "own_jain"))
params = runs("unequal-intervals-broken")[0].params
spread_s = params["start_spread_ms"] / 1e3
say(
    f"At most {(params['duration_s'] + spread_s) / params['duration_s']:.2f} times the link; "
    f"seen: {runs('unequal-intervals-broken')[0].measured['own_sum_bps'] / model.payload_limit(1e8, wire=False):.2f}."
)

# %% [markdown]
# ## Question 7: the missing
#
# With m = n − k flows that ran, (∑x)² ≤ m ∑x² (the Cauchy–Schwarz inequality), so the index is at most
# m/n = 1 − k/n. At 0.958, at most 210 of 5000 flows are missing. Also possible: flows that started late or
# stopped early.
#
# *Full marks.* The proof; both numbers; another cause.

# %%
display(stages("missing-flows", "flows", "own_flows", "own_jain", "jains_index"))
missing = runs("missing-flows-broken")[0].measured
index_of_these = missing["own_jain"] * missing["own_flows"] / missing["flows"]
say(
    f"Ceiling {missing['flows'] / missing['own_flows']:.3f}; "
    f"index of those that ran, by the same rates, {index_of_these:.3f}; "
    f"their product {missing['own_jain']:.3f}."
)

# %% [markdown]
# ## Question 8: the name
#
# *Full marks.* Both sums; that swapped rows break no bound; a test such as
# `awk '!/^#/ { n[$4]++; s[$4] += $5 } END { for (a in s) print a, n[a], s[a] }' flows.txt | sort | diff - groups.txt`.

# %%
sums: dict[str, float] = defaultdict(float)
for row in lines("mislabelled-row", "router/flows.txt"):
    if row[0] != "#":
        sums[row[3]] += float(row[4])
table = {row[0]: float(row[2]) for row in lines("mislabelled-row", "router/groups.txt")}
display(pd.DataFrame({"recomputed": sums, "in the table": table}))

# %% [markdown]
# ## Question 9: the share
#
# *Full marks.* The three ways; the multiple belongs in the abstract, with n and the length of the run.

# %%
display(stages("fair-share", "rival_share", "rival_fair_share", "rival_multiple", "jains_index"))

# %% [markdown]
# ## Question 10: the audit
#
# *Full marks.* All rows below, each by its test. Likely causes are rates over unequal intervals, segments
# of more than an MTU, a changed digit, and a command whose flows did not all start. Start times, offload
# settings and the number of flows, if printed, would tell them apart.

# %%
published = lab.folder / "audit.csv"
found = audit_table(published.read_bytes(), published.name)
with pd.option_context("display.max_colwidth", None):
    display(
        pd.DataFrame(
            [(problem.label, problem.kind, problem.text) for problem in found.problems],
            columns=["row", "test", "what"],
        )
    )
rows = pd.read_csv(published)
over = rows["total"] > rows["link"].map(model.payload_limit)
say(f"{over.sum()} of {len(rows)} rows have more than an MTU of 1500 allows on Ethernet.")

# %% [markdown]
# ## Question 11: what holds
#
# *Full marks.* Each finding with three sources and intervals. Due to definitions: what p is, what fair is.
# Due to mistakes: the counter, the sums. What remains: how unfair BBR is, and on what that depends.

# %%
shown = runs("edge-once")
display(
    pd.DataFrame(
        [
            {
                "trial": run.trial,
                **{
                    name: run.measured.get(name)
                    for name in (
                        "flows", "jains_index", "drops_per_halving", "c_by_drops", "c_by_retransmits",
                        "c_by_halvings", "rival_share", "rival_multiple",
                    )
                },
            }
            for run in shown
        ]
    ).set_index("trial")
)  # fmt: skip
say(
    f"Theory: C between {model.MATHIS_CONSTANTS['sqrt(3/2)'].value:.2f} and "
    f"{model.MATHIS_CONSTANTS['1.31'].value}, where p is the rate of halvings."
)
figure("regression", [run for run in shown if run.trial == shown[0].trial])

# %%
figure("regression", [replace(runs("halving-counter-fixed")[0], trial=1)])

# %% [markdown]
# There are three values of C, by what p is: the router's drops over all segments (one p for all
# flows), a flow's own retransmissions, or its own halvings. Where every flow has k losses for a halving, C by losses is
# C by halvings times the root of k. This rule fails where few flows have most losses, where a flow has no halving, or
# where retransmissions were needless. Another paper's C by losses can be compared with ours only if both
# used the same p: Philip et al. take drops, the reproduction retransmissions.

# %%
estimators = []
for (name, *_, by_drops, by_retransmits, by_halvings), (_, root, over, *_) in zip(
    f.reno_runs.rows, f.three_c.rows, strict=True
):
    # Those over another base delay are left out.
    if not name.endswith("-ms"):
        estimators.append(
            {
                "set": name,
                "C by drops": by_drops.value,
                "C by retransmissions": by_retransmits.value,
                "C by halvings": by_halvings.middle_value,
                "root of drops per halving": root.value,
                "C by drops over C by halvings": over.value,
            }
        )
display(pd.DataFrame(estimators).set_index("set"))

# %%
*_, (_, _, _, *ten) = f.indices.rows
for number, index in enumerate(ten, start=1):
    say(
        f"Trial {number}: index {index.middle_value:.3f} ({index.low_value:.3f} to {index.high_value:.3f}), {index.n} runs."
    )
