//! Cookies: stateless proof that a peer receives packets at its address (as in RFC 6347, section 4.2.1).

use core::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use pathweave_units::{Duration, Time};
use zeroize::Zeroizing;

use super::layout::TAG_LEN;
use super::message::{AttemptId, Cookie};
use super::random::{RandomError, SecureRandom};

/// Creates and checks cookies. The key lives as long as the process. A cookie of an earlier process is not accepted
/// and is answered with a new one.
pub(crate) struct CookieKey {
    key: hmac::Key,
    lifetime: Duration,
    /// Attempts with cookies made before this time may have been forgotten.
    remembered_from: Time,
}

impl CookieKey {
    pub(crate) fn new(random: &mut dyn SecureRandom, lifetime: Duration) -> Result<Self, RandomError> {
        let mut key = Zeroizing::new([0; 32]);
        random.fill(&mut key[..])?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key[..]);
        Ok(CookieKey { key, lifetime, remembered_from: Time::ZERO })
    }

    /// Creates a cookie for this address and attempt. The cookie does not cover the port, which an initiator may
    /// change with the path.
    pub(crate) fn make(&self, now: Time, address: IpAddr, attempt: AttemptId) -> Cookie {
        let mut cookie = [0; _];
        let made_at = now.as_ns().to_be_bytes();
        cookie[..8].copy_from_slice(&made_at);
        cookie[8..].copy_from_slice(&self.mac(&made_at, address, attempt));
        cookie
    }

    /// Returns true if the cookie was made by this process for this address and attempt and has not expired.
    pub(crate) fn check(&self, now: Time, address: IpAddr, attempt: AttemptId, cookie: &Cookie) -> bool {
        let (made_at, mac) = cookie.split_first_chunk::<8>().expect("a cookie is longer");
        if verify_slices_are_equal(mac, &self.mac(made_at, address, attempt)).is_err() {
            return false;
        }
        let age_ns = now.as_ns().saturating_sub(u64::from_be_bytes(*made_at));
        age_ns < self.lifetime.as_ns()
    }

    /// Records that the state of an attempt with a cookie made at `time` has been dropped.
    pub(crate) fn set_forgotten_until(&mut self, time: Time) {
        self.remembered_from = self.remembered_from.max(time.saturating_add(Duration::from_ns(1)));
    }

    /// Returns true if every attempt with a cookie as old as this one is still stored, so that an unknown attempt is
    /// new.
    pub(crate) fn proves_new_attempt(&self, cookie: &Cookie) -> bool {
        let (made_at, _) = cookie.split_first_chunk::<8>().expect("a cookie is longer");
        u64::from_be_bytes(*made_at) >= self.remembered_from.as_ns()
    }

    fn mac(&self, made_at: &[u8; 8], address: IpAddr, attempt: AttemptId) -> [u8; TAG_LEN] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(made_at);
        context.update(&attempt.0);
        match address {
            IpAddr::V4(v4) => context.update(&v4.octets()),
            IpAddr::V6(v6) => context.update(&v6.octets()),
        }
        *context.sign().as_ref().first_chunk().expect("32 bytes")
    }
}
