/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUBIC (RFC 9438) in fixed point: the same readings as `brakelight-senders`'s `controller/cubic.rs`, whose
 * head has the formulas. Windows are in bytes, so the curve's packets are times the MSS. As RFC 9438 has it
 * and without HyStart, or as Linux 6.12 tcp_cubic.c has it: with HyStart, with the smallest RTT as horizon,
 * and with a W_est that never catches up.
 *
 *   W(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - cwnd) / C),  C = 2/5, beta = 7/10
 */
#ifndef BRAKELIGHT_CUBIC_H
#define BRAKELIGHT_CUBIC_H

#include "fixed.h"
#include "hystart.h"

struct cubic_model {
	__u64 cwnd;
	/* WINDOW_NONE: infinite */
	__u64 ssthresh;
	/* 0: no reduction has told the limit */
	__u64 w_max;
	__u64 cwnd_prior;
	/* The epoch: 0 in `epoch_start_ns` when none is going on. */
	__u64 epoch_start_ns;
	__u64 origin;
	__u64 w_est;
	/* K, time */
	__u64 k;
};

struct cubic {
	struct cubic_model model;
	/* The model before the last reduction, for its undoing. */
	struct cubic_model before;
	struct hystart hystart;
	__u64 last_ack_ns;
	/*
	 * Smallest RTT, as Linux 6.12 tcp_cubic.c keeps it: samples of the first second of an epoch are left
	 * out; 0 before the first.
	 */
	__u32 delay_min_us;
	__u32 as_linux;
	__u32 has_before;
	__u32 mss;
};

/* What one ACK says to a window. */
struct ack {
	__u64 now_ns;
	/* What the newest acknowledged ends with, and what is sent next, by any count: for telling rounds. */
	__u64 newest;
	__u64 next;
	/* bytes */
	__u32 newly_acked;
	__u32 inflight_before;
	/* packets, for counting those without a mark */
	__u32 acked_packets;
	__u32 srtt_us;
	__u32 min_rtt_us;
	/* bytes by mark; an AccECN option may take back what an earlier ACK without one had to guess */
	__s32 accelerate;
	__s32 brake;
	__s32 ce;
	__u32 cwnd_limited;
	__u32 in_recovery;
	/* of the newest packet; 0: none */
	__u32 rtt_us;
	/* Whether something spaces packets out. */
	__u32 paced;
};

static __always_inline void cubic_init(struct cubic *c, __u32 mss, __u64 cwnd, __u64 now_ns, bool as_linux)
{
	__builtin_memset(c, 0, sizeof(*c));
	c->mss = mss;
	c->as_linux = as_linux;
	hystart_init(&c->hystart, now_ns);
	c->model.cwnd = cwnd;
	c->model.ssthresh = WINDOW_NONE;
	c->last_ack_ns = now_ns;
}

static __always_inline __u64 cubic_cwnd(const struct cubic *c)
{
	return max_u64(c->model.cwnd, window_of(c->mss));
}

/* W at `at` since the start of the epoch, never below 0. */
CHECKED_ALONE __u64 cubic_curve(__u64 origin, __u64 k, __u64 at, __u32 mss)
{
	bool rising = at >= k;
	__u64 distance = min_u64(rising ? at - k : k - at, (1ULL << 23) - 1);
	/* s^3 << 40: 128 s cubed just fit */
	__u64 cube = ((distance * distance) >> 8) * distance;
	/* rfc9438 4.2, Figure 1 */
	__u64 offset = divide((cube >> 20) * 2 * mss, 5) >> (20 - WINDOW_BITS);

	if (rising)
		return min_u64(origin + offset, WINDOW_MAX);
	return origin > offset ? origin - offset : 0;
}

/* rfc9438 4.2, Figure 2 */
CHECKED_ALONE __u64 cubic_k(__u64 below, __u32 mss)
{
	/* (W_max - cwnd) / C in packets per packets per s^3: s^3 << 24 */
	__u64 cubed = divide((below << 12) * 5, 2 * (__u64)mss);

	if (cubed < 1ULL << 38)
		return cube_root(cubed << 24);
	return cube_root(min_u64(cubed, (1ULL << 62) - 1)) << 8;
}

static __always_inline void cubic_begin_epoch(struct cubic *c, __u64 now_ns)
{
	struct cubic_model *m = &c->model;

	/* rfc9438 4.2, 4.10 */
	m->origin = max_u64(m->w_max, m->cwnd);
	m->k = cubic_k(m->origin - m->cwnd, c->mss);
	m->w_est = m->cwnd;
	m->epoch_start_ns = max_u64(now_ns, 1);
}

/* share * bytes, share = part / whole with part at most whole; a window */
CHECKED_ALONE __u64 share_of(__u64 part, __u64 whole, __u64 bytes)
{
	return (divide(part << 22, whole) * bytes + (1 << 9)) >> (22 - WINDOW_BITS);
}

CHECKED_ALONE int cubic_avoid_congestion(struct cubic *c, const struct ack *ack, __u64 acked)
{
	struct cubic_model *m;
	__u64 at, horizon, target, growth, grown;

	if (!EXISTS(c) || !EXISTS(ack))
		return 0;
	m = &c->model;
	if (!m->epoch_start_ns)
		cubic_begin_epoch(c, ack->now_ns);
	at = time_of_ns(ack->now_ns - min_u64(m->epoch_start_ns, ack->now_ns));
	/* Linux 6.12 tcp_cubic.c, bictcp_update */
	horizon = time_of_ns((__u64)(c->as_linux && c->delay_min_us ? c->delay_min_us : ack->srtt_us) * 1000);
	/* rfc9438 4.4, 4.5 */
	target = cubic_curve(m->origin, m->k, at + horizon, c->mss);
	target = min_u64(max_u64(target, m->cwnd), m->cwnd + m->cwnd / 2);
	growth = target - m->cwnd;
	/* Linux 6.12 tcp_cubic.c, bictcp_update: 5 % per RTT while no loss has told the maximum */
	if (!m->w_max)
		growth = max_u64(growth, m->cwnd / 20);
	grown = m->cwnd + share_of(growth, m->cwnd, acked);
	/* rfc9438 4.3, Figure 4: alpha = 3 (1 - beta) / (1 + beta) = 9 / 17, and 1 above cwnd_prior */
	if (m->w_est < m->cwnd_prior || c->as_linux)
		m->w_est += divide(9 * share_of(window_of(c->mss), m->cwnd, acked), 17);
	else
		m->w_est += share_of(window_of(c->mss), m->cwnd, acked);
	m->w_est = min_u64(m->w_est, WINDOW_MAX);
	if (cubic_curve(m->origin, m->k, at, c->mss) < m->w_est)
		grown = max_u64(grown, m->w_est);
	m->cwnd = min_u64(grown, WINDOW_MAX);
	return 0;
}

/* rfc9438 5.8: the time since the last ACK does not count. */
static __always_inline void cubic_pause(struct cubic *c, __u64 now_ns)
{
	if (c->model.epoch_start_ns && now_ns > c->last_ack_ns)
		c->model.epoch_start_ns += now_ns - c->last_ack_ns;
	c->last_ack_ns = now_ns;
}

/* Smallest RTT and HyStart; Linux 6.12 tcp_cubic.c, cubictcp_acked */
static __always_inline void cubic_watch(struct cubic *c, const struct ack *ack)
{
	struct cubic_model *m = &c->model;
	bool slow_start = m->cwnd < m->ssthresh;
	/* The queue that caused the last reduction drains at first: those samples would say too little. */
	bool settled = !m->epoch_start_ns || ack->now_ns >= m->epoch_start_ns + 1000000000ULL;

	c->hystart.next = ack->next;
	if (!ack->rtt_us || !settled)
		return;
	if (!c->delay_min_us || ack->rtt_us < c->delay_min_us)
		c->delay_min_us = ack->rtt_us;
	if (slow_start && hystart_found(&c->hystart, ack->now_ns, ack->newest, ack->rtt_us, c->delay_min_us,
					bytes_of(cubic_cwnd(c)), c->mss, ack->srtt_us, ack->paced))
		m->ssthresh = m->cwnd;
}

static __always_inline void cubic_on_ack(struct cubic *c, const struct ack *ack)
{
	struct cubic_model *m = &c->model;
	/* One ACK never covers more; the growth of a larger one would not fit. */
	__u64 acked = min_u64(ack->newly_acked, 1 << 24);

	if (c->as_linux)
		cubic_watch(c, ack);
	if (ack->in_recovery || !ack->cwnd_limited) {
		cubic_pause(c, ack->now_ns);
		return;
	}
	c->last_ack_ns = ack->now_ns;
	if (m->cwnd < m->ssthresh) {
		__u64 room = m->ssthresh - m->cwnd;

		if (window_of(acked) < room) {
			m->cwnd = min_u64(m->cwnd + window_of(acked), WINDOW_MAX);
			return;
		}
		m->cwnd = m->ssthresh;
		acked -= min_u64(acked, bytes_of(room));
	}
	if (acked)
		cubic_avoid_congestion(c, ack, acked);
}

/* rfc9438 4.6, 4.7 */
static __always_inline void cubic_reduce(struct cubic *c)
{
	struct cubic_model *m = &c->model;

	c->before = *m;
	c->has_before = 1;
	m->w_max = m->cwnd < m->w_max ? divide(m->cwnd * 17, 20) : m->cwnd;
	m->cwnd_prior = m->cwnd;
	m->ssthresh = max_u64(divide(m->cwnd * 7, 10), window_of(2 * (__u64)c->mss));
	m->epoch_start_ns = 0;
}

static __always_inline void cubic_on_loss(struct cubic *c)
{
	cubic_reduce(c);
	c->model.cwnd = c->model.ssthresh;
}

/* rfc9438 4.8; a repeated timeout reduces no further. */
static __always_inline void cubic_on_timeout(struct cubic *c, __u64 now_ns, bool repeated)
{
	if (!repeated)
		cubic_reduce(c);
	c->model.cwnd = window_of(c->mss);
	c->model.w_max = 0;
	c->model.epoch_start_ns = 0;
	c->delay_min_us = 0;
	hystart_rearm(&c->hystart, now_ns);
}

/* rfc9438 4.9 */
static __always_inline void cubic_on_spurious_loss(struct cubic *c)
{
	__u64 cwnd = c->model.cwnd;

	if (!c->has_before)
		return;
	c->model = c->before;
	c->model.cwnd = max_u64(c->model.cwnd, cwnd);
	c->has_before = 0;
}

static __always_inline void cubic_on_recovery_exit(struct cubic *c)
{
	c->has_before = 0;
}

static __always_inline void cubic_on_idle_restart(struct cubic *c, __u64 initial, __u64 idle_ns, __u64 rto_ns)
{
	struct cubic_model *m = &c->model;
	__u64 quarters = window_of(bytes_of(m->cwnd) / 4 * 3);

	if (m->ssthresh != WINDOW_NONE)
		m->ssthresh = max_u64(m->ssthresh, quarters);
	m->cwnd = max_u64(window_after_idle(m->cwnd, initial, idle_ns, rto_ns), window_of(c->mss));
}

static __always_inline void cubic_cap(struct cubic *c, __u64 most)
{
	c->model.cwnd = max_u64(min_u64(c->model.cwnd, most), window_of(c->mss));
}

/* Another unit, another curve: it begins anew from here towards the same maximum. */
static __always_inline void cubic_on_mtu_change(struct cubic *c, __u32 mss)
{
	struct cubic_model *m = &c->model;

	c->mss = mss;
	c->has_before = 0;
	m->cwnd = max_u64(m->cwnd, window_of(mss));
	if (m->ssthresh != WINDOW_NONE)
		m->ssthresh = max_u64(m->ssthresh, window_of(2 * (__u64)mss));
	m->epoch_start_ns = 0;
}

#endif
