/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/hystart.h: the end of slow start. */
#include "arithmetic.h"
#include "hystart.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid(h);
    assigns h->round_start_ns, h->last_ack_ns, h->round_min_us, h->samples;
    ensures starts_now: h->round_start_ns == now_ns && h->last_ack_ns == now_ns;
    ensures no_sample: h->round_min_us == U32 && h->samples == 0; */
static inline void hystart_start_round(struct hystart *h, __u64 now_ns);

/*@ requires valid: \valid(h);
    requires clock: now_ns <= S63;
    requires sequence: newest < U64;
    requires delay: delay_min_us <= 4294951295;
    requires samples: h->samples <= 8;
    assigns *h;
    ensures samples_bounded: h->samples <= 8;
    ensures found_once: \old(h->found) != 0 ==> !\result;
    ensures small_window_stays: \old(h->found) == 0 && cwnd < mss * 16 ==> !\result;
    ensures rounds_in_order: h->end >= \old(h->end);
    ensures smallest_of_round: \old(h->found) == 0 && cwnd >= mss * 16 ==> h->round_min_us <= rtt_us;
    ensures result_is_kept: \result ==> h->found != 0; */
static inline bool hystart_found(struct hystart *h, __u64 now_ns, __u64 newest, __u32 rtt_us, __u32 delay_min_us,
				 __u64 cwnd, __u32 mss, __u32 srtt_us, bool paced);
