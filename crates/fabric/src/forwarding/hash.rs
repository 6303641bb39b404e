//! Stateless balancers: by hash (ECMP) and at random for each packet, both also with shares in proportion to capacity
//! (WCMP). The shares are part of the routes, which list a port several times.

use pathweave_units::Spread;

use super::balance::{Balance, Layout, Shares};
use super::dice::SwitchDice;
use super::leaves::ManyLeaves;
use super::view::{Action, SwitchView};
use crate::config_error::{ConfigError, out_of_range};
use crate::packet::Header;

/// Parameters of weighted next hops. Weights follow the rates of links and their failures, after
/// `switch.reroute_after`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WcmpConfig {
    /// Number of table entries that a set of next hops may take in a switch, 1 to 4096. A set with more next hops
    /// takes one entry for each. More entries represent the ratio of the capacities more precisely. Default 64 (ours;
    /// the paper studies how few suffice).
    pub most_entries: u32,
}

impl Default for WcmpConfig {
    fn default() -> Self {
        WcmpConfig { most_entries: 64 }
    }
}

impl WcmpConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let error = || out_of_range("forwarding.wcmp.most_entries", self.most_entries, "1 to 4096");
        if (1..=4_096).contains(&self.most_entries) { Ok(()) } else { Err(error()) }
    }

    fn shares(&self) -> Shares {
        Shares::ByCapacity { most_entries: self.most_entries }
    }
}

/// Equal-cost multipath: the next hop is a hash of the header.
pub(crate) struct Hash;

impl Balance for Hash {
    const IS_HASH: bool = true;
    type Config = ();
    type Note = ();

    fn new((): &(), _: &Layout<'_>) -> Result<Self, ManyLeaves> {
        Ok(Hash)
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        Action::Forward(at.candidates(header.src(), header.dst()).by_hash(at.hash(header)))
    }
}

/// Weighted-cost multipath: a hash over next hops listed by weight.
pub(crate) struct WeightedHash;

impl Balance for WeightedHash {
    const IS_HASH: bool = true;
    type Config = WcmpConfig;
    type Note = ();

    fn new(_: &WcmpConfig, _: &Layout<'_>) -> Result<Self, ManyLeaves> {
        Ok(WeightedHash)
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        Hash.decide(at, header)
    }

    fn shares(config: &WcmpConfig) -> Shares {
        config.shares()
    }
}

/// Random spraying: a random next hop for every packet.
pub(crate) struct Spray(SwitchDice);

impl Balance for Spray {
    const SPREAD: Option<Spread> = Some(Spread::Random);
    type Config = ();
    type Note = ();

    fn new((): &(), fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        Ok(Spray(SwitchDice::new(fabric.seed, fabric.switches)))
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        let all = at.candidates(header.src(), header.dst());
        Action::Forward(if all.len() == 1 { all.get(0) } else { all.by_hash(self.0.draw(at.switch())) })
    }
}

/// Random spraying over next hops listed by weight.
pub(crate) struct WeightedSpray(Spray);

impl Balance for WeightedSpray {
    const SPREAD: Option<Spread> = Some(Spread::ByCapacity);
    type Config = WcmpConfig;
    type Note = ();

    fn new(_: &WcmpConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        Spray::new(&(), fabric).map(WeightedSpray)
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        self.0.decide(at, header)
    }

    fn shares(config: &WcmpConfig) -> Shares {
        config.shares()
    }
}
