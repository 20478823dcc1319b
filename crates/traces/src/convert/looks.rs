//! Files of known programs that hold no capacity in a form that is read: by what they are told, and what to
//! do with them. A refusal names them, in the place of the line that no table has.

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// What it is.
    pub what: &'static str,
    /// What to do with it.
    pub advice: &'static str,
}

const UNPACK: &str = "unpack it and convert the file in it";
const EXPORT: &str = "save the table as CSV, with a column of times and one of rates";

/// The first bytes of files that are no text.
const MAGIC: [(&[u8], &str, &str); 20] = [
    (b"\xff\xfe", "text in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "save it as UTF-8"),
    (b"\x28\xb5\x2f\xfd", "a file that zstd packed", UNPACK),
    (b"\xfd7zXZ\0", "a file that xz packed", UNPACK),
    (b"BZh", "a file that bzip2 packed", UNPACK),
    (b"\x1f\x8b", "a file that gzip packed twice, or was cut off", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", UNPACK),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the spreadsheet as CSV"),
    (b"PAR1", "a Parquet file", EXPORT),
    (b"ARROW1", "an Arrow file", EXPORT),
    (b"\x93NUMPY", "a NumPy array", EXPORT),
    (b"\x89HDF", "an HDF5 file", EXPORT),
    (b"MATLAB", "a file of MATLAB", EXPORT),
    (b"SQLite format 3", "a database of SQLite", EXPORT),
    (b"%PDF", "a PDF", "it has no numbers to read"),
    (b"\x89PNG", "a picture", "it has no numbers to read"),
    (b"\x7fELF", "a program", "give a file that it wrote"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself", "fetch it with `git lfs pull`"),
    (b"<!DOCTYPE", "a web page", "download the file itself: links of GitHub have `raw` in them"),
    (b"<html", "a web page", "download the file itself: links of GitHub have `raw` in them"),
];

/// How a text begins, in its first line that is not blank.
const BEGINNINGS: [(&str, &str, &str); 10] = [
    ("PING ", "what `ping` prints", "it has delays and no capacity: convert a recording of a busy link"),
    (
        "traceroute to ",
        "what `traceroute` prints",
        "it has delays and no capacity: convert a recording of a busy link",
    ),
    ("Start: ", "what `mtr` prints", "it has delays and no capacity: convert a recording of a busy link"),
    (
        "MIGRATED TCP STREAM",
        "what `netperf` prints",
        "it has one rate and no time: give `netperf -D 0.1`'s as CSV, or use iperf3",
    ),
    ("[[link]]", "a scenario of Brakelight", "run it with `brakelight run`"),
    ("[[flow]]", "a scenario of Brakelight", "run it with `brakelight run`"),
    ("[cellular]", "a recipe of Brakelight", "make its trace with `brakelight trace synth`"),
    ("[measured]", "a recipe of Brakelight", "make its trace with `brakelight trace synth`"),
    (
        "retrieving speedtest.net",
        "what `speedtest-cli` prints",
        "it has one rate and no time: record the link with iperf3",
    ),
    (
        "Speedtest by Ookla",
        "what `speedtest` prints",
        "it has one rate and no time: record the link with iperf3",
    ),
];

/// What lies in the text: all of the words, one of its first lines each.
const WORDS: [(&[&str], &str, &str); 7] = [
    (
        &[" IP ", ", length "],
        "what `tcpdump` prints",
        "convert the capture itself, as `tcpdump -w FILE` writes it",
    ),
    (
        &["bytes from ", "icmp_seq="],
        "what `ping` prints",
        "it has delays and no capacity: convert a recording of a busy link",
    ),
    (
        &["cwnd:", "rtt:", "bytes_acked:"],
        "what `ss -i` prints",
        "it tells what one flow did: convert a capture of it, or iperf3's output",
    ),
    (
        &["qdisc ", "Sent ", "backlog "],
        "what `tc -s` prints",
        "it has sums and no times: convert a capture of the link",
    ),
    (
        &["rx:", "tx:", "kbit/s"],
        "what `vnstat -l` prints",
        "write a table with a column of times and one of rates",
    ),
    (&["netem", "rate "], "a script of `tc`", "write its rates as a table: `start_s,mbps`, a line each"),
    (
        &["dl_aggr_prb", "tbs_sum"],
        "a log of a cellular sniffer",
        "name its columns with `--time-column` and `--column`, as CSV",
    ),
];

/// Keys of JSON: all of them are there.
const KEYS: [(&[&str], &str, &str); 11] = [
    (&["_index", "_source"], "what `tshark -T json` prints", "convert the capture itself"),
    (
        &["round_trips", "irtt"],
        "what `irtt` writes",
        "it has delays: give it with `--delay` beside a capacity",
    ),
    (
        &["round_trips", "stats"],
        "what `irtt` writes",
        "it has delays: give it with `--delay` beside a capacity",
    ),
    (
        &["download", "bandwidth", "ping"],
        "a result of Ookla's speedtest",
        "it has one rate and no time: record the link with iperf3",
    ),
    (
        &["download", "upload", "ping"],
        "a result of `speedtest-cli`",
        "it has one rate and no time: record the link with iperf3",
    ),
    (
        &["AppInfo", "ConnectionInfo"],
        "a measurement of ndt7",
        "convert a capture of the test, or iperf3's output",
    ),
    (
        &["log", "entries", "pages"],
        "a HAR of a browser",
        "it tells what one page loaded: convert a capture, or iperf3's output",
    ),
    (&["constants", "logEventTypes"], "a net log of Chrome", "convert the qlog of the server, or a capture"),
    (&["vnstatversion"], "a database of vnStat", "its bins are minutes: record the link with iperf3"),
    (&["scenario", "flows", "links"], "an outcome of Brakelight", "its time series are CSV, with `--out`"),
    (&["qlog_version", "event_fields", "events_count"], "a summary of qlog", "convert the qlog itself"),
];

impl Look {
    /// Returns what a file is, if it is of a program whose files are not read.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let look = |&(_, what, advice): &(_, &'static str, &'static str)| Look { what, advice };
        let bytes = bytes.trim_ascii_start();
        if let Some(found) = MAGIC.iter().find(|(magic, ..)| starts_with(bytes, magic)) {
            return Some(look(&(0, found.1, found.2)));
        }
        if bytes.get(257..262) == Some(b"ustar") {
            return Some(Look { what: "a tar archive", advice: UNPACK });
        }
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
        if head.starts_with(['{', '[']) && !head.starts_with("[[") && !head.starts_with("[ ID]") {
            let has = |key: &&str| head.contains(&format!("\"{key}\""));
            let found = KEYS.iter().find(|(keys, ..)| keys.iter().all(has));
            if let Some(found) = found {
                return Some(look(&(0, found.1, found.2)));
            }
        }
        if let Some(found) = BEGINNINGS.iter().find(|(start, ..)| head.starts_with(start)) {
            return Some(look(&(0, found.1, found.2)));
        }
        let found = WORDS.iter().find(|(words, ..)| words.iter().all(|word| head.contains(word)));
        if let Some(found) = found {
            return Some(look(&(0, found.1, found.2)));
        }
        // Some of a text may be in an older encoding.
        let strange = head.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
        let is_binary = head.contains('\0') || strange * 10 > head.chars().count();
        is_binary.then_some(Look {
            what: "a file of no text that is known",
            advice: "give a capture, or text that a program printed",
        })
    }
}

/// The start of a file in which words are looked for.
const HEAD: usize = 8_192;

fn starts_with(bytes: &[u8], magic: &[u8]) -> bool {
    bytes.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_known_programs_are_named() {
        for (bytes, what) in [
            (&b"PK\x03\x04\x14\0"[..], "a zip archive"),
            (b"\xfd7zXZ\0\0\x04", "xz packed"),
            (b"<!doctype html><html>", "a web page"),
            (b"PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n64 bytes from", "`ping`"),
            (
                b"12:00:00.000001 IP 192.0.2.1.443 > 192.0.2.2.50000: Flags [.], length 1448\n",
                "`tcpdump` prints",
            ),
            (b"[\n  {\n    \"_index\": \"packets\", \"_source\": {}}]", "`tshark -T json`"),
            (b"{\"round_trips\": [], \"stats\": {}}", "irtt"),
            (b"[[link]]\nrate = \"10Mbps\"\n", "a scenario"),
            (b"1\n2\n\0\0\x01", "no text"),
        ] {
            let look = Look::of(bytes).unwrap_or_else(|| panic!("{what}"));
            assert!(look.what.contains(what), "{look:?}");
        }
        for read in [
            &b"1\n2\n3\n"[..],
            b"time,mbps\n0,1\n",
            b"0.2 30\n",
            b"[ ID] Interval\n",
            b"{\"intervals\": []}",
            "\u{feff}temps;d\u{e9}bit_mbps\n0;1\n".as_bytes(),
        ] {
            assert_eq!(Look::of(read), None);
        }
    }
}
