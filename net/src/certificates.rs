//! The certificates of a cluster: an authority of its own, and what it signs for each node and for clients. Who somebody
//! is is a name in the certificate, with the cluster in it; all that is trusted is the one authority. Each certificate says
//! too how many nodes found the cluster, so that no two sets of nodes can, each without the other.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use sprag_log::ClusterId;
use sprag_paxos::{Configuration, NodeId};

/// The file with the cluster's number, in hexadecimal.
const CLUSTER: &str = "cluster";
const AUTHORITY: &str = "ca";

/// Whom a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A node.
    Node(NodeId),
    /// Any client.
    Client,
}

impl Role {
    /// The name in the certificate.
    pub fn name(self, cluster: ClusterId) -> String {
        format!("{}.{cluster}.sprag", self.file())
    }

    /// Whom a certificate is for, if for anybody in this cluster.
    pub(crate) fn of(certificate: &CertificateDer<'_>, cluster: ClusterId) -> Option<Self> {
        let nodes = (1..=Configuration::VOTERS_MAX as u16).map(|node| Role::Node(NodeId(node)));
        let mut roles = [Role::Client].into_iter().chain(nodes);
        roles.find(|role| is_named(certificate, &role.name(cluster)))
    }

    fn file(self) -> String {
        match self {
            Role::Node(node) => format!("node-{}", node.0),
            Role::Client => "client".to_owned(),
        }
    }
}

/// What one side proves itself with, and how it knows the other.
#[derive(Debug)]
pub struct Credentials {
    /// The cluster that they are of.
    pub cluster: ClusterId,
    /// Whom they prove.
    pub role: Role,
    /// How many nodes found the cluster: those from 1 to this.
    pub founders: u16,
    pub(crate) authority: CertificateDer<'static>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Why certificates could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificatesError {
    /// Too few or too many nodes.
    #[error("nodes: {given}, must be 1 to {most}; name so many")]
    Nodes {
        /// How many were asked for.
        given: u16,
        /// The most there may be.
        most: usize,
    },
    /// There are some already.
    #[error(
        "{} exists; certificates are never written over: name another directory, or remove it to found another cluster",
        .0.display()
    )]
    Exists(PathBuf),
    /// The directory can't be made.
    #[error("{} can't be made: {error}; name a directory to make in one that exists", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file can't be read or written.
    #[error("{}: {error}; name the directory that `sprag-node certificates` made, as its owner", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file doesn't hold what it should.
    #[error("{}: {what}; take the file anew from where it was made", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The making failed.
    #[error("certificates can't be made: {0}")]
    Making(String),
}

/// Makes the directory at `path` with an authority for a new cluster, and certificates for nodes 1 to `nodes` and for
/// clients. Gives the cluster. Keys are for their owner's eyes only; that of the authority is needed only to sign more.
///
/// # Errors
/// [`CertificatesError::Nodes`], [`CertificatesError::Exists`], [`CertificatesError::Directory`], [`CertificatesError::File`],
/// [`CertificatesError::Making`].
pub fn make(path: &Path, nodes: u16) -> Result<ClusterId, CertificatesError> {
    let most = Configuration::VOTERS_MAX;
    if nodes == 0 || usize::from(nodes) > most {
        let given = nodes;
        return Err(CertificatesError::Nodes { given, most });
    }
    fs::create_dir(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CertificatesError::Exists(path.to_owned()),
        _ => CertificatesError::Directory {
            path: path.to_owned(),
            error,
        },
    })?;
    let cluster = ClusterId(random()?);
    write(&path.join(CLUSTER), &format!("{cluster}\n"), 0o644)?;

    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("{cluster}.sprag"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(making)?;
    write(&key_path(path, AUTHORITY), &key.serialize_pem(), 0o600)?;
    let authority = CertifiedIssuer::self_signed(params, key).map_err(making)?;
    write(&certificate_path(path, AUTHORITY), &authority.pem(), 0o644)?;

    let roles = (1..=nodes).map(|node| Role::Node(NodeId(node)));
    for role in roles.chain([Role::Client]) {
        let name = role.name(cluster);
        let names = vec![name.clone(), founders_name(nodes, cluster)];
        let mut params = CertificateParams::new(names).map_err(making)?;
        params.distinguished_name = common_name(&name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match role {
            Role::Node(_) => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            Role::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        let key = KeyPair::generate().map_err(making)?;
        let certificate = params.signed_by(&key, &authority).map_err(making)?;
        write(&key_path(path, &role.file()), &key.serialize_pem(), 0o600)?;
        write(
            &certificate_path(path, &role.file()),
            &certificate.pem(),
            0o644,
        )?;
    }
    Ok(cluster)
}

impl Credentials {
    /// Reads those of `role` from the directory that [`make`] made.
    ///
    /// # Errors
    /// [`CertificatesError::File`], [`CertificatesError::Content`].
    pub fn read(path: &Path, role: Role) -> Result<Self, CertificatesError> {
        let cluster_path = path.join(CLUSTER);
        let text = fs::read_to_string(&cluster_path).map_err(file_error(&cluster_path))?;
        let cluster = u64::from_str_radix(text.trim(), 16)
            .map(ClusterId)
            .map_err(|error| CertificatesError::Content {
                path: cluster_path,
                what: error.to_string(),
            })?;
        let key_path = key_path(path, &role.file());
        let key = read(&key_path, PrivateKeyDer::from_pem_slice)?;
        let certificate = read_certificate(path, &role.file())?;
        let not_of = |what: String| CertificatesError::Content {
            path: certificate_path(path, &role.file()),
            what: format!("it is not of {what}"),
        };
        if Role::of(&certificate, cluster) != Some(role) {
            return Err(not_of(role.name(cluster)));
        }
        let founders = (1..=Configuration::VOTERS_MAX as u16)
            .find(|founders| is_named(&certificate, &founders_name(*founders, cluster)))
            .ok_or_else(|| not_of(format!("any number of nodes that found {cluster}")))?;
        Ok(Self {
            cluster,
            role,
            founders,
            authority: read_certificate(path, AUTHORITY)?,
            certificate,
            key,
        })
    }

    /// Whom another's certificate is for, where that is of the same cluster, founded by the same nodes.
    pub(crate) fn role_of(&self, certificate: &CertificateDer<'_>) -> Option<Role> {
        let founders = founders_name(self.founders, self.cluster);
        Role::of(certificate, self.cluster).filter(|_| is_named(certificate, &founders))
    }
}

/// The name that says how many nodes found the cluster.
fn founders_name(founders: u16, cluster: ClusterId) -> String {
    format!("founders-{founders}.{cluster}.sprag")
}

fn is_named(certificate: &CertificateDer<'_>, name: &str) -> bool {
    match (
        ParsedCertificate::try_from(certificate),
        ServerName::try_from(name),
    ) {
        (Ok(certificate), Ok(name)) => verify_server_name(&certificate, &name).is_ok(),
        _ => false,
    }
}

/// A number that nobody can guess.
pub(crate) fn random() -> Result<u64, CertificatesError> {
    let mut bytes = [0; 8];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| CertificatesError::Making("the system gives no random numbers".to_owned()))?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_certificate(path: &Path, name: &str) -> Result<CertificateDer<'static>, CertificatesError> {
    read(
        &certificate_path(path, name),
        CertificateDer::from_pem_slice,
    )
}

fn read<T>(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, rustls::pki_types::pem::Error>,
) -> Result<T, CertificatesError> {
    let bytes = fs::read(path).map_err(file_error(path))?;
    parse(&bytes).map_err(|error| CertificatesError::Content {
        path: path.to_owned(),
        what: error.to_string(),
    })
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertificatesError> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(file_error(path))
}

fn certificate_path(path: &Path, name: &str) -> PathBuf {
    path.join(format!("{name}.pem"))
}

fn key_path(path: &Path, name: &str) -> PathBuf {
    path.join(format!("{name}.key"))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> CertificatesError {
    let path = path.to_owned();
    move |error| CertificatesError::File { path, error }
}

fn making(error: impl Display) -> CertificatesError {
    CertificatesError::Making(error.to_string())
}
