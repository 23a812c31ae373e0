# Bare Debian trees: what scripts/fresh and scripts/packages share. Sourced, not run.

# Says why no tree can be made here, if none can.
why_no_tree() {
    [ "$(id -u)" -eq 0 ] || { echo 'this needs root'; return; }
    unshare --mount --pid --fork true 2>/dev/null || { echo 'this process may not make namespaces'; return; }
    command -v mmdebstrap >/dev/null ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap; } >/dev/null 2>&1 ||
        echo 'mmdebstrap cannot be installed'
}

# make_tree TREE PACKAGES: Debian's own sources and how apt gets there, as this machine has it; mmdebstrap knows the usual
# ones. PACKAGES, with commas between, are there besides Debian's essential packages and apt.
make_tree() {
    local tree=$1 packages=$2 source
    local sources=() config=$tree.apt.conf
    for source in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
        if grep -qsw bookworm "$source"; then sources+=("$source"); fi
    done
    apt-config dump | grep -E '^Acquire::(http|https|ftp|Check|Retries|ForceIPv)' >"$config" || true
    # It is thrown away: nothing has to reach the disk for certain.
    rm -rf "$tree" && mmdebstrap --quiet --mode=root --variant=apt --aptopt="$config" --dpkgopt=force-unsafe-io \
        --include="$packages" bookworm "$tree" "${sources[@]}"
}
