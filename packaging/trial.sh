# What a package has to do in a bare tree that runs systemd. Sourced by scripts/packages; each step ends the run if it
# does not hold.

# step WHAT COMMAND...
step() {
    local what=$1 result
    shift
    # In a condition the shell would not stop at what fails within.
    set +e
    (set -e; "$@") >"$logs/step.log" 2>&1
    result=$?
    set -e
    if [ "$result" -eq 0 ]; then
        printf '  ok      %s\n' "$what"
    else
        printf '  FAILED  %s\n' "$what"
        tail -n 25 "$logs/step.log"
        inside journalctl --no-pager --lines 30 --unit 'sluice-*' --unit etcd || true
        return 1
    fi
}

# no COMMAND...: it fails.
no() { if "$@"; then return 1; fi; }

is_active() { inside systemctl is-active --quiet "$@"; }
pid_of() { inside systemctl show --property MainPID --value "$1"; }
restarts_of() { inside systemctl show --property NRestarts --value "$1"; }
install_package() { inside apt-get install --yes --quiet "$1"; }
set_options() { inside sh -c "echo 'OPTIONS=$2' >'/etc/sluice/$1.env'"; }

# Its capabilities, as the kernel shows the sets that it has and may get.
capabilities_are() {
    local set
    for set in CapPrm CapEff CapBnd; do
        [ "$(inside awk "/^$set:/ { print \$2 }" "/proc/$(pid_of "$1")/status")" = "$2" ] || return 1
    done
}

runs_as_sluice() { [ "$(inside stat --format %U "/proc/$(pid_of "$1")")" = sluice ]; }

# The rack answers a load, and loses nothing of it.
serves_load() {
    inside sluice load --mix spin=1 --rate "${1:-100}" --length "${2:-1s}" --json >"$logs/load.json" || true
    loses_nothing "$logs/load.json"
}

loses_nothing() {
    python3 - "$1" <<'PY'
import json, sys
result = json.load(open(sys.argv[1]))
tasks = [result[part] for part in ("tasks", "warm_up_tasks")]
print(tasks)
assert all(part["sent"] == part["replied"] and part["replied"] > 0 for part in tasks)
PY
}

installs() {
    install_package "/packages/$1"
    is_active sluice-switch
    inside systemctl is-enabled --quiet sluice-switch
    runs_as_sluice sluice-switch
    capabilities_are sluice-switch 0000000000000000
    inside sluice status
    inside curl --fail --silent --show-error http://127.0.0.1:9464/metrics
    [ -n "$(inside bash -c '. /usr/share/bash-completion/completions/sluice && complete -p sluice')" ]
    inside getent passwd sluice | grep nologin
}

workers_serve() {
    inside systemctl enable --now sluice-worker@spin-1 sluice-worker@spin-2
    is_active sluice-worker@spin-1 sluice-worker@spin-2
    capabilities_are sluice-worker@spin-1 0000000000000000
    serves_load
}

# Each unit is right, and its exposure (0 to 10) is at most 2.0; the kernel's at most 2.5.
units_hold() {
    local unit instance bound
    for unit in packaging/systemd/*.service; do
        unit=${unit##*/} instance=${unit/@./@spin-1.} bound=20
        [[ $unit != *-xdp* ]] || bound=25
        inside systemd-analyze verify --man=no "$instance"
        inside systemd-analyze security --no-pager --offline=yes --threshold="$bound" "$instance" >"$logs/$unit.security" ||
            { tail -n 2 "$logs/$unit.security"; return 1; }
        tail -n 1 "$logs/$unit.security"
    done
}

# While a load runs, every process is replaced; no task is lost.
upgrades_under_load() {
    local unit before=() after=() units=(sluice-switch sluice-worker@spin-1 sluice-worker@spin-2)
    inside sh -c 'echo "# mine" >>/etc/sluice/rack.toml'
    for unit in "${units[@]}"; do before+=("$(pid_of "$unit")"); done
    inside sluice load --mix spin=1 --rate 200 --length 12s --json >"$logs/upgrade.json" 2>"$logs/upgrade.log" &
    local load=$!
    sleep 2
    install_package "/packages/$1"
    is_active "${units[@]}"
    for unit in "${units[@]}"; do after+=("$(pid_of "$unit")"); done
    # A gate on lateness may be missed on a busy machine; what counts is that every task was answered.
    wait "$load" || true
    loses_nothing "$logs/upgrade.json"
    echo "processes ${before[*]}, then ${after[*]}"
    for unit in "${!units[@]}"; do [ "${before[unit]}" != "${after[unit]}" ]; done
    inside grep -q '^# mine' /etc/sluice/rack.toml
}

again_changes_nothing() {
    inside dpkg --install "/packages/$1"
    is_active sluice-switch sluice-worker@spin-1
    inside systemctl reload sluice-switch sluice-worker@spin-1
    sleep 0.5
    is_active sluice-switch sluice-worker@spin-1
}

# fails_with UNIT TEXT: it is `failed` after exit code 2, was not started again, and its last line says why.
fails_with() {
    local said
    no inside systemctl start "$1"
    inside systemctl is-failed --quiet "$1"
    [ "$(inside systemctl show --property ExecMainStatus --value "$1")" = 2 ]
    [ "$(restarts_of "$1")" = 0 ]
    said=$(inside journalctl --no-pager --output cat --unit "$1" _COMM=sluice | tail -n 1)
    echo "$1: $said"
    [[ $said == *"$2"* ]]
    { inside systemctl status --no-pager "$1" || true; } | grep -F -e "$2"
}

refuses_bad_input() {
    # The ports of sluice-switch, which runs: of its metrics, of its tasks, of its controller.
    fails_with sluice-switch@second 'metrics cannot be served on 127.0.0.1:9464: Address already in use'
    set_options sluice-switch@second '--metrics 127.0.0.1:0'
    fails_with sluice-switch@second '127.0.0.1:7000: Address already in use'
    set_options sluice-switch@second '--metrics 127.0.0.1:0 --listen 127.0.0.1:0'
    fails_with sluice-switch@second '127.0.0.1:7400: Address already in use'
    inside systemctl stop sluice-switch
    inside mount --bind /var/lib/sluice/switch /var/lib/sluice/switch
    inside mount -o remount,bind,ro /var/lib/sluice/switch
    fails_with sluice-switch 'Read-only'
    inside umount /var/lib/sluice/switch
    inside sed -i 's/^name = /nmae = /' /etc/sluice/rack.toml
    fails_with sluice-switch 'unknown key `nmae`'
    inside sed -i 's/^nmae = /name = /' /etc/sluice/rack.toml
    set_options sluice-switch --metrix
    fails_with sluice-switch '--metrics'
    inside rm /etc/sluice/sluice-switch.env
    inside systemctl start sluice-switch
    serves_load
}

# A crash is no bad input: it starts again.
comes_back_after_a_crash() {
    inside systemctl kill --signal KILL sluice-switch sluice-worker@spin-1
    until_true 60 is_active sluice-switch sluice-worker@spin-1
    serves_load
}

runs_in_the_kernel() {
    set_options sluice-switch-xdp '--interface lo --listen 127.0.0.1:7000'
    inside systemctl start sluice-switch-xdp
    no is_active sluice-switch
    runs_as_sluice sluice-switch-xdp
    capabilities_are sluice-switch-xdp 000000c000001000
    serves_load
    inside systemctl restart sluice-switch-xdp
    serves_load
    inside systemctl stop sluice-switch-xdp
    inside sluice switch /etc/sluice/rack.toml --io xdp --detach --pins /sys/fs/bpf/sluice/switch
    inside rm /etc/sluice/sluice-switch-xdp.env
    inside systemctl start sluice-switch
}

page_shows_the_rack() { inside curl --silent --fail http://127.0.0.1:7410/state.json | grep -q '"spin"'; }

has_a_page() {
    inside systemctl start sluice-dashboard
    until_true 60 page_shows_the_rack
    inside systemctl stop sluice-dashboard
}

# As a client of Redis asks.
speaks_resp() {
    inside bash -c 'exec 3<>/dev/tcp/127.0.0.1/6379 && printf "PING\r\n" >&3 && read -r -t 5 said <&3 && [[ $said == +PONG* ]]'
}

has_a_gateway() {
    set_options sluice-gateway '--resp 127.0.0.1:6379'
    inside systemctl start sluice-gateway
    until_true 60 speaks_resp
    runs_as_sluice sluice-gateway
    capabilities_are sluice-gateway 0000000000000000
    inside systemctl stop sluice-gateway
    inside rm /etc/sluice/sluice-gateway.env
}

server_is_registered() { inside sluice status | grep '^ *one '; }

runs_apart() {
    set_options sluice-switch '--controller-apart --control 127.0.0.1:7401'
    set_options sluice-controller '--tables 127.0.0.1:7401'
    inside systemctl restart sluice-switch
    inside systemctl start sluice-controller
    serves_load
    inside systemctl stop sluice-controller
    inside rm /etc/sluice/sluice-switch.env /etc/sluice/sluice-controller.env
    inside sed -i 's/^servers = 0/servers = 1/' /etc/sluice/rack.toml
    inside systemctl restart sluice-switch
    inside systemctl start sluice-server@one
    until_true 60 server_is_registered
    is_active sluice-server@one
    inside sed -i 's/^servers = 1/servers = 0/' /etc/sluice/rack.toml
    inside systemctl stop sluice-server@one
    inside systemctl restart sluice-switch
    set_options sluice-switch@second '--listen 127.0.0.1:7010 --control 127.0.0.1:7410 --metrics 127.0.0.1:9474'
    inside systemctl start sluice-switch@second
    is_active sluice-switch@second
    inside sluice status --controller 127.0.0.1:7410
    inside systemctl stop sluice-switch@second
}

removes() {
    inside apt-get remove --yes --quiet sluice
    no inside pgrep -u sluice
    inside test -e /etc/sluice/rack.toml -a -e /var/lib/sluice/switch/epoch
    inside getent passwd sluice
    install_package "/packages/$1"
    is_active sluice-switch
}

purges() {
    inside apt-get purge --yes --quiet sluice
    no inside pgrep --full /usr/bin/sluice
    no inside getent passwd sluice
    local left
    left=$(inside find / -xdev -name '*sluice*' -not -path '/proc/*' -not -path '/packages*' -not -path '/var/cache/apt/*' \
        -not -path '/var/log/*' -not -path '/sys/*')
    echo "left: $left"
    # What the administrator wrote stays.
    [ "$left" = "/etc/sluice
/etc/sluice/sluice-switch@second.env" ]
}
