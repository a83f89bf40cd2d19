//! A check in `shm:` against a Redis server on this machine that runs GCRA in a script: over a unix
//! socket, by one connection, nothing written to disk. Skipped where no server is installed.

use crate::Plan;
use crate::contest::{self, Outcome};
use sprag_benches::case::Rate;
use sprag_benches::draw;
use sprag_benches::ours::{Home, Reach};
use sprag_benches::{Failure, Result, Timed};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

const CHECKS: usize = 20_000;

/// Time of arrival in microseconds under the key; admits while it is no more than a burst ahead.
const SCRIPT: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = tonumber(ARGV[1])
local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
if arrival < now then arrival = now end
arrival = arrival + interval
if arrival - now > interval * tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
return 1
";

pub(crate) fn compare(plan: Plan) -> Result<Outcome> {
    let server = Server::start()?;
    let mut client = Client::connect(&server)?;
    let checks = CHECKS / plan.effort.divisor;
    let rate = Rate::AMPLE;
    let key = draw::key(0);
    let hash = client.load(SCRIPT)?;
    let request = command(&[
        b"EVALSHA",
        hash.as_bytes(),
        b"1",
        &key,
        rate.period.as_micros().to_string().as_bytes(),
        rate.burst.to_string().as_bytes(),
    ]);
    let home = Home::open(Reach::Shared, 1)?;
    let limiter = home.limiter(rate)?;
    contest::alternate(
        plan,
        || timed(checks, || Ok(limiter.check(&key, 1)?.is_allowed())),
        || timed(checks, || Ok(client.call(&request)? == ":1")),
    )
}

fn timed(checks: usize, mut check: impl FnMut() -> Result<bool>) -> Result<Timed> {
    let mut admitted = 0;
    let started = Instant::now();
    for _ in 0..checks {
        admitted += u64::from(check()?);
    }
    let ns = started.elapsed().as_nanos() as f64 / checks as f64;
    Ok(Timed { ns, admitted })
}

/// A server with a directory of its own, stopped when dropped.
struct Server {
    process: Child,
    directory: TempDir,
}

impl Server {
    fn start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("sprag-redis-").tempdir()?;
        let started = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--daemonize", "no", "--logfile", ""])
            .arg("--unixsocket")
            .arg(directory.path().join("socket"))
            .arg("--dir")
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let process = match started {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err("redis-server is not installed".into());
            }
            started => started?,
        };
        let mut server = Self { process, directory };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let log = self.process.stdout.as_mut();
        let log = log.ok_or_else(|| Failure::from("redis-server has no output"))?;
        for line in BufReader::new(log).lines() {
            if line?.to_lowercase().contains("ready to accept connections") {
                return Ok(());
            }
        }
        Err("redis-server ended before it was ready".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is this process's own child; if it is gone already there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    fn connect(server: &Server) -> Result<Self> {
        let stream = UnixStream::connect(server.directory.path().join("socket"))?;
        let stream = BufReader::new(stream);
        Ok(Self { stream })
    }

    /// Loads a script; its hash.
    fn load(&mut self, script: &str) -> Result<String> {
        let head = self.call(&command(&[b"SCRIPT", b"LOAD", script.as_bytes()]))?;
        let len: usize = head
            .strip_prefix('$')
            .ok_or_else(|| format!("the server answers {head}"))?
            .parse()?;
        let mut hash = vec![0; len + 2];
        self.stream.read_exact(&mut hash)?;
        hash.truncate(len);
        Ok(String::from_utf8(hash)?)
    }

    /// Sends a request; the first line of the answer.
    fn call(&mut self, request: &[u8]) -> Result<String> {
        self.stream.get_mut().write_all(request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        line.truncate(line.trim_end().len());
        if line.is_empty() || line.starts_with('-') {
            return Err(format!("the server answers {line:?}").into());
        }
        Ok(line)
    }
}

/// A request: an array of byte strings.
fn command(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend(format!("${}\r\n", part.len()).into_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
