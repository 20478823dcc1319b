/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ECN field of a packet that a tc program holds, IPv4 or IPv6. */
#ifndef BRAKELIGHT_STAMP_H
#define BRAKELIGHT_STAMP_H

#include "kernel.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
/* include/uapi/linux/bpf.h: enum tcx_action_base */
#define TC_NEXT -1
#define TC_PASS 0
#define TC_DROP 2

/* Where the IP header starts, or -1 for what is neither IPv4 nor IPv6. */
static __always_inline int ip_version(const struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(ETHERTYPE_IPV4))
		return 4;
	return skb->protocol == bpf_htons(ETHERTYPE_IPV6) ? 6 : -1;
}

/* The first two bytes of the IP header, which hold the field in both versions. */
static __always_inline int read_ip_head(struct __sk_buff *skb, __u8 head[2])
{
	return bpf_skb_load_bytes_relative(skb, 0, head, 2, BPF_HDR_START_NET);
}

static __always_inline __u8 ecn_of(int version, const __u8 head[2])
{
	/* rfc3168 5; rfc8200 3: the traffic class straddles the first two bytes. */
	return version == 4 ? head[1] & 3 : (head[1] >> 4) & 3;
}

/* Bytes of TCP payload behind an IP header without extension headers; `link_header` bytes stand before it. */
static __always_inline __u32 tcp_payload(struct __sk_buff *skb, int version, const __u8 head[2], __u32 link_header)
{
	__u32 headers = version == 4 ? (head[0] & 15) * 4 : 40;
	__u8 offset;

	if (bpf_skb_load_bytes_relative(skb, headers + 12, &offset, 1, BPF_HDR_START_NET))
		return 0;
	headers += (offset >> 4) * 4 + link_header;
	return skb->len > headers ? skb->len - headers : 0;
}

/* `link_header` bytes stand before the IP header. */
static __always_inline int write_ecn(struct __sk_buff *skb, int version, int link_header, const __u8 head[2], __u8 ecn)
{
	__u8 changed;

	if (version == 6) {
		changed = (head[1] & ~0x30) | (ecn << 4);
		return bpf_skb_store_bytes(skb, link_header + 1, &changed, 1, 0);
	}
	changed = (head[1] & ~3) | ecn;
	/* The word that holds the field is the first of the header; its checksum stands at byte 10. */
	bpf_l3_csum_replace(skb, link_header + 10, bpf_htons(head[0] << 8 | head[1]),
			    bpf_htons(head[0] << 8 | changed), 2);
	return bpf_skb_store_bytes(skb, link_header + 1, &changed, 1, 0);
}

#endif
