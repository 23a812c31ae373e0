# A datacenter of units in a bare tree, with etcd. Sourced by scripts/packages.

both_spines=127.0.0.1:7401+127.0.0.1:7501,127.0.0.1:7402+127.0.0.1:7502
of_the_datacenter=(sluice-switch@spine-1 sluice-switch@spine-2 sluice-controller@a sluice-controller@b
    sluice-switch@leaf-1 sluice-switch@leaf-2 sluice-worker@spin-1 sluice-worker@spin-2)

datacenter_runs() {
    inside apt-get install --yes --quiet --no-install-recommends "/packages/$1" etcd-server
    python3 packaging/type_page.py docs/manual/packages.md "$init" 'A datacenter'
}

# All units run, both racks take tasks, and `sluice status` finds nothing wrong, nor a client that stopped.
datacenter_is_whole() {
    local status
    is_active "${of_the_datacenter[@]}" && status=$(inside sluice status --controller "$both_spines") &&
        ! grep -E '^wrong: |\(client-stopped\)' <<<"$status" && [ "$(grep -c ' open  ' <<<"$status")" = 2 ]
}

is_not_whole() {
    echo "not whole after: $1"
    inside systemctl is-active "${of_the_datacenter[@]}" | paste -sd ' '
    inside sluice status --controller "$both_spines" || true
}

# datacenter_bears WHAT COMMAND...: a load goes on while it happens and until all is whole again; each task has its outcome.
datacenter_bears() {
    local what=$1 load
    shift
    inside systemd-run --quiet --collect --unit load --property StandardOutput=truncate:/run/load.json \
        sluice load --controller "$both_spines" --mix spin=1 --rate 200 --warm-up 0s --length 120min --deadline 60s --json
    sleep 2
    "$@"
    until_true 240 datacenter_is_whole || { is_not_whole "$what"; return 1; }
    sleep 2
    inside systemctl stop load
    load=$(inside head --lines 1 /run/load.json)
    python3 - "$what" "$load" <<'PY'
import json, sys
what, tasks = sys.argv[1], json.loads(sys.argv[2])["tasks"]
print(what, tasks)
assert tasks["replied"] > 0 and tasks["lost"] == tasks["failed"] == 0
assert tasks["sent"] == tasks["replied"] + tasks["refused"] + tasks["unknown"]
PY
}

datacenter_survives() {
    local unit before
    for unit in etcd "${of_the_datacenter[@]}"; do
        datacenter_bears "$unit is killed" inside systemctl kill --signal KILL "$unit"
    done
    before=$(pid_of sluice-switch@leaf-1)
    datacenter_bears 'the upgrade' inside apt-get install --yes --quiet "/packages/$1"
    [ "$(pid_of sluice-switch@leaf-1)" != "$before" ]
}
