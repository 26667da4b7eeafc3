#!/bin/busybox sh
# The first process of the guest. It runs the tests of /plan, and tells the serial line of each.
/bin/busybox mkdir -p /bin /proc /sys /dev /tmp /run /root
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TMPDIR=/tmp RUST_BACKTRACE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
# The memory limits the number of threads too low for the tests with crowds.
echo 200000 >/proc/sys/kernel/pid_max
echo 200000 >/proc/sys/kernel/threads-max
echo 1000000 >/proc/sys/vm/max_map_count
# The kernel writes to the line only when it dies.
dmesg -n 1
PLAN=/plan/tests TESTS=/tests RUN=/run LAUNCH=
. /plan/settings
. /plan/worker.sh

# Takes the last CPU offline and puts it back, until the file /run/stay is there.
offline() {
    file=/sys/devices/system/cpu/cpu$(($(nproc) - 1))/online
    turns=0
    while [ ! -e /run/stay ]; do
        echo 0 >$file && sleep 1 && echo 1 >$file && turns=$((turns + 1))
        echo $turns >/run/turns
        sleep 1
    done
}

nodes=$(ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l)
echo
# A kernel that knows no nodes has one.
echo "@boot $(uname -r) $(nproc) $((nodes > 0 ? nodes : 1))"
case $UNDER in
half-cpu)
    mkdir /sys/fs/cgroup/half
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    echo "50000 100000" >/sys/fs/cgroup/half/cpu.max
    echo $$ >/sys/fs/cgroup/half/cgroup.procs
    ;;
offline) offline & ;;
docker-*)
    LAUNCH="/tests/ulocks-confined $UNDER"
    echo "@under $($LAUNCH)"
    ;;
esac
run
case $UNDER in
half-cpu) echo "@under $(grep nr_throttled /sys/fs/cgroup/half/cpu.stat)" ;;
offline)
    touch /run/stay
    echo "@under turns $(cat /run/turns)"
    ;;
esac
echo "@done"
poweroff -f
