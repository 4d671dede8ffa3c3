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
# # Calibrate: a worked solution
#
# For instructors. The tables, figures and results are computed from the recorded runs in `sample-data/00-calibrate`.
# Each section answers one of the questions in `labs/00-calibrate/questions.md` and shows what
# full marks look like.
#
# The recorded runs have seed 1, or seeds from 1 on where there are several. A student has another seed, and so other
# readings of loss. Compare the argument with this one, not the numbers.

# %%
import re

import pandas as pd
from common import Recordings, say
from IPython.display import SVG, display

from measuretwice import parse
from measuretwice.figures import style as plot_style
from measuretwice.runs.folder import raw_folder
from measuretwice.stats import intervals as statistics

sets = Recordings("calibrate")
readings = {run.trial: run for run in sets.runs("readings")}


def raw(trial: int, name: str) -> str:
    """One raw file of a trial's recorded run."""
    with raw_folder(readings[trial].run_dir) as folder:
        return (folder / name).read_text()


def last_ss(trial: int) -> parse.SsSocket:
    """The data connection's last line in ss."""
    port = readings[trial].measured["data_port"]
    lines = [line for line in raw(trial, "romeo/ss.txt").splitlines() if f":{port} " in line]
    return parse.parse_ss(lines[-1] + "\n", "ss.txt")[0]


# %%
def four_digits(value: float | None) -> str:
    """A number as the table has it; nothing where there is no bound."""
    return "" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


with pd.option_context("display.max_colwidth", None):
    display(
        pd.DataFrame(
            [
                {
                    "trial": trial,
                    "reading": e.label,
                    "name": e.measured,
                    "value": four_digits(e.value),
                    "low": four_digits(e.low),
                    "high": four_digits(e.high),
                    "ok": e.ok,
                }
                for trial, run in readings.items()
                for e in run.expectations
            ]
        )
    )
assert all(e.ok for run in readings.values() for e in run.expectations)

# %% [markdown]
# ## Question 1: witnesses
#
# Delay: netem set it; ping and TCP's own smallest round trip read it. Rate: HTB; iperf3's receiver. Loss:
# netem; ping end to end, and the counter of drops. MTU: `ip link`; the segment size in ss, the length in tcpdump. Offloads:
# ethtool; tcpdump on the router.
#
# Some mistakes show only in the second tool. One is netem on the wrong interface, or the whole round trip's delay on both
# (`tc qdisc show` prints the intended delay). Another is a driver that keeps its offloads although `ethtool -k` reports them off,
# or an MTU set on three interfaces of four.
#
# *Full marks.* All five pairs, and two mistakes in which the first tool is truthful and no help. A
# student who says that the qdisc's counter is no witness at all for loss is right to be strict; accept it if it comes with a reason.
#
# ## Question 2: the rate

# %%
it = readings[2]
rate_bps = it.params["rate_mbit"] * 1e6


def most_bps(data: int, packet: int) -> float:
    """What a link carries of data, in segments of `data` bytes in packets of `packet` bytes."""
    return rate_bps * data / (packet + 14)


largest = most_bps(1460, 1500)
got = it.measured["goodput_bps"]
say(
    f"The most: {rate_bps / 1e6:g} × 1460 / 1514 = {largest / 1e6:.4f} Mbit/s. Read: {got / 1e6:.4f}, "
    f"{100 * (1 - got / largest):.2f} % below. With timestamps: × 1448 / 1514 = {most_bps(1448, 1500) / 1e6:.4f}. With segments of "
    f"4312 in packets of 4352: {most_bps(4312, 4352) / 1e6:.4f}."
)

# %% [markdown]
# The rest is the start: the handshake and the first round trips, in which the link isn't full. After that
# the queue of 100 packets keeps it busy through each halving. Headers are not part of that rest: they are in the
# first number.
#
# *Full marks.* 54 bytes of headers for each frame; the three numbers; the start named. Half marks for a student who gives 10 Mbit/s as
# the largest goodput and explains the difference afterwards.

# %%
samples_of = parse.parse_ss_samples(raw(2, "romeo/ss.txt"), "ss.txt")
port = it.measured["data_port"]
trace = [
    (sample.time_s, socket.rtt_ms)
    for sample in samples_of
    for socket in sample.sockets
    if socket.local_port == port and socket.rtt_ms
]
with plot_style.in_style():
    figure = plot_style.sized(240)
    axes = figure.subplots()
    axes.plot(
        [when - trace[0][0] for when, _ in trace], [rtt for _, rtt in trace], color=plot_style.QUEUE
    )
    axes.axhline(it.params["rtt_ms"], linestyle=":", color=plot_style.INK)
    axes.set_xlabel("seconds")
    axes.set_ylabel("round-trip time, ms")
    axes.set_ylim(bottom=0)
    axes.set_title("Trial 2: a full link has a queue; the dotted line is the path")
display(SVG(plot_style.svg_text(figure)))

# %% [markdown]
# ## Question 3: loss

# %%
it = readings[3]
p, count = it.params["loss_ratio"], it.measured["ping_sent_packets"]
low, high = statistics.binomial_interval(count, p, 0.99)
seen = it.measured["ping_loss_ratio"]
needed = 2.576**2 * (1 - p) / p / 0.05**2
pings = f"{round(needed, -3):,.0f}".replace(",", " ")
say(
    f"{seen * count:.0f} of {f'{count:,}'.replace(',', ' ')} pings were lost, {100 * seen:.2f} %. With p = {p:g}, 99 % of honest readings lie between "
    f"{low * count:.0f} and {high * count:.0f}, and this one is {'inside' if low <= seen <= high else 'outside'}. For ±5 % of p you "
    f"need about {pings} pings ({needed * p:.0f} losses)."
)
small_low, small_high = statistics.binomial_interval(100, p, 0.99)
back_low, back_high = statistics.loss_interval(5, 100, 0.99)
say(
    f"The classmate: in 99 % of honest readings {small_low * 100:.0f} to {small_high * 100:.0f} of 100 pings are lost. With five lost, "
    f"p is somewhere between {100 * back_low:.2f} % and {100 * back_high:.1f} %. That range includes {100 * p:.0f} %, so it is no evidence of a wrong "
    "setting; nor is it evidence of a right one."
)

# %%
again = sets.runs("loss-again")
with plot_style.in_style():
    figure = plot_style.sized(240)
    axes = figure.subplots()
    for row, key, size in (
        (1, "ping_loss_ratio", "ping_sent_packets"),
        (0, "loss_ratio", "qdisc_offered_packets"),
    ):
        axes.plot(
            [run.measured[key] for run in again],
            [row] * len(again),
            "o",
            alpha=0.5,
            color=plot_style.QUEUE,
        )
        packets = int(sum(run.measured[size] for run in again) / len(again))
        axes.plot(
            statistics.binomial_interval(packets, p, 0.99),
            [row] * 2,
            "|",
            color=plot_style.INK,
            markersize=22,
        )
    axes.axvline(p, linestyle=":", color=plot_style.INK)
    axes.set_yticks([0, 1], ["counter", "ping"])
    axes.set_ylim(-0.6, 1.6)
    axes.set_xlabel("loss ratio read; between the bars lie 99 % of honest readings")
    axes.set_title(f"Trial 3 with {len(again)} seeds")
display(SVG(plot_style.svg_text(figure)))

# %% [markdown]
# *Full marks.* The interval, by whatever method (√(np(1−p)) times 2.6 does here); the number of pings, of the order of
# 130 000; and that five of a hundred prove nothing, in either direction.
#
# ## Question 4: a link that isn't filled

# %%
it = readings[1]
line = last_ss(1)
rtt_s, rate_bps = it.params["rtt_ms"] / 1e3, it.params["rate_mbit"] * 1e6
(wide,) = sets.runs("wide-buffer")
# The last sample may come after the data connection's end.
limited = re.findall(r"sndbuf_limited:(\S+)", raw(1, "romeo/ss.txt"))
say(
    f"ss prints `sndbuf_limited:{limited[-1]}`. The product is {rate_bps / 1e6:g} Mbit/s × {rtt_s * 1e3:g} ms = "
    f"{rate_bps * rtt_s / 8e6:.3g} MB; the send buffer is {it.params['wmem_max_bytes'] / 1e6:.3g} MB. cwnd isn't the reason: it is "
    f"{line.cwnd_segments} segments, {line.cwnd_segments * line.mss_bytes / 1e6:.3g} MB. Goodput was "
    f"{it.measured['goodput_bps'] / 1e6:.0f} Mbit/s; with {wide.params['wmem_max_bytes']} B it is "
    f"{wide.measured['goodput_bps'] / 1e6:.0f}."
)
assert wide.measured["goodput_bps"] > 1.3 * it.measured["goodput_bps"]

# %% [markdown]
# A sender keeps each byte until it is acknowledged, a round trip later. So the buffer has to hold the
# product, and some more for data that wait. `--set wmem_max_bytes=8388608` does it.
#
# *Full marks.* The field; the product of 5 MB against a buffer of 4.2; a prediction made before the run. Full marks
# also for a larger buffer, with a word on why much larger isn't better.
#
# ## Question 5: nobody asked

# %%
rows = []
for trial, run in readings.items():
    said = raw(trial, "romeo/ping.txt")
    took_ms = int(re.findall(r"time (\d+)ms", said)[-1])
    sent = run.measured["ping_sent_packets"]
    rows.append(
        {
            "trial": trial,
            "asked, ms": run.params["ping_interval_s"] * 1e3,
            "RTT, ms": run.params["rtt_ms"],
            "sent": sent,
            "took, ms": took_ms,
            "interval, ms": took_ms / (sent - 1),
        }
    )
intervals = pd.DataFrame(rows).set_index("trial")
display(intervals)
assert (intervals["interval, ms"] > intervals["asked, ms"]).all()

# %% [markdown]
# In ping's last lines, `time` is how long all pings took. Divided by their number less one, it is the interval, which
# is longer than asked for. The likely reason is that ping waits for the clock and for the next echo at once, in steps of
# the kernel's timer; the questions don't ask for it.
#
# This spoils whatever takes the interval as given: a sampling rate, a load in packets a second, the moment of a loss worked out from
# its sequence number. It spoils neither the round-trip times nor the share that was lost, because ping times
# each echo by itself, and the share counts pings, not seconds.
#
# *Full marks.* Both intervals with the line they come from, and one example each way.
