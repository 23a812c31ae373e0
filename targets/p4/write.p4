/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are written ahead (Rain §3.2.2): a large task that waits leaves as a RoCEv2 WRITE, copied to the servers
 * of its slice by a multicast group whose replication ids are the servers' indices. At egress each copy gets what its
 * server checks.
 *
 * The headers become shorter. What is behind them stays: the task's bytes, and then the padding and the iCRC, which
 * the SUBMIT brought as zeros.
 *
 * `Slots` says which servers get a copy, into which slot, and numbers it: slots_v1model.p4 and slots_tna.p4.
 */
#ifndef WRITE_P4
#define WRITE_P4

/* WRITE-Only over an unreliable connection. */
const bit<8> OPCODE_WRITE = 0x2a;
/* The path is the one that the connection migrated to; idle adapters set this bit. */
const bit<8> MIGRATED = 0x40;
const bit<16> PARTITION = 0xffff;
const bit<16> SLOT_HEAD_BYTES = 12;
/* UDP, BTH, RETH, the slot's head and the iCRC. */
const bit<16> WRITE_BYTES = 8 + 12 + 16 + 12 + 4;

control Write(inout headers_t hdr, in bit<16> server, inout bit<1> is_dropped) {
    Slots() slots;

    COUNTER(SERVERS, written)

    bit<1> gets_copy = 0;
    bit<32> number = 0;

    action is_pair(bit<24> pair) {
        hdr.write.qpn = pair;
        COUNT(written, server[7:0]);
    }

    action no_pair() {
        is_dropped = 1;
    }

    @ternary(1) table pairs {
        key = { server: exact; }
        actions = { is_pair; @defaultonly no_pair; }
        default_action = no_pair;
        size = SERVERS;
    }

    action pads(bit<8> flags) {
        hdr.write.flags = flags;
    }

    /* A WRITE is whole words. The flags say how many of its bytes before the iCRC are padding. */
    table paddings {
        key = { hdr.sluice.length[1:0]: exact @name("length"); }
        actions = { pads; }
        const default_action = pads(MIGRATED);
        const entries = {
            1: pads(MIGRATED | 0x30);
            2: pads(MIGRATED | 0x20);
            3: pads(MIGRATED | 0x10);
        }
    }

    action become_write() {
        hdr.write.opcode = OPCODE_WRITE;
        hdr.write.partition = PARTITION;
        hdr.write.unused = 0;
        hdr.write.asks = 0;
        hdr.write.length_high = 0;
        hdr.write.length = SLOT_HEAD_BYTES + hdr.sluice.length;
        hdr.write.incarnation_high = hdr.sluice.incarnation_high;
        hdr.write.incarnation_low = hdr.sluice.incarnation_low;
        hdr.write.sequence = hdr.sluice.sequence;
        hdr.udp.length = hdr.sluice.length + (WRITE_BYTES + 3);
    }

    action end_with_word() {
        hdr.udp.length = hdr.udp.length & 0xfffc;
        hdr.write.psn = number[23:0];
        hdr.sluice.setInvalid();
    }

    apply {
        hdr.write.setValid();
        slots.apply(hdr, server, gets_copy, number);
        if (gets_copy == 1) {
            pairs.apply();
        } else {
            is_dropped = 1;
        }
        paddings.apply();
        become_write();
        end_with_word();
    }
}

#endif
