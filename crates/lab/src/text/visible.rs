//! Text of others, made safe to print: no character in it commands the terminal.

use std::borrow::Cow;

use super::STYLES;

/// Returns whether a terminal would obey `c` instead of printing it where it stands: control characters
/// except line feed and tab, and Unicode's invisible characters, among them those that reorder a line
/// (UAX #9) and the tags.
pub fn is_obeyed(c: char) -> bool {
    let invisible = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    invisible || (c.is_control() && c != '\n' && c != '\t')
}

/// Returns whether `text` has a character that a terminal would obey.
fn has_obeyed(text: &str) -> bool {
    // Nearly all text is plain ASCII, and long: bytes side by side, without a branch for each.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    !text.bytes().fold(true, |plain, byte| plain & is_plain(byte)) && text.contains(is_obeyed)
}

/// Returns `text` with every character that a terminal would obey replaced by U+FFFD. Names in files,
/// messages of peers and what errors quote are other people's text: all that is printed passes through here.
pub fn visible(text: &str) -> Cow<'_, str> {
    if has_obeyed(text) {
        text.chars().map(|c| if is_obeyed(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
    } else {
        text.into()
    }
}

/// [`visible`], as one line: a line feed in somebody's text must not begin a line of ours. Tabs become
/// spaces.
pub fn line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    visible(&lines.join(" ").replace('\t', " ")).into_owned()
}

/// [`visible`], with the styles of [`Screen`](super::Screen) kept.
pub fn visible_but_styles(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return visible(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, after) = rest.split_at(at);
        shown += &visible(before);
        match STYLES.iter().find(|style| after.starts_with(**style)) {
            Some(style) => {
                shown += style;
                rest = &after[style.len()..];
            }
            None => {
                shown.push(char::REPLACEMENT_CHARACTER);
                rest = &after[1..];
            }
        }
    }
    (shown + &visible(rest)).into()
}

/// Returns a JSON document with every character that a terminal would obey written as an escape, which reads
/// back as the character.
pub fn escaped(json: &str) -> Cow<'_, str> {
    if !has_obeyed(json) {
        return json.into();
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_obeyed(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
        } else {
            text.push(c);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Screen;

    #[test]
    fn other_peoples_text_is_shown_and_not_obeyed() {
        assert_eq!(visible("plain – text\tü\n"), "plain – text\tü\n");
        assert_eq!(visible("a\x1b[2J\u{7}\r\u{9b}\u{7f}b"), "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}b");
        let reordering = "\u{202e}\u{2066}\u{200f}\u{61c}\u{e0041}\u{feff}";
        assert_eq!(visible(reordering), "\u{fffd}".repeat(6));
        // A peer's reason must not look like a line of the log.
        assert_eq!(line("gone\n[::1]:4433: connected\r\n"), "gone [::1]:4433: connected");
        assert_eq!(line("a\tb"), "a b");
    }

    #[test]
    fn styles_of_our_own_stay_and_no_others() {
        let screen = Screen { width: 80, terminal: true, colour: true };
        let text = format!("{} {}", screen.bold("a\x1b[31mb"), screen.dim("c"));
        assert_eq!(visible_but_styles(&text), "\x1b[1ma\u{fffd}[31mb\x1b[0m \x1b[2mc\x1b[0m");
    }

    #[test]
    fn json_escapes_what_a_terminal_obeys_and_reads_back_the_same() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}ü" });
        let text = escaped(&value.to_string()).into_owned();
        assert!(!text.contains(is_obeyed), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
