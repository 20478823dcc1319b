use std::cell::Cell;

use brakelight_scenario::trace::catalogue::Catalogue;

use super::*;

/// A network of one file.
struct Network {
    contents: &'static [u8],
    asked: Cell<u32>,
}

impl Download for Network {
    fn get(&self, url: &str, _: u64) -> Result<Vec<u8>, String> {
        self.asked.set(self.asked.get() + 1);
        if url.ends_with("/missing") {
            Err("http status: 404".to_string())
        } else {
            Ok(self.contents.to_vec())
        }
    }
}

fn network(contents: &'static [u8]) -> Network {
    Network { contents, asked: Cell::new(0) }
}

fn entry(file: &str) -> CatalogueEntry {
    let text = format!(
        "[[entry]]\nname = \"x\"\nabout = \"y\"\nlicence = \"MIT\"\ncitation = \"z\"\npage = \"https://p\"\n{file}\n"
    );
    Catalogue::parse(&text).unwrap().entries.remove(0)
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("brakelight-fetch-{name}-{}", std::process::id()))
}

#[test]
fn a_recording_is_downloaded_once_and_kept() {
    let folder = folder("once");
    let entry = entry("capacity = { url = \"http://a/x\" }");
    let network = network(b"1\n2\n3\n");
    let first = fetch(&entry, &folder, &network, false).unwrap();
    let second = fetch(&entry, &folder, &network, false).unwrap();
    let third = fetch(&entry, &folder, &network, true).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!((first.was_there, second.was_there, third.was_there), (false, true, false));
    assert_eq!((network.asked.get(), &first.trace), (2, &second.trace));
    assert!(first.notes[0].contains("has no hash of this file"), "{:?}", first.notes);
}

#[test]
fn what_cannot_be_fetched_leaves_nothing_and_is_said_in_a_line() {
    let folder = folder("refused");
    let refusal = |file: &str, contents| {
        fetch(&entry(file), &folder, &network(contents), false).unwrap_err().to_string()
    };
    let hash = "0".repeat(64);
    let changed = refusal(&format!("capacity = {{ url = \"http://a/x\", sha256 = \"{hash}\" }}"), b"1\n");
    assert!(
        changed.starts_with("http://a/x: the file has changed: its SHA-256 is 4355a46b19d3"),
        "{changed}"
    );
    assert!(changed.ends_with(&format!("the catalogue says {hash}")), "{changed}");
    assert_eq!(
        refusal("capacity = { url = \"http://a/missing\" }", b""),
        "http://a/missing: http status: 404"
    );
    assert_eq!(
        refusal("capacity = { url = \"file:///etc/passwd\" }", b""),
        "file:///etc/passwd: valid are addresses that begin with `https://` or `http://`"
    );
    assert!(refusal("capacity = { url = \"http://a/x\" }", b"two\n").starts_with("`x`: line 1: "));
    assert_eq!(
        refusal("by_hand = \"ask them\"", b""),
        "`x` cannot be fetched as a file. From https://p: ask them"
    );
    assert!(!folder.exists());
}
