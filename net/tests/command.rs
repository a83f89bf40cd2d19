//! The command: what is wrong is said with the argument's name, its bounds, and the way out.

mod support;

use std::process::{Command, Output};

use support::{BINARY, Cluster};

fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

fn words(output: &Output) -> String {
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn certificates_are_made_once_and_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made");
    let path = path.to_str().unwrap();
    let error = words(&run(&["certificates", path, "--nodes", "16"]));
    assert!(error.contains("nodes: 16, must be 1 to 15"), "{error}");
    let made = run(&["certificates", path, "--nodes", "3"]);
    assert!(made.status.success() && made.stdout.starts_with(b"cluster "));
    let error = words(&run(&["certificates", path, "--nodes", "3"]));
    assert!(error.contains("never written over"), "{error}");
}

#[test]
fn a_node_that_can_t_start_says_which_argument_is_wrong_and_what_would_do() {
    let cluster = Cluster::new(3);
    let cases: [(&[&str], &str); 6] = [
        (
            &["--peer", "1=localhost:1"],
            "peer: node 1 is this node itself; leave it out",
        ),
        (
            &["--peer", "2=localhost:1"],
            "peer: node 2 is given twice; give each once",
        ),
        (&["--peer", "4=localhost"], "must be a host, `:` and a port"),
        (
            &["--peer", "localhost:1"],
            "must be a node's number, `=`, and where it is",
        ),
        (
            &["--election-ms", "90"],
            "beat_ns: 50000000, must be at most half of election_ns",
        ),
        (&["--slots", "0"], "slots_max is 0; it must be at least 1"),
    ];
    for (more, expected) in cases {
        let output = cluster.command(1).args(more).output().unwrap();
        let error = words(&output);
        assert!(error.contains(expected), "{more:?}: {error}");
    }
}

#[test]
fn a_data_directory_has_one_node_and_keeps_to_it() {
    let mut cluster = Cluster::started(3);
    let second = cluster.command(1).output().unwrap();
    let error = words(&second);
    assert!(
        error.contains("another process uses the directory"),
        "{error}"
    );
    cluster.kill(1);
    cluster.kill(2);
    std::fs::remove_dir_all(cluster.data(1)).unwrap();
    std::fs::rename(cluster.data(2), cluster.data(1)).unwrap();
    let error = words(&cluster.command(1).output().unwrap());
    assert!(error.contains("is of node 2, not of 1"), "{error}");
}

#[test]
fn a_node_needs_its_own_certificates() {
    let cluster = Cluster::new(1);
    std::fs::remove_file(cluster.certificates().join("node-1.key")).unwrap();
    let error = words(&cluster.command(1).output().unwrap());
    assert!(error.contains("node-1.key"), "{error}");
    assert!(
        error.contains("that `sprag-node certificates` made"),
        "{error}"
    );
}
