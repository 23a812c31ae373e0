/* SPDX-License-Identifier: Apache-2.0 */
/* Registers on the chip: arch_v1model.p4 says what the names mean. */
#ifndef ARCH_P4
#define ARCH_P4

#include <core.p4>
#include <tna.p4>

#define REGISTER(STORED, VALUE, INDEX, CELLS, NAME, INITIAL) Register<VALUE, INDEX>(CELLS, INITIAL) NAME;

#define ACCESS(NAME, REGISTER, STORED, VALUE, INDEX, RESULT)      \
    RegisterAction<VALUE, INDEX, RESULT>(REGISTER) NAME = {       \
        void apply(inout VALUE value, out RESULT result)

#define ACCESS_ONLY(NAME, REGISTER, STORED, VALUE, INDEX)         \
    RegisterAction<VALUE, INDEX, VALUE>(REGISTER) NAME = {        \
        void apply(inout VALUE value)

#define DONE(REGISTER, STORED) };

#define RUN(NAME, INDEX, RESULT) RESULT = NAME.execute(INDEX)
#define RUN_ONLY(NAME, INDEX) NAME.execute(INDEX)

struct pair_t {
    int<32> high;
    int<32> low;
}

#define PAIR_REGISTER(INDEX, CELLS, NAME) Register<pair_t, INDEX>(CELLS) NAME;

#define PAIR_ACCESS(NAME, REGISTER, INDEX, RESULT)                \
    RegisterAction<pair_t, INDEX, RESULT>(REGISTER) NAME = {      \
        void apply(inout pair_t value, out RESULT result)

#define PAIR_DONE(REGISTER) };

#define TICKET_OF(WORD) (WORD >> SLICE_BITS)

/* An action's operands have containers of one width; a hash is written to any. */
#define MOVER(VALUE, NAME) Hash<VALUE>(HashAlgorithm_t.IDENTITY) NAME;
#define MOVE(NAME, FROM, TO) TO = NAME.get({ FROM })

#define PREDICATE(FIRST, SECOND) this.predicate(FIRST, SECOND)

#define RANDOM(NUMBER, NAME) Random<NUMBER>() NAME;
#define DRAW(NAME, NUMBER, HELD, TO) TO = NAME.get()

/* The parser takes what it has parsed off the UDP checksum: the sum of the bytes behind is left. */
#define REST_SUM(NAME) Checksum() NAME;
#define LEAVE_OUT(NAME, ...) NAME.subtract(__VA_ARGS__);
#define SUM_REST(NAME, TO) NAME.subtract_all_and_deposit(TO);
/* A datagram over IPv4 may bring no checksum, and its length differs from that of IPv6. */
#define NO_REST_SUM(TO) TO = 1;

#define COUNTER(CELLS, NAME) Counter<bit<64>, bit<8>>(CELLS, CounterType_t.PACKETS) NAME;
#define COUNT(NAME, INDEX) NAME.count(INDEX)

#endif
