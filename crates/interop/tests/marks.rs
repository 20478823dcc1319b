//! Receivers that were never told: quinn and s2n-quic as they come echo ECN marks well enough that the sender
//! knows of every single packet what happened to it on the way.
//!
//! A relay between sender and receiver rewrites the codepoint of each packet at random and keeps account. At
//! every ACK that has counts, they must be the sums of that account over the packets acknowledged so far,
//! with 5 % loss, reordering, and key updates from both ends. One kind of packet is counted without ever
//! being acknowledged: a receiver forgets ranges once it knows that an ACK up to there has come through (RFC
//! 9000 section 13.2.4), and a packet below that arrived late, between the two, is forgotten with them. So
//! what is counted beyond the acknowledged packets must be found among those that the relay let pass and no
//! ACK ever named, or only one that a newer ACK overtook: a handful in 300, most often none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use brakelight_core::ecn::Ecn;
use brakelight_quic::adapter::{self, ControlSettings, Factory, PacketSender};
use brakelight_quic::builder::adapter_of;
use brakelight_quic::tap::Listener;
use brakelight_quic::tap::frames::{Ack, EcnCounts};
use brakelight_quic::tap::parameters::Parameters;
use brakelight_quic::validation::State;
use brakelight_registry::ControllerConfig;

#[path = "../../quic/tests/support/mod.rs"]
mod support;

use support::relay::{self, Key, Path, Rewrite};
use support::{Identity, Receiver};

const RUNS: u64 = 10;
const BYTES: usize = 400_000;

/// Keeps what passes the tap: packets by number, and what was acknowledged up to each published ACK.
#[derive(Default)]
struct Ledger(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    sent: HashMap<u64, Key>,
    /// Packets acknowledged since the last of `acks`.
    acked: Vec<Key>,
    /// Of those, the ones that an ACK named which a newer one had overtaken: how many of `acks` had come by
    /// then, number and key.
    overtaken: Vec<(usize, u64, Key)>,
    /// The counts of ACKs whose largest packet an ACK before had named already, each with how many of `acks`
    /// had come by then. An ACK that was sent after a newer one, and so counts more, is one of these too.
    others: Vec<(usize, EcnCounts)>,
    /// Each newest ACK: its largest packet and counts, with the packets acknowledged for the first time since
    /// the one before.
    acks: Vec<(u64, Option<EcnCounts>, Vec<Key>)>,
}

/// Tells the ledger and then the controller's side, whose codepoints are the ones that count.
struct Both(Arc<Ledger>, Arc<dyn Listener>);

impl Listener for Both {
    fn on_ack(&self, ack: &Ack<'_>, newest: bool) {
        self.0.on_ack(ack, newest);
        self.1.on_ack(ack, newest);
    }

    fn on_parameters(&self, parameters: &Parameters) {
        self.1.on_parameters(parameters);
    }

    fn on_open(&self, number: u64) {
        self.1.on_open(number);
    }

    fn on_seal(&self, number: u64, packet: &[u8], eliciting: bool) -> Option<Ecn> {
        self.0.on_seal(number, packet, eliciting);
        self.1.on_seal(number, packet, eliciting)
    }
}

impl Listener for Ledger {
    fn on_ack(&self, ack: &Ack<'_>, newest: bool) {
        let Pages { sent, acked, overtaken, others, acks } = &mut *self.0.lock().unwrap();
        for number in ack.ranges().flatten() {
            let Some(key) = sent.remove(&number) else { continue };
            acked.push(key);
            if !newest {
                overtaken.push((acks.len(), number, key));
            }
        }
        match newest {
            true => acks.push((ack.largest, ack.ecn, std::mem::take(acked))),
            false => others.extend(ack.ecn.map(|counts| (acks.len(), counts))),
        }
    }

    fn on_seal(&self, number: u64, packet: &[u8], _: bool) -> Option<Ecn> {
        self.0.lock().unwrap().sent.insert(number, relay::key(packet));
        Some(Ecn::Ect1)
    }
}

/// One transfer; gives the final counts.
async fn transfer(receiver: Receiver, seed: u64) -> EcnCounts {
    let identity = Identity::new();
    let server = support::receive(receiver, &identity);
    let path = Path { rewrite: Rewrite::Mark, loss: 0.05, reordered: 0.03, answers_wait: false, seed };
    let (address, account) = relay::start(server, path);
    let ledger = Arc::new(Ledger::default());
    let abc = ControllerConfig::new("abc", &[]).unwrap();
    let factory = Factory::new(ControlSettings::new(abc, PacketSender::Stack, adapter::Path::Own).unwrap());
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(factory.clone());
    let (open, books) = (factory.open(), ledger.clone());
    let open = Arc::new(move || Arc::new(Both(books.clone(), open())) as Arc<dyn Listener>);
    let endpoint = support::sender(&identity, transport, open);
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    let (mut stream, mut answer) = connection.open_bi().await.unwrap();
    let piece = vec![0x5a; BYTES / 4];
    for _ in 0..4 {
        stream.write_all(&piece).await.unwrap();
        connection.force_key_update();
    }
    stream.finish().unwrap();
    let answer = answer.read_to_end(100).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), BYTES.to_string());
    let adapter = adapter_of(&connection).expect("the controller is ours");
    let before_the_close = ledger.0.lock().unwrap().acks.len();
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;

    let (pages, account) = (ledger.0.lock().unwrap(), account.lock().unwrap());
    let forgotten = pages.sent.iter().filter_map(|(number, key)| Some((*number, *account.get(key)?)));
    let forgotten: Vec<(u64, Ecn)> = forgotten.collect();
    let mut expected = EcnCounts::default();
    for (at, (largest, counts, new)) in pages.acks.iter().enumerate() {
        for key in new {
            add(&mut expected, *account.get(key).expect("the relay let pass what is acknowledged"));
        }
        // Before a packet that may be marked there is nothing to count: a probe of the MTU, which is none,
        // may come first.
        let counts = counts.unwrap_or_else(|| {
            assert_eq!(expected, EcnCounts::default(), "{receiver:?}, seed {seed}, ACK {at}: no counts");
            expected
        });
        let mut most = expected;
        forgotten.iter().filter(|(number, _)| number < largest).for_each(|(_, ecn)| add(&mut most, *ecn));
        // Forgotten by this ACK, but named by one that was sent before it and came after it.
        let later = pages.overtaken.iter().filter(|(before, number, _)| at < *before && number < largest);
        later.for_each(|(_, _, key)| add(&mut most, account[key]));
        let within = |least: u64, count: u64, most: u64| (least..=most).contains(&count);
        assert!(
            within(expected.ect0, counts.ect0, most.ect0)
                && within(expected.ect1, counts.ect1, most.ect1)
                && within(expected.ce, counts.ce, most.ce),
            "{receiver:?}, seed {seed}, ACK {at}: {counts:?}, but acknowledged are {expected:?}, and at most {most:?}"
        );
    }
    assert!(forgotten.len() <= 6, "{receiver:?}, seed {seed}: never acknowledged: {forgotten:?}");
    let told = adapter.counters();
    let told = (told.accelerate_packets, told.brake_packets, told.ce_packets);
    let counted = |counts: &EcnCounts| (counts.ect1, counts.ect0, counts.ce);
    let newest = pages.acks.iter().rposition(|(_, counts, _)| counts.as_ref().map(counted) == Some(told));
    // The controller may hear of a newest ACK together with a later one of the same largest packet, which
    // counts more.
    let other = pages.others.iter().rfind(|(_, counts)| counted(counts) == told);
    let last = newest.or_else(|| other.and_then(|(before, _)| before.checked_sub(1)));
    let last = last.unwrap_or_else(|| {
        panic!(
            "{receiver:?}, seed {seed}: the controller was told of {told:?}, which no ACK counted: {:?}, {:?}, {:?}",
            adapter.validation(),
            pages.acks.iter().map(|(largest, counts, acked)| (largest, counts, acked.len())).collect::<Vec<_>>(),
            pages.others
        )
    });
    // Of an ACK that only tells of packets it has given up the stack says nothing, nor of any after the
    // close.
    let untold = pages.acks.iter().take(before_the_close).skip(last + 1);
    let untold: usize = untold.map(|(_, _, acked)| acked.len()).sum();
    assert!(
        untold <= 6,
        "{receiver:?}, seed {seed}: the controller was not told of {untold} packets, {:?}",
        adapter.validation()
    );
    assert_eq!(adapter.validation(), State::Capable);
    assert!(pages.acks.len() >= 10, "{} ACKs", pages.acks.len());
    expected
}

fn add(counts: &mut EcnCounts, ecn: Ecn) {
    match ecn {
        // Before the first ACK, when ten packets have been marked already.
        Ecn::NotEct => (),
        Ecn::Ect0 => counts.ect0 += 1,
        Ecn::Ect1 => counts.ect1 += 1,
        Ecn::Ce => counts.ce += 1,
    }
}

fn every_mark_is_accounted_for(receiver: Receiver) {
    for seed in 1..=RUNS {
        let counts = support::under_a_still_clock(transfer(receiver, seed));
        let EcnCounts { ect0, ect1, ce } = counts;
        assert!(ect1 > 100 && ect0 > 80 && ce > 10, "{receiver:?}, seed {seed}: {counts:?}");
    }
}

#[test]
fn quinn_as_it_comes_echoes_every_mark() {
    every_mark_is_accounted_for(Receiver::Quinn);
}

#[cfg(feature = "s2n")]
#[test]
fn s2n_quic_as_it_comes_echoes_every_mark() {
    every_mark_is_accounted_for(Receiver::S2n);
}
