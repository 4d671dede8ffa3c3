#!/usr/bin/env bash
# Lab 05, router-2: the queue before the link to the other router. router.sh says what it does.
#
#     sudo bash router-2.sh prepare   set the link's rate and its queue's discipline
#     bash router-2.sh watch          sample the queue until you end it (Ctrl-C)
#     sudo bash router-2.sh undo      take both away again
set -euo pipefail
SELF=router-2
# shellcheck source=labs/05-queues/nodes/router.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./router.sh"
