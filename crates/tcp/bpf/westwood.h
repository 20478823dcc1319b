/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Westwood+'s window in fixed point: the same readings as `brakelight-senders`'s `controller/westwood.rs`
 * with `filter=fast` and the reduction at the start of the episode, whose head has the formulas.
 *
 *   every Delta = max(RTT, 50 ms):  b = bytes acknowledged / Delta
 *                                   n = (n + 3 b) / 4;  BWE = (BWE + 3 n) / 4    open-questions#X-60
 *   reduction:  ssthresh = max(BWE RTT_min, 2 MSS), cwnd = min(cwnd, ssthresh)    mascolo01
 *
 * Windows are whole bytes, times microseconds, bandwidths bytes per second << BANDWIDTH_BITS.
 */
#ifndef BRAKELIGHT_WESTWOOD_H
#define BRAKELIGHT_WESTWOOD_H

#include "fixed.h"

#define BANDWIDTH_BITS 4
/* Linux 6.12 tcp_westwood.c, TCP_WESTWOOD_RTT_MIN */
#define WESTWOOD_INTERVAL_US 50000
/* 64 s: with the largest bandwidth their product still fits. */
#define WESTWOOD_RTT_MAX_US (1U << 26)
#define WESTWOOD_BANDWIDTH_MAX (1ULL << (33 + BANDWIDTH_BITS))

struct westwood {
	__u64 cwnd;
	/* WINDOW_NONE: infinite */
	__u64 ssthresh;
	/* Acknowledged bytes not yet turned into growth. */
	__u64 credit;
	/* The sample that is being taken, and the two stages. */
	__u64 since_us;
	__u64 acked;
	__u64 first;
	__u64 second;
	/* Before the last reduction, for its undoing. */
	__u64 before_cwnd;
	__u64 before_ssthresh;
	__u32 has_before;
	__u32 has_bandwidth;
	__u32 mss;
	/* 0: no sample yet */
	__u32 rtt_us;
	__u32 rtt_min_us;
	/* The next sample replaces `rtt_min_us` rather than lowering it. */
	__u32 reset_rtt_min;
};

static __always_inline void westwood_init(struct westwood *w, __u32 mss, __u64 cwnd, __u64 now_us)
{
	__builtin_memset(w, 0, sizeof(*w));
	w->mss = mss;
	w->cwnd = cwnd;
	w->ssthresh = WINDOW_NONE;
	w->since_us = now_us;
}

/*
 * Linux 6.12 tcp_westwood.c, westwood_update_window: an ACK that completes a sample belongs to the next one.
 */
static __always_inline void westwood_measure(struct westwood *w, __u64 now_us, __u32 acked)
{
	__u64 delta_us = now_us - min_u64(w->since_us, now_us);
	__u32 interval_us = w->rtt_us > WESTWOOD_INTERVAL_US ? w->rtt_us : WESTWOOD_INTERVAL_US;

	if (w->rtt_us && delta_us > interval_us) {
		__u64 bytes = min_u64(w->acked, 1ULL << 36);
		__u64 sample = min_u64(divide((bytes << BANDWIDTH_BITS) * 1000000, delta_us), WESTWOOD_BANDWIDTH_MAX);

		if (!w->has_bandwidth) {
			w->first = sample;
			w->second = sample;
			w->has_bandwidth = 1;
		} else {
			/* open-questions#X-60 */
			w->first = (w->first + 3 * sample + 2) / 4;
			w->second = (w->second + 3 * w->first + 2) / 4;
		}
		w->since_us = now_us;
		w->acked = 0;
	}
	w->acked += acked;
}

/* What the path holds without a queue. */
static __always_inline __u64 westwood_pipe(const struct westwood *w)
{
	return max_u64((w->second * w->rtt_min_us / 1000000) >> BANDWIDTH_BITS, 2 * (__u64)w->mss);
}

/* `rtt_us` is 0 where the ACK has no sample. */
static __always_inline void westwood_on_ack(struct westwood *w, __u64 now_us, __u32 acked, __u32 rtt_us, bool may_grow)
{
	__u64 left = acked, room;

	westwood_measure(w, now_us, acked);
	if (rtt_us) {
		rtt_us = rtt_us < WESTWOOD_RTT_MAX_US ? rtt_us : WESTWOOD_RTT_MAX_US;
		w->rtt_us = rtt_us;
		/* Linux 6.12 tcp_westwood.c, update_rtt_min */
		if (!w->rtt_min_us || w->reset_rtt_min || rtt_us < w->rtt_min_us)
			w->rtt_min_us = rtt_us;
		w->reset_rtt_min = 0;
	}
	if (!may_grow)
		return;
	room = w->ssthresh > w->cwnd ? w->ssthresh - w->cwnd : 0;
	room = min_u64(room, left);
	w->cwnd += room;
	left -= room;
	/* rfc3465 2.1: one packet for each window of acknowledged bytes; one ACK covers few. */
	w->credit += left;
	for (int i = 0; i < 64; i++) {
		if (w->credit < w->cwnd)
			break;
		w->credit -= w->cwnd;
		w->cwnd += w->mss;
	}
	w->cwnd = min_u64(w->cwnd, bytes_of(WINDOW_MAX));
}

static __always_inline void westwood_reduce_to(struct westwood *w, __u64 ssthresh)
{
	w->before_cwnd = w->cwnd;
	w->before_ssthresh = w->ssthresh;
	w->has_before = 1;
	w->ssthresh = ssthresh;
	w->credit = 0;
}

/* mascolo01 */
static __always_inline void westwood_on_loss(struct westwood *w)
{
	westwood_reduce_to(w, westwood_pipe(w));
	w->cwnd = min_u64(w->cwnd, w->ssthresh);
}

/* Congestion that is no loss, and so never a mistake to be taken back. */
static __always_inline void westwood_reduce(struct westwood *w)
{
	westwood_on_loss(w);
	w->has_before = 0;
}

static __always_inline void westwood_on_timeout(struct westwood *w, bool repeated)
{
	if (!repeated)
		westwood_reduce_to(w, westwood_pipe(w));
	w->cwnd = w->mss;
	w->reset_rtt_min = 1;
}

static __always_inline void westwood_on_spurious_loss(struct westwood *w)
{
	if (!w->has_before)
		return;
	w->cwnd = max_u64(w->cwnd, w->before_cwnd);
	w->ssthresh = w->before_ssthresh;
	w->has_before = 0;
}

static __always_inline void westwood_on_recovery_exit(struct westwood *w)
{
	w->has_before = 0;
}

static __always_inline void westwood_on_idle_restart(struct westwood *w, __u64 now_us, __u64 initial, __u64 idle_us,
						     __u64 rto_us)
{
	__u64 quarters = w->cwnd / 4 * 3;

	/* rfc2861 3 */
	w->ssthresh = max_u64(w->ssthresh, quarters);
	w->cwnd = max_u64(window_after_idle(w->cwnd, initial, idle_us, rto_us), w->mss);
	/* Silence is not the path's bandwidth. */
	w->since_us = now_us;
	w->acked = 0;
}

static __always_inline void westwood_on_mtu_change(struct westwood *w, __u32 mss)
{
	w->mss = mss;
	w->cwnd = max_u64(w->cwnd, mss);
}

#endif
