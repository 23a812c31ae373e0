// SPDX-License-Identifier: Apache-2.0
/*
 * The time of a token and a task if tokens had ranks: the programs of pair.bpf.c, with the rendezvous of line.h
 * instead of the switch's own. It can measure nothing but pairs: room, the sweep and the loader are those of a
 * single ring. The queues of all slices serve as the rings of the first slice. A token checks the tasks' ring
 * instead of its own, which takes as long.
 */
#include "line.h"

static __always_inline enum entered ranked_token_try(__u32 slice, struct granted granted, struct counters *counters,
						     struct met *met)
{
	/* A rank that the compiler cannot know; zero for the measured worker. */
	__u32 ring = ring_for(slice, 0, granted.worker & (RANKS - 1));
	__u32 index = slice * RINGS + ring;
	struct queue *queue = ring < RINGS ? queue_of(index) : 0;

	return queue ? token_try(queue, index, granted, counters, met) : ENTERED_VOID;
}

static __always_inline enum entered ranked_task_try(__u32 slice, const struct header *header, __u64 now,
						    struct counters *counters, struct ahead *ahead,
						    struct granted *granted)
{
	__u32 ring = ring_for(slice, TASKS_WAIT, 0);
	__u32 index = slice * RINGS + ring;
	struct queue *queue = ring < RINGS ? queue_of(index) : 0;

	return queue ? task_try(queue, index, header, now, counters, ahead, granted) : ENTERED_VOID;
}

/* From here on the passes use the counts of line.h. */
#define token_try(queue, slice, granted, counters, met) ranked_token_try(slice, granted, counters, met)
#define task_try(queue, slice, header, now, counters, ahead, granted) \
	ranked_task_try(slice, header, now, counters, ahead, granted)

#include "pair.bpf.c"
