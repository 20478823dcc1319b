/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/wdc.h: delays that never become negative, and the threshold. */
#include "arithmetic.h"
#include "wdc.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid_read(d) && \valid_read(s) && \separated(d, s);
    requires share: s->share_ppm <= 1000000;
    assigns \nothing;
    ensures fixed_if_given: s->threshold_us != 0 ==> \result == s->threshold_us;
    ensures at_most_the_room: s->threshold_us == 0 && d->rtt_min_us != 0 && d->rtt_max_us > d->rtt_min_us ==>
              \result <= d->rtt_max_us - d->rtt_min_us;
    ensures none_before_a_loss: s->threshold_us == 0 && d->rtt_max_us <= d->rtt_min_us ==> \result == 0; */
static inline __u32 wdc_threshold(const struct wdc *d, const struct wdc_settings *s);

/*@ requires valid: \valid_read(d);
    assigns \nothing;
    ensures after_the_reaction: d->has_reacted != 0 && sent_us <= d->reacted_us ==> !\result; */
static inline bool wdc_is_news(const struct wdc *d, __u64 sent_us);

/*@ requires valid: \valid(d) && \valid_read(ack) && \separated(d, ack);
    requires clocks: ack->now_us <= 4611686018427387904 &&
               -2305843009213693952 <= ack->received_us <= 2305843009213693952;
    assigns d->rtt_min_us, d->newest_us, d->base_us, d->has_base, d->queueing_us;
    ensures smallest_rtt: d->rtt_min_us <= ack->rtt_us;
    ensures queueing_within_rtt: d->newest_us == ack->now_us - \min(ack->rtt_us, ack->now_us) &&
              !(\old(d->has_base) != 0 && ack->now_us - \min(ack->rtt_us, ack->now_us) < \old(d->newest_us)) ==>
              0 <= d->queueing_us <= ack->rtt_us - d->rtt_min_us;
    ensures newest_in_order: \old(d->has_base) != 0 ==> d->newest_us >= \old(d->newest_us);
    ensures once_per_reaction: \result && d->has_reacted != 0 ==> d->newest_us > d->reacted_us;
    ensures only_above_threshold: \result ==> d->threshold_us != 0 && d->queueing_us >= d->threshold_us; */
static inline bool wdc_measure(struct wdc *d, const struct wdc_ack *ack);
