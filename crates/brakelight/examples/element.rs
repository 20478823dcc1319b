//! A path element of one's own: every n-th packet is lost.
use brakelight::extend::*;
use brakelight::prelude::*;

parameters! { pub struct Config {
    /// One packet of so many is lost.
    n: u32 = 50, in 2..=1000, from "chosen here";
} }
#[rustfmt::skip] #[derive(Clone, Debug)]
struct EveryNth { n: u32, came: u32, out: Option<Output<BoxedPacket>> }
impl Algorithm for EveryNth {
    type Config = Config;
    const NAME: &'static str = "every-nth";
    const SUMMARY: &'static str = "Every n-th packet is lost";
}
#[rustfmt::skip] impl CustomElement for EveryNth {
    fn build(config: &Config, _: Site) -> Self { EveryNth { n: config.n, came: 0, out: None } }
}
#[rustfmt::skip] impl PathElement<BoxedPacket> for EveryNth {
    fn accept(&mut self, at: Time, packet: BoxedPacket) {
        self.came += 1;
        self.out = Some(match self.came % self.n {
            0 => Output::Dropped(Dropped { at, packet, reason: Reason::Lost }),
            _ => Output::Departed(Departed::passed(at, packet)),
        });
    }
    fn poll(&mut self, _: Time) -> Option<Output<BoxedPacket>> { self.out.take() }
    fn next_wakeup(&self) -> Option<Time> { self.out.as_ref().map(Output::at) }
    fn for_each(&self, visit: &mut dyn FnMut(&BoxedPacket)) { self.out.iter().for_each(|out| visit(out.packet())) }
}
/// Registers it, and puts it on the path of a flow.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::standard();
    registry.add_element::<EveryNth>()?;
    let run = brakelight::sim::run(&read_with(&registry, "own.toml", SCENARIO)?, &Traces::new())?.run;
    println!("{:.1} % lost, {:.2} Mbit/s", run.loss_percent, run.throughput_mbps);
    Ok(())
}
const SCENARIO: &str = "duration = '5s'\nlink = [{ name = 'up', rate = '12Mbps' }]\n\
    flow = [{ controller = 'cubic', path = ['up', 'every-nth:n=50'] }]";
