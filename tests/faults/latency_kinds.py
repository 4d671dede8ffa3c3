"""Mistakes in the node scripts of lab 06, where pings, a call and short transfers tell how long others wait: twelve kinds, none
of them staged by the lab.

This list was written down before any of them was run. Each is what a person might write into these scripts; the first four are
about the path, the others about those who measure on it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

from lab_nodes import SET, Params, at, before, damaged, logs

from faults import Fault
from measuretwice.lab import Lab

# By so much a clock is set forward in the middle of a run.
STEP_S = 0.15
# What the checker calls them was written when it had a check of them; before, all of these were silent.
PROBES = {"probes", "ping-elsewhere", "idle-probe", "unexplained", "refused"}
STREAM = {"probes", "unexplained", "refused"}
DELAY = SET | {"round-trip-time", "rtt-doubling"}


def calls(program: str, where: str, only: str, instead: str) -> str:
    """A program is called otherwise on nodes whose folder ends with `where`, if its words have `only`. In `instead` they are "$@"."""
    return (
        f'{program}() {{ if [[ "${{OUT-}}" == *{where} && " $* " == *"{only}"* ]]; then {instead}; '
        f'else command {program} "$@"; fi; }}; export -f {program}'
    )


def called(program: str, where: str, only: str, instead: str) -> Fault:
    """The same once the nodes are set up."""
    return before(calls(program, where, only, instead))


def set_up(where: str, only: str, instead: str) -> Fault:
    """The same of tc while the nodes are set up."""
    return Fault(early=[calls("tc", where, only, instead)])


def whole_delay_at_the_server(lab: Lab, params: Params, chance: random.Random) -> Fault:
    """The server delays by the whole round trip, and the provider by half of it as well."""
    change = f"tc qdisc change dev eth0 root netem delay {params['rtt_ms']}ms limit 100000"
    return before(at("server", change))


def clock_stepped(run: Path) -> None:
    """The server's clock is set forward when half of the call is over: by its own clock packets came, and were sent, later."""
    came = [float(line.split()[2]) for path in logs(run, "call.txt") for line in _packets(path)]
    middle_s = (min(came) + max(came)) / 2
    for path in logs(run, "call.txt"):
        column = 2 if path.parent.name == "server" else 1

        def stepped(line: re.Match[str], column: int = column) -> str:
            words = line[0].split()
            time_s = float(words[column])
            words[column] = f"{time_s + STEP_S * (time_s > middle_s):.6f}"
            return " ".join(words)

        path.write_text(re.sub(r"(?m)^\d.*$", stepped, path.read_text()))


def _packets(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line[:1].isdigit()]


Made = Fault | Callable[..., Fault]
# Each with the settings it is put into, and what would be its right cause.
HOME: tuple[tuple[str, str, set[str] | frozenset[str], Made], ...] = (
    ("ifb-filter-missing", "L1 L4", SET, set_up("/router", " matchall action mirred ", ":")),
    ("discipline-one-way", "L1", SET, set_up("/router", " dev from-modem parent 1:1 ", ":")),
    ("delay-whole-at-one-end", "L1", DELAY, whole_delay_at_the_server),
    ("rate-in-bytes", "L4", SET | {"no-bottleneck"}, set_up("/router", " tbf rate ", 'command tc "${@/%mbit/mbps}"')),
    # The server's half of the call goes to the laptop, where nobody listens.
    ("call-to-another-host", "L1 L4", STREAM, called("python3", "/server", "call.py", 'command python3 "${@/10.6.2.2/10.6.1.2}"')),
    # Somebody forgets a nought: a packet every 2 ms, not every 20, from both ends.
    ("call-too-often", "L1 L4", STREAM, called("python3", "", "call.py", 'command python3 "${@:1:5}" 2 "${@:7}"')),
    ("call-after-the-load", "L1 L4", STREAM | {"idle-probe"}, called("python3", "", "call.py", 'sleep $((DURATION_S + 1)); command python3 "$@"')),
    # The phone pings its own router while the flows run.
    ("ping-the-gateway", "L1 L4", PROBES, called("ping", "/phone", " -D ", 'command ping "${@:1:$#-1}" 10.6.2.1')),
    # They are over long before the flows are.
    ("pings-too-few", "L1 L4", PROBES, called("ping", "", " -D ", 'command ping -c 40 "$@"')),
    # A page of 1000 bytes for one of 100000.
    ("pages-too-small", "L1 L4", {"probes", "unexplained", "refused"}, called("python3", "/server", " serve ", 'exec python3 "${@:1:4}" 1000')),
    # The queue that is sampled is the one of the other direction.
    ("queue-of-the-other-way", "L1 L4", {"samples", "path", "link-rate", "unexplained", "refused"}, called(
        "ip", "/router", " route get 10.6.3.2", "echo 'x dev from-modem x'")),
    ("clock-stepped", "L1 L4", {"samples", "refused", "unexplained"}, damaged(clock_stepped)),
)  # fmt: skip
