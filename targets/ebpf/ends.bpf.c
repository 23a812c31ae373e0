// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces pass.bpf.c at a host's end of a link, and counts arriving UDP frames. With these counts and the switch's
 * own, a test can tell where a missing frame is.
 */
#include "udp.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} came SEC(".maps");

SEC("xdp")
int ends(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__u32 only = 0;
	__u64 *frames = bpf_map_lookup_elem(&came, &only);

	if (frames && (void *)(eth + 1) <= end && is_udp(eth, end))
		++*frames;
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
