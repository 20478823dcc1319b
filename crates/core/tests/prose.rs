//! The book's prose: links that lead somewhere, plain words, one spelling, and sentences that can be read at
//! once. `-- --nocapture` prints how easy each page is to read (Flesch 1948; 60 is plain English, 30 a
//! scientific paper).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The most words of a sentence.
const LONGEST: usize = 35;

/// The least reading ease that a page may have: that of plain English.
const EASE: f64 = 60.0;

/// Records of what was decided before runs and of what came out. Their sentences stay as they were written
/// down, or are written by a command.
const RECORDS: &[&str] = &["docs/reproduction.md", "docs/abc-adaptive.md", "docs/hypotheses.md"];

/// Words and phrases that say too little or sound too grand, each with what to write.
const AVOID: &[(&str, &str)] = &[
    ("aforementioned", "name it again"),
    ("amongst", "among"),
    ("and/or", "or"),
    ("basically", "nothing"),
    ("due to the fact", "because"),
    ("hereby", "nothing"),
    ("how much instead", "the number of bytes"),
    ("in order to", "to"),
    ("it should be noted", "nothing"),
    ("left edge", "`snd_una`"),
    ("leverage", "use"),
    ("needless to say", "nothing"),
    ("nobody's word", "treated as missing"),
    ("obviously", "nothing"),
    ("of course", "nothing"),
    ("prior to", "before"),
    ("so often", "how often, as a number or an interval"),
    ("taken at its word", "not verified"),
    ("thereof", "of it"),
    ("utilize", "use"),
    ("what of ours", "which of our programs"),
    ("what remains of it", "cleanup"),
    ("whilst", "while"),
    ("wide law", "wide distribution"),
    ("with regard to", "about"),
    ("wrong when", "returns `false` if"),
];

/// British spellings, by how a word begins, each with the American one.
const SPELLING: &[(&str, &str)] = &[
    ("analyse", "analyze"),
    ("artefact", "artifact"),
    ("behaviour", "behavior"),
    ("cancelled", "canceled"),
    ("centre", "center"),
    ("colour", "color"),
    ("favour", "favor"),
    ("fibre", "fiber"),
    ("fulfil ", "fulfill"),
    ("grey", "gray"),
    ("honour", "honor"),
    ("initialis", "initializ"),
    ("judgement", "judgment"),
    ("labelled", "labeled"),
    ("learnt", "learned"),
    ("licence", "license"),
    ("metres", "meters"),
    ("millimetre", "millimeter"),
    ("modelled", "modeled"),
    ("modelling", "modeling"),
    ("neighbour", "neighbor"),
    ("normalis", "normaliz"),
    ("optimis", "optimiz"),
    ("organis", "organiz"),
    ("randomis", "randomiz"),
    ("realis", "realiz"),
    ("recognis", "recogniz"),
    ("serialis", "serializ"),
    ("signalled", "signaled"),
    ("summaris", "summariz"),
    ("travell", "travel"),
    ("utilis", "utiliz"),
];

/// Abbreviations that readers bring along: of files, licenses, conferences and machines.
const EVERYDAY: &[&str] =
    &["CPU", "CSV", "GPL", "JAX", "JSON", "LTE", "MIT", "NSDI", "PATH", "PDF", "SDK", "SVG", "USENIX"];

/// A page: its path from the root, and its text.
type Page = (String, String);

fn pages() -> Vec<Page> {
    let mut pages = brakelight_testkit::sources::read(&["README.md", "CONTRIBUTING.md", "docs"], &[".md"]);
    pages.retain(|(path, _)| path != "docs/SUMMARY.md");
    pages
}

/// The pages of which every sentence is looked at.
fn chapters() -> Vec<Page> {
    let mut pages = pages();
    pages.retain(|(path, _)| !RECORDS.contains(&path.as_str()));
    pages
}

/// The lines of a page outside fences and comments, and without what stands before its text, numbered from 1.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let (mut fenced, mut hidden, mut found) = (false, false, Vec::new());
    let mut head = text.starts_with("---\n");
    for (index, line) in text.lines().enumerate() {
        if head {
            head = index == 0 || line != "---";
        } else if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            hidden |= line.contains("<!--");
            if !hidden {
                found.push((index + 1, line));
            }
            hidden &= !line.contains("-->");
        }
    }
    found
}

/// `line` with code as one word and links as what they show.
fn plain(line: &str) -> String {
    let code: String =
        line.split('`').enumerate().map(|(index, part)| if index % 2 == 0 { part } else { "Code" }).collect();
    let mut plain = String::new();
    let mut rest = code.as_str();
    while let Some((before, link)) = rest.split_once("](") {
        plain.push_str(before);
        rest = link.split_once(')').map_or("", |(_, behind)| behind);
    }
    plain.push_str(rest);
    plain.retain(|c| !"[]*!".contains(c));
    plain
}

/// The paragraphs and items of a page, each with the line at which it begins.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    let mut last = 0;
    for (number, line) in lines(text) {
        let line = line.trim();
        let apart =
            line.is_empty() || ["#", "|", "<", "{{", "!["].iter().any(|start| line.starts_with(start));
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = line
            .strip_prefix("- ")
            .or_else(|| line.strip_prefix("* "))
            .or_else(|| if digits.len() < line.len() { digits.strip_prefix(". ") } else { None });
        if apart {
            open = false;
        } else if let (true, None, true) = (open, item, number == last + 1) {
            let (_, paragraph) = found.last_mut().expect("one is open");
            paragraph.push(' ');
            paragraph.push_str(line);
        } else {
            found.push((number, item.unwrap_or(line).into()));
            open = true;
        }
        last = number;
    }
    found
}

/// The sentences of a paragraph, as words.
fn sentences(paragraph: &str) -> Vec<Vec<String>> {
    let plain = plain(paragraph);
    let words: Vec<&str> = plain.split_whitespace().collect();
    let (mut found, mut sentence) = (Vec::new(), Vec::new());
    for (index, word) in words.iter().enumerate() {
        if word.contains(char::is_alphanumeric) {
            sentence.push((*word).to_string());
        }
        let ends = word.trim_end_matches(['"', '\'', ')']).ends_with(['.', '!', '?']);
        let next =
            words.get(index + 1).and_then(|next| next.trim_start_matches(['"', '\'', '(']).chars().next());
        if next.is_none_or(|first| ends && (first.is_uppercase() || first.is_ascii_digit()))
            && !sentence.is_empty()
        {
            found.push(std::mem::take(&mut sentence));
        }
    }
    found
}

/// About how many syllables a word has: groups of vowels, a silent e left out.
fn syllables(word: &str) -> usize {
    let word: String = word.to_lowercase().chars().filter(|c| c.is_alphabetic()).collect();
    let (mut groups, mut before) = (0, false);
    for c in word.chars() {
        let vowel = "aeiouy".contains(c);
        groups += usize::from(vowel && !before);
        before = vowel;
    }
    let silent = word.ends_with('e') && !word.ends_with("le") && groups > 1;
    (groups - usize::from(silent)).max(1)
}

/// The reading ease of a page, or `None` where there is too little to tell.
fn ease(text: &str) -> Option<f64> {
    let sentences: Vec<_> = paragraphs(text).iter().flat_map(|(_, paragraph)| sentences(paragraph)).collect();
    // Code and numbers make a sentence longer, but tell nothing of how long its words are.
    let all = sentences.iter().flatten();
    let words: Vec<_> = all.clone().filter(|w| *w != "Code" && w.contains(char::is_alphabetic)).collect();
    let syllables: usize = words.iter().map(|word| syllables(word)).sum();
    let (length, word) = (all.count() as f64 / sentences.len() as f64, syllables as f64 / words.len() as f64);
    (words.len() > 100).then_some(206.835 - 1.015 * length - 84.6 * word)
}

/// What a line says that others should: what stands there, and what to write.
fn faults(line: &str) -> Vec<(&'static str, &'static str)> {
    let line = plain(line).to_lowercase();
    let begins = |at: usize| !line[..at].ends_with(char::is_alphanumeric);
    let listed = AVOID.iter().chain(SPELLING);
    listed.filter(|(word, _)| line.match_indices(word).any(|(at, _)| begins(at))).copied().collect()
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

#[test]
fn every_page_is_in_the_book() {
    let summary = brakelight_testkit::sources::read(&["docs/SUMMARY.md"], &[]).remove(0).1;
    let mut there: BTreeSet<String> =
        summary.lines().flat_map(links).map(|page| format!("docs/{page}")).collect();
    let pages = pages();
    there.extend(pages.iter().flat_map(|(path, text)| included(path, text)));
    let missing = pages.iter().map(|(path, _)| path).filter(|path| path.starts_with("docs/"));
    let missing: Vec<&String> = missing.filter(|path| !there.contains(*path)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
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

#[test]
fn what_is_long_british_or_grand_is_found() {
    assert_eq!(faults("The behaviour of `colour`"), [("behaviour", "behavior")]);
    assert_eq!(faults("Misbehaviour, prior to use"), [("prior to", "before")]);
    assert_eq!(plain("see [the *page*](a.md#b), `x y`"), "see the page, Code");
    let page = "# A heading\n\nOne two. Three\nfour (v. 5) six.\n\n- Seven\n```sh\neight\n```\n| nine |\n<!-- ten\n-->\n";
    let read: Vec<_> = paragraphs(page)
        .iter()
        .flat_map(|(line, text)| sentences(text).into_iter().map(|s| (*line, s.len())))
        .collect();
    assert_eq!(read, [(3, 2), (3, 3), (3, 2), (6, 1)]);
    assert_eq!(["queue", "packets", "delivered", "time"].map(syllables), [1, 2, 4, 1]);
    let short = "The cat sat on the mat. ".repeat(30);
    assert!(ease(&short).is_some_and(|ease| (110.0..125.0).contains(&ease)), "{:?}", ease(&short));
    assert_eq!(anchor("## `a`: [What](x.md) is (b)?"), "a-what-is-b");
    assert_eq!(abbreviations("An RTT, two ACKs, `ABC` and E1."), ["ACK", "RTT"].map(String::from).into());
    assert_eq!(included("docs/a/b.md", "{{#include ../c.md:3:}}"), ["docs/c.md"]);
    assert_eq!(normal(Path::new("docs/a/../b.md")), Path::new("docs/b.md"));
}
