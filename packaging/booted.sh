# A bare tree with systemd as its first process, in namespaces of its own. Sourced by scripts/packages.

init=''

# boot_tree TREE: starts it; `init` is its first process as this machine sees it.
boot_tree() {
    local tree=$1 waited
    cgroup=$(cgroup2)/sluice-packages-$$
    mkdir "$cgroup"
    (echo "$BASHPID" >"$cgroup/cgroup.procs" &&
        exec unshare --mount --uts --ipc --net --pid --cgroup --fork --kill-child packaging/boot "$tree") \
        </dev/null >"$tree.boot.log" 2>&1 &
    outer=$!
    for ((waited = 0; waited < 600; waited++)); do
        init=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null || true)
        init=${init%% *}
        # `degraded` is a tree in which a unit of Debian's own found no hardware.
        if [ -n "$init" ] && [[ $(inside systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]]; then
            return 0
        fi
        kill -0 "$outer" 2>/dev/null || break
        sleep 0.1
    done
    echo "systemd does not start in a bare tree here: $(tail -n 1 "$tree.boot.log")" >&2
    return 1
}

# Where this machine has cgroup2.
cgroup2() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }

# inside COMMAND...: runs it in the booted tree, as root.
inside() {
    nsenter --target "$init" --all env -i HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null
}

# Ends all that runs in the tree.
end_tree() {
    [ -n "$init" ] || return 0
    kill -KILL "$init" 2>/dev/null || true
    wait "$outer" 2>/dev/null || true
    init=''
    find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
}

# until_true SECONDS COMMAND...: tries until it succeeds.
until_true() {
    local patience=$1 end
    shift
    end=$((SECONDS + patience))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}
