//! LetFlow (Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017):
//! each flowlet takes a random port. No congestion state is kept. Flowlets are long on an uncongested path and short
//! on a congested one, so traffic shifts to the better paths without measurement.

use pathweave_units::{Duration, Spread, Time};

use super::balance::{Balance, Layout, check_entries, check_times};
use super::dice::SwitchDice;
use super::flowlets::{FlowletTable, Lookup};
use super::leaves::ManyLeaves;
use super::routes::Candidates;
use super::view::{Action, ForwardingStats, SwitchView};
use crate::config_error::ConfigError;
use crate::packet::{Header, PortId};

/// Parameters of LetFlow.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LetFlowConfig {
    /// Idle time of a flow after which its next packet begins a flowlet, above 0. Default 50 us (the evaluation of
    /// LAPS; that of ConWeave has 100 us, the LetFlow paper 500 us for slower networks).
    pub gap: Duration,
    /// Number of flowlets that a switch can distinguish: entries of its table, a power of two. Flows whose hashes
    /// collide share a flowlet. Default 65,536 (the LetFlow paper, section 4).
    pub entries: u32,
}

impl Default for LetFlowConfig {
    fn default() -> Self {
        LetFlowConfig { gap: Duration::from_us(50), entries: 65_536 }
    }
}

impl LetFlowConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_times(&[("forwarding.letflow.gap", self.gap)])?;
        check_entries("forwarding.letflow.entries", self.entries)
    }
}

/// State of all switches.
pub(crate) struct LetFlow {
    config: LetFlowConfig,
    tables: Vec<FlowletTable>,
    dice: SwitchDice,
    stats: ForwardingStats,
}

impl Balance for LetFlow {
    const SPREAD: Option<Spread> = Some(Spread::ByCapacity);
    type Config = LetFlowConfig;
    type Note = ();

    fn new(config: &LetFlowConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        Ok(LetFlow {
            config: config.clone(),
            tables: vec![FlowletTable::default(); fabric.switches],
            dice: SwitchDice::new(fabric.seed, fabric.switches),
            stats: ForwardingStats::default(),
        })
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        let (now, switch) = (at.now(), at.switch());
        let port = match at.explicit() {
            Some(ways) => {
                let all = ways.between(header.src(), header.dst());
                // The sender's switch draws a path for each flowlet of data.
                if header.links() == 1 && header.class() > 0 && all.len() > 0 {
                    let way = self.choose(switch, now, || at.flow(header), all);
                    at.give(header, way);
                }
                at.default_port(header)
            }
            None => {
                let all = at.candidates(header.src(), header.dst());
                self.choose(switch, now, || at.flow(header), all)
            }
        };
        Action::Forward(port)
    }

    fn stats(&self) -> &ForwardingStats {
        &self.stats
    }
}

impl LetFlow {
    /// Returns the port of a packet's flowlet, drawn at random among `candidates` if the packet begins one.
    fn choose(
        &mut self,
        switch: u32,
        now: Time,
        flow: impl FnOnce() -> u64,
        candidates: Candidates<'_>,
    ) -> PortId {
        if candidates.len() == 1 {
            return candidates.get(0);
        }
        let flow = flow();
        let table = &mut self.tables[switch as usize];
        let before = match table.look(flow, now, self.config.gap, self.config.entries) {
            // Routes may have changed since the flowlet began.
            Lookup::Known(port) if candidates.contains(port) => return port,
            Lookup::Known(port) => Some(port),
            Lookup::Fresh(before) => before,
        };
        let port = candidates.by_hash(self.dice.draw(switch));
        table.assign(flow, port);
        self.stats.flowlets += 1;
        self.stats.reroutes += u64::from(before.is_some_and(|before| before != port));
        port
    }
}
