//! The action at the root of the repository, and the workflow of docs/evaluation.md that uses it: read as
//! YAML, checked, and their steps run with commands that only write down what they were asked.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brakelight_lab::evaluate::KITS;
use serde_json::Value;

/// `text` as JSON, or none without Python's yaml.
fn yaml(text: &str) -> Option<Value> {
    let script =
        "import json, sys, yaml; json.dump(yaml.load(sys.stdin, Loader=yaml.BaseLoader), sys.stdout)";
    let started =
        Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut python = started.ok()?;
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    if !output.status.success() {
        brakelight_testkit::skip("the action as YAML", "Python has no module yaml");
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn read(place: &str) -> String {
    brakelight_testkit::sources::read(&[place], &[]).remove(0).1
}

fn action() -> Option<Value> {
    yaml(&read("action.yml"))
}

/// The workflow of docs/evaluation.md.
fn template() -> String {
    let page = read("docs/evaluation.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    rest.split_once("```").unwrap().0.to_string()
}

fn steps(action: &Value) -> &Vec<Value> {
    action["runs"]["steps"].as_array().unwrap()
}

/// The names of inputs that `text` uses.
fn inputs_in(text: &str) -> Vec<String> {
    let rest = text.split("inputs.").skip(1);
    let name = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    rest.map(name).collect()
}

#[test]
fn the_action_declares_what_it_uses_and_nothing_else() {
    let Some(action) = action() else { return };
    let declared: Vec<&String> = action["inputs"].as_object().unwrap().keys().collect();
    let text = read("action.yml");
    let used = inputs_in(&text);
    for name in &declared {
        assert!(used.contains(name), "input `{name}` is not used");
    }
    for name in &used {
        assert!(declared.contains(&name), "input `{name}` is not declared");
    }
    assert!(KITS.contains(&action["inputs"]["kit"]["default"].as_str().unwrap()));
    for step in steps(&action) {
        let name = step["name"].as_str().unwrap();
        let run = step["run"].as_str().unwrap();
        assert_eq!(step["shell"], "bash", "{name}");
        assert!(!run.contains("${{"), "{name}: what others wrote must come by the environment");
        let checked = Command::new("bash").args(["-n", "-c", run]).status().unwrap();
        assert!(checked.success(), "{name}");
    }
}

#[test]
fn the_workflow_of_the_docs_gives_the_action_inputs_that_it_has() {
    let (Some(action), Some(workflow)) = (action(), yaml(&template())) else { return };
    assert!(template().lines().count() <= 24, "a template is short");
    let own = workflow["jobs"]["judge"]["steps"].as_array().unwrap();
    let uses = |step: &&Value| step["uses"].as_str().is_some_and(|uses| uses.contains("/brakelight@"));
    let step = own.iter().find(uses).unwrap();
    for (name, _) in step["with"].as_object().unwrap() {
        assert!(action["inputs"].get(name).is_some(), "`{name}` is no input");
    }
    for (name, input) in action["inputs"].as_object().unwrap() {
        let given = input.get("default").is_some() || step["with"].get(name).is_some();
        assert!(given, "`{name}` has no default, and the workflow does not give it");
    }
    assert_eq!(workflow["permissions"]["pull-requests"], "write", "without it no comment");
    let report = format!("steps.{}.outputs.report", step["id"].as_str().unwrap());
    assert!(template().contains(&report) && action["outputs"].get("report").is_some());
}

/// A runner: a folder with a clone, commands that write down their arguments, and what steps set.
struct Machine {
    root: PathBuf,
    outputs: BTreeMap<String, String>,
}

impl Machine {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("brakelight-action-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for folder in ["bin", "temp", "origin"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let machine = Machine { root, outputs: BTreeMap::new() };
        // The judge: JSON on standard output, or a folder; it fails as the file `status` says.
        machine.program(
            "judge",
            "echo \"$PWD: $*\" >> \"$ROOT/judged\"\n\
             for word in \"$@\"; do [ \"$previous\" = --out ] && mkdir -p \"$word\" && echo '| table |' > \"$word/evaluation.md\"; previous=$word; done\n\
             case \" $* \" in *' --format json '*) [ -e known ] && echo '{}' || exit 2;; esac\n\
             [ ! -e \"$ROOT/status\" ] || exit \"$(cat \"$ROOT/status\")\"\n",
        );
        machine.program(
            "gh",
            "echo \"$*\" >> \"$ROOT/gh\"\n\
             case \"$*\" in *--jq*) cat \"$ROOT/earlier\" 2>/dev/null || true;; esac\n",
        );
        machine
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.root.join("bin").join(name);
        fs::write(&path, format!("#!/bin/bash\n{text}")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A repository with a base commit, whose controller the judge knows if `known`, and a clone of it.
    /// Returns the base.
    fn repository(&self, known: bool) -> String {
        let origin = self.root.join("origin");
        self.git(&origin, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(origin.join(if known { "known" } else { "other" }), "").unwrap();
        self.git(&origin, &["add", "."]);
        self.git(&origin, &["commit", "--quiet", "-m", "base"]);
        self.git(&self.root, &["clone", "--quiet", origin.to_str().unwrap(), "clone"]);
        self.git(&origin, &["rev-parse", "HEAD"])
    }

    fn git(&self, folder: &Path, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    }

    /// Runs a step of the action as a runner does. Returns whether it succeeded.
    fn run(&mut self, action: &Value, name: &str, known: &[(&str, &str)]) -> bool {
        let step = steps(action).iter().find(|step| step["name"] == name).unwrap();
        let value = |text: &str| {
            let Some(inner) = text.strip_prefix("${{ ").and_then(|rest| rest.strip_suffix(" }}")) else {
                return text.to_string();
            };
            let expression = inner.split(" ||").next().unwrap();
            if let Some(output) = expression.strip_prefix("steps.judge.outputs.") {
                return self.outputs.get(output).cloned().unwrap_or_default();
            }
            let given = known.iter().find(|(name, _)| *name == expression);
            let input = expression.strip_prefix("inputs.");
            let default = input.and_then(|input| action["inputs"][input]["default"].as_str());
            given.map(|(_, value)| *value).or(default).unwrap_or_default().to_string()
        };
        let environment = step["env"].as_object().unwrap().iter();
        let environment: Vec<(String, String)> =
            environment.map(|(key, text)| (key.clone(), value(text.as_str().unwrap()))).collect();
        let path = format!("{}:{}", self.root.join("bin").display(), std::env::var("PATH").unwrap());
        let file = |name: &str| self.root.join(name);
        let status = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"].as_str().unwrap()])
            .current_dir(file("clone"))
            .env("PATH", path)
            .env("ROOT", &self.root)
            .env("RUNNER_TEMP", file("temp"))
            .env("GITHUB_OUTPUT", file("outputs"))
            .env("GITHUB_STEP_SUMMARY", file("summary"))
            .env("GITHUB_REPOSITORY", "o/r")
            .envs(environment)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        for line in self.wrote("outputs").lines() {
            let (name, value) = line.split_once('=').unwrap();
            self.outputs.insert(name.to_string(), value.to_string());
        }
        status.success()
    }

    fn wrote(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn a_pull_request_is_judged_against_its_base_and_commented_once() {
    let Some(action) = action() else { return };
    let mut machine = Machine::new("compares");
    let base = machine.repository(true);
    let known = [
        ("inputs.command", "judge -q"),
        ("inputs.schemes", "mine mine:gain=2"),
        ("github.event.pull_request.base.sha", base.as_str()),
        ("github.event.pull_request.number", "7"),
    ];
    for step in ["Judge the base branch", "Judge", "Comment", "Verdict"] {
        assert!(machine.run(&action, step, &known), "{step}");
    }
    let temp = machine.root.join("temp");
    let judged = machine.wrote("judged");
    let lines: Vec<&str> = judged.lines().collect();
    let both = "-q evaluate mine mine:gain=2 --kit rfc9743 --level quick --fail-on regression";
    assert_eq!(lines[0], format!("{}: {both} --format json", temp.join("base").display()));
    let (against, out) = (temp.join("base.json"), temp.join("judged"));
    assert!(lines[1].ends_with(&format!("{both} --against {} --out {}", against.display(), out.display())));
    assert_eq!(machine.wrote("summary"), "| table |\n");
    let comment = machine.wrote("temp/comment.md");
    assert_eq!(comment, "<!-- brakelight evaluate -->\n| table |\n");
    assert!(
        machine.wrote("gh").lines().nth(1).unwrap().starts_with("api --silent repos/o/r/issues/7/comments")
    );
    // The second time its own comment is there.
    fs::write(machine.root.join("earlier"), "42\n").unwrap();
    assert!(machine.run(&action, "Comment", &known));
    let last = machine.wrote("gh");
    assert!(last.lines().last().unwrap().contains("--method PATCH repos/o/r/issues/comments/42"), "{last}");
}

#[test]
fn what_fails_is_commented_and_fails_and_what_the_base_lacks_is_not_compared() {
    let Some(action) = action() else { return };
    let mut machine = Machine::new("fails");
    let base = machine.repository(false);
    let known = [
        ("inputs.command", "judge"),
        ("inputs.schemes", "mine"),
        ("inputs.fail-on", "must"),
        ("github.event.pull_request.base.sha", base.as_str()),
        ("github.event.pull_request.number", "7"),
    ];
    assert!(machine.run(&action, "Judge the base branch", &known));
    fs::write(machine.root.join("status"), "1").unwrap();
    assert!(machine.run(&action, "Judge", &known));
    let judged = machine.wrote("judged");
    let last = judged.lines().last().unwrap();
    assert!(last.contains("--fail-on must --out") && !last.contains("--against"), "{last}");
    assert!(machine.run(&action, "Comment", &known));
    assert!(machine.wrote("temp/comment.md").contains("| table |"));
    assert!(!machine.run(&action, "Verdict", &known));
}
