//! The texts of this repository, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of what others wrote or a program made.
const LEFT_OUT: [&str; 4] = ["vendor", "target", "book", "snapshots"];

/// Returns the files at `places`, which are files, or folders of which everything below is taken that has one
/// of `endings`: path from the repository's root, and text, in the order of the paths. Symbolic links are not
/// followed, because what they lead to is read where it is.
///
/// # Panics
/// If a place or a file in it cannot be read.
pub fn read(places: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for place in places {
        let path = root.join(place);
        if path.is_dir() { collect(&path, endings, &mut paths) } else { paths.push(path) }
    }
    paths.sort();
    let name = |path: &Path| path.strip_prefix(&root).expect("below the root").display().to_string();
    let text =
        |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    paths.iter().map(|path| (name(path), text(path))).collect()
}

fn collect(folder: &Path, endings: &[&str], into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_symlink() {
            continue;
        } else if path.is_dir() {
            if !LEFT_OUT.contains(&name) && !name.starts_with('.') {
                collect(&path, endings, into);
            }
        } else if endings.iter().any(|end| name.ends_with(end)) {
            into.push(path);
        }
    }
}

/// Holds a picture of the book, `docs/images/{name}`, to what the code draws. With `BRAKELIGHT_BLESS=1` in
/// the environment it is written again instead.
///
/// # Panics
/// If the picture is another.
pub fn hold_picture(name: &str, drawn: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        fs::write(&path, drawn).expect("docs/images can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "docs/images/{name} is not what the code draws: BRAKELIGHT_BLESS=1 draws it again"
    );
}
