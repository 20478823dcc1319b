/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The arithmetic of the eBPF programs as plain C, which the tests call. */
#include "abc.h"
#include "router.h"

#include <stddef.h>

size_t bl_abc_size(void)
{
	return sizeof(struct abc);
}

void bl_abc_init(struct abc *abc, __u32 mss, __u32 initial_bytes, __u64 now_ns)
{
	abc_init(abc, mss, initial_bytes, now_ns);
}

void bl_abc_on_ack(struct abc *abc, const struct ack *ack)
{
	abc_on_ack(abc, ack);
}

void bl_abc_on_loss(struct abc *abc)
{
	cubic_on_loss(&abc->second);
}

void bl_abc_on_timeout(struct abc *abc, __u32 repeated)
{
	cubic_on_timeout(&abc->second, repeated);
}

void bl_abc_on_spurious_loss(struct abc *abc)
{
	cubic_on_spurious_loss(&abc->second);
}

void bl_abc_on_recovery_exit(struct abc *abc)
{
	cubic_on_recovery_exit(&abc->second);
}

void bl_abc_on_idle_restart(struct abc *abc, __u64 idle_ns, __u64 rto_ns)
{
	abc_on_idle_restart(abc, idle_ns, rto_ns);
}

/* What a packet sent while nothing is in flight says to the second window. */
void bl_abc_pause(struct abc *abc, __u64 now_ns)
{
	cubic_pause(&abc->second, now_ns);
}

__u32 bl_abc_cwnd(const struct abc *abc)
{
	return abc_cwnd(abc);
}

__u32 bl_abc_w_abc(const struct abc *abc)
{
	return bytes_of(abc->w_abc);
}

__u32 bl_abc_w_nonabc(const struct abc *abc)
{
	return bytes_of(cubic_cwnd(&abc->second));
}

size_t bl_router_size(void)
{
	return sizeof(struct router);
}

/* Whether an accelerate (or a brake) that leaves now stays, or becomes, an accelerate. */
__u32 bl_router_depart(struct router *router, const struct router_settings *settings, __u64 now_ns, __u64 x_us, __u32 bytes,
		       __u32 accelerates)
{
	router_depart(router, settings, now_ns, x_us, bytes);
	return router_take_token(router, settings, accelerates);
}

__u64 bl_router_f(const struct router *router)
{
	return router->f;
}
