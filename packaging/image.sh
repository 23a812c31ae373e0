# The container's image: built and run without a daemon. Sourced by scripts/packages.

image=localhost/sluice:$version
# buildah and podman with a storage of their own.
storage() { echo "--root=$out/storage --runroot=$out/storage.run --storage-driver=vfs"; }

makes_the_image() {
    # The base is Debian's, made here: a build that is tried must not need a registry.
    local tree=$out/storage.base
    make_tree "$tree" base-files
    tar -C "$tree" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists -cf "$out/storage.base.tar" .
    rm -rf "$tree"
    printf 'FROM scratch\nADD storage.base.tar /\n' |
        buildah $(storage) build --isolation chroot --tag localhost/bookworm --file - "$out"
    rm "$out/storage.base.tar"
    buildah $(storage) build --isolation chroot --build-arg BASE=localhost/bookworm --build-arg "PACKAGE=$1" \
        --timestamp "$(git log -1 --format=%ct)" --tag "$image" --file packaging/Containerfile "$out"
    [ "$(buildah $(storage) inspect --type image --format '{{len .OCIv1.RootFS.DiffIDs}}' "$image")" -le 2 ]
    rm -f "$out/sluice_$version.oci.tar"
    buildah $(storage) push --quiet "$image" "oci-archive:$out/sluice_$version.oci.tar:sluice:$version"
}

# The image as the least trusted container: no rights, no network but its own, a read-only root.
image_runs() {
    cat >"$logs/in_image" <<'SH'
set -e
[ "$(id -u)" = 65532 ]
grep -q '^CapBnd:	0000000000000000$' /proc/self/status
if touch /written 2>/dev/null; then exit 1; fi
sluice switch /etc/sluice/rack.toml --state /var/lib/sluice &
until sluice status >/dev/null 2>&1; do sleep 0.1; done
sluice worker spin --slice spin &
sluice load --mix spin=1 --rate 100 --length 1s --json || true
SH
    # podman knows cgroup2 alone, and here it may not hold v1 beside it.
    unshare --mount bash -ec 'mount --make-rprivate /; umount -R /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup
        exec "$@"' _ \
        podman $(storage) --cgroup-manager=cgroupfs --runtime=crun run --rm --interactive --read-only --cap-drop=all \
        --security-opt=no-new-privileges --network=none --cgroups=disabled --ulimit=nofile=1024:1024 \
        --ulimit=nproc=1024:1024 --tmpfs=/var/lib/sluice:mode=1777 --entrypoint=sh "$image" -s \
        <"$logs/in_image" >"$logs/image.json"
    loses_nothing "$logs/image.json"
}
