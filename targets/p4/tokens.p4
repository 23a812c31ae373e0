/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parked tokens, the generation that a token must have to be used, and the counters that each worker is told.
 *
 * `seen_out` holds what `seen` holds, at a stage that a packet reaches after it took a token.
 */
#ifndef TOKENS_P4
#define TOKENS_P4

control Tokens(inout headers_t hdr, inout pass_t pass) {
    REGISTER(bit<16>, bit<16>, token_index_t, TOKENS, token_worker, 0)
    REGISTER(bit<32>, bit<32>, token_index_t, TOKENS, token_generation, 0)
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, gen_out, 0)
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, sent, COUNTERS_START)
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, seen_out, COUNTERS_START)

    ACCESS_ONLY(keep_worker, token_worker, bit<16>, bit<16>, token_index_t) {
        value = hdr.sluice.worker;
    } DONE(token_worker, bit<16>)

    ACCESS(take_worker, token_worker, bit<16>, bit<16>, token_index_t, bit<16>) {
        result = value;
    } DONE(token_worker, bit<16>)

    ACCESS_ONLY(keep_generation, token_generation, bit<32>, bit<32>, token_index_t) {
        value = hdr.sluice.generation;
    } DONE(token_generation, bit<32>)

    ACCESS(take_generation, token_generation, bit<32>, bit<32>, token_index_t, bit<32>) {
        result = value;
    } DONE(token_generation, bit<32>)

    ACCESS(is_of_generation, gen_out, bit<32>, bit<32>, worker_index_t, bit<8>) {
        if (value == hdr.sluice.generation) {
            result = 1;
        }
    } DONE(gen_out, bit<32>)

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

    action park() {
        RUN_ONLY(keep_worker, (token_index_t) pass.ticket);
    }

    action take() {
        RUN(take_worker, (token_index_t) pass.ticket, hdr.sluice.worker);
    }

    table token_worker_column {
        key = { pass.ring: exact; }
        actions = { park; take; NoAction; }
        const default_action = NoAction;
        const entries = {
            RING_PARK_TOKEN: park();
            RING_TAKE_TOKEN: take();
        }
    }

    action park_generation() {
        RUN_ONLY(keep_generation, (token_index_t) pass.ticket);
    }

    action fetch_generation() {
        RUN(take_generation, (token_index_t) pass.ticket, hdr.sluice.generation);
    }

    table token_generation_column {
        key = { pass.ring: exact; }
        actions = { park_generation; fetch_generation; NoAction; }
        const default_action = NoAction;
        const entries = {
            RING_PARK_TOKEN: park_generation();
            RING_TAKE_TOKEN: fetch_generation();
        }
    }

    action is_there(bit<9> link) {
        pass.worker_there = 1;
        pass.worker_link = link;
    }

    /* The links of workers that a token may name. */
    table worker_links {
        key = { hdr.sluice.worker: exact; }
        actions = { is_there; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    action leads_to(bit<9> link) {
        pass.client_there = 1;
        pass.link = link;
    }

    /* The links of clients whose tasks are swept. */
    table client_links {
        key = { hdr.sluice.client: exact; }
        actions = { leads_to; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

    action go_round(bit<8> number) {
        hdr.bridge.to = TO_ROUND;
        hdr.round.setValid();
        hdr.round.number = number;
        hdr.round.unused = 0;
        hdr.round.link = 7w0 ++ pass.link;
        hdr.round.arrived_high = hdr.bridge.arrived_high;
        hdr.round.arrived_low = hdr.bridge.arrived_low;
    }

    action dispatch() {
        hdr.bridge.made = KIND_DISPATCH;
        hdr.bridge.to = TO_WORKER;
    }

    action dispatch_by_link() {
        dispatch();
        pass.link = pass.worker_link;
    }

    apply {
        token_worker_column.apply();
        token_generation_column.apply();
        if (pass.ring == RING_TAKE_TOKEN || hdr.sluice.kind == KIND_SWEEP) {
            worker_links.apply();
        }
        if (pass.ring == RING_TAKE_TOKEN && pass.worker_there == 1) {
            RUN(is_of_generation, hdr.sluice.worker, pass.live);
        }

        if (pass.role == ROLE_TASK && pass.ring == RING_TAKE_TOKEN) {
            if (pass.live == 1) {
                dispatch_by_link();
                hdr.bridge.waited = 0;
                hdr.bridge.occupancy = 0;
            } else {
                /* The stale token is gone; the task arrives anew, behind what came meanwhile. */
                hdr.sluice.worker = 0;
                hdr.sluice.generation = 0;
                go_round(pass.round + 1);
            }
        } else if (pass.role == ROLE_TOKEN && pass.ring == RING_TAKE_TASK) {
            if (hdr.sluice.kind == KIND_SWEEP) {
                dispatch_by_link();
            } else {
                dispatch();
            }
            hdr.bridge.waited = 1;
            hdr.bridge.occupancy = (bit<16>) (bit<32>) (-1 - pass.balance);
        } else if (pass.role == ROLE_TOKEN && pass.ring == RING_PARK_TOKEN && hdr.sluice.kind == KIND_SWEEP) {
            hdr.sluice.code = hdr.sluice.code & SWEEP_TASKS;
            hdr.sluice.worker = 0;
            hdr.sluice.generation = 0;
            go_round(1);
        } else if (pass.role == ROLE_SWEEPS_TOKENS && pass.ring == RING_TAKE_TOKEN) {
            hdr.sluice.occupancy = hdr.sluice.occupancy - 1;
            if (pass.live == 1) {
                hdr.sluice.code = SWEEP_TOKENS_CARRYING;
            } else {
                hdr.sluice.code = SWEEP_TOKENS;
                hdr.sluice.worker = 0;
                hdr.sluice.generation = 0;
            }
            go_round(1);
        } else if (pass.role == ROLE_SWEEPS_TASKS && pass.ring == RING_TAKE_TASK) {
            client_links.apply();
            hdr.bridge.waited = 1;
            if (pass.client_there == 1) {
                hdr.bridge.made = KIND_REJECT;
                hdr.bridge.code = REJECT_NO_WORKERS;
                hdr.bridge.to = TO_CLIENT;
            }
        }

        if (hdr.bridge.made == KIND_DISPATCH) {
            RUN(send_next, hdr.sluice.worker, hdr.bridge.sent);
        } else if (pass.role == ROLE_ASKS) {
            RUN(read_sent, hdr.sluice.worker, hdr.bridge.sent);
        }
        if (pass.role == ROLE_TOKEN && pass.ring != RING_NONE && hdr.sluice.kind == KIND_TOKEN) {
            RUN(see_next, hdr.sluice.worker, hdr.bridge.seen);
        } else if (hdr.bridge.made == KIND_DISPATCH || pass.role == ROLE_ASKS) {
            RUN(read_seen, hdr.sluice.worker, hdr.bridge.seen);
        }
    }
}

#endif
