//! Recovery by the retransmission timer of RDMA NICs alone (MRC): selective repeat whose first successive timeouts
//! have equal length and double only then. Its interval and retries replace the configured ones.

use pathweave_policy::Recovery;
use pathweave_units::Duration;

use super::contract::{LossRecovery, Setup};
use super::transmissions::Transmissions;
use crate::common::EndpointShared;
use crate::config::RetransmissionConfig;

/// Fields of [`Recovery::Timeouts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) exponent: Option<u8>,
    pub(crate) alike: u8,
    pub(crate) retries: u8,
}

#[derive(Debug)]
pub(crate) struct Sender {
    packets: Transmissions,
    alike: u8,
}

/// Idle round trips that the interval lasts at least, if it is not configured. uet-htsim uses 7.2 at 100 Gb/s.
const IDLE_ROUND_TRIPS: u64 = 8;

/// Smallest exponent whose interval lasts enough idle round trips. If these are unknown, that of the configured
/// timeout.
fn exponent_for(idle: Duration, configured: &RetransmissionConfig) -> u8 {
    Recovery::timer_exponent(if idle > Duration::ZERO { idle * IDLE_ROUND_TRIPS } else { configured.timeout })
}

impl Sender {
    fn new(alike: u8) -> Self {
        Sender { packets: Transmissions::new(0), alike }
    }
}

impl LossRecovery for Sender {
    type Config = Config;

    fn open(config: Config, _setup: &Setup, _common: &mut EndpointShared) -> Self {
        Sender::new(config.alike)
    }
    fn timer(config: Config, configured: RetransmissionConfig, idle: Duration) -> RetransmissionConfig {
        let Config { exponent, retries, .. } = config;
        let exponent = exponent.unwrap_or_else(|| exponent_for(idle, &configured));
        RetransmissionConfig {
            timeout: Recovery::TIMER_UNIT * (1 << exponent.min(Recovery::MOST_TIMER_EXPONENT)),
            max_timeout: Recovery::TIMER_UNIT * (1 << Recovery::MOST_TIMER_EXPONENT),
            backoff: 2,
            retry_limit: if retries >= Recovery::RETRIES_FOR_EVER { u32::MAX } else { u32::from(retries) },
        }
    }
    fn transmissions(&mut self) -> Option<&mut Transmissions> {
        Some(&mut self.packets)
    }
    fn doublings(&self, timeouts: u32) -> u32 {
        (timeouts + 1).saturating_sub(u32::from(self.alike))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// 1.024 us x 2^7 seven times, then twice that, and so on.
    #[test]
    fn the_first_are_alike_then_they_double_up_to_seventeen_seconds() {
        let config = Config { exponent: Some(7), alike: 7, retries: 14 };
        let timer = Sender::timer(config, RetransmissionConfig::default(), Duration::ZERO);
        let sender = Sender::new(7);
        let waits: Vec<u64> = (0..10).map(|n| timer.after(sender.doublings(n)).as_ns()).collect();
        let (one, two) = (131_072, 262_144);
        assert_eq!(waits, [one, one, one, one, one, one, one, two, 2 * two, 4 * two]);
        assert_eq!(timer.after(sender.doublings(60)), Duration::from_ns(1_024 << 24));
        assert_eq!(timer.retry_limit, 14);
        // Only the first has the plain interval.
        assert_eq!((Sender::new(1).doublings(0), Sender::new(1).doublings(1)), (0, 1));
    }

    #[test]
    fn twenty_five_retries_are_without_end() {
        let configured = RetransmissionConfig::default();
        let config = Config { exponent: Some(0), alike: 1, retries: 25 };
        assert_eq!(Sender::timer(config, configured, Duration::ZERO).retry_limit, u32::MAX);
    }

    /// 8 x 12 us are 96 us: 1.024 us x 2^7 are 131 us. 8 x 400 us: 2^12 are 4.2 ms. Unknown: the configured 4 ms.
    #[test]
    fn by_itself_it_is_longer_than_eight_idle_round_trips() {
        let config = Config { exponent: None, alike: 7, retries: 14 };
        let after = |idle_us| {
            Sender::timer(config, RetransmissionConfig::default(), Duration::from_us(idle_us)).timeout
        };
        for (idle_us, exponent) in [(12, 7), (16, 7), (17, 8), (400, 12), (0, 12)] {
            assert_eq!(after(idle_us), Duration::from_ns(1_024 << exponent), "{idle_us} us");
        }
    }
}
