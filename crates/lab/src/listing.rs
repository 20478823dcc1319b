//! What there is: schemes, algorithms with their options, traces; each list as JSON, as rows and as text.

use brakelight_core::parameters::Parameter;
use brakelight_links::shaper::SETTERS;
use brakelight_registry::{Entry, Host, Registry};
use brakelight_scenario::file::APPLICATIONS;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::embedded::{Embedded, Facts};
use brakelight_scenario::trace::names::Names;
use brakelight_scenario::trace::statistics::Statistics;
use serde_json::{Value, json};

use crate::error::Error;
use crate::text::table::{self, Column};
use crate::text::{Screen, csv, number};
use crate::{reproduce, schemes};

/// One list in its three forms.
pub struct Listing {
    /// What is listed: `schemes`, `queues`.
    pub key: &'static str,
    /// The items as JSON.
    pub json: Vec<Value>,
    /// The names of the columns.
    pub heading: Vec<String>,
    /// The items as rows.
    pub rows: Vec<Vec<String>>,
    table: Box<dyn Fn(&Screen) -> String>,
}

impl Listing {
    /// Returns one JSON object: the key, and the items in an array.
    pub fn document(&self) -> Value {
        json!({ self.key: self.json })
    }

    /// Returns the rows as CSV.
    pub fn csv(&self) -> String {
        let heading: Vec<&str> = self.heading.iter().map(String::as_str).collect();
        csv::document(&heading, &self.rows)
    }

    /// Returns the items for people.
    pub fn in_words(&self, screen: &Screen) -> String {
        (self.table)(screen)
    }
}

/// Returns the schemes: those that are compared where none is named, the others, and those of hosts that were
/// added.
pub fn schemes(registry: &Registry) -> Listing {
    let host = |scheme: &Scheme| match (scheme.controller().hosted(), scheme.host()) {
        // The first word of its name.
        (Some(hosted), _) => hosted.name().split('/').next().unwrap_or_default(),
        (None, Host::Tcp) => "tcp",
        (None, Host::Quic) => "quic",
        (None, Host::Ns2) => "ns2",
    };
    let defaults = schemes::defaults(registry).len();
    let (mut json, mut rows) = (Vec::new(), Vec::new());
    let schemes = schemes::all(registry).into_iter().chain(schemes::of_hosts(registry));
    for (place, scheme) in schemes.enumerate() {
        let parts = [scheme.controller().words(), scheme.feedback().words(), scheme.queue().words()];
        let [controller, feedback, queue] = parts.map(ToString::to_string);
        let (host, deployment) = (host(&scheme), scheme.deployment());
        let by_default = place < defaults;
        json.push(json!({
            "scheme": scheme.to_string(), "short_name": scheme.short_name(), "controller": controller,
            "feedback": feedback, "queue": queue, "host": host, "default": by_default, "change": deployment.change,
            "link_rate": deployment.link_rate,
        }));
        let yes = |is: bool| if is { "yes".to_string() } else { String::new() };
        let change = deployment.change.to_string();
        rows.push(vec![
            scheme.short_name(),
            controller,
            feedback,
            queue,
            host.to_string(),
            yes(by_default),
            change,
            yes(deployment.link_rate),
        ]);
    }
    let heading = ["scheme", "controller", "feedback", "queue", "host", "default", "change", "link_rate"];
    let shown: Vec<Vec<String>> = rows.clone();
    let table = move |screen: &Screen| {
        // Controller and queue say what a shorthand stands for.
        let titles = ["scheme", "controller", "queue", "host", "default", "to change", "knows the rate"];
        let row = |row: &Vec<String>| [0, 1, 3, 4, 5, 6, 7].map(|place| row[place].clone()).to_vec();
        // What a narrow screen leaves out, the highest first.
        let spare = [0, 3, 1, 2, 0, 0, 0];
        let columns: Vec<Column> =
            titles.iter().zip(spare).map(|(title, spare)| Column::text(title).spare(spare)).collect();
        table::render(&columns, &shown.iter().map(row).collect::<Vec<_>>(), screen)
            + "\ndefault: `compare` runs it if no schemes are given; `--schemes all` runs every scheme.\n\
               to change: what must change where Cubic runs over drop-tail today.\n\
               knows the rate: its router is told the link's true rate; a real one must know or measure it.\n\
               Any controller works with any queue that understands its marks: `controller+queue`, with options after a colon.\n"
    };
    Listing {
        key: "schemes",
        json,
        heading: heading.map(String::from).to_vec(),
        rows,
        table: Box::new(table),
    }
}

/// Returns the controllers: senders.
pub fn controllers(registry: &Registry) -> Listing {
    entries("controllers", registry.controllers())
}

/// Returns the queues of routers.
pub fn queues(registry: &Registry) -> Listing {
    entries("queues", registry.queues())
}

/// Returns what receivers send back.
pub fn feedbacks(registry: &Registry) -> Listing {
    entries("feedbacks", registry.feedbacks())
}

/// Returns what else may stand on a path beside links.
pub fn elements(registry: &Registry) -> Listing {
    entries("elements", registry.elements())
}

/// Returns wireless links.
pub fn radios(registry: &Registry) -> Listing {
    entries("radios", registry.radios())
}

/// Returns what chooses the rate of a shaper.
pub fn setters() -> Listing {
    entries("setters", SETTERS.iter())
}

/// What flows carry: the built-in applications, and those that were added.
pub fn applications(registry: &Registry) -> Listing {
    entries("applications", APPLICATIONS.iter().chain(registry.applications()))
}

/// Returns the hosts that were added: transports that others wrote, with their controllers.
pub fn hosts(registry: &Registry) -> Listing {
    let hosts: Vec<_> = registry
        .hosts()
        .map(|(name, factory)| {
            let names = factory.controllers().into_iter().map(|controller| controller.name);
            (name, factory.about(), names.collect::<Vec<_>>())
        })
        .collect();
    let json = hosts.iter().map(|(name, about, controllers)| {
        json!({
            "name": name, "summary": about.summary, "version": about.version, "licence": about.licence,
            "controllers": controllers, "shows": about.shows, "messages": about.messages,
            "ecn": about.encoding.to_string(),
        })
    });
    let json = json.collect();
    let heading = ["host", "version", "licence", "controllers", "shows", "ecn", "messages", "summary"];
    let rows: Vec<Vec<String>> = hosts
        .iter()
        .map(|(name, about, controllers)| {
            let cells =
                [name, about.version, about.licence, &controllers.join(", "), &about.shows.join(", ")];
            let mut row = cells.map(String::from).to_vec();
            row.push(about.encoding.to_string());
            row.push(if about.messages { "yes" } else { "" }.to_string());
            row.push(about.summary.to_string());
            row
        })
        .collect();
    let shown = rows.clone();
    let table = move |screen: &Screen| {
        match shown.as_slice() {
        [] => "There are none. Build the command with the feature `stacks` to have quinn and noq: see the guide \"Test your stack\".\n"
            .to_string(),
        rows => {
            table::render(&heading.map(Column::text), rows, screen)
                + "\nEach also shows its window, bytes in flight and RTT. Both ends of a flow run on the host; the modeled hosts are tcp and quic.\n"
        }
    }
    };
    Listing { key: "hosts", json, heading: heading.map(String::from).to_vec(), rows, table: Box::new(table) }
}

/// Returns the claims of the papers, with what each paper states. Fails only if one of the experiments that
/// hold them cannot be read, which would be a fault of this crate.
pub fn claims() -> Result<Listing, Error> {
    let experiments = reproduce::all()?;
    let claims = experiments.iter().flat_map(|experiment| &experiment.claims);
    let rows: Vec<Vec<String>> =
        claims.map(|claim| [&claim.id, &claim.paper, &claim.claim].map(String::clone).to_vec()).collect();
    let heading = ["id", "paper", "claim"];
    let object = |row: &Vec<String>| {
        heading.iter().zip(row).map(|(name, text)| (name.to_string(), json!(text))).collect()
    };
    let json = rows.iter().map(object).map(Value::Object).collect();
    // What the paper states of it is in the other forms.
    let shown: Vec<Vec<String>> = rows.iter().map(|row| vec![row[0].clone(), row[2].clone()]).collect();
    let table = move |screen: &Screen| {
        table::render(&["id", "claim"].map(Column::text), &shown, screen)
            + "\n`reproduce ID` checks a claim; a prefix stands for all claims that start with it.\n"
    };
    Ok(Listing {
        key: "claims",
        json,
        heading: heading.map(String::from).to_vec(),
        rows,
        table: Box::new(table),
    })
}

/// Algorithms: a heading for each, a line for each option.
fn entries<'a>(key: &'static str, entries: impl Iterator<Item = &'a Entry>) -> Listing {
    let entries: Vec<Entry> = entries.cloned().collect();
    let json: Vec<Value> = entries.iter().map(|entry| {
        let parameters = entry.parameters().into_iter().map(|p| {
            json!({ "name": p.name, "meaning": p.meaning, "unit": p.unit, "default": p.default, "range": p.range, "source": p.source })
        });
        json!({
            "name": entry.name, "aliases": entry.aliases, "summary": entry.summary,
            "parameters": parameters.collect::<Vec<_>>(),
        })
    }).collect();
    let heading =
        ["name", "option", "default", "unit", "range", "source", "meaning"].map(String::from).to_vec();
    let mut rows = Vec::new();
    for entry in &entries {
        rows.push(vec![
            entry.name.into(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            entry.summary.into(),
        ]);
        for p in entry.parameters() {
            let cells = [entry.name, p.name, &p.default, &p.unit, &p.range, p.source, p.meaning];
            rows.push(cells.map(String::from).to_vec());
        }
    }
    let table = move |screen: &Screen| {
        let blocks = entries.iter().map(|entry| {
            let names = std::iter::once(entry.name).chain(entry.aliases.iter().copied());
            let head = format!("{}  {}\n", screen.bold(&names.collect::<Vec<_>>().join(", ")), entry.summary);
            let parameters = entry.parameters();
            if parameters.is_empty() {
                return head;
            }
            let rows: Vec<Vec<String>> = parameters
                .iter()
                .map(|p| [p.name, &p.default, valid(p), p.source, p.meaning].map(String::from).to_vec())
                .collect();
            head + &table::render(
                &["option", "default", "valid", "source", "meaning"].map(Column::text),
                &rows,
                screen,
            )
        });
        blocks.collect::<Vec<_>>().join("\n")
    };
    Listing { key, json, heading, rows, table: Box::new(table) }
}

/// What may be given: the unit or the choices, where no range is known or every value of a kind is as good as
/// another.
fn valid(parameter: &Parameter) -> &str {
    if matches!(&*parameter.range, "any" | "") { &parameter.unit } else { &parameter.range }
}

/// Returns the traces that have names. Fails if the folder of the user's own traces cannot be read.
pub fn traces() -> Result<Listing, Error> {
    let names = Names::from_environment()?;
    let mut json = Vec::new();
    let mut rows = Vec::new();
    for name in names.list() {
        let embedded = Embedded::find(&name);
        let about = match embedded {
            Some(Embedded { same_as: Some(other), .. }) => format!("alias of {other}"),
            Some(embedded) => embedded.recipe().about,
            None => "a file in BRAKELIGHT_TRACES".to_string(),
        };
        let by_default = embedded.is_some_and(|embedded| embedded.default);
        let facts = match embedded {
            Some(embedded) => Ok(embedded.facts()),
            // The folder may hold other files; a list says so and goes on.
            None => names.load(&name).map(|trace| {
                let of = Statistics::of(&trace, OPPORTUNITY);
                Facts { mean_mbps: of.mean_mbps, cv_100ms: of.variation.cv_100ms, duration_s: of.duration_s }
            }),
        };
        let (mean, cv, seconds, about) = match &facts {
            Ok(facts) => (number(facts.mean_mbps), number(facts.cv_100ms), number(facts.duration_s), about),
            Err(error) => (String::new(), String::new(), String::new(), format!("not a trace: {error}")),
        };
        json.push(json!({
            "name": name, "embedded": embedded.is_some(), "default": by_default, "about": about,
            "same_as": embedded.and_then(|embedded| embedded.same_as),
            "mean_mbps": facts.as_ref().ok().map(|facts| facts.mean_mbps),
            "cv_100ms": facts.as_ref().ok().map(|facts| facts.cv_100ms),
            "duration_s": facts.as_ref().ok().map(|facts| facts.duration_s),
        }));
        rows.push(vec![name, if by_default { "yes" } else { "" }.into(), mean, cv, seconds, about]);
    }
    let shown = rows.clone();
    let table = move |screen: &Screen| {
        let columns = [
            Column::text("trace"),
            Column::text("default"),
            Column::number("mean", "Mbit/s"),
            Column::number("variation", "at 100 ms"),
            Column::number("period", "s"),
            Column::text("about"),
        ];
        table::render(&columns, &shown, screen)
            + "\nAny Mahimahi file is a trace too; files in the folder BRAKELIGHT_TRACES can be used by name.\n"
    };
    let heading =
        ["trace", "default", "mean_mbps", "cv_100ms", "duration_s", "about"].map(String::from).to_vec();
    Ok(Listing { key: "traces", json, heading, rows, table: Box::new(table) })
}
