/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What waits behind a packet, where the queue belongs to somebody else and drops unseen: what has arrived
 * since that packet did.
 *
 * Bytes are summed as they arrive. Each slot of time keeps the sum that it began with and what has left of
 * it, so the sum at a packet's own arrival follows from the time on its stamp: the queue is a FIFO. Of what
 * was dropped, that from the packet's own slot on counts as waiting, until packets that came later leave; so
 * errors do not add up.
 */
#ifndef BRAKELIGHT_BACKLOG_H
#define BRAKELIGHT_BACKLOG_H

#include "fixed.h"

/* Places for slots: with slots of 262 us so many are 2.1 s. */
#define BACKLOG_SLOTS 8192
#define BACKLOG_UNKNOWN (~0ULL)

struct backlog_slot {
	/* bytes that had arrived before its first packet */
	__u64 before;
	/* bytes of it that have left */
	__u32 left;
	/* its number, by which a slot of long ago is known */
	__u32 number;
};

struct backlog {
	/* bytes that have arrived */
	__u64 bytes;
	struct backlog_slot slots[BACKLOG_SLOTS];
};

/* A packet of `bytes` arrives in the slot of that number. */
static __always_inline void backlog_arrive(struct backlog *b, __u32 number, __u32 bytes)
{
	struct backlog_slot *slot = &b->slots[number & (BACKLOG_SLOTS - 1)];

	if (slot->number != number || !b->bytes) {
		slot->before = b->bytes;
		slot->left = 0;
		slot->number = number;
	}
	b->bytes += bytes;
}

/* A packet that arrived in that slot leaves. Returns the bytes behind it; unknown where its slot is gone. */
static __always_inline __u64 backlog_depart(struct backlog *b, __u32 number, __u32 bytes)
{
	struct backlog_slot *slot = &b->slots[number & (BACKLOG_SLOTS - 1)];
	__u64 behind;

	if (slot->number != number)
		return BACKLOG_UNKNOWN;
	slot->left += bytes;
	behind = b->bytes - slot->before;
	return behind - min_u64(slot->left, behind);
}

#endif
