//! Writing a scenario as the file that [`read`](fn@super::read) turns back into it. Every field is written, so defaults
//! that change later do not change what the file means; the same scenario gives the same bytes.

use std::fmt::{Display, Write};

use brakelight_core::parameters::Value;
use brakelight_core::registry::Host;

use crate::clock::Clock;
use crate::scenario::{FlowSpec, Hop, LinkSpec, Restart, Scenario, Service, TraceOffset};
use crate::traffic::{Arrivals, SizeLaw, Traffic};

/// The TOML text of `scenario`.
pub fn write(scenario: &Scenario) -> String {
    let mut file = File(String::new());
    file.text("name", &scenario.name);
    file.plain("seed", scenario.seed);
    file.text("duration", scenario.duration);
    file.text("measure_from", scenario.measure_from);
    match scenario.trace_offset {
        TraceOffset::At(offset) => file.text("trace_offset", offset),
        TraceOffset::Random => file.text("trace_offset", "random"),
    }
    file.header("[record]");
    file.plain("series", scenario.record.series);
    file.text("bin", scenario.record.bin);
    file.plain("link_logs", scenario.record.link_logs);
    file.plain("state", scenario.record.state);
    if let Some(over) = scenario.record.unfairness {
        file.text("unfairness", over);
    }
    scenario.links.iter().for_each(|link| file.link(link));
    scenario.flows.iter().for_each(|flow| file.flow(flow));
    file.0
}

struct File(String);

impl File {
    fn header(&mut self, header: &str) {
        self.line(format_args!("\n{header}"));
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").expect("a string takes any text");
    }

    fn plain(&mut self, key: &str, value: impl Display) {
        self.line(format_args!("{key} = {value}"));
    }

    fn text(&mut self, key: &str, value: impl Display) {
        self.plain(key, quoted(value));
    }

    fn link(&mut self, link: &LinkSpec) {
        self.header("[[link]]");
        self.text("name", &link.name);
        match &link.service {
            Service::Trace(trace) => self.text("trace", trace),
            Service::Fixed(rate) => self.text("rate", rate),
            Service::Steps(steps) => {
                let step = |(time, rate): &(_, _)| format!("[{}, {}]", quoted(time), quoted(rate));
                let steps_text = list(steps.steps.iter().map(step));
                self.plain("steps", steps_text);
                self.plain("repeat", steps.repeat);
            }
            Service::Radio(radio) => {
                self.text("radio", radio.words());
            }
        }
        self.text("buffer", link.buffer);
        self.text("queue", link.queue.words());
        self.text("opportunity", link.opportunity);
        self.text("overhead", link.overhead);
        if !link.restarts.is_empty() {
            let restart = |restart: &Restart| {
                let Restart { at, down, waiting } = restart;
                format!(
                    "{{ at = {}, down = {}, waiting = {} }}",
                    quoted(at),
                    quoted(down),
                    quoted(waiting.show())
                )
            };
            self.plain("restarts", list(link.restarts.iter().map(restart)));
        }
    }

    fn flow(&mut self, flow: &FlowSpec) {
        self.header("[[flow]]");
        self.text("name", &flow.name);
        self.plain("count", flow.count);
        self.text("controller", flow.controller.words());
        self.text("feedback", flow.feedback.words());
        self.text("host", host(flow.host));
        self.plain("ack_every", flow.ack_every);
        self.text("mss", flow.mss);
        self.text("overhead", flow.overhead);
        self.plain("initial_window", flow.initial_window);
        if flow.pacing_burst != FlowSpec::PACING_BURST {
            self.plain("pacing_burst", flow.pacing_burst);
        }
        self.plain("traffic", traffic(&flow.traffic));
        self.text("start", flow.start);
        self.text("start_within", flow.start_within);
        if let Some(stop) = flow.stop {
            self.text("stop", stop);
        }
        self.text("rtt", flow.rtt);
        if !flow.rtt_step.is_zero() {
            self.text("rtt_step", flow.rtt_step);
        }
        self.plain("path", hops(&flow.path));
        self.plain("reverse", hops(&flow.reverse));
        self.text("jitter", flow.jitter);
        if flow.receiver_clock != Clock::default() {
            self.plain("receiver_clock", clock(&flow.receiver_clock));
        }
    }
}

fn host(host: Host) -> &'static str {
    match host {
        Host::Tcp => "tcp",
        Host::Quic => "quic",
    }
}

/// A TOML string.
fn quoted(value: impl Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

fn clock(clock: &Clock) -> String {
    let step = clock.step_at.map_or(String::new(), |at| format!(", step_at = {}", quoted(at)));
    let Clock { offset, skew_ppm, step_ms, .. } = clock;
    format!("{{ offset = {}, skew_ppm = {skew_ppm}{step}, step_ms = {step_ms} }}", quoted(offset))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn hops(hops: &[Hop]) -> String {
    list(hops.iter().map(|hop| match hop {
        Hop::Link(name) => quoted(name),
        Hop::Element(element) => quoted(element.words()),
    }))
}

fn traffic(traffic: &Traffic) -> String {
    let table = |kind: &str, fields: &[(&str, String)]| {
        let fields: String = fields.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
        format!("{{ kind = {}{fields} }}", quoted(kind))
    };
    match traffic {
        Traffic::Backlogged => quoted("backlogged"),
        Traffic::Custom(custom) => quoted(custom),
        Traffic::Size(size) => table("size", &[("size", quoted(size))]),
        Traffic::OnOff(on_off) => {
            let mut fields = vec![
                ("on", quoted(on_off.on)),
                ("off", quoted(on_off.off)),
                ("random", on_off.random.to_string()),
            ];
            fields.extend(on_off.rate.map(|rate| ("rate", quoted(rate))));
            table("on-off", &fields)
        }
        Traffic::ShortFlows(short) => {
            let mut fields = vec![match short.arrivals {
                Arrivals::PerSecond(rate) => ("per_second", float(rate)),
                Arrivals::Load(load) => ("load", quoted(load)),
            }];
            fields.push(("size", quoted(short.size.mean())));
            if let SizeLaw::Pareto { shape, .. } = short.size {
                fields.push(("pareto_shape", float(shape)));
            }
            table("short-flows", &fields)
        }
        Traffic::RateLimited(rate) => table("rate-limited", &[("rate", quoted(rate))]),
        Traffic::RequestResponse(exchange) => table(
            "request-response",
            &[
                ("request", quoted(exchange.request)),
                ("response", quoted(exchange.response)),
                ("think", quoted(exchange.think)),
            ],
        ),
        Traffic::Game(game) => {
            table("game", &[("size", quoted(game.size)), ("interval", quoted(game.interval))])
        }
        Traffic::Video(video) => table(
            "video",
            &[
                ("ladder", list(video.ladder.iter().map(quoted))),
                ("segment", quoted(video.segment)),
                ("buffer", quoted(video.buffer)),
                ("startup", quoted(video.startup)),
            ],
        ),
        Traffic::Call(call) => table(
            "call",
            &[
                ("min_rate", quoted(call.min_rate)),
                ("max_rate", quoted(call.max_rate)),
                ("fps", call.fps.to_string()),
                ("deadline", quoted(call.deadline)),
            ],
        ),
    }
}

/// A TOML float: Rust's shortest spelling that reads back as the same number, with a point.
fn float(number: f64) -> String {
    format!("{number:?}")
}
