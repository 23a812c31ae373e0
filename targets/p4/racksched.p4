/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RackSched: a task goes to the one of two random workers of its slice whose queue is shorter, by what the last REPLY
 * of each said. The model's `racksched:2`.
 *
 * The workers of a slice have seats one behind the other, which the driver deals out. A chip draws evenly below powers
 * of two only: the driver shares the draws out to the seats.
 */
#ifndef RACKSCHED_P4
#define RACKSCHED_P4

/* REPLYs pass as they came. */
#define PASSES_REPLIES

#include "passes.p4"
#include "rules.p4"
#include "sources.p4"
#include "links.p4"
#include "numbers.p4"
#include "replies.p4"

const bit<4> ROLE_REPLY = 6;

control RackSched(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    Begin() begin;
    Sources() sources;
    ClientLink() client_link;
    Numbers() numbers;
    End() end;

    draw_t draw_0 = 0;
    draw_t draw_1 = 0;
    /* The two seats, and how far the first is from the slice's end: below zero. */
    bit<16> seat_0 = 0;
    bit<16> seat_1 = 0;
    bit<16> from_end = 0;
    /* From the first seat to the second; and the same less the slice's seats. */
    bit<16> step = 0;
    bit<16> step_back = 0;
    bit<16> seat_back = 0;
    bit<32> load_0 = 0;
    bit<32> load_1 = 0;
    /* By how much the second queue is shorter. */
    bit<32> shorter_by = 0;
    bit<1> has_seat = 0;

    RANDOM(draw_t, first_draw)
    RANDOM(draw_t, second_draw)

    /* The loads by slice and seat. A pass reads one word of an array, so each of the two choices has a copy. */
    REGISTER(bit<32>, bit<32>, seat_index_t, SEATS, loads_0, 0)
    REGISTER(bit<32>, bit<32>, seat_index_t, SEATS, loads_1, 0)

    ACCESS(read_load_0, loads_0, bit<32>, bit<32>, seat_index_t, bit<32>) {
        result = value;
    } DONE(loads_0, bit<32>)

    ACCESS_ONLY(note_load_0, loads_0, bit<32>, bit<32>, seat_index_t) {
        value = hdr.sluice.budget ++ hdr.sluice.occupancy;
    } DONE(loads_0, bit<32>)

    ACCESS(read_load_1, loads_1, bit<32>, bit<32>, seat_index_t, bit<32>) {
        result = value;
    } DONE(loads_1, bit<32>)

    ACCESS_ONLY(note_load_1, loads_1, bit<32>, bit<32>, seat_index_t) {
        value = hdr.sluice.budget ++ hdr.sluice.occupancy;
    } DONE(loads_1, bit<32>)

    RULES_ACTIONS

    /* Workers are pushed their tasks, and have no tokens to send. */
    action refuse_token() {
        pass.role = ROLE_TOKEN;
        refuse(REFUSAL_UNEXPECTED);
    }

    action choose() {
        pass.role = ROLE_TASK;
    }

    /* The packet leaves as it came. */
    action pass_on() {
        pass.role = ROLE_REPLY;
        hdr.bridge.to = TO_CLIENT;
    }

    table arrivals {
        key = { RULES_KEY }
        actions = {
            refuse;
            answer;
            notice;
            reject;
            refuse_token;
            choose;
            pass_on;
        }
        const default_action = refuse(REFUSAL_UNEXPECTED);
        const entries = {
            RULES_OF_TASKS
            RULES_OF_WORKERS
            RULES_OF_SWEEPS
            (KIND_TOKEN, _, _, _, _, _, _, _, _, _, _, _, _, _, _): refuse_token();
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, _, _, _): choose();
            (KIND_REPLY, _, _, 0, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_UNKNOWN_SOURCE);
            (KIND_REPLY, _, _, _, _, 0, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_ADDRESS);
            (KIND_REPLY, _, _, _, _, _, _, _, _, _, _, _, _, _, _): pass_on();
            /* No task waits. */
            (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_SWEEP_DONE);
        }
    }

    action first_is(bit<16> seat, bit<16> less_end) {
        has_seat = 1;
        seat_0 = seat;
        from_end = less_end;
    }

    table firsts {
        key = { pass.slice: exact; draw_0: exact; }
        actions = { first_is; @defaultonly NoAction; }
        default_action = NoAction;
        size = DRAWS;
    }

    action second_is_further(bit<16> by, bit<16> less_all) {
        step = by;
        step_back = less_all;
    }

    table seconds {
        key = { pass.slice: exact; draw_1: exact; }
        actions = { second_is_further; @defaultonly NoAction; }
        default_action = NoAction;
        size = DRAWS;
    }

    action sits_at(bit<16> seat) {
        has_seat = 1;
        seat_0 = seat;
        seat_1 = seat;
    }

    /* The seats of open workers. */
    table seats_of_workers {
        key = { hdr.sluice.worker: exact; }
        actions = { sits_at; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    action goes_to(bit<16> worker, bit<32> generation, bit<9> link) {
        hdr.sluice.worker = worker;
        hdr.sluice.generation = generation;
        pass.link = link;
        hdr.bridge.made = KIND_DISPATCH;
        hdr.bridge.to = TO_WORKER;
    }

    table workers_of_seats {
        key = { seat_0: exact; }
        actions = { goes_to; @defaultonly NoAction; }
        default_action = NoAction;
        size = SEATS;
    }

    action compare() {
        shorter_by = load_0 |-| load_1;
    }

    action choose_second() {
        seat_0 = seat_1;
        load_0 = load_1;
    }

    apply {
        begin.apply(hdr, pass, now);
        sources.apply(hdr, pass);
        DRAW(first_draw, draw_t, hdr.held.draw_0, draw_0);
        DRAW(second_draw, draw_t, hdr.held.draw_1, draw_1);
        if (hdr.sluice.kind == KIND_REPLY) {
            client_link.apply(hdr, pass);
            seats_of_workers.apply();
        } else if (hdr.sluice.kind == KIND_SUBMIT) {
            firsts.apply();
            seconds.apply();
        }
        arrivals.apply();

        if (pass.role == ROLE_REPLY && pass.client_there == 0) {
            hdr.bridge.to = TO_NOBODY;
            refuse(REFUSAL_UNKNOWN_SOURCE);
        }

        if (pass.role == ROLE_TASK) {
            seat_1 = seat_0 + step;
            seat_back = seat_0 + step_back;
            from_end = from_end + step;
            if (from_end[15:15] == 0) {
                seat_1 = seat_back;
            }
        }
        if (has_seat == 1 && pass.role == ROLE_TASK) {
            RUN(read_load_0, (seat_index_t) seat_0, load_0);
            RUN(read_load_1, (seat_index_t) seat_1, load_1);
        } else if (has_seat == 1 && pass.role == ROLE_REPLY && pass.client_there == 1 && pass.epoch_right == 1) {
            RUN_ONLY(note_load_0, (seat_index_t) seat_0);
            RUN_ONLY(note_load_1, (seat_index_t) seat_1);
        }

        if (has_seat == 1 && pass.role == ROLE_TASK) {
            compare();
            if (shorter_by != 0) {
                choose_second();
            }
            workers_of_seats.apply();
            if (load_0[31:16] == 0) {
                pass.occupancy = load_0[15:0];
            } else {
                pass.occupancy = 0xffff;
            }
        } else if (pass.role == ROLE_TASK) {
            reject(REJECT_NO_WORKERS);
        }
        numbers.apply(hdr, pass);
        end.apply(hdr, pass);
    }
}

#endif
