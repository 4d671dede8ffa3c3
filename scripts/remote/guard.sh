#!/usr/bin/env bash
# A node's side of trials on real machines. It comes over ssh, on the standard input of a bash that
# is root there; the lines after it are orders, and the answers go to standard output.
#
# When a trial ends, the node becomes what it was: also when the connection ends, or when nothing
# came over it for a while, since a cut link says nothing. What the node was stands in /run, for the
# next guard, should this one be killed.
set -u
patience_s=20
busy_s=30
mark=MEASURETWICE_NODE # in the environment of all that runs for a trial
trap : PIPE HUP INT TERM

say() {
  printf '%s\n' "$*"
} 2>/dev/null

main() {
  export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
  local -a addresses=() peers=() needs=() tools=()
  local word rest folder='' node='' interfaces=' ' forward='' sending='' said ssh_address
  read -r _ _ ssh_address _ <<<"${1:-}"
  exec 3<&0 </dev/null
  ((EUID == 0)) || refuse "who logs in there is not root: take sudo = false away"
  kept=/run/measuretwice-$(stat -Lc %i /proc/self/ns/net)
  lock || refuse "another ./lab run is at work on it: wait for its end"
  undo
  say measuretwice
  while read -rt "$patience_s" -u 3 word rest; do
    case $word in
      # Not into the midst of a file.
      .) { [[ -n $sending ]] && kill -0 "$sending" 2>/dev/null; } || say . ;;
      address) addresses+=("$rest") ;;
      peer) peers+=("$rest") ;;
      forward) forward=yes ;;
      need) needs+=("$rest") ;;
      tool) tools+=("$rest") ;;
      clock) say "clock $EPOCHREALTIME" ;;
      tell) tell ;;
      ask) ask ;;
      open) open "$rest" ;;
      put) timeout "$patience_s" head -c "$rest" <&3 >>"$folder/in.tgz" || break ;;
      unpack) unpack "$rest" ;;
      run) start_phase "$rest" ;;
      snapshot) start "${rest% *}" step snapshot scripts/snapshot.sh "${rest#* }" "$folder/out/$node" ;;
      state) start "$rest" step state scripts/after/state.sh "$folder/out" "$node" ;;
      stop) kill -TERM "$(<"$folder/$rest.pid")" 2>/dev/null ;;
      pack) pack 3<&- 9>&- & ;;
      fetch)
        say "files $(stat -c %s "$folder/files.tgz")"
        cat "$folder/files.tgz" 3<&- 9>&- &
        sending=$!
        ;;
      close)
        said=$(undo) folder=''
        [[ -z $sending ]] || wait "$sending"
        say "${said:+$said$'\n'}closed"
        ;;
    esac
  done
  undo
  rm -f "$kept.lock"
  exit
}

refuse() {
  say "wrong $*"
  say refused
  exit 1
}

# lock: one at a time on a node; whoever was cut off may still be undoing.
lock() {
  local -i tries=$busy_s
  # Its last holder removes the file.
  until exec 9>"$kept.lock" && flock -w 1 9 && [[ /dev/fd/9 -ef $kept.lock ]]; do
    say .
    ((tries-- > 0)) || return 1
  done
}

# --- before the first trial: what is there? ---------------------------------------------------

tell() {
  local tool name
  say "fact kernel $(uname -r)"
  for tool in "${tools[@]}"; do
    read -r name tool <<<"$tool"
    # shellcheck disable=SC2086 # a command and its option
    say "fact $name $($tool 2>&1 | head -n 1)"
  done
  say told
}

ask() {
  local tool address peer interface need line missing=() elsewhere=() lacks=''
  interfaces=' '
  for tool in iperf3 ip tc ss nstat ethtool tcpdump ping sysctl awk tar comm setsid unshare timeout; do
    type -P "$tool" >/dev/null || missing+=("$tool")
  done
  ((${#missing[@]} == 0)) || say "wrong it has no ${missing[*]}: install them"
  missing=()
  for address in "${addresses[@]}"; do
    interface=$(interface_with "$address")
    if [[ -z $interface ]]; then
      missing+=("$address")
    elif [[ $interfaces != *" $interface "* ]]; then
      interfaces+="$interface "
    fi
  done
  if ((${#missing[@]} > 0)); then
    say "wrong none of its interfaces has the address ${missing[*]}"
    peers=()
  fi
  for peer in "${peers[@]}"; do
    interface=$(ip -4 -o route get "$peer" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
    [[ -n $interface && $interfaces == *" $interface "* ]] ||
      elsewhere+=("$peer")
  done
  ((${#elsewhere[@]} == 0)) ||
    say "wrong its route to ${elsewhere[*]} does not lead over the lab's links"
  [[ -z $forward || $(</proc/sys/net/ipv4/ip_forward) == 1 ]] ||
    say "wrong it is a router, and does not forward: sysctl -w net.ipv4.ip_forward=1"
  interface=$(interface_with "${ssh_address:-none}")
  [[ -z $interface || $interfaces != *" $interface "* ]] ||
    say "wrong ssh reaches it over $interface, which is one of the lab's links: that takes another network"
  for need in "${needs[@]}"; do
    unshare --net bash -c "${need#*$'\t'}" >/dev/null 2>&1 ||
      lacks+="${lacks:+, }${need%%$'\t'*}"
  done
  [[ -z $lacks ]] || say "wrong its kernel has not $lacks"
  for interface in $interfaces; do
    while read -r line; do
      [[ $line == qdisc\ *\ 0:\ * ]] ||
        say "wrong $interface has a queue that Linux did not choose by itself and that could not be put back: $line"
    done < <(tc qdisc show dev "$interface")
  done
  say asked
}

interface_with() {
  ip -o addr show to "$1" 2>/dev/null | awk '{ print $2; exit }'
}

# --- a trial ----------------------------------------------------------------------------------

# open NODE: from here on all is put back at the end.
open() {
  node=$1
  folder=$(mktemp -d /tmp/measuretwice.XXXXXX)
  mkdir -p "$kept" "$folder/out/$node"
  printf '%s\n' "$folder" >"$kept/folder"
  printf '%s\n' "$interfaces" >"$kept/interfaces"
  record >"$kept/part"
  cp "$kept/part" "$folder/out/$node/node.before.txt"
  mv "$kept/part" "$kept/before"
  say opened
}

unpack() {
  mkdir -p "$folder/$1"
  tar -xzf "$folder/in.tgz" -C "$folder/$1" || say "wrong what was sent did not arrive whole"
  rm "$folder/in.tgz"
  say unpacked
}

pack() {
  tar -czf "$folder/files.tgz" -C "$folder/out/$node" . && say packed
}

# start_phase 'ID step|background SCRIPT PHASE'
start_phase() {
  local id mode script phase
  read -r id mode script phase <<<"$1"
  start "$id" "$mode" "$phase" "$script" "$phase"
}

# start ID step|background NAME SCRIPT ARGUMENT...: say 'ended ID STATUS' when it has, and before
# that, of one in the background, 'ready ID'.
start() {
  local id=$1 mode=$2 name=$3 script=$4 out=$folder/out/$node pid clock
  shift 4
  {
    (
      # shellcheck source=/dev/null
      . "$folder/environment"
      export "$mark=$folder" OUT="$out" READY_FILE="$out/$name.ready"
      exec setsid bash "$folder/$script" "$@" >"$out/$name.log" 2>&1
    ) &
    pid=$!
    printf '%s\n' "$pid" >"$folder/$id.pid"
    if [[ $mode == background ]]; then
      exec {clock}<> <(:)
      until [[ -e $out/$name.ready ]]; do
        kill -0 "$pid" 2>/dev/null || break
        read -rt 0.02 -u "$clock"
      done
      [[ ! -e $out/$name.ready ]] || say "ready $id"
    fi
    wait "$pid"
    say "ended $id $?"
  } 3<&- 9>&- &
}

# --- what the node is, and how it becomes that again ------------------------------------------

# record: a line for each thing that a node's scripts may change; sorted, to be compared.
record() {
  local interface key line keys=()
  {
    for interface in $interfaces; do
      printf 'mtu %s %s\n' "$interface" "$(<"/sys/class/net/$interface/mtu")"
      # Of a group of features only its members, which are indented.
      ethtool -k "$interface" 2>/dev/null | awk -v interface="$interface" '
        function tell() { if (name != "") print "offload", interface, name, state }
        NR == 1 { next }
        /^[^ \t]/ { tell() }
        { name = ""; if ($0 !~ /\[fixed\]/) { name = $1; state = $2; sub(/:$/, "", name) } }
        /^[ \t]/ { tell(); name = "" }
        END { tell() }'
      tc qdisc show dev "$interface" | sed "s/ refcnt [0-9]*//; s/ *\$//; s/^qdisc /qdisc $interface /"
    done
    while read -r line; do
      [[ $line =~ \ dev\ ([^ ]+) && $line != *' table local '* ]] || continue
      [[ "$interfaces lo " == *" ${BASH_REMATCH[1]} "* ]] || continue
      line=${line// linkdown/}
      printf 'route %s\n' "${line// dead/}"
    done < <(ip -4 route show table all)
    ip -4 rule show | awk '{ $1 = ""; print "rule" $0 }'
    ip -o link show type ifb | awk -F '[ :@]+' '{ print "ifb", $2 }'
    for line in /sys/kernel/tracing/instances/*/; do
      [[ ! -d $line ]] || printf 'trace %s\n' "$line"
    done
    for key in /proc/sys/net/ipv4/{tcp_*,ip_forward} /proc/sys/net/core/*; do
      [[ ! -f $key || ! -w $key ]] || keys+=("$key")
    done
    grep -sH '' "${keys[@]}" | sed 's/^/sysctl /; s/:/ /'
  } | sort
}

# undo: end what runs for a trial, put back what differs, say what differs still.
undo() {
  local line
  [[ ! -e $kept/folder ]] || folder=$(<"$kept/folder")
  if [[ -e $kept/before ]]; then
    interfaces=$(<"$kept/interfaces")
    end_all
    record >"$kept/now"
    # Twice: some features wait for others.
    for _ in 1 2; do
      ! cmp -s "$kept/before" "$kept/now" || break
      put_back 2>/dev/null
      record >"$kept/now"
    done
    while read -r line; do
      say "still was $line"
    done < <(comm -23 "$kept/before" "$kept/now")
    while read -r line; do
      say "still is $line"
    done < <(comm -13 "$kept/before" "$kept/now")
  fi
  [[ -z $folder ]] || rm -rf -- "$folder"
  rm -rf -- "$kept"
  folder=''
}

# end_all: until none is left, since one may be starting another.
end_all() {
  local file pids
  while
    pids=()
    while read -r file; do
      file=${file%/environ}
      pids+=("${file##*/}")
    done < <(grep -lsz "^$mark=$folder\$" /proc/[0-9]*/environ)
    ((${#pids[@]} > 0))
  do
    kill -KILL "${pids[@]}" 2>/dev/null
    sleep 0.05
  done
}

# shellcheck disable=SC2086 # what ip and ethtool said is words of their own
put_back() {
  local what name rest
  comm -23 "$kept/before" "$kept/now" >"$kept/gone"
  comm -13 "$kept/before" "$kept/now" >"$kept/new"
  # A queue that Linux chooses by itself follows from the sysctls and the MTU: these come first.
  while read -r what name rest; do
    case $what in
      sysctl) printf '%s\n' "$rest" >"$name" ;;
      mtu) ip link set dev "$name" mtu "$rest" ;;
    esac
  done <"$kept/gone"
  while read -r what name rest; do
    case $what in
      qdisc)
        case $rest in
          clsact\ * | ingress\ *) tc qdisc del dev "$name" "${rest%% *}" ;;
          *\ 0:\ *) ;;
          *\ root*) tc qdisc del dev "$name" root ;;
        esac
        ;;
      ifb) ip link delete "$name" ;;
      trace) rmdir "$name" ;;
      route) ip -4 route del $name $rest ;;
      rule) ip -4 rule del $name $rest ;;
    esac
  done <"$kept/new"
  while read -r what name rest; do
    case $what in
      offload) ethtool -K "$name" $rest ;;
      route) ip -4 route add $name $rest ;;
      rule) ip -4 rule add $name $rest ;;
    esac
  done <"$kept/gone"
}

main "$@"
