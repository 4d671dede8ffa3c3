#!/usr/bin/env bash
# Lab 02, g1: the router before the bottleneck. Its buffer is what this lab is about.
#
#     sudo bash g1.sh prepare       set the link's rate and its buffer
#     bash g1.sh watch              sample the queue until you end it (Ctrl-C)
#     sudo bash g1.sh undo          take rate and buffer away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

# --8<-- [start:settings]
RATE_MBIT="${RATE_MBIT:-100}"
BURST_BYTES="${BURST_BYTES:-32768}"
BUFFER_BYTES="${BUFFER_BYTES:-1310720}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local to_g2
  to_g2=$(iface_to 10.10.20.11)
  set_offloads "$OFFLOADS" "$to_g2" "$(iface_to 10.10.10.11)" "$(iface_to 10.10.10.12)"
  # --8<-- [start:bottleneck]
  tc qdisc add dev "$to_g2" root tbf rate "${RATE_MBIT}mbit" burst "$BURST_BYTES" limit "$BUFFER_BYTES"
  # --8<-- [end:bottleneck]
}

watch() {
  local sampler_pid
  sample_queue "$(iface_to 10.10.20.11)" "$SAMPLE_INTERVAL_S" "$OUT/queue.txt" &
  sampler_pid=$!
  # shellcheck disable=SC2064 # the pid is meant as it is now
  trap "kill -TERM $sampler_pid" TERM INT
  announce_ready
  until wait "$sampler_pid"; do
    kill -0 "$sampler_pid" 2>/dev/null || break
  done
}

undo() {
  # --8<-- [start:undo]
  tc qdisc del dev "$(iface_to 10.10.20.11)" root
  # --8<-- [end:undo]
}

case "${1:-}" in
  prepare | watch | undo) "$1" ;;
  *) die "say what to do: prepare, watch or undo" ;;
esac
