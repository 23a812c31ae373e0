# A rack with several controllers, the page and Prometheus in a bare tree. Sourced by scripts/packages.

rack_runs() {
    inside apt-get install --yes --quiet --no-install-recommends "/packages/$1" prometheus curl
    python3 packaging/type_page.py docs/manual/packages.md "$init" 'Several controllers'
}

rack_survives() { python3 packaging/rack_trial.py "$init" "/packages/$1" "$logs/rack.txt"; }

# Upgrades that went wrong elsewhere, each as a public report tells it. Each ends with the whole rack in order.
odd_upgrades() {
    local newer=$1 older=sluice-before.deb
    keeps_what_was_decided "$older"
    is_interrupted "$newer"
    meets_a_process_that_stands_still "$older"
    obeys_a_policy "$newer"
    is_repeated "$newer"
}

# A package that replaces what runs, over any version.
installs_over() { inside apt-get install --yes --quiet --allow-downgrades --reinstall "/packages/$1"; }
rack_is_whole() { python3 packaging/rack_trial.py "$init"; }

# What was stopped stays so, a mask is no failure, and an administrator's drop-in and flags outlive the package.
keeps_what_was_decided() {
    inside systemctl stop sluice-worker@spin-2
    inside systemctl mask --now --runtime sluice-dashboard
    inside mkdir -p /etc/systemd/system/sluice-worker@.service.d
    inside sh -c 'printf "[Service]\nEnvironment=MINE=1\n" >/etc/systemd/system/sluice-worker@.service.d/mine.conf'
    installs_over "$1"
    no is_active sluice-worker@spin-2
    no is_active sluice-dashboard
    inside grep -z MINE=1 "/proc/$(pid_of sluice-worker@spin-1)/environ"
    inside grep -q -- --controller-apart /etc/sluice/sluice-switch.env
    inside rm -r /etc/systemd/system/sluice-worker@.service.d
    inside systemctl unmask --runtime sluice-dashboard
    inside systemctl start sluice-worker@spin-2 sluice-dashboard
    rack_is_whole
}

# dpkg is killed while the package's script replaces processes; `dpkg --configure` ends what was begun.
is_interrupted() {
    local before
    before=$(pid_of sluice-worker@spin-2)
    inside systemd-run --quiet --collect --unit interrupted --setenv DEBIAN_FRONTEND=noninteractive \
        dpkg --install "/packages/$1"
    until_true 120 inside pgrep --full 'sluice.postinst configure'
    inside systemctl kill --signal KILL interrupted || true
    inside dpkg --configure --pending
    [ "$(inside dpkg-query --show --showformat '${db:Status-Status}' sluice)" = installed ]
    [ "$(pid_of sluice-worker@spin-2)" != "$before" ]
    rack_is_whole
}

# The upgrade does not hang on it: it goes on, and ends.
meets_a_process_that_stands_still() {
    inside systemctl kill --signal STOP sluice-worker@spin-1 sluice-controller@a
    installs_over "$1"
    rack_is_whole
}

# policy-rc.d forbids restarts: what runs goes on, of programs that are no longer there, until it is restarted by hand.
obeys_a_policy() {
    local unit before
    before=$(pid_of sluice-switch)
    inside sh -c 'printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d'
    installs_over "$1"
    inside rm /usr/sbin/policy-rc.d
    [ "$(pid_of sluice-switch)" = "$before" ]
    rack_is_whole
    # Killed, it comes back as the new program.
    inside systemctl kill --signal KILL sluice-switch sluice-controller@a sluice-controller@b
    rack_is_whole
    no inside sh -c "readlink /proc/$(pid_of sluice-switch)/exe | grep deleted"
}

# More often in a row than a start limit would bear.
is_repeated() {
    local time
    for time in 1 2 3 4 5 6; do inside dpkg --install "/packages/$1"; done
    for time in 1 2 3 4 5 6; do inside systemctl restart sluice-switch sluice-controller@a; done
    rack_is_whole
}
