/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draconis: a queue for each slice, which idle workers poll (docs/manual/draconis.md). Here without classes, labels and
 * jobs: the model's `draconis`.
 *
 * A ticket is a count above its slice's number, as in queue.p4.
 */
#ifndef DRACONIS_P4
#define DRACONIS_P4

/* A TOKEN is a poll, and is answered at once. */
#define ANSWERS_POLLS
/* The columns are behind more stages than those of Rain: the compiler places them. */
#define COLUMNS_ANYWHERE

#include "passes.p4"
#include "rules.p4"
#include "sources.p4"
#include "entry.p4"
#include "links.p4"
#include "numbers.p4"
#include "replies.p4"

/* A packet that puts a pointer right. */
const bit<4> ROLE_FIXES_ADD = 6;
const bit<4> ROLE_FIXES_RETRIEVE = 7;

/* The code of a SUBMIT that recirculates: which pointer it puts right. Its first word is the ticket. */
const bit<8> FIX_ADD = 1;
const bit<8> FIX_RETRIEVE = 2;

/* How many tickets a retrieve pointer may run ahead of an empty queue, as a binary logarithm. */
#define AHEAD_BITS (SLICE_BITS + 16)

control Draconis(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    Begin() begin;
    Sources() sources;
    Entry() entry;
    ClientLink() client_link;
    Numbers() numbers;
    End() end;

    const bit<32> ONE_MORE = 1 << SLICE_BITS;
    /* Bits of PREDICATE in `fixing`: a fix is on its way, behind which the queue will be full; no fix is. */
    const bit<8> FULL_BEHIND_FIX = 4;
    const bit<8> CLEAR = 0b1010;

    bit<32> retrieved = 0;
    bit<32> added = 0;
    /* The first ticket for which there is no room, and how far beyond it the task's is. */
    bit<32> end_of_room = 0;
    bit<32> too_far = 0;
    /* The task's ticket less the limit: from there on the queue is full once this task waits. */
    int<32> limit_before = 0;
    /* How far the retrieve pointer is ahead of the add pointer. */
    bit<32> ahead = 0;
    bit<32> fix_to = 0;
    bit<1> fixes = 0;
    bit<8> failing = 0;
    bit<8> fixing = 0;
    bit<8> there = 0;

    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, retrieve_pointer, 0)
    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, add_pointer, 0)
    /* 1 while a fix of the add pointer is on its way. No packet asks to which ticket. */
    REGISTER(bit<8>, bit<8>, slice_index_t, SLICES, add_flag, 0)
    /* 1 while a fix of the retrieve pointer is on its way; and to which ticket. */
    PAIR_REGISTER(slice_index_t, SLICES, retrieve_flag)
    /* The ticket of an entry, at first one that no task has for long. */
    REGISTER(bit<32>, bit<32>, task_index_t, TASKS, ticket, 0xffffffff)

    ACCESS(read_retrieve, retrieve_pointer, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
    } DONE(retrieve_pointer, bit<32>)

    ACCESS(next_retrieve, retrieve_pointer, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
        value = value + ONE_MORE;
    } DONE(retrieve_pointer, bit<32>)

    ACCESS_ONLY(put_retrieve_right, retrieve_pointer, bit<32>, bit<32>, slice_index_t) {
        value = hdr.sluice.word_0;
    } DONE(retrieve_pointer, bit<32>)

    ACCESS(read_add, add_pointer, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
    } DONE(add_pointer, bit<32>)

    ACCESS(next_add, add_pointer, bit<32>, bit<32>, slice_index_t, bit<32>) {
        result = value;
        value = value + ONE_MORE;
    } DONE(add_pointer, bit<32>)

    ACCESS_ONLY(put_add_right, add_pointer, bit<32>, bit<32>, slice_index_t) {
        value = hdr.sluice.word_0;
    } DONE(add_pointer, bit<32>)

    ACCESS(begin_add_fix, add_flag, bit<8>, bit<8>, slice_index_t, bit<8>) {
        result = value;
        value = 1;
    } DONE(add_flag, bit<8>)

    ACCESS(read_add_flag, add_flag, bit<8>, bit<8>, slice_index_t, bit<8>) {
        result = value;
    } DONE(add_flag, bit<8>)

    ACCESS_ONLY(end_add_fix, add_flag, bit<8>, bit<8>, slice_index_t) {
        value = 0;
    } DONE(add_flag, bit<8>)

    PAIR_ACCESS(begin_retrieve_fix, retrieve_flag, slice_index_t, bit<8>) {
        result = PREDICATE(value.high == 0, limit_before - value.low >= 0);
        if (value.high == 0) {
            value.high = 1;
            value.low = (int<32>) fix_to;
        }
    } PAIR_DONE(retrieve_flag)

    PAIR_ACCESS(read_retrieve_flag, retrieve_flag, slice_index_t, bit<8>) {
        result = PREDICATE(value.high == 0, limit_before - value.low >= 0);
    } PAIR_DONE(retrieve_flag)

    PAIR_ACCESS(end_retrieve_fix, retrieve_flag, slice_index_t, bit<8>) {
        result = 0;
        value.high = 0;
        value.low = 0;
    } PAIR_DONE(retrieve_flag)

    ACCESS_ONLY(keep_ticket, ticket, bit<32>, bit<32>, task_index_t) {
        value = pass.ticket;
    } DONE(ticket, bit<32>)

    ACCESS(is_of_ticket, ticket, bit<32>, bit<32>, task_index_t, bit<8>) {
        if (value == pass.ticket) {
            result = 1;
        }
    } DONE(ticket, bit<32>)

    RULES_ACTIONS

    action add() {
        pass.role = ROLE_TASK;
        RUN(read_retrieve, pass.row, retrieved);
    }

    action poll() {
        pass.role = ROLE_TOKEN;
        pass.ring = RING_TAKE_TASK;
        RUN(next_retrieve, pass.row, pass.ticket);
    }

    action sweep() {
        pass.role = ROLE_SWEEPS_TASKS;
        pass.ring = RING_TAKE_TASK;
        RUN(next_retrieve, pass.row, pass.ticket);
    }

    action fix_add() {
        pass.role = ROLE_FIXES_ADD;
        reject(REJECT_QUEUE_FULL);
    }

    action fix_retrieve() {
        pass.role = ROLE_FIXES_RETRIEVE;
        pass.refusal = REFUSAL_FIX_DONE;
        RUN_ONLY(put_retrieve_right, pass.row);
    }

    action fix_retrieve_and_answer() {
        pass.role = ROLE_FIXES_RETRIEVE;
        hdr.bridge.made = KIND_EMPTY;
        hdr.bridge.to = TO_WORKER;
        RUN_ONLY(put_retrieve_right, pass.row);
    }

    table arrivals {
        key = {
            RULES_KEY
        }
        actions = {
            refuse;
            answer;
            notice;
            reject;
            add;
            poll;
            sweep;
            fix_add;
            fix_retrieve;
            fix_retrieve_and_answer;
        }
        const default_action = refuse(REFUSAL_UNEXPECTED);
        const entries = {
            (KIND_SUBMIT, 1, _, _, _, _, _, _, _, _, _, _, _, FIX_ADD, _): fix_add();
            (KIND_TOKEN, 1, _, 1, _, _, _, 1, 1, _, _, _, _, _, _): fix_retrieve_and_answer();
            (_, 1, _, _, _, _, _, _, _, _, _, _, _, _, _): fix_retrieve();
            RULES_OF_TASKS
            RULES_OF_WORKERS
            RULES_OF_SWEEPS
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, _, _, _): add();
            (KIND_TOKEN, _, _, _, _, _, _, _, _, _, _, _, _, _, _): poll();
            (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, _, _, SWEEP_TOKENS, _): refuse(REFUSAL_SWEEP_DONE);
            /* The tasks of an open slice have workers to wait for. */
            (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, _, 1, _, _): refuse(REFUSAL_SWEEP_DONE);
            (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, _, _, _, _): sweep();
        }
    }

    /* The packet itself recirculates as a fix: the task of a SUBMIT waits already, or goes back to its client. */
    action go_round_as_fix(bit<8> pointer) {
        hdr.sluice.code = pointer;
        hdr.sluice.slice = pass.slice;
        hdr.sluice.word_0 = fix_to;
        pass_again(hdr, pass, 1);
    }

    action dispatch() {
        hdr.bridge.made = KIND_DISPATCH;
        hdr.bridge.to = TO_WORKER;
        hdr.bridge.waited = 1;
        /* The ticket was added, so `ahead` is below zero: by those that wait behind it, and by itself. */
        pass.occupancy = (bit<16>) (~ahead >> SLICE_BITS);
    }

    action find_nothing() {
        hdr.bridge.made = KIND_EMPTY;
        hdr.bridge.to = TO_WORKER;
    }

    apply {
        begin.apply(hdr, pass, now);
        sources.apply(hdr, pass);
        if (pass.is_round == 1) {
            if (hdr.sluice.kind == KIND_TOKEN && pass.slice != hdr.sluice.slice) {
                /* The worker has moved. */
                pass.known = 0;
            }
            pass.slice = hdr.sluice.slice;
            pass.row = (slice_index_t) hdr.sluice.slice;
        }
        arrivals.apply();

        if (pass.role == ROLE_TASK) {
            RUN(next_add, pass.row, pass.ticket);
            end_of_room = retrieved - (bit<32>) pass.full;
        } else if (pass.ring == RING_TAKE_TASK) {
            RUN(read_add, pass.row, added);
        } else if (pass.role == ROLE_FIXES_ADD) {
            RUN_ONLY(put_add_right, pass.row);
        }

        if (pass.role == ROLE_TASK) {
            too_far = pass.ticket - end_of_room;
            ahead = retrieved - pass.ticket;
            limit_before = (int<32>) pass.ticket + pass.full;
            fix_to = pass.ticket;
        } else {
            ahead = pass.ticket - added;
            fix_to = added;
        }

        if (pass.role == ROLE_TASK && too_far[31:31] == 0) {
            RUN(begin_add_fix, pass.row, failing);
        } else if (pass.role == ROLE_TASK) {
            RUN(read_add_flag, pass.row, failing);
        } else if (pass.role == ROLE_FIXES_ADD) {
            RUN_ONLY(end_add_fix, pass.row);
        }

        if (pass.role == ROLE_TASK && failing == 0 && too_far[31:31] == 1 || pass.ring == RING_TAKE_TASK) {
            if (ahead[31:31] == 0 && (ahead[30:AHEAD_BITS] != 0 || pass.role == ROLE_TASK && ahead != 0)) {
                RUN(begin_retrieve_fix, pass.row, fixing);
                fixes = 1;
            } else {
                RUN(read_retrieve_flag, pass.row, fixing);
            }
        } else if (pass.role == ROLE_FIXES_RETRIEVE) {
            RUN(end_retrieve_fix, pass.row, fixing);
        }

        if ((fixing & CLEAR) == 0) {
            fixes = 0;
        }
        if (pass.role == ROLE_TASK) {
            if (failing != 0 || fixing == FULL_BEHIND_FIX) {
                reject(REJECT_QUEUE_FULL);
            } else if (too_far[31:31] == 0) {
                go_round_as_fix(FIX_ADD);
            } else {
                pass.ring = RING_PARK_TASK;
            }
        }
        if (fixes == 1) {
            go_round_as_fix(FIX_RETRIEVE);
        }

        entry.apply(hdr, pass);
        if (pass.ring == RING_PARK_TASK) {
            RUN_ONLY(keep_ticket, (task_index_t) pass.ticket);
        } else if (pass.ring == RING_TAKE_TASK) {
            RUN(is_of_ticket, (task_index_t) pass.ticket, there);
        }

        if (pass.role == ROLE_TOKEN && fixes == 0) {
            if (there == 1 && (fixing & CLEAR) != 0) {
                dispatch();
            } else {
                find_nothing();
            }
        } else if (pass.role == ROLE_SWEEPS_TASKS && fixes == 0) {
            if (there == 1 && (fixing & CLEAR) != 0) {
                client_link.apply(hdr, pass);
                hdr.bridge.waited = 1;
                if (pass.client_there == 1) {
                    reject(REJECT_NO_WORKERS);
                }
            } else {
                refuse(REFUSAL_SWEEP_DONE);
            }
        }
        numbers.apply(hdr, pass);
        end.apply(hdr, pass);
    }
}

#endif
