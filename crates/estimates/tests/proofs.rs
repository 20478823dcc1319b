//! Properties of the filters and estimators, each shown for every input of a stated domain, or after one step
//! from every state, which shows it after any number of steps. `BRAKELIGHT_PROOFS` takes the whole domains,
//! which takes minutes; without it a part of the larger ones is looked at.

use brakelight_core::ecn::Ecn;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_estimates::adpm::{Estimate, Layout};
use brakelight_estimates::load_factor::Levels;
use brakelight_estimates::sliding_min::SlidingMin;
use brakelight_estimates::sliding_rate::SlidingRate;

/// bmcc table I.
const LEVELS: [Levels; 3] = [
    Levels { eta_0: 0.15, eta: 0.75, u: 1.2 },
    Levels { eta_0: 0.001, eta: 0.99, u: 1.01 },
    Levels { eta_0: 0.5, eta: 0.5625, u: 4.0 },
];

fn layout(bits: u32) -> Layout {
    Layout { eta_0: 0.15, eta: 0.75, u: 1.2, bits }
}

fn is_full() -> bool {
    std::env::var_os("BRAKELIGHT_PROOFS").is_some()
}

/// What is printed of a property that holds.
fn verdict() -> &'static str {
    if is_full() { "proved" } else { "holds in part of the domain" }
}

fn stride(step: usize) -> usize {
    if is_full() { 1 } else { step }
}

#[test]
fn a_load_code_says_on_which_side_the_load_lies() {
    for levels in LEVELS {
        let mut before = 0;
        // Positive numbers are in the order of their bits, up to infinity.
        for bits in (0..=f32::INFINITY.to_bits()).step_by(stride(509)) {
            let f = f64::from(f32::from_bits(bits));
            let code = levels.encode(f);
            assert!(code >= before && code <= Levels::TOP, "{f}");
            before = code;
            let stands_for = levels.decode(code);
            match code {
                0..Levels::MEDIUM => assert!(f < levels.eta && stands_for >= f * (1.0 - 1e-12), "{f}"),
                Levels::MEDIUM..Levels::OVERLOAD => {
                    assert!(f >= levels.eta && f < 1.0);
                    assert!((stands_for - f).abs() <= (1.0 - levels.eta) / 4.0 + 1e-12, "{f}");
                }
                _ => assert!(f >= 1.0 && stands_for <= f * (1.0 + 1e-12), "{f}"),
            }
        }
        for bits in (0x7f80_0001..=u32::MAX).step_by(stride(509)) {
            assert!(levels.encode(f64::from(f32::from_bits(bits))) <= Levels::TOP);
        }
        for code in 0..=u8::MAX {
            let f = levels.decode(code);
            assert!((levels.eta_0..=levels.u).contains(&f), "{code}");
            assert!(code == 0 || f >= levels.decode(code - 1), "{code}");
        }
    }
    let verdict = verdict();
    let bounds = "every f32 as a load, NaN included, and three sets of levels";
    for property in [
        "a code from 0 to 15",
        "the code never falls where the load rises",
        "low codes stand for no less than the load",
        "medium codes stand for the load to a quarter of the band",
        "overload is told exactly from 1 on, and codes stand for no more than it",
    ] {
        eprintln!("estimates/src/load_factor.rs | Levels::encode | {property} | {bounds} | {verdict}");
    }
    eprintln!(
        "estimates/src/load_factor.rs | Levels::decode | from eta_0 to u, and rises with the code | every u8 | {verdict}"
    );
}

#[test]
fn hashes_of_packets_are_even_and_in_order() {
    for bits in 1..=16 {
        let layout = layout(bits);
        let mut counts = vec![0_u32; 1 << bits];
        for hash16 in 0..=u16::MAX {
            let (rank, h) = (layout.rank(hash16), layout.hash(hash16));
            counts[usize::from(rank)] += 1;
            assert!((layout.eta_0..layout.u).contains(&h), "{hash16}");
            // Any 2^bits packets in a row take each place once.
            let next = layout.rank(hash16.wrapping_add(1 << bits.min(15)));
            assert!(bits == 16 || next == rank, "{hash16}");
        }
        assert!(counts.iter().all(|count| *count == 1 << (16 - bits)));
        // By rank, with what has this rank.
        let mut hashes = vec![0.0; 1 << bits];
        for hash16 in 0..=u16::MAX {
            hashes[usize::from(layout.rank(hash16))] = layout.hash(hash16);
        }
        assert!(hashes.is_sorted_by(|low, high| low < high), "{bits}");
        for (rank, h) in hashes.iter().enumerate() {
            assert_eq!(layout.count_below(*h) as usize, rank);
            assert_eq!(layout.count_below(h.next_up()) as usize, rank + 1);
        }
        assert_eq!(layout.count_below(f64::MAX), 1 << bits);
    }
    let verdict = verdict();
    let bounds = "every 16 bits of a packet, every number of bits";
    for (function, property) in [
        ("Layout::hash", "from eta_0 to below u, and rises with the rank"),
        ("Layout::rank", "every place is taken by as many packets, and by one of 2^bits in a row"),
        ("Layout::count_below", "exact at every hash value, and just above it"),
    ] {
        eprintln!("estimates/src/adpm.rs | {function} | {property} | {bounds} | {verdict}");
    }
}

#[test]
fn an_estimate_in_16_bits_is_never_below_itself() {
    let layout = layout(16);
    for option in 0..=u16::MAX {
        assert_eq!(layout.to_option(layout.from_option(option)), option);
    }
    let (low, high) = (0.0_f32, layout.u as f32);
    for bits in (low.to_bits()..high.to_bits()).step_by(stride(251)) {
        let estimate = f64::from(f32::from_bits(bits));
        let read = layout.from_option(layout.to_option(estimate));
        assert!(read >= estimate - 1e-9 && read <= estimate + layout.u / 65_535.0, "{estimate}");
        assert!(estimate < 1.0 || read >= 1.0, "{estimate}");
    }
    let verdict = verdict();
    eprintln!(
        "estimates/src/adpm.rs | Layout::from_option | what was read is written alike | every u16 | {verdict}"
    );
    let bounds = "every f32 from 0 to u";
    eprintln!(
        "estimates/src/adpm.rs | Layout::to_option | rounds up, by one unit at the most | {bounds} | {verdict}"
    );
    eprintln!(
        "estimates/src/adpm.rs | Layout::to_option | an overload is read as one | {bounds} | {verdict}"
    );
}

/// bmcc II-A and II-B: 2^bits packets in a row, from any first one and after any estimate, leave the estimate
/// at a hash value that no other lies between it and the load.
#[test]
fn a_row_of_packets_brackets_the_load() {
    let bits = if is_full() { 9 } else { 6 };
    let layout = layout(bits);
    let mut hashes: Vec<f64> = (0..1 << bits).map(|n: u16| layout.hash(n)).collect();
    hashes.sort_by(f64::total_cmp);
    for (place, low) in hashes.iter().enumerate() {
        // A load above this hash value and at or below the next.
        let high = hashes.get(place + 1).copied().unwrap_or(layout.u);
        let f = (low + high) / 2.0;
        for start in 0..1_u16 << bits {
            for first in [Ecn::Ce, Ecn::NotEct] {
                let mut estimate = Estimate::new(layout);
                estimate.on_packet(first, 0, true);
                for n in 0..1_u16 << bits {
                    let hash16 = start.wrapping_add(n);
                    let marked = if f > layout.hash(hash16) { Ecn::Ect1 } else { Ecn::Ect0 };
                    estimate.on_packet(marked, hash16, true);
                }
                let value = estimate.value();
                let brackets =
                    value == *low || value == high || first == Ecn::Ce && place + 1 == hashes.len();
                assert!(brackets, "{f} from {start}: {value} is not {low} or {high}");
            }
        }
    }
    let verdict = verdict();
    let bounds = format!("{bits} bits, every load between hash values, every first packet");
    eprintln!(
        "estimates/src/adpm.rs | Estimate::on_packet | a row of 2^bits packets brackets the load | {bounds} | {verdict}"
    );
}

/// Every sequence of samples, against the samples of the window themselves.
#[test]
fn a_sliding_minimum_and_a_sliding_rate_are_exact() {
    let length = if is_full() { 7 } else { 5 };
    let window = 3;
    let span = Duration::from_nanos(window);
    for sequence in 0..16_u64.pow(length) {
        let (mut least, mut rate) = (SlidingMin::default(), SlidingRate::new(span));
        let (mut now, mut code, mut samples) = (100, sequence, Vec::new());
        for _ in 0..length {
            now += code % 4;
            let value = code / 4 % 4;
            code /= 16;
            samples.push((now, value));
            let within = || samples.iter().filter(|(at, _)| now - at < window).map(|(_, value)| *value);
            let at = Time::from_nanos(now);
            assert_eq!(least.update(span, at, value), within().min().unwrap(), "{sequence}");
            rate.add(at, Bytes(value));
            assert_eq!(rate.bytes(at).0, within().sum::<u64>(), "{sequence}");
        }
    }
    let verdict = verdict();
    let bounds = format!("every {length} samples of four values, up to 3 ns apart, windows of 3 ns");
    eprintln!(
        "estimates/src/sliding_min.rs | SlidingMin::update | the minimum of the window | {bounds} | {verdict}"
    );
    eprintln!(
        "estimates/src/sliding_rate.rs | SlidingRate::bytes | the sum of the window | {bounds} | {verdict}"
    );
}
