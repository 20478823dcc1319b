/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The contracts of ../bpf/fixed.h, which those of the other headers build on. */
#ifndef BRAKELIGHT_PROOFS_FIXED_ACSL_H
#define BRAKELIGHT_PROOFS_FIXED_ACSL_H

#include "fixed.h"

/*@ assigns \nothing;
    ensures smaller: \result == \min(a, b); */
static inline __u64 min_u64(__u64 a, __u64 b);

/*@ assigns \nothing;
    ensures larger: \result == \max(a, b); */
static inline __u64 max_u64(__u64 a, __u64 b);

/*@ requires room: dividend + divisor / 2 <= U64;
    assigns \nothing;
    ensures by_zero_is_zero: divisor == 0 ==> \result == 0;
    ensures not_above_nearest: divisor != 0 ==> \result * divisor <= dividend + divisor / 2;
    ensures not_below_nearest: divisor != 0 ==> dividend + divisor / 2 < \result * divisor + divisor;
    ensures at_most_rounded_dividend: \result <= dividend + divisor / 2;
    ensures below_one_is_a_share: dividend < divisor * 1048576 ==> \result <= 1048576;
    ensures up_to_one_is_a_ratio: dividend <= divisor * 4194304 ==> \result <= 4194304;
    ensures up_to_one_is_a_time: dividend <= divisor * 16777216 ==> \result <= 16777216; */
static inline __u64 divide(__u64 dividend, __u64 divisor);

/*@ requires divisor: divisor >= 1;
    requires room: dividend + divisor / 2 <= U64;
    assigns \nothing;
    ensures not_above_nearest: \result * divisor <= dividend + divisor / 2;
    ensures not_below_nearest: dividend + divisor / 2 < \result * divisor + divisor; */
static inline __u64 divide_small(__u64 dividend, __u32 divisor);

/*@ assigns \nothing;
    ensures by_zero_is_zero: divisor == 0 ==> \result == 0;
    ensures rounded_down: divisor != 0 ==> \result * divisor <= dividend < \result * divisor + divisor; */
static inline __u64 divide_down(__u64 dividend, __u64 divisor);

/*@ assigns \nothing;
    ensures at_most_window_max: \result <= 2199023255552;
    ensures scaled: \result == \min(bytes, 536870912) * 4096; */
static inline __u64 window_of(__u64 bytes);

/*@ assigns \nothing;
    ensures scaled_back: \result * 4096 <= window < \result * 4096 + 4096; */
static inline __u64 bytes_of(__u64 window);

/*@ requires four_years: ns <= 144115188000000000;
    assigns \nothing;
    ensures nearest: \result * 1953125 <= ns * 128 + 976562 < \result * 1953125 + 1953125; */
static inline __u64 time_of_ns(__u64 ns);

/* Proved by cube_root.c, which runs it on both ends of each interval of equal roots. */
/*@ requires below_2_62: value < 4611686018427387904;
    assigns \nothing;
    ensures root: \result * \result * \result <= value;
    ensures below_2_21: \result < 2097152; */
static inline __u64 cube_root(__u64 value);

/*@ assigns \nothing;
    ensures never_grows: \result <= window;
    ensures keeps_restart_window: \result >= \min(initial, window);
    ensures without_timeout_unchanged: rto_ns == 0 ==> \result == window; */
static inline __u64 window_after_idle(__u64 window, __u64 initial, __u64 idle_ns, __u64 rto_ns);

#endif
