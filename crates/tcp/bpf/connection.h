/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is kept for each connection, in maps that outlive one program: the controller writes them, the stamp
 * and the option read them, `watch` lists them.
 */
#ifndef BRAKELIGHT_CONNECTION_H
#define BRAKELIGHT_CONNECTION_H

#include "abc.h"
#include "prr.h"
#include "wdc.h"

/* Where a controller hears of the path: counts of marks, or the peer's clock. */
enum feedback {
	FEEDBACK_NONE = 0,
	FEEDBACK_ACCECN = 1,
	FEEDBACK_OPTION = 2,
	FEEDBACK_TIMESTAMPS = 3,
};

enum controller {
	CONTROLLER_ABC = 0,
	CONTROLLER_WDC = 1,
};

/* ECT(1), ECT(0), CE: the order of tcp_sock.delivered_ecn_bytes. */
enum { ACCELERATE = 0, BRAKE = 1, CE_MARK = 2, KINDS = 3 };

struct connection {
	union {
		struct abc abc;
		struct wdc wdc;
	};
	struct peer_clock clock;
	struct prr prr;
	__u32 controller;
	/* Whether the ACK before covered a single packet. */
	__u32 acked_single;
	/* Whether the start of the episode reduced the window. */
	__u32 reduced;
	__u32 unused;
	/* Counters as of the last ACK. */
	__u32 seen[KINDS];
	__u32 feedback;
	/* All bytes of each kind so far, payload, signed corrections worked in. */
	__u64 marked[KINDS];
	__u64 acked_bytes;
	__u64 last_ack_ns;
	__u32 srtt_us;
	__u32 min_rtt_us;
	__u32 losses;
	__u32 timeouts;
	__u32 ce_episodes;
	__u32 state;
};

/* What the experimental option carried, and what is to be put into it. */
struct reported {
	/* by the peer: bytes it received */
	__u32 by_peer[KINDS];
	/* to the peer: bytes received here */
	__u32 received[KINDS];
	/* Whether the peer speaks the option. */
	__u32 peer_speaks;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} bl_connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct reported);
} bl_reported SEC(".maps");

#endif
