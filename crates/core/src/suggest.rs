//! The name that somebody may have meant who gave one that does not exist.

use alloc::vec::Vec;

/// Returns the one of `known` that `given` is most like: the one with the fewest letters that are missing,
/// too many, another, or swapped with the next, if these are at most a third of the letters. Capitals are the
/// same.
///
/// ```
/// use brakelight_core::suggest::nearest;
///
/// assert_eq!(nearest("cubik", ["abc", "cubic", "bbr"]), Some("cubic"));
/// assert_eq!(nearest("torrent", ["abc", "cubic", "bbr"]), None);
/// ```
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: Vec<char> = given.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    let letters = given.len();
    let most = (letters / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(&given, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .filter(|(edits, name)| *edits <= most && *edits < letters && !name.is_empty())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Returns those of `known` that `given` is most like, the nearest first: at most `most`, whatever the
/// distance.
pub fn nearest_few<'a>(given: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let given: Vec<char> = given.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    let mut names: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (distance(&given, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .collect();
    // Stable, so that equally distant names keep their order.
    names.sort_by_key(|(edits, _)| *edits);
    names.into_iter().take(most).map(|(_, name)| name).collect()
}

/// Nobody means a name by what is longer.
const LONGEST: usize = 60;

/// The letters to insert, remove, replace or swap with the next to make `to` of `from`: the distance of
/// optimal string alignment.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.iter().enumerate() {
        let mut row = alloc::vec![i + 1];
        for (j, other) in to.iter().enumerate() {
            let mut edits = (last[j] + usize::from(letter != other)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == to[j - 1] && from[i - 1] == *other {
                edits = edits.min(before[j - 1] + 1);
            }
            row.push(edits);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[to.len()]
}

/// A name in backquotes, as part of a message that a name is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DidYouMean<'a>(pub Option<&'a str>);

impl<'a> DidYouMean<'a> {
    /// Returns what `given` may have meant in a list with commas between.
    pub fn of_list(given: &str, known: &'a str) -> Self {
        DidYouMean(nearest(given, known.split(", ").map(|name| name.trim_matches('`'))))
    }
}

/// Nothing, or a question that begins with a space.
impl core::fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(name) => write!(f, " (did you mean `{name}`?)"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        let edits = |from: &str, to: &str| {
            distance(&from.chars().collect::<Vec<_>>(), &to.chars().collect::<Vec<_>>())
        };
        assert_eq!(edits("cubic", "cubic"), 0);
        assert_eq!(edits("cubik", "cubic"), 1);
        assert_eq!(edits("cubci", "cubic"), 1);
        assert_eq!(edits("cbic", "cubic"), 1);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("droptail", "dualpi2"), 6);
    }

    #[test]
    fn what_is_meant_is_near() {
        let known = ["abc", "bbr", "bbr1", "copa", "cubic", "lte-driving"];
        for (given, meant) in [
            ("Cubik", Some("cubic")),
            ("BBR", Some("bbr")),
            ("lte_driving", Some("lte-driving")),
            ("ltedriving", Some("lte-driving")),
            ("copa2", Some("copa")),
            ("abd", Some("abc")),
            ("x", None),
            ("", None),
            ("vegas", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
        assert_eq!(nearest(&"a".repeat(100_000), known), None);
        assert_eq!(nearest_few("BBR2", known, 2), ["bbr", "bbr1"]);
        assert_eq!(nearest_few("x", known, 9).len(), known.len());
        assert_eq!(DidYouMean::of_list("pei", "`pie`, `red`"), DidYouMean(Some("pie")));
    }
}
