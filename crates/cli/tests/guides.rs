//! The commands of the guides and of the paper, run as their pages show them, in the order of the book and in
//! one folder.
//!
//! What stands behind the language of a fence says how a block is read:
//!
//! - `sh`: a script, which must succeed.
//! - `console`: commands behind `$ `, and below each what it prints. `...` stands for lines left out.
//! - `file=NAME`: the block is a file, written before what follows is run.
//! - `in=PLACE`: where the block is run, if not in the folder of its page alone; [`PLACES`] has the places.
//! - `until=interrupt`: the last command of a `console` block goes on until it is interrupted, which it is as
//!   soon as it has printed what the page shows.
//! - `needs=REASON`: the block is not run; [`REASONS`] has what may be needed, and `docs/proofs.md` lists
//!   them.
//! - `exit=CODE`: the exit code of the block's only command, where it is not 0.
//!
//! With `BRAKELIGHT_BLESS=1` in the environment the output that pages show is written again.
#![cfg(unix)]

mod support;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::{Scratch, text};

/// What a block may need that a test does not have, and how the test says so.
const REASONS: &[(&str, &str)] = &[
    ("browsers", "it needs two Chromium browsers, and two cores with nothing else to do"),
    ("build", "it builds programs, which takes minutes; the gate builds them elsewhere"),
    ("feature", "it needs a model that was trained before"),
    ("machines", "it needs more than one machine"),
    ("module", "it needs a module for the kernel that runs; the gate tests the module in a virtual machine"),
    ("network", "it loads something from the Internet"),
    ("openwrt", "it needs OpenWrt's build system, or a router with OpenWrt"),
    ("stacks", "it needs the feature `stacks`; `scripts/check heavy` runs it"),
];

/// Where a block may be run.
const PLACES: &[&str] = &[
    // In the repository's root.
    "clone",
    // As any other block. It is in real time, so the numbers of its output are not compared.
    "emulator", // In a network namespace of the test's own with a device `eth0`, by root.
    "netns",
];

/// Languages of blocks that hold no commands.
const SHOWN: &[&str] = &["csv", "json", "python", "rust", "text", "toml"];

/// A fenced block of a page.
#[derive(Debug, Default, PartialEq)]
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    language: String,
    /// What stands behind the language: a key and its value.
    keys: Vec<(String, String)>,
    lines: Vec<String>,
}

impl Block {
    fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A command of a `console` block: its text, and the lines of the block that show its output.
#[derive(Debug, PartialEq)]
struct Shown {
    command: String,
    from: usize,
    to: usize,
}

/// The blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (index, line) in page.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split(',');
                let language = words.next().unwrap_or_default().to_string();
                let keys = words.map(|word| word.split_once('=').unwrap_or((word, "")));
                let keys = keys.map(|(key, value)| (key.to_string(), value.to_string())).collect();
                open = Some((indent, Block { line: index + 1, language, keys, lines: Vec::new() }));
            }
            (Some(_), Some("")) => blocks.extend(open.take().map(|(_, block)| block)),
            (Some((indent, block)), _) => {
                block.lines.push(line.get(*indent..).unwrap_or_default().to_string());
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence without an end: {open:?}");
    blocks
}

/// The commands of a `console` block. A command whose line ends in `\` goes on in the next line.
fn console(block: &Block) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut goes_on = false;
    for (index, line) in block.lines.iter().enumerate() {
        let more = if goes_on { Some(line.as_str()) } else { None };
        match (line.strip_prefix("$ "), more, found.last_mut()) {
            (_, Some(more), Some(last)) => {
                last.command.push('\n');
                last.command.push_str(more);
                (last.from, last.to) = (index + 1, index + 1);
            }
            (Some(command), ..) => {
                found.push(Shown { command: command.into(), from: index + 1, to: index + 1 });
            }
            (None, _, Some(last)) => last.to = index + 1,
            (None, _, None) => panic!("line {}: output before any command", block.line + index + 1),
        }
        let last = found.last().map_or("", |last| last.command.as_str());
        goes_on = last.ends_with('\\') && (goes_on || line.starts_with("$ "));
    }
    found
}

/// What is wrong with how a block is marked.
fn fault(block: &Block) -> Option<String> {
    let command =
        |line: &String| ["brakelight ", "$ ", "# brakelight "].iter().any(|start| line.starts_with(start));
    match block.language.as_str() {
        "sh" | "console" => {}
        language if SHOWN.contains(&language) => {
            return block.lines.iter().any(command).then(|| "commands in a block that is not run".into());
        }
        language => return Some(format!("`{language}` is not a language that a guide uses")),
    }
    if let Some(reason) = block.key("needs")
        && !REASONS.iter().any(|(known, _)| *known == reason)
    {
        return Some(format!("`needs={reason}` is not among the reasons"));
    }
    if let Some(place) = block.key("in")
        && !PLACES.contains(&place)
    {
        return Some(format!("`in={place}` is not among the places"));
    }
    if block.key("until").is_some() {
        let shows =
            block.language == "console" && console(block).last().is_some_and(|last| last.from < last.to);
        if block.key("until") != Some("interrupt") || !shows {
            return Some("`until=interrupt` marks a `console` block whose last command shows output".into());
        }
    }
    let known = ["needs", "exit", "file", "in", "until"];
    let other = block.keys.iter().find(|(key, _)| !known.contains(&key.as_str()));
    other.map(|(key, _)| format!("`{key}` is not a mark of a block"))
}

/// `line` with `#` for every number.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for letter in line.trim_end().chars() {
        let digit = letter.is_ascii_digit() || letter == '.' && text.ends_with('#');
        if !digit {
            text.push(letter);
        } else if !text.ends_with('#') {
            text.push('#');
        }
    }
    text
}

/// The first line of `shown` that `printed` does not have behind the lines before it; `same` is what two
/// equal lines have in common.
fn missing<'a>(shown: &'a [String], printed: &str, same: fn(&str) -> String) -> Option<&'a str> {
    let mut printed = printed.lines().map(same);
    let shown = shown.iter().map(|line| line.trim_end());
    shown
        .filter(|line| !line.is_empty() && *line != "...")
        .find(|line| !printed.any(|other| other == same(line)))
}

/// The pages of the book whose commands are run, in its order, and the README.
fn guides() -> Vec<String> {
    let summary = brakelight_testkit::sources::read(&["docs/SUMMARY.md"], &[]).remove(0).1;
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let pages = links.map(|(link, _)| link);
    let pages = pages.filter(|link| {
        *link == "start.md" || ["guides/", "what-is-"].iter().any(|start| link.starts_with(start))
    });
    let others = ["docs/paper/paper.md", "README.md"].map(String::from);
    pages.map(|page| format!("docs/{page}")).chain(others).collect()
}

/// The blocks of `page` that are run or written. The README is no guide: it shows commands by the dozen, and
/// the output of one.
fn marked(page: &str, text: &str) -> Vec<Block> {
    let mut blocks = blocks(text);
    blocks.retain(|block| page != "README.md" || block.language == "console");
    blocks
}

/// A process with a network namespace, in which there is a device `eth0`, and with a BPF file system of its
/// own.
struct Namespace(Child);

/// What a script in a namespace begins with. There the kernel takes only controllers as the default that
/// every user may choose; a whole machine takes all.
const ALLOWING: &str = r#"sysctl() {
  case $1 in net.ipv4.tcp_congestion_control=*)
    nsenter --net="$OUTSIDE" sh -c 'cd /proc/sys/net/ipv4 && echo "$(cat $0) $1" > $0' \
      tcp_allowed_congestion_control "${1#*=}";;
  esac
  command sysctl "$@"
}
"#;

impl Namespace {
    fn new() -> Option<Self> {
        if !brakelight_testkit::skip::is_root() {
            brakelight_testkit::skip("kernel: commands of the guides", "this is not root");
            return None;
        }
        if !cfg!(feature = "bpf") {
            brakelight_testkit::skip("kernel: commands of the guides", "built without the feature `bpf`");
            return None;
        }
        if let Some(reason) = support::kernel::missing() {
            brakelight_testkit::skip("kernel: commands of the guides", reason);
            return None;
        }
        let script = "mount -t bpf bpf /sys/fs/bpf; ip link add eth0 type veth peer name far; \
                      for device in lo eth0 far; do ip link set $device up; done; echo ready; exec sleep infinity";
        // Names of congestion controls are the whole machine's, so that two such pages wait for each other.
        let lock = std::env::temp_dir().join("brakelight-guides.lock");
        let mut child = Command::new("flock")
            .arg("--no-fork")
            .arg(lock)
            .args(["unshare", "--net", "--mount", "sh", "-euc", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("flock runs");
        let mut said = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut said).expect("a line");
        assert_eq!(said, "ready\n", "no network namespace can be made");
        Some(Namespace(child))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder in which pages are run, with the command on its path.
struct Walk {
    scratch: Scratch,
    path: String,
    /// Where the emulator runs.
    emulator: bool,
    namespace: Option<Namespace>,
    /// What commands printed that take real time and that more than one page shows.
    emulated: RefCell<HashMap<String, (String, String)>>,
}

impl Walk {
    fn new() -> Self {
        let scratch = Scratch::new("guides");
        let bin = scratch.path("bin");
        std::fs::create_dir_all(scratch.path("work")).unwrap();
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_brakelight"), bin.join("brakelight")).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let what = "commands of the guides";
        let emulator = support::world::can_emulate(what) && support::world::has("curl", what);
        Walk { scratch, path, emulator, namespace: None, emulated: RefCell::default() }
    }

    /// Makes the namespace of a page before the first of its blocks that needs it, and takes it away after
    /// the last: meanwhile others wait. `left` are the blocks of the page from the one that comes next.
    fn turn_to(&mut self, left: &[Block]) {
        let needs = |block: &Block| block.key("in") == Some("netns");
        if !left.iter().any(needs) {
            self.namespace = None;
        } else if self.namespace.is_none() && needs(&left[0]) {
            self.namespace = Namespace::new();
        }
    }

    /// Returns whether the place of a block is there.
    fn has(&self, block: &Block) -> bool {
        match block.key("in") {
            Some("emulator") => self.emulator,
            Some("netns") => self.namespace.is_some(),
            _ => true,
        }
    }

    /// The shell that runs `script` in `place`.
    fn shell(&self, script: &str, place: Option<&str>) -> Command {
        let mut command = match (place, &self.namespace) {
            (Some("netns"), Some(Namespace(child))) => {
                let mut command = Command::new("nsenter");
                command.args(["--net", "--mount", "--target", &child.id().to_string(), "sh"]);
                command
            }
            _ => Command::new("sh"),
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = if place == Some("clone") { root } else { self.scratch.path("work") };
        // Entering a namespace with mounts of its own leads to its root folder.
        let before = if place == Some("netns") { ALLOWING } else { "" };
        let script = format!("cd '{}'\n{before}{script}", folder.display());
        command.args(["-euc", &script]);
        command.env("PATH", &self.path).env("LC_ALL", "C.UTF-8").env_remove("BRAKELIGHT_TRACES");
        command.env("OPENWRT", self.scratch.path("openwrt"));
        command.env("OUTSIDE", format!("/proc/{}/ns/net", std::process::id()));
        command.env("BRAKELIGHT_CACHE", self.scratch.path("cache"));
        command
    }

    /// Runs a block of `page`, and returns its lines with the output as it is today.
    fn block(&self, page: &str, block: &Block) -> Vec<String> {
        let wanted = block.key("exit").map_or(0, |code| code.parse().expect("an exit code"));
        let place = block.key("in");
        let check = |script: &str| {
            let output = self.shell(script, place).output().expect("sh runs");
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(wanted), "{page}:{}: {script}\n{out}{err}", block.line);
            (out, err)
        };
        let once = |script: &str| {
            if let Some(printed) = self.emulated.borrow().get(script) {
                return printed.clone();
            }
            let printed = check(script);
            self.emulated.borrow_mut().insert(script.to_string(), printed.clone());
            printed
        };
        let same = if place.is_some() { without_numbers } else { |line: &str| line.trim_end().to_string() };
        if block.language == "sh" {
            check(&block.text());
            return block.lines.clone();
        }
        let (mut fresh, mut copied) = (Vec::new(), 0);
        let commands = console(block);
        for (number, shown) in commands.iter().enumerate() {
            let lines = &block.lines[shown.from..shown.to];
            let is_last = number + 1 == commands.len();
            let (out, err) = if is_last && block.key("until") == Some("interrupt") {
                // The shell becomes the command, so that the command gets the signal.
                let shell = self.shell(&format!("exec {}", shown.command), place);
                let said = interrupted(shell, PATIENCE, |said| missing(lines, said, same).is_none());
                let said =
                    said.unwrap_or_else(|why| panic!("{page}:{}: {}: {why}", block.line, shown.command));
                (said, String::new())
            } else if place == Some("emulator") {
                once(&shown.command)
            } else {
                check(&shown.command)
            };
            fresh.extend_from_slice(&block.lines[copied..shown.from]);
            copied = shown.to;
            if missing(lines, &format!("{out}\n{err}"), same).is_none() {
                fresh.extend_from_slice(lines);
            } else {
                let printed = if out.trim().is_empty() { err } else { out };
                fresh.extend(printed.trim_end().lines().map(|line| line.trim_end().to_string()));
            }
        }
        fresh.extend_from_slice(&block.lines[copied..]);
        fresh
    }
}

/// How long a command that goes on may take until it has printed what its page shows, and then to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command that goes on until it is interrupted, as a user does: once `enough` is content with what it
/// has printed. It must go on until then, and end well, or as interrupted ones do, with 130. Returns what it
/// printed.
fn interrupted(
    mut command: Command,
    patience: Duration,
    enough: impl Fn(&str) -> bool,
) -> Result<String, String> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let said = Arc::new(Mutex::new(String::new()));
    let pipes: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().expect("a pipe")), Box::new(child.stderr.take().expect("a pipe"))];
    for pipe in pipes {
        let said = said.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                *said.lock().unwrap() += &format!("{line}\n");
            }
        });
    }
    let heard = || said.lock().unwrap().clone();
    let wait = |child: &mut Child, done: &dyn Fn() -> bool| {
        let begin = Instant::now();
        loop {
            let ended = child.try_wait().expect("it is ours");
            if ended.is_some() || done() || begin.elapsed() > patience {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let gave_up = wait(&mut child, &|| enough(&heard()));
    let result = match gave_up {
        Some(status) => Err(format!("it ended by itself with {status}")),
        None if !enough(&heard()) => Err("it did not print what the page shows".to_string()),
        None => {
            let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            assert!(told.expect("kill runs").success(), "it cannot be interrupted");
            match wait(&mut child, &|| false) {
                Some(status) if matches!(status.code(), Some(0 | 130)) => Ok(heard()),
                Some(status) => Err(format!("interrupted, it ended with {status}")),
                None => Err("interrupted, it went on".to_string()),
            }
        }
    };
    // One that has ended already is only waited for.
    let _ = child.kill();
    let _ = child.wait();
    result.map_err(|why| format!("{why}:\n{}", heard()))
}

#[test]
fn a_command_that_is_interrupted_must_have_printed_what_its_page_shows() {
    let run = |script: &str| {
        // A shell keeps ignoring what was ignored when it began, as in a job in the background.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]);
        let patience = Duration::from_secs(if script.contains("ready") { 60 } else { 1 });
        interrupted(command, patience, |said| said.contains("ready\n"))
    };
    let goes_on = "while :; do sleep 0.05; done";
    assert_eq!(run(&format!("trap 'exit 130' INT; echo ready; {goes_on}")), Ok("ready\n".to_string()));
    for (script, fault) in [
        ("exec sleep 600", "did not print"),
        ("exit 130", "ended by itself"),
        (&format!("trap 'exit 3' INT; echo ready; {goes_on}"), "ended with"),
    ] {
        let why = run(script).expect_err(script);
        assert!(why.contains(fault), "{script}: {why}");
    }
}

/// The page with the lines of `block` replaced by `fresh`.
fn replaced(page: &str, block: &Block, fresh: &[String]) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let fence = lines[block.line - 1];
    let indent = &fence[..fence.len() - fence.trim_start().len()];
    let fresh = fresh.iter().map(|line| format!("{indent}{line}"));
    let before = lines[..block.line].iter().map(ToString::to_string);
    let after = lines[block.line + block.lines.len()..].iter().map(ToString::to_string);
    before.chain(fresh).chain(after).map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn every_command_of_the_guides_does_what_its_page_shows() {
    let (mut walk, begun) = (Walk::new(), Instant::now());
    let bless = std::env::var_os("BRAKELIGHT_BLESS").is_some();
    let (mut run, mut stale, mut left_out) = (0, Vec::new(), String::new());
    for page in guides() {
        let mut text = brakelight_testkit::sources::read(&[&page], &[]).remove(0).1;
        // From the end, so that a block with other lines moves none that is still to be replaced.
        let mut changed = Vec::new();
        let blocks = marked(&page, &text);
        for (index, block) in blocks.iter().enumerate() {
            walk.turn_to(&blocks[index..]);
            if let Some(fault) = fault(block) {
                panic!("{page}:{}: {fault}", block.line);
            }
            if let Some(name) = block.key("file") {
                walk.scratch.write(&format!("work/{name}"), block.text());
            } else if let Some(reason) = block.key("needs") {
                let (_, words) = REASONS.iter().find(|(known, _)| *known == reason).expect("a known reason");
                let first = block.lines.first().expect("a block has a command");
                let first = first.trim_start_matches("$ ").split("  ").next().unwrap_or_default();
                let link = page.strip_prefix("docs/").unwrap_or(&page);
                left_out += &format!("| [{link}]({link}) | `{first}` | {words} |\n");
            } else if !walk.has(block) {
                // Why is said already.
            } else if !SHOWN.contains(&block.language.as_str()) {
                let fresh = walk.block(&page, block);
                run += if block.language == "sh" { 1 } else { console(block).len() };
                if fresh != block.lines {
                    changed.push((block, fresh));
                }
            }
        }
        for (block, fresh) in changed.iter().rev() {
            stale.push(format!("{page}:{}: it prints today\n{}", block.line, fresh.join("\n")));
            text = replaced(&text, block, fresh);
        }
        if bless && !changed.is_empty() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&page);
            std::fs::write(path, &text).expect("a page can be written");
        }
    }
    let table = format!("| page | first command | why it is not run |\n|---|---|---|\n{left_out}");
    brakelight_testkit::part::check("../proofs", "not-run", &table);
    eprintln!("{run} commands were run in {:.1} s", begun.elapsed().as_secs_f64());
    assert!(run > 20, "only {run} commands were run");
    assert!(bless || stale.is_empty(), "BRAKELIGHT_BLESS=1 writes what differs:\n{}", stale.join("\n"));
}

#[test]
fn blocks_commands_and_output_are_told_apart() {
    let page = "a\n  ```console,exit=1\n  $ one \\\n    two\n  out\n  $ three\n  ```\n```toml,file=a.toml\nb = 1\n```\n";
    let blocks = blocks(page);
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[0].line, blocks[0].key("exit")), (2, Some("1")));
    let shown = |command: &str, from, to| Shown { command: command.into(), from, to };
    assert_eq!(console(&blocks[0]), [shown("one \\\n  two", 2, 3), shown("three", 4, 4)]);
    assert_eq!((blocks[1].key("file"), blocks[1].text()), (Some("a.toml"), "b = 1\n".to_string()));
    let fresh = ["$ one \\", "  two", "new", "$ three"].map(String::from);
    assert_eq!(replaced(page, &blocks[0], &fresh), page.replace("out", "new"));
}

#[test]
fn output_that_differs_and_wrong_marks_are_found() {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let exact = |line: &str| line.trim_end().to_string();
    assert_eq!(missing(&lines("a\n...\nc"), "a  \nb\nc\nd", exact), None);
    assert_eq!(missing(&lines("c\na"), "a\nb\nc", exact), Some("a"));
    assert_eq!(missing(&lines("4.61 Mbit/s for 10 s"), "14.7 Mbit/s for 9.9 s", without_numbers), None);
    assert_eq!(missing(&lines("4.61 Mbit/s"), "4.61 kbit/s", without_numbers), Some("4.61 Mbit/s"));
    let fault = |page: &str| fault(&blocks(page)[0]);
    assert_eq!(fault("```sh,needs=network\nls\n```\n"), None);
    assert_eq!(fault("```console,in=netns,until=interrupt\n$ ls\nfile\n```\n"), None);
    assert_eq!(fault("```text\nls\n```\n"), None);
    for page in [
        "```sh,needs=luck\nls\n```\n",
        "```\nls\n```\n",
        "```sh,need=network\nls\n```\n",
        "```sh,in=bed\nls\n```\n",
        "```sh,until=interrupt\nls\n```\n",
        "```console,until=interrupt\n$ ls\n```\n",
        "```console,until=rain\n$ ls\nfile\n```\n",
        "```text\n$ ls\n```\n",
    ] {
        assert!(fault(page).is_some(), "{page}");
    }
}
