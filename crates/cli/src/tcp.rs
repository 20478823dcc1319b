//! `tcp`: the kernel's TCP speaks ABC.

use brakelight_lab::text::count;
use brakelight_tcp::doctor::{self, Verdict};
use serde_json::json;

use crate::arguments::DocumentFormat;
use crate::failure::Failure;
use crate::text;

pub mod arguments;

/// Runs the command.
pub fn execute(arguments: &arguments::Command) -> Result<(), Failure> {
    match arguments {
        arguments::Command::Doctor(arguments) => examine(arguments),
        #[cfg(feature = "bpf")]
        arguments::Command::Load(arguments) => consistent(arguments).and_then(|()| kernel::load(arguments)),
        #[cfg(feature = "bpf")]
        arguments::Command::Unload => kernel::unload(),
        #[cfg(feature = "bpf")]
        arguments::Command::Status(arguments) => kernel::status(arguments),
        #[cfg(feature = "bpf")]
        arguments::Command::Watch(arguments) => kernel::watch(arguments),
        #[cfg(not(feature = "bpf"))]
        arguments::Command::Load(arguments) => {
            consistent(arguments).and_then(|()| Err(Failure::run(brakelight_tcp::NOT_BUILT)))
        }
        #[cfg(not(feature = "bpf"))]
        arguments::Command::Unload | arguments::Command::Status(_) | arguments::Command::Watch(_) => {
            Err(Failure::run(brakelight_tcp::NOT_BUILT))
        }
    }
}

/// What belongs to one controller is refused beside the other.
fn consistent(arguments: &arguments::Load) -> Result<(), Failure> {
    let wdc = arguments.controller == arguments::Controller::Wdc;
    let given = [
        ("--dev", !arguments.devices.is_empty()),
        ("--receiver", arguments.receiver),
        ("--feedback", arguments.feedback != arguments::Feedback::Auto),
        ("--cgroup", arguments.cgroup.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) if wdc => Err(Failure::input(format!(
            "{name} belongs to ABC: `--controller wdc` needs no marks and no special receiver"
        ))),
        _ if !wdc && arguments.threshold.is_some() => {
            Err(Failure::input("--threshold belongs to delay control: `--controller wdc`"))
        }
        _ => Ok(()),
    }
}

fn examine(arguments: &arguments::Status) -> Result<(), Failure> {
    #[cfg_attr(not(feature = "bpf"), expect(unused_mut))]
    let mut checks = doctor::examine();
    #[cfg(feature = "bpf")]
    checks.extend(brakelight_tcp::bpf::attempts());
    match arguments.format {
        DocumentFormat::Json => text::print_json(&json!({ "checks": checks }))?,
        DocumentFormat::Table => {
            text::print(&checks.iter().map(|check| format!("{check}\n")).collect::<String>())?
        }
    }
    match checks.iter().filter(|check| check.verdict == Verdict::No).count() {
        0 => Ok(()),
        missing => Err(Failure::run(count(missing, "thing is missing", "things are missing"))),
    }
}

#[cfg(feature = "bpf")]
pub(crate) mod kernel {
    use std::collections::HashMap;
    use std::thread;

    use brakelight_senders::controller::quicdc;
    use brakelight_tcp::bpf;
    use brakelight_tcp::settings::{
        ConnectionStatus, Controller, Feedback, Inside, Load, ReturnRates, Threshold,
    };
    use serde_json::json;

    use super::arguments;
    use crate::arguments::DocumentFormat;
    use crate::failure::Failure;
    use crate::text::table::{self, Column};
    use crate::text::{self, number};

    fn threshold(arguments: &arguments::Load) -> Threshold {
        match arguments.threshold.unwrap_or(quicdc::Config::default().threshold) {
            quicdc::Threshold::Time(time) => {
                Threshold::Time(std::time::Duration::from_nanos(time.as_nanos()))
            }
            quicdc::Threshold::Share(share) => Threshold::Share(share),
        }
    }

    pub(super) fn load(arguments: &arguments::Load) -> Result<(), Failure> {
        let settings = Load {
            controller: match arguments.controller {
                arguments::Controller::Abc => Controller::Abc,
                arguments::Controller::Wdc => Controller::Wdc(threshold(arguments)),
            },
            devices: arguments.devices.clone(),
            feedback: match arguments.feedback {
                arguments::Feedback::Auto => Feedback::Auto,
                arguments::Feedback::Accecn => Feedback::AccEcn,
                arguments::Feedback::Option => Feedback::Option,
            },
            receiver: arguments.receiver,
            name: arguments.name.clone(),
            unrestricted: arguments.unrestricted,
            pacing_percent: arguments.pacing,
            pin: arguments.pin,
            cgroup: arguments.cgroup.clone(),
        };
        let endpoint = bpf::load(&settings)?;
        endpoint.loaded.sentences().iter().for_each(|sentence| text::say(sentence));
        if settings.pin {
            text::say("it stays loaded: `brakelight tcp unload` removes it");
            return Ok(());
        }
        match arguments.duration {
            Some(duration) => {
                thread::sleep(std::time::Duration::from_nanos(duration.as_nanos()));
                Ok(())
            }
            None => {
                text::say("it stays loaded until this command is interrupted");
                loop {
                    // The interrupt ends the process, and with it everything that it holds in the kernel.
                    thread::park();
                }
            }
        }
    }

    pub(super) fn unload() -> Result<(), Failure> {
        let there_was = bpf::unload()?;
        text::say(if there_was { "removed the pinned programs" } else { "no pinned programs to remove" });
        Ok(())
    }

    pub(super) fn status(arguments: &arguments::Status) -> Result<(), Failure> {
        let status = bpf::status()?;
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
        list("connections", &[format!("{} in this network namespace", status.connections)]);
        list("pins", &status.pins);
        text::print(&out)
    }

    pub(super) fn watch(arguments: &arguments::Watch) -> Result<(), Failure> {
        let mut before: HashMap<u64, ConnectionStatus> = HashMap::new();
        let interval = std::time::Duration::from_nanos(arguments.interval.as_nanos());
        let mut looks = 0;
        loop {
            let connections = bpf::connections()?;
            let connections = connections.ok_or_else(|| {
                Failure::run("no Brakelight controller is in the kernel: `brakelight tcp load --dev DEV`")
            })?;
            let rates = connections.iter().map(|now| now.rates_since(before.get(&now.id), interval));
            let rates = rates.collect::<Vec<_>>();
            show(&connections, &rates, looks > 0, arguments.format)?;
            before = connections.into_iter().map(|connection| (connection.id, connection)).collect();
            looks += 1;
            if arguments.count.is_some_and(|count| looks >= count) {
                return Ok(());
            }
            thread::sleep(interval);
        }
    }

    /// Rates are those of the last interval; the first look has none.
    fn show(
        connections: &[ConnectionStatus],
        rates: &[ReturnRates],
        with_rates: bool,
        format: DocumentFormat,
    ) -> Result<(), Failure> {
        if format == DocumentFormat::Json {
            return text::print(&format!("{}\n", json!({ "connections": connections })));
        }
        if connections.is_empty() {
            return text::print("no connections\n");
        }
        let (abc, wdc): (Vec<_>, Vec<_>) =
            connections.iter().zip(rates).partition(|(c, _)| matches!(c.inside, Inside::Abc { .. }));
        let screen = text::standard_output();
        let mut out = String::new();
        if !abc.is_empty() {
            let rows: Vec<_> = abc.iter().map(|(c, rates)| abc_row(c, rates, with_rates)).collect();
            out.push_str(&table::render(&abc_columns(), &rows, &screen));
        }
        if !wdc.is_empty() {
            let rows: Vec<_> = wdc.iter().map(|(c, rates)| wdc_row(c, rates, with_rates)).collect();
            out.push_str(&table::render(&wdc_columns(), &rows, &screen));
        }
        text::print(&out)
    }

    fn mbps(bytes_per_s: f64, with_rates: bool) -> String {
        if with_rates { number(bytes_per_s * 8.0 / 1e6) } else { "-".into() }
    }

    fn abc_columns() -> [Column; 11] {
        [
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
        ]
    }

    fn abc_row(c: &ConnectionStatus, rates: &ReturnRates, with_rates: bool) -> Vec<String> {
        let Inside::Abc { w_abc_bytes, w_nonabc_bytes, marks_spoiled, .. } = c.inside else {
            return Vec::new();
        };
        let mss = f64::from(c.mss_bytes.max(1));
        let packets = |bytes: u32| number(f64::from(bytes) / mss);
        let per_second = |bytes: f64| if with_rates { number(bytes / mss) } else { "-".into() };
        vec![
            c.local.to_string(),
            c.remote.to_string(),
            c.cwnd_pkts.to_string(),
            packets(w_abc_bytes),
            packets(w_nonabc_bytes),
            number(c.srtt_ms),
            per_second(rates.accelerate),
            per_second(rates.brake),
            per_second(rates.ce),
            mbps(rates.acked, with_rates),
            if marks_spoiled { "spoiled".into() } else { c.feedback.to_string() },
        ]
    }

    fn wdc_columns() -> [Column; 10] {
        [
            Column::text("from"),
            Column::text("to"),
            Column::number("cwnd", "packets"),
            Column::number("srtt", "ms"),
            Column::number("OWQD", "ms"),
            Column::number("threshold", "ms"),
            Column::number("reductions", "by delay"),
            Column::number("BWE", "Mbit/s"),
            Column::number("acked", "Mbit/s"),
            Column::text("feedback"),
        ]
    }

    fn wdc_row(c: &ConnectionStatus, rates: &ReturnRates, with_rates: bool) -> Vec<String> {
        let Inside::Wdc { threshold_ms, owqd_ms, delay_events, bwe_mbps } = c.inside else {
            return Vec::new();
        };
        vec![
            c.local.to_string(),
            c.remote.to_string(),
            c.cwnd_pkts.to_string(),
            number(c.srtt_ms),
            number(owqd_ms),
            threshold_ms.map_or("-".into(), number),
            delay_events.to_string(),
            number(bwe_mbps),
            mbps(rates.acked, with_rates),
            c.feedback.to_string(),
        ]
    }
}
