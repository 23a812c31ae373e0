/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time in the switch, and ages. A waiting task's two times are one word, as in the model: 50 bits of 16 ns, which
 * wrap after 208 days, and 14 bits of an age in units of 16,384 ns: exact up to 0.13 s, then in steps of 34 ms, rounded
 * up, and saturated after 4.6 min.
 *
 * A pass looks at the clock once, when it begins. So a token may meet a task whose pass began later, on another CPU, and
 * came to the cell first: by their clocks it has waited for less than no time. That is a wait of 0, and its age is what it
 * was. What passes between the look and the frame's leaving belongs to the frame's way, like time on a link.
 */
#pragma once

#include "maps.h"

enum {
	TICK_SHIFT = 4,
	/* No pass lasts so many ticks, 4.3 s: spans so close below the wrap are those of a pass that began before the task's. */
	BEHIND_TICKS = 1 << 28,
	AGE_SHIFT = 14,
	AGE_BITS = 14,
	AGE_MASK = (1 << AGE_BITS) - 1,
	/* The bit that says that an age is in steps, and the first age that is. */
	AGE_STEPPED = 1 << (AGE_BITS - 1),
	AGE_STEP_SHIFT = 11,
};

#define TICKS (1ull << (64 - AGE_BITS))

static __always_inline __u64 now_ns(const struct life *life)
{
	return shape.test_mode ? life->now_ns : bpf_ktime_get_ns();
}

static __always_inline __u32 saturated(__u64 ns)
{
	return ns > 0xffffffff ? 0xffffffff : ns;
}

/* Of tries that come late only. The last step stands for all beyond it. */
static __always_inline __u32 stepped(__u32 age)
{
	__u64 steps = ((__u64)age + (1 << AGE_STEP_SHIFT) - 1) >> AGE_STEP_SHIFT;

	return steps < AGE_STEPPED ? AGE_STEPPED | steps : AGE_MASK;
}

static __always_inline __u64 times_of(__u64 arrived_ns, __u32 age)
{
	__u32 held = age < AGE_STEPPED ? age : stepped(age);

	return arrived_ns >> TICK_SHIFT << AGE_BITS | held;
}

static __always_inline __u32 age_of(__u64 times)
{
	__u32 age = times & AGE_MASK;

	if (!(age & AGE_STEPPED))
		return age;
	return age == AGE_MASK ? 0xffffffff : (age & ~AGE_STEPPED) << AGE_STEP_SHIFT;
}

static __always_inline __u64 waited_ns(__u64 times, __u64 now)
{
	__u64 ticks = (times_of(now, 0) - (times & ~(__u64)AGE_MASK)) >> AGE_BITS;

	return ticks < TICKS - BEHIND_TICKS ? ticks << TICK_SHIFT : 0;
}

/* The age after a span, rounded up. */
static __always_inline __u32 aged(__u32 age, __u64 span_ns)
{
	__u64 sum = age + ((span_ns + (1 << AGE_SHIFT) - 1) >> AGE_SHIFT);

	return saturated(sum);
}
