#!/usr/bin/env bash
# shellcheck disable=SC2154,SC2016 # variables are of whoever reads it, and single quotes are meant
# As root inside the virtual kernel: what might lead out. Read by test_escape.py, which sets OUTSIDE (a folder of
# the machine), PORT and SOCKET_NAME (where somebody listens there) and VICTIM (a process there).
# Each attempt says "NAME: held" or "NAME: OUT"; what it gets it prints, so that secrets can be looked for.
run=/run/measuretwice lab=/run/lab
exec 2>&1
try() { # NAME COMMAND...: the command's success is a way out
  local name=$1
  shift
  if "$@"; then printf '%s: OUT\n' "$name"; else printf '%s: held\n' "$name"; fi
}
mounted() { # SOURCE [OPTIONS]: can it be mounted, and is there anything in it?
  mkdir -p /tmp/m
  mount -t hostfs none /tmp/m -o "$1" || return 1
  ls -la /tmp/m /tmp/m/*
  cat /tmp/m/"${OUTSIDE#/}"/secret /tmp/m/secret /tmp/m/outside/secret
  [[ -e /tmp/m/etc || -e /tmp/m/secret || -e /tmp/m/outside || -e /tmp/m/README.md || -e /tmp/m/.git ]]
  local seen=$?
  umount /tmp/m
  return "$seen"
}

# --- other folders by hostfs
for source in / "$OUTSIDE" "" . .. /proc/self/root /proc/self/cwd /proc/self/fd /proc/1/root //proc//self//fd//91/.. \
  /proc/self/fd/91/../outside /proc/self/fd/91/link /proc/self/fd/92 /proc/self/fd/92/.git /proc/self/fd/92/labs/../tests \
  /proc/self/fd/90 /proc/self/fd/93 /proc/self/fd/94/.. /proc/thread-self/fd/91/.. "/proc/self/fd/91/./../outside" \
  /dev/fd/91/.. "hostfs=$OUTSIDE"; do
  try "mount $source" mounted "$source"
done
try 'mount by fsconfig' bash -c 'mkdir -p /tmp/n; mount -t hostfs -o hostfs=/etc none /tmp/n && ls /tmp/n'
try 'move the mount away' unshare -m bash -c 'mount --move /run/lab /tmp/n && ls /tmp/n/.git'
try 'a mount namespace of its own' unshare -m mount -t hostfs none /tmp -o /
# shellcheck disable=SC2016
try 'pivot_root' unshare -m bash -c 'cd /run/measuretwice && mkdir -p old && pivot_root . old && read -r line <old/../../etc/passwd'

# --- more of the folders that are there
try 'read the checkout' cat "$lab/README.md"
try 'list the checkout' ls "$lab"
try 'read .git' cat "$lab/.git/HEAD"
try 'read past it' cat "$lab/labs/../tests/conftest.py"
mount -o remount,rw / && mount -o remount,rw "$lab"
try 'write to the root' touch /written
try 'write to the programs' bash -c 'echo >>/bin/busybox'
try 'remove a program' rm -f /usr/bin/tc
try 'write to the labs' bash -c 'echo >>/run/lab/scripts/lib.sh'
try 'a lab of its own' mkdir "$lab/labs/99-new"
try 'rename a lab' mv "$lab/labs/01-mathis" "$lab/labs/02-mathis"
try 'chmod a lab' chmod 777 "$lab/labs"
try 'touch a lab' touch -d '2020-01-01 00:00:00' "$lab/scripts/lib.sh"
try 'truncate a script' truncate -s 0 "$lab/scripts/lib.sh"
try 'a hard link to a script' ln "$lab/scripts/lib.sh" "$run/hard"

# --- links, devices and pipes in the folder that can be written to
try 'a symbolic link' ln -s "$OUTSIDE" "$run/out"
try 'follow a link that is there' cat "$run/link/secret"
try 'write through a link that is there' bash -c "echo written >$run/link/secret"
try 'write to a link that is there' bash -c "echo written >$run/file-link"
try 'chmod a link that is there' chmod 777 "$run/file-link"
try 'rename onto a link that is there' bash -c "echo written >$run/new && mv $run/new $run/link/secret"
try 'a device' mknod "$run/device" b 8 0
try 'a character device' mknod "$run/memory" c 1 1
try 'a pipe' mkfifo "$run/pipe"
try 'a socket' python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('$run/socket')"
# What came of it is seen on the machine.
cp /bin/busybox "$run/as-you" && chmod 6777 "$run/as-you"
mkdir -m 6777 "$run/of-all"

# --- devices and the kernel's own memory
for device in mem kmem port; do
  try "open /dev/$device" head -c 1 "/dev/$device"
done
for node in 'b 8 0' 'b 98 0' 'b 254 0' 'c 1 1' 'c 1 2' 'c 1 4' 'c 10 229' 'c 10 237' 'b 7 0'; do
  rm -f /tmp/device
  try "device $node" bash -c "mknod /tmp/device $node && timeout 1 head -c 1 /tmp/device"
done
try 'kcore' head -c 1 /proc/kcore
try 'a module' insmod /nowhere.ko
try 'kexec' test -e /sys/kernel/kexec_loaded
try 'bpf' test -e /sys/fs/bpf
try 'the management console' test -e /proc/mconsole

# --- processes and sockets of the machine
try 'signal a process there' kill -9 "$VICTIM"
try 'look at a process there' ls "/proc/$VICTIM/fd"
try 'TCP there' timeout 2 bash -c ": </dev/tcp/127.0.0.1/$PORT"
try 'TCP there by another address' timeout 2 bash -c ": </dev/tcp/10.0.2.2/$PORT"
try 'an abstract socket there' python3 -c "import socket; socket.socket(socket.AF_UNIX).connect('\0$SOCKET_NAME')"
try "a path's socket there" python3 -c "import socket; socket.socket(socket.AF_UNIX).connect('$OUTSIDE/socket')"
# shellcheck disable=SC2016
try 'an interface of the machine' bash -c '[[ -n $(ls /sys/class/net | grep -vE "^(lo|dummy0|ifb[01])$") ]]'

# --- what they would have said if any had come out
grep -rs secret-of-this-machine /proc/self/environ /proc/cmdline /proc/1/environ && echo 'environment: OUT'
echo 'all tried'
