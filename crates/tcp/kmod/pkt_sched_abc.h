/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a program and the qdisc `abc` say to each other, in rtnetlink's TCA_OPTIONS and TCA_XSTATS. */
#ifndef PKT_SCHED_ABC_H
#define PKT_SCHED_ABC_H

#include <linux/types.h>

/*
 * Attributes in TCA_OPTIONS, which must carry NLA_F_NESTED. One left out keeps its value, or gets the
 * default.
 */
enum {
	TCA_ABC_UNSPEC,
	TCA_ABC_PAD,
	/* u64, bytes per second: mu. 0: measured. 1000 to 2^36. */
	TCA_ABC_RATE64,
	/* u8: 1, the qdisc shapes to that rate; 0, its parent or its device does. Without a rate it is 0. */
	TCA_ABC_SHAPE,
	/* u32, packets; 0: no such limit */
	TCA_ABC_LIMIT,
	/* u32, bytes; 0: no such limit. One of the two there must be. */
	TCA_ABC_LIMIT_BYTES,
	/* u32, microseconds: d_t, at most 100 s; of ABC_PAPER alone */
	TCA_ABC_TARGET,
	/* u32, microseconds: delta, 1 to 100 s; of ABC_PAPER alone */
	TCA_ABC_DELTA,
	/* u32, microseconds: T, 1 ms to 10 s */
	TCA_ABC_WINDOW,
	/*
	 * u32, 2^-20: eta, 0.1 to 1. The default is the variant's, and another variant brings its own. Refused
	 * with ABC_L4S.
	 */
	TCA_ABC_ETA,
	/* u32, 2^-20 tokens: tokenLimit, above 1; refused with ABC_L4S */
	TCA_ABC_TOKEN_LIMIT,
	/* u8, enum abc_encoding; refused with ABC_L4S */
	TCA_ABC_ENCODING,
	/* u8, enum abc_delay; of ABC_PAPER alone */
	TCA_ABC_DELAY,
	/* u8, enum abc_variant */
	TCA_ABC_VARIANT,

	__TCA_ABC_MAX
};

#define TCA_ABC_MAX (__TCA_ABC_MAX - 1)

enum abc_encoding {
	/* 01 accelerate, 10 brake, 11 congestion */
	ABC_LEGACY,
	/* 01 and 10 accelerate, 11 brake */
	ABC_PROXIED,
};

/* What x is read from. */
enum abc_delay {
	/* the bytes that wait, over mu */
	ABC_BACKLOG,
	/* the time that the packet which leaves has waited */
	ABC_SOJOURN,
};

/* The rule by which packets are marked. */
enum abc_variant {
	/* the paper's, by target and delta; eta is 0.98 */
	ABC_PAPER,
	/* the one that measures its link and its loop; eta is 1 */
	ABC_ADAPTIVE,
	/* CE for senders of L4S, by the link's rate */
	ABC_L4S,
};

/* TCA_XSTATS. Fields may be added at the end. */
struct tc_abc_xstats {
	/* packets that left as accelerate; with ABC_L4S as ECT(1) */
	__u64 accelerates;
	/* that came as accelerate and left as brake; with ABC_L4S as CE */
	__u64 turned;
	/* that came as brake already */
	__u64 brakes;
	/* that came as CE, where CE is no brake */
	__u64 ce;
	/* Not-ECT, and what is not IP; with ABC_L4S ECT(0), too */
	__u64 others;
	/* that should have been turned, when there was no memory to write it */
	__u64 unwritten;
	/* sum of f over accelerates and brakes, 2^-20 */
	__u64 shares;
	/* time in the queue, of all packets, microseconds */
	__u64 sojourn_sum_us;
	/* mu, bytes per second; 0: not known yet */
	__u64 capacity;
	/* cr at the last packet, bytes per second */
	__u64 measured;
	/* f at the last packet, 2^-20 */
	__u32 share;
	/* tokens, 2^-20 */
	__u32 tokens;
	/* the last packet's time in the queue, and the longest */
	__u32 sojourn_us;
	__u32 sojourn_max_us;
	/* with ABC_ADAPTIVE: tau, the loop's delay as it is estimated; 0 before the first packet */
	__u32 loop_delay_us;
	/* the mean error of the forecast of mu, in bytes; with ABC_ADAPTIVE over one tau, with ABC_L4S over 40 ms */
	__u32 forecast_error;
};

#endif
