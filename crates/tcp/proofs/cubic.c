/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/cubic.h: the curve, its K, and a window that stays within its bounds. */
#include "arithmetic.h"
#include "cubic.h"

#include "fixed.acsl.h"

#include "cubic.acsl.h"
