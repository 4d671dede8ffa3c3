#!/usr/bin/env bash
# Lab 03, router: the bottleneck. Here the queue is watched, and all files are worked up at the end.
#
#     sudo bash router.sh prepare     set rate and buffer
#     bash router.sh watch            sample the queue until you end it (Ctrl-C)
#     bash router.sh report           from all senders' files: flows.txt, groups.txt, summary.txt
#     sudo bash router.sh undo        take rate and buffer away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
# shellcheck source=labs/03-scale/nodes/flows.sh
. "$(dirname "${BASH_SOURCE[0]}")/flows.sh"

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
  tc qdisc add dev "$out_interface" parent 1:1 handle 10: bfifo limit "$BUFFER_BYTES"
  # --8<-- [end:bottleneck]
}

watch() {
  local sampler_pid interval_s
  # One tc is cheap, and what it says is short; ten a second are plenty.
  interval_s=$(awk "BEGIN { print $SAMPLE_INTERVAL_S < 0.1 ? 0.1 : $SAMPLE_INTERVAL_S }")
  sample_queue "$(iface_to 10.10.3.2)" "$interval_s" "$OUT/queue.txt" &
  sampler_pid=$!
  # shellcheck disable=SC2064 # the pid is meant as it is now
  trap "kill -TERM $sampler_pid" TERM INT
  announce_ready
  until wait "$sampler_pid"; do
    kill -0 "$sampler_pid" 2>/dev/null || break
  done
}

report() {
  # Files of one kind, from all senders that have any.
  local json=("$FILES"/sender-*/iperf3-*.json) ss=("$FILES"/sender-*/ss.txt)
  local own=("$FILES"/sender-*/counted.txt)
  [[ $HALVINGS_BY != events ]] || own=("$FILES"/sender-*/events.txt)
  streams "${json[@]}" >"$OUT/streams.txt"
  per_flow "${ss[@]}" "${own[@]}" >"$OUT/flows.txt"
  groups >"$OUT/groups.txt"
  summary >"$OUT/summary.txt"
}

# streams FILE...: every data connection, by iperf3: node, port, number of the file, and the rate
# over its own whole life in bit/s.
streams() {
  # --8<-- [start:streams]
  awk '
    FNR == 1 { n = split(FILENAME, part, "/"); node = part[n - 1]; file = part[n]
               gsub(/[^0-9]/, "", file); sub(/^3/, "", file); inside = "" }
    /"connected":/ { inside = "connected" }
    /"receiver":/ { inside = "receiver" }
    /"socket":/ { socket = $2 + 0 }
    inside == "connected" && /"local_port":/ { port[node, file, socket] = $2 + 0 }
    inside == "receiver" && /"bits_per_second":/ {
      printf "%s %d %d %.0f\n", node, port[node, file, socket], file, $2; inside = ""
    }' "$@"
  # --8<-- [end:streams]
}

# per_flow FILE...: of every connection in streams.txt: node, port, number of the file, algorithm,
# bit/s, mean RTT in ms, segments sent, retransmissions, halvings; first a line with the interval
# that all of it is of (Unix times). FILEs are samples of ss, then events, or what was counted.
per_flow() {
  # ss.txt is read twice: for the interval, and for what happened in it.
  local ss=() rest=() file
  for file in "$@"; do
    if [[ $file == */ss.txt ]]; then ss+=("$file"); else rest+=("$file"); fi
  done
  # --8<-- [start:per_flow]
  awk -v warmup="$WARMUP_S" -v average="$AVERAGE" -v by="$HALVINGS_BY" '
    function value(name) {
      if (!match($0, " " name "[0-9./]+")) return 0
      return substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1)
    }
    FNR == 1 { n = split(FILENAME, part, "/"); node = part[n - 1] }
    pass == 0 { flow = $1 " " $2; known[flow] = ++flows; name[flows] = flow; number[flow] = $3; own[flow] = $4; next }
    pass == 2 && !end {
      for (f in first) if (first[f] > start) start = first[f]
      for (f in last) if (!end || last[f] < end) end = last[f]
      start += warmup
      printf "# %.6f %.6f\n", start, end
    }
    /^# t=/ { time = substr($2, 3) + 0; next }
    pass < 3 { split($4, local, ":"); flow = node " " local[2]; if (!(flow in known)) next }
    pass == 1 && / bytes_acked:/ { if (!(flow in first)) first[flow] = time; last[flow] = time }
    pass == 2 && / bytes_acked:/ && time >= start && time <= end {
      algorithm[flow] = $6; samples[flow]++; split(value("rtt:"), rtt, "/"); rtts[flow] += rtt[1]
      split(value("retrans:"), again, "/")
      if (!(flow in from)) { from[flow] = time; acked[flow] = value("bytes_acked:"); sent[flow] = value("data_segs_out:"); lost[flow] = again[2] + 0 }
      to[flow] = time; acked_to[flow] = value("bytes_acked:"); sent_to[flow] = value("data_segs_out:"); lost_to[flow] = again[2] + 0
    }
    # TCP states: 0 and 1 are normal; 2, 3 and 4 begin with a smaller window.
    pass == 3 && by == "events" {
      flow = node " " $2
      if ($1 >= start && $1 <= end && $3 > 1 && state[flow] < 2) halvings[flow]++
      state[flow] = $3
    }
    pass == 3 && by != "events" && $1 >= start && $1 <= end { halvings[node " " $2]++ }
    END {
      for (n = 1; n <= flows; n++) {
        f = name[n]
        if (to[f] <= from[f]) continue
        rate = average == "own" ? own[f] : 8 * (acked_to[f] - acked[f]) / (to[f] - from[f])
        printf "%s %d %s %.0f %.3f %d %d %d\n", f, number[f], algorithm[f], rate,
          rtts[f] / samples[f], sent_to[f] - sent[f], lost_to[f] - lost[f], halvings[f] + 0
      }
    }' pass=0 "$OUT/streams.txt" pass=1 "${ss[@]}" pass=2 "${ss[@]}" pass=3 "${rest[@]}"
  # --8<-- [end:per_flow]
}

# groups: of each algorithm: its name, its flows, and their sum in bit/s.
groups() {
  case $LABEL_BY in
    data)
      # --8<-- [start:label_by_data]
      awk '!/^#/ { flows[$4]++; sum[$4] += $5 }
        END { for (name in sum) printf "%s %d %.0f\n", name, flows[name], sum[name] }' "$OUT/flows.txt" | sort
      # --8<-- [end:label_by_data]
      ;;
    order)
      # --8<-- [start:label_by_order]
      # Each sender has two files: those of CONGESTION_CONTROL, then those of its RIVAL.
      awk -v names="$CONGESTION_CONTROL $RIVAL" 'BEGIN { split(names, name, " ") }
        !/^#/ { flows[$3]++; sum[$3] += $5 }
        END { for (n in sum) printf "%s %d %.0f\n", name[n], flows[n], sum[n] }' "$OUT/flows.txt" | sort
      # --8<-- [end:label_by_order]
      ;;
    *) die "LABEL_BY is data or order, not $LABEL_BY" ;;
  esac
}

# summary: what a report quotes, a name and a number a line.
summary() {
  local start end drops
  read -r _ start end <"$OUT/flows.txt" || die "there is no flow in the senders' files"
  drops=$(drops_between "$start" "$end")
  # --8<-- [start:summary]
  awk -v asked="$FLOWS" -v count_by="$COUNT_BY" -v loss_by="$LOSS_BY" -v drops="$drops" \
    -v rtt_by="$RTT_BY" -v base="$RTT_MS" -v mss=1448 '
    !/^#/ { flow[++found] = $0; sent += $7; lost += $8; halvings += $9; rtts += $6 }
    END {
      n = count_by == "asked" ? asked : found
      losses = loss_by == "drops" ? drops : lost
      for (f = 1; f <= found; f++) {
        split(flow[f], v, " ")
        sum += v[5]; squares += v[5] * v[5]
        rtt_s = (rtt_by == "base" ? base : v[6]) / 1000
        p = loss_by == "drops" ? drops / sent : v[8] / v[7]
        if (p > 0) { x = 8 * mss / rtt_s / sqrt(p); xy += x * v[5]; xx += x * x }
        if (v[9] > 0) { x = 8 * mss / rtt_s / sqrt(v[9] / v[7]); hxy += x * v[5]; hxx += x * x }
      }
      printf "flows %d\nsum_bps %.0f\nsum_of_squares %.6e\n", n, sum, squares
      printf "jain %.6f\n", sum * sum / (n * squares)
      printf "rtt_ms %.3f\n", rtt_by == "base" ? base : rtts / found
      printf "losses %d\nhalvings %d\n", losses, halvings
      if (halvings) printf "losses_per_halving %.3f\n", losses / halvings
      if (xx) printf "c_by_losses %.3f\n", xy / xx
      if (hxx) printf "c_by_halvings %.3f\n", hxy / hxx
    }' "$OUT/flows.txt"
  # --8<-- [end:summary]
}

# drops_between START END: packets that the queue dropped between two Unix times.
drops_between() {
  awk -v start="$1" -v end="$2" '
    /^# t=/ { time = substr($2, 3) + 0; next }
    { sub(/.*"drops":/, ""); drops = $0 + 0; if (time < start) first = drops; if (time <= end) last = drops }
    END { print last - first }' "$OUT/queue.txt"
}

undo() {
  # --8<-- [start:undo]
  tc qdisc del dev "$(iface_to 10.10.3.2)" root
  # --8<-- [end:undo]
}

case "${1:-}" in
  prepare | watch | report | undo) "$1" ;;
  *) die "say what to do: prepare, watch, report or undo" ;;
esac
