/* SPDX-License-Identifier: Apache-2.0 */
/* How every scheduler's pass begins and ends, and what is counted there. */
#ifndef PASSES_P4
#define PASSES_P4

#include "times.p4"

/* The packet passes again. */
action pass_again(inout headers_t hdr, in pass_t pass, in bit<8> number) {
    hdr.bridge.to = TO_ROUND;
    hdr.round.setValid();
    hdr.round.number = number;
    hdr.round.link = pass.link;
    hdr.round.arrived_high = pass.arrived_high;
    hdr.round.arrived_low = pass.arrived_low;
}

control Begin(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    Arrival() arrival;

    /* Packets by kind as they came; those that recirculated and came back. */
    COUNTER(KINDS, came)
    COUNTER(KINDS, rounds_ended)

    apply {
        arrival.apply(hdr, pass, now);
        if (pass.is_round == 1) {
            COUNT(rounds_ended, hdr.sluice.kind);
            hdr.round.setInvalid();
        } else {
            COUNT(came, hdr.sluice.kind);
        }
    }
}

control End(inout headers_t hdr, inout pass_t pass) {
    /* Packets by kind as they left; those that recirculate; those that were refused, by reason. */
    COUNTER(KINDS, left)
    COUNTER(KINDS, rounds_begun)
    COUNTER(REFUSALS, refused)

    apply {
        hdr.bridge.slice = pass.slice;
        hdr.bridge.occupancy = pass.occupancy;
        hdr.bridge.ticket = pass.ticket;
        /* A task that recirculates may outlive its client's registration. */
        if (hdr.bridge.made == KIND_REJECT && hdr.sluice.kind == KIND_SUBMIT && pass.known == 0) {
            hdr.bridge.to = TO_NOBODY;
            pass.refusal = REFUSAL_UNKNOWN_SOURCE;
        }
        if (pass.refusal != REFUSAL_NONE) {
            COUNT(refused, pass.refusal);
        }
        if (hdr.bridge.to == TO_ROUND) {
            COUNT(rounds_begun, hdr.sluice.kind);
        } else if (hdr.bridge.made != KIND_NONE && hdr.bridge.to != TO_NOBODY) {
            COUNT(left, hdr.bridge.made);
        }
    }
}

#endif
