#!/usr/bin/env bash
# Lab 02, s2: the sender with the short path, to d2.
#
#     sudo bash s2.sh prepare      set the host up, and its delay
#     bash s2.sh validate          ping before you measure
#     bash s2.sh measure           one TCP flow to d2, its state sampled meanwhile
#     sudo bash s2.sh undo         set all of it back
set -euo pipefail
SECOND_DELAY_MS="${SECOND_DELAY_MS:-20}"
DELAY_MS=$SECOND_DELAY_MS
PEER=10.10.20.12
# shellcheck source=labs/02-buffers/nodes/sender.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./sender.sh"
