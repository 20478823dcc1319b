use super::super::recipe::Recipe;
use super::*;

const LINK: &str = r#"
about = "x"
duration = "60s"
seed = 3

[measured]
bin = "100ms"
rates = ["1Mbps", "2Mbps", "4Mbps", "8Mbps", "10Mbps", "12Mbps", "14Mbps", "16Mbps", "18Mbps", "20Mbps",
         "22Mbps", "30Mbps", "40Mbps", "60Mbps", "80Mbps"]
memory = [{ share = 0.5, lasts = "5s" }, { share = 0.2, lasts = "400ms" }]
outages = { every = "6s", lasts = ["100ms", "200ms", "1500ms"], fades = 4 }
"#;

const PATHS: &str = r#"
about = "x"
duration = "120s"

[measured]
bin = "50ms"
rates = ["12Mbps", "13Mbps", "14Mbps", "15Mbps", "16Mbps", "17Mbps", "18Mbps", "24Mbps", "25Mbps", "26Mbps",
         "27Mbps", "28Mbps", "29Mbps", "30Mbps", "36Mbps"]
grants = ["1ms", "4ms", "7ms"]
paths = { every = "15s", first = "5s", gaps = ["60ms", "140ms"], share = 0.9, lost = 0.4 }

[measured.delay]
bin = "10ms"
values = ["7ms", "7ms", "8ms", "8ms", "9ms", "9ms", "10ms", "10ms", "11ms", "11ms", "12ms", "12ms", "13ms",
          "14ms", "16ms"]
share = 0.5
changing = ["30ms", "37ms"]
"#;

fn recipe(text: &str) -> Recipe {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn mbps(measured: &Measured, seed: u64, seconds: u64) -> Vec<f64> {
    let rates = measured.rates(seed, Duration::from_secs(seconds));
    rates.iter().map(|rate| rate.as_mbps_f64()).collect()
}

#[test]
fn every_trace_has_the_quantiles_of_its_recipe() {
    let measured = recipe(LINK).measured.unwrap();
    for seed in 1..=5 {
        let mut rates = mbps(&measured, seed, 60);
        rates.retain(|rate| *rate > 0.0);
        rates.sort_by(f64::total_cmp);
        for (share, wanted) in SHARES.iter().zip(&measured.rates) {
            let found = rates[((share * rates.len() as f64) as usize).min(rates.len() - 1)];
            let off = (found / wanted.as_mbps_f64() - 1.0).abs();
            // At either end half a bin of 600 is missing: an eighth of the least, a twentieth of the last
            // step.
            assert!(off < 0.15, "seed {seed}, {share}: {found} for {wanted}");
        }
    }
}

#[test]
fn every_trace_has_the_longest_outage_and_as_many_as_its_recipe() {
    let measured = recipe(LINK).measured.unwrap();
    for seed in 1..=20 {
        let rates = mbps(&measured, seed, 60);
        let runs: Vec<usize> =
            rates.split(|rate| *rate > 0.0).map(<[f64]>::len).filter(|bins| *bins > 0).collect();
        assert_eq!((runs.len(), runs.iter().max()), (10, Some(&15)), "seed {seed}: {runs:?}");
    }
}

#[test]
fn outages_of_fades_are_where_the_rate_is_low() {
    let beside = |fades: usize| {
        let mut measured = recipe(LINK).measured.unwrap();
        measured.outages.as_mut().unwrap().fades = fades;
        let (mut sum, mut number) = (0.0, 0.0);
        for seed in 1..=20 {
            for three in mbps(&measured, seed, 60).windows(3) {
                if three[1] > 0.0 && (three[0] <= 0.0 || three[2] <= 0.0) {
                    sum += three[1];
                    number += 1.0;
                }
            }
        }
        sum / number
    };
    let (anywhere, deep) = (beside(1), beside(50));
    assert!(deep < anywhere / 1.5, "{deep} beside outages, {anywhere} where they know nothing");
}

#[test]
fn what_an_outage_holds_up_comes_after_it() {
    let after = |rebound: f64| {
        let mut measured = recipe(LINK).measured.unwrap();
        measured.outages.as_mut().unwrap().rebound = rebound;
        let rates: Vec<f64> = (1..=20).flat_map(|seed| mbps(&measured, seed, 60)).collect();
        let chosen: Vec<f64> =
            rates.windows(2).filter(|two| two[0] <= 0.0 && two[1] > 0.0).map(|two| two[1]).collect();
        (chosen.iter().sum::<f64>() / chosen.len() as f64, rates.iter().sum::<f64>() / rates.len() as f64)
    };
    let (lost, held) = (after(0.0), after(3.0));
    assert!(held.0 > 1.5 * lost.0, "{} after outages, {} where they lose it", held.0, lost.0);
    assert!((held.1 / lost.1 - 1.0).abs() < 1e-3, "the mean rate stays: {} and {}", held.1, lost.1);
}

#[test]
fn seldom_noise_has_the_same_size_in_fewer_and_larger_steps() {
    let of = |noisy: f64| {
        let mut measured = recipe(LINK).measured.unwrap();
        (measured.outages, measured.memory, measured.noisy) = (None, Vec::new(), noisy);
        measured.memory.push(Memory { share: 0.5, lasts: Duration::from_secs(5) });
        let rates = mbps(&measured, 1, 3_600);
        let mut steps: Vec<f64> = rates.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
        steps.sort_unstable_by(f64::total_cmp);
        let square = steps.iter().map(|step| step * step).sum::<f64>() / steps.len() as f64;
        (steps[steps.len() / 2], square.sqrt(), rates.iter().sum::<f64>())
    };
    let (always, seldom) = (of(1.0), of(0.3));
    assert!(seldom.0 < 0.6 * always.0, "typical steps {} and {}", seldom.0, always.0);
    assert!((seldom.1 / always.1 - 1.0).abs() < 0.1, "root mean squares {} and {}", seldom.1, always.1);
    assert!((seldom.2 / always.2 - 1.0).abs() < 1e-9, "the same quantiles");
}

#[test]
fn memory_lasts_as_long_as_the_recipe_says() {
    let mut measured = recipe(LINK).measured.unwrap();
    measured.outages = None;
    measured.memory = vec![Memory { share: 0.8, lasts: Duration::from_secs(1) }];
    // Even steps, so that ranks are the rates.
    measured.rates = SHARES.iter().map(|share| Rate::from_bps((1e6 + share * 1e7) as u64)).collect();
    let rates = mbps(&measured, 1, 3_600);
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let product =
        |lag: usize| rates.iter().zip(&rates[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    for (lag, wanted) in [(1, 0.8 * 0.9048), (5, 0.8 * 0.6065), (10, 0.8 * 0.3679), (40, 0.8 * 0.0183)] {
        // Of ranks it is 6 / pi asin(rho / 2), at most 0.02 less.
        let found = product(lag) / product(0);
        assert!((found - wanted).abs() < 0.05, "{lag} bins: {found} for {wanted}");
    }
}

#[test]
fn paths_change_on_time_with_a_gap_another_rate_and_another_delay() {
    let recipe = recipe(PATHS);
    let trace = recipe.generate().unwrap();
    let mut counts = vec![0_u32; 120_000];
    trace.millis().for_each(|ms| counts[ms as usize - 1] += 1);
    let mut levels = Vec::new();
    let mut gaps = Vec::new();
    for k in 0..8_usize {
        let from = 5_000 + 15_000 * k;
        gaps.push(counts[from..].iter().take_while(|n| **n == 0).count());
        levels.push(counts[from..(from + 15_000).min(120_000)].iter().sum::<u32>());
    }
    gaps.sort_unstable();
    assert!((60..=68).contains(&gaps[0]) && (140..=148).contains(&gaps[7]), "{gaps:?}");
    levels.pop();
    levels.sort_unstable();
    assert!(f64::from(levels[6]) > 1.3 * f64::from(levels[0]), "{levels:?}");
    let ahead = trace.recorded().unwrap().forward.as_ref().unwrap();
    for k in 0..8 {
        let ms = ahead.delay(Duration::from_millis(5_030 + 15_000 * k)).as_millis_f64();
        assert!((30.0..=37.0).contains(&ms), "change {k}: {ms} ms");
    }
    let calm = ahead.delay(Duration::from_secs(12)).as_millis_f64();
    assert!((7.0..=16.0).contains(&calm), "{calm} ms");
}

#[test]
fn the_longer_a_gap_the_higher_its_delay_and_what_is_under_way_is_lost() {
    let recording = recipe(PATHS).record().unwrap();
    let trace = recording.trace(None).unwrap();
    let [ahead, back] = {
        let recorded = trace.recorded().unwrap();
        [recorded.forward.clone().unwrap(), recorded.reverse.clone().unwrap()]
    };
    assert_eq!((ahead.losses(), ahead.delays()), (back.losses(), back.delays()));
    let mut gaps = Vec::new();
    for k in 0..8 {
        let from = Duration::from_millis(5_000 + 15_000 * k);
        // The median delay is 10 ms.
        let begin = from - Duration::from_millis(10);
        assert_eq!(ahead.loss(begin - Duration::from_micros(1)), 0);
        assert_eq!(ahead.loss(begin), 400_000_000);
        let place = ahead.losses().iter().position(|(at, _)| *at == begin).unwrap();
        let (until, after) = ahead.losses()[place + 1];
        assert_eq!(after, 0);
        gaps.push((until - from, ahead.delay(from + Duration::from_millis(30))));
    }
    gaps.sort();
    assert_eq!((gaps[0].0, gaps[7].0), (Duration::from_millis(60), Duration::from_millis(140)));
    assert!(gaps.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{gaps:?}");
    assert_eq!((gaps[0].1, gaps[7].1), (Duration::from_millis(30), Duration::from_millis(37)));
}

#[test]
fn a_gap_at_the_beginning_and_one_to_the_end_lose_within_the_period() {
    let text = PATHS
        .replace("first = \"5s\"", "first = \"0s\"")
        .replace("duration = \"120s\"", "duration = \"15050ms\"");
    let recording = recipe(&text).record().unwrap();
    recording.check().unwrap();
    let losses = &recording.down.losses;
    assert_eq!(losses[0], (Duration::ZERO, 400_000_000));
    assert_eq!(*losses.last().unwrap(), (Duration::from_millis(14_990), 400_000_000));
    assert_eq!(losses.len(), 3);
}

#[test]
fn grants_bring_what_the_rate_gave_since_the_last_one() {
    let trace = recipe(PATHS).generate().unwrap();
    let millis: std::collections::BTreeSet<u64> = trace.millis().collect();
    let times: Vec<u64> = millis.into_iter().collect();
    let intervals: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|ms| *ms < 60).collect();
    let mean = intervals.iter().sum::<u64>() as f64 / intervals.len() as f64;
    assert!((3.8..=4.4).contains(&mean), "{mean} ms from burst to burst");
    let rate = trace.mean_rate(OPPORTUNITY).as_mbps_f64();
    assert!((21.0..=24.0).contains(&rate), "{rate} Mbit/s");
}

#[test]
fn reads_what_it_writes_and_refuses_what_cannot_be() {
    for text in [LINK, PATHS] {
        let recipe = recipe(text);
        assert_eq!(recipe.to_string().parse::<Recipe>().unwrap(), recipe);
    }
    let rates = "`rates` is [1Mbps, ";
    let cases = [
        ("bin = \"100ms\"", "bin = \"0ms\"", "`bin` is 0s: "),
        ("\"2Mbps\"", "\"20Mbps\"", rates),
        ("\"2Mbps\", ", "", rates),
        ("\"80Mbps\"", "\"80Gbps\"", rates),
        (
            "share = 0.5",
            "share = 0.9",
            "`memory.share` is 1.1: a sum, with the path's, of at most 1 is valid",
        ),
        ("share = 0.5", "share = -0.5", "`memory.share` is -0.5: 0 to 1 is valid"),
        ("lasts = \"5s\"", "lasts = \"0s\"", "`memory.lasts` is 0s: a time of at least 1ms is valid"),
        ("every = \"6s\"", "every = \"0s\"", "`outages.every` is 0: a time from 1ms to 1h is valid"),
        ("\"200ms\", ", "\"2s\", ", "`outages.lasts` is [100ms, 2s, 1500ms]: "),
        ("fades = 4", "fades = 0", "`outages.fades` is 0: 1 to 1000 is valid"),
    ];
    let lost = PATHS.replacen("lost = 0.4", "lost = 1.4", 1).parse::<Recipe>().unwrap_err().to_string();
    assert_eq!(lost, "`paths.lost` is 1.4: 0 to 1 is valid");
    for (from, to, expected) in cases {
        let text = LINK.replacen(from, to, 1);
        assert_ne!(text, LINK, "`{from}` is not in the recipe");
        let refusal = text.parse::<Recipe>().unwrap_err().to_string();
        assert!(refusal.starts_with(expected), "{refusal}");
    }
    let unit = LINK.replacen("\"2Mbps\"", "\"2Mpbs\"", 1).parse::<Recipe>().unwrap_err().to_string();
    assert!(unit.contains("`2Mpbs` is not a rate such as"), "{unit}");
}
