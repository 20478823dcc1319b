/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * QUIC-DC's delay control (quicdc) in fixed point: the same readings as `brakelight-senders`'s
 * `controller/quicdc.rs` and `estimate/one_way_queueing.rs` (baseline=bounded), whose heads have the
 * formulas. The receiver's clock comes by TCP timestamps.
 *
 *   OWD  = r - s,   OWQD = OWD - B,   B = clamp(B, OWD - (RTT - RTT_min), OWD)         quicdc eq.3 to eq.5
 *   OWQD >= theta, of a packet sent after the last reaction: Westwood+'s reduction     quicdc eq.6
 *   theta = a time, or a share of RTT_max - RTT_min                                    quicdc 5
 *
 * Times are microseconds. s is when the newest packet acknowledged was sent, r the timestamp of its ACK.
 */
#ifndef BRAKELIGHT_WDC_H
#define BRAKELIGHT_WDC_H

#include "westwood.h"

struct wdc_settings {
	/* 0: the share counts */
	__u32 threshold_us;
	/* millionths of RTT_max - RTT_min */
	__u32 share_ppm;
};

struct wdc {
	struct westwood westwood;
	__u64 initial;
	/* B, and when the newest packet measured was sent. */
	__s64 base_us;
	__u64 newest_us;
	/* When the window was last reduced. */
	__u64 reacted_us;
	__u32 has_base;
	__u32 has_reacted;
	/* The smallest round trip of a packet that was measured; 0 before the first. */
	__u32 rtt_min_us;
	/* The largest so far, and as of the last loss; 0 before it. */
	__u32 largest_rtt_us;
	__u32 rtt_max_us;
	__u32 queueing_us;
	__u32 threshold_us;
	__u32 delay_events;
};

struct wdc_ack {
	__u64 now_us;
	/* The receiver's clock; counts if `measured`, which takes an RTT sample. */
	__s64 received_us;
	__u32 newly_acked;
	/* of the newest packet acknowledged; 0: none */
	__u32 rtt_us;
	__u32 measured;
	__u32 cwnd_limited;
	__u32 in_recovery;
	__u32 unused;
};

/*
 * The receiver's timestamps as a clock of microseconds that does not wrap. Their unit is the peer's affair;
 * Linux 6.12 tcp.h, tcp_clock_ts, has milliseconds, or microseconds where a route says so. A clock of another
 * unit is found out within a second. One ACK that was held up does not condemn a clock: it is judged anew at
 * each until it is found good.
 */
enum { CLOCK_UNKNOWN = 0, CLOCK_GOOD = 1, CLOCK_ODD = 2 };

struct peer_clock {
	__s64 received_us;
	__u64 first_us;
	__u64 last_us;
	__u32 last;
	__u32 tick_us;
	__u32 state;
	__u32 begun;
};

/* True if `received_us` says when this ACK was sent. */
static __always_inline bool peer_clock_read(struct peer_clock *clock, __u32 timestamp, __u64 now_us, __u32 tick_us)
{
	__s32 ticks;
	__u64 passed_us, told_us;

	/* Half a round of the timestamps later nobody knows how many have passed. */
	if (!clock->begun || clock->tick_us != tick_us ||
	    now_us - min_u64(clock->last_us, now_us) >= (__u64)tick_us << 31) {
		__builtin_memset(clock, 0, sizeof(*clock));
		clock->begun = 1;
		clock->tick_us = tick_us;
		clock->last = timestamp;
		clock->first_us = now_us;
		clock->last_us = now_us;
		return true;
	}
	ticks = (__s32)(timestamp - clock->last);
	clock->last = timestamp;
	clock->last_us = now_us;
	clock->received_us += (__s64)ticks * tick_us;
	passed_us = now_us - min_u64(clock->first_us, now_us);
	if (clock->state != CLOCK_GOOD && passed_us > 1000000) {
		told_us = clock->received_us > 0 ? clock->received_us : 0;
		/* Queues that come and go change it by far less than a factor of two. */
		clock->state = told_us * 2 > passed_us && told_us < passed_us * 2 ? CLOCK_GOOD : CLOCK_ODD;
	}
	return clock->state != CLOCK_ODD;
}

static __always_inline void wdc_init(struct wdc *d, __u32 mss, __u64 initial, __u64 now_us)
{
	__builtin_memset(d, 0, sizeof(*d));
	d->initial = initial;
	westwood_init(&d->westwood, mss, initial, now_us);
}

/* 0: none yet */
static __always_inline __u32 wdc_threshold(const struct wdc *d, const struct wdc_settings *s)
{
	__u64 room;

	if (s->threshold_us)
		return s->threshold_us;
	if (!d->rtt_min_us || d->rtt_max_us <= d->rtt_min_us)
		return 0;
	room = d->rtt_max_us - d->rtt_min_us;
	/* Upwards: a delay in whole microseconds reaches the fraction when it reaches the next. */
	return (room * s->share_ppm + 999999) / 1000000;
}

static __always_inline bool wdc_is_news(const struct wdc *d, __u64 sent_us)
{
	return !d->has_reacted || sent_us > d->reacted_us;
}

/* True if the packet queued for too long and was sent after the last reaction. */
static __always_inline bool wdc_measure(struct wdc *d, const struct wdc_ack *ack)
{
	__u64 sent_us = ack->now_us - min_u64(ack->rtt_us, ack->now_us);
	__s64 owd_us = ack->received_us - (__s64)sent_us;
	__s64 base_us, lowest_us;

	/* It bounds this packet, too. */
	if (!d->rtt_min_us || ack->rtt_us < d->rtt_min_us)
		d->rtt_min_us = ack->rtt_us;
	/* Of what was overtaken the delay is not the queue's. */
	if (d->has_base && sent_us < d->newest_us)
		return false;
	d->newest_us = sent_us;
	base_us = d->has_base ? d->base_us : owd_us;
	lowest_us = owd_us - (__s64)(ack->rtt_us - d->rtt_min_us);
	if (base_us < lowest_us)
		base_us = lowest_us;
	if (base_us > owd_us)
		base_us = owd_us;
	d->base_us = base_us;
	d->has_base = 1;
	d->queueing_us = owd_us - base_us;
	/* quicdc eq.6 */
	return d->threshold_us && d->queueing_us >= d->threshold_us && wdc_is_news(d, sent_us);
}

CHECKED_ALONE int wdc_on_ack(struct wdc *d, const struct wdc_ack *ack, const struct wdc_settings *settings)
{
	if (!EXISTS(d) || !EXISTS(ack) || !EXISTS(settings))
		return 0;
	westwood_on_ack(&d->westwood, ack->now_us, ack->newly_acked, ack->rtt_us, ack->cwnd_limited && !ack->in_recovery);
	if (ack->rtt_us > d->largest_rtt_us)
		d->largest_rtt_us = ack->rtt_us;
	d->threshold_us = wdc_threshold(d, settings);
	if (ack->measured && ack->rtt_us && wdc_measure(d, ack)) {
		westwood_reduce(&d->westwood);
		d->reacted_us = ack->now_us;
		d->has_reacted = 1;
		d->delay_events++;
	}
	return 0;
}

/* A loss, which a full buffer makes; a mark of CE says nothing of how much there is room for. */
static __always_inline void wdc_note_loss(struct wdc *d)
{
	d->rtt_max_us = d->largest_rtt_us;
}

/* The start of an episode over a packet sent at `sent_us`; false if that says nothing new. */
static __always_inline bool wdc_on_episode(struct wdc *d, __u64 now_us, __u64 sent_us)
{
	/* open-questions#X-62 */
	if (!wdc_is_news(d, sent_us))
		return false;
	westwood_on_loss(&d->westwood);
	d->reacted_us = now_us;
	d->has_reacted = 1;
	return true;
}

static __always_inline void wdc_on_timeout(struct wdc *d, __u64 now_us, bool repeated)
{
	westwood_on_timeout(&d->westwood, repeated);
	d->reacted_us = now_us;
	d->has_reacted = 1;
}

#endif
