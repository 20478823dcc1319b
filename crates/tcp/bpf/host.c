/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The arithmetic of the eBPF programs as plain C, which the tests call. */
#include "abc.h"
#include "adaptive.h"
#include "l4s.h"
#include "backlog.h"
#include "prr.h"
#include "router.h"
#include "wdc.h"

#include <stddef.h>

size_t bl_abc_size(void)
{
	return sizeof(struct abc);
}

void bl_abc_init(struct abc *abc, __u32 mss, __u32 initial_bytes, __u64 now_ns, __u32 as_linux)
{
	abc_init(abc, mss, initial_bytes, now_ns, as_linux);
}

void bl_abc_on_ack(struct abc *abc, struct ack *ack)
{
	abc_on_ack(abc, ack);
}

void bl_abc_on_loss(struct abc *abc)
{
	cubic_on_loss(&abc->second);
}

void bl_abc_on_timeout(struct abc *abc, __u64 now_ns, __u32 repeated)
{
	cubic_on_timeout(&abc->second, now_ns, repeated);
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

size_t bl_adaptive_size(void)
{
	return sizeof(struct adaptive);
}

static void advance(struct adaptive *adaptive, __u64 now_ns, __u64 mu)
{
	if (adaptive_take(adaptive, now_ns, mu)) {
		adaptive_close(adaptive);
		adaptive_give(adaptive);
	}
}

void bl_adaptive_arrive(struct adaptive *adaptive, __u64 now_ns, __u64 mu, __u32 bytes)
{
	advance(adaptive, now_ns, mu);
	adaptive_arrive(adaptive, bytes);
}

/*
 * Whether a packet leaves as accelerate that came as brake (kind 0), accelerate (1) or neither (2). `ordered`
 * says whether it is counted as ordered; 2: if it leaves as accelerate.
 */
__u32 bl_adaptive_depart(struct router *router, struct adaptive *adaptive, const struct router_settings *settings,
			 __u64 now_ns, __u64 waiting, __u32 bytes, __u32 kind, __u32 ordered)
{
	bool kept;

	advance(adaptive, now_ns, settings->mu);
	adaptive_depart(router, adaptive, settings, now_ns, waiting, bytes);
	kept = kind < 2 && router_take_token(router, settings, kind && adaptive_has_room(adaptive, settings->buffer, bytes));
	if (ordered == 2 ? kept : ordered)
		adaptive_order(adaptive, bytes);
	return kept;
}

__u64 bl_adaptive_loop_delay_us(const struct adaptive *adaptive)
{
	return adaptive_loop_delay_us(adaptive);
}

__u64 bl_adaptive_error(const struct adaptive *adaptive)
{
	return adaptive_error_bytes(adaptive);
}

/* mu in bytes per second, and m and w in bytes. */
void bl_adaptive_show(const struct adaptive *adaptive, __u64 shown[3])
{
	shown[0] = (adaptive->mu * BINS_PER_S) >> AMOUNT_BITS;
	shown[1] = adaptive->outstanding >> AMOUNT_BITS;
	shown[2] = adaptive->to_wait >> AMOUNT_BITS;
}

size_t bl_l4s_size(void)
{
	return sizeof(struct l4s);
}

static void l4s_advance(struct l4s *l4s, __u64 now_ns, __u64 mu)
{
	if (l4s_take(l4s, now_ns, mu)) {
		l4s_close(l4s);
		l4s_give(l4s);
	}
}

void bl_l4s_arrive(struct l4s *l4s, __u64 now_ns, __u64 mu)
{
	l4s_advance(l4s, now_ns, mu);
}

/* Whether a packet of ECT(1) leaves with CE. */
__u32 bl_l4s_depart(struct l4s *l4s, __u64 now_ns, __u64 mu, __u64 arrived_ns, __u64 waiting)
{
	l4s_advance(l4s, now_ns, mu);
	l4s_serve(l4s, now_ns);
	return l4s_marks(l4s, arrived_ns, waiting, 0);
}

/* mu in bytes per second, e and Q* in bytes. */
void bl_l4s_show(const struct l4s *l4s, __u64 shown[3])
{
	shown[0] = (l4s->mu * L4S_BINS_PER_S) >> L4S_AMOUNT_BITS;
	shown[1] = l4s_error_bytes(l4s);
	shown[2] = l4s_may_wait(l4s, 0);
}

size_t bl_backlog_size(void)
{
	return sizeof(struct backlog);
}

void bl_backlog_arrive(struct backlog *backlog, __u32 slot, __u32 bytes)
{
	backlog_arrive(backlog, slot, bytes);
}

__u64 bl_backlog_depart(struct backlog *backlog, __u32 slot, __u32 bytes)
{
	return backlog_depart(backlog, slot, bytes);
}

size_t bl_wdc_size(void)
{
	return sizeof(struct wdc);
}

void bl_wdc_init(struct wdc *wdc, __u32 mss, __u64 initial_bytes, __u64 now_us)
{
	wdc_init(wdc, mss, initial_bytes, now_us);
}

void bl_wdc_on_ack(struct wdc *wdc, const struct wdc_ack *ack, const struct wdc_settings *settings)
{
	wdc_on_ack(wdc, ack, settings);
}

void bl_wdc_on_loss(struct wdc *wdc, __u64 now_us, __u64 sent_us)
{
	wdc_note_loss(wdc);
	wdc_on_episode(wdc, now_us, sent_us);
}

void bl_wdc_on_timeout(struct wdc *wdc, __u64 now_us, __u32 repeated)
{
	wdc_on_timeout(wdc, now_us, repeated);
}

void bl_wdc_on_spurious_loss(struct wdc *wdc)
{
	westwood_on_spurious_loss(&wdc->westwood);
}

void bl_wdc_on_recovery_exit(struct wdc *wdc)
{
	westwood_on_recovery_exit(&wdc->westwood);
}

void bl_wdc_on_idle_restart(struct wdc *wdc, __u64 now_us, __u64 idle_us, __u64 rto_us)
{
	westwood_on_idle_restart(&wdc->westwood, now_us, wdc->initial, idle_us, rto_us);
}

__u64 bl_wdc_cwnd(const struct wdc *wdc)
{
	return wdc->westwood.cwnd;
}

__u32 bl_wdc_queueing_us(const struct wdc *wdc)
{
	return wdc->queueing_us;
}

__u32 bl_wdc_delay_events(const struct wdc *wdc)
{
	return wdc->delay_events;
}

/* Whether the receiver's clock can be read by this timestamp, and what it says. */
__u32 bl_peer_clock_read(struct peer_clock *clock, __u32 timestamp, __u64 now_us, __u32 tick_us, __s64 *received_us)
{
	bool good = peer_clock_read(clock, timestamp, now_us, tick_us);

	*received_us = clock->received_us;
	return good;
}

void bl_prr_begin(struct prr *prr, __u32 prior)
{
	prr_begin(prr, prior);
}

__u32 bl_prr_window(struct prr *prr, __u32 newly, __u32 out, __u32 pipe, __u32 target, __u32 safe)
{
	return prr_window(prr, newly, out, pipe, target, safe);
}
