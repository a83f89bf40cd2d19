//! QUIC as this cluster speaks it: who is let in, which version, how long silence is borne, and for which reasons a
//! connection is closed.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use ring::{digest, hmac};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig as TlsServerConfig};

use crate::certificates::{Credentials, Role};

/// What is spoken over a connection.
const ALPN: &[u8] = b"sprag/1";

/// After how much silence a node is given up by another. One that stands still for less, since its disk does, stays
/// connected.
const SILENCE_MS: u32 = 3_000;

/// And by a client, which then asks another.
const CLIENT_SILENCE_MS: u32 = 1_000;

/// How often something is said, at least: a few times in the shorter of the two.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// How many packets go without an acknowledgement of their own, and for how long. What is answered at all is acknowledged
/// by the answer; a packet that only acknowledges costs as much as one that says something.
const ACKNOWLEDGED_TOGETHER: u32 = 10;
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(5);

/// What the other side may have under way to us on one stream, and we to it. More waits, or is dropped, where it came from.
const WINDOW_BYTES: u32 = 8 << 20;

/// And who comes, on all streams together, before it is known who that is: a hello, and what follows it at once.
const ARRIVAL_WINDOW_BYTES: u32 = 16 << 10;

/// What a connection's round trip is taken for until it is known.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// Why a connection is closed, as a number and in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The process ends.
    Stopping,
    /// What came is no frame.
    BadFrame,
    /// The certificate is of somebody else than who it was said to be.
    NotWhoItSays,
    /// Another cluster was meant.
    OtherCluster,
    /// Another version is spoken.
    OtherVersion,
    /// The peer has come again over another connection.
    Replaced,
    /// It doesn't take what is sent to it.
    TooSlow,
    /// There are as many as may be.
    TooMany,
}

impl Close {
    fn code(self) -> VarInt {
        VarInt::from_u32(match self {
            Close::Stopping => 0,
            Close::BadFrame => 1,
            Close::NotWhoItSays => 2,
            Close::OtherCluster => 3,
            Close::OtherVersion => 4,
            Close::Replaced => 5,
            Close::TooSlow => 6,
            Close::TooMany => 7,
        })
    }

    /// Closes `connection` for this reason.
    pub fn close(self, connection: &Connection, words: &str) {
        connection.close(self.code(), words.as_bytes());
    }

    /// Closes every connection of `endpoint` for this reason.
    pub fn close_all(self, endpoint: &Endpoint, words: &str) {
        endpoint.close(self.code(), words.as_bytes());
    }
}

/// Why no endpoint could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The certificates are no good.
    #[error("the certificates can't be used: {0}; make them anew with `sprag-node certificates`")]
    Certificates(String),
    /// The address can't be used.
    #[error("listen: {address}: {error}; name an address of this machine and a free port")]
    Address {
        /// Which.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
}

/// How this side opens connections.
///
/// # Errors
/// [`TransportError::Certificates`].
pub fn dialling(credentials: &Credentials) -> Result<ClientConfig, TransportError> {
    let provider = provider();
    let verifier = WebPkiServerVerifier::builder_with_provider(
        Arc::new(authority(credentials)?),
        Arc::clone(&provider),
    )
    .build()
    .map_err(unusable)?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(
            vec![credentials.certificate.clone()],
            credentials.key.clone_key(),
        )
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Each connection proves anew who is there.
    config.resumption = Resumption::disabled();
    let mut config = ClientConfig::new(Arc::new(
        QuicClientConfig::try_from(config).map_err(unusable)?,
    ));
    let silence_ms = match credentials.role {
        Role::Node(_) => SILENCE_MS,
        Role::Client => CLIENT_SILENCE_MS,
    };
    config.transport_config(Arc::new(transport(silence_ms, WINDOW_BYTES)));
    Ok(config)
}

/// A node's endpoint: one socket for all that comes and goes.
///
/// # Errors
/// [`TransportError`].
pub fn listen(address: SocketAddr, credentials: &Credentials) -> Result<Endpoint, TransportError> {
    let provider = provider();
    let verifier = WebPkiClientVerifier::builder_with_provider(
        Arc::new(authority(credentials)?),
        Arc::clone(&provider),
    )
    .build()
    .map_err(unusable)?;
    let mut config = TlsServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![credentials.certificate.clone()],
            credentials.key.clone_key(),
        )
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let mut server = ServerConfig::with_crypto(Arc::new(
        QuicServerConfig::try_from(config).map_err(unusable)?,
    ));
    server.transport_config(Arc::new(transport(SILENCE_MS, ARRIVAL_WINDOW_BYTES)));
    // The key is the node's from one life to the next: whoever still speaks to an earlier life is told so at once.
    let mut seed = digest::Context::new(&digest::SHA256);
    seed.update(b"sprag reset");
    seed.update(credentials.key.secret_der());
    let reset = hmac::Key::new(hmac::HMAC_SHA256, seed.finish().as_ref());
    let endpoint = EndpointConfig::new(Arc::new(reset));
    let socket = UdpSocket::bind(address);
    socket
        .and_then(|socket| Endpoint::new(endpoint, Some(server), socket, Arc::new(TokioRuntime)))
        .map_err(|error| TransportError::Address { address, error })
}

/// Who the other side of `connection` has proved to be; none: nobody that has a place in this cluster.
pub(crate) fn proven(connection: &Connection, credentials: &Credentials) -> Option<Role> {
    let identity = connection.peer_identity()?;
    let certificates = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    credentials.role_of(certificates.first()?)
}

/// It is known who is at the other side of `connection`, which came here: it may say as much as others.
pub(crate) fn widen(connection: &Connection) {
    connection.set_receive_window(VarInt::from_u32(WINDOW_BYTES));
}

fn transport(silence_ms: u32, receive_window: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(WINDOW_BYTES);
    let mut acknowledging = AckFrequencyConfig::default();
    acknowledging
        .ack_eliciting_threshold(VarInt::from_u32(ACKNOWLEDGED_TOGETHER))
        .max_ack_delay(Some(ACKNOWLEDGED_WITHIN));
    transport
        .ack_frequency_config(Some(acknowledging))
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(silence_ms))))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(FIRST_ROUND_TRIP)
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .stream_receive_window(window)
        .receive_window(VarInt::from_u32(receive_window))
        .send_window(WINDOW_BYTES.into())
        .datagram_receive_buffer_size(None);
    transport
}

fn authority(credentials: &Credentials) -> Result<RootCertStore, TransportError> {
    let mut store = RootCertStore::empty();
    store.add(credentials.authority.clone()).map_err(unusable)?;
    Ok(store)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn unusable(error: impl std::fmt::Display) -> TransportError {
    TransportError::Certificates(error.to_string())
}
