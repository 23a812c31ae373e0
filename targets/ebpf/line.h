/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of waiting tokens by rank, or of waiting tasks, in one word; and a rendezvous that uses them. No switch
 * uses this yet: `ranked.bpf.c` measures it. `crates/check/rendezvous` is the same in Rust, access by access, and
 * explains why it is correct.
 *
 * Each rank of tokens has a ring, and so have the tasks. One exchange of the word counts an arrival in if it waits,
 * or counts the other side out if it takes one. Then the arrival takes its number in the ring that the word named.
 * There the n-th taker meets the n-th entry that was to wait, as in ring.h, whichever reaches the cell first.
 */
#pragma once

#include "match.h"

enum {
	/* The rings of a slice: one for the tasks, then one for each rank. */
	RANKS = 4,
	RINGS = RANKS + 1,
	COUNT_BITS = 15,
	/* How often the word is tried again after another CPU changed it. */
	LINE_TRIES_MAX = 8,
};

#define COUNT_MASK ((1ull << COUNT_BITS) - 1)

/* The highest bit: the word counts tasks, all in the first count. */
#define TASKS_WAIT (1ull << 63)

struct line {
	__u64 word;
	__u8 unused[56];
};

/* Each slice's. */
ARRAY(lines, struct line);

/* The lowest rank with a count above zero. */
static __always_inline __u32 first_of(__u64 counts)
{
	if (counts & (COUNT_MASK << COUNT_BITS | COUNT_MASK))
		return !(counts & COUNT_MASK);
	return 2 + !(counts >> 2 * COUNT_BITS & COUNT_MASK);
}

static __always_inline __u32 own_ring(__u64 own, __u32 rank)
{
	return own ? 0 : 1 + rank;
}

/*
 * The ring for an arrival; RINGS if other CPUs changed the word at each attempt: then nothing was changed. A
 * separate function, which the verifier checks once instead of in each round of each pass.
 */
__noinline __u32 ring_for(__u32 slice, __u64 own, __u32 rank)
{
	struct line *line = bpf_map_lookup_elem(&lines, &slice);
	__u64 was;

	if (!line || rank >= RANKS)
		return RINGS;
	was = READ_ONCE(line->word);
	for (int tries = 0; tries < LINE_TRIES_MAX; tries++) {
		__u64 counts = was & ~TASKS_WAIT, to, found;
		__u32 ring;

		if (!counts || (was & TASKS_WAIT) == own) {
			to = own | (counts + (1ull << rank * COUNT_BITS));
			ring = own_ring(own, rank);
		} else {
			__u32 first = first_of(counts);

			to = was - (1ull << first * COUNT_BITS);
			ring = own_ring(own ^ TASKS_WAIT, first);
		}
		found = __sync_val_compare_and_swap(&line->word, was, to);
		if (found == was)
			return ring;
		was = found;
	}
	return RINGS;
}
