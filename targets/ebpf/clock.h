/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time in the switch, and ages. A waiting task's two times are one word, as in the model: 40 bits of 16 ns, which
 * wrap after 4.9 h, and 24 bits of an age in units of 16,384 ns, which saturate after 4.6 min.
 *
 * A pass looks at the clock once, when it begins. So a token may meet a task whose pass began later, on another CPU, and
 * came to the cell first: by their clocks it has waited for less than no time. That is a wait of 0, and its age is what it
 * was. What passes between the look and the frame's leaving belongs to the frame's way, like time on a link.
 */
#pragma once

#include "maps.h"

enum {
	TICK_SHIFT = 4,
	TICK_BITS = 40,
	/* No pass lasts so many ticks, 4.3 s: spans so close below the wrap are those of a pass that began before the task's. */
	BEHIND_TICKS = 1 << 28,
	AGE_SHIFT = 14,
	AGE_BITS = 24,
	AGE_HELD_MAX = (1 << AGE_BITS) - 1,
};

static __always_inline __u64 now_ns(const struct life *life)
{
	return shape.test_mode ? life->now_ns : bpf_ktime_get_ns();
}

static __always_inline __u32 saturated(__u64 ns)
{
	return ns > 0xffffffff ? 0xffffffff : ns;
}

static __always_inline __u64 times_of(__u64 arrived_ns, __u32 age)
{
	__u64 held = age > AGE_HELD_MAX ? AGE_HELD_MAX : age;

	return arrived_ns >> TICK_SHIFT << AGE_BITS | held;
}

static __always_inline __u32 age_of(__u64 times)
{
	__u32 age = times & AGE_HELD_MAX;

	return age == AGE_HELD_MAX ? 0xffffffff : age;
}

static __always_inline __u64 waited_ns(__u64 times, __u64 now)
{
	__u64 ticks = (times_of(now, 0) - (times & ~(__u64)AGE_HELD_MAX)) >> AGE_BITS;

	return ticks < (1ull << TICK_BITS) - BEHIND_TICKS ? ticks << TICK_SHIFT : 0;
}

/* The age after a span, rounded up. */
static __always_inline __u32 aged(__u32 age, __u64 span_ns)
{
	__u64 sum = age + ((span_ns + (1 << AGE_SHIFT) - 1) >> AGE_SHIFT);

	return saturated(sum);
}
