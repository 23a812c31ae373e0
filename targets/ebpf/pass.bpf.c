// SPDX-License-Identifier: Apache-2.0
/*
 * What stands at a host's end of a veth link whose other end carries the switch. It does nothing, but its being there is
 * what the kernel looks for: only then it tells the host of frames that the other end's program has sent back (XDP_TX).
 * Without it they lie in the link's ring until something else comes.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
