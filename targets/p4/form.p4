/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether bytes are a packet, and if not, why: the checks and their order are those of `sluice_wire::View`.
 *
 * For v1model only. On the chip a switch that looks at three kinds of packets does not check the rest, and every
 * packet that leaves has all its fields written.
 */
#ifndef FORM_P4
#define FORM_P4

#include "unused.p4"

const bit<8> MALFORMED_SHORT = 0;
const bit<8> MALFORMED_LONG = 1;
const bit<8> MALFORMED_VERSION = 2;
const bit<8> MALFORMED_KIND = 3;
const bit<8> MALFORMED_HEADER_LENGTH = 4;
const bit<8> MALFORMED_PAYLOAD_LENGTH = 5;
const bit<8> MALFORMED_UNUSED = 6;
const bit<8> MALFORMED_CODE = 7;
const bit<8> MALFORMED_PADDING = 8;
const bit<8> MALFORMED_RANGE = 9;
const bit<8> WELL_FORMED = 0xff;
const bit<32> MALFORMEDS = 10;

/* The longest task that fits the largest UDP datagram over IPv4 with its trailer. */
const bit<16> PAYLOAD_MAX = 65412;
const bit<8> JOB_TASKS_MAX = 5;

control Form(inout headers_t hdr, inout pass_t pass, out bit<8> why) {
    bit<704> unused = 0;
    bit<704> all = 0;
    bit<16> beside = 0;
    bit<16> behind = 0;
    bit<64> payload = 0;
    bit<64> rest = 0;

    action is_unused(bit<704> mask) {
        unused = mask;
    }

    table unused_fields {
        key = { hdr.sluice.kind: exact; }
        actions = { is_unused; NoAction; }
        const default_action = NoAction;
        const entries = {
            UNUSED_FIELDS
        }
    }

    action gather() {
        all = hdr.sluice.version ++ hdr.sluice.kind ++ hdr.sluice.own_length ++ hdr.sluice.code ++
              hdr.sluice.epoch ++ hdr.sluice.key ++ hdr.sluice.task_type ++ hdr.sluice.priority ++
              hdr.sluice.constraints ++ hdr.sluice.client ++ hdr.sluice.worker ++ hdr.sluice.generation ++
              hdr.sluice.incarnation_high ++ hdr.sluice.incarnation_low ++ hdr.sluice.sequence ++
              hdr.sluice.attempt ++ hdr.sluice.length ++ hdr.sluice.payload_0 ++ hdr.sluice.payload_1 ++
              hdr.sluice.payload_2 ++ hdr.sluice.payload_3 ++ hdr.sluice.payload_4 ++ hdr.sluice.payload_5 ++
              hdr.sluice.payload_6 ++ hdr.sluice.payload_7 ++ hdr.sluice.address_0 ++ hdr.sluice.address_1 ++
              hdr.sluice.address_2 ++ hdr.sluice.address_3 ++ hdr.sluice.port ++ hdr.sluice.slice ++
              hdr.sluice.word_0 ++ hdr.sluice.word_1 ++ hdr.sluice.word_2 ++ hdr.sluice.budget ++
              hdr.sluice.occupancy ++ hdr.sluice.age;
        payload = hdr.sluice.payload_0 ++ hdr.sluice.payload_1 ++ hdr.sluice.payload_2 ++ hdr.sluice.payload_3 ++
                  hdr.sluice.payload_4 ++ hdr.sluice.payload_5 ++ hdr.sluice.payload_6 ++ hdr.sluice.payload_7;
        behind = hdr.udp.length - UDP_BYTES;
    }

    apply {
        why = WELL_FORMED;
        gather();
        unused_fields.apply();
        if (hdr.sluice.length > INLINE_BYTES &&
            !(hdr.sluice.kind == KIND_DISPATCH && hdr.sluice.code != PLACE_HERE)) {
            beside = hdr.sluice.length;
            if (hdr.sluice.kind == KIND_SUBMIT) {
                beside = beside + (14w0 ++ (0 - beside)[1:0]) + ICRC_BYTES;
            }
        }
        if (hdr.sluice.length < INLINE_BYTES) {
            rest = payload << (hdr.sluice.length[3:0] ++ 3w0);
        }

        if (hdr.sluice.version != WIRE_VERSION) {
            why = MALFORMED_VERSION;
        } else if (hdr.sluice.kind < KIND_SUBMIT || hdr.sluice.kind > KIND_JOB) {
            why = MALFORMED_KIND;
        } else if (hdr.sluice.own_length != HEADER_BYTES) {
            why = MALFORMED_HEADER_LENGTH;
        } else if (all & unused != 0) {
            why = MALFORMED_UNUSED;
        } else if (hdr.sluice.length > PAYLOAD_MAX) {
            why = MALFORMED_PAYLOAD_LENGTH;
        } else if (behind < beside) {
            why = MALFORMED_SHORT;
        } else if (behind > beside) {
            why = MALFORMED_LONG;
        } else if (hdr.sluice.kind == KIND_SUBMIT) {
            if (hdr.icrc.isValid() && hdr.icrc.icrc != 0 || hdr.padding[0].isValid() && hdr.padding[0].zero != 0 ||
                hdr.padding[1].isValid() && hdr.padding[1].zero != 0 ||
                hdr.padding[2].isValid() && hdr.padding[2].zero != 0) {
                why = MALFORMED_PADDING;
            }
        } else if (hdr.sluice.kind == KIND_TOKEN) {
            if (hdr.sluice.code > 7) {
                why = MALFORMED_CODE;
            }
        } else if (hdr.sluice.kind == KIND_DISPATCH) {
            if (hdr.sluice.code > PLACE_AT_CLIENT) {
                why = MALFORMED_CODE;
            } else if (hdr.sluice.code != PLACE_HERE && hdr.sluice.length <= INLINE_BYTES) {
                why = MALFORMED_PAYLOAD_LENGTH;
            } else if (hdr.sluice.code != PLACE_AHEAD && (hdr.sluice.key != 0 || hdr.sluice.slice != 0)) {
                why = MALFORMED_UNUSED;
            }
        } else if (hdr.sluice.kind == KIND_REPLY) {
            if (hdr.sluice.code > 4) {
                why = MALFORMED_CODE;
            }
        } else if (hdr.sluice.kind == KIND_ANSWER) {
            if (hdr.sluice.code == 0 && (hdr.sluice.word_0 != 0 || hdr.sluice.word_1 != 0)) {
                why = MALFORMED_UNUSED;
            } else if (hdr.sluice.code > 1) {
                why = MALFORMED_CODE;
            }
        } else if (hdr.sluice.kind == KIND_REJECT) {
            if (hdr.sluice.code > REJECT_LATE) {
                why = MALFORMED_CODE;
            } else if (hdr.sluice.word_0 >= 24w0 ++ JOB_TASKS_MAX) {
                why = MALFORMED_RANGE;
            }
        } else if (hdr.sluice.kind == KIND_NEED || hdr.sluice.kind == KIND_PART) {
            if (hdr.sluice.code > 1) {
                why = MALFORMED_CODE;
            }
        } else if (hdr.sluice.kind == KIND_SWEEP) {
            if (hdr.sluice.code > SWEEP_TASKS_CARRYING) {
                why = MALFORMED_CODE;
            } else if (hdr.sluice.code < SWEEP_TOKENS_CARRYING &&
                       (hdr.sluice.worker != 0 || hdr.sluice.generation != 0)) {
                why = MALFORMED_UNUSED;
            } else if (hdr.sluice.budget != 0) {
                why = MALFORMED_RANGE;
            }
        } else if (hdr.sluice.kind == KIND_UPDATE) {
            if (hdr.sluice.code < 2 && hdr.sluice.word_0 != 0) {
                why = MALFORMED_UNUSED;
            } else if (hdr.sluice.code > 2) {
                why = MALFORMED_CODE;
            }
        } else if (hdr.sluice.kind == KIND_JOB) {
            if (hdr.sluice.code < 2 || hdr.sluice.code > JOB_TASKS_MAX) {
                why = MALFORMED_CODE;
            } else if (hdr.sluice.length != 5w0 ++ hdr.sluice.code ++ 3w0) {
                why = MALFORMED_PAYLOAD_LENGTH;
            } else if (hdr.sluice.word_0 >> (hdr.sluice.code[2:0] ++ 2w0) != 0) {
                why = MALFORMED_RANGE;
            } else if (hdr.sluice.word_0[3:0] > 8 || hdr.sluice.word_0[7:4] > 8 || hdr.sluice.word_0[11:8] > 8 ||
                       hdr.sluice.word_0[15:12] > 8 || hdr.sluice.word_0[19:16] > 8) {
                why = MALFORMED_RANGE;
            } else if (hdr.job[0].payload << (hdr.sluice.word_0[3:0] ++ 3w0) != 0 ||
                       hdr.job[1].payload << (hdr.sluice.word_0[7:4] ++ 3w0) != 0 ||
                       (hdr.sluice.code > 2 && hdr.job[2].payload << (hdr.sluice.word_0[11:8] ++ 3w0) != 0) ||
                       (hdr.sluice.code > 3 && hdr.job[3].payload << (hdr.sluice.word_0[15:12] ++ 3w0) != 0) ||
                       (hdr.sluice.code > 4 && hdr.job[4].payload << (hdr.sluice.word_0[19:16] ++ 3w0) != 0)) {
                why = MALFORMED_PADDING;
            }
        }
        if (why == WELL_FORMED && rest != 0 && hdr.sluice.kind != KIND_TOKEN && hdr.sluice.kind != KIND_PROBE) {
            why = MALFORMED_PADDING;
        }
    }
}

#endif
