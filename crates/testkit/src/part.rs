//! Generated parts of a validation page: what stands between `<!-- name -->` and `<!-- end -->` must be what
//! the code says. With `BRAKELIGHT_BLESS=1` in the environment it is rewritten instead.

use std::fs;
use std::path::PathBuf;

fn path(page: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/validation/{page}.md"))
}

/// Compares a part of a page with what it should say.
pub fn check(page: &str, part: &str, content: &str) {
    let path = path(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (open, close) = (format!("<!-- {part} -->\n"), "<!-- end -->");
    let start = text.find(&open).unwrap_or_else(|| panic!("{page}: no part `{part}`")) + open.len();
    let end = start + text[start..].find(close).unwrap_or_else(|| panic!("{page}: `{part}` has no end"));
    if &text[start..end] == content {
        return;
    }
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        fs::write(&path, format!("{}{content}{}", &text[..start], &text[end..])).expect("a writable page");
        return;
    }
    panic!("{page}: the part `{part}` is stale. It should read:\n{content}");
}
