/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice's target: a task that would wait longer is refused. The model is crates/core/switch/src/rain/target.rs.
 *
 * Tokens are counted in windows that last one target, and the limit follows from the count. If a token parked in a
 * window, the count can raise the limit only.
 * On the chip a note recirculates and writes the limit. Here the pass that ends a window writes the limit itself. It
 * still writes no task ahead, as in the model, where the note takes that place. Two CPUs that end one window at once measure it twice, which changes the
 * limit by another eighth at most.
 */
#pragma once

#include "clock.h"
#include "ring.h"

enum {
	/* The bits of a limit's fraction. */
	FRACTION_BITS = 4,
	/* A new measurement changes a limit by one part of so many, as a shift. */
	SMOOTHING_SHIFT = 3,
};

#define UNMEASURED 0xffffffffu

/* In a window, and of what it counted: a token parked. */
#define HAS_PARKED (1u << 31)

/* A window that has lasted so many ticks begins anew when a token parks. */
#define LONGEST (1u << 27)

/* The time in a window's ticks, which wrap after 68 s. */
static __always_inline __u32 window_ticks(__u64 now)
{
	return now >> TICK_SHIFT;
}

/* How many tasks may wait in the slice, if its row allows as many. */
static __always_inline __u32 allowed_by(const struct queue *queue)
{
	return READ_ONCE(queue->span) ? READ_ONCE(queue->limit) >> FRACTION_BITS : UNMEASURED;
}

/* Counts a token that parks. It begins a new window if nobody ended the last one in time. */
static __always_inline void token_parked(struct queue *queue, __u64 now)
{
	__u32 at = window_ticks(now), began;

	if (!READ_ONCE(queue->span))
		return;
	began = READ_ONCE(queue->window) >> 32;
	if (at - began >= LONGEST) {
		WRITE_ONCE(queue->window, (__u64)at << 32 | HAS_PARKED);
		return;
	}
	__sync_fetch_and_add(&queue->window, 1);
	__sync_fetch_and_or(&queue->window, HAS_PARKED);
}

/* A token took a waiting task. */
static __always_inline void token_took(struct queue *queue)
{
	if (READ_ONCE(queue->span))
		__sync_fetch_and_add(&queue->window, 1);
}

/*
 * The whole root of a number. Without branches, which the verifier would all follow; and without masks of all ones or
 * zeros, for each of which newer verifiers follow both values.
 */
static __always_inline __u32 root(__u32 of)
{
	__u64 left = of, found = 0;

	for (__u64 bit = 1u << 30; bit; bit >>= 2) {
		__u64 less = found + bit, fits = 1 - ((left - less) >> 63);

		asm volatile("" : "+r"(fits));
		left -= less * fits;
		found = (found >> 1) + bit * fits;
	}
	return found;
}

/* How many tasks may wait if so many tokens came within one target, and all workers were busy. */
static __always_inline __u32 limit_of(__u32 came)
{
	__u32 margin = (3 * root(came) + 1) / 2;

	return came > margin + 1 ? came - margin : 1;
}

/*
 * A limit after what a window counted. Far from it the limit jumps. A function of its own, so that it is verified
 * once and not for each attempt of each pass.
 */
__attribute__((noinline)) __u32 moved(__u32 held, __u32 counted)
{
	__u32 found = limit_of(counted & ~HAS_PARKED) << FRACTION_BITS;

	if ((counted & HAS_PARKED) && found <= held)
		return held;
	if (held == UNMEASURED || found < held >> 1 || found >> 1 > held)
		return found;
	return held - (held >> SMOOTHING_SHIFT) + (found >> SMOOTHING_SHIFT);
}

/* A task is going to wait. Returns whether its pass has measured the limit. */
static __always_inline int window_ends(struct queue *queue, __u64 now)
{
	__u32 span = READ_ONCE(queue->span), at = window_ticks(now), lasted;
	__u64 window;

	if (!span)
		return 0;
	window = READ_ONCE(queue->window);
	lasted = at - (__u32)(window >> 32);
	if (lasted < span)
		return 0;
	WRITE_ONCE(queue->window, (__u64)at << 32);
	/* A window that nobody ended in time is no measure. */
	if (lasted >= span + (span + 1) / 2)
		return 0;
	WRITE_ONCE(queue->limit, moved(READ_ONCE(queue->limit), window));
	return 1;
}
