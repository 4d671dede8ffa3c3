#!/usr/bin/env bash
# Lab 02, what both senders do: s1.sh and s2.sh set DELAY_MS and PEER, then read this file.
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
CONGESTION_CONTROL="${CONGESTION_CONTROL:-highspeed}"
DURATION_S="${DURATION_S:-120}"
HOST_LIMIT_PACKETS="${HOST_LIMIT_PACKETS:-100000}"
START_SPREAD_MS="${START_SPREAD_MS:-1000}"
OFFLOADS="${OFFLOADS:-off}"
WMEM_MAX_BYTES="${WMEM_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
PING_COUNT="${PING_COUNT:-5}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
CWND_TRACE="${CWND_TRACE:-ss}"
OUT="${OUT:-.}"

prepare() {
  local out_interface
  out_interface=$(iface_to "$PEER")
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  undo_sysctl net.ipv4.tcp_{no_metrics_save,wmem}
  sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 $WMEM_MAX_BYTES"
  tc qdisc add dev "$out_interface" root netem delay "${DELAY_MS}ms" limit "$HOST_LIMIT_PACKETS"
  undo tc qdisc del dev "$out_interface" root
  # --8<-- [end:prepare]
}

validate() {
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i 0.2 "$PEER" >"$OUT/ping.txt"
  # --8<-- [end:validate]
}

measure() {
  # A lone sender has nobody to wait for: nothing else in this lab needs its ready file.
  announce_ready
  random_pause "$START_SPREAD_MS"
  begin_samples "$PEER" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  if [[ $CWND_TRACE == ss ]]; then
    # --8<-- [start:measure]
    iperf3 -c "$PEER" -t "$DURATION_S" -C "$CONGESTION_CONTROL" -i "$SAMPLE_INTERVAL_S" -J \
      >"$OUT/iperf3.json" || iperf3_failed "$OUT/iperf3.json"
    # --8<-- [end:measure]
  else
    # --8<-- [start:as_text]
    iperf3 -c "$PEER" -t "$DURATION_S" -C "$CONGESTION_CONTROL" -i "$SAMPLE_INTERVAL_S" -f k \
      >"$OUT/iperf3.txt" || die "iperf3 failed: $(tail -n 1 "$OUT/iperf3.txt")"
    # --8<-- [end:as_text]
    windows
  fi
  end_samples
}

# windows: from iperf3's text, the time in seconds and the window in KBytes.
windows() {
  case "$CWND_TRACE" in
    as-printed)
      # --8<-- [start:as_printed]
      awk '$11 == "KBytes" { sub(/-.*/, "", $3); print $3, $10 }' "$OUT/iperf3.txt" >"$OUT/cwnd.txt"
      awk '$11 == "MBytes" { sub(/-.*/, "", $3); print $3, $10 * 1000 }' "$OUT/iperf3.txt" >>"$OUT/cwnd.txt"
      # --8<-- [end:as_printed]
      ;;
    one-unit)
      # --8<-- [start:one_unit]
      awk 'BEGIN { kbytes["KBytes"] = 1; kbytes["MBytes"] = 1024 }
           $11 in kbytes { sub(/.*-/, "", $3); print $3, $10 * kbytes[$11] }' \
        "$OUT/iperf3.txt" >"$OUT/cwnd.txt"
      # --8<-- [end:one_unit]
      ;;
  esac
}

run_phase "${1:-}" prepare validate measure
