//! A headless Chromium, driven over its debugging pipe: commands and events as JSON, each ended by a zero
//! byte.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take: a page of every scheme took more than a minute to draw on a slow machine with
/// four jobs beside it. A browser that hangs must not hang the gate.
const PATIENCE: Duration = Duration::from_secs(240);

/// The browser, its profile thrown away with it.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    profile: PathBuf,
    session: Option<String>,
    last: u64,
    /// What the page complained about: errors, warnings and requests that left the machine.
    pub complaints: Vec<String>,
}

/// The first browser that is installed, under the names distributions give it.
pub fn find() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
    let given = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    given.into_iter().chain(installed).find(|file| file.is_file())
}

impl Browser {
    /// Starts `program` with an empty page.
    pub fn start(program: &Path, scratch: &Path) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let profile = scratch.join(format!("profile-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&profile).unwrap();
        // The pipe is file descriptors 3 and 4; the shell puts them there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/gate/browser"))
            .env("BROWSER", program)
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let messages = listen(child.stdout.take().unwrap());
        let mut browser =
            Browser { child, commands, messages, profile, session: None, last: 0, complaints: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_string());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens `file` in a window of `width` by `height` pixels; a phone's has touch instead of a mouse.
    pub fn open(&mut self, file: &Path, width: u32, height: u32, phone: bool) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": if phone { 2 } else { 1 }, "mobile": phone });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": phone }));
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        self.until("document.documentElement?.dataset.ready === 'yes'");
    }

    /// Shows the page as someone with `scheme` (`dark`, `light`) in their settings would see it.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// The value of a JavaScript expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let arguments = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", arguments);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until `expression` is true.
    pub fn until(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(begin.elapsed() < PATIENCE, "never came true: {expression}; {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Drags the mouse.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let mut mouse = |kind: &str, (x, y): (f64, f64), buttons: u32| {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        };
        mouse("mouseMoved", from, 0);
        mouse("mousePressed", from, 1);
        for step in 1..=5 {
            let share = f64::from(step) / 5.0;
            mouse("mouseMoved", (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share), 1);
        }
        mouse("mouseReleased", to, 0);
    }

    /// A picture of the whole page.
    pub fn picture(&mut self, file: &Path) {
        let answer =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        std::fs::write(file, decode(answer["data"].as_str().unwrap())).unwrap();
    }

    /// Prints the page to a PDF file, in the size that its style asks for; returns the number of pages.
    pub fn print(&mut self, file: &Path) -> usize {
        let arguments = json!({ "preferCSSPageSize": true, "printBackground": true });
        let answer = self.call("Page.printToPDF", arguments);
        let bytes = decode(answer["data"].as_str().unwrap());
        std::fs::write(file, &bytes).unwrap();
        // Chromium writes the objects of pages as plain text.
        let text = String::from_utf8_lossy(&bytes);
        text.matches("/Type /Page\n").count()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut command = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        write!(self.commands, "{command}\0")
            .and_then(|()| self.commands.flush())
            .expect("the browser listens");
        loop {
            let message = self
                .messages
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("the browser did not answer {method}: {error}"));
            if message["id"] == json!(self.last) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    /// Keeps an event if it is a complaint.
    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let complaint = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                matches!(parameters["type"].as_str(), Some("error" | "warning"))
            }
            Some("Log.entryAdded") => {
                matches!(parameters["entry"]["level"].as_str(), Some("error" | "warning"))
            }
            Some("Network.requestWillBeSent") => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                !(url.starts_with("file:") || url.starts_with("data:") || url.starts_with("blob:"))
            }
            _ => false,
        };
        if complaint {
            self.complaints.push(event.to_string());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({ "id": 0, "method": "Browser.close" });
        let _ = write!(self.commands, "{close}\0").and_then(|()| self.commands.flush());
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn listen(stream: ChildStdout) -> Receiver<Value> {
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        while stream.read_until(0, &mut bytes).is_ok_and(|count| count > 0) {
            bytes.pop();
            let Ok(message) = serde_json::from_slice(&bytes) else { break };
            bytes.clear();
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    messages
}

/// Base64 as the browser sends it.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("not base64: {letter}"),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
