/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a SUBMIT's frame into a WRITE that leaves over all servers' links: see ahead.h. */
#pragma once

#include "send.h"

/* The sum of a task's bytes, derived from the incoming checksum; 0 if there was none. */
static __always_inline __u16 payload_sum(const struct frame *frame)
{
	const struct udphdr *udp = (void *)frame->header - sizeof(*udp);
	__u64 sum = (__u16)~udp->check;

	if (!udp->check)
		return 0;
	sum += (__u32)~covered(frame->header, frame->ip_bytes);
	sum += (__u16)~udp->len + (__u64)(__u16)~udp->len + (__u16)~bpf_htons(IPPROTO_UDP);
	return folded(sum);
}

static __always_inline void fill_write(struct write_head *head, const struct header *header, const struct ahead *ahead)
{
	__u32 length = bpf_ntohs(header->task.length);

	*head = (struct write_head){
		.opcode = OPCODE_WRITE,
		.flags = MIGRATED | (-length & 3) << 4,
		.partition = bpf_htons(PARTITION),
		.address = bpf_cpu_to_be64((__u64)ahead->slice << 32 | ahead->ticket),
		.length = bpf_htonl(SLOT_HEAD_BYTES + length),
		.incarnation_high = header->task.incarnation_high,
		.incarnation_low = header->task.incarnation_low,
		.sequence = header->task.sequence,
	};
}

/* Shortens the frame to `want` bytes: removes `before` bytes at its start and the rest at its end. */
static __always_inline int shorten(struct xdp_md *ctx, __u32 before, __u32 want)
{
	int tail;

	if (bpf_xdp_adjust_head(ctx, before))
		return -1;
	tail = (int)want - (int)(ctx->data_end - ctx->data);
	return tail ? bpf_xdp_adjust_tail(ctx, tail) : 0;
}

/* Writes the headers, except the fields that only a copy has. */
static __always_inline int write_below(struct xdp_md *ctx, const struct pass *pass, const struct write_head *head,
				       __u32 udp_bytes, __u16 sum)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int is_v4 = pass->frame.ip_bytes == sizeof(struct iphdr);
	struct ethhdr *eth = data;
	struct udphdr *udp = data + ETH_HLEN + (is_v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));

	if ((void *)(udp + 1) + sizeof(*head) > end)
		return -1;
	eth->h_proto = is_v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	udp->source = pass->life->port;
	udp->dest = bpf_htons(ROCE_PORT);
	udp->len = bpf_htons(udp_bytes);
	/* Not the checksum yet: each copy's checksum is computed from this sum. */
	udp->check = sum;
	__builtin_memcpy(udp + 1, head, sizeof(*head));
	return 0;
}

static __always_inline int send_write(struct xdp_md *ctx, const struct pass *pass)
{
	const struct frame *frame = &pass->frame;
	__u32 only = 0, length = bpf_ntohs(frame->header->task.length), tail = (-length & 3) + ICRC_BYTES;
	__u32 at = ETH_HLEN + frame->ip_bytes + sizeof(struct udphdr) + HEADER_BYTES;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &only);
	struct write_head head;
	__u16 sum = payload_sum(frame);

	fill_write(&head, frame->header, &pass->ahead);
	/* The compiler knows that it is not zero, and would remove the check that the verifier needs. */
	asm volatile("" : "+r"(length));
	if (!scratch || length < 1 || length > WRITE_BYTES_MAX - SLOT_HEAD_BYTES)
		goto failed;
	if (bpf_xdp_load_bytes(ctx, at, scratch->bytes, length))
		goto failed;
	__builtin_memset(scratch->bytes + length, 0, 8);
	if (shorten(ctx, WRITE_LESS - tail, at - WRITE_LESS + length + tail))
		goto failed;
	if (write_below(ctx, pass, &head, sizeof(struct udphdr) + sizeof(head) + length + tail, sum))
		goto failed;
	if (bpf_xdp_store_bytes(ctx, at - WRITE_LESS, scratch->bytes, length + tail))
		goto failed;
	count(pass->counters, COUNT_SENT);
	return bpf_redirect_map(&server_links, 0, BPF_F_BROADCAST);
failed:
	count(pass->counters, COUNT_SEND_FAILED);
	return XDP_DROP;
}
