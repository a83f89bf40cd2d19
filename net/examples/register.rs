//! Sets and reads registers of a running cluster.
//!
//! ```text
//! register --certificates /etc/sprag --node 1=10.0.0.1:7700 --node 2=10.0.0.2:7700 put greeting hello
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use sprag_net::certificates::{Credentials, Role};
use sprag_net::{Client, ClientOptions, NodeId};
use tokio::runtime::Builder;

/// Sets and reads registers of a running cluster.
#[derive(Parser)]
struct Arguments {
    /// The directory with the client's certificate
    #[arg(long, value_name = "DIRECTORY")]
    certificates: PathBuf,
    /// A node, and where it is; once for each
    #[arg(long = "node", required = true, value_name = "NODE=HOST:PORT", value_parser = node)]
    nodes: Vec<(NodeId, String)>,
    /// How long it may take
    #[arg(long, default_value_t = 5_000, value_name = "MILLISECONDS")]
    timeout_ms: u64,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Sets a register; says its new version
    Put { key: String, value: String },
    /// Reads a register; says its version and what it holds
    Get { key: String },
}

fn main() -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build();
    let said = match runtime {
        Ok(runtime) => runtime.block_on(run(Arguments::parse())),
        Err(error) => Err(error.into()),
    };
    match said {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("register: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<String, Box<dyn std::error::Error>> {
    let credentials = Credentials::read(&arguments.certificates, Role::Client)?;
    let options = ClientOptions {
        nodes: arguments.nodes.into_iter().collect(),
        timeout: Duration::from_millis(arguments.timeout_ms),
    };
    let client = Client::new(options, &credentials)?;
    Ok(match arguments.what {
        What::Put { key, value } => {
            let version = client.put(key.as_bytes(), value.as_bytes()).await?;
            format!("version {version}")
        }
        What::Get { key } => match client.get(key.as_bytes()).await? {
            Some(found) => {
                let value = String::from_utf8_lossy(&found.value);
                format!("version {}: {value}", found.version)
            }
            None => "never set".to_owned(),
        },
    })
}

fn node(text: &str) -> Result<(NodeId, String), String> {
    let parts = text.split_once('=');
    let node = parts.and_then(|(node, address)| Some((NodeId(node.parse().ok()?), address)));
    let (node, address) = node.ok_or("must be a node's number, `=`, and where it is")?;
    Ok((node, address.to_owned()))
}
