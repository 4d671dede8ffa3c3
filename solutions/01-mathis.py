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
# # The Mathis lab: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/01-mathis`.
# Published values are typed in. Each section answers one or more of the questions in
# `labs/01-mathis/questions.md` and shows what full marks look like.
#
# The recorded runs have seed 1, or seeds from 1 on where there are several. A student has another seed, and so, in
# many cases, another round-trip time and loss. Compare the argument with this one, not the numbers.
#
# Read top to bottom: the design, one trial by hand, then each mistake from its raw files, then the
# constant, the figures and the discussion.

# %%
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
from common import Recordings, say
from IPython.display import SVG, display

from measuretwice import parse
from measuretwice.figures.files import draw_against_model, published_values
from measuretwice.figures.rows import ModelRuns, ParameterNames
from measuretwice.figures.style import svg_text
from measuretwice.stats import intervals as statistics
from measuretwice.tcp import model

sets = Recordings("mathis")
lab, f = sets.lab, sets.facts
runs, raw = sets.runs, sets.raw
print(lab.file.lab.title)


# %%
def table(name: str) -> pd.DataFrame:
    """The numbers of a set, a row a run."""
    rows = []
    for run in runs(name):
        measured = run.measured
        rows.append(
            {
                "trial": run.trial,
                "seed": run.seed,
                "RTT ms": run.params["rtt_ms"],
                "MSS B": run.params["mss_bytes"],
                "p": run.params["loss_ratio"],
                "drops": measured["qdisc_drops"],
                "packets": measured["qdisc_offered_packets"],
                "goodput Mbit/s": measured["goodput_bps"] / 1e6,
                "model Mbit/s": run.model_bps / 1e6,
                "ratio": run.ratio,
                "findings": ", ".join(finding.id for finding in run.findings),
            }
        )
    return pd.DataFrame(rows)


def grep(path: Path, pattern: str, count: int = 5) -> None:
    """The first lines of a file that hold a pattern, as a student would look for them."""
    lines = [line for line in path.read_text().splitlines() if re.search(pattern, line)]
    print("\n".join(line[:150] for line in lines[:count]))


PARSERS = {
    "ping.txt": parse.parse_ping,
    "iperf3.json": parse.parse_iperf3_json,
    "ss-last.txt": parse.parse_ss,
    "qdisc.after.json": parse.parse_tc_qdiscs,
}


def parsed(folder: Path, name: str):
    """A raw file, read by the kit's parser for it."""
    return PARSERS[Path(name).name]((folder / name).read_text(), name)


def netem(folder: Path) -> parse.Qdisc:
    """The losing qdisc's last word."""
    qdiscs = parsed(folder, "router/qdisc.after.json")
    return next(q for q in qdiscs if q.kind == "netem" and q.loss_ratio)


# %% [markdown]
# ## Question 1: the design
#
# p enters the model as 1/√p, so equal steps in log(p) are equal steps of the prediction on
# logarithmic axes. Drawn uniformly in p, more than nine of ten trials would have a p of 0.02
# or more, where the model makes no claim, so the design would spend its time outside its own question.
#
# *Full marks.* The argument with 1/√p; a halved design that keeps the range (two loss ratios per pair
# instead of four, not three round-trip times instead of five). Also what that design loses, which is the
# spread between trials of one pair, and hence the interval of C.

# %%
design = pd.DataFrame(
    [
        {"trial": n, **{k: trial.set[k] for k in ("rtt_ms", "mss_bytes", "loss_ratio")}}
        for n, trial in lab.trials.items()
    ]
)
limit = lab.file.model.max_loss_ratio
outside = int((design["loss_ratio"] >= limit).sum())
display(design.groupby(["rtt_ms", "mss_bytes"])["loss_ratio"].describe()[["count", "min", "max"]])
say(
    f"{outside} of {len(design)} trials have p of {limit:g} or more. Drawn uniformly in p between "
    f"{design['loss_ratio'].min():.2g} and 0.3, about {100 * (0.3 - limit) / 0.3:.0f} % would."
)

# %% [markdown]
# ## Question 2 and one trial by hand: trial 7
#
# From the raw files to the ratio, with no help from the kit but its parsers.

# %%
right = "step-7-offloads"
place = [run.trial for run in runs(right)].index(7)
with raw(right, place) as folder:
    ping = parsed(folder, "romeo/ping.txt")
    iperf = parsed(folder, "romeo/iperf3.json")
    last = parsed(folder, "romeo/ss-last.txt")[-1]
    losing = netem(folder)
    print("\n".join((folder / "romeo" / "ping.txt").read_text().splitlines()[-4:]))
p, rtt_ms, mss_bytes = 0.005730706937, 6, 1460
predicted = mss_bytes * 8 / (rtt_ms / 1e3) / p**0.5
say(
    f"- **Round-trip time**: ping's smallest is {ping.rtt_min_ms:g} ms, ss prints minrtt "
    f"{last.minrtt_ms:g} ms; {rtt_ms} ms was asked for.\n"
    f"- **Segment size**: ss prints mss {last.mss_bytes}; {mss_bytes} was asked for.\n"
    f"- **Loss**: the router dropped {losing.drops} of {losing.drops + losing.sent_packets} packets, "
    f"{losing.drops / (losing.drops + losing.sent_packets):.5f}; p is {p:.5f}.\n"
    f"- **Goodput**: iperf3's receiver got {iperf.received_rate_bps / 1e6:.2f} Mbit/s.\n"
    f"- **Model**: MSS/(RTT √p) = {predicted / 1e6:.2f} Mbit/s, so C = "
    f"{iperf.received_rate_bps / predicted:.2f}."
)

# %% [markdown]
# Pings confirm the delay. With 25 of them they can't confirm p (here fewer than one loss is
# expected), nor the rate, the MTU (they are small) or the offloads. For these: the qdisc's drops and
# packets (`tc -s qdisc`), the goodput of a run without loss, `ping -M do -s`, tcpdump's lengths. The pings would have
# caught case 7, because they show the doubled round-trip time, but not case 11, where only the reading was wrong.
#
# *Full marks.* At least four settings, each with the tool and the number; case 7.
#
# ## Question 3: loss in per cent

# %%
for name in ("loss-percent-broken", "loss-percent-fixed"):
    with raw(name) as folder:
        said = netem(folder)
        offered = said.drops + said.sent_packets
        say(
            f"**{name}**: netem has loss {said.loss_ratio:.6f}; {said.drops} of {offered} packets dropped, "
            f"{said.drops / offered:.5f}. Of 1000 packets: {1000 * said.drops / offered:.1f}."
        )
display(pd.concat([table("loss-percent-broken"), table("loss-percent-fixed")]))

# %% [markdown]
# netem reads per cent. `0.1566283969%` loses 1.6 packets of 1000, not 157. tc's counts include the 25 pings,
# and the table leaves them out.
#
# *Full marks.* Both numbers (157 expected, 1.6 dropped), and the qdisc's line in `router/qdisc.before.json`,
# which is written before any flow has run and has the loss that netem was given.
#
# ## Question 4: how long is long enough?
#
# A flow at the model's rate loses C·√p/RTT packets a second. With n losses the loss ratio is known
# to 1/√n, so 10 % needs n = 100, and 100·RTT/(C·√p) seconds.

# %%
trial = lab.trials[53].set
for constant in (1.0, 1.31):
    needed_s = model.mathis_time_for_losses_s(trial["rtt_ms"], trial["loss_ratio"], 100, constant)
    say(f"With C = {constant:g}: {needed_s:.0f} s, or {needed_s / 3600:.1f} hours.")
short, long_ = table("duration-broken"), table("duration-fixed")
display(pd.concat([short, long_]))
for said in (short, long_):
    low, high = statistics.loss_interval(int(said["drops"][0]), int(said["packets"][0]))
    say(
        f"{said['drops'][0]} losses: p between {low:.2e} and {high:.2e} (95 %), "
        f"a factor of {high / low if low else float('inf'):.1f}."
    )

# %% [markdown]
# Five runs of 60 s begin five times in slow start, which belongs to no steady state; one run of
# 300 s does so once. Five runs show how much they differ, and that is an interval without any
# theory; one run doesn't. Neither comes near the 100 losses that are needed.
#
# *Full marks.* The formula, hours for trial 53, slow start, and independence.
#
# ## Question 5: whose queue is it?

# %%
rows = []
for name in (
    "queue-1-gbit-offloads-on",
    "queue-1-gbit-offloads-off",
    "queue-3-gbit-offloads-on",
    right,
    "queueing-broken",
):
    # `right` has all sixty trials; the others have this one.
    for run in (run for run in runs(name) if run.trial == 11):
        rows.append(
            {
                "set": name,
                "duration s": run.params["duration_s"],
                "rate Mbit/s": run.params["rate_mbit"],
                "offloads": run.params["offloads"],
                "goodput Mbit/s": run.measured["goodput_bps"] / 1e6,
                "smallest RTT ms": run.measured["rtt_min_ms"],
                "mean RTT ms": run.measured["rtt_mean_ms"],
                "largest packet B": run.measured["largest_packet_bytes"],
                "findings": ", ".join(finding.id for finding in run.findings),
            }
        )
queues = pd.DataFrame(rows).set_index("set")
display(queues)
on, off = queues.loc["queue-1-gbit-offloads-on"], queues.loc["queue-1-gbit-offloads-off"]
say(
    f"At 1 Gbit/s **with** offloads: {on['goodput Mbit/s']:.0f} Mbit/s and a mean round-trip time of "
    f"{on['mean RTT ms']:.1f} ms, much like the authors' picture (964 Mbit/s, 21.7 ms). At the same 1 Gbit/s "
    f"**without**: {off['goodput Mbit/s']:.0f} Mbit/s and {off['mean RTT ms']:.1f} ms, so no queue. "
    "The link was wide enough. It was filled by a flow whose losses came by the bundle, so the queue was "
    "the symptom, and the offloads were the cause. A faster link hides the symptom and leaves the cause."
)

# %% [markdown]
# *Full marks.* The two-by-two comparison, cause and symptom told apart, and that a link of 400 Mbit/s
# is too narrow even without offloads (`queueing-broken`), although the model predicts 376.
#
# ## Question 6: who took the bytes

# %%
for name in ("timestamps-broken", "timestamps-fixed", "mtu-broken", "mtu-fixed"):
    with raw(name) as folder:
        last = parsed(folder, "romeo/ss-last.txt")[-1]
        params = runs(name)[0].params
        say(
            f"**{name}**: asked for {params['mss_bytes']}, MTU {params['mtu_bytes']}, timestamps "
            f"{params['timestamps']}: ss prints mss {last.mss_bytes}."
        )

# %% [markdown]
# 1460 − 1448 = 12: the timestamp option with its padding. An MTU of 1500 less 40 bytes of headers leaves at most
# 1460, whatever was asked for. With MTU 4352 and timestamps on, 4352 − 40 − 12 = 4300.
#
# *Full marks.* 12 bytes named as the option, and 4300.
#
# ## Question 7: packets that no wire would carry

# %%
with raw("offload-broken") as folder:
    grep(folder / "router" / "tcpdump.txt", "length", 12)
    sizes = [
        int(n)
        for n in re.findall(r"length (\d+): \d", (folder / "router" / "tcpdump.txt").read_text())
    ]
ten = {name: table(f"offloads-{name}")["ratio"] for name in ("on", "off")}
for name, ratios in ten.items():
    mean, low, high = statistics.mean_interval(list(ratios))
    say(f"Ten runs, offloads {name}: ratio {mean:.2f} (95 %: {low:.2f} to {high:.2f}).")
again = {}
for name in ("on", "off"):
    found = [run.measured for run in runs(f"offloads-{name}")]
    again[name] = np.mean([m["retransmits"] / m["qdisc_drops"] for m in found])
say(
    f"Largest packet {max(sizes) - 14} B where 576 would be right. Segments sent again for each drop that "
    f"netem counted: {again['on']:.1f} with offloads, {again['off']:.2f} without."
)

# %% [markdown]
# netem decides packet by packet. A packet of k segments is lost as a whole: k segments go at once, but
# only one loss event reaches the window, and between two events k times as many segments pass. In the model p is the
# chance of a loss event for each segment. It has become p/k, so the goodput grows by a factor of about √k.
# tc counts a bundle that passes as its segments, and one that is dropped as a single drop, so with offloads its
# drops over its packets are no loss ratio of anything.
#
# *Full marks.* Loss events against lost segments, √k, and the counter.
#
# ## Question 8: where packets go

# %%
for name in (
    "receiver-drops-broken",
    "receiver-drops-fixed",
    "netem-limit-broken",
    "netem-limit-fixed",
):
    run = runs(name)[0]
    m = run.measured
    say(
        f"**{name}**: netem dropped {m['qdisc_drops']}, the sender retransmitted {m['retransmits']}; receiver "
        f"refused {m['receiver_ofo_drops']} segments out of order and pruned {m['receiver_prune_calls']} "
        f"times; largest window {m['cwnd_max_segments']} segments; findings: "
        f"{', '.join(finding.id for finding in run.findings) or 'none'}."
    )
with raw("receiver-drops-broken") as folder:
    before, after = (
        json.loads((folder / "juliet" / f"nstat.{when}.json").read_text())["kernel"]
        for when in ("before", "after")
    )
for key in (
    "TcpExtTCPOFOQueue",
    "TcpExtTCPOFODrop",
    "TcpExtPruneCalled",
    "TcpExtTCPRcvCollapsed",
    "TcpExtTCPBacklogDrop",
):
    print(key, after.get(key, 0) - before.get(key, 0))

# %% [markdown]
# Places and counters: each qdisc on each node (drops in `tc -s qdisc`), the backlog between driver and IP
# (`/proc/net/softnet_stat`, second column), the receiver's socket (nstat: TCPBacklogDrop, TCPRcvQDrop,
# TCPOFODrop, PruneCalled), a full netem queue (drops beyond p). This last place is where case 8 lost its packets.
#
# *Full marks.* At least four places with counters, and the balance: retransmissions = known drops +
# what juliet had stored (TCPOFOQueue) and threw away + spurious ones.
#
# ## Question 9: outside the model's domain

# %%
run = runs("model-domain-broken")[0]
m, q = run.measured, run.params
mathis = model.mathis_bandwidth_bps(q["mss_bytes"], q["rtt_ms"], q["loss_ratio"])
pftk = model.pftk_bandwidth_bps(q["mss_bytes"], q["rtt_ms"], q["loss_ratio"])
say(
    f"Trial {run.trial} at p = {q['loss_ratio']:g}: measured {m['goodput_bps'] / 1e6:.2f} Mbit/s. Mathis (C = 1) predicts "
    f"{mathis / 1e6:.2f}; PFTK with Linux's timeout of {model.linux_rto_ms(q['rtt_ms']):.0f} ms predicts "
    f"{pftk / 1e6:.2f}. There are {m['timeouts']} timeouts for {m['qdisc_drops']} losses, so one loss in "
    f"{m['qdisc_drops'] / m['timeouts']:.0f} ends in a timeout. PFTK assumes "
    f"{100 * model._pftk_timeout_share(q['loss_ratio'], q['loss_ratio'] ** -0.5):.0f} % at so small a window."
)

# %% [markdown]
# Mathis has no timeouts, so it is too high. PFTK has them as Reno had in 1998, with three duplicate ACKs
# or else a timeout. It is too low, because Linux finds most losses earlier, by selective acknowledgements, RACK's timer
# and tail loss probes (RFC 8985), and undoes what was spurious. Textbooks say that PFTK covers this range, and
# for the TCP of its time it did.
#
# *Full marks.* Timeouts against losses as a number; one mechanism of Linux that PFTK lacks.
#
# ## Question 10: ACKs or segments

# %%
for name in ("acks-delayed", "acks-every-segment"):
    found = runs(name)
    per_ack = [r.measured["data_segs_out"] / r.measured["receiver_acks_out"] for r in found]
    mean, low, high = statistics.mean_interval([r.ratio for r in found])
    say(
        f"**{name}**: one ACK for {np.mean(per_ack):.1f} segments; C = {mean:.3f} "
        f"(95 %: {low:.3f} to {high:.3f})."
    )
with raw("ack-policy-broken") as folder:
    grep(folder / "router" / "acks.txt", r"Flags \[\.\]", 12)
    text = (folder / "router" / "acks.txt").read_text()
steps = np.diff([int(n) for n in re.findall(r"ack (\d+), win", text)][-300:]) / 1460
run = runs("ack-policy-broken")[0]
say(
    f"Of the capture's last 300 ACKs, one stands for {steps[steps > 0].mean():.1f} segments. By the counters of the whole run, one "
    f"stands for {run.measured['data_segs_out'] / run.measured['receiver_acks_out']:.1f}. The capture holds only the first thousand "
    f"packets, and at the start Linux acknowledges more often. The ratio to the model is {run.ratio:.2f}; for an ACK for every second "
    "segment the paper gives 0.93."
)

# %%
expected = {step: model.sack_reno_constant(p, step) for step in (1, 2)}
say(
    f"What Reno with today's recovery does at this p (`model.sack_reno_constant`): C = {expected[1]:.2f} if "
    f"the window grows for each segment, {expected[2]:.2f} if for every second one. How many ACKs there are makes next to no difference, because Linux's Reno adds to "
    "its window for each segment that an ACK covers (RFC 3465 calls it appropriate byte counting)."
)

# %% [markdown]
# *Full marks.* Both counts and why they differ, C and the paper's 0.93, a prediction before the second run, and what is counted.
#
# ## Question 11: cherry-picking

# %%
picked, honest = table("cherry-picking-broken"), table("cherry-picking-fixed")
display(picked[["trial", "seed", "drops", "ratio"]])
# What each p leads one to expect is divided out, so that only chance is left.
for frame in (picked, honest):
    frame["relative"] = frame["ratio"] / [model.sack_reno_constant(value) for value in frame["p"]]
kept = picked.sort_values("seed").groupby("trial").last()
first = picked[picked["seed"] == 1]
spread = {
    "kept (last tries)": kept,
    "first tries": first,
    "all tries": picked,
    "every trial equally often": honest,
}
for name, frame in spread.items():
    mean, deviation = frame["relative"].mean(), frame["relative"].std()
    print(f"{name:26} mean {mean:.3f}  standard deviation {deviation:.3f}")
chance = honest["drops"].map(statistics.relative_error_of_ratio).mean()
say(f"Measured over predicted; chance alone makes a standard deviation of about {chance:.3f}.")

# %% [markdown]
# *Full marks.* Unequal numbers of tries as the flaw; that no run by itself shows it; the effect on spread
# (or, where the sample happens not to show it, why it must come with more trials). As the cure, all again, or none.
#
# ## Question 12: the constant

# %%
long_runs = [run for run in runs("step-8-long") if run.comparable]
c, slope = f.constant, f.slope
say(
    f"{c.n} trials with at least {min(r.measured['qdisc_drops'] for r in long_runs)} losses each give "
    f"**C = {c.middle_value:.3f} (95 %: {c.low_value:.3f} to {c.high_value:.3f})**; slope {slope.middle_value:.4f} "
    f"({slope.low_value:.4f} to {slope.high_value:.4f})."
)
for constant in model.MATHIS_CONSTANTS.values():
    inside = "inside" if constant.value in c else "outside"
    print(
        f"{constant.name:10} {constant.value:.3f}  {inside:8} {constant.losses:9} {constant.assumes}"
    )

# %%
frame = pd.DataFrame(
    {
        "trial": [run.trial for run in long_runs],
        "p": [run.params["loss_ratio"] for run in long_runs],
        "C": [run.ratio for run in long_runs],
        "losses": [run.measured["qdisc_drops"] for run in long_runs],
    }
)
for step, name in ((1, "predicted"), (2, "if ACKs counted")):
    frame[name] = [model.sack_reno_constant(value, step) for value in frame["p"]]
frame["C / predicted"] = frame["C"] / frame["predicted"]
frame["chance"] = [statistics.relative_error_of_ratio(n) for n in frame["losses"]]
frame["off by"] = np.log(frame["C / predicted"]) / frame["chance"]
bins = pd.cut(frame["p"], [0, 1e-4, 3e-4, 1e-3, 5e-3, 2e-2])
display(frame.groupby(bins, observed=True)[["C", "predicted", "if ACKs counted"]].mean().round(3))
display(
    frame.sort_values("off by", key=abs, ascending=False)
    .head()
    .round({name: 6 if name == "p" else 3 for name in frame})
)

# %%
mean, low, high = statistics.mean_interval(list(np.log(frame["C / predicted"])))
prediction = {name: np.exp(np.log(frame[name]).mean()) for name in ("predicted", "if ACKs counted")}
inside = prediction["predicted"] in c
say(
    f"**Prediction** for these trials, each at its own p, if Linux counts segments: C = "
    f"{prediction['predicted']:.3f}, {'inside' if inside else 'outside'} the measured interval. If it counted "
    f"ACKs: {prediction['if ACKs counted']:.3f}. Trial by trial, measured over predicted is {np.exp(mean):.3f} "
    f"(95 %: {np.exp(low):.3f} to {np.exp(high):.3f}); {int((frame['off by'].abs() > 2).sum())} of "
    f"{len(frame)} trials are off by more than two standard errors."
)
# One explanation is within a few per cent, the other is 30 % too low.
assert abs(mean) < 0.03
assert c.low_value > 1.2 * prediction["if ACKs counted"]

# %% [markdown]
# The paper's 1.31 is the limit for rare losses. At larger p the round trips in which a loss is noticed and
# repaired take a share of the time, so C falls. The prediction includes them, but the paper's constant doesn't. The
# prediction leaves out the start. Slow start sends about 1/p segments before the first loss, at most one part in 245 of
# these runs, and leaves a window that takes a few halvings to come down. That raises C by about a per cent.
#
# *Full marks.* C with its interval; 1.31 named as the nearest of the paper's constants, inside or outside, and explained
# (losses are random here, not periodic; Linux counts segments); the slope; the dependence on p.
#
# ## The figures

# %%
names = ParameterNames.of(lab)
steps = [recording for recording in lab.file.recordings if recording.step]
compared = ModelRuns([(right, runs(right))], published_values(lab), names)
display(SVG(svg_text(draw_against_model("measured-against-model", compared))))

# %%
long_runs = ModelRuns([("200 losses each", runs("step-8-long"))], names=names)
display(SVG(svg_text(draw_against_model("window-against-loss", long_runs))))

# %%
sequence = [(step.title, runs(step.id)) for step in steps]
display(SVG(svg_text(draw_against_model("stages", ModelRuns(sequence, names=names)))))
for title, found in sequence:
    inside = sum(1.0 <= run.ratio <= 1.45 for run in found if run.ratio)
    print(f"{title:24} {inside:3} of {len(found)} within 1 to 1.45 times the model")

# %% [markdown]
# ## Question 13: what is reproduced, and what isn't
#
# - **Confirmed**: over more than three orders of magnitude, goodput goes as MSS/(RTT·√p), with nearly one constant,
#   where p is below 0.02 and the run is long enough to have many losses.
# - **The constant** is near the paper's for random loss and a window that grows for each segment, although the receiver
#   delays its ACKs, for which the paper expects 0.93. Linux counts segments. The rest of the way to the paper's 1.31 is the time that
#   noticing and repairing a loss takes.
# - **Not confirmed**: the range of p up to 0.3. From about 0.09 on Linux is below Mathis (C = 1) and above PFTK.
# - **Not tried**: the paper's other two settings, losses by a real queue and other TCPs. With a queue, losses
#   come in bursts, p is no parameter but a result, and one has to count congestion events, not drops.
# - **240 s** bring 100 losses in only 12 of the 44 trials that the model covers; most of the scatter in the figure of 240 s runs comes from
#   too few losses.
#
# *Full marks.* A claim with its range, the constant with its reason, one thing not confirmed, one not tried, and how it could be.
