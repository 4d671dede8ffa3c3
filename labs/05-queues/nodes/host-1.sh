#!/usr/bin/env bash
# Lab 05, host-1: a sender in some trials and the receiver in others. host.sh says what it does.
#
#     sudo bash host-1.sh prepare     set the host up, and its share of the delay
#     bash host-1.sh validate         ping the receiver before you measure
#     bash host-1.sh serve            if it is the receiver: answer both senders, then end
#     bash host-1.sh measure          if it is a sender: one TCP flow, and pings beside it
#     sudo bash host-1.sh undo        set all of it back
set -euo pipefail
SELF=host-1
# shellcheck source=labs/05-queues/nodes/host.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./host.sh"
