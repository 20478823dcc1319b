use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

/// The counters beside exact counts of everything.
struct Both {
    summary: SpaceSaving,
    exact: BTreeMap<u32, f64>,
    total: f64,
}

impl Both {
    fn new(counters: usize) -> Self {
        Both { summary: SpaceSaving::new(counters), exact: BTreeMap::new(), total: 0.0 }
    }

    fn add(&mut self, key: u32, weight: f64) {
        self.summary.add(key, weight);
        *self.exact.entry(key).or_insert(0.0) += weight;
        self.total += weight;
    }

    fn scale(&mut self, factor: f64) {
        self.summary.scale(factor);
        self.exact.values_mut().for_each(|weight| *weight *= factor);
        self.total *= factor;
    }

    fn check(&self) {
        let Both { summary, exact, total } = self;
        // Sums in another order differ in their last digits.
        let slack = 1e-9 * total.max(1.0);
        assert!(summary.counters().len() <= summary.most);
        for counter in summary.counters() {
            let weight = exact[&counter.key];
            assert!(
                counter.certain() <= weight + slack && weight <= counter.count + slack,
                "{counter:?} {weight}"
            );
            assert!(counter.error <= total / summary.most as f64 + slack, "{counter:?} of {total}");
            assert_eq!(summary.get(counter.key), Some(*counter));
        }
        for (key, weight) in exact {
            let heavy = *weight > total / summary.most as f64 + slack;
            assert!(!heavy || summary.get(*key).is_some(), "{key} weighs {weight} of {total}");
        }
        let smallest = summary.counters().iter().map(|counter| counter.count).fold(f64::INFINITY, f64::min);
        assert!(summary.heap.is_empty() || summary.count_at(0) == smallest);
        let in_table = summary.table.iter().filter(|slot| **slot != FREE).count();
        assert_eq!(in_table, summary.counters().len());
    }
}

proptest! {
    /// The theorems, on streams in which a few keys weigh much and many little.
    #[test]
    fn bounds_hold_on_any_stream(
        counters in 1_usize..20,
        stream in prop::collection::vec((prop_oneof![0_u32..4, 0_u32..1000], 1_u32..1501, prop::bool::weighted(0.01)), 1..800),
    ) {
        let mut both = Both::new(counters);
        for (key, weight, ages) in stream {
            if ages {
                both.scale(0.75);
            }
            both.add(key.wrapping_mul(0x9e37_79b1), f64::from(weight));
        }
        both.check();
    }
}

#[test]
fn a_newcomer_inherits_the_smallest_count_as_its_error() {
    let mut summary = SpaceSaving::new(2);
    for (key, weight) in [(7, 10.0), (8, 4.0), (9, 3.0)] {
        summary.add(key, weight);
    }
    assert_eq!(summary.get(7), Some(Counter { key: 7, count: 10.0, error: 0.0 }));
    assert_eq!(summary.get(8), None);
    assert_eq!(summary.get(9), Some(Counter { key: 9, count: 7.0, error: 4.0 }));
    summary.scale(0.5);
    assert_eq!(summary.get(9).unwrap().certain(), 1.5);
}

/// ABC-U11.
#[test]
fn a_million_keys_take_no_more_memory_than_the_counters() {
    let mut both = Both::new(64);
    let reserved = |summary: &SpaceSaving| {
        [
            summary.counters.capacity(),
            summary.heap.capacity(),
            summary.places.capacity(),
            summary.table.capacity(),
        ]
    };
    let before = reserved(&both.summary);
    for index in 0..200_000_u32 {
        both.add(index, 10.0);
        both.add(1_000_000 + index % 5, 100.0);
    }
    assert_eq!(reserved(&both.summary), before);
    both.check();
    let mut heaviest: Vec<_> = both.summary.counters().to_vec();
    heaviest.sort_by(|one, other| other.certain().total_cmp(&one.certain()));
    let mut keys: Vec<_> = heaviest[..5].iter().map(|counter| counter.key).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1_000_000, 1_000_001, 1_000_002, 1_000_003, 1_000_004]);
    assert!(heaviest[..5].iter().all(|counter| counter.error == 0.0));
}
