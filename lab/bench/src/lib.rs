//! Benchmarks across crates: a single Job (`job`) and a burst of clusters through the whole fleet plane (`burst`).
