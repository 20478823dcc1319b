// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What the module does to a packet, as plain C, which the tests call. */
#include "capacity.h"
#include "marking.h"

#include <stddef.h>

size_t bl_module_router_size(void)
{
	return sizeof(struct router);
}

/* The ECN field that a packet leaves with. */
__u32 bl_module_leave(struct router *router, const struct router_settings *settings, __u32 proxied, __u32 sojourn,
		      const struct departure *departure)
{
	return abc_leave(router, settings, proxied, sojourn, departure) == ABC_LEAVES_TURNED ? abc_turned_ecn(proxied) :
											       departure->ecn;
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
