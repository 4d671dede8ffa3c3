"""A live lab as a person uses it: terminals on nodes, by hand; and all that can go wrong with them."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pexpect
import pytest
from processes import command_lines

from measuretwice.lab import Lab, load_lab
from measuretwice.site.macros.browser_run import live_terminals

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.kernel, pytest.mark.slow]
PROMPT = r":~[^\n]*# (\x1b\[K)?$"
TOOLS = ("ping", "iperf3", "ss", "tc", "ethtool", "tcpdump", "ip", "nstat")


class Checkout:
    """A checkout of its own (links to ours), so that its live labs are nobody else's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("labs", "scripts", "src"):
            shutil.copytree(ROOT / name, folder / name)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder / "src"),
            "MEASURETWICE_ROOT": str(folder),
            "TERM": "xterm-256color",
        }
        self.lab = [sys.executable, "-P", "-m", "measuretwice"]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.lab, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
            stdin=subprocess.DEVNULL,
        )

    def up(self, *arguments: str, lab: str = "mathis") -> Path:
        """Bring a lab up and return its folder."""
        done = self.run("up", lab, *arguments)
        assert done.returncode == 0, done.stderr
        return Path(self.status()[0]["folder"])

    def status(self) -> list[dict[str, Any]]:
        return list(json.loads(self.run("status", "--json").stdout))

    def spawn(self, *arguments: str) -> "pexpect.spawn[str]":
        return pexpect.spawn(
            self.lab[0],
            [*self.lab[1:], *arguments],
            env=self.environment,
            encoding="utf-8",
            timeout=60,
            dimensions=(30, 120),
        )

    def enter(self, node: str) -> "pexpect.spawn[str]":
        terminal = self.spawn("enter", node)
        terminal.expect(PROMPT)
        return terminal

    def processes(self) -> list[str]:
        """The command lines of all that works for this checkout."""
        return [
            f"{pid} {line}"
            for pid, line in command_lines().items()
            if str(self.folder) in line and ("live.session" in line or "MT_FOLDER" in line)
        ]

    def process(self, word: str) -> int:
        return next(int(line.split()[0]) for line in self.processes() if word in line)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path / "check out")
    try:
        yield made
    finally:
        made.run("down")
        eventually(lambda: not made.processes())
        assert not list(made.folder.glob("runs/*/.live"))


def eventually(holds: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


marks = count()


def do(terminal: "pexpect.spawn[str]", line: str) -> str:
    """Type a line and return what was shown until it was done."""
    mark = f"mark{next(marks)}"
    # Quoted apart, so that the line as it is typed doesn't have it.
    terminal.sendline(f"{line}; echo {mark[:4]}''{mark[4:]}")
    terminal.expect(rf"{mark}\r\n.*# (\x1b\[K)?$")
    return str(terminal.before)


def test_a_terminal_is_a_terminal(checkout: Checkout) -> None:
    """Prompt, tools, completion, history, Ctrl-C, colours, resizing, exit status."""
    folder = checkout.up()
    romeo = checkout.spawn("enter", "romeo")
    romeo.expect(r"romeo.*# (\x1b\[K)?$")
    for tool in TOOLS:
        assert f"/{tool}" in do(romeo, f"type -P {tool}")
    assert "30 120" in do(romeo, "stty size")
    romeo.setwinsize(41, 133)
    eventually(lambda: "41 133" in do(romeo, "stty size"))
    assert "256" in do(romeo, "tput colors")
    romeo.send("rom\t")
    romeo.expect(r"eo\.sh ")
    romeo.sendcontrol("c")
    romeo.expect(PROMPT)
    romeo.sendline("ping 10.10.2.100")
    romeo.expect("icmp_seq=2")
    romeo.sendcontrol("c")
    romeo.expect("packet loss")
    romeo.expect(PROMPT)
    romeo.send("\x1b[A")
    romeo.expect("ping 10")
    romeo.sendcontrol("c")
    romeo.expect(PROMPT)
    assert "rtt 60" in do(romeo, "sudo -E RTT_MS=60 bash -c 'echo rtt $RTT_MS'")
    romeo.sendline("exit 3")
    romeo.expect(pexpect.EOF)
    romeo.close()
    assert romeo.exitstatus == 3
    # The next shell on this node remembers.
    again = checkout.enter("romeo")
    assert "ping 10.10.2.100" in do(again, "history")
    assert "ping 10.10.2.100" in (folder / "history-romeo").read_text()


def test_ctrl_c_tells_what_stays_to_end(checkout: Checkout) -> None:
    """Then what it watched is written out, as in a run; also where it was put in the background."""
    folder = checkout.up("--case", "1", lab="queues")
    router = checkout.enter("router-1")
    do(router, "router-1.sh prepare")
    samples = folder / "raw/router-1/queue.txt"
    for line, end in (("router-1.sh watch", "\x03"), ("router-1.sh watch &", "kill %1; wait\r")):
        router.sendline(line)
        router.expect("ready")
        router.send(end)
        eventually(samples.exists)
        eventually(lambda: not samples.with_name("queue.txt.json").exists())
        do(router, "true")
        assert "# t=" in samples.read_text()
        samples.unlink()


def test_only_its_owner_can_enter(checkout: Checkout) -> None:
    """Also where the folder of its state was there before, open to all."""
    state = checkout.folder / "runs/mathis/.live"
    state.mkdir(parents=True)
    state.chmod(0o777)
    folder = checkout.up()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (state, folder)} == {0o700}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody else's folder")
def test_somebody_elses_state_is_not_used(checkout: Checkout) -> None:
    state = checkout.folder / "runs/mathis/.live"
    state.mkdir(parents=True)
    theirs = {"folder": str(checkout.folder / "labs"), "lab": "mathis", "trial": 1}
    (state / "state.json").write_text(json.dumps({**theirs, "keeper": os.getpid(), "since": ""}))
    for path in (state, state / "state.json"):
        os.chown(path, 65534, 65534)
    done = checkout.run("up", "mathis")
    assert done.returncode == 2
    assert done.stderr.startswith(f"lab: {state}: belongs to someone else")
    assert done.stderr.count("\n") == 1
    # It names a process and a folder to be removed: neither is touched.
    assert checkout.run("down").returncode in (0, 2)
    assert (checkout.folder / "labs").is_dir()
    shutil.rmtree(state)


@pytest.mark.nightly(
    "the same by a case and own scripts: test_a_case_is_solved_by_hand_with_own_scripts"
)
def test_the_mathis_page_by_hand(checkout: Checkout) -> None:
    """Four terminals, from up to a finding and its cure."""
    folder = checkout.up("--trial", "7", "--set", "duration_s=10")
    romeo, sockets, router, juliet = map(checkout.enter, ("romeo", "romeo", "router", "juliet"))

    def measure(loss: str) -> str:
        do(router, f"{loss} router.sh prepare")
        juliet.sendline("juliet.sh prepare; juliet.sh serve")
        juliet.expect("ready")
        do(romeo, "romeo.sh prepare; romeo.sh validate")
        romeo.sendline("romeo.sh measure")
        eventually(lambda: "reno" in do(sockets, "ss -ti dst 10.10.2.100"))
        romeo.expect(PROMPT)
        do(juliet, "true")
        do(router, "tc -s qdisc show dev eth1 >tc.txt; router.sh undo")
        return checkout.run("check", str(folder)).stdout

    # The mistake of the page 'loss as a percentage': netem is given p itself.
    broken = measure("LOSS_PERCENT=$LOSS_RATIO")
    assert "1 finding" in broken
    assert "something is off" in broken
    assert "case-01/" in broken
    assert "no finding" in measure("")
    output = checkout.run("down").stdout
    assert "down" in output
    assert "check" in output
    assert (folder / "raw/romeo/iperf3.json").stat().st_size > 1000
    # It is checked after the network has gone, too.
    assert checkout.run("check", str(folder)).returncode == 0


@pytest.mark.nightly(
    "by day a case is solved with own scripts in virtual time (run/test_edit.py); the other tests here type into live terminals"
)
def test_a_case_is_solved_by_hand_with_own_scripts(checkout: Checkout) -> None:
    """A command typed in a live lab fixes a case; what is typed may be the student's own script."""
    assert checkout.run("edit", "mathis").returncode == 0
    script = checkout.folder / "runs/mathis/edit/nodes/router.sh"
    script.write_text(script.read_text() + "echo this is mine\n")
    up = checkout.run("up", "mathis", "--case", "7", "--set", "duration_s=10")
    assert up.returncode == 0, up.stderr
    assert "your own copy is used (router.sh)" in up.stderr
    folder = Path(checkout.status()[0]["folder"])
    assert "+echo this is mine" in (folder / "edit.diff").read_text()
    romeo, router, juliet = map(checkout.enter, ("romeo", "router", "juliet"))

    def measure(delay: str) -> str:
        assert "this is mine" in do(router, f"{delay} router.sh prepare")
        juliet.sendline("juliet.sh prepare; juliet.sh serve")
        juliet.expect("ready")
        do(romeo, "romeo.sh prepare; romeo.sh validate")
        do(romeo, "romeo.sh measure")
        do(juliet, "true")
        do(router, "tc -s qdisc show dev eth1 >tc.txt; router.sh undo")
        return checkout.run("check", str(folder)).stdout

    broken = measure("")
    assert "something is off" in broken
    assert "nothing is off" not in broken
    # What a case is about stands in no shell's environment, and is named once there is a diagnosis.
    assert "RTT_MS=" in do(router, "env")
    assert not re.search(
        "DELAY_MS|LOSS_PERCENT|MTU_BYTES", do(router, "env; cat ../../experiment.sh")
    )
    assert "--diagnosis 'in your own words'" in broken
    wrong = checkout.run("check", str(folder), "--diagnosis", "the round trip takes twice as long")
    assert "The setting is delay_ms = " in wrong.stdout
    assert re.search("in lines [0-9]+ and [0-9]+ of router.sh", wrong.stdout)
    assert "on a node, before the script's command: DELAY_MS=;" in wrong.stdout
    fixed = measure("DELAY_MS=")
    assert "no finding" in fixed
    assert "Case 7: nothing is off any more, by hand" in fixed
    book = (checkout.folder / "runs/mathis/lab-book.md").read_text()
    assert "- Outcome: nothing is off any more, by hand" in book
    checkout.run("down")
    assert checkout.run("edit", "mathis", "--undo").returncode == 0


@pytest.mark.user
def test_one_command_on_a_node(checkout: Checkout) -> None:
    checkout.up("--set", "rtt_ms=20")
    done = checkout.run("enter", "router", "router.sh prepare && echo RTT $RTT_MS >&1; exit 5")
    assert done.returncode == 5
    assert "RTT 20" in done.stdout
    # Without a locale of Unicode's inside, bash used to begin each shell with a warning.
    assert "setlocale" not in done.stdout + done.stderr
    # A number as it was written, not as a computer keeps it.
    ratio = checkout.run("enter", "router", "echo P $LOSS_RATIO").stdout
    assert re.search(r"P 0\.\d{1,12}\s", ratio), ratio
    began = time.monotonic()
    ping = checkout.run("enter", "romeo", "ping", "-qc", "3", "-i", "0.2", "10.10.2.100")
    assert ping.returncode == 0
    assert time.monotonic() - began > 0.4
    minimum = re.search(r"= ([\d.]+)/", ping.stdout)
    assert minimum
    assert 20 <= float(minimum[1]) < 25


def typed_rows(lab: Lab) -> Iterator[tuple[list[str], str, str]]:
    """What a page's list of live terminals has one type, in order: on which nodes, what, and what it says besides."""
    nodes = lab.file.topology.node_names
    rows = re.findall(r"^\| (.+?) \| `(.+?)`(.*) \|$", live_terminals(lab, "", ""), re.MULTILINE)
    for where, what, besides in rows:
        first, _, last = where.partition(" to ")
        if where == "each":
            yield nodes, what, besides
        elif first in nodes:
            yield nodes[nodes.index(first) : nodes.index(last or first) + 1], what, besides


@pytest.mark.nightly(
    "by day check/test_live_files.py judges what is typed, and a row of the list is looked at"
)
def test_what_a_page_has_one_type_is_no_other_network(checkout: Checkout) -> None:
    """Each row of the page's list on each node that it names. Times and rates depend on what else this machine does."""
    lab = load_lab(ROOT, "queues")
    folder = checkout.up("--trial", "1", "--set", "duration_s=3", lab="queues")
    staying: list[pexpect.spawn[str]] = []
    for nodes, what, besides in typed_rows(lab):
        if what == "snapshot.sh after .":
            eventually(lambda: len(list(folder.glob("raw/host-[12]/average.txt"))) == 2, 60)
            for terminal in staying:
                terminal.sendcontrol("c")
                terminal.expect(PROMPT)
        for node in nodes:
            # Its name is the node's, where several share a script.
            if besides:
                staying.append(checkout.enter(node))
                staying[-1].sendline(what)
            else:
                done = checkout.run("enter", node, what)
                assert done.returncode == 0, (node, what, done.stdout)
    said = checkout.run("check", str(folder)).stdout
    assert "differ" not in said, said
    assert "measured in real time" in said
    for name in ("qdisc.before.json", "addr.json", "route.txt"):
        (folder / "raw/host-1" / name).unlink()
    # What is missing isn't another setting.
    assert "differ" not in checkout.run("check", str(folder)).stdout


@pytest.mark.nightly("CI runs it: by day a little is")
def test_much_is_typed_and_much_is_shown(checkout: Checkout) -> None:
    folder = checkout.up()
    romeo = checkout.enter("romeo")
    do(romeo, "stty -echo")
    romeo.sendline("cat >pasted")
    text = "".join(f"line {n} {'x' * 60}\n" for n in range(1000))
    romeo.send(text)
    romeo.sendcontrol("d")
    romeo.expect(PROMPT)
    assert (folder / "raw/romeo/pasted").read_text() == text
    shown = do(romeo, "seq 1 60000")
    assert shown.split()[-60_000:] == [str(n) for n in range(1, 60_001)]


@pytest.mark.nightly("CI runs it: rare")
def test_a_program_that_does_not_read_stops_nobody_else(checkout: Checkout) -> None:
    checkout.up()
    deaf, other = checkout.enter("romeo"), checkout.enter("juliet")
    deaf.sendline("stty raw -echo; sleep 600")
    time.sleep(0.5)
    deaf.send("x" * 50_000)
    assert "fine" in do(other, "echo fi''ne")


@pytest.mark.nightly("CI runs it: by day a terminal that is left")
def test_a_closed_terminal_ends_what_ran_in_it(checkout: Checkout) -> None:
    checkout.up()
    romeo, other = checkout.enter("romeo"), checkout.enter("romeo")
    romeo.sendline("ping -i 0.2 10.10.2.100 >ping.txt & sleep 4321")
    eventually(lambda: "4321" in do(other, "ps ax | grep 'sleep 432[1]'; echo").split("ps ax")[-1])
    os.kill(romeo.pid, signal.SIGKILL)
    eventually(lambda: "sleep 4321" not in do(other, "ps ax | grep 'sleep 432[1]'; echo"))
    eventually(lambda: "ping -i" not in do(other, "ps ax | grep 'ping -[i]'; echo"))


@pytest.mark.nightly("CI runs it: by day what ends a lab leaves nothing")
def test_a_killed_keeper_leaves_nothing(checkout: Checkout) -> None:
    folder = checkout.up()
    romeo = checkout.enter("romeo")
    do(romeo, "echo kept >kept.txt")
    os.kill(checkout.process("live.session"), signal.SIGKILL)
    romeo.expect("the network has gone down")
    eventually(lambda: not checkout.processes())
    assert checkout.status() == []
    assert (folder / "raw/romeo/kept.txt").read_text() == "kept\n"
    assert not list(folder.rglob(".uml"))
    assert not list(folder.parent.glob(".live"))
    # And the next one comes up as if nothing had been.
    checkout.up()


@pytest.mark.nightly("CI runs it: by day what ends a lab leaves nothing")
def test_a_crashed_kernel_leaves_nothing(checkout: Checkout) -> None:
    checkout.up()
    romeo = checkout.enter("romeo")
    os.kill(checkout.process("MT_FOLDER"), signal.SIGKILL)
    romeo.expect("the network has gone down")
    romeo.expect(pexpect.EOF)
    eventually(lambda: not checkout.processes())
    assert checkout.status() == []


def test_up_twice_down_twice_and_wrong_words(checkout: Checkout) -> None:
    for arguments, words in (
        (("enter", "romeo"), "./lab up LAB first"),
        (("up", "nothing"), "nothing"),
        (("up", "mathis", "--trial", "1-3"), "give one number"),
        (("up", "mathis", "--pitfall", "mtu"), "go together"),
        (("up", "mathis", "--set", "rtt_ms=x"), "rtt_ms"),
    ):
        done = checkout.run(*arguments)
        assert done.returncode == 2, done
        assert done.stderr.startswith("lab: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    checkout.up()
    again = checkout.run("up", "mathis")
    assert again.returncode == 2
    assert "up already" in again.stderr
    wrong = checkout.run("enter", "tybalt")
    assert wrong.returncode == 2
    assert "romeo, router, juliet" in wrong.stderr
    assert "mathis: down" in checkout.run("down").stdout
    for arguments in ((), ("mathis",)):
        down = checkout.run("down", *arguments)
        assert down.returncode == 0
        assert "up" in down.stdout
    # Nothing was written, so nothing stays.
    assert not list(checkout.folder.glob("runs/mathis/live-*"))


@pytest.mark.nightly("CI runs it: one lab at a time by day")
def test_two_labs_at_once(checkout: Checkout) -> None:
    checkout.up()
    done = checkout.run("up", "calibrate")
    assert done.returncode == 0, done.stderr
    assert [live["lab"] for live in checkout.status()] == ["calibrate", "mathis"]
    both = checkout.run("enter", "romeo", "true")
    assert both.returncode == 2
    assert "--lab" in both.stderr
    assert checkout.run("enter", "--lab", "mathis", "romeo", "true").returncode == 0


@pytest.mark.nightly("CI runs it: by day a terminal without tmux")
def test_tmux_opens_the_terminals(checkout: Checkout) -> None:
    # The front door, for what tmux starts itself.
    (checkout.folder / "lab").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -P -m measuretwice "$@"\n'
    )
    (checkout.folder / "lab").chmod(0o755)
    screen = checkout.spawn("up", "mathis", "--tmux")
    screen.setwinsize(50, 160)
    names = ["romeo", "romeo", "router", "juliet"]
    shown = ""
    until = time.monotonic() + 60
    while any(shown.count(f"{name}\x1b") < names.count(name) for name in names):
        assert time.monotonic() < until, shown
        with_more = screen.expect([r".+", pexpect.TIMEOUT], timeout=1)
        shown += screen.after if with_more == 0 else ""
    screen.send("\x02d")  # detach
    screen.expect(pexpect.EOF)
    # The network stays; its terminals wait in tmux, which ends with the network.
    assert len(checkout.status()) == 1
