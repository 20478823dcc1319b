//! Speeds for people.

use brakelight_scenario::documents::{Bench, PartsBy, SimProfile};

use super::table::{self, Column};
use super::{Screen, number, thousands};

/// Returns a table of the simulator's speed, one of what queues cost, and a line for each row of ns-3.
pub fn in_words(bench: &Bench, screen: &Screen) -> String {
    let columns = [
        Column::text("row"),
        Column::number("flows", ""),
        Column::number("packets", ""),
        Column::number("wall", "s"),
        Column::number("speed", "packets/s"),
        Column::number("memory", "peak MB"),
    ];
    let rows: Vec<Vec<String>> = bench
        .sim
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                row.flows.to_string(),
                thousands(row.packets as f64),
                format!("{:.4}", row.wall_s),
                thousands(row.packets_per_s),
                number(row.peak_rss_mb),
            ]
        })
        .collect();
    let queues: Vec<Vec<String>> =
        bench.queues.iter().map(|row| vec![row.name.clone(), number(row.ns_per_packet)]).collect();
    let costs = [Column::text("queue"), Column::number("cost", "ns/packet")];
    let tables =
        format!("{}\n{}", table::render(&columns, &rows, screen), table::render(&costs, &queues, screen));
    let beside = bench.ns3.iter().map(|row| {
        format!(
            "{}: ns-3 simulates {} packets/s ({} s); Brakelight is {:.1} times as fast\n",
            row.name,
            thousands(row.packets_per_s),
            number(row.wall_s),
            row.times_as_fast
        )
    });
    tables + &beside.collect::<String>()
}

/// Returns a table of the parts of the simulator for each profile, with what a packet costs there.
pub fn profiles_in_words(profiles: &[SimProfile], screen: &Screen) -> String {
    let columns =
        [Column::text("part"), Column::number("cost", "instructions/packet"), Column::number("share", "%")];
    let one = |profile: &SimProfile| {
        let rows: Vec<Vec<String>> = profile
            .parts
            .iter()
            .map(|part| {
                let cost = thousands(part.instructions_per_packet);
                vec![part.name.clone(), cost, format!("{:.1}", part.percent)]
            })
            .collect();
        let parts_by = match profile.parts_by {
            PartsBy::Files => "source file, in inlined code too",
            PartsBy::Functions => "function, with the code inlined into it",
        };
        format!(
            "{}: {} data packets, {} instructions each; parts by {parts_by}\n\n{}",
            profile.name,
            thousands(profile.packets as f64),
            thousands(profile.instructions_per_packet),
            table::render(&columns, &rows, screen)
        )
    };
    profiles.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::documents::Ns3Bench;

    use super::*;

    #[test]
    fn what_ns_3_took_is_in_the_document_and_below_the_tables() {
        let row = Ns3Bench { name: "S1".into(), wall_s: 2.5, packets_per_s: 40_000.0, times_as_fast: 88.84 };
        let bench = Bench { ns3: vec![row], ..Bench::default() };
        let text = in_words(&bench, &Screen::default());
        assert!(
            text.ends_with(
                "S1: ns-3 simulates 40,000 packets/s (2.50 s); Brakelight is 88.8 times as fast\n"
            )
        );
        assert_eq!(serde_json::to_value(&bench).unwrap()["ns3"][0]["times_as_fast"], 88.84);
        let without = serde_json::to_value(Bench::default()).unwrap();
        assert!(without.get("ns3").is_none(), "{without}");
    }
}
