//! Fences: what one admission costs.

use criterion::{Criterion, criterion_group, criterion_main};
use sprag::Space;
use sprag_benches::draw::key;
use std::hint::black_box;

fn fences(criterion: &mut Criterion) {
    let space = Space::open("mem:").expect("a space in memory");
    let mut group = criterion.benchmark_group("fence");
    let fence = space.fence(&key(0)).expect("a fence");
    let mut token = 0;
    group.bench_function("admit a newer token", |bencher| {
        bencher.iter(|| {
            token += 1;
            fence.admit(black_box(token)).expect("a newer token");
        });
    });
    group.bench_function("admit the same token", |bencher| {
        bencher.iter(|| fence.admit(black_box(token)).expect("the same token"));
    });
    group.bench_function("reject an older token", |bencher| {
        bencher.iter(|| black_box(fence.admit(black_box(0)).is_err()));
    });
    group.bench_function("highest", |bencher| {
        bencher.iter(|| black_box(fence.highest()));
    });
    group.finish();
}

criterion_group!(benches, fences);
criterion_main!(benches);
