//! A kernel to boot: where it is, its module, its first process, and what it says.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Scratch;

/// Far more than it takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Modules of the kernel that the guest loads, where they are not built in.
pub const MODULES: [&str; 3] = ["veth", "sch_tbf", "sch_htb"];

/// A kernel with its headers and modules.
pub struct Kernel {
    /// As `uname -r` says.
    pub release: String,
    image: PathBuf,
    headers: PathBuf,
    modules: Vec<PathBuf>,
}

impl Kernel {
    /// Returns a machine if all programs that it needs are installed, or an error that names what is missing.
    pub fn find() -> Result<Self, String> {
        for (program, argument, package) in [
            ("qemu-system-x86_64", "--version", "qemu-system-x86"),
            ("make", "--version", "build-essential"),
            ("cc", "--version", "build-essential"),
            ("strip", "--version", "binutils"),
            ("ip", "-V", "iproute2"),
            ("tc", "-V", "iproute2"),
        ] {
            let run =
                Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !run.is_ok_and(|status| status.success()) {
                return Err(format!("no `{program}` (package {package}): `scripts/setup test` installs it"));
            }
        }
        let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kernel");
        let given = std::env::var_os("BRAKELIGHT_KERNEL").map(PathBuf::from);
        let roots = given.map_or_else(|| vec![unpacked, PathBuf::from("/")], |root| vec![root]);
        let mut reasons = Vec::new();
        for root in &roots {
            let Ok(images) = fs::read_dir(root.join("boot")) else {
                reasons.push(format!("no {}", root.join("boot").display()));
                continue;
            };
            for image in images.flatten().map(|entry| entry.path()) {
                let name = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let Some(release) = name.strip_prefix("vmlinuz-") else { continue };
                match Kernel::at(root, &image, release) {
                    Ok(kernel) => return Ok(kernel),
                    Err(reason) => reasons.push(reason),
                }
            }
        }
        Err(format!("no kernel to boot ({}): `scripts/setup test` unpacks one", reasons.join("; ")))
    }

    fn at(root: &Path, image: &Path, release: &str) -> Result<Self, String> {
        let headers = PathBuf::from("/usr/src").join(format!("linux-headers-{release}"));
        if !headers.join("Makefile").exists() {
            return Err(format!("no headers of {release}"));
        }
        let folder = root.join("lib/modules").join(release);
        let built_in = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        let mut modules = Vec::new();
        for name in MODULES {
            if built_in.lines().any(|line| line.ends_with(&format!("/{name}.ko"))) {
                continue;
            }
            let there = ["drivers/net", "net/sched"].map(|part| folder.join("kernel").join(part).join(name));
            let found = there.iter().flat_map(|path| ["ko", "ko.xz"].map(|end| path.with_extension(end)));
            let found = found.into_iter().find(|path| path.exists());
            modules.push(found.ok_or_else(|| format!("no module {name} of {release}"))?);
        }
        Ok(Kernel { release: release.to_string(), image: image.to_path_buf(), headers, modules })
    }

    /// Builds the module, with every warning an error.
    pub fn build(&self, scratch: &Scratch) -> PathBuf {
        let folder = scratch.path("module");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tcp/kmod");
        run(Command::new("make")
            .args(["-s", "-C"])
            .arg(sources)
            .arg("dist")
            .arg(format!("DIST={}", folder.display())));
        run(Command::new("make")
            .args(["-s", "KCFLAGS=-Werror", "W=1"])
            .arg(format!("KDIR={}", self.headers.display()))
            .current_dir(&folder));
        folder.join("sch_abc.ko")
    }

    /// Boots it with the test `name` of this file as its first process; what it says until it powers off.
    pub fn boot(&self, scratch: &Scratch, module: &Path, name: &str) -> String {
        let mut archive = Archive::default();
        let stripped = scratch.path("stripped");
        let this = std::env::current_exe().unwrap();
        for (inside, program) in [
            ("test", this.as_path()),
            ("bin/brakelight", Path::new(env!("CARGO_BIN_EXE_brakelight"))),
            ("bin/ip", &found("ip")),
            ("bin/tc", &found("tc")),
        ] {
            run(Command::new("strip").arg("-o").arg(&stripped).arg(program));
            archive.file(inside, &fs::read(&stripped).unwrap());
            for library in libraries(program) {
                archive.file(library.to_str().unwrap(), &fs::read(&library).unwrap());
            }
        }
        run(Command::new("strip").args(["--strip-debug", "-o"]).arg(&stripped).arg(module));
        archive.file("modules/sch_abc", &fs::read(&stripped).unwrap());
        for path in &self.modules {
            let mut contents = fs::read(path).unwrap();
            if path.extension().is_some_and(|end| end == "xz") {
                contents = Command::new("xz").arg("-dc").arg(path).output().unwrap().stdout;
            }
            let name = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
            archive.file(&format!("modules/{name}"), &contents);
        }
        for folder in ["proc", "sys", "dev", "run", "tmp", "var/run"] {
            archive.folder(folder);
        }
        let initial = scratch.write("initial.cpio", archive.end());
        let words = format!(
            "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on rdinit=/test -- {name} --exact --ignored --nocapture"
        );
        let mut machine = Command::new("qemu-system-x86_64");
        machine
            .args(["-M", "pc", "-accel", "tcg", "-icount", "shift=0,sleep=off", "-m", "512"])
            .args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-kernel"])
            .arg(&self.image)
            .arg("-initrd")
            .arg(initial)
            .args(["-append", &words]);
        said(machine)
    }
}

fn said(mut machine: Command) -> String {
    let mut child =
        machine.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).replace('\r', "")
    });
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    reader.join().unwrap()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
}

fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.exists()).unwrap()
}

/// The shared libraries that a program needs, its loader among them.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// An archive of the kind that a kernel unpacks into its first file system: cpio, `newc`.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    there: BTreeSet<String>,
}

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize,
        // check
        let length = |bytes: usize| u32::try_from(bytes).unwrap();
        let fields =
            [self.entries, mode, 0, 0, 1, 0, length(contents.len()), 0, 0, 0, 0, length(name.len() + 1), 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// A folder with all above it, once.
    fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || !self.there.insert(path.to_string()) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.entry(path, 0o040_755, &[]);
    }

    /// A program or other file, once.
    fn file(&mut self, path: &str, contents: &[u8]) {
        let path = path.trim_matches('/');
        if !self.there.insert(path.to_string()) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.entry(path, 0o100_755, contents);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}
