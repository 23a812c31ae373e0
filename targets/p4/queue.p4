/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a packet, and the bidirectional queue (Rain §3.2.1): `balance` counts parked tokens above zero and
 * waiting tasks below, and one access decides each arrival. Behind it the heads and tails give the arrival its cell.
 */
#ifndef QUEUE_P4
#define QUEUE_P4

control Queue(inout headers_t hdr, inout pass_t pass) {
    /* Bits of PREDICATE in `granted`: at most one more than was granted, at most eight more, or both. */
    const bit<8> NOTHING_NEW = 4;
    const bit<8> GRANTED = 8;
    /* What a task finds: the balance is above the limit, and above zero too. */
    const bit<8> WAITS = 2;
    const bit<8> MEETS = 8;
    /* What a sweep finds: an entry. */
    const bit<8> TAKES = 1;

    REGISTER(bit<32>, int<32>, slice_index_t, SLICES, balance, 0)
    /*
     * A count above its slice's number, so that the low bits of the word are an index: the chip would need a stage to
     * put count and number together. The driver writes the numbers. The slices' rings interleave.
     */
    const bit<32> ONE_MORE = 1 << SLICE_BITS;

    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, token_head, 0)
    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, token_tail, 0)
    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, task_head, 0)
    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, task_tail, 0)

    ACCESS(token_comes, balance, bit<32>, int<32>, slice_index_t, int<32>) {
        result = value;
        if (value < TOKENS_PER_SLICE) {
            value = value + 1;
        }
    } DONE(balance, bit<32>)

    ACCESS(task_comes, balance, bit<32>, int<32>, slice_index_t, bit<8>) {
        result = PREDICATE(value > pass.full, value > 0);
        if (value > pass.full) {
            value = value - 1;
        }
    } DONE(balance, bit<32>)

    ACCESS(sweep_takes_token, balance, bit<32>, int<32>, slice_index_t, bit<8>) {
        if (value > 0) {
            result = TAKES;
            value = value - 1;
        }
    } DONE(balance, bit<32>)

    ACCESS(sweep_takes_task, balance, bit<32>, int<32>, slice_index_t, bit<8>) {
        if (value < 0) {
            result = TAKES;
            value = value + 1;
        }
    } DONE(balance, bit<32>)

    ACCESS(next_token_head, token_head, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
        value = value + ONE_MORE;
    } DONE(token_head, bit<32>)

    ACCESS(next_token_tail, token_tail, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
        value = value + ONE_MORE;
    } DONE(token_tail, bit<32>)

    ACCESS(next_task_head, task_head, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
        value = value + ONE_MORE;
    } DONE(task_head, bit<32>)

    ACCESS(next_task_tail, task_tail, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
        value = value + ONE_MORE;
    } DONE(task_tail, bit<32>)

    action refuse(bit<8> why) {
        pass.refusal = why;
    }

    action answer(bit<8> why) {
        pass.refusal = why;
        pass.role = ROLE_ASKS;
        hdr.bridge.made = KIND_ANSWER;
        hdr.bridge.code = pass.open;
        hdr.sluice.generation = pass.generation;
        hdr.bridge.to = TO_WORKER;
    }

    action notice() {
        pass.refusal = REFUSAL_WRONG_EPOCH;
        hdr.bridge.made = KIND_NOTICE;
        hdr.bridge.to = TO_CLIENT;
    }

    action reject(bit<8> why) {
        hdr.bridge.made = KIND_REJECT;
        hdr.bridge.code = why;
        hdr.bridge.to = TO_CLIENT;
    }

    action let_token_in() {
        pass.role = ROLE_TOKEN;
        RUN(token_comes, pass.row, pass.balance);
    }

    action let_task_in() {
        pass.role = ROLE_TASK;
        RUN(task_comes, pass.row, pass.found);
    }

    action sweep_token() {
        pass.role = ROLE_SWEEPS_TOKENS;
        RUN(sweep_takes_token, pass.row, pass.found);
    }

    action sweep_task() {
        pass.role = ROLE_SWEEPS_TASKS;
        RUN(sweep_takes_task, pass.row, pass.found);
    }

    /*
     * What becomes of a packet: the rules of `front` in `sluice_switch`, in their order. The access to the balance is
     * the row's action, so that the verdict takes no stage of its own.
     */
    table arrivals {
        key = {
            hdr.sluice.kind: ternary;
            pass.is_round: ternary;
            pass.is_control: ternary;
            pass.known: ternary;
            pass.key_right: ternary;
            pass.address_right: ternary;
            pass.epoch_right: ternary;
            pass.generation_right: ternary;
            pass.open: ternary;
            pass.granted: ternary;
            pass.entered: ternary;
            pass.round: ternary;
            hdr.sluice.budget: ternary;
            pass.type_known: ternary;
            pass.slice_open: ternary;
            hdr.sluice.code: ternary;
            hdr.sluice.occupancy: ternary;
        }
        actions = {
            refuse;
            answer;
            notice;
            reject;
            let_token_in;
            let_task_in;
            sweep_token;
            sweep_task;
        }
        const default_action = refuse(REFUSAL_UNEXPECTED);
        const entries = {
            /* is_round, control, known, key, address, epoch, generation, open, granted, entered, round, budget, type, slice, code, left */
            (KIND_SUBMIT, 0, _, 0, _, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_UNKNOWN_SOURCE);
            (KIND_SUBMIT, 0, _, _, 0, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_KEY);
            (KIND_SUBMIT, 0, _, _, _, 0, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_ADDRESS);
            (KIND_SUBMIT, 0, _, _, _, _, 0, _, _, _, _, _, _, _, _, _, _): notice();
            (KIND_SUBMIT, 0, _, _, _, _, _, _, _, _, 0, _, _, _, _, _, _): refuse(REFUSAL_REPLAYED);
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, ROUNDS_TOO_MANY, _, _, _, _, _): reject(REJECT_STALE_TOKENS);
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, BUDGET_SPENT, _, _, _, _): reject(REJECT_LATE);
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, _, 0, _, _, _): reject(REJECT_UNKNOWN_TYPE);
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, _, _, 0, _, _): reject(REJECT_NO_WORKERS);
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): let_task_in();
            /* KIND_TOKEN and KIND_PROBE. */
            (4 &&& 0xfe, _, _, 0, _, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_UNKNOWN_SOURCE);
            (4 &&& 0xfe, _, _, _, 0, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_KEY);
            (4 &&& 0xfe, _, _, _, _, 0, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_ADDRESS);
            (4 &&& 0xfe, _, _, _, _, _, 0, _, _, _, _, _, _, _, _, _, _): answer(REFUSAL_WRONG_EPOCH);
            (4 &&& 0xfe, _, _, _, _, _, _, 0, _, _, _, _, _, _, _, _, _): answer(REFUSAL_WRONG_GENERATION);
            (4 &&& 0xfe, _, _, _, _, _, _, _, 0, _, _, _, _, _, _, _, _): answer(REFUSAL_CLOSED);
            (KIND_PROBE, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): answer(REFUSAL_NONE);
            (KIND_TOKEN, _, _, _, _, _, _, _, _, GRANTED, _, _, _, _, _, _, _): let_token_in();
            (KIND_TOKEN, _, _, _, _, _, _, _, _, NOTHING_NEW, _, _, _, _, _, _, _): answer(REFUSAL_REPEATED_TOKEN);
            (KIND_TOKEN, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): answer(REFUSAL_IMPOSSIBLE_COUNTER);
            (KIND_SWEEP, _, 1, _, _, _, 0, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_EPOCH);
            (KIND_SWEEP, _, 1, _, _, _, _, _, _, _, _, _, _, 0, _, _, _): refuse(REFUSAL_WRONG_EPOCH);
            (KIND_SWEEP, _, 1, 1, _, _, _, 1, 1, _, _, _, _, _, _, 2 &&& 2, _): let_token_in();
            (KIND_SWEEP, _, 1, _, _, _, _, _, _, _, _, _, _, _, _, _, 0): refuse(REFUSAL_SWEEP_DONE);
            /* The tasks of an open slice have workers to wait for. */
            (KIND_SWEEP, _, 1, _, _, _, _, _, _, _, _, _, _, _, 1, 1 &&& 1, _): refuse(REFUSAL_SWEEP_DONE);
            (KIND_SWEEP, _, 1, _, _, _, _, _, _, _, _, _, _, _, _, 1 &&& 1, _): sweep_task();
            (KIND_SWEEP, _, 1, _, _, _, _, _, _, _, _, _, _, _, _, _, _): sweep_token();
        }
    }

    action go_ahead() {
        pass.ahead = 1;
        hdr.behind.age = hdr.behind.age ^ MARK_AHEAD;
    }

    /* What found neither a place nor what it looks for. */
    table leftovers {
        key = { pass.role: exact; pass.ring: exact; }
        actions = { refuse; reject; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TASK, RING_NONE): reject(REJECT_QUEUE_FULL);
            (ROLE_TOKEN, RING_NONE): refuse(REFUSAL_TOKEN_RING_FULL);
            (ROLE_SWEEPS_TOKENS, RING_NONE): refuse(REFUSAL_SWEEP_DONE);
            (ROLE_SWEEPS_TASKS, RING_NONE): refuse(REFUSAL_SWEEP_DONE);
        }
    }

    apply {
        arrivals.apply();

        if (pass.role == ROLE_TOKEN && ((bit<32>) pass.balance)[31:31] == 1 ||
            pass.role == ROLE_SWEEPS_TASKS && pass.found == TAKES) {
            RUN(next_task_head, pass.row, pass.ticket);
            pass.ring = RING_TAKE_TASK;
        } else if (pass.role == ROLE_TOKEN && pass.balance != TOKENS_PER_SLICE) {
            RUN(next_token_tail, pass.row, pass.ticket);
            pass.ring = RING_PARK_TOKEN;
        } else if (pass.role == ROLE_TASK && pass.found == WAITS) {
            RUN(next_task_tail, pass.row, pass.ticket);
            pass.ring = RING_PARK_TASK;
        } else if (pass.role == ROLE_TASK && pass.found == MEETS ||
                   pass.role == ROLE_SWEEPS_TOKENS && pass.found == TAKES) {
            RUN(next_token_head, pass.row, pass.ticket);
            pass.ring = RING_TAKE_TOKEN;
        }
        leftovers.apply();
        if (pass.ring == RING_PARK_TASK && pass.room != 0) {
            if (IS_OUTSIDE(hdr.sluice.length)) {
                go_ahead();
            }
        }
    }
}

#endif
