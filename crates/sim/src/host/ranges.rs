//! A set of numbers kept as sorted ranges: what has been received, what has been acknowledged.

use std::collections::VecDeque;

/// Numbers from `start` up to but not including `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Range {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Range {
    pub(super) fn len(self) -> u32 {
        self.end - self.start
    }

    /// The part of this range that lies within `start..end`, if there is any.
    pub(super) fn intersect(self, start: u32, end: u32) -> Option<Range> {
        let common = Range { start: self.start.max(start), end: self.end.min(end) };
        (common.start < common.end).then_some(common)
    }
}

/// Sorted, disjoint, non-adjacent ranges. The usual change is at the upper end, the usual removal at the
/// lower.
#[derive(Clone, Debug, Default)]
pub(super) struct RangeSet {
    ranges: VecDeque<Range>,
    count: u32,
}

impl RangeSet {
    /// How many numbers are in the set.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ranges, ascending.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.ranges.iter().copied()
    }

    /// How many ranges there are.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The range that holds `number`.
    pub(super) fn find(&self, number: u32) -> Option<Range> {
        match self.ranges.back() {
            // The usual case: in the last range, or beyond everything.
            Some(last) if number >= last.start => (number < last.end).then_some(*last),
            _ => {
                let at = self.ranges.partition_point(|range| range.end <= number);
                self.ranges.get(at).copied().filter(|range| range.start <= number)
            }
        }
    }

    /// Adds `range` and calls `fresh` with each part of it that was not there, ascending.
    #[inline]
    pub(super) fn insert(&mut self, range: Range, mut fresh: impl FnMut(Range)) {
        if range.start >= range.end {
            return;
        }
        match self.ranges.back_mut() {
            // The usual cases: beyond everything, or extending the last range.
            None => {}
            Some(last) if range.start > last.end => {}
            Some(last) if range.start >= last.start => {
                if range.end > last.end {
                    fresh(Range { start: last.end, end: range.end });
                    self.count += range.end - last.end;
                    last.end = range.end;
                }
                return;
            }
            Some(_) => return self.insert_inside(range, fresh),
        }
        fresh(range);
        self.count += range.len();
        self.ranges.push_back(range);
    }

    fn insert_inside(&mut self, range: Range, mut fresh: impl FnMut(Range)) {
        // Everything in `first..past` overlaps `range` or touches it.
        let first = self.ranges.partition_point(|other| other.end < range.start);
        let mut past = first;
        let mut merged = range;
        let mut next = range.start;
        while let Some(&other) = self.ranges.get(past) {
            if other.start > range.end {
                break;
            }
            if other.start > next {
                fresh(Range { start: next, end: other.start });
                self.count += other.start - next;
            }
            next = next.max(other.end);
            merged = Range { start: merged.start.min(other.start), end: merged.end.max(other.end) };
            past += 1;
        }
        if next < range.end {
            fresh(Range { start: next, end: range.end });
            self.count += range.end - next;
        }
        if first == past {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            // An empty drain costs more than all else here, and most are.
            if first + 1 < past {
                self.ranges.drain(first + 1..past);
            }
        }
    }

    /// Removes every number below `limit`.
    #[inline]
    pub(super) fn remove_below(&mut self, limit: u32) {
        if !self.ranges.is_empty() {
            self.remove_some_below(limit);
        }
    }

    fn remove_some_below(&mut self, limit: u32) {
        while let Some(first) = self.ranges.front_mut() {
            if first.end <= limit {
                self.count -= first.len();
                self.ranges.pop_front();
            } else {
                if first.start < limit {
                    self.count -= limit - first.start;
                    first.start = limit;
                }
                return;
            }
        }
    }

    /// Removes the lowest range.
    pub(super) fn pop_front(&mut self) -> Option<Range> {
        let first = self.ranges.pop_front()?;
        self.count -= first.len();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(steps in proptest::collection::vec((0_u32..60, 1_u32..12, 0_u32..10), 1..60)) {
            let mut ranges = RangeSet::default();
            let mut model = BTreeSet::new();
            for (start, length, remove) in steps {
                let mut fresh = Vec::new();
                ranges.insert(Range { start, end: start + length }, |part| fresh.extend(part.start..part.end));
                let expected: Vec<u32> = (start..start + length).filter(|n| model.insert(*n)).collect();
                prop_assert_eq!(fresh, expected);
                if remove == 0 {
                    ranges.remove_below(start);
                    model.retain(|n| *n >= start);
                }
                let listed: Vec<u32> = ranges.iter().flat_map(|range| range.start..range.end).collect();
                prop_assert_eq!(&listed, &model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.count() as usize, model.len());
                let pairs: Vec<Range> = ranges.iter().collect();
                prop_assert!(pairs.windows(2).all(|pair| pair[0].end < pair[1].start));
                for probe in 0..72 {
                    prop_assert_eq!(ranges.find(probe).is_some(), model.contains(&probe));
                }
            }
        }
    }

    /// The ranges of a set of numbers below `most`, which has a bit for each.
    fn ranges_of(set: u32, most: u32) -> RangeSet {
        let mut ranges = RangeSet::default();
        for number in (0..most).filter(|number| set >> number & 1 != 0) {
            match ranges.ranges.back_mut() {
                Some(last) if last.end == number => last.end += 1,
                _ => ranges.ranges.push_back(Range { start: number, end: number + 1 }),
            }
            ranges.count += 1;
        }
        ranges
    }

    /// Every change of every set of the numbers below a limit: the outcome is again the ranges of a set, so
    /// that what holds here holds after any number of changes.
    #[test]
    fn every_change_of_every_set_is_that_of_a_set() {
        let most = if std::env::var_os("BRAKELIGHT_PROOFS").is_some() { 14 } else { 9 };
        let below = |limit: u32| (1_u32 << limit) - 1;
        for set in 0..1_u32 << most {
            let ranges = ranges_of(set, most);
            let is = |changed: &RangeSet, expected: u32| {
                let canonical = ranges_of(expected, most);
                assert_eq!(changed.ranges, canonical.ranges, "{set:b} to {expected:b}");
                assert_eq!(changed.count(), expected.count_ones(), "{set:b} to {expected:b}");
            };
            for start in 0..=most {
                assert_eq!(ranges.find(start).is_some(), set >> start & 1 != 0, "{set:b}, {start}");
                for end in 0..=most {
                    let range = Range { start, end };
                    let added = below(end) & !below(start);
                    let (mut changed, mut fresh) = (ranges.clone(), Vec::new());
                    changed.insert(range, |part| fresh.push(part));
                    is(&changed, set | added);
                    assert_eq!(fresh, Vec::from(ranges_of(added & !set, most).ranges), "{set:b}, {range:?}");
                }
                let mut changed = ranges.clone();
                changed.remove_below(start);
                is(&changed, set & !below(start));
            }
            let mut changed = ranges.clone();
            let first = changed.pop_front();
            assert_eq!(first.is_some(), set != 0);
            is(&changed, first.map_or(0, |first| set & !below(first.end)));
        }
        let verdict = if std::env::var_os("BRAKELIGHT_PROOFS").is_some() {
            "proved"
        } else {
            "holds in part of the domain"
        };
        let bounds = format!("every set of numbers below {most}, and every range");
        for (function, property) in [
            ("insert", "the union, in sorted ranges that do not touch"),
            ("insert", "tells what was not there, ascending"),
            ("find", "exactly the numbers of the set"),
            ("remove_below, pop_front", "the rest, in sorted ranges that do not touch"),
            ("count", "how many numbers there are"),
        ] {
            eprintln!("sim/src/host/ranges.rs | RangeSet::{function} | {property} | {bounds} | {verdict}");
        }
    }
}
