//! The contract of a balancer.

use pathweave_units::{Duration, Spread, Time};

use super::leaves::ManyLeaves;
use super::view::{Action, ForwardingStats, SwitchView};
use crate::config_error::{ConfigError, out_of_range};
use crate::packet::{Header, PortId};

/// The load balancing of all switches of a fabric, with its state: what becomes of each packet.
///
/// State of a packet is kept by the place of its content, that of flows in tables of bounded size. Randomness is drawn from
/// [`SwitchDice`](super::dice::SwitchDice), so that what one switch draws shifts no other's.
pub(crate) trait Balance: Sized {
    /// The port of a packet is a hash of what is in it, whatever else happens at the switch; so the balancer is not asked.
    const IS_HASH: bool = false;
    /// What it does by the clock counts what ports have sent by then: between windows it comes before a port is looked at.
    const COUNTS_SENT: bool = false;

    /// How it spreads the packets of a flow, where that is not as their hosts wish: for models without packets.
    const SPREAD: Option<Spread> = None;

    /// Its parameters: a table of a scenario's `switch.forwarding`.
    type Config;
    /// What it keeps of a packet, which goes with it where another part of the fabric takes it over.
    type Note: Copy;

    /// Of all switches.
    ///
    /// # Errors
    /// A fabric for which it is not made.
    fn new(config: &Self::Config, fabric: &Layout<'_>) -> Result<Self, ManyLeaves>;

    /// What becomes of a packet for which there is a next hop.
    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action;

    /// When a switch has something to do even if no packet comes.
    fn alarm(&self, _switch: u32) -> Time {
        Time::MAX
    }

    /// When a switch next does something by the clock, at the latest before it looks at a packet that comes after that.
    fn next_clock(&self, switch: u32) -> Time {
        self.alarm(switch)
    }

    /// The clock has come there. Nothing is sent before `until`.
    fn on_clock(&mut self, _at: &mut impl SwitchView, _until: Time) {}

    /// Packets held, with their switches.
    fn held(&self) -> Vec<(u32, Header)> {
        Vec::new()
    }

    /// Packets between switches that are under way.
    fn messages_alive(&self) -> usize {
        0
    }

    /// A packet between switches is lost.
    fn discard_message(&mut self, _header: &Header) {}

    /// There was no room for a packet that was to be held.
    fn lost_instead_of_held(&mut self, _switch: u32, _header: &Header) {}

    /// Gives away what is kept of a packet, if anything is.
    fn hand_over(&mut self, _header: &Header) -> Option<Self::Note> {
        None
    }

    /// Keeps from now on what another part of the fabric has kept of a packet, which is returned as it is known here.
    fn take_over(&mut self, header: Header, _note: Self::Note) -> Header {
        header
    }

    /// What it has done so far.
    fn stats(&self) -> &ForwardingStats {
        &ForwardingStats::NONE
    }

    /// What routing is to give the next hops of a switch.
    fn shares(_config: &Self::Config) -> Shares {
        Shares::Equal
    }
}

/// The fabric that a balancer is made for.
pub(crate) struct Layout<'a> {
    pub(crate) seed: u64,
    pub(crate) switches: usize,
    /// Of all nodes.
    pub(crate) ports: PortId,
    /// The switch of each host; an error where a host is at several.
    pub(crate) leaf_of_host: &'a dyn Fn() -> Result<Vec<u32>, ManyLeaves>,
}

/// What routing gives the next hops of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// As much to each.
    Equal,
    /// In proportion to the capacity there is beyond them.
    ByCapacity {
        /// Entries a set of next hops may take, beyond one for each.
        most_entries: u32,
    },
}

/// Largest table a switch may have.
const MOST_ENTRIES: u32 = 1 << 24;

/// Checks the size of a table of flows.
pub(crate) fn check_entries(field: &'static str, entries: u32) -> Result<(), ConfigError> {
    let allowed = entries.is_power_of_two() && (4..=MOST_ENTRIES).contains(&entries);
    let error = || out_of_range(field, entries, format!("a power of two, 4 to {MOST_ENTRIES}"));
    if allowed { Ok(()) } else { Err(error()) }
}

/// Checks times that must not be 0.
pub(crate) fn check_times(times: &[(&'static str, Duration)]) -> Result<(), ConfigError> {
    let zero = times.iter().find(|(_, time)| *time == Duration::ZERO);
    zero.map_or(Ok(()), |&(field, time)| Err(out_of_range(field, time, "above 0")))
}
