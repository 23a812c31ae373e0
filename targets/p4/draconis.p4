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
/* What recirculates belongs to the slice that it names. */
#define STAYS_IN_SLICE
/* The stage has room for both arrays beside two columns. */
#define AT_STAGE_OF_SENT @stage(8)
#define AT_STAGE_OF_SEEN @stage(8)

#include "passes.p4"
#include "rules.p4"
#include "sources.p4"
#include "wide_entry.p4"
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

/* Differences, in tables. */
#define BELOW_ZERO 0x80000000 &&& 0x80000000
#define NOT_FAR 0 &&& (32w0xffffffff << AHEAD_BITS)

control Draconis(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    Begin() begin;
    Sources() sources;
    WideEntry() wide_entry;
    Numbers() numbers;
    End() end;

    const bit<32> ONE_MORE = 1 << SLICE_BITS;
    /* Bits of PREDICATE in `fixing`: no fix is on its way; one is, behind which the queue will be full. */
    const bit<8> CLEAR = 2;
    const bit<8> FULL_BEHIND_FIX = 4;
    const bit<8> CLEAR_AND_ROOM = 8;

    /* The pointer that the packet does not move: for a task that of retrieves, for a poll that of adds. */
    bit<32> other = 0;
    /* The first ticket for which there is no room, and how far beyond it the task's is. */
    bit<32> end_of_room = 0;
    bit<32> too_far = 0;
    /* The task's ticket less the limit: from there on the queue is full once this task waits. */
    int<32> limit_before = 0;
    /* How far the retrieve pointer is ahead of the add pointer. */
    bit<32> ahead = 0;
    /* 1 if this packet is to put the retrieve pointer right. */
    bit<1> fixes = 0;
    bit<8> failing = 0;
    bit<8> fixing = 0;
    bit<8> there = 0;

    MOVER(bit<16>, to_occupancy)

    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, retrieve_pointer, 0)
    REGISTER(bit<32>, bit<32>, slice_index_t, SLICES, add_pointer, 0)
    /* 1 while a fix of the add pointer is on its way. No packet asks to which ticket. */
    REGISTER(bit<8>, bit<8>, slice_index_t, SLICES, add_flag, 0)
    /* 1 while a fix of the retrieve pointer is on its way; and to which ticket. */
    PAIR_REGISTER(slice_index_t, SLICES, retrieve_flag)
    /* The ticket of an entry, at first one that no task has for long. */
    REGISTER(bit<32>, bit<32>, task_index_t, TASKS, ticket, 0xffffffff)
    /* A column of the entry for which the stages of the others have no room. */
    REGISTER(bit<16>, bit<16>, task_index_t, TASKS, arrived_high, 0)

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

    /* The first word is where the pointer belongs. */
    PAIR_ACCESS(begin_retrieve_fix, retrieve_flag, slice_index_t, bit<8>) {
        result = PREDICATE(value.high == 0, limit_before - value.low >= 0);
        if (value.high == 0) {
            value.high = 1;
            value.low = (int<32>) hdr.sluice.word_0;
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

    ACCESS_ONLY(keep_arrived_high, arrived_high, bit<16>, bit<16>, task_index_t) {
        value = hdr.bridge.arrived_high;
    } DONE(arrived_high, bit<16>)

    ACCESS(take_arrived_high, arrived_high, bit<16>, bit<16>, task_index_t, bit<16>) {
        result = value;
    } DONE(arrived_high, bit<16>)

    RULES_ACTIONS

    action add() {
        pass.role = ROLE_TASK;
        RUN(read_retrieve, pass.row, other);
    }

    action poll() {
        pass.role = ROLE_TOKEN;
        RUN(next_retrieve, pass.row, pass.ticket);
    }

    action sweep() {
        pass.role = ROLE_SWEEPS_TASKS;
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

    action add_task() {
        RUN(next_add, pass.row, pass.ticket);
        end_of_room = other - (bit<32>) pass.full;
    }

    action look_at_adds() {
        RUN(read_add, pass.row, other);
    }

    action put_adds_right() {
        RUN_ONLY(put_add_right, pass.row);
    }

    table adds {
        key = { pass.role: exact; }
        actions = { add_task; look_at_adds; put_adds_right; NoAction; }
        const default_action = NoAction;
        const entries = {
            ROLE_TASK: add_task();
            ROLE_TOKEN: look_at_adds();
            ROLE_SWEEPS_TASKS: look_at_adds();
            ROLE_FIXES_ADD: put_adds_right();
        }
    }

    /* The first word tells a fix where its pointer belongs. */
    action measure_task() {
        too_far = pass.ticket - end_of_room;
        ahead = other - pass.ticket;
        limit_before = (int<32>) pass.ticket + pass.full;
        hdr.sluice.word_0 = pass.ticket;
    }

    action measure_poll() {
        ahead = pass.ticket - other;
        hdr.sluice.word_0 = other;
    }

    table distances {
        key = { pass.role: exact; }
        actions = { measure_task; measure_poll; NoAction; }
        const default_action = NoAction;
        const entries = {
            ROLE_TASK: measure_task();
            ROLE_TOKEN: measure_poll();
            ROLE_SWEEPS_TASKS: measure_poll();
        }
    }

    action count_left() {
        MOVE(to_occupancy, ahead[SLICE_BITS + 15:SLICE_BITS], pass.occupancy);
    }

    action begin_fix_of_adds() {
        RUN(begin_add_fix, pass.row, failing);
    }

    action look_at_fix_of_adds() {
        RUN(read_add_flag, pass.row, failing);
    }

    action end_fix_of_adds() {
        RUN_ONLY(end_add_fix, pass.row);
    }

    table fixes_of_adds {
        key = {
            pass.role: ternary;
            too_far: ternary;
        }
        actions = { begin_fix_of_adds; look_at_fix_of_adds; end_fix_of_adds; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TASK, BELOW_ZERO): look_at_fix_of_adds();
            (ROLE_TASK, _): begin_fix_of_adds();
            (ROLE_FIXES_ADD, _): end_fix_of_adds();
        }
    }

    action begin_fix_of_retrieves() {
        fixes = 1;
        RUN(begin_retrieve_fix, pass.row, fixing);
    }

    action look_at_fix_of_retrieves() {
        RUN(read_retrieve_flag, pass.row, fixing);
    }

    action end_fix_of_retrieves() {
        RUN(end_retrieve_fix, pass.row, fixing);
    }

    /* A task that waits puts a pointer right that is ahead of it; a poll, one that is far ahead. */
    table fixes_of_retrieves {
        key = {
            pass.role: ternary;
            failing: ternary;
            too_far: ternary;
            ahead: ternary;
        }
        actions = { begin_fix_of_retrieves; look_at_fix_of_retrieves; end_fix_of_retrieves; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TASK, 0, BELOW_ZERO, 0): look_at_fix_of_retrieves();
            (ROLE_TASK, 0, BELOW_ZERO, BELOW_ZERO): look_at_fix_of_retrieves();
            (ROLE_TASK, 0, BELOW_ZERO, _): begin_fix_of_retrieves();
            (ROLE_TOKEN, _, _, BELOW_ZERO): look_at_fix_of_retrieves();
            (ROLE_TOKEN, _, _, NOT_FAR): look_at_fix_of_retrieves();
            (ROLE_TOKEN, _, _, _): begin_fix_of_retrieves();
            (ROLE_SWEEPS_TASKS, _, _, BELOW_ZERO): look_at_fix_of_retrieves();
            (ROLE_SWEEPS_TASKS, _, _, NOT_FAR): look_at_fix_of_retrieves();
            (ROLE_SWEEPS_TASKS, _, _, _): begin_fix_of_retrieves();
            (ROLE_FIXES_RETRIEVE, _, _, _): end_fix_of_retrieves();
        }
    }

    /* The packet itself recirculates as a fix: the task of a SUBMIT waits already, or goes back to its client. */
    action go_round_as_fix(bit<8> pointer) {
        hdr.sluice.code = pointer;
        hdr.sluice.slice = pass.slice;
        pass_again(hdr, pass, 1);
    }

    action park() {
        pass.ring = RING_PARK_TASK;
        RUN_ONLY(keep_ticket, (task_index_t) pass.ticket);
    }

    action park_and_go_round_as_fix() {
        go_round_as_fix(FIX_RETRIEVE);
        park();
    }

    action find_nothing() {
        hdr.bridge.made = KIND_EMPTY;
        hdr.bridge.to = TO_WORKER;
    }

    action look() {
        pass.ring = RING_TAKE_TASK;
        RUN(is_of_ticket, (task_index_t) pass.ticket, there);
    }

    /* EMPTY, unless a task is there. */
    action look_for_worker() {
        hdr.bridge.made = KIND_EMPTY;
        hdr.bridge.to = TO_WORKER;
        look();
    }

    /* What the pointers and flags say. The access to the tickets is the row's action. */
    @stage(7) table verdicts {
        key = {
            pass.role: ternary;
            failing: ternary;
            too_far: ternary;
            fixing: ternary;
            fixes: ternary;
        }
        actions = {
            reject;
            go_round_as_fix;
            park;
            park_and_go_round_as_fix;
            look;
            look_for_worker;
            find_nothing;
            refuse;
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            (ROLE_TASK, 0, BELOW_ZERO, FULL_BEHIND_FIX, _): reject(REJECT_QUEUE_FULL);
            (ROLE_TASK, 0, BELOW_ZERO, CLEAR, 1): park_and_go_round_as_fix();
            (ROLE_TASK, 0, BELOW_ZERO, CLEAR_AND_ROOM, 1): park_and_go_round_as_fix();
            (ROLE_TASK, 0, BELOW_ZERO, _, _): park();
            (ROLE_TASK, 0, _, _, _): go_round_as_fix(FIX_ADD);
            (ROLE_TASK, _, _, _, _): reject(REJECT_QUEUE_FULL);
            (ROLE_TOKEN, _, _, CLEAR, 1): go_round_as_fix(FIX_RETRIEVE);
            (ROLE_TOKEN, _, _, CLEAR_AND_ROOM, 1): go_round_as_fix(FIX_RETRIEVE);
            (ROLE_TOKEN, _, _, CLEAR, _): look_for_worker();
            (ROLE_TOKEN, _, _, CLEAR_AND_ROOM, _): look_for_worker();
            (ROLE_TOKEN, _, _, _, _): find_nothing();
            (ROLE_SWEEPS_TASKS, _, _, CLEAR, 1): go_round_as_fix(FIX_RETRIEVE);
            (ROLE_SWEEPS_TASKS, _, _, CLEAR_AND_ROOM, 1): go_round_as_fix(FIX_RETRIEVE);
            (ROLE_SWEEPS_TASKS, _, _, CLEAR, _): look();
            (ROLE_SWEEPS_TASKS, _, _, CLEAR_AND_ROOM, _): look();
            (ROLE_SWEEPS_TASKS, _, _, _, _): refuse(REFUSAL_SWEEP_DONE);
        }
    }

    action park_arrived_high() {
        RUN_ONLY(keep_arrived_high, (task_index_t) pass.ticket);
    }

    action fetch_arrived_high() {
        RUN(take_arrived_high, (task_index_t) pass.ticket, hdr.bridge.arrived_high);
    }

    /* In the stage of the verdicts, with their key: a sweep needs no times. */
    @stage(7) table arrived_high_column {
        key = {
            pass.role: ternary;
            failing: ternary;
            too_far: ternary;
            fixing: ternary;
        }
        actions = { park_arrived_high; fetch_arrived_high; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TASK, 0, BELOW_ZERO, FULL_BEHIND_FIX): NoAction();
            (ROLE_TASK, 0, BELOW_ZERO, _): park_arrived_high();
            (ROLE_TOKEN, _, _, _): fetch_arrived_high();
        }
    }

    action dispatch() {
        hdr.bridge.made = KIND_DISPATCH;
        hdr.bridge.waited = 1;
        /* The ticket was added, so `ahead` is below zero: by those that wait behind it, and by itself. */
        pass.occupancy = ~pass.occupancy;
    }

    @stage(9) table departures {
        key = {
            pass.role: ternary;
            pass.ring: ternary;
            there: ternary;
        }
        actions = { dispatch; refuse; NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROLE_TOKEN, RING_TAKE_TASK, 1): dispatch();
            (ROLE_SWEEPS_TASKS, RING_TAKE_TASK, _): refuse(REFUSAL_SWEEP_DONE);
        }
    }

    action leads_to(bit<9> link) {
        pass.link = link;
        hdr.bridge.waited = 1;
        reject(REJECT_NO_WORKERS);
    }

    /* The clients whose tasks are swept. */
    @stage(9) @ternary(1) table client_links {
        key = { hdr.sluice.client: exact; }
        actions = { leads_to; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

    apply {
        begin.apply(hdr, pass, now);
        sources.apply(hdr, pass);
        arrivals.apply();
        adds.apply();
        distances.apply();
        count_left();
        fixes_of_adds.apply();
        fixes_of_retrieves.apply();
        verdicts.apply();
        arrived_high_column.apply();
        numbers.apply(hdr, pass);
        wide_entry.apply(hdr, pass);
        if (pass.role == ROLE_SWEEPS_TASKS && there == 1) {
            client_links.apply();
        } else {
            departures.apply();
        }
        end.apply(hdr, pass);
    }
}

#endif
