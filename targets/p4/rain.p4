/* SPDX-License-Identifier: Apache-2.0 */
/* Rain's ingress and egress, which both tops share. */
#ifndef RAIN_P4
#define RAIN_P4

#include "sources.p4"
#include "queue.p4"
#include "entry.p4"
#include "tokens.p4"
#include "times.p4"
#include "replies.p4"

control Rain(inout headers_t hdr, inout pass_t pass, in bit<64> now) {
    Arrival() arrival;
    Sources() sources;
    Queue() queue;
    Tokens() tokens;
    Entry() entry;

    /* Packets by kind as they came, and as they left; those that recirculated, and came back. */
    COUNTER(KINDS, came)
    COUNTER(KINDS, left)
    COUNTER(KINDS, rounds_begun)
    COUNTER(KINDS, rounds_ended)
    COUNTER(REFUSALS, refused)

    apply {
        hdr.bridge.setValid();
        hdr.bridge.made = KIND_NONE;
        hdr.bridge.code = 0;
        hdr.bridge.to = TO_NOBODY;
        hdr.bridge.waited = 0;
        hdr.bridge.ahead = 0;
        hdr.bridge.seen = 0;
        hdr.bridge.sent = 0;
        hdr.bridge.ticket = 0;
        hdr.bridge.slice = 0;
        hdr.bridge.occupancy = 0;
        pass.refusal = REFUSAL_NONE;
        arrival.apply(hdr, now);
        if (hdr.round.isValid()) {
            COUNT(rounds_ended, hdr.sluice.kind);
            pass.round = hdr.round.number;
            pass.link = hdr.round.link[8:0];
            hdr.bridge.arrived_high = hdr.round.arrived_high;
            hdr.bridge.arrived_low = hdr.round.arrived_low;
            hdr.round.setInvalid();
            pass.is_round = 1;
        } else {
            COUNT(came, hdr.sluice.kind);
        }

        sources.apply(hdr, pass);
        queue.apply(hdr, pass);
        entry.apply(hdr, pass);
        tokens.apply(hdr, pass);

        hdr.bridge.epoch = pass.epoch;
        hdr.bridge.slice = pass.slice;
        hdr.bridge.ahead = 3w0 ++ pass.ahead;
        if (pass.ring == RING_PARK_TASK && pass.ahead == 1) {
            hdr.bridge.to = TO_SERVERS;
        }
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
