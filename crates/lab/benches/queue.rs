//! The cost of one enqueue and one dequeue at every registered queue.
//! `cargo bench -p brakelight-lab --bench queue`.

use brakelight_lab::bench::queues::workloads;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u64 = 10_000;

fn queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    group.throughput(Throughput::Elements(PACKETS));
    for mut workload in workloads() {
        let name = workload.name().to_string();
        group.bench_function(name, |bencher| bencher.iter(|| workload.run(PACKETS)));
    }
    group.finish();
}

criterion_group!(benches, queues);
criterion_main!(benches);
