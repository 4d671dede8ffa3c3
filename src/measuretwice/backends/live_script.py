"""The scripts of live labs: the topology, and what a person finds in a shell on a node.

Commands, prompt and settings are the same everywhere. What serves the terminals isn't: in the virtual
kernel an agent (live/agent.py), in the browser's machine its first process, which starts a bash on each
serial line.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from measuretwice.backends.script import (
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    LARGE_BACKLOG_PACKETS,
    SETTLE_SECONDS,
    edited_folder,
    environment,
    packed,
    preamble,
)
from measuretwice.lab import Lab, Plan

# So many serial lines for shells the browser's machine has.
PAGE_TERMINALS = 3
# In it: the size of each line's terminal, in stty's words, and how often it asks the page what it wants. Each
# time that it wakes costs the page some 15 ms.
SIZES = "/run/terminals"
ASK_SECONDS = 2


def live_script(
    lab: Lab, plan: Plan, root: Path, folder: str, sampler: str, python: str, console: int
) -> str:
    """Return the bash script of a live lab: the topology, and then shells on its nodes on demand.

    `python` is an interpreter that the virtual kernel sees, `console` the number of its console
    that leads to the keeper. Files that a shell writes go to `folder`/raw/<node>/.
    """
    lines = [
        "#!/bin/bash",
        f"# {lab.name}, trial {plan.trial}: made by ./lab up.",
        *_network_and_commands(lab, plan, root, folder, sampler, "C.UTF-8"),
        # See SETTLE_SECONDS: in its first second ping wouldn't wait.
        "while read -r uptime_s _ </proc/uptime && [[ $uptime_s == 0.* ]]; do sleep 0.05; done",
        f"mknod /run/console c 4 {console}",
        "export root out",
        'export PYTHONPATH="$root/src" PYTHONDONTWRITEBYTECODE=1',
        f'exec {shlex.quote(python)} -s -m measuretwice.live.agent /run/console /run/bashrc "$out"',
        "",
    ]
    return "\n".join(lines)


def page_live_script(lab: Lab, plan: Plan) -> str:
    """Return the bash script that prepares the browser's machine for a live lab in a page.

    The machine's first process then starts an interactive bash on each serial line, in a node's
    namespace; the ~/.bashrc that this leaves makes a node's shell of it.
    """
    root = Path(INSIDE_ROOT)
    lines = [
        "#!/bin/bash",
        f"# {lab.name}, trial {plan.trial}: made by a page's live terminals.",
        *_network_and_commands(lab, plan, root, INSIDE_RUN, INSIDE_SAMPLER, "C"),
        "mkdir -p /run/terminfo/x",
        "base64 -d <<'END' | gunzip >/run/terminfo/x/xterm",
        *_TERMINFO.splitlines(),
        "END",
        "export TERM=xterm TERMINFO=/run/terminfo",
        "export -p >/run/settings",
        *_program("/run/bin/enter", _ENTER),
        *_program("/run/serve-line", _SERVE_LINE),
        *_program("/run/attend", _ATTEND),
        "echo 'exec /run/serve-line' >/tmp/.bashrc",
        "exec {clock}<> <(:)",
        f'read -rt {SETTLE_SECONDS} -u "$clock" || true',
        "/run/attend </dev/null >/run/attend.log 2>&1 &",
        "",
    ]
    return "\n".join(lines)


def _network_and_commands(
    lab: Lab, plan: Plan, root: Path, folder: str, sampler: str, locale: str
) -> list[str]:
    """The lines that all live labs have: topology, sudo's stand-in, what a node's shell reads first."""
    lab_folder = f"{INSIDE_ROOT}/{'/'.join(lab.folder.parts[-2:])}"
    if plan.edited:
        lab_folder = f"{folder}/{edited_folder(lab)}"
    return [
        *preamble(lab, plan, root, f"{folder}/raw", sampler, "", listed_only=True),
        # In real time a packet waits between driver and IP while the one CPU is elsewhere. Real
        # hosts have a CPU each: there it would be no loss, so here it mustn't be one either.
        f"echo {LARGE_BACKLOG_PACKETS} >/proc/sys/net/core/netdev_max_backlog",
        "mkdir -p /run/bin",
        *_program("/run/bin/sudo", _SUDO),
        *_program("/run/bin/node-script", _node_script(lab, plan, lab_folder)),
        f'for script in {lab_folder}/nodes/*.sh; do ln -s node-script "/run/bin/${{script##*/}}"; done',
        "cat >/run/bashrc <<'END'",
        f"PATH=/run/bin:{lab_folder}/nodes:$root/scripts:$PATH",
        f"HISTFILE={folder}/history-$NODE LC_ALL=C",
        *([] if locale == "C" else [_try_locale(locale)]),
        *_BASHRC.splitlines(),
        "END",
    ]


def _try_locale(locale: str) -> str:
    """Return the line that takes a locale where it is there: else each shell begins with a warning."""
    return f"[[ $({{ LC_ALL={locale}; }} 2>&1) ]] || LC_ALL={locale}"


def _program(path: str, text: str) -> list[str]:
    return [f"cat >{path} <<'END'", *text.splitlines(), "END", f"chmod +x {path}"]


def _node_script(lab: Lab, plan: Plan, lab_folder: str) -> str:
    """Return what a node's shell runs under its scripts' names: a phase that stays is ended by Ctrl-C, as a run ends it by SIGTERM.

    Settings that no list has stand here and not in the shell's environment, where one looks; what somebody sets there counts.
    """
    staying = sorted({step.phase for step in lab.file.run.steps if step.stop})
    unlisted = [
        f"[[ -v {name} ]] || {name}={shlex.quote(value)}; export {name}"
        for name, value in environment(plan, as_written=True).items()
        if lab.is_unlisted(name.lower())
    ]
    return f"""\
#!/bin/bash
{packed(unlisted)}
script={lab_folder}/nodes/${{0##*/}}
case ${{1:-}} in
  {"|".join(staying) or "-"}) ;;
  *) exec bash "$script" "$@" ;;
esac
# bash 5.2 loses its place where a function waits and SIGINT comes: the script isn't there when it does.
set -m
bash "$script" "$@" &
trap 'kill -TERM "$!" 2>/dev/null' INT TERM HUP
until wait "$!"; do
  status=$?
  kill -0 "$!" 2>/dev/null || exit "$status"
done
"""


# A node's shell is root's already: what a page says of another machine works here too.
_SUDO = """\
#!/bin/bash
while [[ ${1:-} == -* ]]; do shift; done
exec env "$@"
"""
_BASHRC = """\
unset PYTHONPATH PYTHONDONTWRITEBYTECODE root out
export PATH LC_ALL HOME=$PWD
HISTCONTROL=ignoreboth
PROMPT_COMMAND='history -a'
PS1='\\[\\e[1;36m\\]$NODE\\[\\e[0m\\]:\\w\\$ '
if [[ $- == *i* ]]; then
  shopt -s checkwinsize
  alias ls='ls --color=auto' grep='grep --color=auto' ip='ip -color=auto'
  [[ ! -r /usr/share/bash-completion/bash_completion ]] || . /usr/share/bash-completion/bash_completion
fi
"""
# Of a lab with more nodes than terminals: any of them, from any of these.
_ENTER = f"""\
#!/bin/bash
# enter NODE: a shell on that node, in this terminal, until exit.
[[ -e /run/netns/${{1:-}} && ${{1:-}} ]] || {{
  echo "enter: which node? one of: $(cd /run/netns && echo *)" >&2
  exit 2
}}
. /run/settings
export NODE=$1 root={INSIDE_ROOT} PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd "{INSIDE_RUN}/raw/$1" && exec ip netns exec "$1" bash --rcfile /run/bashrc -i
"""
# Bash edits a line by what terminfo says of the terminal. xterm.js's, as far as a shell asks, in gzip and base64:
# clear, el, el1, ed, cup, home, cuu, cud, cub, cuf, ich, dch, bold, rev, smul, setaf, setab, the cursor's keys.
_TERMINFO = """\
H4sIAAAAAAACA5NilGbgA8JMxhMMFSWpRbk1iQogKjMvMUchM08hUaEgMT2VgYERjMAYSAQwcDBIMPzHAjiAogwMTGA5FgYeBgEw
S4RBlUEdyNIG83SBpCEQmyKZYIlimh2Q5wwW8cBqCwL4QOX9gHQwXrXhYNloIBnPkMKQCVWbS8B8ECgEqqliaAar7GGYCqTn4dW1
HC67kgjTcYHVFOgdnGD9EPTRFoZ9DOwMvAzS0R7S0UZeQNobiEG0aqZqgaFqirVqgZFqigcDF0gJMFtIRzsDsSMQBwCxYS6QMAcR
JiAil6EeSBrXAQknsHrpaBcgNgMJmNYh6QUbHQBjOMEYDjCGC4zhDGM4Al3ACeS4gWwFudEYLAy2GsoCAKwlYqHsAwAA
"""
# A shell that ends would leave its line dead.
_SERVE_LINE = f"""\
#!/bin/bash
line=$(tty)
stty $(<{SIZES}/"${{line##*/}}")
while :; do
  /run/bin/enter "$(ip netns identify $$)"
done
"""
# /dev/host is at its end until the page asks for something: to set a terminal's size, "size LINE ROWS COLUMNS",
# or for all that stands in the run's folder, "files".
_ATTEND = f"""\
#!/bin/bash
exec {{clock}}<> <(:)
while :; do
  read -rt {ASK_SECONDS} -u "$clock"
  read -ra words </dev/host || continue
  set -- "${{words[@]}}"
  while (($#)); do
    case $1 in
      size)
        stty -F "/dev/ttyS$2" rows "$3" cols "$4"
        shift 4
        ;;
      files)
        tar -cf /dev/host -C {INSIDE_RUN} .
        printf files >/dev/hostevent
        shift
        ;;
      *) shift ;;
    esac
  done
done
"""
