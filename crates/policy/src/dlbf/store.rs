//! Where a queue pair's knowledge of its paths is: its own, or that of all queue pairs to the same host.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use pathweave_units::HostId;

use super::{DlbfConfig, PathTable};
use crate::shared::StoreId;
use crate::{PolicyEnv, Shared};

/// What an endpoint's queue pairs with one configuration know of their paths, by the host at the other end.
#[derive(Debug)]
pub struct DlbfHost {
    config: Box<DlbfConfig>,
    pairs: BTreeMap<HostId, PathTable>,
}

/// Where the table of a queue pair is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Own(PathTable),
    Pair(StoreId<DlbfHost>, HostId),
}

impl Place {
    /// Shares the table of all queue pairs to `peer`.
    pub(super) fn join(config: &DlbfConfig, env: &PolicyEnv, peer: HostId, shared: &mut Shared) -> Self {
        let id = shared.join(
            |host: &DlbfHost| *host.config == *config,
            || DlbfHost { config: Box::new(config.clone()), pairs: BTreeMap::new() },
        );
        let new = || PathTable::new(env.paths, config.available_for, config.unavailable_for);
        shared.get(id).pairs.entry(peer).or_insert_with(new);
        Place::Pair(id, peer)
    }
    pub(super) fn table<'a>(&'a mut self, shared: &'a mut Shared) -> &'a mut PathTable {
        match self {
            Place::Own(table) => table,
            Place::Pair(id, peer) => shared.get(*id).pairs.get_mut(peer).expect("made when it was joined"),
        }
    }
}
