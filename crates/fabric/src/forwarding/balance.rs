//! The trait that every balancer implements.

use pathweave_units::{Duration, Spread, Time};

use super::leaves::ManyLeaves;
use super::view::{Action, ForwardingStats, SwitchView};
use crate::config_error::{ConfigError, out_of_range};
use crate::packet::{Header, PortId};

/// Load balancing of all switches of a fabric, with its state. A balancer decides the [`Action`] for each packet.
///
/// State of a packet is stored by the slot of its content, state of flows in tables of bounded size. Random numbers
/// come from [`SwitchDice`](super::dice::SwitchDice), so that the draws of one switch do not affect another's.
pub(crate) trait Balance: Sized {
    /// True if the port of a packet is a hash of its header, independent of the switch's state. Such a balancer is
    /// not called.
    const IS_HASH: bool = false;
    /// True if the clock events of the balancer count the bytes that ports have sent by then. Between windows, clock
    /// events then run before a port is brought up to date.
    const COUNTS_SENT: bool = false;

    /// Spread of a flow's packets by the switches, where it differs from the choice of the hosts. Used by models
    /// without packets.
    const SPREAD: Option<Spread> = None;

    /// Parameters of the balancer: a table of `switch.forwarding` in a scenario.
    type Config;
    /// State of one packet, which moves with the packet into another part of the fabric.
    type Note: Copy;

    /// Creates the balancer for all switches of a fabric.
    ///
    /// # Errors
    /// A host is attached to several leaves, and the balancer requires one.
    fn new(config: &Self::Config, fabric: &Layout<'_>) -> Result<Self, ManyLeaves>;

    /// Decides the action for a packet that has at least one next hop.
    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action;

    /// Returns the time at which a switch must act even if no packet arrives.
    fn alarm(&self, _switch: u32) -> Time {
        Time::MAX
    }

    /// Returns the time of the next clock event of a switch. It runs at the latest before the next packet after that
    /// time.
    fn next_clock(&self, switch: u32) -> Time {
        self.alarm(switch)
    }

    /// Handles a clock event. No packet is sent before `until`.
    fn on_clock(&mut self, _at: &mut impl SwitchView, _until: Time) {}

    /// Returns the packets that are held, with their switches.
    fn held(&self) -> Vec<(u32, Header)> {
        Vec::new()
    }

    /// Returns the number of packets between switches in flight.
    fn messages_alive(&self) -> usize {
        0
    }

    /// Frees the state of a lost packet between switches.
    fn discard_message(&mut self, _header: &Header) {}

    /// Reports that a packet to be held did not fit in the buffer.
    fn lost_instead_of_held(&mut self, _switch: u32, _header: &Header) {}

    /// Removes and returns the state of a packet, if there is any.
    fn hand_over(&mut self, _header: &Header) -> Option<Self::Note> {
        None
    }

    /// Stores the state of a packet from another part of the fabric. Returns the packet's header as this part must
    /// store it.
    fn take_over(&mut self, header: Header, _note: Self::Note) -> Header {
        header
    }

    /// Returns the counters of the balancer.
    fn stats(&self) -> &ForwardingStats {
        &ForwardingStats::NONE
    }

    /// Returns the weighting of next hops that routing must provide.
    fn shares(_config: &Self::Config) -> Shares {
        Shares::Equal
    }
}

/// Description of the fabric for which a balancer is created.
pub(crate) struct Layout<'a> {
    pub(crate) seed: u64,
    pub(crate) switches: usize,
    /// Number of ports that the part of the fabric holds.
    pub(crate) ports: PortId,
    /// Returns the leaf of each host, or an error if a host is attached to several.
    pub(crate) leaf_of_host: &'a dyn Fn() -> Result<Vec<u32>, ManyLeaves>,
}

/// Weighting of the next hops in a switch's routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// Equal shares.
    Equal,
    /// Shares in proportion to the capacity beyond each next hop.
    ByCapacity {
        /// Number of entries that a set of next hops may take, if it has no more next hops than that.
        most_entries: u32,
    },
}

/// Largest number of entries in a table of flows.
const MOST_ENTRIES: u32 = 1 << 24;

/// Checks the number of entries of a table of flows.
pub(crate) fn check_entries(field: &'static str, entries: u32) -> Result<(), ConfigError> {
    let allowed = entries.is_power_of_two() && (4..=MOST_ENTRIES).contains(&entries);
    let error = || out_of_range(field, entries, format!("a power of two, 4 to {MOST_ENTRIES}"));
    if allowed { Ok(()) } else { Err(error()) }
}

/// Largest time of a parameter. No run reaches times at which sums with it overflow.
const MOST_TIME: Duration = Duration::from_ms(1_000);

/// Checks that times are at most 1 s.
pub(crate) fn check_longest(times: &[(&'static str, Duration)]) -> Result<(), ConfigError> {
    let long = times.iter().find(|(_, time)| *time > MOST_TIME);
    long.map_or(Ok(()), |&(field, time)| Err(out_of_range(field, time, "at most 1s")))
}

/// Checks that times are above 0.
pub(crate) fn check_times(times: &[(&'static str, Duration)]) -> Result<(), ConfigError> {
    let zero = times.iter().find(|(_, time)| *time == Duration::ZERO);
    zero.map_or(Ok(()), |&(field, time)| Err(out_of_range(field, time, "above 0")))
}
