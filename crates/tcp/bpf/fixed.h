/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Fixed point for the BPF target, which has neither floats, nor signed division, nor 128-bit products, and
 * for a kernel module, which on 32 bits must ask for a division of 64.
 *
 *   window    bytes << WINDOW_BITS, at most WINDOW_MAX
 *   time      seconds << TIME_BITS
 */
#ifndef BRAKELIGHT_FIXED_H
#define BRAKELIGHT_FIXED_H

#if defined(__KERNEL__)
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/types.h>
#elif !defined(__bpf__)
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/*
 * A function that the BPF verifier checks once by itself, instead of once for every way to reach it. It must
 * not trust its pointers: EXISTS says so where they come from outside.
 */
#ifdef __bpf__
#define CHECKED_ALONE __attribute__((noinline)) __attribute__((weak))
#define EXISTS(pointer) (pointer)
#else
#define CHECKED_ALONE static inline
#define EXISTS(pointer) true
#endif

#define WINDOW_BITS 12
/* 512 MB: the largest window whose growth per ACK still fits into 64 bits. */
#define WINDOW_MAX ((1ULL << 29) << WINDOW_BITS)
#define WINDOW_NONE (~0ULL)
#define TIME_BITS 16

static __always_inline __u64 min_u64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 max_u64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Rounded to the nearest, so that a million small steps do not drift. */
static __always_inline __u64 divide(__u64 dividend, __u64 divisor)
{
#ifdef __KERNEL__
	return divisor ? div64_u64(dividend + divisor / 2, divisor) : 0;
#else
	return divisor ? (dividend + divisor / 2) / divisor : 0;
#endif
}

/* As `divide`, by a constant: a kernel on 32 bits multiplies instead. */
static __always_inline __u64 divide_small(__u64 dividend, __u32 divisor)
{
#ifdef __KERNEL__
	return div_u64(dividend + divisor / 2, divisor);
#else
	return (dividend + divisor / 2) / divisor;
#endif
}

/* Rounded down: numbers of bins. */
static __always_inline __u64 divide_down(__u64 dividend, __u64 divisor)
{
#ifdef __KERNEL__
	return divisor ? div64_u64(dividend, divisor) : 0;
#else
	return divisor ? dividend / divisor : 0;
#endif
}

static __always_inline __u64 window_of(__u64 bytes)
{
	return min_u64(bytes, WINDOW_MAX >> WINDOW_BITS) << WINDOW_BITS;
}

static __always_inline __u64 bytes_of(__u64 window)
{
	return window >> WINDOW_BITS;
}

/* Nanoseconds to time; good for 52 hours. */
static __always_inline __u64 time_of_ns(__u64 ns)
{
	/* 2^16 / 10^9 = 2^7 / 1953125 */
	return divide(ns << 7, 1953125);
}

/*
 * The integer cube root of what is below 2^62, bit by bit. Without a branch: the verifier would follow 2^21
 * ways.
 */
CHECKED_ALONE __u64 cube_root(__u64 value)
{
	__u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		__u64 next = root | (1ULL << bit);
		__u64 too_much = value - next * next * next;

		/* The compiler must not see that this is a comparison. */
		asm volatile("" : "+r"(too_much));
		root = next - ((too_much >> 63) << bit);
	}
	return root;
}

/* Half the window for every timeout that passed idle, but no less than the restart window; rfc2861 3. */
CHECKED_ALONE __u64 window_after_idle(__u64 window, __u64 initial, __u64 idle_ns, __u64 rto_ns)
{
	__u64 restart = min_u64(initial, window);

	if (!rto_ns)
		return window;
	/* 32 halvings leave nothing of any window. */
	/*@ loop invariant shrinks: window <= \at(window, Pre);
	    loop invariant within: 0 <= i <= 32;
	    loop assigns i, window, idle_ns;
	    loop variant 32 - i; */
	for (int i = 0; i < 32; i++) {
		if (idle_ns <= rto_ns || window <= restart)
			break;
		window /= 2;
		idle_ns -= rto_ns;
	}
	return max_u64(window, restart);
}

#endif
