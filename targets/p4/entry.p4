/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting task's entry, a column for each field (Rain §4). A task that waits writes its row, and a token that takes
 * the task reads it into its own header, which becomes the DISPATCH's.
 *
 * No column is wider than 32 bits: 131,072 words of 64 bits take 65 blocks, and a stage has 48 that a stateful unit
 * can write. The upper half of the incarnation is in the client's row. The stages are those of Tofino: columns of 33, 17
 * and 9 blocks, at most four in a stage.
 */
#ifndef ENTRY_P4
#define ENTRY_P4

/* The first of the eight stages of the chip that have the columns, among Rain's other arrays. */
#ifndef FIRST_STAGE
#define FIRST_STAGE 4
#endif

#define COLUMN(NAME, STAGE, WORD, FIELD)                                              \
    REGISTER(WORD, WORD, task_index_t, TASKS, NAME, 0)                                    \
    ACCESS_ONLY(keep_##NAME, NAME, WORD, WORD, task_index_t) {                            \
        value = FIELD;                                                                \
    } DONE(NAME, WORD)                                                                \
    ACCESS(take_##NAME, NAME, WORD, WORD, task_index_t, WORD) {                           \
        result = value;                                                               \
    } DONE(NAME, WORD)                                                                \
    action park_##NAME() { RUN_ONLY(keep_##NAME, (task_index_t) pass.ticket); }    \
    action fetch_##NAME() { RUN(take_##NAME, (task_index_t) pass.ticket, FIELD); } \
    @stage(FIRST_STAGE + STAGE) table NAME##_column {                                  \
        key = { pass.ring: exact; }                                                   \
        actions = { park_##NAME; fetch_##NAME; NoAction; }                            \
        const default_action = NoAction;                                              \
        const entries = {                                                             \
            RING_PARK_TASK: park_##NAME();                                            \
            RING_TAKE_TASK: fetch_##NAME();                                           \
        }                                                                             \
    }

control Entry(inout headers_t hdr, inout pass_t pass) {
    COLUMN(client, 0, bit<16>, hdr.sluice.client)
    COLUMN(attempt, 4, bit<16>, hdr.sluice.attempt)
    COLUMN(budget, 5, bit<16>, hdr.sluice.budget)
    COLUMN(arrived_high, 4, bit<16>, hdr.bridge.arrived_high)
    COLUMN(age, 6, bit<16>, hdr.behind.age)
    COLUMN(arrived_low, 1, bit<32>, hdr.bridge.arrived_low)
    COLUMN(task_type, 6, bit<16>, hdr.sluice.task_type)
    COLUMN(length, 5, bit<16>, hdr.sluice.length)
    COLUMN(incarnation_low, 3, bit<32>, hdr.sluice.incarnation_low)
    COLUMN(sequence, 2, bit<32>, hdr.sluice.sequence)
    COLUMN(priority, 7, bit<8>, hdr.sluice.priority)
    COLUMN(constraints, 7, bit<8>, hdr.sluice.constraints)
    COLUMN(payload_0, 1, bit<8>, hdr.sluice.payload_0)
    COLUMN(payload_1, 2, bit<8>, hdr.sluice.payload_1)
    COLUMN(payload_2, 3, bit<8>, hdr.sluice.payload_2)
    COLUMN(payload_3, 4, bit<8>, hdr.sluice.payload_3)
    COLUMN(payload_4, 5, bit<8>, hdr.sluice.payload_4)
    COLUMN(payload_5, 6, bit<8>, hdr.sluice.payload_5)
    COLUMN(payload_6, 7, bit<8>, hdr.sluice.payload_6)
    COLUMN(payload_7, 7, bit<8>, hdr.sluice.payload_7)

    apply {
        client_column.apply();
        attempt_column.apply();
        budget_column.apply();
        arrived_high_column.apply();
        age_column.apply();
        arrived_low_column.apply();
        task_type_column.apply();
        length_column.apply();
        incarnation_low_column.apply();
        sequence_column.apply();
        priority_column.apply();
        constraints_column.apply();
        payload_0_column.apply();
        payload_1_column.apply();
        payload_2_column.apply();
        payload_3_column.apply();
        payload_4_column.apply();
        payload_5_column.apply();
        payload_6_column.apply();
        payload_7_column.apply();
    }
}

#endif
