#!/usr/bin/env bash
# Lab 03, what each of the ten senders does. Which one it is, it knows by its address.
#
#     sudo bash sender.sh prepare     set the host up
#     bash sender.sh validate         ping the receiver before you measure
#     sudo bash sender.sh measure     its share of the flows, their state sampled meanwhile
#     sudo bash sender.sh undo        set all of it back
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"
# shellcheck source=labs/03-scale/nodes/flows.sh
. "$here/flows.sh"

# --8<-- [start:settings]
DURATION_S="${DURATION_S:-180}"
START_SPREAD_MS="${START_SPREAD_MS:-5000}"
WMEM_MAX_BYTES="${WMEM_MAX_BYTES:-33554432}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
PING_COUNT="${PING_COUNT:-3}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-1}"
HALVINGS_BY="${HALVINGS_BY:-events}"
FAILURES="${FAILURES:-stop}"
TRACE_BYTES="${TRACE_BYTES:-8388608}"
OUT="${OUT:-.}"
TRACING=/sys/kernel/tracing
SELF=$(number)
PEER=10.10.2.$((SELF + 10))

prepare() {
  local out_interface
  out_interface=$(iface_to "$PEER")
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  undo_sysctl net.ipv4.tcp_{no_metrics_save,wmem}
  sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 $WMEM_MAX_BYTES"
  # --8<-- [end:prepare]
}

validate() {
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i 0.2 "$PEER" >"$OUT/ping.txt"
  # --8<-- [end:validate]
}

# begin_events: from now on the kernel notes each change of a connection's congestion state.
begin_events() {
  # --8<-- [start:events]
  [[ -d $TRACING/instances ]] || mount -t tracefs none "$TRACING"
  mkdir "$TRACING/instances/sender-$SELF"
  cd "$TRACING/instances/sender-$SELF"
  echo mono >trace_clock
  echo $((TRACE_BYTES / 1024)) >buffer_size_kb
  echo 1 >events/tcp/tcp_cong_state_set/enable
  # What time that clock has now by the other.
  echo "now=$EPOCHREALTIME" >trace_marker
  # --8<-- [end:events]
  cd - >/dev/null
}

# end_events FILE: of this host's connections: Unix time, port, and the state that begins then.
end_events() {
  local instance="$TRACING/instances/sender-$SELF"
  echo 0 >"$instance/events/tcp/tcp_cong_state_set/enable"
  # --8<-- [start:states]
  awk -v own="saddr=10.10.1.$((SELF + 10))" '
    match($0, / [0-9]+\.[0-9]+: /) { time = substr($0, RSTART + 1, RLENGTH - 3) }
    / now=/ { sub(/.* now=/, ""); offset = $1 - time }
    / tcp_cong_state_set: / && index($0, own " ") {
      match($0, / sport=[0-9]+/); port = substr($0, RSTART + 7, RLENGTH - 7)
      match($0, / cong_state=[0-9]/); state = substr($0, RSTART + 12, 1)
      printf "%.6f %s %s\n", time + offset, port, state
    }' "$instance/trace" >"$1"
  # --8<-- [end:states]
  rmdir "$instance"
}

measure() {
  local port algorithm streams pids=() pid failed=''
  announce_ready
  if (($(share "$FLOWS" "$SELF") == 0)); then
    return
  fi
  begin_events
  begin_samples "$PEER" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  while read -r port algorithm streams; do
    run_flows "$port" "$algorithm" "$streams" "$OUT/iperf3-$((${#pids[@]} + 1)).json" &
    pids+=($!)
  done < <(processes "$SELF")
  for pid in "${pids[@]}"; do
    wait "$pid" || failed=yes
  done
  end_samples
  end_events "$OUT/events.txt"
  [[ -z $failed || $FAILURES == ignore ]] || iperf3_failed "$OUT"/iperf3-*.json
  count_halvings
}

# run_flows PORT ALGORITHM STREAMS FILE: one iperf3 process, after a random wait.
run_flows() {
  random_pause "$START_SPREAD_MS"
  # --8<-- [start:measure]
  iperf3 -c "$PEER" -p "$1" -C "$2" -P "$3" -t "$DURATION_S" -i 0 -J >"$4"
  # --8<-- [end:measure]
}

# count_halvings: from windows sampled every few milliseconds, as one would who has no events. A
# halving is a fall that comes after a rise. What is a window that stays as it was?
count_halvings() {
  local flat_is_rise=''
  case $HALVINGS_BY in
    events) return ;;
    samples) ;;
    samples-flat-is-rise) flat_is_rise=yes ;;
    *) die "HALVINGS_BY is events, samples or samples-flat-is-rise, not $HALVINGS_BY" ;;
  esac
  # --8<-- [start:counter]
  awk -v flat_is_rise="$flat_is_rise" '
    /^# t=/ { time = substr($2, 3) }
    / cwnd:/ {
      split($4, local, ":"); port = local[2]
      match($0, / cwnd:[0-9]+/); cwnd = substr($0, RSTART + 6, RLENGTH - 6) + 0
      if (port in last) {
        if (cwnd > last[port] || (flat_is_rise && cwnd == last[port])) rising[port] = 1
        if (cwnd < last[port] && rising[port]) { print time, port; rising[port] = 0 }
      }
      last[port] = cwnd
    }' "$OUT/ss.txt" >"$OUT/counted.txt"
  # --8<-- [end:counter]
  # Samples so close together are large. One flow's windows stay, and of all flows a sample a second.
  awk '/^# t=/ { time = substr($2, 3) + 0 }
    / cwnd:/ {
      split($4, local, ":")
      match($0, / bytes_acked:[0-9]+/)
      if (!port && substr($0, RSTART + 13, RLENGTH - 13) + 0 > 1000000) port = local[2]
      if (local[2] == port) { match($0, / cwnd:[0-9]+/); if (!start) start = time; printf "%.3f %s\n", time - start, substr($0, RSTART + 6, RLENGTH - 6) }
    }' "$OUT/ss.txt" >"$OUT/cwnd.txt"
  awk '/^# t=/ { time = substr($2, 3) + 0; keep = time >= next_s; if (keep) next_s = time + 0.995 } keep' \
    "$OUT/ss.txt" >"$OUT/ss.part"
  mv "$OUT/ss.part" "$OUT/ss.txt"
}

run_phase "${1:-}" prepare validate measure
