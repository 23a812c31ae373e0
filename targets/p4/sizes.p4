/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of the switch's memory: those of `Config::full`, unless the compiler's -D gives others. */
#ifndef SIZES_P4
#define SIZES_P4

#ifndef WORKERS
#define WORKERS 1024
#define CLIENTS 32
#define TYPES 256
#define SERVERS 64
/* Binary logarithms. */
#define CLIENT_BITS 5
#define SLICE_BITS 4
#define TOKEN_BITS 12
#define REPLAY_BITS 12
#define SEAT_BITS 10
#define DRAW_BITS 12
#endif
#ifndef TASK_BITS
#define TASK_BITS 13
#endif

#define SLICES (1 << SLICE_BITS)
#define TASKS (1 << (SLICE_BITS + TASK_BITS))
#define TOKENS (1 << (SLICE_BITS + TOKEN_BITS))
#define TOKENS_PER_SLICE (1 << TOKEN_BITS)
#define REPLAY_CELLS (1 << (CLIENT_BITS + REPLAY_BITS))
#define SEATS (1 << (SLICE_BITS + SEAT_BITS))
#define DRAWS (1 << (SLICE_BITS + DRAW_BITS))

/* The UDP port at which hosts find the switch. */
#ifndef SWITCH_PORT
#define SWITCH_PORT 7000
#endif

typedef bit<SLICE_BITS> slice_index_t;
typedef bit<(SLICE_BITS + TASK_BITS)> task_index_t;
typedef bit<(SLICE_BITS + TOKEN_BITS)> token_index_t;
typedef bit<(CLIENT_BITS + REPLAY_BITS)> replay_index_t;
typedef bit<16> worker_index_t;
typedef bit<(SLICE_BITS + SEAT_BITS)> seat_index_t;
typedef bit<DRAW_BITS> draw_t;

#endif
