/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters that each worker is told. `seen_out` holds what `seen` holds, at a stage that a packet reaches after it
 * was given a worker.
 */
#ifndef NUMBERS_P4
#define NUMBERS_P4

/* Where a program has no other room for an array, it pins the array to a stage of the chip. */
#ifndef AT_STAGE_OF_SENT
#define AT_STAGE_OF_SENT
#define AT_STAGE_OF_SEEN
#endif

control Numbers(inout headers_t hdr, inout pass_t pass) {
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, sent, 0)
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, seen_out, 0)

    ACCESS(send_next, sent, bit<32>, bit<32>, worker_index_t, bit<32>) {
        value = value + 1;
        result = value;
    } DONE(sent, bit<32>)

    ACCESS(read_sent, sent, bit<32>, bit<32>, worker_index_t, bit<32>) {
        result = value;
    } DONE(sent, bit<32>)

    ACCESS(see_next, seen_out, bit<32>, bit<32>, worker_index_t, bit<32>) {
        value = value + 1;
        result = value;
    } DONE(seen_out, bit<32>)

    ACCESS(read_seen, seen_out, bit<32>, bit<32>, worker_index_t, bit<32>) {
        result = value;
    } DONE(seen_out, bit<32>)

    action count_sent() {
        RUN(send_next, hdr.sluice.worker, hdr.bridge.sent);
    }

    action tell_sent() {
        RUN(read_sent, hdr.sluice.worker, hdr.bridge.sent);
    }

    AT_STAGE_OF_SENT table packets_sent {
        key = {
            pass.role: ternary;
            hdr.bridge.made: ternary;
        }
        actions = { count_sent; tell_sent; NoAction; }
        const default_action = NoAction;
        const entries = {
            (_, KIND_DISPATCH): count_sent();
            (_, KIND_EMPTY): count_sent();
            (ROLE_ASKS, _): tell_sent();
        }
    }

    action count_seen() {
        RUN(see_next, hdr.sluice.worker, hdr.bridge.seen);
    }

    action tell_seen() {
        RUN(read_seen, hdr.sluice.worker, hdr.bridge.seen);
    }

    AT_STAGE_OF_SEEN table tokens_seen {
        key = {
            pass.role: ternary;
            hdr.bridge.made: ternary;
        }
        actions = { count_seen; tell_seen; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TOKEN, _): count_seen();
            (_, KIND_DISPATCH): tell_seen();
            (_, KIND_EMPTY): tell_seen();
            (ROLE_ASKS, _): tell_seen();
        }
    }

    apply {
        packets_sent.apply();
        tokens_seen.apply();
    }
}

#endif
