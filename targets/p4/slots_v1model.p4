/* SPDX-License-Identifier: Apache-2.0 */
/* Which servers get a copy of a task that is written ahead, and into which slot, as the model computes it. */
#ifndef SLOTS_P4
#define SLOTS_P4

control Slots(inout headers_t hdr, in bit<16> server, out bit<1> gets_copy, out bit<32> number) {
#include "copies.p4"

    bit<1> has_ring = 0;
    bit<64> address = 0;
    bit<32> slots_less_one = 0;
    bit<32> slot_bytes = 0;
    bit<32> rank = 0;
    bit<32> members = 0;
    bit<32> copies = 0;
    bit<32> ticket = 0;
    bit<32> turn = 0;
    bit<32> place = 0;

    action is_ring(bit<32> key, bit<64> first, bit<32> mask, bit<32> bytes, bit<32> members_before) {
        has_ring = 1;
        hdr.write.rkey = key;
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

    apply {
        rings.apply();
        groups.apply();
        ticket = TICKET_OF(hdr.told.ticket);
        /* The servers of a slice take turns: the remainder of the ticket. */
        hash(turn, HashAlgorithm.identity, 32w0, { ticket }, members);
        place = rank - turn;
        if (rank < turn) {
            place = place + members;
        }
        gets_copy = 0;
        number = 0;
        if (has_ring == 1 && (copies == 0 || place < copies)) {
            gets_copy = 1;
            RUN(next_number, server, number);
        }
        address = address + (32w0 ++ (ticket & slots_less_one)) * (32w0 ++ slot_bytes);
        hdr.write.address_high = address[63:32];
        hdr.write.address_low = address[31:0];
    }
}

#endif
