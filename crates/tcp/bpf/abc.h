/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ABC's two windows (abc20) in fixed point: the same readings as `brakelight-senders`'s `controller/abc.rs`,
 * whose head has the formulas, the table of symbols and what is done where a path spoils the marks.
 *
 *   each byte ACKed:  w_abc += 1 + MSS/w_abc if accelerate, -1 + MSS/w_abc if brake, 0 if CE      abc20 eq.3
 *   cwnd = min(w_abc, w_nonabc), each at most 2 x the packets in flight before the ACK            abc20 4.1
 */
#ifndef BRAKELIGHT_ABC_H
#define BRAKELIGHT_ABC_H

#include "cubic.h"

/* packets; open-questions#X-15, X-14 */
#define ABC_FLOOR 2
#define ABC_CAP_FLOOR 10
/* Packets without a mark after which marks are treated as missing. */
#define ABC_SILENT 10
/* Consecutive brakes at the floor after which marks are treated as missing. */
#define ABC_STUCK 64

struct abc {
	struct cubic second;
	__u64 w_abc;
	__u64 initial;
	__u32 mss;
	__u32 unmarked;
	__u32 braked;
	/* Whether a router of ABC's has ever braked here. */
	__u32 heard_brake;
};

static __always_inline void abc_init(struct abc *a, __u32 mss, __u32 initial_bytes, __u64 now_ns, bool as_linux)
{
	a->initial = window_of(initial_bytes);
	a->w_abc = a->initial;
	a->mss = mss;
	a->unmarked = 0;
	a->braked = 0;
	a->heard_brake = 0;
	cubic_init(&a->second, mss, a->initial, now_ns, as_linux);
}

static __always_inline __u64 abc_packets(const struct abc *a, __u32 count)
{
	return window_of((__u64)a->mss * count);
}

static __always_inline void abc_doubt_marks(struct abc *a, const struct ack *ack)
{
	bool at_floor = a->w_abc <= abc_packets(a, ABC_FLOOR) || a->braked >= ABC_STUCK;
	bool queue = (__u64)ack->srtt_us * 4 > (__u64)ack->min_rtt_us * 5;

	if (ack->accelerate > 0 || ack->brake > 0 || ack->ce > 0)
		a->unmarked = 0;
	else if (a->unmarked < ABC_SILENT)
		a->unmarked += ack->acked_packets;
	if (ack->accelerate > 0 || !at_floor || (queue && a->braked < ABC_STUCK))
		a->braked = 0;
	else if (ack->brake > 0 && a->braked < ABC_STUCK)
		a->braked += ack->acked_packets;
}

static __always_inline bool abc_marks_are_spoiled(const struct abc *a)
{
	return a->unmarked >= ABC_SILENT || a->braked >= ABC_STUCK;
}

/* abc20 eq.3 */
CHECKED_ALONE __u64 abc_window_after(__u64 w_abc, __u32 mss, __s32 accelerate, __s32 brake)
{
	__s64 marked = (__s64)accelerate + brake;
	__s64 change = (__s64)accelerate - brake;
	__u64 lowest = min_u64(window_of((__u64)mss * ABC_FLOOR), w_abc);
	__u64 window = w_abc;

	if (marked > 0) {
		/* MSS / w_abc for each byte */
		__u64 bytes = min_u64((__u64)marked, 1 << 24);

		window += divide((__u64)mss * bytes << (2 * WINDOW_BITS), w_abc);
	}
	if (change >= 0)
		window += window_of((__u64)change);
	else
		window -= min_u64(window, window_of((__u64)-change));
	return min_u64(max_u64(window, lowest), WINDOW_MAX);
}

static __always_inline void abc_cap(struct abc *a, __u64 most)
{
	a->w_abc = max_u64(min_u64(a->w_abc, most), window_of(a->mss));
	cubic_cap(&a->second, most);
}

CHECKED_ALONE int abc_on_ack(struct abc *a, struct ack *ack)
{
	__u64 most;

	if (!EXISTS(a) || !EXISTS(ack))
		return 0;
	abc_doubt_marks(a, ack);
	if (!abc_marks_are_spoiled(a))
		a->w_abc = abc_window_after(a->w_abc, a->mss, ack->accelerate, ack->brake);
	/* D5: from the first brake on, delays are those of a queue that the other window fills. */
	if (ack->brake > 0)
		a->heard_brake = 1;
	if (a->second.as_linux && a->heard_brake)
		ack->rtt_us = 0;
	cubic_on_ack(&a->second, ack);
	/* abc20 4.1: the window that does not govern must not run away. */
	most = max_u64(window_of(2 * (__u64)ack->inflight_before), abc_packets(a, ABC_CAP_FLOOR));
	if (abc_marks_are_spoiled(a))
		a->w_abc = most;
	abc_cap(a, most);
	return 0;
}

static __always_inline bool abc_marks_govern(const struct abc *a)
{
	return a->w_abc <= cubic_cwnd(&a->second);
}

static __always_inline void abc_on_idle_restart(struct abc *a, __u64 idle_ns, __u64 rto_ns)
{
	a->w_abc = max_u64(window_after_idle(a->w_abc, a->initial, idle_ns, rto_ns), window_of(a->mss));
	cubic_on_idle_restart(&a->second, a->initial, idle_ns, rto_ns);
}

static __always_inline void abc_on_mtu_change(struct abc *a, __u32 mss)
{
	a->mss = mss;
	a->w_abc = max_u64(a->w_abc, window_of(mss));
	cubic_on_mtu_change(&a->second, mss);
}

/* bytes */
static __always_inline __u32 abc_cwnd(const struct abc *a)
{
	return max_u64(bytes_of(min_u64(a->w_abc, cubic_cwnd(&a->second))), a->mss);
}

#endif
