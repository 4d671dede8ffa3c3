#!/usr/bin/env bash
# What the labs' node scripts share. Source it; it does nothing by itself, but for a name:

# $here, the folder of the script that sources this. Here and in the line that does, no dirname: each
# program started costs more than all the rest of such a line, and a run of lab 03 has over a hundred.
here=${BASH_SOURCE[1]-}
here=${here%"${here##*/}"}.

# die MESSAGE: say what is wrong and how to mend it, and stop.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# run_phase WORD PHASE...: do the phase that WORD names: one of these functions, or undo. The last
# line of a node script.
run_phase() {
  local word=$1 phase names
  shift
  for phase in "$@"; do
    if [[ $phase == "$word" ]]; then
      "$phase"
      return
    fi
  done
  printf -v names '%s, ' "$@"
  [[ $word == undo ]] || die "say what to do: ${names%, } or undo"
  undo_all
}

# iface_to ADDRESS: the name of the interface that leads to ADDRESS. Names differ from machine
# to machine (ens7, eth1, enp0s8); addresses are the lab's own.
iface_to() {
  local route
  route=$(ip -o route get "$1") || die "no route to $1: is this the right node, and are its addresses set?"
  [[ $route =~ dev\ ([^ ]+) ]] || die "no interface in: $route"
  printf '%s\n' "${BASH_REMATCH[1]}"
}

# announce_ready: tell whoever started this script in the background that it is ready.
# Without READY_FILE (a person at a terminal) it says so.
announce_ready() {
  if [[ -n ${READY_FILE:-} ]]; then
    : >"$READY_FILE"
  else
    echo "ready"
  fi
}

# --- undoing ----------------------------------------------------------------------------------
#
# Beside each line that sets something up stands one that says how to take it away again. What a
# person set up, the phase undo undoes: the last first. ./lab runs these scripts where it puts
# everything back by itself, whatever ends them; there nothing is noted, and no program started.

# by_hand: does a person run this script? (./lab waits for a READY_FILE in every phase.)
by_hand() {
  [[ -z ${READY_FILE:-} ]]
}

# undo_file: where the commands stand that undo what was set up here, or UNDO_FILE. It's a file for
# each network namespace, since that is what was changed; and in /run, which is gone after a
# restart, as the settings are. So undo needs no setting of those that prepare had.
undo_file() {
  printf '%s\n' "${UNDO_FILE:-/run/measuretwice-undo-$(stat -Lc %i /proc/self/ns/net)}"
}

# undo COMMAND...: this takes away what was just set up.
undo() {
  local line file
  by_hand || return 0
  file=$(undo_file)
  printf -v line '%q ' "$@"
  printf '%s\n' "${line% }" >>"$file" || die "can't note in $file how to undo this: are you root?"
}

# undo_mtu INTERFACE: it gets the MTU again that it has now.
undo_mtu() {
  by_hand || return 0
  undo ip link set dev "$1" mtu "$(<"/sys/class/net/$1/mtu")"
}

# undo_sysctl KEY...: these get the values again that they have now. What a network namespace
# doesn't see belongs to the whole machine.
undo_sysctl() {
  local key value where
  by_hand || return 0
  for key in "$@"; do
    where=()
    [[ -e /proc/sys/${key//.//} ]] || where=(nsenter --net=/proc/1/ns/net)
    value=$("${where[@]}" sysctl -n "$key") || die "no such setting here: $key"
    undo "${where[@]}" sysctl -qw "$key=$value"
  done
}

# undo_offloads INTERFACE: it gets the offloads again that it has now. tso is several.
undo_offloads() {
  local name state fixed features=()
  by_hand || return 0
  while read -r name state fixed; do
    [[ -z $fixed ]] || continue
    case $name in
      tx-tcp*-segmentation:) features+=("${name%:}" "$state") ;;
      generic-segmentation-offload:) features+=(gso "$state") ;;
      generic-receive-offload:) features+=(gro "$state") ;;
      large-receive-offload:) features+=(lro "$state") ;;
    esac
  done < <(ethtool -k "$1")
  ((${#features[@]} == 0)) || undo ethtool -K "$1" "${features[@]}"
}

# undo_route PREFIX: the way there becomes again what it is now, if there is one.
undo_route() {
  local route
  by_hand || return 0
  read -ra route < <(ip -4 route show exact "$1") || route=()
  if ((${#route[@]} > 0)); then
    undo ip route replace "${route[@]}"
  else
    undo ip route del "$1"
  fi
}

# undo_all: the phase undo.
undo_all() {
  local file lines=() left=()
  local -i n
  file=$(undo_file)
  [[ ! -e $file ]] || mapfile -t lines <"$file"
  if ((${#lines[@]} == 0)); then
    echo "nothing to undo: nothing was set up here by hand since the last undo, or the last restart"
    return
  fi
  [[ -w $file ]] || die "$file is not yours to undo: are you root?"
  for ((n = ${#lines[@]} - 1; n >= 0; n--)); do
    bash -c "${lines[n]}" || left+=("${lines[n]}")
  done
  rm -f "$file"
  ((${#left[@]} == 0)) || die "could not be undone, the reasons stand above: $(printf '%s; ' "${left[@]}")"
  echo "undone"
}

# --- waiting ----------------------------------------------------------------------------------

# pause SECONDS: sleep without starting a program.
pause() {
  # A read with a time limit, from a pipe that nobody writes to.
  [[ -n ${PAUSE_FD:-} ]] || exec {PAUSE_FD}<> <(:)
  read -rt "$1" -u "$PAUSE_FD" || true
}

# random_below NUMBER: draw one of 0 to NUMBER - 1, into $random.
random_below() {
  # Before bash 5.1 it takes a program to ask the kernel.
  random=$((${SRANDOM:-$(od -An -N4 -tu4 /dev/urandom)} % $1))
}

# random_pause MS: a random time of up to so many milliseconds, so that not all begin at once.
random_pause() {
  local seconds
  (($1 > 0)) || return 0
  random_below $(($1 + 1))
  printf -v seconds '%d.%03d' $((random / 1000)) $((random % 1000))
  pause "$seconds"
}

# wait_until SECONDS COMMAND...: wait for a condition, at most SECONDS.
wait_until() {
  local -i tries=$(($1 * 100))
  shift
  until "$@"; do
    ((tries-- > 0)) || return 1
    pause 0.01
  done
}

# says FILE WORDS: do these words stand in one line of FILE?
says() {
  local line
  [[ -r $1 ]] || return 1
  while read -r line; do
    [[ $line != *"$2"* ]] || return 0
  done <"$1"
  return 1
}

# wait_for PID: until it has ended, though signals come, whose traps end a wait.
wait_for() {
  until wait "$1"; do
    kill -0 "$1" 2>/dev/null || break
  done
}

# heeds_end PID: does this process catch SIGTERM (number 15, so bit 14), or has it ended?
heeds_end() {
  local name value
  [[ -r /proc/$1/status ]] || return 0
  while read -r name value; do
    [[ $name != SigCgt: ]] || return $((! (0x$value & 1 << 14)))
  done <"/proc/$1/status" 2>/dev/null
}

# until_told PID...: what was started in the background to watch goes on until we are told to end
# (SIGTERM, Ctrl-C); then it is told, and waited for.
until_told() {
  local pid
  # shellcheck disable=SC2064 # the pids are meant as they are now
  trap "kill -TERM $* 2>/dev/null" TERM INT
  # Who is told before it listens ends without a word, and what it watched is lost. A person may
  # be that fast; ./lab runs go on for longer.
  if by_hand; then
    for pid in "$@"; do
      wait_until 5 heeds_end "$pid" || true
    done
  fi
  announce_ready
  for pid in "$@"; do
    wait_for "$pid"
  done
}

# captures_until_told LOG...: wait until the tcpdumps that were started in the background listen
# (those whose LOG exists), then until they have their packets or we are told to end (SIGTERM).
captures_until_told() {
  local log
  # shellcheck disable=SC2046 # numbers, each a word of its own
  trap 'kill -TERM $(jobs -p) 2>/dev/null; wait || true; exit 0' TERM
  for log in "$@"; do
    [[ -e $log ]] || continue
    wait_until 10 says "$log" 'listening on' || die "tcpdump did not start: see $log"
  done
  announce_ready
  wait
}

# listens PORT: does a TCP server listen here?
listens() {
  [[ -n $(ss -Hltn "sport = :$1") ]]
}

# --- servers and what is measured -------------------------------------------------------------

# server_on PORT: the server that was just started in the background, and shall listen there.
server_on() {
  server_pids+=($!) server_ports+=("$1")
}

# servers_ready: wait until they all listen, and say so. Told to end, we tell them.
servers_ready() {
  local port
  # shellcheck disable=SC2064 # the pids are meant as they are now
  trap "kill -TERM ${server_pids[*]} 2>/dev/null" TERM INT
  for port in "${server_ports[@]}"; do
    wait_until 10 listens "$port" || die "iperf3 does not listen on port $port: is another server running?"
  done
  announce_ready
}

# serve_to_the_end: the servers end by themselves, each after its test; we fail as the last does.
serve_to_the_end() {
  servers_ready
  wait "${server_pids[@]}"
}

# serve_until_told: the servers go on until we are told to end.
serve_until_told() {
  servers_ready
  wait "${server_pids[@]}" || true
}

# iperf3_failed FILE...: stop, with what iperf3 wrote into its JSON.
iperf3_failed() {
  die "iperf3 failed: $(grep -hs '"error"' "$@" || echo "no answer")"
}

# set_offloads off|on INTERFACE...: segmentation and receive offloads, all four. Few devices can
# switch lro on, so that is only ever switched off. The phase undo knows what they were.
set_offloads() {
  local state=$1 interface
  local -a features=(tso "$state" gso "$state" gro "$state")
  [[ $state == on ]] || features+=(lro off)
  shift
  for interface in "$@"; do
    undo_offloads "$interface"
    ethtool -K "$interface" "${features[@]}" 2>/dev/null ||
      die "ethtool can't set the offloads of $interface to $state: are you root?"
  done
}

# begin_samples ADDRESS SECONDS FILE: sample_ss, beside what is measured; until end_samples.
begin_samples() {
  sample_ss "$@" &
  sampler_pid=$!
}

end_samples() {
  kill -TERM "$sampler_pid"
  wait "$sampler_pid"
}

# sample_ss ADDRESS SECONDS FILE: the state of every TCP connection to ADDRESS, again and again,
# until this function's process is told to end (SIGTERM). FILE holds ss's own text; before each
# sample stands a line '# t=<Unix time in seconds>'.
#
# With SS_SAMPLER (a program that the virtual kernel brings) the samples are taken from the
# kernel as ss takes them, written raw, and printed by ss once at the end: starting ss anew for
# every sample costs more than the experiment itself.
sample_ss() {
  local address=$1 interval_s=$2 file=$3 pid
  if [[ -z ${SS_SAMPLER:-} ]]; then
    trap 'exit 0' TERM
    while :; do
      printf '# t=%s000\n' "$EPOCHREALTIME"
      ss -tinOH "dst $address"
      pause "$interval_s"
    done >"$file"
  fi
  "$SS_SAMPLER" --interval "$interval_s" --dst "$address" --out "$file.diag" --times "$file.times" &
  pid=$!
  # shellcheck disable=SC2064 # the pid is meant as it is now
  trap "kill -TERM $pid" TERM
  wait_for "$pid"
  TCPDIAG_FILE="$file.diag" ss -tinOH >"$file.text"
  print_samples "$file.times" "$file.text" >"$file"
  rm -f "$file.diag" "$file.times" "$file.text"
}

# print_samples TIMES TEXT: TEXT, one socket a line, with its '# t=' lines. Each line of TIMES is
# a sample: its Unix time and its number of sockets.
print_samples() {
  awk -v times="$1" '
    # ss pads its lines to one width; the blanks at the end go.
    BEGIN {
      while ((getline sample <times) > 0) {
        split(sample, field, " ")
        print "# t=" field[1]
        for (n = field[2]; n > 0 && (getline line) > 0; n--) {
          sub(/ +$/, "", line)
          print line
        }
      }
    }' "$2"
}

# sample_queue INTERFACE SECONDS FILE: what tc says of an interface's qdiscs, again and again, until
# this function's process is told to end (SIGTERM). FILE holds tc's own JSON, a line a sample;
# before each stands a line '# t=<Unix time in seconds>'.
#
# One tc reads a command a sample: starting tc anew for each costs more than the experiment.
sample_queue() {
  local interface=$1 interval_s=$2 file=$3 told='' to_tc tc_pid
  trap 'told=yes' TERM
  exec {to_tc}> >(exec tc -j -s -batch - >"$file.json")
  tc_pid=$!
  until [[ -n $told ]]; do
    printf '# t=%s000\n' "$EPOCHREALTIME" >>"$file.times"
    printf 'qdisc show dev %s\n' "$interface" >&"$to_tc"
    pause "$interval_s"
  done
  exec {to_tc}>&-
  wait "$tc_pid"
  paste -d '\n' "$file.times" "$file.json" >"$file"
  rm -f "$file.times" "$file.json"
}
