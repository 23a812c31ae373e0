/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a packet before a scheduler sees it: the rules of `front` in `sluice_switch`, in their order, as rows
 * of a scheduler's own table. So the first access to the scheduler's memory is an action of the same table, and the
 * verdict takes no stage of its own.
 */
#ifndef RULES_P4
#define RULES_P4

/* Bits of PREDICATE in `granted`: at most one more than was granted, at most eight more, or both. */
const bit<8> NOTHING_NEW = 4;
const bit<8> GRANTED = 8;

#define RULES_KEY                             \
        hdr.sluice.kind: ternary;             \
        pass.is_round: ternary;               \
        pass.is_control: ternary;             \
        pass.known: ternary;                  \
        pass.key_right: ternary;              \
        pass.address_right: ternary;          \
        pass.epoch_right: ternary;            \
        pass.generation_right: ternary;       \
        pass.open: ternary;                   \
        pass.granted: ternary;                \
        pass.entered: ternary;                \
        pass.type_known: ternary;             \
        pass.slice_open: ternary;             \
        hdr.sluice.code: ternary;             \
        hdr.sluice.occupancy: ternary;

#define RULES_ACTIONS                         \
    action refuse(bit<8> why) {               \
        pass.refusal = why;                   \
    }                                         \
    action answer(bit<8> why) {               \
        pass.refusal = why;                   \
        pass.role = ROLE_ASKS;                \
        hdr.bridge.made = KIND_ANSWER;        \
        hdr.bridge.code = pass.open;          \
        hdr.sluice.generation = pass.generation; \
        hdr.bridge.to = TO_WORKER;            \
    }                                         \
    action notice() {                         \
        pass.refusal = REFUSAL_WRONG_EPOCH;   \
        hdr.bridge.made = KIND_NOTICE;        \
        hdr.bridge.to = TO_CLIENT;            \
    }                                         \
    action reject(bit<8> why) {               \
        hdr.bridge.made = KIND_REJECT;        \
        hdr.bridge.code = why;                \
        hdr.bridge.to = TO_CLIENT;            \
    }

/*
 * The columns: kind, round, control, known, key, address, epoch, generation, open, granted, entered, type, slice, code,
 * left.
 */
#define RULES_OF_TASKS                                                                    \
    (KIND_SUBMIT, 0, _, 0, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_UNKNOWN_SOURCE); \
    (KIND_SUBMIT, 0, _, _, 0, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_KEY);      \
    (KIND_SUBMIT, 0, _, _, _, 0, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_ADDRESS);  \
    (KIND_SUBMIT, 0, _, _, _, _, 0, _, _, _, _, _, _, _, _): notice();                       \
    (KIND_SUBMIT, 0, _, _, _, _, _, _, _, _, 0, _, _, _, _): refuse(REFUSAL_REPLAYED);       \
    (KIND_SUBMIT, 0, _, _, _, _, _, _, _, _, _, 0, _, _, _): reject(REJECT_UNKNOWN_TYPE);    \
    (KIND_SUBMIT, 0, _, _, _, _, _, _, _, _, _, _, 0, _, _): reject(REJECT_NO_WORKERS);

/* KIND_TOKEN and KIND_PROBE; a token that was granted is left to the scheduler. */
#define RULES_OF_WORKERS                                                                  \
    (4 &&& 0xfe, 0, _, 0, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_UNKNOWN_SOURCE);  \
    (4 &&& 0xfe, 0, _, _, 0, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_KEY);       \
    (4 &&& 0xfe, 0, _, _, _, 0, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_ADDRESS);   \
    (4 &&& 0xfe, 0, _, _, _, _, 0, _, _, _, _, _, _, _, _): answer(REFUSAL_WRONG_EPOCH);     \
    (4 &&& 0xfe, 0, _, _, _, _, _, 0, _, _, _, _, _, _, _): answer(REFUSAL_WRONG_GENERATION); \
    (4 &&& 0xfe, 0, _, _, _, _, _, _, 0, _, _, _, _, _, _): answer(REFUSAL_CLOSED);          \
    (KIND_PROBE, 0, _, _, _, _, _, _, _, _, _, _, _, _, _): answer(REFUSAL_NONE);            \
    (KIND_TOKEN, 0, _, _, _, _, _, _, _, NOTHING_NEW, _, _, _, _, _): answer(REFUSAL_REPEATED_TOKEN); \
    (KIND_TOKEN, 0, _, _, _, _, _, _, _, 0 &&& GRANTED, _, _, _, _, _): answer(REFUSAL_IMPOSSIBLE_COUNTER);

#define RULES_OF_SWEEPS                                                                   \
    (KIND_SWEEP, _, 0, _, _, _, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_UNEXPECTED);      \
    (KIND_SWEEP, _, _, _, _, _, 0, _, _, _, _, _, _, _, _): refuse(REFUSAL_WRONG_EPOCH);     \
    (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, 0, _, _, _): refuse(REFUSAL_WRONG_EPOCH);     \
    (KIND_SWEEP, _, _, _, _, _, _, _, _, _, _, _, _, _, 0): refuse(REFUSAL_SWEEP_DONE);

#endif
