#!/usr/bin/env bash
# Lab 03, router: the bottleneck. Here the queue is watched, and all files are worked up at the end.
#
#     sudo bash router.sh prepare     set rate and buffer
#     bash router.sh watch            sample the queue until you end it (Ctrl-C)
#     bash router.sh report           from all senders' files: flows.txt, groups.txt, summary.txt
#     sudo bash router.sh undo        take rate and buffer away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"
# shellcheck source=labs/03-scale/nodes/flows.sh
. "$here/flows.sh"

# --8<-- [start:settings]
RATE_MBIT="${RATE_MBIT:-100}"
BUFFER_BYTES="${BUFFER_BYTES:-3000000}"
BURST_BYTES="${BURST_BYTES:-70000}"
RTT_MS="${RTT_MS:-20}"
WARMUP_S="${WARMUP_S:-20}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
AVERAGE="${AVERAGE:-common}"
HALVINGS_BY="${HALVINGS_BY:-events}"
LOSS_BY="${LOSS_BY:-drops}"
RTT_BY="${RTT_BY:-measured}"
LABEL_BY="${LABEL_BY:-data}"
COUNT_BY="${COUNT_BY:-found}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-1}"
OUT="${OUT:-.}"
# Where the senders' folders stand; on a testbed, where you copied them to.
FILES="${FILES:-$OUT/..}"

prepare() {
  local out_interface host
  out_interface=$(iface_to 10.10.3.2)
  for host in {10..19}; do
    set_offloads "$OFFLOADS" "$(iface_to "10.10.1.$host")"
  done
  set_offloads "$OFFLOADS" "$out_interface"
  # --8<-- [start:bottleneck]
  # The rate, and below it the buffer: first in, first out, counted in bytes.
  tc qdisc add dev "$out_interface" root handle 1: tbf rate "${RATE_MBIT}mbit" burst "$BURST_BYTES" limit 1000000000
  undo tc qdisc del dev "$out_interface" root
  tc qdisc add dev "$out_interface" parent 1:1 handle 10: bfifo limit "$BUFFER_BYTES"
  # --8<-- [end:bottleneck]
}

watch() {
  local interval_s
  # One tc is cheap, and what it says is short; ten a second are plenty.
  interval_s=$(awk "BEGIN { print $SAMPLE_INTERVAL_S < 0.1 ? 0.1 : $SAMPLE_INTERVAL_S }")
  sample_queue "$(iface_to 10.10.3.2)" "$interval_s" "$OUT/queue.txt" &
  until_told $!
}

# All senders' files, worked up; what AVERAGE and the others say is done beside it, in Python.
report() {
  python3 -SIB "$here/flows_report.py" "$FILES" "$OUT" \
    --flows "$FLOWS" --rtt-ms "$RTT_MS" --warmup-s "$WARMUP_S" --algorithms "$CONGESTION_CONTROL" "$RIVAL" \
    --average "$AVERAGE" --halvings-by "$HALVINGS_BY" --loss-by "$LOSS_BY" --rtt-by "$RTT_BY" \
    --count-by "$COUNT_BY" --label-by "$LABEL_BY"
}

run_phase "${1:-}" prepare watch report
