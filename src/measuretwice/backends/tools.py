"""The tools that node scripts call: their versions are part of each plan."""

from __future__ import annotations

import os
import shutil
import subprocess

from measuretwice.base.errors import UserError

TOOLS = {
    "iperf3": ["iperf3", "--version"],
    "iproute2": ["ip", "-V"],
    "ethtool": ["ethtool", "--version"],
    "tcpdump": ["tcpdump", "--version"],
    "ping": ["ping", "-V"],
    "bash": ["bash", "--version"],
}


def tool_versions() -> dict[str, str]:
    """Return each tool's own word for its version; UserError names a tool that is missing."""
    versions = {}
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    for name, command in TOOLS.items():
        program = shutil.which(command[0], path=path)
        if program is None:
            raise UserError(f"{command[0]} is missing: run ./lab doctor to see what to install")
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
        versions[name] = ((done.stdout or done.stderr).strip().splitlines() or ["unknown"])[0]
    return versions
