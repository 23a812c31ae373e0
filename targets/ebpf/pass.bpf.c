// SPDX-License-Identifier: Apache-2.0
/*
 * The program at a host's end of a veth link whose other end runs the switch. It does nothing, but the kernel
 * checks that it exists: only then does it wake the host for frames that the other end's program sends back
 * (XDP_TX). Without it such frames stay in the link's ring until another frame comes.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
