# What the packages share. Sourced by packaging/build-deb and packaging/build-dev-deb, in the repository's root. `tree` is the
# package's tree, `name` its name, `version` its version.

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export LC_ALL=C TZ=UTC
umask 022
# It names no address: the package is built where it is used.
maintainer='Sluice <sluice@packages.invalid>'

put() { install -D -m 644 "$1" "$tree/$2"; }

# Licence and changelogs.
write_docs() {
    local doc=$tree/usr/share/doc/$name
    put packaging/deb/copyright "usr/share/doc/$name/copyright"
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
    cat <<TEXT | gzip -9nc >"$doc/changelog.Debian.gz"
$name ($version) unstable; urgency=medium

  * A package of this version; changelog.gz says what is new in it.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
}

# Sums of all files but configuration.
write_sums() {
    (cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) |
        grep -v ' etc/' >"$tree/DEBIAN/md5sums"
}

installed_size() { du -sk --apparent-size --exclude=DEBIAN "$tree" | cut -f 1; }

# make_deb FILE: the package, from its tree.
make_deb() {
    find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
    mkdir -p "${1%/*}"
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$1" >/dev/null
}
