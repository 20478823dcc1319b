// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Counts of marks where the kernel has no Accurate ECN: the receiver counts payload bytes by their ECN field
 * as they come in, and tells the sender in an experimental TCP option (rfc6994) on everything it sends. Both
 * ends must be ours.
 *
 *   kind 253 | length 16 | ExID 0xbab1 | ECT(1) bytes, 32 bits | ECT(0) bytes | CE bytes
 *
 * All in network byte order, counters modulo 2^32 since the connection began. SACK blocks give way: with
 * timestamps 28 bytes are left for options, of which this one takes 16, so one SACK block fits.
 */
#include "kernel.h"

#include "connection.h"
#include "stamp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* rfc6994 3 */
#define OPTION_KIND 253
#define OPTION_EXID 0xbab1
#define OPTION_LENGTH 16

struct option {
	__u8 kind;
	__u8 length;
	__be16 exid;
	__be32 bytes[KINDS];
} __attribute__((packed));

static __always_inline struct reported *reported_of(struct bpf_sock *sk, int flags)
{
	return sk ? bpf_sk_storage_get(&bl_reported, sk, 0, flags) : 0;
}

/* What comes in, before TCP sees it. */
SEC("cgroup_skb/ingress")
int bl_count(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct reported *r;
	int version = ip_version(skb);
	__u32 header, total;
	__u8 head[40], offset, ecn;

	if (!sk || version < 0)
		return 1;
	sk = bpf_sk_fullsock(sk);
	r = reported_of(sk, 0);
	if (!r)
		return 1;
	if (bpf_skb_load_bytes(skb, 0, head, version == 4 ? 20 : 40))
		return 1;
	if (version == 4) {
		header = (head[0] & 15) * 4;
		total = skb->len;
		if (head[9] != 6)
			return 1;
	} else {
		header = 40;
		total = skb->len;
		/* Extension headers are rare, and their packets go uncounted. */
		if (head[6] != 6)
			return 1;
	}
	ecn = ecn_of(version, head);
	if (ecn == ECN_NOT_ECT || bpf_skb_load_bytes(skb, header + 12, &offset, 1))
		return 1;
	header += (offset >> 4) * 4;
	if (total > header) {
		__u32 payload = total - header;

		if (ecn == ECN_ECT_1)
			__sync_fetch_and_add(&r->received[ACCELERATE], payload);
		else if (ecn == ECN_ECT_0)
			__sync_fetch_and_add(&r->received[BRAKE], payload);
		else
			__sync_fetch_and_add(&r->received[CE_MARK], payload);
	}
	return 1;
}

static __always_inline void ask_for_callbacks(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG |
					       BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG);
}

static __always_inline void parse(struct bpf_sock_ops *ops)
{
	struct option option = { .kind = OPTION_KIND, .length = 4, .exid = bpf_htons(OPTION_EXID) };
	struct reported *r;

	/* Finds by kind and, for an experimental kind, by the ExID given. */
	if (bpf_load_hdr_opt(ops, &option, sizeof(option), 0) != sizeof(option))
		return;
	r = reported_of(ops->sk, BPF_SK_STORAGE_GET_F_CREATE);
	if (!r)
		return;
	r->peer_speaks = 1;
	r->by_peer[ACCELERATE] = bpf_ntohl(option.bytes[ACCELERATE]);
	r->by_peer[BRAKE] = bpf_ntohl(option.bytes[BRAKE]);
	r->by_peer[CE_MARK] = bpf_ntohl(option.bytes[CE_MARK]);
}

SEC("sockops")
int bl_option(struct bpf_sock_ops *ops)
{
	struct option option = { .kind = OPTION_KIND, .length = OPTION_LENGTH, .exid = bpf_htons(OPTION_EXID) };
	struct reported *r;

	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		ask_for_callbacks(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		reported_of(ops->sk, BPF_SK_STORAGE_GET_F_CREATE);
		ask_for_callbacks(ops);
		parse(ops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		parse(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		bpf_reserve_hdr_opt(ops, OPTION_LENGTH, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		r = reported_of(ops->sk, 0);
		if (r) {
			option.bytes[ACCELERATE] = bpf_htonl(r->received[ACCELERATE]);
			option.bytes[BRAKE] = bpf_htonl(r->received[BRAKE]);
			option.bytes[CE_MARK] = bpf_htonl(r->received[CE_MARK]);
		}
		bpf_store_hdr_opt(ops, &option, sizeof(option), 0);
		break;
	}
	return 1;
}
