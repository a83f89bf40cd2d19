//! Runs the same tests on every disk.

/// Makes a test on each disk of each function that `conformance` has for any.
macro_rules! on_every_disk {
    ($($name:ident),* $(,)?) => {
        mod real {
            $(#[test] fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::conformance::$name(&super::RealDisk::open(&directory.path().join("node")).unwrap());
            })*
        }
        mod simulated_512 {
            $(#[test] fn $name() {
                super::conformance::$name(&super::SimulatedDisk::new(512, super::NoFaults));
            })*
        }
        mod simulated_4096 {
            $(#[test] fn $name() {
                super::conformance::$name(&super::SimulatedDisk::new(4096, super::NoFaults));
            })*
        }
    };
}
