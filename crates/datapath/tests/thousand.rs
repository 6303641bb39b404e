//! An endpoint with a thousand peers, each a separate endpoint with its own sockets; `crates/lab/tests/datagrams.rs`
//! has them on a network.

#[path = "support/crowd.rs"]
mod crowd;

use crowd::{Leaf, descriptors_for, of_hub, of_leaf, weigh};
use pathweave_datapath::Driving;
use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::{ClusterKey, OsRandom};

#[test]
fn a_thousand_peers_cost_what_is_declared() {
    let key = ClusterKey::generate(&mut OsRandom).expect("random bytes");
    let leaf = || {
        let mut config = of_leaf(RdmConfig::loopback(), &key);
        config.device.driving = Driving::Caller;
        Leaf::new(RdmEndpoint::open(config).expect("an endpoint"))
    };
    let leaves: Vec<Leaf> = (0..descriptors_for(1_000)).map(|_| leaf()).collect();
    for paths in [4, 16] {
        let hub = of_hub(RdmConfig::loopback(), &key, paths);
        weigh(RdmEndpoint::open(hub).expect("an endpoint"), &leaves);
    }
}
