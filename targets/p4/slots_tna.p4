/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which servers get a copy of a task that is written ahead, and into which slot, as a chip computes it: without
 * multiplication and remainder.
 *
 * A slot has a power of two bytes, and a ring begins at a multiple of its own length. So a slot's address is the
 * ring's first address with the ticket in the bits above those within a slot. `shifts` moves the ticket there, for
 * the sizes that there are, and `rings` says which of its bits count.
 *
 * The servers of a slice take turns: which of them get a copy stands in a table by the ticket's low bits. With a
 * number of members that divides TURNS the turns are the model's.
 */
#ifndef SLOTS_P4
#define SLOTS_P4

/* The binary logarithm of how many turns the tables tell apart. */
#define TURN_BITS 6

control Slots(inout headers_t hdr, in bit<16> server, out bit<1> gets_copy, out bit<32> number) {
#include "copies.p4"

    bit<32> mask = 0;
    bit<32> first = 0;
    bit<32> slot = 0;
    bit<3> size_code = 0;

    /* `size` counts from slots of 64 bytes; `bits` are those of a slot's place in the ring. */
    action is_ring(bit<32> key, bit<32> first_high, bit<32> first_low, bit<32> bits, bit<3> size) {
        hdr.write.rkey = key;
        hdr.write.address_high = first_high;
        first = first_low;
        mask = bits;
        size_code = size;
    }

    table rings {
        key = { hdr.told.slice: exact; server: exact; }
        actions = { is_ring; @defaultonly NoAction; }
        default_action = NoAction;
        size = SLICES * SERVERS;
    }

    /* The slice's number below the ticket's count falls into the bits within a slot, which the mask leaves out. */
    action shift_6() { slot = hdr.told.ticket << 6 - SLICE_BITS; }
    action shift_7() { slot = hdr.told.ticket << 7 - SLICE_BITS; }
    action shift_8() { slot = hdr.told.ticket << 8 - SLICE_BITS; }
    action shift_9() { slot = hdr.told.ticket << 9 - SLICE_BITS; }
    action shift_10() { slot = hdr.told.ticket << 10 - SLICE_BITS; }
    action shift_11() { slot = hdr.told.ticket << 11 - SLICE_BITS; }
    action shift_12() { slot = hdr.told.ticket << 12 - SLICE_BITS; }

    table shifts {
        key = { size_code: exact; }
        actions = { shift_6; shift_7; shift_8; shift_9; shift_10; shift_11; shift_12; }
        const default_action = shift_12;
        const entries = {
            0: shift_6;
            1: shift_7;
            2: shift_8;
            3: shift_9;
            4: shift_10;
            5: shift_11;
        }
    }

    action in_ring() {
        slot = slot & mask;
    }

    action place() {
        hdr.write.address_low = slot | first;
    }

    action is_turn() {
        gets_copy = 1;
        RUN(next_number, server, number);
    }

    /*
     * The look-up's action takes the copy's number, at a stage that has the room.
     *
     * One entry for a server that gets every copy, otherwise one for each of its turns. The key is narrow, so that it
     * takes one block of TCAM for 512 entries.
     */
    @stage(1) table turns {
        key = {
            hdr.told.slice[7:0]: ternary @name("slice");
            server[7:0]: ternary @name("server");
            hdr.told.ticket[SLICE_BITS + TURN_BITS - 1:SLICE_BITS]: ternary @name("turn");
        }
        actions = { is_turn; @defaultonly NoAction; }
        default_action = NoAction;
        size = 4096;
    }

    apply {
        gets_copy = 0;
        number = 0;
        rings.apply();
        turns.apply();
        shifts.apply();
        in_ring();
        place();
    }
}

#endif
