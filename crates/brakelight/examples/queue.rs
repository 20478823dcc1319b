//! A queue of one's own, with the settings of drop-tail: the newest packet leaves first.
use brakelight::core::queue::droptail::Config;
use brakelight::extend::*;
use brakelight::prelude::*;

type P = BoxedPacket;
#[derive(Clone, Debug)]
struct Lifo(Fifo<P>, Limit);
impl Algorithm for Lifo {
    type Config = Config;
    const NAME: &'static str = "lifo";
    const SUMMARY: &'static str = "Last in, first out";
}
impl CustomQueue for Lifo {
    fn build(config: &Config, place: &Place) -> Self {
        Lifo(Fifo::default(), config.limit.unwrap_or(place.limit))
    }
}
#[rustfmt::skip] // One line each.
impl Queue<P> for Lifo {
    fn enqueue(&mut self, now: Time, packet: P, _: &mut impl LinkView, drops: &mut Drops<P>) {
        self.0.push_within(self.1, now, packet, drops);
    }
    fn dequeue(&mut self, _: Time, _: &mut impl LinkView, _: &mut Drops<P>) -> Option<Dequeued<P>> {
        let (packet, arrived) = self.0.pop_back()?;
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }
    fn backlog(&self) -> Backlog { self.0.backlog() }
    fn for_each(&self, visit: &mut dyn FnMut(&P)) { self.0.for_each(visit) }
}
/// Registers it, and compares it with drop-tail.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::standard();
    registry.add_queue::<Lifo>()?;
    let schemes = Scheme::parse_list_with(&registry, "cubic,cubic+lifo")?;
    let request = Compare { traces: vec!["step".into()], schemes, runs: Some(2), ..Compare::default() };
    println!("{}", lab::compare(&request)?.comparison(&Screen::default()));
    Ok(())
}
