use brakelight_core::units::Rate;

use super::*;

/// A link of `mbps` that is out from one time to another.
struct Line {
    now: Time,
    mbps: u64,
    out: (Time, Time),
    unused: Bytes,
}

impl Line {
    fn new(mbps: u64) -> Self {
        Line { now: Time::ZERO, mbps, out: (Time::MAX, Time::MAX), unused: Bytes::ZERO }
    }
}

impl LinkView for Line {
    fn capacity(&mut self, window: Duration) -> Rate {
        let from = self.now.saturating_sub(window);
        let out = self.out.1.min(self.now).since(self.out.0.max(from));
        Rate::from_mbps(self.mbps).mul_f64(1.0 - out.as_secs_f64() / window.as_secs_f64())
    }
    fn unused(&mut self) -> Bytes {
        core::mem::take(&mut self.unused)
    }
    fn opportunity(&self) -> Bytes {
        Bytes(1500)
    }
    fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
        None
    }
}

fn settings() -> LoadFactorSettings {
    LoadFactorSettings {
        interval: Duration::from_millis(200),
        sample: Duration::from_millis(10),
        weight: 0.875,
        queue_weight: 0.5,
        gamma: 0.98,
        capacity: CapacityOf::Link,
    }
}

fn at(load: &mut LoadFactor, link: &mut Line, ms: u64) -> f64 {
    link.now = Time::from_millis(ms);
    load.advance(link.now, link);
    load.load()
}

/// 100 packets of 1500 bytes in 200 ms on 12 Mbit/s, which carries 300,000 bytes: 150,000 / 294,000.
#[test]
fn load_is_arrivals_over_the_target_capacity_of_the_interval() {
    let (mut load, mut link) = (LoadFactor::new(settings()), Line::new(12));
    for packet in 0..100 {
        assert_eq!(at(&mut load, &mut link, 2 * packet), 0.0);
        load.arrive(Bytes(1500), true);
        load.leave(Bytes(1500), &mut link);
    }
    let f = at(&mut load, &mut link, 200);
    assert!((f - 150_000.0 / 294_000.0).abs() < 1e-9, "{f}");
    // Nothing came in the next interval; the load of the one before holds until it ends.
    assert_eq!(at(&mut load, &mut link, 399), f);
    assert_eq!(at(&mut load, &mut link, 400), 0.0);
}

/// A queue of 60,000 bytes from 100 ms on: ten samples, at 100 to 190 ms, and the one at 200 ms.
/// (1 - 0.875^11) of it, half of that.
#[test]
fn what_waits_counts_by_its_weight() {
    let (mut load, mut link) = (LoadFactor::new(settings()), Line::new(12));
    at(&mut load, &mut link, 95);
    load.arrive(Bytes(60_000), true);
    let f = at(&mut load, &mut link, 200);
    let queue_bytes = 60_000.0 * (1.0 - libm::pow(0.875, 11.0));
    assert!((load.queue_bytes() - queue_bytes).abs() < 1e-6);
    assert!((f - (60_000.0 + 0.5 * queue_bytes) / 294_000.0).abs() < 1e-9, "{f}");
}

#[test]
fn a_dropped_arrival_counts_as_load_but_does_not_wait() {
    let (mut load, mut link) = (LoadFactor::new(settings()), Line::new(12));
    at(&mut load, &mut link, 5);
    load.arrive(Bytes(29_400), false);
    assert!((at(&mut load, &mut link, 200) - 0.1).abs() < 1e-9);
    assert_eq!(load.queue_bytes(), 0.0);
}

/// The same arrivals, looked at often or only when packets come: the same load at the same times.
#[test]
fn being_asked_late_changes_nothing() {
    let run = |steps: &[u64]| {
        let (mut load, mut link) = (LoadFactor::new(settings()), Line::new(12));
        let mut loads = std::vec::Vec::new();
        for ms in 0..3000_u64 {
            let packet = ms % 3 == 0 && ms % 700 < 400;
            if packet || steps.contains(&(ms % 10)) {
                let f = at(&mut load, &mut link, ms);
                if packet {
                    loads.push((f, load.queue_bytes()));
                    load.arrive(Bytes(1500), true);
                }
                if packet && ms % 2 == 0 {
                    load.leave(Bytes(1500), &mut link);
                }
            }
        }
        loads
    };
    let seldom = run(&[]);
    assert!(seldom.iter().any(|(f, _)| *f > 0.1));
    for (a, b) in seldom.iter().zip(run(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])) {
        assert!((a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-6, "{a:?} {b:?}");
    }
}

/// An interval is measured with the capacity that it had, also when it is looked at later.
#[test]
fn a_varying_link_is_charged_for_the_interval_itself() {
    let (mut load, mut link) = (LoadFactor::new(settings()), Line::new(12));
    link.out = (Time::from_millis(200), Time::from_millis(350));
    at(&mut load, &mut link, 201);
    load.arrive(Bytes(75_000), true);
    load.leave(Bytes(75_000), &mut link);
    // 50 of 200 ms are left: 75,000 bytes. Asked 170 ms after its end.
    let f = at(&mut load, &mut link, 570);
    assert!((f - 1.0 / 0.98).abs() < 1e-6, "{f}");
}

#[test]
fn a_link_that_carries_nothing_is_overloaded_by_anything_that_waits() {
    let (mut load, mut link) = (LoadFactor::new(settings()), Line::new(12));
    link.out = (Time::ZERO, Time::from_secs(10));
    assert_eq!(at(&mut load, &mut link, 200), 0.0);
    load.arrive(Bytes(1500), true);
    assert_eq!(at(&mut load, &mut link, 400), LoadFactor::MOST);
}

/// bmcc VII: 30,000 bytes left while the link was busy for a quarter of the time.
#[test]
fn busy_time_needs_no_capacity() {
    let settings = LoadFactorSettings { capacity: CapacityOf::BusyTime, gamma: 1.0, ..settings() };
    let (mut load, mut link) = (LoadFactor::new(settings), Line::new(999));
    at(&mut load, &mut link, 10);
    load.arrive(Bytes(30_000), true);
    link.unused = Bytes(90_000);
    load.leave(Bytes(30_000), &mut link);
    // The sample of an empty queue leaves no trace.
    assert!((at(&mut load, &mut link, 200) - 0.25).abs() < 1e-9);
}

#[test]
fn sixteen_levels_cover_every_load_and_err_on_the_careful_side() {
    let levels = Levels { eta_0: 0.15, eta: 0.8, u: 1.2 };
    let mut codes = std::collections::BTreeSet::new();
    for step in 0..2000 {
        let f = f64::from(step) * 0.001;
        let code = levels.encode(f);
        codes.insert(code);
        let said = levels.decode(code);
        match f {
            f if f < 0.8 => assert!(said >= f.max(0.15) - 1e-12 && said <= 0.8, "{f}: {said}"),
            f if f < 1.0 => assert!((0.8..1.0).contains(&said) && (said - f).abs() <= 0.051, "{f}: {said}"),
            f => assert!((1.0..=f).contains(&said) && said <= 1.2, "{f}: {said}"),
        }
    }
    assert_eq!(codes.len(), 16);
    assert_eq!(levels.encode(LoadFactor::MOST), Levels::TOP);
}
