//! What comments, experiments and pages cite is there: open questions in `docs/open-questions.md`, claims in
//! `experiments/`, files of Linux in `docs/references.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every text of the project that people read, with its path from the root; code of others is left out.
fn texts() -> Vec<(String, String)> {
    let places = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "crates", "docs", "experiments"];
    let mut texts = brakelight_testkit::sources::read(&places, &[".rs", ".h", ".c", ".md", ".toml"]);
    texts.retain(|(path, _)| !path.ends_with("/citations.rs"));
    texts
}

/// The words of `line` that are `letters`, a hyphen and a number, such as `X-13`.
fn keys<'a>(line: &'a str, letters: &str) -> Vec<&'a str> {
    let starts = line.match_indices(letters).map(|(at, _)| at).filter(|&at| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    });
    let key = |at: usize| {
        let digits = line[at + letters.len()..].bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0).then(|| &line[at..at + letters.len() + digits])
    };
    starts.filter_map(key).collect()
}

/// The keys that `text` gives a place of their own.
fn anchors(text: &str) -> BTreeSet<&str> {
    let ids = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    ids.map(|(id, _)| id).collect()
}

#[test]
fn every_open_question_that_is_cited_is_in_the_book() {
    let index = read("docs/open-questions.md");
    let known = anchors(&index);
    assert!(known.len() > 70, "{known:?}");
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            for key in keys(line, "X-") {
                assert!(known.contains(key), "{path}:{}: no question {key}: {line}", number + 1);
            }
            for lost in ["mechanisms X-", "mechanisms M-", "mechanisms P-"] {
                assert!(!line.contains(lost), "{path}:{}: users have no such text: {line}", number + 1);
            }
        }
    }
}

#[test]
fn every_question_of_the_index_is_on_the_page_that_it_links() {
    let index = read("docs/open-questions.md");
    let mut linked = BTreeSet::new();
    for row in index.lines().filter(|row| row.starts_with("| <a id=")) {
        let key = keys(row, "X-")[0];
        let Some((_, link)) = row.split_once("](open-questions/") else { continue };
        let (page, anchor) =
            link.split_once(')').and_then(|(link, _)| link.split_once('#')).expect("an anchor");
        assert_eq!(anchor, key, "{row}");
        assert!(anchors(&read(&format!("docs/open-questions/{page}"))).contains(key), "{page} has no {key}");
        linked.insert(key);
    }
    for page in ["abc", "abc-results", "bmcc", "quicdc"] {
        let text = read(&format!("docs/open-questions/{page}.md"));
        for key in anchors(&text) {
            assert!(linked.contains(key), "{page}.md: {key} is not in the index");
        }
    }
}

#[test]
fn every_claim_that_is_cited_is_in_an_experiment() {
    let mut ids = BTreeSet::new();
    for (path, text) in texts() {
        if path.starts_with("experiments/") {
            for line in text.lines() {
                ids.extend(
                    line.strip_prefix("id = \"").and_then(|id| id.strip_suffix('"')).map(String::from),
                );
            }
        }
    }
    assert!(ids.len() > 100, "{}", ids.len());
    let named = |key: &str| {
        ids.iter().any(|id| {
            id.strip_prefix(key).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    for (path, text) in texts() {
        let comment = |line: &str| line.starts_with("//") || line.starts_with('*') || line.starts_with("/*");
        for (number, line) in text.lines().enumerate() {
            if path.ends_with(".md") || comment(line.trim_start()) {
                for letters in ["ABC-F", "ABC-T", "ABC-U", "HN-F", "HN-U", "B-F", "B-T", "B-U", "Q-F", "Q-T"]
                {
                    for key in keys(line, letters) {
                        assert!(named(key), "{path}:{}: no claim {key}: {line}", number + 1);
                    }
                }
            }
        }
    }
}

#[test]
fn linux_is_cited_by_version_and_by_files_that_the_references_list() {
    let references = read("docs/references.md");
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            for (at, _) in line.match_indices("inux") {
                let rest = line[at + 4..].trim_start_matches([',', ' ', '`']);
                let version = rest.split([' ', ',', ';']).next().unwrap_or_default();
                let symbol = ["tcp_", "__tcp_", "bbr_", "sch_", "hystart_", "bictcp_", "TCP_"];
                let bare = symbol.iter().any(|start| rest.starts_with(start))
                    && line[at + 4..].starts_with([',', ' ']);
                assert!(!bare, "{path}:{}: Linux without a version: {line}", number + 1);
                if version.split('.').filter(|part| part.parse::<u32>().is_ok()).count() == 2 {
                    let file = rest[version.len()..].trim_start_matches([' ', '`']);
                    let file =
                        file.split([' ', ',', '`', ';', ':', ')', '|', '"']).next().unwrap_or_default();
                    let file = file.trim_end_matches('.').rsplit('/').next().unwrap_or_default();
                    if file.ends_with(".c") || file.ends_with(".h") {
                        let listed = references.contains(&format!("`{file}`"));
                        assert!(listed, "{path}:{}: {file} is not in docs/references.md: {line}", number + 1);
                    }
                }
            }
        }
    }
}
