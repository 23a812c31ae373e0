/* SPDX-License-Identifier: Apache-2.0 */
/* Rain's ingress: its parts in order. */
#ifndef RAIN_P4
#define RAIN_P4

/* Large tasks that wait are written ahead. */
#define WRITES_AHEAD

#include "passes.p4"
#include "sources.p4"
#include "queue.p4"
#include "entry.p4"
#include "tokens.p4"
#include "replies.p4"

control Rain(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    Begin() begin;
    Sources() sources;
    Queue() queue;
    Tokens() tokens;
    Entry() entry;
    End() end;

    apply {
        begin.apply(hdr, pass, now);
        sources.apply(hdr, pass);
        queue.apply(hdr, pass);
        entry.apply(hdr, pass);
        tokens.apply(hdr, pass);
        if (pass.ring == RING_PARK_TASK && pass.ahead == 1) {
            hdr.bridge.to = TO_SERVERS;
        }
        end.apply(hdr, pass);
    }
}

#endif
