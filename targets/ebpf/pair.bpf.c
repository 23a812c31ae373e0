// SPDX-License-Identifier: Apache-2.0
/*
 * Measures a token and a task: programs that build a pair of frames from templates and pass each through the
 * switch. A test run passes its program the frame as the previous run left it, so each run has to write it anew.
 * `bounced` does the same without the switch itself: parsing, source, clock, and sending back. `bare` only swaps
 * the addresses.
 */
#include "rain.bpf.c"

enum { FRAME_BYTES = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr) + HEADER_BYTES };

struct template {
	__u64 words[17];
};

struct templates {
	struct template token;
	struct template task;
};

ARRAY(templates, struct templates);

#define HEADER_OF(template) ((struct header *)((void *)(template) + FRAME_BYTES - HEADER_BYTES))

static __always_inline int restore(struct xdp_md *ctx, const struct template *template)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + FRAME_BYTES > end)
		return 0;
	__builtin_memcpy(data, template, FRAME_BYTES);
	return 1;
}

static __always_inline struct templates *next_pair(void)
{
	__u32 only = 0;
	struct templates *pair = bpf_map_lookup_elem(&templates, &only);
	struct header *token, *task;

	if (!pair)
		return 0;
	token = HEADER_OF(&pair->token);
	task = HEADER_OF(&pair->task);
	token->words[TOKEN_ISSUED] = bpf_htonl(bpf_ntohl(token->words[TOKEN_ISSUED]) + 1);
	task->task.sequence = bpf_htonl(bpf_ntohl(task->task.sequence) + 1);
	return pair;
}

/* What the switch does with a packet before and after its decision. */
static __always_inline int bounce(struct xdp_md *ctx)
{
	struct pass pass = {};
	int done = begin(ctx, &pass);
	struct header *header = pass.frame.header;

	if (done != XDP_PASS)
		count(pass.counters, COUNT_RECEIVED);
	if (done != IS_PACKET)
		return done;
	if (header->kind == KIND_TOKEN) {
		struct worker_counters *held;

		if (!admit_worker(&pass, &held))
			return XDP_DROP;
	} else {
		const struct client_row *row = client_row(bpf_ntohs(header->client));

		if (!row || check_source(row->key, header->key, &row->at, &pass.frame.from) != ADMITTED)
			return XDP_DROP;
	}
	header->words[DISPATCH_WAIT] = pass.now;
	return send(ctx, &pass);
}

static __always_inline int swap(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__u8 to[ETH_ALEN];

	if ((void *)(eth + 1) > end)
		return XDP_DROP;
	__builtin_memcpy(to, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, to, ETH_ALEN);
	return XDP_TX;
}

#define PAIR(name, first, second, through)                                        \
	SEC("xdp") int name(struct xdp_md *ctx)                                   \
	{                                                                         \
		struct templates *pair = next_pair();                             \
                                                                                  \
		if (!pair || !restore(ctx, &pair->first))                         \
			return XDP_ABORTED;                                       \
		through(ctx);                                                     \
		return restore(ctx, &pair->second) ? through(ctx) : XDP_ABORTED; \
	}

PAIR(token_first, token, task, arrives)
PAIR(task_first, task, token, arrives)
PAIR(bounced, token, task, bounce)
PAIR(bare, token, task, swap)
