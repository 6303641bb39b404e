//! Handshake, keys and packet protection.
