/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the contracts in this folder have in common. ACSL 1.17 2.2.4 gives a shift of a mathematical integer
 * as a product or quotient of a power of two; WP knows that for a shift by one, and the axioms here say it
 * for the shifts that the sources make, and that a mask of low bits is a remainder. The lemmas on quotients
 * are proved like all other properties.
 */
#ifndef BRAKELIGHT_PROOFS_ARITHMETIC_H
#define BRAKELIGHT_PROOFS_ARITHMETIC_H

/*
 * The sources hide a value from the optimizer with an empty `asm volatile`. It has no instruction, so it
 * changes nothing, and the verifier must not take it for an unknown one.
 */
#define asm
#define volatile(...)

#define U32 4294967295
#define U64 18446744073709551615
#define S63 9223372036854775807

/*@
  axiomatic Shifts {
    axiom shl4: \forall integer x; 0 <= x ==> (x << 4) == x * 16;
    axiom shl7: \forall integer x; 0 <= x ==> (x << 7) == x * 128;
    axiom shl8: \forall integer x; 0 <= x ==> (x << 8) == x * 256;
    axiom shl9: \forall integer x; 0 <= x ==> (x << 9) == x * 512;
    axiom shl12: \forall integer x; 0 <= x ==> (x << 12) == x * 4096;
    axiom shl20: \forall integer x; 0 <= x ==> (x << 20) == x * 1048576;
    axiom shl22: \forall integer x; 0 <= x ==> (x << 22) == x * 4194304;
    axiom shl24: \forall integer x; 0 <= x ==> (x << 24) == x * 16777216;
    axiom shr4: \forall integer x; 0 <= x ==> (x >> 4) == x / 16;
    axiom shr8: \forall integer x; 0 <= x ==> (x >> 8) == x / 256;
    axiom shr9: \forall integer x; 0 <= x ==> (x >> 9) == x / 512;
    axiom shr10: \forall integer x; 0 <= x ==> (x >> 10) == x / 1024;
    axiom shr12: \forall integer x; 0 <= x ==> (x >> 12) == x / 4096;
    axiom shr20: \forall integer x; 0 <= x ==> (x >> 20) == x / 1048576;
    axiom shr24: \forall integer x; 0 <= x ==> (x >> 24) == x / 16777216;
    axiom low13: \forall integer x; 0 <= x ==> (x & 8191) == x % 8192;
    axiom low24: \forall integer x; 0 <= x ==> (x & 16777215) == x % 16777216;
  }
  lemma quotient_at_most: \forall integer a, b, c; 0 <= a && 0 < b && 0 <= c && a < b * (c + 1) ==> a / b <= c;
  lemma product_is_monotone: \forall integer a, b, c, d; 0 <= a <= c && 0 <= b <= d ==> a * b <= c * d;
  lemma proportion_at_most_whole: \forall integer a, b, c; 0 <= a && 0 <= b <= c && 0 < c ==>
          (a * b + c - 1) / c <= a;
  lemma millionths_at_most_whole: \forall integer a, b; 0 <= a && 0 <= b <= 1000000 ==>
          (a * b + 999999) / 1000000 <= a;
*/

#endif
