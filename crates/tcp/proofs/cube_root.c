/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The cube root of ../bpf/fixed.h, by enumeration. Each step compares the value with a number that only the
 * steps before determine. So values with the same root form an interval, and all between two values of the
 * same root have it too. Both ends of each of the 2^21 intervals are run here, from 0 to 2^62 - 1.
 */
#include "fixed.h"

#include <stdio.h>

#define ROOTS (1ULL << 21)
#define VALUES (1ULL << 62)

int main(void)
{
	__u64 wrong = 0, runs = 0;

	for (__u64 root = 0; root * root * root < VALUES && root < ROOTS; root++) {
		__u64 first = root * root * root;
		__u64 last = min_u64((root + 1) * (root + 1) * (root + 1), VALUES) - 1;

		wrong += (cube_root(first) != root) + (cube_root(last) != root);
		runs += 2;
	}
	if (wrong) {
		printf("wrong for %llu of %llu ends of intervals\n", (unsigned long long)wrong, (unsigned long long)runs);
		return 1;
	}
	printf("the largest integer whose cube is at most the value; %llu ends of intervals\n", (unsigned long long)runs);
	return 0;
}
