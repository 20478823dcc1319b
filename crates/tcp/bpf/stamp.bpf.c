// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writes the ECN field of what ABC's connections send (abc20 4.2). The kernel sends everything as ECT(0),
 * which means brake. Data becomes accelerate, ECT(1). What carries no data becomes Not-ECT, for ABC's routers
 * mark data alone, and a token spent on a pure ACK comes back to nobody: Accurate ECN counts payload.
 * Connections whose peer reports no counts are left alone.
 */
#include "kernel.h"

#include "connection.h"
#include "stamp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Bytes of the device's link header: 14 on Ethernet, 0 on a TUN device. `src/bpf/endpoint.rs` writes it. */
const volatile struct stamp_setup {
	__u32 link_header;
} settings = { .link_header = 14 };

SEC("tcx/egress")
int bl_stamp(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct connection *c;
	int version = ip_version(skb);
	__u32 data;
	__u8 head[2];

	if (!sk || version < 0)
		return TC_NEXT;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return TC_NEXT;
	c = bpf_sk_storage_get(&bl_connections, sk, 0, 0);
	if (!c || c->feedback == FEEDBACK_NONE)
		return TC_NEXT;
	if (read_ip_head(skb, head) || ecn_of(version, head) != ECN_ECT_0)
		return TC_NEXT;
	data = tcp_payload(skb, version, head, settings.link_header);
	write_ecn(skb, version, settings.link_header, head, data ? ECN_ECT_1 : ECN_NOT_ECT);
	return TC_NEXT;
}
