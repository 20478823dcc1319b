//! How easy words are to read: plain ones, one spelling, and sentences that can be read at once; for tests of
//! pages, help texts and messages.

/// The most words of a sentence.
pub const LONGEST: usize = 35;

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
    ("linearis", "lineariz"),
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

/// Returns what `line` says that others should: what stands there, and what to write.
pub fn faults(line: &str) -> Vec<(&'static str, &'static str)> {
    let line = plain(line).to_lowercase();
    let begins = |at: usize| !line[..at].ends_with(char::is_alphanumeric);
    let listed = AVOID.iter().chain(SPELLING);
    listed.filter(|(word, _)| line.match_indices(word).any(|(at, _)| begins(at))).copied().collect()
}

/// Returns the lines of a page outside fences and comments, and without what stands before its text, numbered
/// from 1.
pub fn lines(text: &str) -> Vec<(usize, &str)> {
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

/// Returns `line` with code as one word and links as what they show.
pub fn plain(line: &str) -> String {
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

/// Returns the paragraphs and items of a page, each with the line at which it begins.
pub fn paragraphs(text: &str) -> Vec<(usize, String)> {
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

/// Returns the sentences of a paragraph, as words.
pub fn sentences(paragraph: &str) -> Vec<Vec<String>> {
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

/// Returns the reading ease of a page (Flesch 1948), or `None` where there is too little to tell.
pub fn ease(text: &str) -> Option<f64> {
    let sentences: Vec<_> = paragraphs(text).iter().flat_map(|(_, paragraph)| sentences(paragraph)).collect();
    // Code and numbers make a sentence longer, but tell nothing of how long its words are.
    let all = sentences.iter().flatten();
    let words: Vec<_> = all.clone().filter(|w| *w != "Code" && w.contains(char::is_alphabetic)).collect();
    let syllables: usize = words.iter().map(|word| syllables(word)).sum();
    let (length, word) = (all.count() as f64 / sentences.len() as f64, syllables as f64 / words.len() as f64);
    (words.len() > 100).then_some(206.835 - 1.015 * length - 84.6 * word)
}

/// Returns what is wrong with a text of one or several sentences: words that [`faults`] finds, and sentences
/// of more than [`LONGEST`] words.
pub fn wrong_with(text: &str) -> Vec<String> {
    let said = faults(text).into_iter();
    let mut found: Vec<String> =
        said.map(|(word, better)| format!("`{}`: better is {better}", word.trim())).collect();
    let long = sentences(text).into_iter().filter(|sentence| sentence.len() > LONGEST);
    found.extend(long.map(|sentence| format!("{} words: {}", sentence.len(), sentence.join(" "))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(wrong_with("The grey one."), ["`grey`: better is gray"]);
        assert_eq!(wrong_with(&"word ".repeat(LONGEST + 1)).len(), 1);
        assert_eq!(wrong_with(&"word ".repeat(LONGEST)), [""; 0]);
    }
}
