#!/usr/bin/env bash
# What a node is set to, and what it has counted so far: the tools' own words, one file each.
#
#     snapshot.sh before|after FOLDER
#
# 'before' also notes what does not change during a run: addresses, offloads, sysctls.
set -euo pipefail
when=$1 out=$2

tc -j -s qdisc show >"$out/qdisc.$when.json"
ip -j -s link show >"$out/link.$when.json"
nstat -az -j >"$out/nstat.$when.json" 2>/dev/null
mapfile -t lines </proc/net/softnet_stat
printf '%s\n' "${lines[@]}" >"$out/softnet_stat.$when.txt"

if [[ $when == before ]]; then
  ip -j addr show >"$out/addr.json"
  ip route show >"$out/route.txt"
  for interface in /sys/class/net/*; do
    interface=${interface##*/}
    if [[ $interface != lo ]]; then
      ethtool -k "$interface"
      # Which speed the cable has; an interface may not know.
      mapfile -t lines <"/sys/class/net/$interface/speed" 2>/dev/null || lines=()
      printf '%s = %s\n' "$interface" "${lines[*]:-unknown}" >&3
    fi
  done >"$out/offloads.txt" 3>"$out/speed_mbit.txt"
  for file in /proc/sys/net/ipv4/{tcp_*,ip_forward,ip_no_pmtu_disc} \
    /proc/sys/net/core/{rmem_max,wmem_max,default_qdisc,netdev_max_backlog,netdev_budget}; do
    # The key of TCP Fast Open is a secret of the machine.
    if [[ -r $file && $file != *_key ]]; then
      key=${file#/proc/sys/}
      mapfile -t lines <"$file"
      printf '%s = %s\n' "${key//\//.}" "${lines[*]}"
    fi
  done >"$out/sysctl.txt"
fi
