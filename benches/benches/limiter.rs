//! Limiters: what one check costs.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sprag::{Limiter, Space};
use sprag_benches::case::{BATCH, Rate};
use sprag_benches::draw::{Draw, Key, key, sequence};
use sprag_benches::ours::{Home, Reach};
use std::hint::black_box;

fn checks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("limiter");
    for universe in [1, 1_000, 1_000_000] {
        let home = Home::open(Reach::Memory, universe).expect("a space in memory");
        let limiter = home.limiter(Rate::AMPLE).expect("a limiter");
        let keys = sequence(Draw::Uniform, universe, 1 << 16, 1);
        fill(&limiter, universe);
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("check", universe), |bencher| {
            let mut keys = keys.iter().cycle();
            bencher.iter(|| check(&limiter, keys.next()));
        });
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(BenchmarkId::new("check batch", universe), |bencher| {
            let mut batches = keys.chunks(BATCH).cycle();
            bencher.iter(|| {
                let batch = batches.next().unwrap_or_default();
                let each = |_, decision| {
                    let _ = black_box(decision);
                };
                limiter.check_batch(batch, 1, each).expect("an answer");
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    let space = Space::open("mem:").expect("a space in memory");
    for (name, limit) in [
        ("token bucket", "1000/ms;burst=1000000000"),
        ("spent token bucket", "1/day"),
    ] {
        let limiter = space.limiter(name, limit).expect("a limiter");
        let key = key(0);
        check(&limiter, Some(&key));
        group.bench_function(name, |bencher| bencher.iter(|| check(&limiter, Some(&key))));
        group.bench_function(format!("{name}, peek"), |bencher| {
            bencher.iter(|| black_box(limiter.peek(black_box(&key)).expect("an answer")));
        });
        group.bench_function(format!("{name}, all of the decision"), |bencher| {
            bencher.iter(|| {
                let decision = limiter.check(black_box(&key), 1).expect("an answer");
                black_box((
                    decision.remaining(),
                    decision.retry_after(),
                    decision.reset_after(),
                ))
            });
        });
    }
    group.finish();
}

fn fill(limiter: &Limiter, universe: u64) {
    for rank in 0..universe {
        check(limiter, Some(&key(rank)));
    }
}

fn check(limiter: &Limiter, key: Option<&Key>) {
    if let Some(key) = key {
        let _ = black_box(limiter.check(black_box(key), 1).expect("an answer"));
    }
}

criterion_group!(benches, checks);
criterion_main!(benches);
