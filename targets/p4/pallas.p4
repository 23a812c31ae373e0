/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pallas: the workers of a slice take turns, and each task goes to the worker whose turn it is. The driver writes the
 * schedule anew when a worker comes or leaves.
 */
#ifndef PALLAS_P4
#define PALLAS_P4

#include "passes.p4"
#include "rules.p4"
#include "sources.p4"
#include "numbers.p4"
#include "replies.p4"

control Pallas(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    Begin() begin;
    Sources() sources;
    Numbers() numbers;
    End() end;

    int<32> position = 0;

    REGISTER(bit<32>, int<32>, slice_index_t, SLICES, turn, 0)

    /* `full` is minus the number of turns. A turn that a shorter schedule has no more is the first. */
    ACCESS(next_turn, turn, bit<32>, int<32>, slice_index_t, int<32>) {
        if (value + pass.full < 0) {
            result = value;
        }
        if (value + pass.full < -1) {
            value = value + 1;
        } else {
            value = 0;
        }
    } DONE(turn, bit<32>)

    RULES_ACTIONS

    /* Workers are pushed their tasks, and have no tokens to send. */
    action refuse_token() {
        pass.role = ROLE_TOKEN;
        refuse(REFUSAL_UNEXPECTED);
    }

    action take_turn() {
        pass.role = ROLE_TASK;
        RUN(next_turn, pass.row, position);
    }

    table arrivals {
        key = { RULES_KEY }
        actions = {
            refuse;
            answer;
            notice;
            reject;
            refuse_token;
            take_turn;
        }
        const default_action = refuse(REFUSAL_UNEXPECTED);
        const entries = {
            RULES_OF_TASKS
            RULES_OF_WORKERS
            RULES_OF_SWEEPS
            (KIND_TOKEN, _, _, _, _, _, _, _, _, _, _, _, _, _, _): refuse_token();
            (KIND_SUBMIT, _, _, _, _, _, _, _, _, _, _, _, _, _, _): take_turn();
            /* No task waits. */
            (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_SWEEP_DONE);
        }
    }

    action is_turn_of(bit<16> worker, bit<32> generation, bit<9> link) {
        hdr.sluice.worker = worker;
        hdr.sluice.generation = generation;
        pass.link = link;
        hdr.bridge.made = KIND_DISPATCH;
        hdr.bridge.to = TO_WORKER;
    }

    action has_no_workers() {
        reject(REJECT_NO_WORKERS);
    }

    table schedule {
        key = { pass.slice: exact; position: exact; }
        actions = { is_turn_of; @defaultonly has_no_workers; }
        const default_action = has_no_workers();
        size = SEATS;
    }

    apply {
        begin.apply(hdr, pass, now);
        sources.apply(hdr, pass);
        arrivals.apply();
        if (pass.role == ROLE_TASK) {
            schedule.apply();
        }
        numbers.apply(hdr, pass);
        end.apply(hdr, pass);
    }
}

#endif
