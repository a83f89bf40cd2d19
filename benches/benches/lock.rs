//! Locks: what one call costs.

use criterion::{Criterion, criterion_group, criterion_main};
use sprag::Space;
use sprag_benches::draw::key;
use std::hint::black_box;
use std::time::Duration;

fn locks(criterion: &mut Criterion) {
    let space = Space::open("mem:").expect("a space in memory");
    let name = key(0);
    let mut group = criterion.benchmark_group("lock");
    group.bench_function("handle", |bencher| {
        bencher.iter(|| drop(black_box(space.lock(black_box(&name)))));
    });
    group.bench_function("acquire and release by key", |bencher| {
        bencher.iter(|| {
            let lock = space.lock(black_box(&name)).expect("a name");
            black_box(lock.try_acquire().expect("an answer").is_some())
        });
    });
    let lock = space.lock(&name).expect("a name");
    group.bench_function("acquire and release, bound handle", |bencher| {
        bencher.iter(|| black_box(lock.try_acquire().expect("an answer").is_some()));
    });
    let held = key(1);
    let busy = space.lock(&held).expect("a name");
    let mut hold = busy.acquire().expect("a hold");
    group.bench_function("busy", |bencher| {
        bencher.iter(|| black_box(busy.try_acquire().expect("an answer").is_none()));
    });
    group.bench_function("is_valid", |bencher| {
        bencher.iter(|| black_box(hold.is_valid()));
    });
    group.bench_function("is_held", |bencher| {
        bencher.iter(|| black_box(hold.is_held()));
    });
    group.bench_function("renew", |bencher| {
        bencher.iter(|| hold.renew().expect("a lease"));
    });
    group.bench_function("wait in vain for 0 ms", |bencher| {
        bencher.iter(|| {
            let none = busy.acquire_timeout(Duration::ZERO).expect("an answer");
            black_box(none.is_none())
        });
    });
    group.finish();
}

criterion_group!(benches, locks);
criterion_main!(benches);
