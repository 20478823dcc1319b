//! The words and the width of the sources of all crates: the field's terms in place of private ones, one
//! public type for each of a few common words, and comments that fit a window.

/// The longest line of a comment, in characters. `rustfmt` holds code to the same number.
const WIDTH: usize = 110;

/// Names that only this project would understand, each with the field's term.
const PRIVATE_NAMES: &[(&str, &str)] = &[
    ("Governor", "ControllerAdapter"),
    ("Kit", "a builder"),
    ("Gate", "SendAdmission"),
    ("Told", "an update"),
    ("Fate", "the state of a packet, or a verdict"),
    ("Wish", "a request"),
    ("Standing", "a state"),
    ("Lane", "a direction, or a class"),
    ("Spelled", "SchemeString"),
    ("clip", "cap_cwnd, or intersect"),
    ("keeper", "owner"),
];

/// Phrases that readers must guess at, each with plain words.
const RIDDLES: &[(&str, &str)] = &[
    ("left edge", "`snd_una`"),
    ("Wrong when", "Returns `false` if"),
    ("Why there is no", "Why ... could not be created"),
    ("taken at its word", "not verified"),
    ("nobody's word", "treated as missing"),
    ("How much instead", "Number of bytes"),
    ("so often", "an interval, or a number"),
    ("what of ours", "which programs"),
    ("wide law", "wide distribution"),
];

/// Words that were the name of many public types: each may be the name of one.
const ONE_MEANING: &[&str] = &["Report", "Connection", "Place", "Settings", "Direction"];

/// A file, by its path from the root, and its text.
type Source = (String, String);

/// All sources of the project in Rust and C, but the tests that must name what they forbid.
fn sources() -> Vec<Source> {
    let mut sources =
        brakelight_testkit::sources::read(&["crates", "examples", "fuzz"], &[".rs", ".c", ".h"]);
    sources.retain(|(path, _)| {
        !["testkit/tests/words.rs", "testkit/src/prose.rs"]
            .iter()
            .any(|test| path == &format!("crates/{test}"))
    });
    sources
}

/// Whether `line` is a comment and nothing else.
fn is_comment(line: &str) -> bool {
    ["//", "/*", "* "].iter().any(|start| line.trim_start().starts_with(start))
}

/// The comments of `text` that are too wide, by line number.
fn too_wide(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let wide = lines.filter(|(_, line)| is_comment(line) && line.chars().count() > WIDTH);
    wide.map(|(index, _)| index + 1).collect()
}

/// The private names and riddles in `text`: line number, what stands there, and what is better.
fn private_words(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let known = PRIVATE_NAMES.iter().filter(|(name, _)| *name == word);
            found.extend(known.map(|&(name, better)| (index + 1, name, better)));
        }
        let known = RIDDLES.iter().filter(|(phrase, _)| line.contains(phrase));
        found.extend(known.map(|&(phrase, better)| (index + 1, phrase, better)));
    }
    found
}

/// The lines of `text` that declare a public type called `name`.
fn declarations(text: &str, name: &str) -> Vec<usize> {
    let declares = |line: &str| {
        let mut words = line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_');
        words.next() == Some("pub")
            && words.next().is_some_and(|kind| ["struct", "enum", "trait", "type"].contains(&kind))
            && words.next() == Some(name)
    };
    text.lines().enumerate().filter(|(_, line)| declares(line)).map(|(index, _)| index + 1).collect()
}

#[test]
fn no_comment_is_wider_than_a_window() {
    let sources = sources();
    assert!(sources.len() > 400, "{} files", sources.len());
    let places = |(path, text): &Source| {
        too_wide(text).into_iter().map(|line| format!("{path}:{line}")).collect::<Vec<_>>()
    };
    let wide: Vec<String> = sources.iter().flat_map(places).collect();
    assert!(wide.is_empty(), "comments of more than {WIDTH} characters a line:\n{}", wide.join("\n"));
}

#[test]
fn names_and_comments_use_the_terms_of_the_field() {
    let places = |(path, text): &Source| {
        let found = private_words(text).into_iter();
        found
            .map(|(line, word, better)| format!("{path}:{line}: `{word}`: better is {better}"))
            .collect::<Vec<_>>()
    };
    let found: Vec<String> = sources().iter().flat_map(places).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The lines of `text` outside tests that name a folder of this project's sources in a string, which whoever
/// has the program alone cannot open.
fn paths_of_a_clone(text: &str) -> Vec<usize> {
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    let named = |line: &str| {
        // What is included, or looked for in a text of another program, is not told to anyone.
        let says = !is_comment(line) && !["include_", "split_once("].iter().any(|read| line.contains(read));
        says && ["crates/", "scripts/", "docs/", "target/"].iter().any(|path| line.contains(path))
    };
    program.lines().enumerate().filter(|(_, line)| named(line)).map(|(index, _)| index + 1).collect()
}

#[test]
fn no_message_names_a_path_of_the_sources() {
    let told = ["cli", "lab", "emulator", "tcp", "quic", "files"].map(|name| format!("crates/{name}/src/"));
    let told = |path: &str| told.iter().any(|start| path.starts_with(start)) && !path.contains("tests");
    let found: Vec<String> = sources()
        .iter()
        .filter(|(path, _)| told(path) && path.ends_with(".rs"))
        .flat_map(|(path, text)| paths_of_a_clone(text).into_iter().map(move |line| format!("{path}:{line}")))
        .collect();
    assert!(
        found.is_empty(),
        "a user has no clone; name a page of the book, or what to install:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_common_word_names_one_public_type() {
    let sources = sources();
    for name in ONE_MEANING {
        let places = sources.iter().filter(|(path, _)| path.contains("/src/")).flat_map(|(path, text)| {
            declarations(text, name).into_iter().map(move |line| format!("{path}:{line}"))
        });
        let places: Vec<String> = places.collect();
        assert!(places.len() <= 1, "`{name}` names {} public types: {}", places.len(), places.join(", "));
    }
}

#[test]
fn what_is_too_wide_private_or_public_is_found() {
    let long = "a".repeat(WIDTH);
    assert_eq!(
        paths_of_a_clone("say(\"see docs/x.md\");\n// see docs/x.md\ninclude_str!(\"docs/x\")\n"),
        [1]
    );
    assert_eq!(too_wide(&format!("/// b\n    // {long}\n")), [2]);
    assert_eq!(too_wide(&format!("let text = \"{long}\";\n")), [0; 0]);
    let words =
        |text| private_words(text).into_iter().map(|(line, word, _)| (line, word)).collect::<Vec<_>>();
    assert_eq!(words("struct Kit;\n// the left edge\n"), [(1, "Kit"), (2, "left edge")]);
    assert_eq!(words("struct Kite; fn clip_path() {} // a kit"), []);
    assert_eq!(
        declarations(
            "pub enum Place {\nstruct Place;\npub struct PlaceOf;\n    pub type Place = u8;",
            "Place"
        ),
        [1, 4]
    );
}
