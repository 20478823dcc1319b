//! Text from outside must not reach a terminal as commands to it: neither control characters nor those that
//! reorder a line.

mod support;

use support::{Scratch, TWO_FLOWS, ok, text};

/// Clears the screen, rings, turns the rest of the line around, and does so by C1 control and DEL too.
const HOSTILE: &str = r"\u001b[2J\u0007\u202e\u2066\u009b\u007f\u200b";

/// Whether a terminal prints every character of `text` where it stands.
fn plain(text: &str) -> bool {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    !text.contains(obeyed)
}

#[test]
fn names_of_a_scenario_are_shown_without_what_a_terminal_obeys() {
    let scratch = Scratch::new("terminal-names");
    // Links and flows have plain names or are refused; what a scenario is called is its author's.
    let hostile = TWO_FLOWS.replacen("two flows", &format!("two flows{HOSTILE}"), 1);
    scratch.write("hostile.toml", hostile.replace("10s", "2s").replace("4s", "1s"));
    for format in ["table", "csv", "json"] {
        let output = scratch.brakelight(&["run", "hostile.toml", "--format", format]);
        let shown = ok(&output);
        assert!(shown.contains("two flows"), "{format}: {shown:?}");
        assert!(plain(&shown), "{format}: {shown:?}");
        assert!(plain(&text(&output.stderr)), "{format}: {:?}", text(&output.stderr));
        if format == "json" {
            let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
            let name = format!("{}", document["runs"][0]["scheme"]);
            assert!(name.contains('\u{202e}'), "JSON keeps what it escapes: {name:?}");
        }
    }
}

#[test]
fn errors_that_quote_input_are_shown_without_what_a_terminal_obeys() {
    let scratch = Scratch::new("terminal-errors");
    scratch.write("key.toml", format!("\"na{HOSTILE}me\" = 1\n"));
    scratch.write("words.csv", "start_s,mbps\n0,\u{202e}fast\u{1b}[2J\u{9b}\n");
    let name = "\u{202e}\u{1b}[2Jgone.toml";
    for arguments in [
        &["run", "key.toml"][..],
        &["run", name],
        &["trace", "show", name],
        &["trace", "convert", "words.csv"],
        &["compare", "--schemes", "cu\u{202e}bik\u{1b}[2J"],
        &["list", "\u{202e}\u{1b}[2J"],
        &["perf", "127.0.0.1:4433", "--pin", "\u{2066}\u{7}"],
    ] {
        let output = scratch.brakelight(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said:?}");
        assert!(plain(&said) && said.lines().count() == 1, "{arguments:?}: {said:?}");
    }
}
