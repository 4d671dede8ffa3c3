#!/usr/bin/env bash
# Lab 02, g1: the router before the bottleneck. Its buffer is what this lab is about.
#
#     sudo bash g1.sh prepare       set the link's rate and its buffer
#     bash g1.sh watch              sample the queue until you end it (Ctrl-C)
#     sudo bash g1.sh undo          take rate and buffer away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
RATE_MBIT="${RATE_MBIT:-100}"
BURST_BYTES="${BURST_BYTES:-32768}"
BUFFER_BYTES="${BUFFER_BYTES:-1250000}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
# The buffer as it is typed: a number of bytes, or one with a suffix.
BUFFER_TEXT="${BUFFER_TEXT:-$BUFFER_BYTES}"
QUEUE_BY="${QUEUE_BY:-json}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local to_g2
  to_g2=$(iface_to 10.10.20.11)
  set_offloads "$OFFLOADS" "$to_g2" "$(iface_to 10.10.10.11)" "$(iface_to 10.10.10.12)"
  # --8<-- [start:bottleneck]
  tc qdisc add dev "$to_g2" root tbf rate "${RATE_MBIT}mbit" burst "$BURST_BYTES" limit "$BUFFER_TEXT"
  undo tc qdisc del dev "$to_g2" root
  # --8<-- [end:bottleneck]
}

watch() {
  local to_g2 pids=()
  to_g2=$(iface_to 10.10.20.11)
  sample_queue "$to_g2" "$SAMPLE_INTERVAL_S" "$OUT/queue.txt" &
  pids+=($!)
  if [[ $QUEUE_BY != json ]]; then
    print_queue "$to_g2" >"$OUT/queue-text.txt" &
    pids+=($!)
  fi
  until_told "${pids[@]}"
  queue_lengths
}

# print_queue INTERFACE: what tc says of it, a line a sample, until we are told to end. Before it
# stand two words, '# t=<Unix time in seconds>'.
print_queue() {
  local text
  trap 'exit 0' TERM
  while :; do
    # --8<-- [start:print_queue]
    text=$(tc -s qdisc show dev "$1")
    printf '# t=%s %s\n' "$EPOCHREALTIME" "${text//$'\n'/ }"
    # --8<-- [end:print_queue]
    pause "$SAMPLE_INTERVAL_S"
  done
}

# queue_lengths: from those lines, the time and how many packets wait.
queue_lengths() {
  case "$QUEUE_BY" in
    field-31)
      # --8<-- [start:field_31]
      awk '{ sub(/t=/, "", $2); print $2, $31 + 0 }' "$OUT/queue-text.txt" >"$OUT/queue-length.txt"
      # --8<-- [end:field_31]
      ;;
    word)
      # --8<-- [start:word]
      awk '{ sub(/t=/, "", $2)
             for (n = 3; n < NF - 1; n++) if ($n == "backlog") print $2, $(n + 2) + 0 }' \
        "$OUT/queue-text.txt" >"$OUT/queue-length.txt"
      # --8<-- [end:word]
      ;;
  esac
}

run_phase "${1:-}" prepare watch
