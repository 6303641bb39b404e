//! Location of a queue pair's path state: its own table, or one shared by all queue pairs to the same host.

use alloc::boxed::Box;

use pathweave_units::HostId;

use super::{DlbfConfig, PathTable};
use crate::peers::{PeerIndex, PeerTable};
use crate::shared::{SharedState, StoreId};
use crate::{PolicyEnv, Shared};

/// Path state shared by an endpoint's queue pairs that have the same configuration, by peer host.
#[derive(Debug)]
pub struct DlbfHost {
    config: Box<DlbfConfig>,
    pairs: PeerTable<PathTable>,
}

impl SharedState for DlbfHost {
    fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
    fn forget(&mut self, peer: HostId) {
        self.pairs.forget(peer);
    }
}

/// Location of a queue pair's path table.
#[derive(Clone, Debug)]
pub(super) enum PathStateLocation {
    Own(PathTable),
    Pair(StoreId<DlbfHost>, PeerIndex),
}

impl PathStateLocation {
    /// Joins the table shared by all queue pairs to `peer` that have the same number of paths.
    pub(super) fn join(config: &DlbfConfig, env: &PolicyEnv, peer: HostId, shared: &mut Shared) -> Self {
        let id = shared.join(
            |host: &DlbfHost| *host.config == *config,
            || DlbfHost { config: Box::new(config.clone()), pairs: PeerTable::new() },
        );
        let new = || PathTable::new(env.paths, config.available_for, config.unavailable_for);
        PathStateLocation::Pair(id, shared.get(id).pairs.join(peer, env.paths, new))
    }
    /// Leaves the shared table when the queue pair closes.
    pub(super) fn leave(&self, shared: &mut Shared) {
        if let PathStateLocation::Pair(id, pair) = *self {
            shared.leave(id, |host, peers| host.pairs.leave(pair, peers));
        }
    }
    pub(super) fn table<'a>(&'a mut self, shared: &'a mut Shared) -> &'a mut PathTable {
        match self {
            PathStateLocation::Own(table) => table,
            PathStateLocation::Pair(id, pair) => shared.get(*id).pairs.get_mut(*pair),
        }
    }
}
