/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises UDP frames, for the small programs that need no more. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* For a frame that contains its Ethernet header. */
static __always_inline int is_udp(const struct ethhdr *eth, void *end)
{
	const struct ipv6hdr *six = (void *)(eth + 1);
	const struct iphdr *four = (void *)(eth + 1);

	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return (void *)(four + 1) <= end && four->protocol == IPPROTO_UDP;
	return eth->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(six + 1) <= end && six->nexthdr == IPPROTO_UDP;
}
