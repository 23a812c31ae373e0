"""Plants each bug of targets/p4/planted.txt, one at a time, and plays the vectors on BMv2 until one finds it.

Prints a table for targets/p4/README.md; exit 1 if one is not found, 2 if one cannot be planted. Needs the P4 tools
(P4_TOOLS). With arguments, only the bugs of these names.
"""

import os
import re
import sys

from planting import ROOT, bugs, built, complaint, plant_all

# The program whose vectors are played for a file; Rain's play for all others.
PROGRAMS = {"draconis.p4": "draconis", "pallas.p4": "pallas", "racksched.p4": "racksched"}
PROGRAMS |= {"wide_entry.p4": "draconis", "numbers.p4": "draconis", "rules.p4": "pallas"}


def find(folder, name):
    program = PROGRAMS.get(FILES[name], "rain")
    environment = {**os.environ, "P4_SOURCES": str(folder / "p4"), "P4_PROGRAM": program, "RUST_BACKTRACE": "0"}
    command = [BINARY, "the_programs_do_what_the_vectors_say", "--nocapture"]
    what, said = complaint(command, 600, cwd=ROOT, env=environment)
    if skipped := re.search(r"skipped: .*", said):
        sys.exit(skipped[0])
    # A bug that the compiler refuses would show nothing.
    return what, what is None or "refuses" not in what


if __name__ == "__main__":
    BINARY = built("sluice-bmv2", "vectors")
    FILES = {name: file for name, file, *_ in bugs(ROOT / "targets" / "p4")}
    plant_all("p4", find)
