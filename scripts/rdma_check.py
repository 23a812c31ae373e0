"""Compares a capture of RoCEv2 frames with the table of what is in them: through tshark and, if it is there, scapy.

Called by scripts/rdma-check with the folder that holds roce.pcap and roce.tsv.
"""

import csv
import struct
import subprocess
import sys
from pathlib import Path

# Our column, tshark's field, and how tshark writes its numbers.
FIELDS = [
    ("source_port", "udp.srcport", 10),
    ("opcode", "infiniband.bth.opcode", 10),
    ("padding", "infiniband.bth.padcnt", 10),
    ("qpn", "infiniband.bth.destqp", 0),
    ("ack_request", "infiniband.bth.a", 10),
    ("psn", "infiniband.bth.psn", 10),
    ("address", "infiniband.reth.va", 0),
    ("rkey", "infiniband.reth.r_key", 0),
    ("length", "infiniband.reth.dmalen", 0),
    ("syndrome", "infiniband.aeth.syndrome", 0),
    ("messages", "infiniband.aeth.msn", 10),
]
# What is the same in every frame.
CONSTANTS = {
    "udp.dstport": "4791",
    "infiniband.bth.se": "0",
    "infiniband.bth.m": "1",
    "infiniband.bth.tver": "0",
    "infiniband.bth.p_key": "65535",
    "infiniband.bth.reserved7": "0",
    "_ws.expert.message": "",
    "_ws.malformed": "",
}
ADDRESSES = ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst"]
# Of IPv4, what the iCRC takes for granted on plain sockets, and that the checksum holds.
IPV4 = {"ip.id": "0x0000", "ip.flags.df": "1", "ip.checksum.status": "1"}
BYTES = ["infiniband.payload", "data.data", "infiniband.invariant.crc"]


def main(folder):
    with open(folder / "roce.tsv", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    wrong = with_tshark(folder / "roce.pcap", rows)
    print(f"tshark: {len(rows)} frames, {len(FIELDS) + len(CONSTANTS) + 5} fields of each, {len(wrong)} differ")
    frames = list(read_frames(folder / "roce.pcap"))
    try:
        more = with_scapy(frames)
        print(f"scapy: {len(frames)} frames built again with its own iCRC, {len(more)} differ")
        wrong += more
    except ImportError:
        pass
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong or not rows or len(rows) != len(frames) else 0


def with_tshark(capture, rows):
    names = [name for _, name, _ in FIELDS] + list(CONSTANTS) + ADDRESSES + list(IPV4) + BYTES
    command = ["tshark", "-r", str(capture), "-T", "fields", "-E", "separator=/t"]
    command += ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    command += [word for name in names for word in ("-e", name)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = [dict(zip(names, line.split("\t"))) for line in done.stdout.splitlines()]
    if len(found) != len(rows):
        return [f"tshark finds {len(found)} frames, not {len(rows)}"]
    pairs = enumerate(zip(rows, found), 1)
    return [f"frame {at}, tshark: {what}" for at, (row, frame) in pairs for what in differences(row, frame)]


def differences(row, frame):
    for column, name, base in FIELDS:
        seen = frame[name] and str(int(frame[name], base))
        if seen != row[column]:
            yield f"{name} is {seen}, not {row[column]}"
    for name, value in (CONSTANTS | (IPV4 if frame["ip.src"] else {})).items():
        if frame[name] != value:
            yield f"{name} is {frame[name]}, not {value}"
    if [frame["ip.src"] + frame["ipv6.src"], frame["ip.dst"] + frame["ipv6.dst"]] != [row["source"], row["destination"]]:
        yield "other addresses"
    # tshark shows the padding as part of the bytes.
    if (frame["infiniband.payload"] or frame["data.data"]) != row["payload"] + "00" * int(row["padding"]):
        yield "other bytes"
    if frame["infiniband.invariant.crc"] != "0x" + row["icrc"]:
        yield "another iCRC in its place"


def with_scapy(frames):
    from scapy.contrib.roce import BTH
    from scapy.layers.l2 import Ether

    wrong = []
    for at, frame in enumerate(frames, 1):
        packet = Ether(frame)
        packet[BTH].icrc = None
        if bytes(packet) != frame:
            wrong.append(f"frame {at}, scapy: {bytes(packet)[-4:].hex()}, not {frame[-4:].hex()}")
    return wrong


def read_frames(capture):
    data = capture.read_bytes()
    at = 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16 : at + 16 + length]
        at += 16 + length


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
