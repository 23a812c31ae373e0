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
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, sent, 0)
    REGISTER(bit<32>, bit<32>, worker_index_t, WORKERS, seen_out, 0)

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

    @stage(FIRST_STAGE + 0) table token_worker_column {
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

    @stage(FIRST_STAGE + 0) table token_generation_column {
        key = { pass.ring: exact; }
        actions = { park_generation; fetch_generation; NoAction; }
        const default_action = NoAction;
        const entries = {
            RING_PARK_TOKEN: park_generation();
            RING_TAKE_TOKEN: fetch_generation();
        }
    }

    action compare_generation() {
        RUN(is_of_generation, hdr.sluice.worker, pass.live);
    }

    @stage(FIRST_STAGE + 1) table generations {
        key = { pass.ring: exact; }
        actions = { compare_generation; NoAction; }
        const default_action = NoAction;
        const entries = {
            RING_TAKE_TOKEN: compare_generation();
        }
    }

    action is_there(bit<9> link) {
        pass.worker_there = 1;
        pass.worker_link = link;
    }

    /* The links of workers that a token may name. */
    @stage(FIRST_STAGE + 1) table worker_links {
        key = { hdr.sluice.worker: exact; }
        actions = { is_there; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    action leads_to(bit<9> link) {
        pass.client_there = 1;
        pass.client_link = link;
    }

    /* The links of clients whose tasks are swept. */
    @stage(FIRST_STAGE + 1) @ternary(1) table client_links {
        key = { hdr.sluice.client: exact; }
        actions = { leads_to; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

    action go_round(bit<8> number) {
        hdr.bridge.to = TO_ROUND;
        hdr.round.setValid();
        hdr.round.number = number;
        hdr.round.link = pass.link;
        hdr.round.arrived_high = pass.arrived_high;
        hdr.round.arrived_low = pass.arrived_low;
    }

    action forget_token() {
        hdr.sluice.worker = 0;
        hdr.sluice.generation = 0;
    }

    action dispatch() {
        hdr.bridge.made = KIND_DISPATCH;
        hdr.bridge.to = TO_WORKER;
        RUN(send_next, hdr.sluice.worker, hdr.bridge.sent);
    }

    action task_leaves() {
        dispatch();
        pass.link = pass.worker_link;
    }

    /* The stale token is gone; the task arrives anew, behind what came meanwhile. */
    action task_goes_round() {
        forget_token();
        go_round(pass.round + 1);
    }

    action token_takes_task() {
        dispatch();
        hdr.bridge.waited = 1;
        pass.occupancy = ~(bit<16>) (bit<32>) pass.balance;
    }

    action carried_token_takes_task() {
        token_takes_task();
        pass.link = pass.worker_link;
    }

    action sweep_goes_on() {
        hdr.sluice.code = hdr.sluice.code & SWEEP_TASKS;
        forget_token();
        go_round(1);
    }

    action sweep_carries_token() {
        hdr.sluice.occupancy = hdr.sluice.occupancy - 1;
        hdr.sluice.code = SWEEP_TOKENS_CARRYING;
        go_round(1);
    }

    action sweep_drops_token() {
        hdr.sluice.occupancy = hdr.sluice.occupancy - 1;
        hdr.sluice.code = SWEEP_TOKENS;
        forget_token();
        go_round(1);
    }

    action swept_task_returns() {
        hdr.bridge.made = KIND_REJECT;
        hdr.bridge.code = REJECT_NO_WORKERS;
        hdr.bridge.to = TO_CLIENT;
        hdr.bridge.waited = 1;
        pass.link = pass.client_link;
    }

    action tell_sent() {
        RUN(read_sent, hdr.sluice.worker, hdr.bridge.sent);
    }

    /* How a packet leaves that got as far as the rings. The access to `sent` is the row's action. */
    @stage(FIRST_STAGE + 2) table departures {
        key = {
            pass.role: ternary;
            pass.ring: ternary;
            hdr.sluice.kind: ternary;
            pass.live: ternary;
            pass.worker_there: ternary;
            pass.client_there: ternary;
        }
        actions = {
            task_leaves;
            task_goes_round;
            token_takes_task;
            carried_token_takes_task;
            sweep_goes_on;
            sweep_carries_token;
            sweep_drops_token;
            swept_task_returns;
            tell_sent;
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            (ROLE_TASK, RING_TAKE_TOKEN, _, 1, 1, _): task_leaves();
            (ROLE_TASK, RING_TAKE_TOKEN, _, _, _, _): task_goes_round();
            (ROLE_TOKEN, RING_TAKE_TASK, KIND_SWEEP, _, _, _): carried_token_takes_task();
            (ROLE_TOKEN, RING_TAKE_TASK, _, _, _, _): token_takes_task();
            (ROLE_TOKEN, RING_PARK_TOKEN, KIND_SWEEP, _, _, _): sweep_goes_on();
            (ROLE_SWEEPS_TOKENS, RING_TAKE_TOKEN, _, 1, 1, _): sweep_carries_token();
            (ROLE_SWEEPS_TOKENS, RING_TAKE_TOKEN, _, _, _, _): sweep_drops_token();
            (ROLE_SWEEPS_TASKS, RING_TAKE_TASK, _, _, _, 1): swept_task_returns();
            (ROLE_ASKS, _, _, _, _, _): tell_sent();
        }
    }

    action count_seen() {
        RUN(see_next, hdr.sluice.worker, hdr.bridge.seen);
    }

    action tell_seen() {
        RUN(read_seen, hdr.sluice.worker, hdr.bridge.seen);
    }

    /* Whether a packet counts a granted token, or tells how many were. */
    @stage(FIRST_STAGE + 3) table grants {
        key = {
            pass.role: ternary;
            pass.ring: ternary;
            hdr.sluice.kind: ternary;
        }
        actions = { count_seen; tell_seen; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TOKEN, RING_TAKE_TASK, KIND_TOKEN): count_seen();
            (ROLE_TOKEN, RING_PARK_TOKEN, KIND_TOKEN): count_seen();
            (ROLE_TOKEN, RING_TAKE_TASK, _): tell_seen();
            (ROLE_TASK, RING_TAKE_TOKEN, _): tell_seen();
            (ROLE_ASKS, _, _): tell_seen();
        }
    }

    apply {
        token_worker_column.apply();
        token_generation_column.apply();
        generations.apply();
        if (pass.ring == RING_TAKE_TASK) {
            client_links.apply();
        }
        worker_links.apply();
        departures.apply();
        grants.apply();
    }
}

#endif
