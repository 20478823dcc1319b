// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Lists the connections of this network namespace, for `watch` and `status`. It goes through all TCP sockets:
 * a hardened kernel (6.18.44, under lockdown) refuses programs that iterate over a map, with EPERM.
 */
#include "kernel.h"

#include "connection.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct listed {
	__u32 family;
	__u16 local_port;
	__u16 remote_port;
	__u32 local[4];
	__u32 remote[4];
	__u32 snd_cwnd;
	enum controller controller;
	/* ABC's two windows; delay control's threshold and queueing delay in microseconds */
	__u32 first;
	__u32 second;
	/* Whether marks are spoiled; delay control's reductions by delay */
	__u32 third;
	__u32 mss;
	__u32 srtt_us;
	__u32 min_rtt_us;
	enum feedback feedback;
	__u32 losses;
	__u32 timeouts;
	__u32 ce_episodes;
	__u64 marked[KINDS];
	__u64 acked_bytes;
	/* delay control's bandwidth estimate, bytes per second */
	__u64 bandwidth;
	__u64 id;
};

/*
 * Nothing reads it. It puts the structure among the object's types, from which `src/bpf/watch.rs` takes its
 * layout.
 */
struct listed *listed_layout;

SEC("iter/tcp")
int bl_list(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : 0;
	struct connection *c = tp ? bpf_sk_storage_get(&bl_connections, tp, 0, 0) : 0;
	struct sock *sk = (struct sock *)tp;
	struct listed out = {};

	if (!c)
		return 0;
	out.id = bpf_get_socket_cookie(sk);
	out.family = sk->__sk_common.skc_family;
	out.local_port = sk->__sk_common.skc_num;
	out.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (out.family == 2) {
		out.local[0] = sk->__sk_common.skc_rcv_saddr;
		out.remote[0] = sk->__sk_common.skc_daddr;
	} else {
		for (int word = 0; word < 4; word++) {
			out.local[word] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[word];
			out.remote[word] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[word];
		}
	}
	out.snd_cwnd = tp->snd_cwnd;
	out.controller = c->controller;
	if (c->controller == CONTROLLER_WDC) {
		out.first = c->wdc.threshold_us;
		out.second = c->wdc.queueing_us;
		out.third = c->wdc.delay_events;
		out.mss = c->wdc.westwood.mss;
		out.bandwidth = c->wdc.westwood.second >> BANDWIDTH_BITS;
	} else {
		out.first = bytes_of(c->abc.w_abc);
		out.second = bytes_of(cubic_cwnd(&c->abc.second));
		out.third = abc_marks_are_spoiled(&c->abc);
		out.mss = c->abc.mss;
	}
	out.srtt_us = c->srtt_us;
	out.min_rtt_us = c->min_rtt_us;
	out.feedback = c->feedback;
	out.losses = c->losses;
	out.timeouts = c->timeouts;
	out.ce_episodes = c->ce_episodes;
	for (int kind = 0; kind < KINDS; kind++)
		out.marked[kind] = c->marked[kind];
	out.acked_bytes = c->acked_bytes;
	bpf_seq_write(context->meta->seq, &out, sizeof(out));
	return 0;
}
