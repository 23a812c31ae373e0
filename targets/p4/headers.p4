/* SPDX-License-Identifier: Apache-2.0 */
/* The packets (docs/manual/wire.md), and what goes with one through the pipeline. */
#ifndef HEADERS_P4
#define HEADERS_P4

#include "sizes.p4"

const bit<8> WIRE_VERSION = 1;
const bit<8> HEADER_BYTES = 88;
const bit<16> UDP_BYTES = 96;
const bit<16> INLINE_BYTES = 8;
const bit<16> ICRC_BYTES = 4;
/* What a SUBMIT has beside its task if that is outside of the header and whole words. */
const bit<16> OUTSIDE_BYTES = UDP_BYTES + ICRC_BYTES;
/* Whether a task of this length has bytes outside of the header; a chip compares for equality. */
#define IS_OUTSIDE(LENGTH) (LENGTH[15:3] != 0 && LENGTH != INLINE_BYTES)

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<8> PROTOCOL_UDP = 17;

const bit<8> KIND_NONE = 0;
const bit<8> KIND_SUBMIT = 1;
const bit<8> KIND_DISPATCH = 2;
const bit<8> KIND_REPLY = 3;
const bit<8> KIND_TOKEN = 4;
const bit<8> KIND_PROBE = 5;
const bit<8> KIND_ANSWER = 6;
const bit<8> KIND_REJECT = 7;
const bit<8> KIND_NOTICE = 8;
const bit<8> KIND_NEED = 9;
const bit<8> KIND_PART = 10;
const bit<8> KIND_SWEEP = 11;
const bit<8> KIND_EMPTY = 12;
const bit<8> KIND_UPDATE = 13;
const bit<8> KIND_JOB = 14;

/* How often a task may recirculate because it met stale tokens. */
const bit<8> ROUNDS_MAX = 16;
const bit<8> ROUNDS_TOO_MANY = ROUNDS_MAX + 1;
/* Nothing is left of the budget. */
const bit<16> BUDGET_SPENT = 1;

/*
 * The age of an entry: below 8,192 as it is; from there in steps of 2,048, rounded up, above three marks. The last step
 * stands for all beyond. The middle mark is turned round if the task's bytes were written ahead.
 */
const bit<16> STEP_MARKS = 0xe000;
const bit<16> LAST_STEP = 0xffff;
const bit<16> MARK_AHEAD = 0x4000;

/* The codes of a REJECT. */
const bit<8> REJECT_QUEUE_FULL = 0;
const bit<8> REJECT_NO_WORKERS = 2;
const bit<8> REJECT_UNKNOWN_TYPE = 3;
const bit<8> REJECT_STALE_TOKENS = 4;
const bit<8> REJECT_LATE = 7;

/* The codes of a DISPATCH: where the task's bytes are. */
const bit<8> PLACE_HERE = 0;
const bit<8> PLACE_AHEAD = 1;
const bit<8> PLACE_AT_CLIENT = 2;

/* The code of a SWEEP: bit 0 says tasks instead of tokens, bit 1 that a token is carried. */
const bit<8> SWEEP_TOKENS = 0;
const bit<8> SWEEP_TASKS = 1;
const bit<8> SWEEP_TOKENS_CARRYING = 2;
const bit<8> SWEEP_TASKS_CARRYING = 3;

header ethernet_t {
    bit<48> to;
    bit<48> from;
    bit<16> type;
}

header ipv4_t {
    bit<8> version_ihl;
    bit<8> service;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> hops;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> from;
    bit<32> to;
}

header ipv6_t {
    bit<32> version_class_flow;
    bit<16> length;
    bit<8> next;
    bit<8> hops;
    bit<32> from_0;
    bit<32> from_1;
    bit<32> from_2;
    bit<32> from_3;
    bit<32> to_0;
    bit<32> to_1;
    bit<32> to_2;
    bit<32> to_3;
}

header udp_t {
    bit<16> from;
    bit<16> to;
    bit<16> length;
    bit<16> checksum;
}

/* The header that all kinds share. The inline bytes are fields of their own, because each has a column. */
header sluice_t {
    bit<8> version;
    bit<8> kind;
    bit<8> own_length;
    bit<8> code;
    bit<32> epoch;
    bit<32> key;
    bit<16> task_type;
    bit<8> priority;
    bit<8> constraints;
    bit<16> client;
    bit<16> worker;
    bit<32> generation;
    bit<32> incarnation_high;
    bit<32> incarnation_low;
    bit<32> sequence;
    bit<16> attempt;
    bit<16> length;
    bit<8> payload_0;
    bit<8> payload_1;
    bit<8> payload_2;
    bit<8> payload_3;
    bit<8> payload_4;
    bit<8> payload_5;
    bit<8> payload_6;
    bit<8> payload_7;
    bit<32> address_0;
    bit<32> address_1;
    bit<32> address_2;
    bit<32> address_3;
    bit<16> port;
    bit<16> slice;
    bit<32> word_0;
    bit<32> word_1;
    bit<32> word_2;
    bit<16> budget;
    /* In a SWEEP how many entries are left, which fit in this half of the word. */
    bit<16> occupancy;
    bit<32> age;
}

/* All fields of the header. */
#define SLUICE_FIELDS                                                                                      \
    hdr.sluice.version, hdr.sluice.kind, hdr.sluice.own_length, hdr.sluice.code, hdr.sluice.epoch,         \
    hdr.sluice.key, hdr.sluice.task_type, hdr.sluice.priority, hdr.sluice.constraints, hdr.sluice.client,  \
    hdr.sluice.worker, hdr.sluice.generation, hdr.sluice.incarnation_high, hdr.sluice.incarnation_low,     \
    hdr.sluice.sequence, hdr.sluice.attempt, hdr.sluice.length, hdr.sluice.payload_0,                      \
    hdr.sluice.payload_1, hdr.sluice.payload_2, hdr.sluice.payload_3, hdr.sluice.payload_4,                \
    hdr.sluice.payload_5, hdr.sluice.payload_6, hdr.sluice.payload_7, hdr.sluice.address_0,                \
    hdr.sluice.address_1, hdr.sluice.address_2, hdr.sluice.address_3, hdr.sluice.port, hdr.sluice.slice,   \
    hdr.sluice.word_0, hdr.sluice.word_1, hdr.sluice.word_2, hdr.sluice.budget, hdr.sluice.occupancy,      \
    hdr.sluice.age

/* In front of a packet that recirculates. */
header round_t {
    bit<8> number;
    @padding bit<15> unused;
    /* The link by which the packet came. */
    bit<9> link;
    bit<16> arrived_high;
    bit<32> arrived_low;
}

/* Where a packet goes. */
const bit<8> TO_NOBODY = 0;
const bit<8> TO_WORKER = 1;
const bit<8> TO_CLIENT = 2;
/* Into the pipeline again. */
const bit<8> TO_ROUND = 3;
/* To the servers of its slice. */
const bit<8> TO_SERVERS = 4;

/*
 * From ingress to egress: what is to be made of the packet, and of what. Egress of the chip parses these bytes as
 * `told_t`, because no container's half can be moved into a wider one.
 */
header bridge_t {
    /* The kind of the packet to make; KIND_NONE leaves the packet as it is. */
    bit<8> made;
    bit<8> code;
    bit<8> to;
    @padding bit<7> unused;
    /* 1 if the task waited in the queue, so that its age is that of its entry. */
    bit<1> waited;
    bit<32> seen;
    bit<32> sent;
    bit<16> zero_0;
    bit<16> now_high;
    bit<32> now_low;
    bit<16> zero_1;
    bit<16> arrived_high;
    bit<32> arrived_low;
    /* As in `pass_t`. */
    bit<32> ticket;
    bit<16> slice;
    bit<16> occupancy;
}

header told_t {
    bit<8> made;
    bit<8> code;
    bit<8> to;
    @padding bit<7> unused;
    bit<1> waited;
    bit<32> seen;
    bit<32> sent;
    bit<32> now_high;
    bit<32> now_low;
    bit<32> arrived_high;
    bit<32> arrived_low;
    bit<32> ticket;
    bit<16> slice;
    bit<16> occupancy;
}

/*
 * Behind the bridge, and with a packet that recirculates: what the chip knows of the bytes behind our header, which it
 * does not parse again. The age lies here so that both are one container at egress, which parses `told_behind_t`.
 */
header behind_t {
    /* 1 if the sum is not known. */
    bit<8> unsummed;
    /* Of these bytes, as a UDP checksum counts them. */
    bit<16> sum;
    bit<16> age;
}

header told_behind_t {
    bit<8> unsummed;
    bit<32> sum_and_age;
}

#ifdef HELD_TO_VECTORS
/* In front of a frame of a vector. */
header held_t {
    bit<64> now;
    bit<8> is_control;
    bit<8> is_question;
    /* What the random unit gives to this packet. */
    bit<16> draw_0;
    bit<16> draw_1;
    bit<16> unused;
}
#endif

/* The bytes of one task of a JOB. */
header job_t {
    bit<64> payload;
}

/* A WRITE's headers: BTH, RETH, and the task's id, with which its slot begins. */
header write_t {
    bit<8> opcode;
    bit<8> flags;
    bit<16> partition;
    bit<8> unused;
    bit<24> qpn;
    bit<8> asks;
    bit<24> psn;
    bit<32> address_high;
    bit<32> address_low;
    bit<32> rkey;
    bit<16> length_high;
    bit<16> length;
    bit<32> incarnation_high;
    bit<32> incarnation_low;
    bit<32> sequence;
}

/* The bytes of a task that may be written ahead; what is longer fits no WRITE. */
const bit<16> BODY_BYTES_MAX = 4084;

header body_t {
    varbit<32672> bytes;
}

/* Behind a large task: the end of a WRITE, which a SUBMIT brings as zeros. */
header padding_t {
    bit<8> zero;
}

header icrc_t {
    bit<32> icrc;
}

#define WRITE_FIELDS                                                                                       \
    hdr.write.opcode, hdr.write.flags, hdr.write.partition, hdr.write.unused, hdr.write.qpn,               \
    hdr.write.asks, hdr.write.psn, hdr.write.address_high, hdr.write.address_low, hdr.write.rkey,          \
    hdr.write.length_high, hdr.write.length, hdr.write.incarnation_high, hdr.write.incarnation_low,        \
    hdr.write.sequence

struct headers_t {
    bridge_t bridge;
    told_t told;
    behind_t behind;
    told_behind_t told_behind;
    round_t round;
#ifdef HELD_TO_VECTORS
    held_t held;
#endif
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv6_t ipv6;
    udp_t udp;
    sluice_t sluice;
    write_t write;
#ifdef V1MODEL
    job_t[5] job;
    body_t body;
    padding_t[3] padding;
    icrc_t icrc;
#endif
}

/* What a packet does at the queue. */
/* It reads its worker's counters. */
const bit<4> ROLE_ASKS = 1;
const bit<4> ROLE_TOKEN = 2;
const bit<4> ROLE_TASK = 3;
const bit<4> ROLE_SWEEPS_TOKENS = 4;
const bit<4> ROLE_SWEEPS_TASKS = 5;

/* What a packet does with the rings. */
const bit<4> RING_NONE = 0;
const bit<4> RING_PARK_TOKEN = 1;
const bit<4> RING_TAKE_TOKEN = 2;
const bit<4> RING_PARK_TASK = 3;
const bit<4> RING_TAKE_TASK = 4;

/* Why a packet changes nothing: `Refusal`, in its order, and none. */
const bit<8> REFUSAL_UNKNOWN_SOURCE = 0;
const bit<8> REFUSAL_WRONG_KEY = 1;
const bit<8> REFUSAL_WRONG_ADDRESS = 2;
const bit<8> REFUSAL_WRONG_EPOCH = 3;
const bit<8> REFUSAL_WRONG_GENERATION = 4;
const bit<8> REFUSAL_CLOSED = 5;
const bit<8> REFUSAL_REPLAYED = 6;
const bit<8> REFUSAL_REPEATED_TOKEN = 7;
const bit<8> REFUSAL_IMPOSSIBLE_COUNTER = 8;
const bit<8> REFUSAL_UNEXPECTED = 9;
const bit<8> REFUSAL_TOKEN_RING_FULL = 10;
const bit<8> REFUSAL_SWEEP_DONE = 12;
const bit<8> REFUSAL_FIX_DONE = 13;
const bit<8> REFUSAL_NONE = 0xff;
const bit<32> REFUSALS = 19;
const bit<32> KINDS = 15;

/* One packet's pass through ingress. */
struct pass_t {
    /* The sender; IPv4 as IPv4-mapped IPv6. */
    bit<32> from_0;
    bit<32> from_1;
    bit<32> from_2;
    bit<32> from_3;
    /* 1 if the packet came from the controller's port. */
    bit<1> is_control;
    /* 1 if version and header length are ours, and either nothing is behind the header or its kind may have that. */
    bit<1> is_packet;
    /* 1 if nothing is behind the header. */
    bit<1> is_brief;
    /* By how many bytes the datagram is longer than the task. */
    bit<16> beside;
    /* The tables' answers. */
    bit<1> known;
    bit<1> key_right;
    bit<1> address_right;
    bit<8> open;
    bit<1> admitted;
    bit<32> generation;
    bit<16> slice;
    slice_index_t row;
    bit<1> type_known;
    bit<1> slice_open;
    bit<1> epoch_right;
    bit<1> generation_right;
    int<32> full;
    /* By how many bytes the task is shorter than the shortest that fits no slot of its slice; 0 if it fits none. */
    bit<16> room;
    /* What the registers answered. */
    bit<8> granted;
    int<32> newer;
    bit<8> entered;
    bit<8> found;
    int<32> balance;
    bit<16> occupancy;
    /* The entry's count in its ring, above its slice's number. */
    bit<32> ticket;
    bit<1> ahead;
    bit<8> live;
    bit<1> worker_there;
    bit<9> worker_link;
    bit<1> client_there;
    bit<9> client_link;
    bit<4> role;
    bit<4> ring;
    bit<1> is_round;
    /* How often the packet has recirculated. */
    bit<8> round;
    /* When it came for the first time. */
    bit<16> arrived_high;
    bit<32> arrived_low;
    /* The link by which the packet came, and then the link by which it leaves. */
    bit<9> link;
    bit<8> refusal;
}

#endif
