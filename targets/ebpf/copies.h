/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WRITE's copies: when a copy leaves over a link, this program fills in the fields for that link's server.
 *
 * The kernel runs one program for all frames that leave over a link in one batch. So this program is in every entry
 * of every map of links, and passes all frames that are no WRITE. It recognises a WRITE by its first byte, with
 * which no packet of ours begins. A link gets no copy if its server keeps no ring for the slice, or if SetCopies
 * allows no further copy.
 */
#pragma once

#include "write.h"

/* Whether a server gets a copy of this ticket's task: a slice's servers take turns. */
static __always_inline int gets_copy(struct group group, __u32 rank, __u32 ticket)
{
	__u32 turn;

	if (!group.members || rank >= group.members)
		return 0;
	turn = ticket % group.members;
	return !group.copies || (rank + group.members - turn) % group.members < group.copies;
}

/* The WRITE in a frame that leaves; 0 for another packet. */
static __always_inline struct write_head *write_in(struct xdp_md *ctx, __u32 *ip_bytes)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct write_head *head;
	struct udphdr *udp;

	if ((void *)(eth + 1) > end)
		return 0;
	*ip_bytes = eth->h_proto == bpf_htons(ETH_P_IP) ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	udp = data + ETH_HLEN + *ip_bytes;
	head = (void *)(udp + 1);
	if ((void *)(head + 1) > end || udp->dest != bpf_htons(ROCE_PORT) || head->opcode != OPCODE_WRITE)
		return 0;
	return head;
}

static __always_inline void write_head(struct write_head *head, const struct server_row *row,
				       const struct ring_row *ring, __u32 ticket, __u32 psn)
{
	__u64 slot = (__u64)(ticket & (ring->slots - 1)) * ring->slot_bytes;

	head->qpn = bpf_htonl(row->qpn);
	head->psn = bpf_htonl(psn & 0xffffff);
	head->rkey = bpf_htonl(ring->rkey);
	head->address = bpf_cpu_to_be64(ring->address + slot);
}

/* The checksum over IPv6. The field has held the sum of the task's bytes. */
static __always_inline __be16 write_check6(const struct udphdr *udp, struct write_head *head)
{
	__u32 before = bpf_csum_diff(0, 0, (__be32 *)((void *)udp - 32), 32 + 4, 0);
	__u64 sum = bpf_csum_diff(0, 0, (__be32 *)head, sizeof(*head), before);
	__u16 check;

	sum += udp->check + (__u64)udp->len + udp->len + bpf_htons(IPPROTO_UDP);
	check = ~folded(sum);
	return check ? check : 0xffff;
}

/* Writes the copy of this ticket's task for this server. Invalidates all pointers into the frame. */
static __always_inline int write_copy(struct xdp_md *ctx, const struct life *life, const struct server_row *row,
				      const struct ring_row *ring, __u32 ticket, __u32 psn)
{
	int to_v4 = is_v4(&row->at);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp = data + ETH_HLEN + (to_v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	struct write_head *head = (void *)(udp + 1);
	__u32 udp_bytes;

	if ((void *)(head + 1) > end)
		return -1;
	udp_bytes = bpf_ntohs(udp->len);
	write_ethernet(data, &row->way, ip_bytes_to(&row->at));
	udp->dest = row->at.port;
	write_head(head, row, ring, ticket, psn);
	if (to_v4) {
		write_ip4(data + ETH_HLEN, life, &row->at, udp_bytes);
		udp->check = 0;
	} else {
		write_ip6(data + ETH_HLEN, life, &row->at, udp_bytes);
		udp->check = write_check6(udp, head);
	}
	return 0;
}

static __always_inline int has_address(const struct life *life, const struct endpoint *to)
{
	return is_v4(to) ? !!life->at4 : !!(life->at6[0] | life->at6[1] | life->at6[2] | life->at6[3]);
}

/* Turns a WRITE into the copy for the server behind a link. */
static __always_inline int copy_leaves(struct xdp_md *ctx, __u32 link)
{
	__u32 only = 0, ip_bytes, slice, ticket, server;
	const struct life *life = bpf_map_lookup_elem(&lives, &only);
	struct counters *counters = own_counters();
	const struct server_row *row;
	const struct ring_row *ring;
	struct write_head *head = write_in(ctx, &ip_bytes);
	const __u32 *behind;
	struct psn *psn;
	int more;

	if (!head)
		return XDP_PASS;
	behind = bpf_map_lookup_elem(&link_servers, &link);
	if (!behind || !life || !counters)
		return XDP_DROP;
	server = *behind;
	slice = bpf_be64_to_cpu(head->address) >> 32;
	ticket = bpf_be64_to_cpu(head->address);
	row = server_row(server);
	ring = ring_row(slice, server);
	psn = bpf_map_lookup_elem(&psns, &server);
	if (!row || !ring || !psn || !gets_copy(group_of(slice), ring->rank, ticket))
		return XDP_DROP;
	more = (int)ip_bytes_to(&row->at) - (int)ip_bytes;
	if (!has_address(life, &row->at) || (more && bpf_xdp_adjust_head(ctx, -more)) ||
	    write_copy(ctx, life, row, ring, ticket, __sync_fetch_and_add(&psn->next, 1))) {
		count(counters, COUNT_SEND_FAILED);
		return XDP_DROP;
	}
	count(counters, COUNT_WRITTEN_AHEAD);
	return XDP_PASS;
}
