/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters that each worker is told. `seen_out` holds what `seen` holds, at a stage that a packet reaches after it
 * was given a worker.
 */
#ifndef NUMBERS_P4
#define NUMBERS_P4

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

    apply {
        if (hdr.bridge.made == KIND_DISPATCH || hdr.bridge.made == KIND_EMPTY) {
            RUN(send_next, hdr.sluice.worker, hdr.bridge.sent);
        } else if (pass.role == ROLE_ASKS) {
            RUN(read_sent, hdr.sluice.worker, hdr.bridge.sent);
        }
        if (pass.role == ROLE_TOKEN) {
            RUN(see_next, hdr.sluice.worker, hdr.bridge.seen);
        } else if (hdr.bridge.made == KIND_DISPATCH || hdr.bridge.made == KIND_EMPTY || pass.role == ROLE_ASKS) {
            RUN(read_seen, hdr.sluice.worker, hdr.bridge.seen);
        }
    }
}

#endif
