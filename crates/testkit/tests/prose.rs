//! The book's prose: links that lead somewhere, plain words, one spelling, and sentences that can be read at
//! once; and the messages of the programs. `-- --nocapture` prints how easy each page is to read (Flesch
//! 1948; 60 is plain English, 30 a scientific paper).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use brakelight_testkit::prose::{LONGEST, ease, faults, lines, paragraphs, plain, sentences, wrong_with};

/// The least reading ease that a page may have: that of plain English.
const EASE: f64 = 60.0;

/// Records of what was decided before runs and of what came out. Their sentences stay as they were written
/// down, or are written by a command.
const RECORDS: &[&str] = &["docs/abc-adaptive.md", "docs/hypotheses.md"];

/// Abbreviations that readers bring along: of files, licenses, conferences and machines.
const EVERYDAY: &[&str] =
    &["CPU", "CSV", "GPL", "JAX", "JSON", "LTE", "MIT", "NSDI", "PATH", "PDF", "SDK", "SVG", "USENIX"];

/// A page: its path from the root, and its text.
type Page = (String, String);

fn pages() -> Vec<Page> {
    let mut pages = brakelight_testkit::sources::read(&["README.md", "CONTRIBUTING.md", "docs"], &[".md"]);
    pages.retain(|(path, _)| !path.ends_with("/SUMMARY.md"));
    pages
}

/// The pages of which every sentence is looked at.
fn chapters() -> Vec<Page> {
    let mut pages = pages();
    pages.retain(|(path, _)| !RECORDS.contains(&path.as_str()));
    pages
}

/// `text` without the tables of claims, whose setups are written in the claims' files.
fn written(text: &str) -> String {
    match text.split_once("<!-- claims -->") {
        Some((before, rest)) => {
            before.to_string() + rest.split_once("<!-- end -->").map_or("", |(_, after)| after)
        }
        None => text.to_string(),
    }
}

/// The texts in quotes of a source outside its tests and comments: each with its line, from 1.
fn quoted(source: &str) -> Vec<(usize, String)> {
    let program = source.split("#[cfg(test)]").next().unwrap_or_default();
    let comment = |line: &&str| line.trim_start().starts_with("//");
    let lines: Vec<&str> = program.lines().map(|line| if comment(&line) { "" } else { line }).collect();
    let program = lines.join("\n");
    let (mut found, mut letters, mut line) = (Vec::new(), program.chars().peekable(), 1);
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        // A quote as a character is no text.
        if letter == '\'' && letters.peek() == Some(&'"') {
            letters.next();
        }
        if letter != '"' {
            continue;
        }
        let (from, mut text) = (line, String::new());
        while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
            line += usize::from(letter == '\n');
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            match letters.next() {
                Some('n') => text.push('\n'),
                Some('\n') => {
                    line += 1;
                    while letters.next_if(|next| next.is_whitespace()).is_some() {}
                }
                Some(other) => text.push(other),
                None => {}
            }
        }
        found.push((from, text));
    }
    found
}

/// The anchor that a heading has on a page.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().replace('`', "");
    let mut shown = String::new();
    let mut rest = heading.as_str();
    while let Some((before, link)) = rest.split_once("](") {
        shown.push_str(before);
        rest = link.split_once(')').map_or("", |(_, behind)| behind);
    }
    shown.push_str(rest);
    let kept = shown.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = lines(text).into_iter().filter(|(_, line)| line.starts_with('#'));
    let mut anchors: BTreeSet<String> = headings.map(|(_, line)| anchor(line)).collect();
    let ids = text.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    anchors.extend(ids.map(|(id, _)| id.to_string()));
    anchors
}

/// The links of a line that stay in the repository.
fn links(line: &str) -> Vec<&str> {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    links.filter(|link| !link.contains("://") && !link.starts_with("mailto:")).collect()
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = brakelight_testkit::sources::read(&["README.md", "CONTRIBUTING.md", "docs"], &[".md"]);
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path.as_str(), anchors(text))).collect();
    let (mut seen, mut broken) = (0, Vec::new());
    for (path, text) in &pages {
        for (number, line) in lines(text) {
            for link in links(line) {
                seen += 1;
                let (file, place) = link.split_once('#').unwrap_or((link, ""));
                let folder = Path::new(path).parent().expect("a file is in a folder");
                let file = if file.is_empty() { PathBuf::from(path) } else { normal(&folder.join(file)) };
                let known = anchors.get(file.to_str().unwrap_or_default());
                let there = root.join(&file).exists();
                if !there || !place.is_empty() && known.is_some_and(|known| !known.contains(place)) {
                    broken.push(format!("{path}:{number}: {link}"));
                }
            }
        }
    }
    assert!(seen > 300, "{seen} links");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// The pages that `text`, the page at `path`, takes into itself.
fn included(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().expect("a file is in a folder");
    let files = text.split("{{#include ").skip(1).filter_map(|rest| rest.split([':', '}']).next());
    files.map(|file| normal(&folder.join(file)).display().to_string()).collect()
}

/// The most pages of the user's book.
const USER_PAGES: usize = 41;

/// The pages that the `SUMMARY.md` of `folder` lists.
fn listed(folder: &str) -> BTreeSet<String> {
    let summary = brakelight_testkit::sources::read(&[&format!("{folder}/SUMMARY.md")], &[]).remove(0).1;
    let page = |link| normal(&Path::new(folder).join(link)).display().to_string();
    summary.lines().flat_map(links).map(page).collect()
}

#[test]
fn every_page_is_in_one_of_the_two_books() {
    let (user, laboratory) = (listed("docs"), listed("docs/laboratory"));
    let both: Vec<&String> = user.intersection(&laboratory).collect();
    assert_eq!(both, ["docs/laboratory.md"], "the page that leads from one book to the other");
    assert!(user.len() <= USER_PAGES, "the user's book has {} pages; at most {USER_PAGES}", user.len());
    let pages = pages();
    let included: BTreeSet<String> = pages.iter().flat_map(|(path, text)| included(path, text)).collect();
    let missing = pages.iter().map(|(path, _)| path).filter(|path| path.starts_with("docs/"));
    let missing: Vec<&String> = missing
        .filter(|path| ![&user, &laboratory, &included].iter().any(|known| known.contains(*path)))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md and docs/laboratory/SUMMARY.md do not list {missing:?}");
}

/// The abbreviations of `text` outside code: words of three capitals or more.
fn abbreviations(text: &str) -> BTreeSet<String> {
    let lines = lines(text).into_iter().map(|(_, line)| plain(line)).collect::<Vec<_>>().join("\n");
    let words = lines.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let short = |word: &&str| {
        let word = word.trim_end_matches('s');
        word.len() >= 3
            && word.chars().all(|c| !c.is_ascii_lowercase())
            && word.starts_with(char::is_uppercase)
    };
    words.filter(short).map(|word| word.trim_end_matches('s').trim_matches('-').to_string()).collect()
}

#[test]
fn every_abbreviation_of_the_first_pages_is_in_the_glossary() {
    let glossary = brakelight_testkit::sources::read(&["docs/glossary.md"], &[]).remove(0).1;
    let mut missing = BTreeSet::new();
    for (path, text) in pages() {
        let first = ["docs/start.md", "docs/architecture.md", "docs/guides/", "docs/what-is-"];
        if first.iter().any(|start| path.starts_with(start)) {
            let known = |word: &String| glossary.contains(word.as_str()) || EVERYDAY.contains(&word.as_str());
            missing.extend(abbreviations(&text).into_iter().filter(|word| !known(word)));
        }
    }
    assert!(missing.is_empty(), "docs/glossary.md does not have {missing:?}");
}

#[test]
fn every_picture_says_what_it_shows() {
    for (path, text) in pages() {
        for (number, line) in lines(&text) {
            // What stands in code is no picture.
            let shown: String = line.split('`').step_by(2).collect();
            for rest in shown.split("![").skip(1) {
                let described = rest.split_once(']').map_or("", |(words, _)| words);
                assert!(
                    described.split_whitespace().count() >= 3,
                    "{path}:{number}: a picture without words"
                );
            }
        }
    }
}

#[test]
fn the_paper_cites_what_its_bibliography_has() {
    let paper = brakelight_testkit::sources::read(&["docs/paper"], &[".md", ".bib"]);
    let keys = |end: &str, open: &str, stop: char| -> BTreeSet<String> {
        let text = &paper.iter().find(|(path, _)| path.ends_with(end)).expect("a file of the paper").1;
        let parts = text.split(open).skip(1).filter_map(|rest| rest.split_once(stop));
        parts.map(|(key, _)| key.rsplit('{').next().unwrap_or(key).to_string()).collect()
    };
    let (cited, listed) = (keys("/paper.md", "[@", ']'), keys(".bib", "\n@", ','));
    assert_eq!(cited, listed);
}

#[test]
fn words_are_plain_and_spelled_one_way() {
    let mut found = Vec::new();
    for (path, text) in chapters() {
        for (number, line) in lines(&text) {
            for (word, better) in faults(line) {
                found.push(format!("{path}:{number}: `{}`: better is {better}", word.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sentences_can_be_read_at_once() {
    let (mut long, mut hard) = (Vec::new(), Vec::new());
    for (path, text) in chapters() {
        let text = written(&text);
        for (number, paragraph) in paragraphs(&text) {
            for sentence in sentences(&paragraph).iter().filter(|sentence| sentence.len() > LONGEST) {
                long.push(format!("{path}:{number}: {} words: {}", sentence.len(), sentence.join(" ")));
            }
        }
        if let Some(ease) = ease(&text) {
            eprintln!("{ease:5.1}  {path}");
            if ease < EASE {
                hard.push(format!("{path}: {ease:.1}"));
            }
        }
    }
    assert!(long.is_empty(), "sentences of more than {LONGEST} words:\n{}", long.join("\n"));
    assert!(hard.is_empty(), "pages below a reading ease of {EASE}:\n{}", hard.join("\n"));
}

/// The pictures of a page without a caption in italics below them, by line number.
fn without_caption(text: &str) -> Vec<usize> {
    let lines: Vec<(usize, &str)> =
        lines(text).into_iter().filter(|(_, line)| !line.trim().is_empty()).collect();
    let below = lines.iter().skip(1).map(|(_, line)| *line).chain([""]);
    let picture = |line: &str| line.starts_with("![");
    let bare = lines.iter().zip(below).filter(|((_, line), below)| picture(line) && !below.starts_with('*'));
    bare.map(|((number, _), _)| *number).collect()
}

#[test]
fn every_picture_has_a_caption() {
    assert_eq!(without_caption("![a](a.svg)\n\n*See.*\n\n![b](b.svg)\n\nText."), [5]);
    let bare: Vec<String> = pages()
        .iter()
        .flat_map(|(path, text)| without_caption(text).into_iter().map(move |line| format!("{path}:{line}")))
        .collect();
    assert!(bare.is_empty(), "pictures without a caption that says what to see:\n{}", bare.join("\n"));
}

/// Reading ease of the pages at commit 0489e91, before the book was written anew: `git checkout 0489e91 --
/// docs README.md CONTRIBUTING.md` and
/// `cargo test -p brakelight-testkit --test prose sentences -- --nocapture` print them.
const BEFORE: &str = include_str!("ease_before.txt");

/// A table of how easy each page is to read, before and now.
fn eases() -> String {
    let before: BTreeMap<&str, &str> = BEFORE
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .map(|(ease, page)| (page, ease))
        .collect();
    let mut rows: BTreeMap<String, String> =
        before.iter().map(|(page, ease)| (page.to_string(), format!("{ease} | gone or shorter"))).collect();
    for (path, text) in pages() {
        if let Some(ease) = ease(&written(&text)) {
            let before = before.get(path.as_str()).unwrap_or(&"new");
            rows.insert(path, format!("{before} | {ease:.1}"));
        }
    }
    let rows: String = rows.iter().map(|(page, eases)| format!("| {page} | {eases} |\n")).collect();
    format!("| page | at 0489e91 | now |\n|---|---|---|\n{rows}")
}

#[test]
fn the_table_of_reading_ease_is_fresh() {
    brakelight_testkit::part::check("../proofs", "ease", &eases());
}

#[test]
fn messages_are_plain_and_short() {
    let mut sources = brakelight_testkit::sources::read(&["crates"], &[".rs"]);
    sources.retain(|(path, _)| path.contains("/src/") && !path.contains("test"));
    let (mut seen, mut found) = (0, Vec::new());
    for (path, source) in &sources {
        for (number, text) in quoted(source) {
            // Two words say nothing; what has braces of its own, such as SVG, HTML or TOML, is no prose.
            for line in text.lines().filter(|line| line.split_whitespace().count() > 2) {
                seen += 1;
                let code = ["<", "{{", " = ", "| "].iter().any(|mark| line.contains(mark));
                let wrong = if code { Vec::new() } else { wrong_with(line) };
                found.extend(wrong.into_iter().map(|wrong| format!("{path}:{number}: {wrong}")));
            }
        }
    }
    assert!(seen > 1000, "{seen} texts");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn texts_in_quotes_are_found() {
    let source =
        "a('\"', \"one \\\"two\\\"\");\n// \"three\"\nlet b = \"four \\\n    five\";\n#[cfg(test)]\n\"six\"";
    assert_eq!(quoted(source), [(1, "one \"two\"".to_string()), (3, "four five".to_string())]);
    assert_eq!(written("a\n<!-- claims -->\nb\n<!-- end -->\nc"), "a\n\nc");
}

#[test]
fn anchors_abbreviations_and_included_pages_are_found() {
    assert_eq!(anchor("## `a`: [What](x.md) is (b)?"), "a-what-is-b");
    assert_eq!(abbreviations("An RTT, two ACKs, `ABC` and E1."), ["ACK", "RTT"].map(String::from).into());
    assert_eq!(included("docs/a/b.md", "{{#include ../c.md:3:}}"), ["docs/c.md"]);
    assert_eq!(normal(Path::new("docs/a/../b.md")), Path::new("docs/b.md"));
}
