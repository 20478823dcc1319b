// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What the module does to a packet, as plain C, which the tests call. */
#include "capacity.h"
#include "marking.h"

#include <stddef.h>

size_t bl_module_router_size(void)
{
	return sizeof(struct router);
}

size_t bl_module_adaptive_size(void)
{
	return sizeof(struct adaptive);
}

void bl_module_enter(struct adaptive *adaptive, __u64 mu, __u32 proxied, __u64 now_ns, __u32 bytes, __u32 ecn)
{
	abc_enter(adaptive, mu, proxied, now_ns, bytes, ecn);
}

/* The ECN field that a packet leaves with; by the adaptive rule if there is state for it. */
__u32 bl_module_leave(struct router *router, struct adaptive *adaptive, const struct router_settings *settings,
		      __u32 proxied, __u32 sojourn, const struct departure *departure)
{
	enum abc_mark mark = abc_leave(router, adaptive, settings, proxied, sojourn, departure);

	return mark == ABC_LEAVES_TURNED ? abc_turned_ecn(proxied) : departure->ecn;
}

size_t bl_module_l4s_size(void)
{
	return sizeof(struct l4s);
}

void bl_module_enter_l4s(struct l4s *l4s, __u64 mu, __u64 now_ns)
{
	abc_advance_l4s(l4s, now_ns, mu);
}

/* The ECN field that a packet leaves with by the law for L4S senders, on a link that adds no bytes. */
__u32 bl_module_leave_l4s(struct router *router, struct l4s *l4s, const struct router_settings *settings,
			  const struct departure *departure)
{
	enum abc_mark mark = abc_leave_l4s(router, l4s, settings, 0, departure);

	return mark == ABC_LEAVES_TURNED ? ABC_CE : departure->ecn;
}

__u64 bl_module_loop_delay_us(const struct adaptive *adaptive)
{
	return adaptive_loop_delay_us(adaptive);
}

__u64 bl_module_cr(const struct router *router)
{
	return router->cr;
}

size_t bl_module_capacity_size(void)
{
	return sizeof(struct capacity);
}

/* mu once the packet has left; 0 while it is unknown. */
__u64 bl_module_capacity_depart(struct capacity *capacity, __u64 now_ns, __u32 bytes, __u32 waits, __u64 window_ns,
				__u64 cr, __u64 eta)
{
	capacity_depart(capacity, now_ns, bytes, waits, window_ns, cr, eta);
	return capacity->mu;
}
