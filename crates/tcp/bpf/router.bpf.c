// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * ABC's router on an existing shaper. What comes in on a device is stamped with its time of arrival and sent
 * through the shaper of an intermediate device (ifb); the ifb hands it back, it is forwarded, and on the way
 * out of the next device it is seen as it departs: its delay is now less the stamp, and the shaper's rate is
 * mu.
 *
 * The stamp is skb->mark: a tag of 8 bits, the class, and the time in units of 2^12 ns. Marks without the tag
 * were set by somebody else and are left alone. The stamp is removed on the way out.
 *
 * With two queues the shaper is htb with a class for ABC and one for others, chosen by skb->priority. A flow
 * is ABC's once it has sent ECT(1) (abc20 4.3; open-questions#X-12: the packets of a flow, not each packet by
 * itself), and until it has sent none for long: an application may choose its controller after connect.
 */
#include "kernel.h"

#include "adaptive.h"
#include "backlog.h"
#include "l4s.h"
#include "router.h"
#include "stamp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading; `src/bpf/router.rs` writes it. */
const volatile struct router_place {
	/* The ifb's index; 0: others send it through the shaper. */
	__u32 shaper;
	/* Bytes of the link header of the device it leaves by. */
	__u32 link_header;
	/* skb->priority of the two classes; 0: one queue. */
	__u32 class_abc;
	__u32 class_other;
	/* Whose rule marks, by these numbers. */
	__u32 law;
} place = { .link_header = 14 };

/* router.h's, adaptive.h's, l4s.h's. */
#define LAW_PAPER 0
#define LAW_ADAPTIVE 1
#define LAW_L4S 2

#define TAG 0xabU
#define TAG_SHIFT 24
#define TIME_SHIFT 12
#define TIME_MASK ((1U << 23) - 1)
#define OTHER_BIT (1U << 23)
/* Bits of the stamp's time that are not in the number of its slot of 262 us. */
#define SLOT_SHIFT 6
#define SLOT_MASK (TIME_MASK >> SLOT_SHIFT)

/* Delays are counted in milliseconds. */
#define DELAYS 2048

struct counts {
	__u64 packets;
	__u64 bytes;
	/* IP bytes and payload by what this router sent: ECT(1), ECT(0), CE, and a place that stays 0 */
	__u64 sent[4];
	__u64 sent_payload[4];
	/* accelerates turned into brakes; by l4s.h ECT(1) turned into CE */
	__u64 turned;
	__u64 not_ect;
	__u64 f;
	__u64 cr;
	__u64 token;
	__u64 delay_us;
	/* by class: ABC's, others' */
	__u64 class_bytes[2];
	/* packets that came merged (GRO, GSO) and got one mark for all */
	__u64 merged;
	/* adaptive.h: tau, and the mean error of the forecast of mu over one tau, in bytes; of l4s.h over H */
	__u64 loop_delay_us;
	__u64 forecast_error;
	__u32 delays[DELAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct router_settings);
} bl_settings SEC(".maps");

/* Departures may happen on several processors at once, where a shaper or a device has several queues. */
struct locked_router {
	struct bpf_spin_lock lock;
	struct router router;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct locked_router);
} bl_router SEC(".maps");

/* What adaptive.h and l4s.h know, and what waits; under the router's lock, but for closing bins. */
struct control_loop {
	struct adaptive adaptive;
	struct l4s l4s;
	struct backlog backlog;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control_loop);
} bl_loop SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} bl_counts SEC(".maps");

/* Bytes by flow, and whether it is ABC's; the least recently used are forgotten. */
struct flow {
	__u64 bytes;
	__u32 abc;
	/* Packets of data without ECT(1) since the last one with it. */
	__u32 without;
};

/*
 * So many, and the connection has another controller now. If a router before this one braked them all, its
 * flow is back with the next accelerate.
 */
#define FLOW_FORGETS 256
#define SHORTEST_DATA 128

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct flow);
} bl_flows SEC(".maps");

static __always_inline bool is_abc(struct __sk_buff *skb, __u8 ecn)
{
	__u32 hash = bpf_get_hash_recalc(skb);
	struct flow *known = bpf_map_lookup_elem(&bl_flows, &hash), new = {};

	if (!known) {
		new.bytes = skb->len;
		new.abc = ecn == ECN_ECT_1;
		bpf_map_update_elem(&bl_flows, &hash, &new, BPF_ANY);
		return new.abc;
	}
	__sync_fetch_and_add(&known->bytes, skb->len);
	if (ecn == ECN_ECT_1) {
		known->abc = 1;
		known->without = 0;
	} else if (known->abc && skb->len > SHORTEST_DATA && ++known->without >= FLOW_FORGETS) {
		known->abc = 0;
	}
	return known->abc;
}

/* The number of the slot that a time is in. */
static __always_inline __u32 slot_of(__u64 time_ns)
{
	return time_ns >> (TIME_SHIFT + SLOT_SHIFT);
}

/*
 * The number of the slot that a packet with this stamp came in, which leaves now: stamps begin anew after
 * 34 s.
 */
static __always_inline __u32 slot_of_stamp(__u32 stamp, __u64 now)
{
	__u32 last = slot_of(now);

	return last - ((last - (stamp >> SLOT_SHIFT)) & SLOT_MASK);
}

/*
 * Closes the bins that ended by `now`. The long part runs without the lock, under which no function may be
 * called.
 */
static __always_inline void advance(struct locked_router *locked, struct control_loop *loop, __u64 now, __u64 mu)
{
	struct adaptive *a = &loop->adaptive;
	struct l4s *l = &loop->l4s;
	bool taken;

	if (place.law == LAW_L4S) {
		bpf_spin_lock(&locked->lock);
		taken = l4s_take(l, now, mu);
		bpf_spin_unlock(&locked->lock);
		if (!taken)
			return;
		l4s_close(l);
		bpf_spin_lock(&locked->lock);
		l4s_give(l);
		bpf_spin_unlock(&locked->lock);
		return;
	}
	bpf_spin_lock(&locked->lock);
	taken = adaptive_take(a, now, mu);
	bpf_spin_unlock(&locked->lock);
	if (!taken)
		return;
	adaptive_close(a);
	bpf_spin_lock(&locked->lock);
	adaptive_give(a);
	bpf_spin_unlock(&locked->lock);
}

/* A packet of ABC's queue arrives. */
static __always_inline void note_arrival(__u64 now, __u8 ecn, __u32 bytes)
{
	struct router_settings *settings;
	struct locked_router *locked;
	struct control_loop *loop;
	__u32 zero = 0;

	settings = bpf_map_lookup_elem(&bl_settings, &zero);
	locked = bpf_map_lookup_elem(&bl_router, &zero);
	loop = bpf_map_lookup_elem(&bl_loop, &zero);
	if (!settings || !locked || !loop)
		return;
	advance(locked, loop, now, settings->mu);
	bpf_spin_lock(&locked->lock);
	if (place.law == LAW_ADAPTIVE && (ecn == ECN_ECT_1 || ecn == ECN_ECT_0))
		adaptive_arrive(&loop->adaptive, bytes);
	backlog_arrive(&loop->backlog, slot_of(now), bytes);
	bpf_spin_unlock(&locked->lock);
}

SEC("tcx/ingress")
int bl_arrive(struct __sk_buff *skb)
{
	int version = ip_version(skb);
	bool other = false;
	__u8 head[2];
	__u64 now;

	if (version < 0 || read_ip_head(skb, head))
		return TC_NEXT;
	if (place.class_abc) {
		other = !is_abc(skb, ecn_of(version, head));
		skb->priority = other ? place.class_other : place.class_abc;
	}
	now = bpf_ktime_get_ns();
	skb->mark = TAG << TAG_SHIFT | (other ? OTHER_BIT : 0) | ((now >> TIME_SHIFT) & TIME_MASK);
	if (place.law != LAW_PAPER && !other)
		note_arrival(now, ecn_of(version, head), skb->len);
	return place.shaper ? bpf_redirect(place.shaper, 0) : TC_NEXT;
}

SEC("tcx/egress")
int bl_depart(struct __sk_buff *skb)
{
	__u32 stamp = skb->mark, zero = 0, payload, x_us, bucket, kind;
	int version = ip_version(skb);
	struct router_settings *settings;
	struct counts *counts;
	struct locked_router *locked;
	struct router *router;
	struct control_loop *loop = NULL;
	__u64 now, waiting;
	__u8 head[2], ecn, old;
	bool other, kept;

	if (stamp >> TAG_SHIFT != TAG || version < 0 || read_ip_head(skb, head))
		return TC_NEXT;
	skb->mark = 0;
	settings = bpf_map_lookup_elem(&bl_settings, &zero);
	locked = bpf_map_lookup_elem(&bl_router, &zero);
	counts = bpf_map_lookup_elem(&bl_counts, &zero);
	if (!settings || !locked || !counts)
		return TC_NEXT;
	if (place.law != LAW_PAPER) {
		loop = bpf_map_lookup_elem(&bl_loop, &zero);
		if (!loop)
			return TC_NEXT;
	}
	router = &locked->router;
	now = bpf_ktime_get_ns();
	/* 4.096 us each, modulo 34 s */
	x_us = ((((now >> TIME_SHIFT) - stamp) & TIME_MASK) * 4096ULL) / 1000;
	other = stamp & OTHER_BIT;
	old = ecn = ecn_of(version, head);
	payload = tcp_payload(skb, version, head, place.link_header);
	bucket = x_us / 1000;
	if (bucket >= DELAYS)
		bucket = DELAYS - 1;
	/* For the verifier, which has lost the bound by now. */
	asm volatile("" : "+r"(bucket));
	bucket &= DELAYS - 1;

	if (loop && !other)
		advance(locked, loop, now, settings->mu);
	bpf_spin_lock(&locked->lock);
	if (loop && place.law == LAW_L4S)
		l4s_serve(&loop->l4s, now);
	counts->packets++;
	counts->bytes += skb->len;
	counts->class_bytes[other] += skb->len;
	if (skb->gso_segs > 1)
		counts->merged++;
	if (!other) {
		if (loop) {
			waiting = backlog_depart(&loop->backlog, slot_of_stamp(stamp, now), skb->len);
			/* Longer here than slots are kept. */
			if (waiting == BACKLOG_UNKNOWN)
				waiting = divide(settings->mu * x_us, 1000000);
			if (place.law == LAW_L4S) {
				router_measure(router, settings, now, skb->len);
				counts->forecast_error = l4s_error_bytes(&loop->l4s);
				if (ecn == ECN_ECT_1 &&
				    l4s_marks(&loop->l4s, now - x_us * 1000, waiting, place.link_header)) {
					ecn = ECN_CE;
					counts->turned++;
				}
			} else {
				adaptive_depart(router, &loop->adaptive, settings, now, waiting, skb->len);
				counts->loop_delay_us = adaptive_loop_delay_us(&loop->adaptive);
				counts->forecast_error = adaptive_error_bytes(&loop->adaptive);
			}
		} else {
			router_depart(router, settings, now, x_us, skb->len);
		}
		if (place.law != LAW_L4S && (ecn == ECN_ECT_1 || ecn == ECN_ECT_0)) {
			kept = router_take_token(router, settings,
						 ecn == ECN_ECT_1 &&
							 (!loop || adaptive_has_room(&loop->adaptive, settings->buffer,
										     skb->len)));
			if (loop && kept)
				adaptive_order(&loop->adaptive, skb->len);
			if (ecn == ECN_ECT_1 && !kept) {
				ecn = ECN_ECT_0;
				counts->turned++;
			}
		}
		counts->f = router->f;
		counts->cr = router->cr;
		counts->token = router->token;
		counts->delay_us = x_us;
		counts->delays[bucket]++;
	}
	if (ecn == ECN_NOT_ECT) {
		counts->not_ect++;
	} else {
		kind = ecn == ECN_CE ? 2 : ecn == ECN_ECT_0 ? 1 : 0;
		asm volatile("" : "+r"(kind));
		kind &= 3;
		counts->sent[kind] += skb->len - place.link_header;
		counts->sent_payload[kind] += payload;
	}
	bpf_spin_unlock(&locked->lock);
	if (ecn != old)
		write_ecn(skb, version, place.link_header, head, ecn);
	return TC_NEXT;
}
