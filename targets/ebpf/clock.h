/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time in the switch, and ages. A waiting task's two times are one word, as in the model: 50 bits in units of 16
 * ns, which wrap after 208 days, and 14 bits of age in units of 16,384 ns. The age is exact up to 0.13 s, then
 * rounded up to steps of 34 ms, and saturates at 4.6 min.
 *
 * A pass reads the clock once, at its start. So a token may meet a task whose pass started later, on another CPU,
 * and reached the cell first: by these clocks the task has waited for less than no time. This counts as a wait of 0
 * and leaves the age unchanged. The time between the clock read and the frame's departure counts as travel time,
 * like time on a link.
 */
#pragma once

#include "maps.h"

enum {
	TICK_SHIFT = 4,
	/*
	 * No pass lasts this many ticks (4.3 s): a span so close below the wrap means that the pass began before
	 * the task's.
	 */
	BEHIND_TICKS = 1 << 28,
	AGE_SHIFT = 14,
	AGE_BITS = 14,
	AGE_MASK = (1 << AGE_BITS) - 1,
	/* The bit that marks an age in steps, and the first such age. */
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

/* Only late attempts have such ages. The last step stands for all higher ages. */
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

enum {
	/* A budget counts units of 1,024 ns. */
	BUDGET_SHIFT = 10,
	BUDGET_SPENT = 1,
};

/*
 * What a span leaves of a budget, rounded down; a spent budget is not 0, which is no limit. A late task goes on to its
 * worker, which refuses it: one run sends one packet, and a token that passes over a task would need two.
 */
static __always_inline __u32 budget_left(__u32 budget, __u64 span_ns)
{
	__u64 units = (span_ns + (1 << BUDGET_SHIFT) - 1) >> BUDGET_SHIFT;

	if (!budget)
		return 0;
	return units + 1 < budget ? budget - units : BUDGET_SPENT;
}

/* The age after a span, rounded up. */
static __always_inline __u32 aged(__u32 age, __u64 span_ns)
{
	__u64 sum = age + ((span_ns + (1 << AGE_SHIFT) - 1) >> AGE_SHIFT);

	return saturated(sum);
}
