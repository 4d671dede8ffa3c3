#!/usr/bin/env bash
# Lab 04, rival: a second host behind the same gateway. It is idle, or has one flow of its own,
# or as many as nobody told us.
#
#     sudo bash rival.sh prepare
#     bash rival.sh measure
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

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
  sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 $BUFFER_MAX_BYTES"
}

validate() {
  [[ $RIVAL == none ]] || ping -n -c "$PING_COUNT" -i 0.2 "$SERVER" >"$OUT/ping.txt"
}

measure() {
  local sampler_pid wait_ms=0 others
  announce_ready
  if [[ $BACKGROUND == unknown ]]; then
    # --8<-- [start:background]
    # As busy as the path to a public server happens to be: nought to four flows.
    others=$(($(od -An -N4 -tu4 /dev/urandom) % 5))
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
  if ((START_SPREAD_MS > 0)); then
    wait_ms=$(($(od -An -N4 -tu4 /dev/urandom) % (START_SPREAD_MS + 1)))
    pause "$(printf '%d.%03d' $((wait_ms / 1000)) $((wait_ms % 1000)))"
  fi
  sample_ss "$SERVER" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt" &
  sampler_pid=$!
  # --8<-- [start:measure]
  iperf3 -c "$SERVER" -p 5202 -t "$DURATION_S" -C "$RIVAL" -i "$REPORT_INTERVAL_S" -J \
    >"$OUT/iperf3.json" || die "iperf3 failed: $(grep -s '"error"' "$OUT/iperf3.json" || echo "no answer")"
  # --8<-- [end:measure]
  kill -TERM "$sampler_pid"
  wait "$sampler_pid"
}

case "${1:-}" in
  prepare | validate | measure) "$1" ;;
  *) die "say what to do: prepare, validate or measure" ;;
esac
