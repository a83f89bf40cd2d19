//! The command: what is wrong is said with the argument's name, its bounds, and the way out.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use support::{BINARY, Cluster, PATIENCE, die_with_this};

fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

/// A node that is to refuse to start, or to end by itself. One that doesn't is killed.
fn run_until_it_ends(command: &mut Command) -> Output {
    let mut child = die_with_this(command)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        err.read_to_end(&mut stderr).unwrap();
        out.read_to_end(&mut stdout).unwrap();
        tell.send((stdout, stderr))
    });
    let Ok((stdout, stderr)) = told.recv_timeout(PATIENCE) else {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("it goes on, and said: {:?}", told.recv());
    };
    let status = child.wait().unwrap();
    Output {
        status,
        stdout,
        stderr,
    }
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
    let nowhere = directory.path().join("no/such");
    let nowhere = nowhere.to_str().unwrap();
    let error = words(&run(&["certificates", nowhere, "--nodes", "3"]));
    let expected = "; name a directory to make in one that exists";
    assert!(error.trim_end().ends_with(expected), "{error}");
    let made = run(&["certificates", path, "--nodes", "3"]);
    assert!(made.status.success() && made.stdout.starts_with(b"cluster "));
    let error = words(&run(&["certificates", path, "--nodes", "3"]));
    assert!(error.contains("never written over"), "{error}");
}

#[test]
fn a_node_that_can_t_start_says_which_argument_is_wrong_and_what_would_do() {
    let cluster = Cluster::new(3);
    let cases: [(&[&str], &str); 10] = [
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
        (
            &["--slots", "0"],
            "slots: 0, must be 65536 to 2097152: from four times snapshot-slots, which is 16384; \
             give more --slots, or fewer --snapshot-slots",
        ),
        (
            &["--slots", "399", "--snapshot-slots", "100"],
            "slots: 399, must be 400 to ",
        ),
        (&["--slots", "2097153"], "slots: 2097153, must be "),
        (&["--segments", "3"], "segments: 3, must be at least 4: "),
        (
            &["--peer", "4=localhost:1"],
            "peer: this node and its peers are nodes 1, 2, 3, 4, and the cluster of these \
             certificates is founded by nodes 1, 2, 3; name each of the others once",
        ),
    ];
    for (more, expected) in cases {
        let output = run_until_it_ends(cluster.command(1).args(more));
        let error = words(&output);
        assert!(error.contains(expected), "{more:?}: {error}");
    }
}

#[test]
fn a_data_directory_has_one_node_and_keeps_to_it() {
    let mut cluster = Cluster::started(3);
    let second = run_until_it_ends(&mut cluster.command(1));
    let error = words(&second);
    assert!(
        error.contains("another process uses the directory"),
        "{error}"
    );
    cluster.kill(1);
    cluster.kill(2);
    std::fs::remove_dir_all(cluster.data(1)).unwrap();
    std::fs::rename(cluster.data(2), cluster.data(1)).unwrap();
    let error = words(&run_until_it_ends(&mut cluster.command(1)));
    assert!(error.contains("is of node 2, not of 1"), "{error}");
}

/// Two pairs of nodes of four, of which each is told of its own pair only, would else found the cluster twice.
#[test]
fn nodes_that_are_not_told_of_all_that_found_the_cluster_found_none() {
    let cluster = Cluster::new(4);
    for (node, peer) in [(1, 2), (2, 1), (3, 4), (4, 3)] {
        let peer = format!("{peer}={}", cluster.address(peer));
        let mut command = Command::new(BINARY);
        command
            .args(["serve", "--node", &node.to_string(), "--peer", &peer])
            .args(["--listen", &cluster.address(node).to_string()])
            .arg("--certificates")
            .arg(cluster.certificates())
            .arg("--data")
            .arg(cluster.data(node));
        let error = words(&run_until_it_ends(&mut command));
        let (first, second) = if node < 3 { (1, 2) } else { (3, 4) };
        let expected = format!(
            "peers are nodes {first}, {second}, and the cluster of these certificates is founded \
             by nodes 1, 2, 3, 4"
        );
        assert!(error.contains(&expected), "{error}");
        assert!(!cluster.data(node).exists());
    }
}

#[test]
fn a_node_that_is_told_a_wrong_address_says_whom_it_found_there() {
    let mut cluster = Cluster::new(3);
    cluster.start(3);
    let wrong = cluster.address(3);
    cluster.addresses[1] = wrong;
    let mut child = die_with_this(&mut cluster.command(1))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let begins = format!("sprag-node: no link with node 2 at {wrong}: ");
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let said = stderr.lines().map_while(Result::ok);
        let mut said = said.filter(|line| line.starts_with(&begins) && line.contains("node-2."));
        tell.send(said.next())
    });
    let said = told.recv_timeout(PATIENCE);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(said, Ok(Some(_))), "{said:?}");
}

#[test]
fn a_data_directory_that_can_t_be_is_refused_with_the_way_out() {
    let cluster = Cluster::new(1);
    let file = cluster.directory.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for (data, expected) in [
        (file.clone(), "this is no directory; name one"),
        (file.join("in"), "doesn't exist; make that, or name another"),
        (
            cluster.directory.path().join("no/such"),
            "doesn't exist; make that, or name another",
        ),
    ] {
        let mut command = Command::new(BINARY);
        command
            .args(["serve", "--node", "1", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .arg("--certificates")
            .arg(cluster.certificates());
        let error = words(&run_until_it_ends(&mut command));
        let begins = format!("sprag-node: data: {}: ", data.display());
        assert!(
            error.starts_with(&begins) && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn a_node_listens_on_an_address_and_on_no_name() {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--node", "1", "--listen", "localhost:7700"]);
    command.args(["--data", "data", "--certificates", "certificates"]);
    let error = words(&run_until_it_ends(&mut command));
    let expected = "must be an IP address, `:` and a port: 10.0.0.1:7700";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_node_needs_its_own_certificates() {
    let cluster = Cluster::new(1);
    std::fs::remove_file(cluster.certificates().join("node-1.key")).unwrap();
    let error = words(&run_until_it_ends(&mut cluster.command(1)));
    assert!(error.contains("node-1.key"), "{error}");
    assert!(
        error.contains("that `sprag-node certificates` made"),
        "{error}"
    );
}
