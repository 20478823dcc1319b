//! The catalogue of public recordings: where they lie, under which licence, what to cite, how they become
//! traces. None comes with the program.

use std::path::{Path, PathBuf};

use brakelight_core::suggest::{DidYouMean, nearest};
use brakelight_core::units::Bytes;
use serde::{Deserialize, Serialize};

use super::convert::{ConvertError, ConvertOptions, Format, Selection, convert, delays};
use super::input::{self, gzip};
use super::recording::{About, Recording};

/// The catalogue that comes with the program, as TOML.
pub const CATALOGUE: &str = include_str!("../traces/catalogue.toml");

/// The environment variable that names the folder of fetched recordings.
pub const CACHE_VARIABLE: &str = "BRAKELIGHT_CACHE";

/// A list of recordings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The recordings.
    #[serde(rename = "entry")]
    pub entries: Vec<CatalogueEntry>,
}

/// A recording of the catalogue.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueEntry {
    /// By this name it is fetched, and is a trace afterwards.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// What kind of link it is of.
    pub technology: Option<String>,
    /// Who ran the network.
    pub operator: Option<String>,
    /// Where it was recorded, as a class.
    pub place: Option<String>,
    /// The licence under which it is published.
    pub licence: String,
    /// What to cite.
    pub citation: String,
    /// The page of the data set.
    pub page: String,
    /// The file of the capacity, towards the user unless it says otherwise.
    pub capacity: Option<CatalogueFile>,
    /// The file of the capacity from the user.
    pub up: Option<CatalogueFile>,
    /// The file of one-way delays.
    pub delay: Option<CatalogueFile>,
    /// What to do where the data set is no single file.
    pub by_hand: Option<String>,
}

/// A file of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueFile {
    /// Its address, `http` or `https`.
    pub url: String,
    /// Its SHA-256 in hexadecimal, if it is known.
    pub sha256: Option<String>,
    /// Its format, as `trace convert --from` names it.
    pub from: Option<String>,
    /// The direction to take, as `--direction` names it.
    pub direction: Option<String>,
    /// The unit of its rates, as `--unit` names it.
    pub unit: Option<String>,
    /// The column of its rates, as `--column` names it.
    pub column: Option<String>,
}

/// Why a catalogue is refused, or a recording was not found in it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// It cannot be read.
    #[error("the catalogue cannot be read: {0}")]
    Toml(String),
    /// A name that would not be a file's.
    #[error("`{0}` is not a name: valid are letters, digits, `-`, `_` and `.`, a letter or digit first")]
    Name(String),
    /// There is no entry of this name.
    #[error("the catalogue has no `{name}`{}: `brakelight trace fetch` lists what there is", DidYouMean(meant.as_deref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        meant: Option<String>,
    },
    /// An option of a conversion is not right.
    #[error("`{name}`: {problem}")]
    Option {
        /// The entry.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl Catalogue {
    /// Reads a catalogue.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        let catalogue: Catalogue = toml::from_str(text)
            .map_err(|error| CatalogueError::Toml(error.to_string().trim().replace('\n', "; ")))?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        for entry in &catalogue.entries {
            let starts = entry.name.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !starts || !entry.name.chars().all(fits) {
                return Err(CatalogueError::Name(entry.name.clone()));
            }
            for file in entry.files() {
                file.options()
                    .map_err(|problem| CatalogueError::Option { name: entry.name.clone(), problem })?;
            }
            if entry.capacity.is_none() == entry.by_hand.is_none() {
                let problem = "it needs one of `capacity` and `by_hand`".to_string();
                return Err(CatalogueError::Option { name: entry.name.clone(), problem });
            }
        }
        Ok(catalogue)
    }

    /// Returns the entry of this name.
    pub fn find(&self, name: &str) -> Result<&CatalogueEntry, CatalogueError> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| CatalogueError::Unknown {
            name: name.to_string(),
            meant: nearest(name, self.entries.iter().map(|entry| entry.name.as_str())).map(String::from),
        })
    }
}

impl CatalogueEntry {
    /// Returns its files: capacity, capacity from the user, delay.
    pub fn files(&self) -> impl Iterator<Item = &CatalogueFile> {
        [&self.capacity, &self.up, &self.delay].into_iter().flatten()
    }

    /// Makes the recording of what its files hold, in the order of [`CatalogueEntry::files`], and returns it
    /// with what the user should know about it.
    pub fn convert(&self, contents: &[Vec<u8>]) -> Result<(Recording, Vec<String>), ConvertError> {
        let files: Vec<(&CatalogueFile, &Vec<u8>)> = self.files().zip(contents).collect();
        let of = |wanted: &Option<CatalogueFile>| {
            let wanted = wanted.as_ref()?;
            files.iter().find(|(file, _)| std::ptr::eq(*file, wanted)).copied()
        };
        let (file, bytes) = of(&self.capacity).ok_or(ConvertError::Empty("capacity"))?;
        let mut converted = file.convert(bytes)?;
        if let Some((file, bytes)) = of(&self.up) {
            let mut own = file.convert(bytes)?;
            // A recording has one length.
            let same = own.trace.period() == converted.trace.period();
            if same {
                converted.recording.up.capacity =
                    own.recording.up.capacity.take().or(own.recording.down.capacity.take());
            } else {
                converted.warnings.push(format!(
                    "the directions last {} and {}: the way up was left out",
                    converted.trace.period(),
                    own.trace.period()
                ));
            }
        }
        if let Some((_, bytes)) = of(&self.delay) {
            converted.add_delays(&delays::delays(&unpacked(bytes, |_| input::TABLE)?)?)?;
        }
        let bin_us = converted.recording.about.bin_us;
        converted.recording.about = About {
            name: Some(self.name.clone()),
            operator: self.operator.clone(),
            technology: self.technology.clone(),
            place: self.place.clone(),
            bin_us,
            licence: Some(self.licence.clone()),
            citation: Some(self.citation.clone()),
            source: Some(self.page.clone()),
            ..About::default()
        };
        Ok((converted.recording, [converted.notes, converted.warnings].concat()))
    }
}

impl CatalogueFile {
    fn options(&self) -> Result<(Option<Format>, ConvertOptions), String> {
        let format = self.from.as_deref().map(str::parse).transpose()?;
        let selection = self.direction.as_deref().map(str::parse::<Selection>).transpose()?;
        let unit = self.unit.as_deref().map(str::parse).transpose()?;
        let column = self.column.clone();
        let selection = selection.unwrap_or_default();
        Ok((format, ConvertOptions { selection, unit, column, ..ConvertOptions::default() }))
    }

    fn convert(&self, bytes: &[u8]) -> Result<super::convert::Converted, ConvertError> {
        // They were read before, when the catalogue was.
        let (format, options) = self.options().unwrap_or_default();
        let most = |head: &[u8]| format.unwrap_or_else(|| Format::detect(head)).most();
        let contents = unpacked(bytes, most)?;
        convert(&contents, format.unwrap_or_else(|| Format::detect(&contents)), options)
    }
}

/// The contents of a file, which gzip may have packed.
fn unpacked(bytes: &[u8], most: impl FnOnce(&[u8]) -> Bytes) -> Result<Vec<u8>, ConvertError> {
    gzip::unpacked(bytes.to_vec(), most).map_err(|error| ConvertError::Packed(error.to_string()))
}

/// Returns the folder of fetched recordings: the one that [`CACHE_VARIABLE`] names, else `brakelight/traces`
/// in the user's cache. `None` where the user has no home.
pub fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(CACHE_VARIABLE).or_else(|| {
        let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        Some(caches.join("brakelight").join("traces"))
    })
}

/// Returns where in `folder`, that of fetched recordings, the one called `name` lies.
pub fn kept_at(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.bltrace"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_that_comes_with_the_program_is_right() {
        let catalogue = Catalogue::parse(CATALOGUE).unwrap();
        let names: Vec<&str> = catalogue.entries.iter().map(|entry| entry.name.as_str()).collect();
        for name in [
            "verizon-lte-down",
            "nyc-lte",
            "lumos5g",
            "irish-5g",
            "conext25-5g-sa",
            "starlink-autobahn",
            "leocc-starlink",
            "alcc",
            "zhuge-wifi",
        ] {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
        for file in catalogue.entries.iter().flat_map(CatalogueEntry::files) {
            assert!(file.url.starts_with("https://"), "{}", file.url);
            assert!(file.sha256.as_ref().is_none_or(|hash| hash.len() == 64), "{file:?}");
        }
        let unknown = catalogue.find("irish5g").unwrap_err().to_string();
        assert!(unknown.contains("did you mean `irish-5g`"), "{unknown}");
    }

    const ENTRY: &str =
        "[[entry]]\nname = \"x\"\nabout = \"y\"\nlicence = \"MIT\"\ncitation = \"z\"\npage = \"p\"\n";

    #[test]
    fn what_is_not_right_in_a_catalogue_is_said() {
        let refusal = |text: &str| Catalogue::parse(&format!("{ENTRY}{text}")).unwrap_err().to_string();
        assert_eq!(refusal(""), "`x`: it needs one of `capacity` and `by_hand`");
        let unit = refusal("capacity = { url = \"http://a/b\", unit = \"Mbps2\" }\n");
        assert!(unit.starts_with("`x`: "), "{unit}");
        assert!(refusal("speed = 3\n").starts_with("the catalogue cannot be read: "));
        let name = Catalogue::parse(&ENTRY.replace("\"x\"", "\"../x\"")).unwrap_err().to_string();
        assert!(name.starts_with("`../x` is not a name"), "{name}");
    }

    #[test]
    fn files_become_a_recording_with_what_the_catalogue_says_of_it() {
        let files = "capacity = { url = \"http://a/b\", from = \"csv\" }\n\
                     delay = { url = \"http://a/c\" }\n";
        let catalogue = Catalogue::parse(&format!("{ENTRY}{files}")).unwrap();
        let csv = b"start_s,mbps,end_s\n0,12,0.02\n".to_vec();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &csv).unwrap();
        let packed = packed.finish().unwrap();
        let cut = packed[..packed.len() - 9].to_vec();
        let (recording, notes) = catalogue.entries[0].convert(&[packed, b"12\n13\n".to_vec()]).unwrap();
        let refused = catalogue.entries[0].convert(&[cut, b"12\n".to_vec()]).unwrap_err().to_string();
        assert!(refused.contains("damaged or cut off"), "{refused}");
        assert_eq!(recording.about.licence.as_deref(), Some("MIT"));
        assert_eq!((recording.down.delays.len(), notes.len()), (2, 1));
        assert!(recording.trace(None).is_ok());
    }
}
