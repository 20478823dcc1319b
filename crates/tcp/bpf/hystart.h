/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * HyStart as in Linux 6.12 tcp_cubic.c, hystart_update: the same readings as Classic in
 * `brakelight-senders`'s `controller/hystart.rs`, whose head has the rules and constants.
 */
#ifndef BRAKELIGHT_HYSTART_H
#define BRAKELIGHT_HYSTART_H

#include "fixed.h"

/*
 * Linux 6.12 tcp_cubic.c, hystart_low_window, hystart_ack_delta_us, HYSTART_MIN_SAMPLES, HYSTART_DELAY_MIN,
 * HYSTART_DELAY_MAX
 */
#define HYSTART_LOW_WINDOW 16
#define HYSTART_ACK_DELTA_NS 2000000ULL
#define HYSTART_SAMPLES 8
#define HYSTART_RISE_MIN_US 4000
#define HYSTART_RISE_MAX_US 16000

struct hystart {
	__u64 round_start_ns;
	/* The last ACK of the train that began with the round. */
	__u64 last_ack_ns;
	/* What ends the round, and what is sent next. */
	__u64 end;
	__u64 next;
	/* ~0: no sample yet */
	__u32 round_min_us;
	__u32 samples;
	__u32 found;
	__u32 unused;
};

static __always_inline void hystart_start_round(struct hystart *h, __u64 now_ns)
{
	h->round_start_ns = now_ns;
	h->last_ack_ns = now_ns;
	h->round_min_us = ~0U;
	h->samples = 0;
}

static __always_inline void hystart_init(struct hystart *h, __u64 now_ns)
{
	__builtin_memset(h, 0, sizeof(*h));
	hystart_start_round(h, now_ns);
}

/* Ready for another slow start. */
static __always_inline void hystart_rearm(struct hystart *h, __u64 now_ns)
{
	hystart_start_round(h, now_ns);
	h->end = h->next;
	h->found = 0;
}

/*
 * Whether slow start is to end here; Linux 6.12 tcp_cubic.c, hystart_update. Windows in bytes; `paced` if TCP
 * or a queue spaces packets.
 */
static __always_inline bool hystart_found(struct hystart *h, __u64 now_ns, __u64 newest, __u32 rtt_us, __u32 delay_min_us,
					  __u64 cwnd, __u32 mss, __u32 srtt_us, bool paced)
{
	__u64 cushion_ns, rise_us;

	if (h->found)
		return false;
	if (newest >= h->end) {
		h->end = max_u64(h->next, newest + 1);
		hystart_start_round(h, now_ns);
	}
	if (cwnd < (__u64)mss * HYSTART_LOW_WINDOW)
		return false;
	if (now_ns - min_u64(h->last_ack_ns, now_ns) <= HYSTART_ACK_DELTA_NS) {
		h->last_ack_ns = now_ns;
		/* Linux 6.12 tcp_cubic.c, hystart_ack_delay: four bursts of 64 KiB at two windows per RTT */
		cushion_ns = min_u64(131072000ULL * srtt_us / (cwnd ? cwnd : 1), 1000000);
		if ((paced ? 1 : 2) * (now_ns - min_u64(h->round_start_ns, now_ns)) > delay_min_us * 1000ULL + cushion_ns)
			h->found = 1;
	}
	if (rtt_us < h->round_min_us)
		h->round_min_us = rtt_us;
	if (h->samples < HYSTART_SAMPLES) {
		h->samples++;
	} else {
		rise_us = min_u64(max_u64(delay_min_us / 8, HYSTART_RISE_MIN_US), HYSTART_RISE_MAX_US);
		if (h->round_min_us > delay_min_us + rise_us)
			h->found = 1;
	}
	return h->found;
}

#endif
