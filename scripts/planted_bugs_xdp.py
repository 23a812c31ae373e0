"""Plants each bug of targets/ebpf/planted.txt, one at a time, and runs the tests of the XDP program until it is found.

Prints a table for targets/ebpf/README.md; exit 1 if one is not found, 2 if one cannot be planted. Takes root.
With arguments, only the bugs of these names: `scripts/planted_bugs_xdp.py "ages are rounded down"`.
"""

import os
import subprocess

from planting import ROOT, built, complaint, plant_all


def build(folder):
    command = ["make", "-sC", str(folder / "ebpf"), f"OUT={folder}"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def find(folder, name):
    """What the tests say of the planted bug, and whether the program could be built with it."""
    made = build(folder)
    if made.returncode:
        return f"does not build: {made.stderr.splitlines()[0]}", False
    crowd = name.startswith("crowd:")
    longer = {"XDP_CROWD": "1000000"} if crowd else {"XDP_SEEDS": "300"}
    environment = {**os.environ, **longer, "XDP_OBJECTS": str(folder), "RUST_BACKTRACE": "0"}
    command = [BINARY, "many_at_once"] if crowd else [BINARY]
    return complaint(command, 60, cwd=ROOT / "crates" / "run" / "net", env=environment)[0], True


if __name__ == "__main__":
    BINARY = built("sluice-kernel", "xdp")
    plant_all("ebpf", find)
