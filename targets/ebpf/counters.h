/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, one set for each CPU: the reader adds them up. */
#pragma once

#include "maps.h"

static __always_inline struct counters *own_counters(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&counters, &only);
}

static __always_inline void count(struct counters *counters, enum count what)
{
	counters->own[what]++;
}

static __always_inline void refuse(struct counters *counters, enum refusal why)
{
	counters->refused[why]++;
}

static __always_inline void malform(struct counters *counters, enum malformed why)
{
	counters->malformed[why]++;
}
