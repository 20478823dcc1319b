use brakelight_core::units::Rate;

use super::super::super::recording::RecordedCapacity;
use super::super::super::synth::from_counts;
use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A recording with rates from 12 to 36 Mbit/s, another one in each of so many bins of 100 ms.
fn binned(bins: u64) -> Recording {
    let mut recording = Recording::new(ms(100 * bins));
    let steps = (0..bins).map(|k| (ms(100 * k), Rate::from_bps(12_000_000 + 240_000 * (k * 37 % 101))));
    recording.down.capacity = Some(RecordedCapacity::Rates(steps.collect()));
    recording.about.bin_us = Some(100_000);
    recording
}

/// A minute of two packets a millisecond, with gaps every 15 s where there are `gaps`.
fn single_packets(gaps: bool) -> Recording {
    let mut counts = vec![2_u32; 60_000];
    for from in [7_000, 22_000, 37_000, 52_000].into_iter().filter(|_| gaps) {
        counts[from..from + 80].fill(0);
    }
    let trace = from_counts(counts).unwrap();
    let mut recording = Recording::new(trace.period());
    recording.down.capacity = Some(RecordedCapacity::Opportunities(trace));
    recording
}

fn fitted(recording: &Recording, kind: LinkKind, bin: Option<Duration>) -> FittedLink {
    fit_link("mine.csv", recording, kind, bin).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_recipe_has_the_bins_of_its_recording_and_makes_a_trace_like_it() {
    let found = fitted(&binned(600), LinkKind::Binned, None);
    let measured = found.recipe.measured.as_ref().unwrap();
    assert_eq!((measured.bin, found.recipe.duration), (ms(100), Duration::from_secs(60)));
    assert_eq!(
        found.recipe.about,
        "Fitted to mine.csv: 60s in bins of 100ms. The recipe shares nothing else with its recording."
    );
    assert_eq!(found.recipe.to_string().parse::<Recipe>().unwrap(), found.recipe, "it is a recipe file");
    let [recorded, made] =
        [&found.recorded, &found.made].map(|trace| trace.mean_rate(crate::OPPORTUNITY).as_mbps_f64());
    assert!((made / recorded - 1.0).abs() < 0.02, "{made} for {recorded}");
    assert_eq!(found.made.resolution(), ms(100));
    let coarser = fitted(&binned(600), LinkKind::Binned, Some(ms(500)));
    assert_eq!(coarser.recipe.measured.unwrap().bin, ms(500));
}

#[test]
fn single_packets_have_bins_of_their_own_and_their_bursts_where_they_are_asked_for() {
    let recording = single_packets(false);
    let [binned, bursts] = [LinkKind::Binned, LinkKind::Bursts]
        .map(|kind| fitted(&recording, kind, None).recipe.measured.unwrap());
    assert_eq!((binned.bin, binned.grants.len()), (ms(100), 0));
    assert_eq!((bursts.bin, bursts.grants.len()), (ms(100), 21));
}

#[test]
fn starlink_has_other_paths_and_a_loss_that_is_said_to_be_published() {
    let found = fitted(&single_packets(true), LinkKind::Starlink, None);
    let measured = found.recipe.measured.unwrap();
    let paths = measured.paths.unwrap();
    assert_eq!((measured.bin, paths.every, paths.first), (ms(50), ms(15_000), ms(7_000)));
    assert!((paths.lost - Kind::STARLINK.lost).abs() < 1e-9, "{}", paths.lost);
    assert!(found.notes.iter().any(|note| note.contains("published")), "{:?}", found.notes);
    let without = fitted(&single_packets(false), LinkKind::Starlink, None);
    assert_eq!(without.recipe.measured.unwrap().paths, None);
    assert!(without.notes.iter().any(|note| note.contains("no gap")), "{:?}", without.notes);
}

#[test]
fn what_cannot_be_fitted_is_refused_with_what_would_be_valid() {
    let refused = |recording: &Recording, kind, bin| {
        fit_link("mine.csv", recording, kind, bin).unwrap_err().to_string()
    };
    let long = binned(600);
    let cases = [
        (
            refused(&binned(39), LinkKind::Binned, None),
            "the recording lasts 3900ms, which is 39 bins of 100ms: ",
        ),
        (refused(&long, LinkKind::Binned, Some(ms(50))), "bin 50ms: whole milliseconds from 100ms to 10s "),
        (refused(&long, LinkKind::Binned, Some(ms(11_000))), "bin 11s: "),
        (
            refused(&long, LinkKind::Binned, Some(Duration::from_micros(100_500))),
            "bin 100.5ms: whole milliseconds ",
        ),
        (refused(&long, LinkKind::Bursts, None), "kind `bursts` needs the time of every packet, and one "),
        (refused(&long, LinkKind::Starlink, None), "kind `starlink` needs "),
        (refused(&Recording::new(ms(60_000)), LinkKind::Binned, None), "the recording has no capacity "),
    ];
    for (said, expected) in cases {
        assert!(said.starts_with(expected), "{said}");
        assert!(said.contains(" valid") || said.contains("--delay"), "{said}");
    }
}

#[test]
fn kinds_have_names() {
    for kind in [LinkKind::Binned, LinkKind::Bursts, LinkKind::Starlink] {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    let refusal = "satellite".parse::<LinkKind>().unwrap_err();
    assert_eq!(refusal, "`satellite` is not a kind of link: valid are `binned`, `bursts`, `starlink`");
}
