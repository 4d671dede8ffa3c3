#!/usr/bin/env bash
# Lab 04, rival: a second host behind the same gateway. It is idle, or has one flow of its own,
# or as many as nobody told us.
#
#     sudo bash rival.sh prepare
#     bash rival.sh measure
#     sudo bash rival.sh undo      set all of it back
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
SERVER=10.4.3.2
RIVAL="${RIVAL:-none}"
BACKGROUND="${BACKGROUND:-none}"
DURATION_S="${DURATION_S:-60}"
START_SPREAD_MS="${START_SPREAD_MS:-1000}"
OFFLOADS="${OFFLOADS:-off}"
BUFFER_MAX_BYTES="${BUFFER_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
REPORT_INTERVAL_S="${REPORT_INTERVAL_S:-0.1}"
PING_COUNT="${PING_COUNT:-20}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  set_offloads "$OFFLOADS" "$(iface_to "$SERVER")"
  undo_sysctl net.ipv4.tcp_{no_metrics_save,wmem}
  sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 $BUFFER_MAX_BYTES"
}

validate() {
  [[ $RIVAL == none ]] || ping -n -c "$PING_COUNT" -i 0.2 "$SERVER" >"$OUT/ping.txt"
}

measure() {
  local others
  announce_ready
  if [[ $BACKGROUND == unknown ]]; then
    # --8<-- [start:background]
    # As busy as the path to a public server happens to be: nought to four flows.
    random_below 5
    others=$random
    ((others == 0)) ||
      iperf3 -c "$SERVER" -p 5203 -t "$DURATION_S" -C cubic -P "$others" -J >"$OUT/others.json"
    # --8<-- [end:background]
  fi
  if [[ $BACKGROUND == early ]]; then
    # --8<-- [start:early]
    # Somebody opens a page while we begin.
    iperf3 -c "$SERVER" -p 5203 -t 2 -C cubic -J >"$OUT/others.json"
    # --8<-- [end:early]
  fi
  [[ $RIVAL != none ]] || return 0
  random_pause "$START_SPREAD_MS"
  begin_samples "$SERVER" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  # --8<-- [start:measure]
  iperf3 -c "$SERVER" -p 5202 -t "$DURATION_S" -C "$RIVAL" -i "$REPORT_INTERVAL_S" -J \
    >"$OUT/iperf3.json" || iperf3_failed "$OUT/iperf3.json"
  # --8<-- [end:measure]
  end_samples
}

run_phase "${1:-}" prepare validate measure
