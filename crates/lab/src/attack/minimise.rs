//! The simplest link that still does most of the damage: a greedy descent. Of all links that are one change
//! simpler, the simplest one that keeps enough damage takes the place of the link, until none is left.

use brakelight_core::time::Duration;

use super::Evaluate;
use super::bounds::Bounds;
use super::space::{Link, PACKET_BITS};
use crate::error::Error;

/// What must stay of the damage; of a ratio, of its logarithm.
pub(super) const KEEP: f64 = 0.8;

/// Returns the simplest link found from `link` on with a damage of at least `enough`, with its damage.
/// `evaluate` says what each of some links does; it is asked about `most` links at most.
pub(super) fn minimise(
    link: Link,
    damage: f64,
    enough: f64,
    bounds: &Bounds,
    most: usize,
    evaluate: &mut Evaluate<'_, Link>,
) -> Result<(Link, f64), Error> {
    let (mut link, mut damage, mut left) = (link, damage, most);
    loop {
        let mut simpler = changes(&link, bounds);
        simpler.retain(|other| other.complexity() < link.complexity());
        simpler.sort_by_key(Link::complexity);
        simpler.dedup();
        let next = simpler.chunks(AT_ONCE).find_map(|some| {
            let some = &some[..some.len().min(left)];
            if some.is_empty() {
                return None;
            }
            left -= some.len();
            match evaluate(some) {
                Err(error) => Some(Err(error)),
                Ok(found) => {
                    let kept = some.iter().zip(found).find(|(_, damage)| *damage >= enough);
                    kept.map(|(link, damage)| Ok((link.clone(), damage)))
                }
            }
        });
        match next.transpose()? {
            Some((simpler, kept)) => (link, damage) = (simpler, kept),
            None => return Ok((link, damage)),
        }
    }
}

/// Links evaluated together, whatever the number of processors.
const AT_ONCE: usize = 16;

/// Links that differ from `link` in one way; some are simpler.
fn changes(link: &Link, bounds: &Bounds) -> Vec<Link> {
    let mut made = Vec::new();
    let mut add = |change: &dyn Fn(&mut Link)| {
        let mut other = link.clone();
        change(&mut other);
        tidy(&mut other);
        made.push(other);
    };
    for place in 0..link.cross.len() {
        add(&|link| {
            link.cross.remove(place);
        });
        add(&|link| link.cross[place].start_ms = 0);
        for digits in [1, 2] {
            add(&|link| {
                let cross = &mut link.cross[place];
                for value in [&mut cross.start_ms, &mut cross.on_ms, &mut cross.off_ms, &mut cross.kbps] {
                    *value = rounded(*value, digits);
                }
            });
            add(&|link| link.cross[place].on_ms = rounded(link.cross[place].on_ms, digits));
            add(&|link| link.cross[place].off_ms = rounded(link.cross[place].off_ms, digits));
            add(&|link| link.cross[place].kbps = rounded(link.cross[place].kbps, digits));
        }
    }
    add(&|link| link.loss_per_million = 0);
    add(&|link| link.loss_per_million = rounded(link.loss_per_million, 1));
    add(&|link| link.beat_ms = 0);
    add(&|link| link.delays_ms.clear());
    let longest = link.delays_ms.iter().copied().max().unwrap_or(0);
    for digits in [1, 2] {
        add(&|link| link.hold_ms = rounded(link.hold_ms, digits));
        add(&|link| link.beat_ms = rounded(link.beat_ms, digits));
        add(&|link| link.delays_ms.iter_mut().for_each(|delay| *delay = rounded(*delay, digits)));
        add(&|link| link.steps.iter_mut().for_each(|(_, kbps)| *kbps = rounded(*kbps, digits)));
        add(&|link| link.steps.iter_mut().for_each(|(ms, _)| *ms = rounded(*ms, digits)));
        add(&|link| link.rtt_ms = rounded(link.rtt_ms, digits));
        add(&|link| link.buffer_pkts = rounded(u64::from(link.buffer_pkts), digits) as u32);
    }
    // Delays: two of them alone, half as many, each like the one before it or none.
    add(&|link| {
        link.delays_ms.iter_mut().for_each(|delay| *delay = if 2 * *delay > longest { longest } else { 0 })
    });
    add(&|link| link.delays_ms.truncate(link.delays_ms.len() / 2));
    add(&|link| {
        link.delays_ms = link.delays_ms.iter().copied().step_by(2).collect();
        link.hold_ms *= 2;
    });
    for place in 0..link.delays_ms.len() {
        add(&|link| link.delays_ms[place] = 0);
        add(&|link| link.delays_ms[place] = longest);
        add(&|link| {
            link.delays_ms.remove(place);
        });
        if place > 0 {
            add(&|link| link.delays_ms[place] = link.delays_ms[place - 1]);
        }
    }
    // Steps: one less, two that become one, all equally long.
    for place in 0..link.steps.len() {
        if link.steps.len() > 1 {
            add(&|link| {
                link.steps.remove(place);
            });
        }
        if place > 0 {
            add(&|link| {
                let (ms, kbps) = link.steps.remove(place);
                let before = &mut link.steps[place - 1];
                let bits = before.0 * before.1 + ms * kbps;
                before.0 += ms;
                before.1 = (bits / before.0).max(1);
            });
        }
        for digits in [1, 2] {
            add(&|link| link.steps[place].0 = rounded(link.steps[place].0, digits));
            add(&|link| link.steps[place].1 = rounded(link.steps[place].1, digits));
        }
    }
    if link.steps.len() > 3 {
        let half = link.steps.len() / 2;
        add(&|link| link.steps.truncate(half));
        add(&|link| {
            link.steps.drain(..half);
        });
        add(&|link| {
            let pairs = link.steps.chunks(2).map(|pair| {
                let ms = pair.iter().map(|(ms, _)| ms).sum::<u64>();
                (ms, pair.iter().map(|(ms, kbps)| ms * kbps).sum::<u64>() / ms.max(1))
            });
            link.steps = pairs.collect();
        });
    }
    made.retain(|link| is_within(link, bounds));
    made
}

/// Leaves out what says nothing.
fn tidy(link: &mut Link) {
    if link.delays_ms.iter().all(|delay| *delay == 0) {
        link.delays_ms.clear();
    }
    if link.delays_ms.is_empty() {
        link.hold_ms = 0;
    }
}

/// Whether every number still lies within the bounds; what is 0 is left out of the link.
fn is_within(link: &Link, bounds: &Bounds) -> bool {
    let rtt = Duration::from_millis(link.rtt_ms);
    let rates = bounds.rate.low.bps() / 1000..=bounds.rate.high.bps() / 1000;
    let shortest = if link.steps.len() > 1 { 1 } else { 0 };
    // Of a bandwidth-delay product.
    let packet = PACKET_BITS / (link.mean_bps() * rtt.as_secs_f64()).max(1.0);
    let products = f64::from(link.buffer_pkts) * packet;
    // As a buffer is ten packets at least, and a whole number.
    let slack = 1.0 + packet;
    (bounds.rtt.low..=bounds.rtt.high).contains(&rtt)
        && link.steps.iter().all(|(ms, kbps)| rates.contains(kbps) && *ms >= shortest)
        && bounds.change.is_none_or(|change| link.is_within(change))
        && (products >= bounds.buffer.low / slack)
        && (products <= bounds.buffer.high * slack || link.buffer_pkts <= 10)
        && link.delays_ms.iter().chain([&link.beat_ms]).all(|ms| Duration::from_millis(*ms) <= bounds.delay)
        && (link.delays_ms.is_empty() || link.hold_ms > 0)
        && link.cross.iter().all(|cross| cross.on_ms > 0 && cross.off_ms > 0 && cross.kbps > 0)
}

/// To so many digits that are not zero.
fn rounded(value: u64, digits: u32) -> u64 {
    let length = value.checked_ilog10().unwrap_or(0) + 1;
    let unit = 10_u64.pow(length.saturating_sub(digits));
    (value + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_their_first_digits() {
        assert_eq!([0, 7, 15, 149, 951, 1234].map(|value| rounded(value, 1)), [0, 7, 20, 100, 1000, 1000]);
        assert_eq!([0, 7, 15, 149, 951, 1251].map(|value| rounded(value, 2)), [0, 7, 15, 150, 950, 1300]);
    }

    /// Damage is the longest time below 2 Mbit/s: one slow step and one other do.
    #[test]
    fn what_does_no_damage_goes() {
        let link = Link {
            rtt_ms: 47,
            buffer_pkts: 83,
            steps: vec![(731, 9_120), (1_213, 1_370), (377, 4_440), (2_119, 21_310)],
            delays_ms: vec![3, 0, 17, 5],
            hold_ms: 119,
            beat_ms: 13,
            loss_per_million: 1_250,
            cross: Vec::new(),
        };
        let slow = |link: &Link| {
            let slow = link.steps.iter().filter(|(_, kbps)| *kbps < 2_000).map(|(ms, _)| *ms);
            if link.steps.len() > 1 { slow.max().unwrap_or(0) as f64 } else { 0.0 }
        };
        let mut asked = 0;
        let mut evaluate = |links: &[Link]| {
            asked += links.len();
            Ok(links.iter().map(slow).collect())
        };
        let (simple, damage) =
            minimise(link, 1_213.0, 970.4, &Bounds::default(), 400, &mut evaluate).unwrap();
        assert_eq!(simple.steps.len(), 2, "{simple:?}");
        assert_eq!((simple.delays_ms.len(), simple.beat_ms, simple.loss_per_million), (0, 0, 0));
        assert!((970.4..=1_213.0).contains(&damage) && asked <= 400, "{damage}, {asked}");
    }
}
