/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting task's entry, a column for each field (Rain §4). A task that waits writes its row, and a token that takes
 * the task reads it into its own header, which becomes the DISPATCH's.
 *
 * No column is wider than 32 bits: 131,072 words of 64 bits take 65 blocks, and a stage has 48 that a stateful unit
 * can write. The upper half of the incarnation is in the client's row.
 */
#ifndef ENTRY_P4
#define ENTRY_P4

#define COLUMN(NAME, WORD, FIELD)                                                     \
    REGISTER(WORD, WORD, ticket_t, TASKS, NAME, 0)                                \
    ACCESS_ONLY(keep_##NAME, NAME, WORD, WORD, ticket_t) {                        \
        value = FIELD;                                                                \
    } DONE(NAME, WORD)                                                                \
    ACCESS(take_##NAME, NAME, WORD, WORD, ticket_t, WORD) {                       \
        result = value;                                                               \
    } DONE(NAME, WORD)                                                                \
    action park_##NAME() { RUN_ONLY(keep_##NAME, AT(task_index_t, pass.ticket)); }                            \
    action fetch_##NAME() { RUN(take_##NAME, AT(task_index_t, pass.ticket), FIELD); }                         \
    table NAME##_column {                                                             \
        key = { pass.ring: exact; }                                                   \
        actions = { park_##NAME; fetch_##NAME; NoAction; }                            \
        const default_action = NoAction;                                              \
        const entries = {                                                             \
            RING_PARK_TASK: park_##NAME();                                            \
            RING_TAKE_TASK: fetch_##NAME();                                           \
        }                                                                             \
    }

control Entry(inout headers_t hdr, inout pass_t pass) {
    COLUMN(client, bit<16>, hdr.sluice.client)
    COLUMN(attempt, bit<16>, hdr.sluice.attempt)
    COLUMN(budget, bit<16>, hdr.sluice.budget)
    COLUMN(arrived_high, bit<16>, hdr.bridge.arrived_high)
    COLUMN(age, bit<16>, hdr.bridge.age)
    COLUMN(arrived_low, bit<32>, hdr.bridge.arrived_low)
    COLUMN(task_type, bit<16>, hdr.sluice.task_type)
    COLUMN(length, bit<16>, hdr.sluice.length)
    COLUMN(incarnation_low, bit<32>, hdr.sluice.incarnation_low)
    COLUMN(sequence, bit<32>, hdr.sluice.sequence)
    COLUMN(priority, bit<8>, hdr.sluice.priority)
    COLUMN(constraints, bit<8>, hdr.sluice.constraints)
    COLUMN(payload_0, bit<8>, hdr.sluice.payload_0)
    COLUMN(payload_1, bit<8>, hdr.sluice.payload_1)
    COLUMN(payload_2, bit<8>, hdr.sluice.payload_2)
    COLUMN(payload_3, bit<8>, hdr.sluice.payload_3)
    COLUMN(payload_4, bit<8>, hdr.sluice.payload_4)
    COLUMN(payload_5, bit<8>, hdr.sluice.payload_5)
    COLUMN(payload_6, bit<8>, hdr.sluice.payload_6)
    COLUMN(payload_7, bit<8>, hdr.sluice.payload_7)

#ifdef WRITES_AHEAD
    /* A chip writes only constants into words of one bit. */
    REGISTER(bit<1>, bit<1>, ticket_t, TASKS, ahead, 0)

    ACCESS_ONLY(mark_ahead, ahead, bit<1>, bit<1>, ticket_t) {
        value = 1;
    } DONE(ahead, bit<1>)

    ACCESS_ONLY(unmark_ahead, ahead, bit<1>, bit<1>, ticket_t) {
        value = 0;
    } DONE(ahead, bit<1>)

    ACCESS(take_ahead, ahead, bit<1>, bit<1>, ticket_t, bit<1>) {
        result = value;
    } DONE(ahead, bit<1>)

    action park_ahead() {
        RUN_ONLY(mark_ahead, AT(task_index_t, pass.ticket));
    }

    action park_not_ahead() {
        RUN_ONLY(unmark_ahead, AT(task_index_t, pass.ticket));
    }

    action fetch_ahead() {
        RUN(take_ahead, AT(task_index_t, pass.ticket), pass.ahead);
    }

    table ahead_column {
        key = { pass.ring: exact; pass.ahead: exact; }
        actions = { park_ahead; park_not_ahead; fetch_ahead; NoAction; }
        const default_action = NoAction;
        const entries = {
            (RING_PARK_TASK, 1): park_ahead();
            (RING_PARK_TASK, 0): park_not_ahead();
            (RING_TAKE_TASK, 0): fetch_ahead();
        }
    }
#endif

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
#ifdef WRITES_AHEAD
        ahead_column.apply();
#endif
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
