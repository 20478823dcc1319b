//! What to deploy, of the schemes that the page has run.

use brakelight::lab::Table;
use brakelight::lab::jobs::JobOutcome;
use brakelight::scenario::outcome::{Outcome, Run};
use brakelight::scenario::scheme::Scheme;
use serde::Deserialize;
use serde_json::Value;

/// A scheme that was run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its text, as the page has it.
    pub scheme: String,
    /// Its runs.
    pub runs: Vec<Run>,
}

/// Holds the schemes against each other as `compare` does: its decision as JSON. Fails where a scheme cannot be
/// read, or has no runs.
pub fn decide(schemes: Vec<Candidate>) -> Result<Value, String> {
    let mut table = Table::default();
    for Candidate { scheme, runs } in schemes {
        let scheme = Scheme::parse(&scheme).map_err(|error| error.to_string())?;
        let (name, deployment) = (scheme.to_string(), Some(scheme.deployment()));
        let named = |run: Run| Run { scheme: name.clone(), deployment, ..run };
        let row = JobOutcome::of_runs(runs.into_iter().map(named).collect(), Outcome::default());
        let row = row.ok_or_else(|| format!("{name} has no runs"))?;
        table.runs.push(row.run);
        table.every.push(row.every);
    }
    serde_json::to_value(table.decision()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::workbench::Workbench;

    fn ask(workbench: &mut Workbench, request: &serde_json::Value) -> serde_json::Value {
        serde_json::from_str(&workbench.answer(request.to_string().as_bytes(), b"")).unwrap()
    }

    fn runs(workbench: &mut Workbench, scheme: &str) -> Vec<serde_json::Value> {
        let run = |seed: u64| {
            let what = json!({ "setup": { "scheme": scheme, "trace": "step", "duration": "8s" } });
            ask(workbench, &json!({ "do": "begin", "what": what, "seed": seed }));
            ask(workbench, &json!({ "do": "advance", "seconds": 10 }));
            let finished = ask(workbench, &json!({ "do": "finish" }));
            serde_json::from_str(finished["ok"]["outcome"].as_str().unwrap()).unwrap()
        };
        (1..=6).map(run).collect()
    }

    #[test]
    fn schemes_are_held_against_each_other_by_what_must_change() {
        let mut workbench = Workbench::new();
        let schemes: Vec<_> = ["abc", "cubic", "cubic+codel", "bbr"]
            .map(|scheme| json!({ "scheme": scheme, "runs": runs(&mut workbench, scheme) }))
            .into();
        let decision = ask(&mut workbench, &json!({ "do": "decide", "schemes": schemes }))["ok"].clone();
        assert_eq!(decision["today"], "cubic");
        let changes: Vec<_> =
            decision["choices"].as_array().unwrap().iter().map(|it| &it["change"]).collect();
        assert_eq!(changes, ["senders", "queue", "both"]);
        let both = &decision["choices"][2];
        assert_eq!((&both["best"]["scheme"], &both["best"]["link_rate"]), (&json!("abc"), &json!(true)));
        assert!(
            both["p95"]["value"].as_f64().unwrap() < 0.8 && both["p95"]["interval95"].is_array(),
            "{both}"
        );

        let alone = ask(&mut workbench, &json!({ "do": "decide", "schemes": &schemes[..1] }));
        assert_eq!(alone, json!({ "ok": null }), "nothing to choose from");
        let none = json!({ "do": "decide", "schemes": [{ "scheme": "abc", "runs": [] }] });
        assert_eq!(ask(&mut workbench, &none)["error"], "abc has no runs");
        let unknown = json!({ "do": "decide", "schemes": [{ "scheme": "nobody", "runs": [] }] });
        assert!(ask(&mut workbench, &unknown)["error"].as_str().unwrap().contains("nobody"));
    }
}
