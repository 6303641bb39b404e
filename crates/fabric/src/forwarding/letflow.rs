//! LetFlow (Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017): each
//! flowlet takes a random port. No state about congestion; flowlets are long where the way is free and short where it is
//! not, so the traffic moves to the better paths by itself.

use crate::forwarding::ForwardingStats;
use crate::forwarding::config::LetFlowConfig;
use crate::forwarding::dice::SwitchDice;
use crate::forwarding::flowlets::{FlowletTable, Lookup};
use crate::forwarding::routes::Candidates;
use crate::port::PortId;
use pathweave_units::Time;

/// The flowlets of all switches.
pub(crate) struct LetFlow {
    config: LetFlowConfig,
    tables: Vec<FlowletTable>,
    dice: SwitchDice,
}

impl LetFlow {
    pub(crate) fn new(config: &LetFlowConfig, seed: u64, switches: usize) -> Self {
        LetFlow {
            config: config.clone(),
            tables: vec![FlowletTable::default(); switches],
            dice: SwitchDice::new(seed, switches),
        }
    }

    /// The port for a packet, among two or more.
    pub(crate) fn choose(
        &mut self,
        switch: u32,
        now: Time,
        flow_hash: u64,
        candidates: Candidates<'_>,
        stats: &mut ForwardingStats,
    ) -> PortId {
        let table = &mut self.tables[switch as usize];
        let before = match table.look(flow_hash, now, self.config.gap, self.config.entries) {
            // Routes may have changed since.
            Lookup::Known(port) if candidates.contains(port) => return port,
            Lookup::Known(port) => Some(port),
            Lookup::Fresh(before) => before,
        };
        let port = candidates.by_hash(self.dice.draw(switch));
        table.assign(flow_hash, port);
        stats.flowlets += 1;
        stats.reroutes += u64::from(before.is_some_and(|before| before != port));
        port
    }
}
