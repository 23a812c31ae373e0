/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers on v1model. arch_tna.p4 has the same names for the chip, so that all other files are shared.
 *
 *     REGISTER(stored, value, index, cells, name, initial)
 *     ACCESS(name, register, stored, value, index, result) { what becomes of `value`, and the `result` } DONE(register, stored)
 *     RUN(name, index, result);
 *
 * ACCESS_ONLY and RUN_ONLY are without a result.
 *
 * v1model knows reads and writes only. Its one ingress thread makes a read and the write behind it one access.
 */
#ifndef ARCH_P4
#define ARCH_P4

#include <core.p4>
#include <v1model.p4>

#define REGISTER(STORED, VALUE, INDEX, CELLS, NAME, INITIAL) register<STORED>(CELLS) NAME;

#define ACCESS(NAME, REGISTER, STORED, VALUE, INDEX, RESULT)      \
    action NAME(in INDEX at, out RESULT result) {              \
        STORED stored;                                            \
        REGISTER.read(stored, (bit<32>) at);                   \
        VALUE value = (VALUE) stored;                             \
        result = 0;

#define ACCESS_ONLY(NAME, REGISTER, STORED, VALUE, INDEX)         \
    action NAME(in INDEX at) {                                    \
        STORED stored;                                            \
        REGISTER.read(stored, (bit<32>) at);                   \
        VALUE value = (VALUE) stored;

#define DONE(REGISTER, STORED)                                    \
        REGISTER.write((bit<32>) at, (STORED) value);          \
    }

#define RUN(NAME, INDEX, RESULT) NAME(INDEX, RESULT)
#define RUN_ONLY(NAME, INDEX) NAME(INDEX)

/*
 * The same for a register of two words: PAIR_REGISTER(index, cells, name), PAIR_ACCESS(name, register, index, result)
 * { ... } PAIR_DONE(register).
 */
struct pair_t {
    int<32> high;
    int<32> low;
}

#define PAIR_REGISTER(INDEX, CELLS, NAME) register<bit<64>>(CELLS) NAME;

#define PAIR_ACCESS(NAME, REGISTER, INDEX, RESULT)                \
    action NAME(in INDEX at, out RESULT result) {                 \
        bit<64> stored;                                           \
        REGISTER.read(stored, (bit<32>) at);                      \
        pair_t value;                                             \
        value.high = (int<32>) stored[63:32];                     \
        value.low = (int<32>) stored[31:0];                       \
        result = 0;

#define PAIR_DONE(REGISTER)                                       \
        REGISTER.write((bit<32>) at,                              \
                       (bit<32>) value.high ++ (bit<32>) value.low); \
    }

/* A ticket as packets name it: the count above the slice's number, in 28 bits. */
#define TICKET_OF(WORD) (WORD >> SLICE_BITS & 0x0fffffff)

/* Moves a part of a field into a narrower one. */
#define MOVER(VALUE, NAME)
#define MOVE(NAME, FROM, TO) TO = FROM

/* Four bits of which one is set: bit 0 if neither holds, bit 1 the first, bit 2 the second, bit 3 both. */
#define PREDICATE(FIRST, SECOND) ((FIRST) ? ((SECOND) ? 8w8 : 8w2) : ((SECOND) ? 8w4 : 8w1))

/* A number of the random unit, evenly drawn. Frames of vectors bring their own. */
#define RANDOM(NUMBER, NAME)
#ifdef HELD_TO_VECTORS
#define DRAW(NAME, NUMBER, HELD, TO) TO = (NUMBER) HELD
#else
#define DRAW(NAME, NUMBER, HELD, TO) random(TO, (NUMBER) 0, (NUMBER) 0xffff)
#endif

/* BMv2 parses the bytes that a checksum is of, and needs no sum of those behind. */
#define REST_SUM(NAME)
#define LEAVE_OUT(NAME, ...)
#define SUM_REST(NAME, TO) TO = 0;
#define NO_REST_SUM(TO)

#define COUNTER(CELLS, NAME) counter(CELLS, CounterType.packets) NAME;
#define COUNT(NAME, INDEX) NAME.count((bit<32>) INDEX)

#endif
