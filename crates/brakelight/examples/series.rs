//! Windows and delays over time.

use std::error::Error;

use brakelight::prelude::*;

/// Prints one line per second of ABC on a step trace.
pub fn main() -> Result<(), Box<dyn Error>> {
    let request = Compare {
        traces: vec!["step".into()],
        schemes: vec![Scheme::parse("abc")?],
        duration: Some(Duration::from_secs(10)),
        runs: Some(1),
        series: true,
        ..Compare::default()
    };
    let table = lab::compare(&request)?;
    let series = table.first[0].series.as_ref().ok_or("series were asked for")?;
    let (link, flow) = (&series.links[0], &series.flows[0]);
    let each = (1.0 / series.bin_s).round() as usize;
    println!("time  capacity  carried  p95 delay  window");
    for bin in (0..link.time_s.len()).step_by(each) {
        println!(
            "{:3.0} s  {:5.1}  {:5.1} Mbit/s  {:5.1} ms  {:4.0} packets",
            link.time_s[bin],
            link.capacity_mbps[bin],
            link.throughput_mbps[bin],
            link.queueing_delay_p95_ms[bin].unwrap_or(0.0),
            flow.cwnd_pkts[bin],
        );
    }
    Ok(())
}
