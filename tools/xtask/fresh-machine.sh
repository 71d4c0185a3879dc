#!/bin/bash
# Runs the README's two commands on newly installed machines. `cargo xtask fresh-machine` starts this script.
#
# Each machine is a folder with a minimal Debian system from debootstrap, a Rust toolchain without libraries
# for Windows, and a clone of the current commit. Each machine lacks something: recent package lists,
# permission to install packages, or apt-get.
#
#   fresh-machine.sh TARGET SYSROOT [MACHINE...]
set -euo pipefail

repository=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1/fresh-machine
sysroot=$2
shift 2

# The packages that are installed in addition to the minimal system.
readonly installed=ca-certificates,gcc,git,libc6-dev,sudo

# Each machine's release, user, archives, toolchain and installer. With rustup, the machine can add
# components to the toolchain.
declare -A machines=(
    [debian-12]='bookworm root security toolchain apt-get'
    [debian-13]='trixie root security toolchain apt-get'
    [debian-12-user]='bookworm with-sudo security toolchain apt-get'
    [debian-12-rustup]='bookworm root security rustup apt-get'
    [debian-12-old]='bookworm root no-security toolchain apt-get'
    [debian-12-no-sudo]='bookworm without-sudo security toolchain apt-get'
    [debian-12-no-apt]='bookworm root security rustup no-apt-get'
)
readonly order=(debian-12 debian-13 debian-12-user debian-12-rustup debian-12-old debian-12-no-sudo debian-12-no-apt)

# Prints the words that the error of a command on a machine must contain, each on a line, or nothing if the
# command must succeed.
refusal() {
    case "$1 $2" in
        'debian-12-old demo') printf '%s\n' 'rustc-web is 1.' 'or later is needed' 'rustup target add' ;;
        'debian-12-old test') printf '%s\n' 'rustc-web is 1.' 'or later is needed' 'rustup component add' ;;
        'debian-12-no-sudo demo') echo '`sudo apt-get install rustc-web cargo-web rust-web-src lld-19`' ;;
        'debian-12-no-sudo test') printf '%s\n' '`sudo apt-get install ' osslsigncode wine64 chromium clang-19 ;;
        'debian-12-no-apt test') printf '%s\n' 'no apt-get' osslsigncode wine64 chromium clang-19 ;;
    esac
}

# Creates a release's minimal system, unless it exists. Machines are copies of it.
make_base() {
    local base=$folder/base/$1
    [ -e "$base/finished" ] && return
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include="$installed" "$1" "$base/root" >"$base/log" 2>&1 || {
        echo "error: debootstrap cannot install $1; its output is in $base/log" >&2
        return 1
    }
    touch "$base/finished"
}

# Copies the toolchain that runs cargo to a folder, without its Windows libraries and the standard library's
# source.
copy_toolchain() {
    mkdir -p "$1"
    tar -C "$sysroot" --exclude='*windows*' --exclude=src --exclude=doc --exclude=manifest-rust-src -c . |
        tar -C "$1" -x
    sed -i -e '/windows/d' -e '/^rust-src$/d' "$1/lib/rustlib/components"
    # rustup does not add components that this file lists.
    local list=$1/lib/rustlib/multirust-config.toml
    if [ -e "$list" ]; then
        awk 'BEGIN { RS = "\\[\\[components\\]\\]" }
             NR == 1 { printf "%s", $0 }
             NR > 1 && !/windows|rust-src/ { printf "[[components]]%s", $0 }' "$list" >"$list.new"
        mv "$list.new" "$list"
    fi
}

# Installs the toolchain in the machine.
install_rust() {
    if [ "$toolchain" != rustup ]; then
        copy_toolchain "$root/opt/rust"
        return
    fi
    local rustup bin=$root$home/.cargo/bin name
    rustup=$(command -v rustup) || {
        echo 'error: cannot find rustup in PATH: the machines with rustup get a copy of it; install rustup and try again' >&2
        return 1
    }
    # rustup takes the channel, host and version from a toolchain's name.
    name=$(basename "$sysroot")
    copy_toolchain "$root$home/.rustup/toolchains/$name"
    mkdir -p "$bin"
    cp --dereference "$(readlink -f "$rustup")" "$bin/rustup"
    for proxy in cargo rustc rustdoc rustfmt cargo-fmt cargo-clippy clippy-driver; do
        ln "$bin/rustup" "$bin/$proxy"
    done
    printf 'version = "12"\ndefault_toolchain = "%s"\nprofile = "minimal"\n' "$name" >"$root$home/.rustup/settings.toml"
}

# Runs a shell line in the machine as its user or, with the word `root` before it, as root. The mounts
# disappear when it ends.
inside() {
    local identity=(--userspec=developer:developer) own=$home path=/opt/rust/bin network
    if [ "$1" = root ]; then
        shift
        identity=()
        own=/root
    elif [ "$user" = root ]; then
        identity=()
    fi
    [ "$toolchain" = rustup ] && path=$own/.cargo/bin
    # The variables that configure the network.
    mapfile -t network < <(env | grep -iE \
        '^([a-z0-9_]*(_proxy|ca_bundle|_index_url)|(ssl_cert_|cargo_registr|rustup_dist_)[a-z0-9_]*|pip_cert|git_ssl_cainfo|pip_default_timeout)=')
    unshare --mount --pid --fork --kill-child /bin/sh -ec \
        'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; mount --rbind /sys "$0/sys"; exec "$@"' \
        "$root" env --ignore-environment HOME="$own" LANG=C.UTF-8 \
        PATH="$path:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" "${network[@]}" \
        chroot "${identity[@]}" "$root" /bin/sh -c "$1"
}

# Creates the machine.
make_machine() {
    rm -rf "$root"
    cp --archive --reflink=auto "$folder/base/$release/root" "$root"
    # These files configure the network.
    for file in /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
        [ ! -e "$file" ] || install -D "$file" "$root$file"
    done
    local sources=$root/etc/apt/sources.list
    if [ "$archives" = security ]; then
        sed "s|/debian |/debian-security |; s| $release | $release-security |" "$sources" >"$sources.security"
        cat "$sources.security" >>"$sources"
        rm "$sources.security"
    fi
    [ "$user" = root ] || inside root 'useradd --create-home --shell /bin/sh developer'
    if [ "$user" = with-sudo ]; then
        echo 'developer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/developer"
    fi
    [ "$installer" = apt-get ] || inside root 'rm /usr/bin/apt-get'
    install_rust
    git clone --quiet --no-hardlinks "$repository" "$root$home/wdk-etw"
    [ "$user" = root ] || inside root 'chown --recursive developer:developer /home/developer'
}

# Runs a command of the README on the machine, and sets `result`. Prints the problem, if there is one.
try_command() {
    local start=$SECONDS begin status=0 expected error problem='' outcome=passed changes
    begin=$(($(stat --format=%s "$log") + 1))
    inside "cd ~/wdk-etw && cargo xtask $1 2>&1" </dev/null >>"$log" 2>&1 || status=$?
    expected=$(refusal "$name" "$1")
    # The error is on a line after the progress steps, and can continue on further lines.
    error=$(tail --bytes="+$begin" "$log" | sed -n '/^error: /,$p')
    if [ -z "$expected" ]; then
        if [ "$status" != 0 ]; then
            problem=${error:-the exit code is $status}
        elif ! changes=$(inside 'cd ~/wdk-etw && git status --porcelain') || [ -n "$changes" ]; then
            problem="the clone has changes: $changes"
        fi
    elif [ "$status" = 0 ]; then
        problem='the command succeeded; expected a refusal'
    else
        outcome='failed as expected'
        while read -r words; do
            [[ $error == *"$words"* ]] || problem="the error message does not contain \"$words\": $error"
        done <<<"$expected"
    fi
    if [ -n "$problem" ]; then
        outcome=FAILED
        echo "$name: cargo xtask $1: $problem" >&2
        echo "$name: the output is in $log" >&2
    elif [ -n "$expected" ]; then
        echo "$name: cargo xtask $1: $error" >&2
    fi
    result="$outcome, $(((SECONDS - start + 30) / 60)) min"
}

[ $# -gt 0 ] || set -- "${order[@]}"
for name in "$@"; do
    [ -n "${machines[$name]:-}" ] || {
        echo "error: there is no machine $name; expected one of ${order[*]}" >&2
        exit 1
    }
done
if [ -n "$(git -C "$repository" status --porcelain)" ]; then
    echo 'note: the machines get the current commit, without uncommitted changes' >&2
fi
rows=() failed=0
for name in "$@"; do
    read -r release user archives toolchain installer <<<"${machines[$name]}"
    root=$folder/$name log=$folder/$name.log home=/root
    [ "$user" = root ] || home=/home/developer
    echo "Trying $name" >&2
    make_base "$release"
    : >"$log"
    make_machine
    try_command demo
    demo=$result
    try_command test
    rows+=("| $name | $release, $archives archive, $toolchain, $installer | $user | $demo | $result |")
    if [[ $demo$result == *FAILED* ]]; then
        failed=$((failed + 1))
    else
        # A machine takes up several gigabytes.
        rm -rf "$root"
    fi
done
echo '| machine | system | run by | cargo xtask demo | cargo xtask test |'
echo '|---|---|---|---|---|'
printf '%s\n' "${rows[@]}"
if [ "$failed" != 0 ]; then
    echo "error: $failed of $# machines failed; their logs are in $folder" >&2
    exit 1
fi
