//! `tcp`: the kernel's TCP speaks ABC.

use brakelight_tcp::doctor::{self, Check, Verdict};
use serde_json::json;

use crate::arguments::{DocumentFormat, Tcp, TcpStatus};
use crate::failure::Failure;
use crate::text;

/// Runs the command.
pub fn execute(arguments: &Tcp) -> Result<(), Failure> {
    match arguments {
        Tcp::Doctor(arguments) => examine(arguments),
        #[cfg(feature = "bpf")]
        Tcp::Load(arguments) => kernel::load(arguments),
        #[cfg(feature = "bpf")]
        Tcp::Unload => kernel::unload(),
        #[cfg(feature = "bpf")]
        Tcp::Status(arguments) => kernel::status(arguments),
        #[cfg(feature = "bpf")]
        Tcp::Watch(arguments) => kernel::watch(arguments),
        #[cfg(not(feature = "bpf"))]
        Tcp::Load(_) | Tcp::Unload | Tcp::Status(_) | Tcp::Watch(_) => {
            Err(Failure::run(brakelight_tcp::NOT_BUILT))
        }
    }
}

fn examine(arguments: &TcpStatus) -> Result<(), Failure> {
    #[cfg_attr(not(feature = "bpf"), expect(unused_mut))]
    let mut checks = doctor::examine();
    #[cfg(feature = "bpf")]
    checks.extend(brakelight_tcp::bpf::attempts());
    match arguments.format {
        DocumentFormat::Json => text::print_json(&json!({ "checks": checks })),
        DocumentFormat::Table => text::print(&checks.iter().map(show).collect::<String>()),
    }
}

fn show(check: &Check) -> String {
    let verdict = match check.verdict {
        Verdict::Yes => "yes     ",
        Verdict::No => "NO      ",
        Verdict::Instead => "instead ",
        Verdict::Unknown => "unknown ",
    };
    let advice = check.advice.as_ref().map(|advice| format!("\n          -> {advice}")).unwrap_or_default();
    format!("{verdict}  {}: {}{advice}\n", check.what, check.found)
}

#[cfg(feature = "bpf")]
pub(crate) mod kernel {
    use std::collections::HashMap;
    use std::thread;

    use brakelight_tcp::bpf;
    use brakelight_tcp::error::Error;
    use brakelight_tcp::settings::{Connection, Feedback, Load};
    use serde_json::json;

    use crate::arguments::{DocumentFormat, FeedbackName, TcpLoad, TcpStatus, TcpWatch};
    use crate::failure::Failure;
    use crate::text::table::{self, Column};
    use crate::text::{self, Screen, number};

    pub(crate) fn failure(error: Error) -> Failure {
        match error {
            Error::Input(_) => Failure::input(error),
            Error::Kernel { .. } => Failure::run(error),
        }
    }

    pub(super) fn load(arguments: &TcpLoad) -> Result<(), Failure> {
        let settings = Load {
            devices: arguments.devices.clone(),
            feedback: match arguments.feedback {
                FeedbackName::Auto => Feedback::Auto,
                FeedbackName::Accecn => Feedback::AccEcn,
                FeedbackName::Option => Feedback::Option,
            },
            receiver: arguments.receiver,
            name: arguments.name.clone(),
            unrestricted: arguments.unrestricted,
            pacing_percent: arguments.pacing,
            pin: arguments.pin,
            cgroup: arguments.cgroup.clone(),
        };
        let endpoint = bpf::load(&settings).map_err(failure)?;
        let loaded = &endpoint.loaded;
        for controller in &loaded.controllers {
            text::say(&format!("registered the congestion control `{controller}`"));
        }
        for device in &loaded.devices {
            text::say(&format!("what ABC's connections send through {device} leaves as accelerate"));
        }
        text::say(&format!(
            "counts of marks come by {}",
            if loaded.feedback == "option" { "the option" } else { "Accurate ECN" }
        ));
        for note in &loaded.notes {
            text::say(&format!("note: {note}"));
        }
        if settings.pin {
            text::say("it stays: `brakelight tcp unload` takes it out");
            return Ok(());
        }
        match arguments.duration {
            Some(duration) => {
                thread::sleep(std::time::Duration::from_nanos(duration.as_nanos()));
                Ok(())
            }
            None => {
                text::say("it stays until this command is interrupted");
                loop {
                    // The interrupt ends the process, and with it everything that it holds in the kernel.
                    thread::park();
                }
            }
        }
    }

    pub(super) fn unload() -> Result<(), Failure> {
        let there_was = bpf::unload().map_err(failure)?;
        text::say(if there_was { "taken out" } else { "nothing was pinned" });
        Ok(())
    }

    pub(super) fn status(arguments: &TcpStatus) -> Result<(), Failure> {
        let status = bpf::status().map_err(failure)?;
        if arguments.format == DocumentFormat::Json {
            return text::print_json(&json!(status));
        }
        let mut out = String::new();
        let mut list = |heading: &str, items: &[String]| {
            let items = if items.is_empty() { "none".to_string() } else { items.join("\n             ") };
            out.push_str(&format!("{heading:<13}{items}\n"));
        };
        list("controllers", &status.controllers);
        list("programs", &status.programs);
        list("connections", &[status.connections.to_string()]);
        list("pins", &status.pins);
        text::print(&out)
    }

    pub(super) fn watch(arguments: &TcpWatch) -> Result<(), Failure> {
        let mut before: HashMap<u64, [u64; 4]> = HashMap::new();
        let interval = std::time::Duration::from_nanos(arguments.interval.as_nanos());
        let seconds = interval.as_secs_f64();
        let mut looks = 0;
        loop {
            let connections = bpf::connections().map_err(failure)?;
            let connections = connections.ok_or_else(|| {
                Failure::run("no controller of ours is in the kernel: `brakelight tcp load --dev DEV`")
            })?;
            let counts = |c: &Connection| [c.accelerate_bytes, c.brake_bytes, c.ce_bytes, c.acked_bytes];
            let rates: Vec<[f64; 4]> = connections
                .iter()
                .map(|connection| {
                    let (now, then) =
                        (counts(connection), before.get(&connection.id).copied().unwrap_or_default());
                    std::array::from_fn(|i| now[i].wrapping_sub(then[i]) as i64 as f64 / seconds)
                })
                .collect();
            show(&connections, &rates, looks > 0, arguments.format)?;
            before = connections.iter().map(|connection| (connection.id, counts(connection))).collect();
            looks += 1;
            if arguments.count.is_some_and(|count| looks >= count) {
                return Ok(());
            }
            thread::sleep(interval);
        }
    }

    /// Rates are those of the last interval; the first look has none.
    fn show(
        connections: &[Connection],
        rates: &[[f64; 4]],
        with_rates: bool,
        format: DocumentFormat,
    ) -> Result<(), Failure> {
        if format == DocumentFormat::Json {
            return text::print(&format!("{}\n", json!({ "connections": connections })));
        }
        if connections.is_empty() {
            return text::print("no connections\n");
        }
        let packets = |bytes: u32, mss: u32| number(f64::from(bytes) / f64::from(mss.max(1)));
        let rows: Vec<Vec<String>> = connections
            .iter()
            .zip(rates)
            .map(|(c, rates)| {
                let per_second = |bytes: f64| {
                    if with_rates { number(bytes / f64::from(c.mss_bytes.max(1))) } else { "-".into() }
                };
                vec![
                    c.local.to_string(),
                    c.remote.to_string(),
                    c.cwnd_pkts.to_string(),
                    packets(c.w_abc_bytes, c.mss_bytes),
                    packets(c.w_nonabc_bytes, c.mss_bytes),
                    number(c.srtt_ms),
                    per_second(rates[0]),
                    per_second(rates[1]),
                    per_second(rates[2]),
                    if with_rates { number(rates[3] * 8.0 / 1e6) } else { "-".into() },
                    if c.marks_spoiled { "spoiled".into() } else { c.feedback.to_string() },
                ]
            })
            .collect();
        let columns = [
            Column::text("from"),
            Column::text("to"),
            Column::number("cwnd", "packets"),
            Column::number("w_abc", "packets"),
            Column::number("w_nonabc", "packets"),
            Column::number("srtt", "ms"),
            Column::number("accel", "packets/s"),
            Column::number("brake", "packets/s"),
            Column::number("CE", "packets/s"),
            Column::number("acked", "Mbit/s"),
            Column::text("feedback"),
        ];
        text::print(&table::render(&columns, &rows, &Screen::standard_output()))
    }
}
