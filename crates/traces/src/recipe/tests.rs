use super::*;

const CELLULAR: &str = r#"
about = "x"
duration = "10s"
seed = 3

[cellular]
mean = "5Mbps"
snr = 6.0
fading = [{ sigma = 5.0, lasts = "2s" }]
burst = 1.5
outages = { every = "3s", shortest = "30ms", longest = "1s", exponent = 1.5 }
blockage = { every = "4s", lasts = "300ms", loss = 20.0 }
handover = { every = "5s", gap = "40ms", sigma = 3.0 }
"#;

fn refusal(from: &str, to: &str) -> String {
    let text = CELLULAR.replacen(from, to, 1);
    assert_ne!(text, CELLULAR, "`{from}` is not in the recipe");
    text.parse::<Recipe>().unwrap_err().to_string()
}

#[test]
fn reads_what_it_writes() {
    let recipe: Recipe = CELLULAR.parse().unwrap();
    assert_eq!(recipe.cellular.as_ref().unwrap().slot, Duration::from_millis(1));
    assert_eq!(recipe.to_string().parse::<Recipe>().unwrap(), recipe);
    let steps: Recipe =
        "about = \"\"\nduration = \"1s\"\nsteps = [{ lasts = \"1s\", rate = \"12Mbps\" }]".parse().unwrap();
    assert_eq!(steps.to_string().parse::<Recipe>().unwrap(), steps);
}

#[test]
fn a_refusal_names_key_value_and_what_would_be_valid() {
    let cases = [
        ("\"10s\"", "\"10us\"", "`duration` is 10us: a whole number of milliseconds from 1ms to 1h is valid"),
        ("\"10s\"", "\"2h\"", "`duration` is 7200s: a whole number of milliseconds from 1ms to 1h is valid"),
        ("\"5Mbps\"", "\"5kbps\"", "`mean` is 5kbps: 10kbps to 10Gbps is valid"),
        ("snr = 6.0", "snr = nan", "`snr` is NaN: -20 to 60 dB is valid"),
        ("sigma = 5.0", "sigma = -1.0", "`fading.sigma` is -1: 0 to 30 dB is valid"),
        ("lasts = \"2s\"", "lasts = \"0s\"", "`fading.lasts` is 0s: a time of at least 1ms is valid"),
        ("burst = 1.5", "burst = 0.5", "`burst` is 0.5: 1 to 1000 opportunities is valid"),
        (
            "burst = 1.5",
            "burst = 1.5\nslot = \"0ms\"",
            "`slot` is 0s: a whole number of milliseconds from 1ms to 1s is valid",
        ),
        (
            "longest = \"1s\"",
            "longest = \"10ms\"",
            "`outages.longest` is 10ms: a time not below `shortest` is valid",
        ),
        ("exponent = 1.5", "exponent = 0.0", "`outages.exponent` is 0: 0.1 to 10 is valid"),
        ("loss = 20.0", "loss = 100.0", "`blockage.loss` is 100: 0 to 60 dB is valid"),
        ("gap = \"40ms\"", "gap = \"5s\"", "`handover.gap` is 5s: a time below `every` is valid"),
        ("burst = 1.5", "burst = 1.5\nsnr_limit = -3.0", "`snr_limit` is -3: 0 to 60 dB is valid"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(refusal(from, to), expected);
    }
}

#[test]
fn a_recipe_is_one_thing() {
    let both = format!("steps = [{{ lasts = \"1s\", rate = \"1Mbps\" }}]\n{CELLULAR}");
    let neither = "about = \"\"\nduration = \"1s\"";
    assert!(both.parse::<Recipe>().unwrap_err().to_string().ends_with("here are several"));
    assert!(neither.parse::<Recipe>().unwrap_err().to_string().ends_with("here is none"));
}

#[test]
fn toml_that_is_wrong_is_shown_with_its_line() {
    let unknown = refusal("snr = 6.0", "snr = 6.0\nsnrr = 1");
    assert!(unknown.contains("line 9") && unknown.contains("unknown field `snrr`"), "{unknown}");
    let unit = refusal("\"5Mbps\"", "\"5Mpbs\"");
    assert!(unit.contains("`5Mpbs` is not a rate such as"), "{unit}");
    let syntax = refusal("snr = 6.0", "snr 6.0");
    assert!(syntax.contains("line 8"), "{syntax}");
}

#[test]
fn more_opportunities_than_a_trace_can_hold_are_refused() {
    let long = CELLULAR.replace("10s", "1h").replace("5Mbps", "10Gbps");
    let refusal = long.parse::<Recipe>().unwrap_err().to_string();
    assert_eq!(refusal, "`mean` is 10Gbps: at most 200 million opportunities in the whole duration is valid");
}

#[test]
fn no_recipe_brings_the_reader_down() {
    let corpus: Vec<String> = super::super::embedded::EMBEDDED.iter().map(|e| e.recipe.to_string()).collect();
    let mut random = brakelight_core::random::Random::stream(1, "fuzz recipes");
    for _ in 0..brakelight_testkit::mutate::fuzz_inputs() {
        match brakelight_testkit::mutate::mutate(&corpus, &mut random).parse::<Recipe>() {
            // Making a trace of each would take longer than it teaches; the short ones are cheap.
            Ok(recipe) if recipe.duration < Duration::from_secs(1) => {
                let _ = recipe.generate().map(|trace| assert_eq!(trace.period(), recipe.duration));
            }
            Ok(recipe) => assert!(recipe.check().is_ok()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
