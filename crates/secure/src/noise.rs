//! The Noise handshake (Noise Protocol Framework, revision 34, pattern NNpsk0) through the `snow` crate.
//!
//! The messages are `psk, e` and `e, ee`. The pre-shared key comes first, so an initiator without it is refused
//! before any elliptic-curve computation. The ephemeral keys give forward secrecy to everything after the first
//! message.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::key::ClusterKey;
use super::key_schedule::{Secrets, derive};
use super::layout::{PUBLIC_LEN, TAG_LEN, common};
use super::message::Cookie;
use super::protection::Protection;
use super::random::{RandomError, SecureRandom};

/// Name of the protocol, which is hashed into the transcript; also in `docs/wire.md`.
pub(crate) const PROTOCOL: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

/// Bytes that a Noise message adds to its payload: a public key and a tag.
pub(crate) const OVERHEAD: usize = PUBLIC_LEN + TAG_LEN;

/// One end of a Noise handshake.
pub(crate) struct Noise(Box<HandshakeState>);

/// Error for a message that was made with another key or altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuthenticationError;

/// Role of an end in the handshake; the initiator sends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Initiator,
    Responder,
}

impl Noise {
    /// Creates the state of one end. `header` and `cookie` are those of the Initiate, and both ends must have the
    /// same. This authenticates the version, and makes a recorded message useless from another address or after its
    /// cookie has expired.
    pub(crate) fn new(
        role: Role,
        key: &ClusterKey,
        header: &[u8; common::LEN],
        cookie: &Cookie,
        random: &mut dyn SecureRandom,
    ) -> Result<Self, RandomError> {
        let mut seed = Zeroizing::new([0; PUBLIC_LEN]);
        random.fill(&mut seed[..])?;
        let params = PROTOCOL.parse().expect("a name of the framework");
        let prologue = [&b"pathweave "[..], header, cookie].concat();
        let psk = key.noise_psk();
        let builder = Builder::with_resolver(params, Box::new(Resolver { seed }))
            .psk(0, &psk)
            .and_then(|builder| builder.prologue(&prologue))
            .expect("each is set once");
        let built = match role {
            Role::Initiator => builder.build_initiator(),
            Role::Responder => builder.build_responder(),
        };
        Ok(Noise(Box::new(built.expect("the pattern needs nothing else"))))
    }
    /// Writes the next message with `payload`.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut message = vec![0; payload.len() + OVERHEAD];
        let len = self.0.write_message(payload, &mut message).expect("our turn, and there is room");
        message.truncate(len);
        message
    }
    /// Reads a message and returns its payload. After a failure the same turn may be tried again.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, AuthenticationError> {
        let mut payload = vec![0; message.len()];
        let len = self.0.read_message(message, &mut payload).map_err(|_| AuthenticationError)?;
        payload.truncate(len);
        Ok(payload)
    }
    /// Derives the secrets after both messages.
    pub(crate) fn derive_secrets(mut self, protection: Protection) -> Secrets {
        assert!(self.0.is_handshake_finished(), "both messages are through");
        let (to_responder, to_initiator) = self.0.dangerously_get_raw_split();
        let (to_responder, to_initiator) = (Zeroizing::new(to_responder), Zeroizing::new(to_initiator));
        Secrets::new((&to_responder, &to_initiator), self.0.get_handshake_hash(), protection)
    }
}

/// Generator of ephemeral secrets from a seed that is drawn once.
pub(crate) struct Ephemerals {
    seed: Zeroizing<[u8; 32]>,
    drawn: u32,
}

impl Ephemerals {
    pub(crate) fn new(random: &mut dyn SecureRandom) -> Result<Self, RandomError> {
        let mut seed = Zeroizing::new([0; 32]);
        random.fill(&mut seed[..])?;
        Ok(Ephemerals { seed, drawn: 0 })
    }
}

impl SecureRandom for Ephemerals {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        derive(&self.seed[..], &[b"ephemeral ", &self.drawn.to_be_bytes()], out);
        self.drawn = self.drawn.checked_add(1).ok_or(RandomError)?;
        Ok(())
    }
}

/// Crypto primitives of snow, but with random bytes from the caller's source.
struct Resolver {
    seed: Zeroizing<[u8; PUBLIC_LEN]>,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(OneShotRandom { seed: Some(self.seed.clone()) }))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Source that gives its bytes once, since an end makes one ephemeral key.
struct OneShotRandom {
    seed: Option<Zeroizing<[u8; PUBLIC_LEN]>>,
}

impl Random for OneShotRandom {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        match self.seed.take() {
            Some(seed) if out.len() == seed.len() => {
                out.copy_from_slice(&seed[..]);
                Ok(())
            }
            _ => Err(snow::Error::Rng),
        }
    }
}
