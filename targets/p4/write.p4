/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are written ahead (Rain §3.2.2): a large task that waits leaves as a RoCEv2 WRITE, copied to the servers
 * of its slice, and each copy gets what its server checks.
 *
 * For v1model only: README.md says what a chip needs first.
 */
#ifndef WRITE_P4
#define WRITE_P4

/* WRITE-Only over an unreliable connection. */
const bit<8> OPCODE_WRITE = 0x2a;
/* The path is the one that the connection migrated to; idle adapters set this bit. */
const bit<8> MIGRATED = 0x40;
const bit<16> PARTITION = 0xffff;
/* UDP, BTH, RETH, the slot's head and the iCRC. */
const bit<16> WRITE_BYTES = 8 + 12 + 16 + 12 + 4;
const bit<16> SLOT_HEAD_BYTES = 12;

control Write(inout headers_t hdr, in bit<16> server) {
    REGISTER(bit<32>, bit<32>, bit<16>, SERVERS, numbers, 0)
    COUNTER(SERVERS, written)

    bit<1> has_server = 0;
    bit<1> has_ring = 0;
    bit<24> qpn = 0;
    bit<32> rkey = 0;
    bit<64> address = 0;
    bit<32> slots_less_one = 0;
    bit<32> slot_bytes = 0;
    bit<32> rank = 0;
    bit<32> members = 0;
    bit<32> copies = 0;
    bit<32> ticket = 0;
    bit<32> turn = 0;
    bit<32> place = 0;
    bit<32> number = 0;
    bit<16> padding = 0;

    ACCESS(next_number, numbers, bit<32>, bit<32>, bit<16>, bit<32>) {
        result = value;
        value = value + 1;
    } DONE(numbers, bit<32>)

    action is_pair(bit<24> pair) {
        has_server = 1;
        qpn = pair;
    }

    table pairs {
        key = { server: exact; }
        actions = { is_pair; NoAction; }
        default_action = NoAction;
        size = SERVERS;
    }

    action is_ring(bit<32> key, bit<64> first, bit<32> mask, bit<32> bytes, bit<32> members_before) {
        has_ring = 1;
        rkey = key;
        address = first;
        slots_less_one = mask;
        slot_bytes = bytes;
        rank = members_before;
    }

    table rings {
        key = { hdr.told.slice: exact; server: exact; }
        actions = { is_ring; NoAction; }
        default_action = NoAction;
        size = SLICES * SERVERS;
    }

    action is_group(bit<32> servers, bit<32> most) {
        members = servers;
        copies = most;
    }

    table groups {
        key = { hdr.told.slice: exact; }
        actions = { is_group; NoAction; }
        default_action = NoAction;
        size = SLICES;
    }

    action become_write() {
        address = address + (32w0 ++ (ticket & slots_less_one)) * (32w0 ++ slot_bytes);
        padding = 14w0 ++ (0 - hdr.sluice.length)[1:0];
        hdr.write.setValid();
        hdr.write.opcode = OPCODE_WRITE;
        hdr.write.flags = MIGRATED | (2w0 ++ padding[1:0] ++ 4w0);
        hdr.write.partition = PARTITION;
        hdr.write.unused = 0;
        hdr.write.qpn = qpn;
        hdr.write.asks = 0;
        hdr.write.psn = number[23:0];
        hdr.write.address = address;
        hdr.write.rkey = rkey;
        hdr.write.length = 16w0 ++ (SLOT_HEAD_BYTES + hdr.sluice.length);
        hdr.write.incarnation = hdr.sluice.incarnation_high ++ hdr.sluice.incarnation_low;
        hdr.write.sequence = hdr.sluice.sequence;
        hdr.icrc.setValid();
        hdr.icrc.icrc = 0;
        hdr.udp.length = WRITE_BYTES + hdr.sluice.length + padding;
        hdr.sluice.setInvalid();
    }

    apply {
        pairs.apply();
        rings.apply();
        groups.apply();
        ticket = TICKET_OF(hdr.told.ticket);
        /* The servers of a slice take turns: the remainder of the ticket. */
        hash(turn, HashAlgorithm.identity, 32w0, { ticket }, members);
        place = rank - turn;
        if (rank < turn) {
            place = place + members;
        }
        if (has_server == 1 && has_ring == 1 && (copies == 0 || place < copies)) {
            RUN(next_number, server, number);
            become_write();
            if (padding != 0) {
                hdr.padding[0].setValid();
                hdr.padding[0].zero = 0;
            }
            if (padding > 1) {
                hdr.padding[1].setValid();
                hdr.padding[1].zero = 0;
            }
            if (padding > 2) {
                hdr.padding[2].setValid();
                hdr.padding[2].zero = 0;
            }
            COUNT(written, server);
        } else {
            hdr.told.to = TO_NOBODY;
        }
    }
}

#endif
