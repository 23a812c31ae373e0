/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting task's entry for schedulers that have fewer stages behind their pointers than Rain: fields that stand side
 * by side share a column of 32 bits, so that fewer units access them. 65,536 words of 32 bits take 17 blocks, so that
 * two such columns and one of 16 bits (9 blocks) fit a stage.
 */
#ifndef WIDE_ENTRY_P4
#define WIDE_ENTRY_P4

/* KEPT is the word that a task writes; TAKEN takes apart the `word` that a token reads. */
#define COLUMN(NAME, STAGE, WORD, KEPT, TAKEN)                                            \
    REGISTER(WORD, WORD, task_index_t, TASKS, NAME, 0)                                    \
    ACCESS_ONLY(keep_##NAME, NAME, WORD, WORD, task_index_t) {                            \
        value = KEPT;                                                                     \
    } DONE(NAME, WORD)                                                                    \
    ACCESS(take_##NAME, NAME, WORD, WORD, task_index_t, WORD) {                           \
        result = value;                                                                   \
    } DONE(NAME, WORD)                                                                    \
    action park_##NAME() { RUN_ONLY(keep_##NAME, (task_index_t) pass.ticket); }           \
    action fetch_##NAME() {                                                               \
        WORD word;                                                                        \
        RUN(take_##NAME, (task_index_t) pass.ticket, word);                               \
        TAKEN                                                                             \
    }                                                                                     \
    @stage(STAGE) table NAME##_column {                                                   \
        key = { pass.ring: exact; }                                                       \
        actions = { park_##NAME; fetch_##NAME; NoAction; }                                \
        const default_action = NoAction;                                                  \
        const entries = {                                                                 \
            RING_PARK_TASK: park_##NAME();                                                \
            RING_TAKE_TASK: fetch_##NAME();                                               \
        }                                                                                 \
    }

control WideEntry(inout headers_t hdr, inout pass_t pass) {
    COLUMN(client, 8, bit<16>, hdr.sluice.client, hdr.sluice.client = word;)
    COLUMN(arrived_low, 11, bit<32>, hdr.bridge.arrived_low, hdr.bridge.arrived_low = word;)
    COLUMN(incarnation_low, 8, bit<32>, hdr.sluice.incarnation_low, hdr.sluice.incarnation_low = word;)
    COLUMN(sequence, 9, bit<32>, hdr.sluice.sequence, hdr.sluice.sequence = word;)
    COLUMN(attempt_length, 9, bit<32>, hdr.sluice.attempt ++ hdr.sluice.length,
           hdr.sluice.attempt = word[31:16]; hdr.sluice.length = word[15:0];)
    COLUMN(age, 10, bit<16>, hdr.behind.age, hdr.behind.age = word;)
    COLUMN(type_priority_constraints, 10, bit<32>,
           hdr.sluice.task_type ++ hdr.sluice.priority ++ hdr.sluice.constraints,
           hdr.sluice.task_type = word[31:16]; hdr.sluice.priority = word[15:8]; hdr.sluice.constraints = word[7:0];)
    COLUMN(payload_0_to_3, 10, bit<32>,
           hdr.sluice.payload_0 ++ hdr.sluice.payload_1 ++ hdr.sluice.payload_2 ++ hdr.sluice.payload_3,
           hdr.sluice.payload_0 = word[31:24]; hdr.sluice.payload_1 = word[23:16];
           hdr.sluice.payload_2 = word[15:8]; hdr.sluice.payload_3 = word[7:0];)
    COLUMN(budget, 9, bit<16>, hdr.sluice.budget, hdr.sluice.budget = word;)
    COLUMN(payload_4_to_7, 11, bit<32>,
           hdr.sluice.payload_4 ++ hdr.sluice.payload_5 ++ hdr.sluice.payload_6 ++ hdr.sluice.payload_7,
           hdr.sluice.payload_4 = word[31:24]; hdr.sluice.payload_5 = word[23:16];
           hdr.sluice.payload_6 = word[15:8]; hdr.sluice.payload_7 = word[7:0];)

    apply {
        client_column.apply();
        arrived_low_column.apply();
        incarnation_low_column.apply();
        sequence_column.apply();
        attempt_length_column.apply();
        age_column.apply();
        type_priority_constraints_column.apply();
        payload_0_to_3_column.apply();
        budget_column.apply();
        payload_4_to_7_column.apply();
    }
}

#endif
