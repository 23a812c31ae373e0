/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sends a packet, and whether it counts: keys, addresses, epochs, generations; tokens granted once, tries that
 * enter once. queue.p4 has the verdicts that follow.
 *
 * One look-up by everything that a sender must show decides whether a packet is let in, and its action makes the
 * access to `seen` or `replay`: so the look-up and the access take one stage. The other tables say why a packet
 * is not let in. The controller's driver writes one row into all tables, and the row that admits last.
 *
 * Small tables are in TCAM: two stages have no room for the look-ups of ten exact tables.
 */
#ifndef SOURCES_P4
#define SOURCES_P4

control Sources(inout headers_t hdr, inout pass_t pass) {
#ifndef TRUSTS_SENDERS
    /* How far a TOKEN's count may run ahead of the granted tokens. */
    const int<32> TOKENS_AHEAD_MAX = 8;

    REGISTER(bit<32>, int<32>, worker_index_t, WORKERS, seen, 0)
    /* The sequence of the newest try that entered, for each client and residue; its attempt is in the next stage. */
    REGISTER(bit<32>, int<32>, replay_index_t, REPLAY_CELLS, replay, 0)
    REGISTER(bit<16>, bit<16>, replay_index_t, REPLAY_CELLS, replay_attempt, 0)

    /* A packet grants one token, even if many before it were lost: the worker repeats until all are granted. */
    ACCESS(grant_next, seen, bit<32>, int<32>, worker_index_t, bit<8>) {
        result = PREDICATE((int<32>) hdr.sluice.word_0 - value > 0,
                           (int<32>) hdr.sluice.word_0 - value <= TOKENS_AHEAD_MAX);
        if ((int<32>) hdr.sluice.word_0 - value > 0 &&
            (int<32>) hdr.sluice.word_0 - value <= TOKENS_AHEAD_MAX) {
            value = value + 1;
        }
    } DONE(seen, bit<32>)

    /* How far the try is ahead of the newest one. */
    ACCESS(enter_sequence, replay, bit<32>, int<32>, replay_index_t, int<32>) {
        result = (int<32>) hdr.sluice.sequence - value;
        if ((int<32>) hdr.sluice.sequence - value > 0) {
            value = (int<32>) hdr.sluice.sequence;
        }
    } DONE(replay, bit<32>)

    ACCESS(enter_first, replay_attempt, bit<16>, bit<16>, replay_index_t, bit<8>) {
        result = 1;
        value = hdr.sluice.attempt;
    } DONE(replay_attempt, bit<16>)

    ACCESS(enter_later, replay_attempt, bit<16>, bit<16>, replay_index_t, bit<8>) {
        if (hdr.sluice.attempt > value) {
            result = 1;
            value = hdr.sluice.attempt;
        }
    } DONE(replay_attempt, bit<16>)

    action is_this_epoch() {
        pass.epoch_right = 1;
    }

    @ternary(1) table life {
        key = { hdr.sluice.epoch: exact; }
        actions = { is_this_epoch; @defaultonly NoAction; }
        default_action = NoAction;
        size = 2;
    }
#endif

    action is_worker(bit<16> slice, bit<32> generation, bit<8> open) {
        pass.known = 1;
        pass.slice = slice;
        pass.row = (slice_index_t) slice;
        pass.generation = generation;
        pass.open = open;
    }

    table workers {
        key = { hdr.sluice.worker: exact; }
        actions = { is_worker; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    action is_client() {
        pass.known = 1;
    }

    @ternary(1) table clients {
        key = { hdr.sluice.client: exact; }
        actions = { is_client; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

#ifndef TRUSTS_SENDERS
    action is_key() {
        pass.key_right = 1;
    }

    table worker_keys {
        key = { hdr.sluice.worker: exact; hdr.sluice.key: exact; }
        actions = { is_key; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    @ternary(1) table client_keys {
        key = { hdr.sluice.client: exact; hdr.sluice.key: exact; }
        actions = { is_key; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

    action is_address() {
        pass.address_right = 1;
    }

    table worker_addresses {
        key = {
            hdr.sluice.worker: exact;
            pass.from_0: exact;
            pass.from_1: exact;
            pass.from_2: exact;
            pass.from_3: exact;
            hdr.udp.from: exact;
        }
        actions = { is_address; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    @ternary(1) table client_addresses {
        key = {
            hdr.sluice.client: exact;
            pass.from_0: exact;
            pass.from_1: exact;
            pass.from_2: exact;
            pass.from_3: exact;
            hdr.udp.from: exact;
        }
        actions = { is_address; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

    action admit_token() {
        RUN(grant_next, hdr.sluice.worker, pass.granted);
    }

    /* Rows of open workers only. */
    table admitted_tokens {
        key = {
            hdr.sluice.epoch: exact;
            hdr.sluice.worker: exact;
            hdr.sluice.generation: exact;
            hdr.sluice.key: exact;
            pass.from_0: exact;
            pass.from_1: exact;
            pass.from_2: exact;
            pass.from_3: exact;
            hdr.udp.from: exact;
        }
        actions = { admit_token; @defaultonly NoAction; }
        default_action = NoAction;
        size = WORKERS;
    }

    action admit_task() {
        pass.admitted = 1;
        RUN(enter_sequence,
            hdr.sluice.client[CLIENT_BITS - 1:0] ++ hdr.sluice.sequence[REPLAY_BITS - 1:0], pass.newer);
    }

    @ternary(1) table admitted_tasks {
        key = {
            hdr.sluice.epoch: exact;
            hdr.sluice.client: exact;
            hdr.sluice.key: exact;
            pass.from_0: exact;
            pass.from_1: exact;
            pass.from_2: exact;
            pass.from_3: exact;
            hdr.udp.from: exact;
        }
        actions = { admit_task; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }
#endif

    /* A slice's row lies with each of its types, so that the balance needs no second look-up before it. */
    action in_slice(bit<16> slice, bit<1> open, bit<32> full, bit<16> beyond) {
        pass.type_known = 1;
        pass.slice = slice;
        pass.row = (slice_index_t) slice;
        pass.slice_open = open;
        pass.full = (int<32>) full;
        pass.room = beyond |-| hdr.sluice.length;
    }

    @ternary(1) table types {
        key = { hdr.sluice.task_type: exact; }
        actions = { in_slice; @defaultonly NoAction; }
        default_action = NoAction;
        size = TYPES;
    }

#ifdef TRUSTS_SENDERS
    /* What the other tables and registers would say of a sender who is what he says. */
    action trust() {
        pass.key_right = 1;
        pass.address_right = 1;
        pass.epoch_right = 1;
        pass.generation_right = 1;
        /* GRANTED of queue.p4. */
        pass.granted = 8;
        pass.entered = 1;
    }

    apply {
        trust();
        if (hdr.sluice.kind == KIND_SUBMIT) {
            clients.apply();
            types.apply();
        } else {
            workers.apply();
        }
    }
#else
    action is_slice(bit<16> slice, bit<1> open) {
        pass.type_known = 1;
        pass.slice = slice;
        pass.row = (slice_index_t) slice;
        pass.slice_open = open;
    }

    @ternary(1) table slices {
        key = { hdr.sluice.slice: exact; }
        actions = { is_slice; @defaultonly NoAction; }
        default_action = NoAction;
        size = SLICES;
    }

#ifdef STAYS_IN_SLICE
    action stay_in_slice() {
        pass.slice = hdr.sluice.slice;
        pass.row = (slice_index_t) hdr.sluice.slice;
    }

    /* The worker has moved. */
    action stay_without_worker() {
        stay_in_slice();
        pass.known = 0;
    }
#endif

    action is_other_length() {
        hdr.sluice.kind = KIND_NONE;
    }

    /*
     * SUBMITs whose lengths do not agree become packets of no kind: a task beside the header is padded to whole words
     * and has an iCRC. `form.p4` has counted them already; on the chip the try counts as entered.
     */
    table lengths {
        key = {
            hdr.sluice.kind: ternary;
            pass.is_round: ternary;
            pass.is_brief: ternary;
            hdr.sluice.length: ternary;
            pass.beside: ternary;
        }
        actions = { is_other_length; NoAction; }
        const default_action = NoAction;
        const entries = {
            (KIND_SUBMIT, 0, 1, 0 &&& 0xfff8, _): NoAction();
            (KIND_SUBMIT, 0, 1, INLINE_BYTES, _): NoAction();
            (KIND_SUBMIT, 0, 1, _, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0 &&& 0xfff8, _): is_other_length();
            (KIND_SUBMIT, 0, _, INLINE_BYTES, _): is_other_length();
            /* More than 65,412, which is 0xff84. */
            (KIND_SUBMIT, 0, _, 0xff85, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0xff86 &&& 0xfffe, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0xff88 &&& 0xfff8, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0xff90 &&& 0xfff0, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0xffa0 &&& 0xffe0, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0xffc0 &&& 0xffc0, _): is_other_length();
            (KIND_SUBMIT, 0, _, 0 &&& 3, OUTSIDE_BYTES): NoAction();
            (KIND_SUBMIT, 0, _, 1 &&& 3, OUTSIDE_BYTES + 3): NoAction();
            (KIND_SUBMIT, 0, _, 2 &&& 3, OUTSIDE_BYTES + 2): NoAction();
            (KIND_SUBMIT, 0, _, 3 &&& 3, OUTSIDE_BYTES + 1): NoAction();
            (KIND_SUBMIT, 0, _, _, _): is_other_length();
        }
    }

    apply {
        life.apply();
        if (hdr.sluice.kind == KIND_SUBMIT) {
            clients.apply();
            types.apply();
            if (pass.is_round == 0) {
                client_keys.apply();
                client_addresses.apply();
                admitted_tasks.apply();
            }
#ifdef STAYS_IN_SLICE
            else {
                stay_in_slice();
            }
#endif
        } else {
            workers.apply();
#ifdef STAYS_IN_SLICE
            if (pass.is_round == 1) {
                if (hdr.sluice.kind == KIND_TOKEN && pass.slice != hdr.sluice.slice) {
                    stay_without_worker();
                } else {
                    stay_in_slice();
                }
            } else
#endif
            if (hdr.sluice.kind == KIND_SWEEP) {
                slices.apply();
            } else if (pass.is_round == 0) {
                worker_keys.apply();
                worker_addresses.apply();
                if (hdr.sluice.kind == KIND_TOKEN) {
                    admitted_tokens.apply();
                }
            }
        }

        if (hdr.sluice.generation == pass.generation) {
            pass.generation_right = 1;
        }
        if (pass.admitted == 1 && hdr.sluice.kind == KIND_SUBMIT) {
            if (pass.newer == 0) {
                RUN(enter_later,
                    hdr.sluice.client[CLIENT_BITS - 1:0] ++ hdr.sluice.sequence[REPLAY_BITS - 1:0],
                    pass.entered);
            } else if (((bit<32>) pass.newer)[31:31] == 0) {
                RUN(enter_first,
                    hdr.sluice.client[CLIENT_BITS - 1:0] ++ hdr.sluice.sequence[REPLAY_BITS - 1:0],
                    pass.entered);
            }
        }
        lengths.apply();
    }
#endif
}

#endif
