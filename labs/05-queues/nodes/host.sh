#!/usr/bin/env bash
# Lab 05, what every host does: host-1.sh to host-4.sh set SELF, then read this file. Who sends
# and who receives follows from RECEIVER: both hosts of the other side send to it at once.
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"
# shellcheck source=labs/05-queues/nodes/names.sh
. "$here/names.sh"

# --8<-- [start:settings]
RECEIVER="${RECEIVER:-host-3}"
DESTINATION="${DESTINATION:-$RECEIVER}"
PARALLEL_FLOWS="${PARALLEL_FLOWS:-2}"
CONGESTION_CONTROL="${CONGESTION_CONTROL:-cubic}"
DURATION_S="${DURATION_S:-10}"
RTT_MS="${RTT_MS:-2}"
ECN="${ECN:-off}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
START_SPREAD_MS="${START_SPREAD_MS:-100}"
PING_COUNT="${PING_COUNT:-5}"
PING_INTERVAL_S="${PING_INTERVAL_S:-0.05}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
AVERAGE="${AVERAGE:-seconds}"
OUT="${OUT:-.}"

# Both senders measure at once, so each has a server of its own: 5201 for host-1 and host-3,
# 5202 for host-2 and host-4.
port_of() {
  case $1 in
    host-1 | host-3) echo 5201 ;;
    *) echo 5202 ;;
  esac
}

# sends: does this host send? The first of a side does, the second only with two flows.
sends() {
  ! same_side "$SELF" "$RECEIVER" && { ((PARALLEL_FLOWS > 1)) || [[ $(port_of "$SELF") == 5201 ]]; }
}

prepare() {
  local out_interface half_rtt_ms ecn=0
  out_interface=$(iface_to "$(same_side "$SELF" host-1 && echo 10.1.3.1 || echo 10.1.1.1)")
  half_rtt_ms=$(awk "BEGIN { printf \"%.6f\", $RTT_MS / 2 }")
  [[ $ECN == off ]] || ecn=1
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  undo_sysctl net.ipv4.tcp_{ecn,no_metrics_save}
  sysctl -qw net.ipv4.tcp_ecn="$ecn" net.ipv4.tcp_no_metrics_save=1
  tc qdisc add dev "$out_interface" root netem delay "${half_rtt_ms}ms" limit 100000
  undo tc qdisc del dev "$out_interface" root
  # --8<-- [end:prepare]
}

validate() {
  local to
  sends || return 0
  to=$(address_of "$DESTINATION")
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i 0.2 "$to" >"$OUT/ping.txt"
  # --8<-- [end:validate]
}

serve() {
  local port
  if [[ $SELF != "$DESTINATION" ]]; then
    announce_ready
    return
  fi
  for port in 5201 5202; do
    [[ $port == 5201 ]] || ((PARALLEL_FLOWS > 1)) || continue
    # --8<-- [start:serve]
    iperf3 -s -1 -p "$port" -J >"$OUT/iperf3-server-$port.json" &
    # --8<-- [end:serve]
    server_on "$port"
  done
  serve_to_the_end
}

measure() {
  local to port ping_pid
  announce_ready
  sends || return 0
  to=$(address_of "$DESTINATION") port=$(port_of "$SELF")
  random_pause "$START_SPREAD_MS"
  begin_samples "$to" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  # --8<-- [start:measure]
  ping -n -i "$PING_INTERVAL_S" -w "${DURATION_S%.*}" "$to" >"$OUT/ping-busy.txt" &
  ping_pid=$!
  iperf3 -c "$to" -p "$port" -t "$DURATION_S" -C "$CONGESTION_CONTROL" -i 1 -J \
    >"$OUT/iperf3.json" || iperf3_failed "$OUT/iperf3.json"
  # --8<-- [end:measure]
  # A lost ping is no failure: a full queue loses pings too.
  wait "$ping_pid" || true
  end_samples
  average
}

# The rates that iperf3 printed, one a line: start, end, bit/s. Their mean is what a report quotes.
average() {
  case $AVERAGE in
    seconds)
      # --8<-- [start:seconds]
      rows "$OUT/iperf3.json" | awk '$2 - $1 < 1.5' >"$OUT/rates.txt"
      # --8<-- [end:seconds]
      ;;
    every-row)
      # --8<-- [start:every_row]
      rows "$OUT/iperf3.json" >"$OUT/rates.txt"
      # --8<-- [end:every_row]
      ;;
    *) die "AVERAGE is seconds or every-row, not $AVERAGE" ;;
  esac
  awk '{ n++; sum += $3; squares += $3 * $3 }
    END { printf "rows %d mean %.0f sd %.0f bit/s\n", n, sum / n, sqrt((squares - sum * sum / n) / (n - 1)) }' \
    "$OUT/rates.txt" >"$OUT/average.txt"
}

# rows FILE: each sum in iperf3's JSON, one a second and at the end one of the whole test.
rows() {
  awk -F '[:,]' '
    /"sum":|"sum_sent":/ { inside = 1 }
    inside && /"start":/ { start = $2 }
    inside && /"end":/ { end = $2 }
    inside && /"bits_per_second":/ { printf "%.6f %.6f %.0f\n", start, end, $2; inside = 0 }' "$1"
}

run_phase "${1:-}" prepare validate serve measure
