//! Counts of values in buckets that are equally fine relative to their values: HdrHistogram's with two
//! significant digits.
//!
//! ```text
//! octave(v)  = max(0, bits of v - 8)
//! index(v)   = 128 octave(v) + floor(v / 2^octave(v))
//! ```
//!
//! Below 256 every value has a bucket of its own. Above, an octave has 128 buckets, each of which spans at
//! most 1/128 of its values.

use std::ops::Range;

/// Buckets are added so many at a time: a quarter of an octave.
const BLOCK: usize = 32;

/// How often each bucket was hit. Its memory is that of the buckets between the least and the largest value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// The index of the first of `counts`; a multiple of [`BLOCK`].
    first: usize,
    counts: Vec<u32>,
}

#[inline]
fn index_of(value: u64) -> usize {
    let octave = 56 - (value | 0xff).leading_zeros();
    ((octave as usize) << 7) + (value >> octave) as usize
}

/// The values that the bucket at `index` counts.
fn values_of(index: usize) -> Range<u64> {
    let octave = (index >> 7).saturating_sub(1);
    let least = ((index - (octave << 7)) as u64) << octave;
    least..least + (1 << octave)
}

impl Histogram {
    /// Counts `value` once.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        self.add(index_of(value), 1);
    }

    /// Counts `value` so many times.
    pub(crate) fn record_many(&mut self, value: u64, times: u32) {
        self.add(index_of(value), times);
    }

    #[inline]
    fn add(&mut self, index: usize, times: u32) {
        match self.counts.get_mut(index.wrapping_sub(self.first)) {
            Some(count) => *count = count.saturating_add(times),
            None => self.add_beyond(index, times),
        }
    }

    /// Makes room for the bucket at `index`, and counts there.
    #[cold]
    fn add_beyond(&mut self, index: usize, times: u32) {
        let block = index / BLOCK * BLOCK;
        if self.counts.is_empty() {
            self.first = block;
        }
        if block < self.first {
            let missing = self.first - block;
            self.counts.splice(..0, std::iter::repeat_n(0, missing));
            self.first = block;
        } else {
            let end = self.counts.len().max(block + BLOCK - self.first);
            self.counts.reserve_exact(end - self.counts.len());
            self.counts.resize(end, 0);
        }
        self.counts[index - self.first] = times;
    }

    /// Counts everything that `other` counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (index, &times) in (other.first..).zip(&other.counts).filter(|&(_, &times)| times > 0) {
            self.add(index, times);
        }
    }

    /// Takes away everything that `other` counted, which has been counted here too.
    pub(crate) fn subtract(&mut self, other: &Histogram) {
        for (index, &times) in (other.first..).zip(&other.counts).filter(|&(_, &times)| times > 0) {
            if let Some(count) = self.counts.get_mut(index.wrapping_sub(self.first)) {
                *count = count.saturating_sub(times);
            }
        }
    }

    /// Forgets every value, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Returns the buckets that were hit, ascending: their values, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, u32)> + '_ {
        let hit = (self.first..).zip(&self.counts).filter(|&(_, &times)| times > 0);
        hit.map(|(index, &times)| (values_of(index), times))
    }
}

/// The value in the middle of a bucket, which stands for it.
pub(crate) fn middle(values: &Range<u64>) -> u64 {
    values.start + (values.end - values.start) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of all magnitudes.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((any::<u64>(), 16_u32..64).prop_map(|(bits, shift)| bits >> shift), 0..60)
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value in any::<u64>(), shift in 3_u32..64) {
            let value = value >> shift;
            let bucket = values_of(index_of(value));
            prop_assert!(bucket.contains(&value));
            prop_assert!(bucket.end - bucket.start <= (bucket.start / 128).max(1));
            prop_assert_eq!(index_of(bucket.end), index_of(value) + 1);
        }

        #[test]
        fn has_the_buckets_of_hdr_histogram(values in values()) {
            let mut theirs = hdrhistogram::Histogram::<u32>::new(2).unwrap();
            values.iter().for_each(|&value| theirs.record(value).unwrap());
            let expected: Vec<(u64, u64, u32)> = theirs.iter_recorded().map(|bucket| {
                let value = bucket.value_iterated_to();
                (value, theirs.median_equivalent(value), bucket.count_at_value())
            }).collect();
            let ours: Vec<(u64, u64, u32)> =
                of(&values).iter().map(|(values, times)| (values.end - 1, middle(&values), times)).collect();
            prop_assert_eq!(ours, expected);
        }

        #[test]
        fn two_merged_count_what_both_counted(first in values(), second in values()) {
            let mut merged = of(&first);
            merged.merge(&of(&second));
            let both = of(&[first, second].concat());
            prop_assert!(merged.iter().eq(both.iter()));
        }
    }
}
