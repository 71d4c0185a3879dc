#!/bin/busybox sh
# The whole userland of the guest that stands in for Windows in the tests of `cargo etw vm`.
#
# It follows the same protocol: this script does the work of Setup, setup.cmd, start.cmd and agent.cmd
# on Windows. The system disk is one FAT file system; stages are shell scripts.
#
# The kernel's command line can contain etw.install=hang|error|loop (how the installation fails) and
# etw.seconds=N (the duration of each stage).

/bin/busybox mkdir -p /proc /sys /dev /system /results /kit /answer /media
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do
    insmod /modules/$module.ko 2>/dev/null
done

say() {
    printf 'wdk-etw: %s\r\n' "$*" >/dev/ttyS0
}

off() {
    cd /
    # The serial port is still sending.
    usleep 500000
    umount /results /system 2>/dev/null
    sync
    poweroff -f
    sleep 60
}

restart() {
    cd /
    # The serial port is still sending.
    usleep 500000
    umount /results /system 2>/dev/null
    sync
    reboot -f
    sleep 60
}

option() {
    sed -n "s/.*etw\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

# Mounts the first CD that contains a file.
cd_with() {
    for device in /dev/sr*; do
        [ -b "$device" ] || continue
        mount -t iso9660 -o ro "$device" "$2" 2>/dev/null || continue
        [ -e "$2/$1" ] && return 0
        umount "$2"
    done
    return 1
}

# Mounts the disk that contains a file. The order of disks changes from start to start.
disk_with() {
    for device in $3; do
        [ -b "$device" ] || continue
        mount -t vfat -o sync "$device" "$2" 2>/dev/null || continue
        [ -e "$2/$1" ] && return 0
        umount "$2"
    done
    return 1
}

fail() {
    say "error $*"
    off
}

# Setup: four starts, as on Windows; at the last one, start.cmd checks the changes by setup.cmd.
install() {
    case $(option install) in
    hang) while :; do sleep 60; done ;;
    error) fail "Setup could not read the answer file" ;;
    loop) restart ;;
    esac
    if [ -e /system/installed ]; then
        phase=$(cat /system/installed)
    else
        phase=0
    fi
    case $phase in
    0)
        cd_with autounattend.xml /answer || fail "no CD has autounattend.xml"
        grep -q '<AcceptEula>true</AcceptEula>' /answer/autounattend.xml || fail "the license is not accepted"
        [ -s /answer/wdk-etw/setup.cmd ] && [ -s /answer/wdk-etw/start.cmd ] || fail "the CD has no setup.cmd"
        index=$(sed -n 's/.*<Value>\([0-9]*\)<.*/\1/p' /answer/autounattend.xml | head -n 1)
        cd_with sources/editions.txt /media || fail "no CD has an image"
        edition=$(sed -n "${index}p" /media/sources/editions.txt)
        [ -n "$edition" ] || fail "the image has no edition $index"
        say "setup windowsPE"
        # Setup calls the first disk 0, and there is no other.
        mkdosfs /dev/sda >/dev/null
        mount -t vfat -o sync /dev/sda /system || fail "the disk cannot be mounted"
        echo "$edition" >/system/edition
        echo 1 >/system/installed
        restart
        ;;
    1)
        say "setup specialize"
        echo 2 >/system/installed
        restart
        ;;
    2)
        say "setup first-logon"
        echo 3 >/system/installed
        restart
        ;;
    3)
        echo done >/system/installed
        say "installed $(cat /system/edition)"
        off
        ;;
    esac
}

room() {
    dd if=/dev/zero of=/results/room.tmp bs=4k count=1 2>/dev/null || say full
    rm -f /results/room.tmp
}

# The arguments are those in a line of the plan: number, leg, stage, minutes, risky, script.
stage() {
    number=$1 leg=$2 name=$3 minutes=$4 script=$(echo "$6" | tr '\\' '/')
    place=/system/place/$number
    [ -e "$place.ended" ] && return
    if [ -e "$place.begun" ]; then
        say "lost $leg $name"
        echo lost >"$place.ended"
        mkdir -p "/results/$leg"
        echo "$name" >>"/results/$leg/crashed.txt"
        if [ -e /system/MEMORY.DMP ]; then
            mkdir -p "/results/$leg/$name"
            cp /system/MEMORY.DMP "/results/$leg/$name/" && say "dump $leg $name MEMORY.DMP"
            rm /system/MEMORY.DMP
        else
            say "error Windows restarted in the stage $name of the leg $leg and left no crash dump"
        fi
        return
    fi
    out=/results/$leg
    mkdir -p "$out/$name"
    echo begun >"$place.begun"
    say "begin $leg $name"
    (
        WDK_ETW_STAGE=$name sh "/kit/$script" -Kit /kit -Out "$out" >"$out/$name/output.txt" 2>&1
        echo $? >/system/place/code.tmp
        mv /system/place/code.tmp "$place.code"
    ) &
    left=$(option seconds)
    left=${left:-$((minutes * 60))}
    while [ ! -e "$place.code" ]; do
        left=$((left - 1))
        if [ "$left" -lt 0 ]; then
            echo timeout >"$place.ended"
            say "timeout $leg $name"
            return
        fi
        say "alive $left"
        # The loop checks more often than it sends messages.
        for part in 1 2 3 4 5; do
            [ -e "$place.code" ] && break
            usleep 200000
        done
    done
    code=$(cat "$place.code")
    # A shell's exit codes have 8 bits.
    [ "$code" = 194 ] && code=3010
    echo "$code" >"$place.ended"
    room
    say "end $leg $name $code"
    if [ "$code" = 3010 ]; then
        say reboot
        restart
    fi
}

agent() {
    say boot
    mkdir -p /system/place
    disk_with wdk-etw-results.tag /results "/dev/sd?1" || fail "no disk has the tag wdk-etw-results.tag"
    tr -d '\r' </kit/agent/plan.txt >/plan
    while read -r line <&3; do
        stage $line
    done 3</plan
    say finished
    off
}

# Drives appear shortly after the start.
for try in 1 2 3 4 5 6 7 8 9 10; do
    [ -b /dev/sda ] && break
    usleep 200000
done
usleep 300000
disk_with installed /system "/dev/sd?"
if [ "$(cat /system/installed 2>/dev/null)" != done ]; then
    install
elif cd_with wdk-etw-kit.json /kit; then
    # Not process 1, which cannot be stopped.
    (agent) &
    wait
fi
off
