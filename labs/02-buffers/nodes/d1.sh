#!/usr/bin/env bash
# Lab 02, d1: it receives what s1 sends.
#
#     sudo bash d1.sh prepare      set the host up, and its delay
#     bash d1.sh serve             answer one iperf3 test, then end
#     sudo bash d1.sh undo         set all of it back
set -euo pipefail
FIRST_DELAY_MS="${FIRST_DELAY_MS:-45}"
DELAY_MS=$FIRST_DELAY_MS
PEER=10.10.10.11
# shellcheck source=labs/02-buffers/nodes/receiver.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./receiver.sh"
