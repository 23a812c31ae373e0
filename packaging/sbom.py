"""Writes the SBOM of the package as CycloneDX 1.5: sbom.py VERSION FILE. It lists the crates that `sluice` and
`sluice-rocksdb` are built from, with versions, licences and checksums, as Cargo.lock has them."""

import datetime
import json
import os
import subprocess
import sys
import tomllib
import uuid

PROGRAMS = ["sluice-cli", "sluice-rocksdb", "sluice-c"]
TARGET = "x86_64-unknown-linux-gnu"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def closure(nodes, roots):
    """What is linked in: without what only builds or tests need."""
    found, todo = {}, list(roots)
    while todo:
        package = todo.pop()
        if package not in found:
            kinds = lambda dependency: {kind["kind"] for kind in dependency["dep_kinds"]}
            found[package] = [d["pkg"] for d in nodes[package]["deps"] if None in kinds(d)]
            todo.extend(found[package])
    return found


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    told = {"type": "library", "bom-ref": purl(package), "name": package["name"], "version": package["version"],
            "purl": purl(package)}
    if package["license"]:
        # The slash is an older way to write a choice.
        told["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        told["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return told


def main(version, file):
    metadata = json.loads(output("cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={TARGET}"))
    with open("Cargo.lock", "rb") as lock:
        locked = tomllib.load(lock)["package"]
    checksums = {(p["name"], p["version"]): p["checksum"] for p in locked if "checksum" in p}
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    roots = [package["id"] for package in metadata["packages"] if package["name"] in PROGRAMS]
    linked = closure(nodes, roots)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))
    whole = f"pkg:deb/debian/sluice@{version}?arch=amd64"
    edges = [{"ref": purl(packages[of]), "dependsOn": sorted({purl(packages[on]) for on in on_them})}
             for of, on_them in linked.items()]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{whole}#{epoch}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": whole, "name": "sluice", "version": version, "purl": whole,
                          "licenses": [{"expression": "Apache-2.0"}]},
        },
        "components": sorted((component(packages[package], checksums) for package in linked), key=lambda c: c["purl"]),
        "dependencies": sorted(edges, key=lambda edge: edge["ref"])
        + [{"ref": whole, "dependsOn": sorted(purl(packages[root]) for root in roots)}],
    }
    with open(file, "w", encoding="utf-8") as out:
        json.dump(bom, out, indent=1)
        out.write("\n")


main(*sys.argv[1:])
