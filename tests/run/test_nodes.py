"""Trials on machines reached by ssh: real sshd on the nodes of a topology, in the real-time kernel.

Each node is a network namespace with an sshd of its own and a cable to the controller besides the
lab's links. All see one file system and one table of processes, so that what is left shows at once.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from inside import seen_inside

from measuretwice.backends.script import INSIDE_ROOT, INSIDE_RUN, build_commands
from measuretwice.backends.virtual import ensure_kernel, run_inside
from measuretwice.lab import Lab, load_lab

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.kernel
# Where a real sshd is unpacked if none is installed: to install one would start it, for all.
UNPACKED = ROOT / "build" / "sshd"
SERVER = "openssh-server"  # its package
PYTHON = seen_inside(Path(sys.executable))

FUNCTIONS = f"""
set -uo pipefail
cd {INSIDE_RUN}
export MEASURETWICE_ROOT={INSIDE_ROOT} PYTHONPATH={INSIDE_ROOT}/src PYTHONDONTWRITEBYTECODE=1
lab="{PYTHON} -P -m measuretwice"
# All that belongs to the nodes, and what a trial makes on their disk.
state() {{
  local node
  for node in "${{nodes[@]}}"; do
    echo "--- $node"
    ip netns exec "$node" bash -c '
      for interface in /sys/class/net/eth*; do
        ip -4 addr show dev "${{interface##*/}}"; ethtool -k "${{interface##*/}}"; done
      tc qdisc; ip -4 route show table all | grep -v manage; ip -4 rule; ip -br link | grep ifb
      sysctl -a 2>/dev/null | grep -E "^net\\.(core|ipv4)" | sort'
  done
  ls -d /tmp/measuretwice* /run/measuretwice-* 2>/dev/null
}}
processes() {{ ps ax -o pid,ppid,args | grep -E '[i]perf3|[m]easuretwice run|bash [-]s|[t]cpdump|[s]s -tin|[s]sh -T'; }}
# until_undone SECONDS: of the trial nothing runs any more, and nothing is kept.
until_undone() {{
  local try
  for try in $(seq $(($1 * 5))); do
    [[ -z $(processes) && -z $(ls -d /tmp/measuretwice* /run/measuretwice-* 2>/dev/null) ]] && return
    sleep 0.2
  done
}}
# until_measured: a trial has begun, and its flow is being sampled.
until_measured() {{
  local try
  for try in $(seq 300); do
    compgen -G '/tmp/measuretwice.*/out/romeo/ss.txt' >/dev/null && break
    sleep 0.2
  done
  sleep 1
}}
timed() {{ echo "$SECONDS s: $*" >>times; }}
"""


def sshd_inside() -> tuple[str, list[str]]:
    """The path of an sshd inside the virtual kernel, and what to do there before it is started."""
    installed = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
    if installed:
        return installed, []
    if not UNPACKED.is_dir():
        UNPACKED.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=UNPACKED.parent) as folder:
            # Its libraries that this system lacks: libwrap0, with Debian 13's libwtmpdb0, ...
            needed = subprocess.run(
                ["apt-get", "-q", "--simulate", "--no-install-recommends", "install", SERVER],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
            libraries = re.findall(r"^Inst (lib\S+) \(", needed, re.MULTILINE)
            # apt checks their signatures.
            subprocess.run(
                ["apt-get", "-q", "download", SERVER, *libraries], cwd=folder, check=True
            )
            for package in Path(folder).glob("*.deb"):
                subprocess.run(["dpkg", "-x", package, f"{folder}/unpacked"], check=True)
            try:
                Path(folder, "unpacked").rename(UNPACKED)
            except OSError:
                if not UNPACKED.is_dir():  # another test was faster
                    raise
    inside = f"{INSIDE_ROOT}/{UNPACKED.relative_to(ROOT)}"
    folders = {f"{INSIDE_ROOT}/{path.parent.relative_to(ROOT)}" for path in UNPACKED.rglob("*.so*")}
    return f"{inside}/usr/sbin/sshd", [
        f"export LD_LIBRARY_PATH={':'.join(sorted(folders))}",
        # What the package's installation would have done: newer sshds' own programs.
        f"[[ ! -d /usr/lib/openssh ]] || mount --bind {inside}/usr/lib/openssh /usr/lib/openssh",
    ]


# Who may log in, in files of our own: the host's shadow can be read in there by who can read it on
# the host. To anybody else, where libnss-systemd is, root counts as locked, and sshd lets nobody in.
ACCOUNTS = """
cp /etc/passwd /run/passwd
grep -q ^sshd: /run/passwd || echo 'sshd:x:65533:65534::/run/sshd:/bin/false' >>/run/passwd
echo 'root:*:::::::' >/run/shadow
mount --bind /run/passwd /etc/passwd
mount --bind /run/shadow /etc/shadow
"""


def the_lab() -> Lab:
    return load_lab(ROOT, "mathis")


def inside_with_nodes(folder: Path, script: str, wall_limit_s: float = 400) -> None:
    """Make the lab's nodes, each with its sshd, and run a bash script as the controller's root."""
    sshd, before = sshd_inside()
    topology = the_lab().file.topology
    names = [node.name for node in topology.nodes]
    hosts, nodes, lines = [], ['ssh_config = "ssh_config"'], []
    for number, name in enumerate(names):
        here, there = f"192.168.77.{4 * number + 1}", f"192.168.77.{4 * number + 2}"
        hosts.append(f"Host {name}\n  HostName {there}\n")
        nodes.append(f'[nodes.{name}]\nssh = "{name}"')
        (folder / f"sshd_{name}").write_text(
            f"ListenAddress {there}\nHostKey {INSIDE_RUN}/host_key_{name}\nPidFile none\n"
            f"AuthorizedKeysFile {INSIDE_RUN}/key.pub\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"
            f"SetEnv PATH={INSIDE_RUN}/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
        )
        lines += [
            f"make_key host_key_{name}",
            f"printf '%s ' {there} | cat - host_key_{name}.pub >>known_hosts",
            f"ip link add m-{name} type veth peer name manage netns {name}",
            f"ip addr add {here}/30 dev m-{name}",
            f"ip link set m-{name} up",
            f"ip -n {name} addr add {there}/30 dev manage",
            f"ip -n {name} link set manage up",
            f"serve {name}",
        ]
    (folder / "ssh_config").write_text(
        "".join(hosts)
        + f"Host *\n  User root\n  IdentityFile {INSIDE_RUN}/key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {INSIDE_RUN}/known_hosts\n"
    )
    (folder / "nodes.toml").write_text("\n".join(nodes) + "\n")
    # A sudo that forgets the environment, as the real one does, and may want a password.
    (folder / "bin").mkdir()
    (folder / "bin/sudo").write_text(
        "#!/bin/bash\n"
        f"if [[ $(ip netns identify) == $(cat {INSIDE_RUN}/no-sudo 2>/dev/null) ]]; then\n"
        "  echo 'sudo: a password is required' >&2\n  exit 1\nfi\n"
        '[[ $1 == -n ]] || exit 1\nshift\nexec env -i PATH="$PATH" "$@"\n'
    )
    (folder / "bin/sudo").chmod(0o755)
    head = [
        FUNCTIONS,
        f"nodes=({' '.join(names)})",
        "mkdir -p /run/sshd",
        ACCOUNTS,
        *before,
        # In here everybody is root, and has the name that ssh-keygen asks for.
        "make_key() { ssh-keygen -q -t ed25519 -N '' -f \"$1\"; }",
        "make_key key",
        f'serve() {{ ip netns exec "$1" {sshd} -D -f {INSIDE_RUN}/sshd_"$1" -E {INSIDE_RUN}/sshd_"$1".log & sshd[$1]=$!; }}',
        "declare -A sshd",
        *build_commands(topology),
        *lines,
        "sleep 1",
        "state >before",
    ]
    (folder / "experiment.sh").write_text("\n".join(head) + script + "\ntouch ended\n")
    run_inside(
        ensure_kernel(),
        ROOT,
        folder,
        1,
        wall_limit_s,
        as_machine=True,
    )
    assert (folder / "ended").exists(), (folder / "experiment.log").read_text()


def checkout(folder: Path, *changes: tuple[str, str, str]) -> None:
    """A checkout whose Mathis lab is changed: in this file, this text to that."""
    shutil.copytree(ROOT / "labs", folder / "labs")
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name, old, new in changes:
        path = folder / "labs/01-mathis" / name
        text = path.read_text()
        assert text.count(old) == 1, (name, old)
        path.write_text(text.replace(old, new))


def same(folder: Path, *names: str) -> None:
    before = (folder / "before").read_text()
    for name in names:
        assert (folder / name).read_text() == before, name


def said(folder: Path, name: str) -> list[str]:
    """What it complained about."""
    text = (folder / name).read_text()
    assert "Traceback" not in text, text
    return [line for line in text.splitlines() if line.startswith("lab: ")]


@pytest.mark.user
def test_sshd_lets_in_whoever_runs_this(tmp_path: Path) -> None:
    inside_with_nodes(
        tmp_path,
        """
        for node in "${nodes[@]}"; do
          ssh -F ssh_config -o BatchMode=yes "$node" ip netns identify 2>>complaints | tail -n 1 >>who
        done
        """,
    )
    names = the_lab().file.topology.node_names
    # The second has what sshd's programs say before they know of a log of their own.
    complaints = "".join((tmp_path / name).read_text() for name in ("complaints", "experiment.log"))
    assert (tmp_path / "who").read_text().split() == names, complaints


RUN = "$lab run mathis --trial 7 --set ping_count=5 --on nodes.toml --out runs"


@pytest.mark.nightly(
    "what a node is sent, and its files: tests/unit/test_remote.py, test_node_list.py; measured and undone on this machine: test_host.py"
)
@pytest.mark.slow
def test_it_measures_and_is_undone_whatever_ends_it(tmp_path: Path) -> None:
    # The virtual kernel has no hfsc.
    checkout(tmp_path / "root", ("lab.toml", '["netem", "htb"]', '["netem", "htb", "hfsc"]'))
    inside_with_nodes(
        tmp_path,
        f"""
        timed measure
        {RUN} --set duration_s=4 >said-measured 2>&1
        echo $? >status-measured
        state >after-measured
        processes >left-measured

        timed wrong
        echo juliet >no-sudo
        ip -n romeo addr add 10.99.0.1/24 dev eth0
        ip -n romeo addr del 10.10.1.100/24 dev eth0
        tc -n router qdisc add dev eth0 root fq
        state >before-wrong
        MEASURETWICE_ROOT={INSIDE_RUN}/root {RUN} --set congestion_control=cdg >said-wrong 2>&1
        echo $? >status-wrong
        state >after-wrong
        tc -n router qdisc del dev eth0 root
        rm no-sudo
        ip -n romeo addr add 10.10.1.100/24 dev eth0
        ip -n romeo addr del 10.99.0.1/24 dev eth0
        ip -n romeo route add default via 10.10.1.1
        state >after-fixing

        set -m
        timed Ctrl-C
        {RUN} --set duration_s=60 >said-ctrl-c 2>&1 &
        until_measured
        state >during
        kill -INT $!
        wait $!
        echo $? >status-ctrl-c
        state >after-ctrl-c
        processes >left-ctrl-c

        timed killed
        {RUN} --set duration_s=60 >said-killed 2>&1 &
        until_measured
        kill -KILL $!
        until_undone 10
        state >after-killed
        processes >left-killed
        timed end
        """,
    )
    assert (tmp_path / "status-measured").read_text() == "0\n", said(tmp_path, "said-measured")
    assert (tmp_path / "status-wrong").read_text() == "2\n"
    assert (tmp_path / "status-ctrl-c").read_text() == "130\n"
    assert (tmp_path / "during").read_text() != (tmp_path / "before").read_text()
    same(tmp_path, "after-measured", "after-fixing", "after-ctrl-c", "after-killed")
    assert (tmp_path / "after-wrong").read_text() == (tmp_path / "before-wrong").read_text()
    for name in ("left-measured", "left-ctrl-c", "left-killed"):
        assert (tmp_path / name).read_text() == ""

    (run,) = (tmp_path / "runs/mathis").glob("trial-07-*")
    plan = json.loads((run / "plan.json").read_text())
    assert plan["where"] == "nodes"
    assert plan["kernel"].startswith("nodes linux ")
    assert "iperf" in plan["tools"]["iperf3"]
    result = json.loads((run / "result.json").read_text())
    assert 5.9 < result["measured"]["rtt_min_ms"] < 12
    assert 0.4 < result["ratio"] < 2
    assert result["measured"]["qdisc_sent_packets"] > 100
    assert result["measured"]["largest_packet_bytes"] <= 1514
    assert "--on nodes.toml" in json.loads((run / "provenance.json").read_text())["command"]
    assert {path.name for path in (run / "raw").iterdir()} == {"romeo", "router", "juliet"}
    assert "mtu eth0 1500" in (run / "raw/romeo/node.before.txt").read_text()

    lacks = (
        "its kernel has not the queue discipline hfsc (sch_hfsc), "
        "the congestion control cdg (tcp_cdg)"
    )
    romeo, router, juliet = sorted(said(tmp_path, "said-wrong"), key=list_order)
    assert romeo == f"lab: romeo: none of its interfaces has the address 10.10.1.100; {lacks}"
    assert router.startswith(
        f"lab: router: {lacks}; eth0 has a queue that Linux did not choose by itself and that "
        "could not be put back: qdisc fq "
    )
    assert "juliet: sudo: a password is required: sudo must work there without" in juliet


def list_order(line: str) -> int:
    """Of a line that names a node: its place in the topology."""
    names = the_lab().file.topology.node_names
    return names.index(line.split(": ")[1])


@pytest.mark.nightly(
    "what each node script undoes: test_undo.py; the guard's twin on this machine: test_host.py"
)
@pytest.mark.slow
def test_a_cut_link_and_killed_guards(tmp_path: Path) -> None:
    """Scripts that change all that scripts may change, and one that needs the others' files."""
    checkout(
        tmp_path / "root",
        (
            "lab.toml",
            "# Where the numbers",
            'conclude = [{ node = "router", phase = "report" }]\n\n#',
        ),
        (
            "nodes/router.sh",
            "run_phase ",
            'report() { wc -c "$OUT"/../*/iperf3*.json >"$OUT/report.txt"; }\nrun_phase ',
        ),
        ("nodes/router.sh", "prepare capture", "prepare report capture"),
        (
            "nodes/juliet.sh",
            "  # --8<-- [end:prepare]",
            "  ip link add card type ifb\n  ip link set card up\n"
            '  tc qdisc add dev "$to_romeo" clsact\n'
            '  tc filter add dev "$to_romeo" egress matchall action mirred egress redirect dev card\n'
            "  ip route add local 10.99.0.1 dev lo table 100\n"
            '  ip rule add iif "$to_romeo" ipproto tcp dport 7 lookup 100\n'
            "  # --8<-- [end:prepare]",
        ),
    )
    run = f"MEASURETWICE_ROOT={INSIDE_RUN}/root {RUN} --set duration_s=3 --set mtu_bytes=1400"
    inside_with_nodes(
        tmp_path,
        f"""
        set -m
        timed first
        {run} >said-first 2>&1
        echo $? >status-first
        state >after-first

        timed "guards killed"
        {run} --seed 2 >said-guard 2>&1 &
        until_measured
        kill -KILL $(pgrep -f '^bash -s')
        wait $!
        echo $? >status-guard
        state >after-guard

        timed "sshd gone"
        kill "${{sshd[router]}}"
        {run} --repeat 3 >said-off 2>&1
        echo $? >status-off
        serve router
        sleep 1

        timed cut
        {run} --repeat 3 >said-cut 2>&1 &
        until_measured
        ip link set m-juliet down
        begun=$SECONDS
        wait $!
        echo $? >status-cut
        until_undone 30
        echo $((SECONDS - begun)) >seconds-cut
        state >after-cut
        processes >left-cut

        timed "goes on"
        ip link set m-juliet up
        {run} --repeat 2 >said-on 2>&1
        echo $? >status-on
        until_undone 5
        state >after-on
        processes >left-on
        timed end
        """,
    )
    status = {path.name: path.read_text() for path in tmp_path.glob("status-*")}
    assert status == {
        "status-first": "0\n",
        "status-guard": "1\n",
        "status-off": "2\n",
        "status-cut": "1\n",
        "status-on": "0\n",
    }, {name: said(tmp_path, name.replace("status", "said")) for name in status}
    assert said(tmp_path, "said-first") == []
    assert said(tmp_path, "said-guard")[0].startswith("lab: trial 7: lost ")
    assert "table 100" in (tmp_path / "after-guard").read_text()
    assert "card" in (tmp_path / "after-guard").read_text()
    (line,) = said(tmp_path, "said-off")
    assert line.startswith("lab: router: ssh: connect to host 192.168.77.6 port 22: Conn")
    assert line.endswith(": try ssh router by hand")
    (line,) = said(tmp_path, "said-cut")
    assert line.startswith("lab: trial 7: lost juliet: ")
    assert "the same command goes on" in line
    # Its end is noticed after 12 s of silence; the node that is cut off waits for 20.
    assert int((tmp_path / "seconds-cut").read_text()) < 40
    assert "1 of 3 are measured already" in (tmp_path / "said-cut").read_text()
    assert "1 of 2 are measured already" in (tmp_path / "said-on").read_text()
    same(tmp_path, "after-first", "after-cut", "after-on")
    assert (tmp_path / "left-cut").read_text() == ""
    assert (tmp_path / "left-on").read_text() == ""
    runs = sorted((tmp_path / "runs/mathis").glob("trial-07-*"))
    assert [json.loads((run / "plan.json").read_text())["seed"] for run in runs] == [1, 2]
    report = (runs[0] / "raw/router/report.txt").read_text()
    assert "romeo/iperf3.json" in report
    assert "juliet/iperf3-server.json" in report
