/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/fixed.h: fixed point that neither wraps nor divides by zero. */
#include "arithmetic.h"
#include "fixed.h"

#include "fixed.acsl.h"
