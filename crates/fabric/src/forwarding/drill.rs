//! DRILL (Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017): each
//! packet goes to the shortest queue among a few random ones and the best one of the packet before.
//!
//! The published scheme is for Clos networks whose equal-cost paths are alike; where links have failed it splits them
//! into groups that are, which is not built here.

use pathweave_units::Time;

use crate::fabric::Fabric;
use crate::forwarding::Balancer;
use crate::forwarding::config::DrillConfig;
use crate::forwarding::dice::SwitchDice;
use crate::packet::Header;
use crate::port::PortId;

/// What all switches remember.
pub(crate) struct Drill {
    config: DrillConfig,
    dice: SwitchDice,
    /// By the first port of a set of next hops: the best of the ports looked at last.
    best: Vec<PortId>,
}

const NONE: PortId = PortId::MAX;

impl Drill {
    pub(crate) fn new(config: &DrillConfig, seed: u64, switches: usize, ports: usize) -> Self {
        Drill { config: config.clone(), dice: SwitchDice::new(seed, switches), best: vec![NONE; ports] }
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// The port for a packet, among two or more.
    pub(crate) fn drill(&mut self, now: Time, switch: u32, header: &Header) -> PortId {
        let mut choice = (u64::MAX, NONE);
        let mut turn = 0;
        let first =
            self.switches[switch as usize].routes.candidates(header.src(), header.dst()).get(0) as usize;
        loop {
            let Balancer::Drill(drill) = &mut self.balancer else { unreachable!("asked for by Drill only") };
            let candidates = self.switches[switch as usize].routes.candidates(header.src(), header.dst());
            let port = if turn < drill.config.samples {
                candidates.by_hash(drill.dice.draw(switch))
            } else if turn < drill.config.samples + drill.config.memory {
                drill.best[first]
            } else {
                drill.best[first] = choice.1;
                return choice.1;
            };
            turn += 1;
            // The memory may be empty, or older than the routes.
            if candidates.contains(port) {
                self.advance(now, port);
                let bytes = self.unsent_bytes(now, port);
                // The memory, looked at last, wins only if it is better: empty queues are all alike, and remembering one of
                // them would send everything there.
                if bytes < choice.0 {
                    choice = (bytes, port);
                }
            }
        }
    }
}
