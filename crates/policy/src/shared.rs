//! State shared by the queue pairs of an endpoint, because the state of a path is the same for all of them.
//!
//! Any type that implements [`SharedState`] can be shared. When a queue pair opens
//! ([`Policy::on_open`](crate::Policy::on_open)), its policy joins the store of its configuration. It accesses the
//! store through the [`StoreId`] that it got, with every call:
//!
//! ```text
//! fn on_open(&mut self, _: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
//!     let id = cx.shared.join(|host: &LapsHost| host.config == self.config, || LapsHost::new(&self.config));
//!     // State by peer is in a `PeerTable`, by the paths that the queue pair may use.
//!     self.pair = cx.shared.get(id).pairs.join(member.peer, self.env.paths, || PeerPaths::new(&self.env));
//!     self.store = Some(id);
//! }
//! fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
//!     cx.shared.leave(self.store, |host, peers| host.pairs.leave(self.pair, peers));
//! }
//! ```
//!
//! A store belongs to one endpoint. If peers are hosts it lives as long as the endpoint, so the state of a path
//! outlives a queue pair. If peers are connections, the state of a peer is removed with its last queue pair
//! ([`PeerKind`]). Nothing is allocated before the first queue pair joins.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;

use pathweave_units::{HostId, QpNum, Telemetry};

use crate::PeerKind;

/// Identity of a queue pair, passed when it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairId {
    /// Number of the queue pair at this endpoint.
    pub qp: QpNum,
    /// Peer host.
    pub peer: HostId,
}

/// Operations that every kind of shared state must support.
pub trait SharedState: Any + fmt::Debug + Send {
    /// Returns true if the store holds no state of any peer.
    fn is_empty(&self) -> bool;
    /// Removes the state of a peer, in use or not: after a panic the state cannot be trusted.
    fn forget(&mut self, peer: HostId);
}

/// Downcasts a store to its kind; `None` if it is of another kind.
fn of_kind<S: SharedState>(store: &mut dyn SharedState) -> Option<&mut S> {
    (store as &mut dyn Any).downcast_mut()
}

/// Identifier of a store, kept by the policies that joined it. Valid for their endpoint only.
pub struct StoreId<S> {
    index: u32,
    kind: PhantomData<fn() -> S>,
}

// Derived implementations would require the same of `S`.
impl<S> Clone for StoreId<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for StoreId<S> {}
impl<S> PartialEq for StoreId<S> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}
impl<S> Eq for StoreId<S> {}
impl<S> fmt::Debug for StoreId<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({})", self.index)
    }
}

/// All state shared by the queue pairs of one endpoint, passed to their policies with every call.
#[derive(Debug, Default)]
pub struct Shared(Option<Box<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    peers: PeerKind,
    /// Stores by the index in a [`StoreId`]. If peers are connections, a store without members is `None`.
    stores: Vec<Option<Box<dyn SharedState>>>,
    /// Queue pairs whose policies must be polled again.
    woken: VecDeque<QpNum>,
    /// Telemetry that the acknowledgement of a packet has returned, at most one.
    telemetry: Vec<(QpNum, u64, Telemetry)>,
}

impl Shared {
    /// Creates shared state without stores, which takes no heap memory.
    pub const fn new() -> Self {
        Shared(None)
    }

    /// Creates shared state without stores, for an endpoint whose peers are hosts or connections.
    pub fn for_peers(peers: PeerKind) -> Self {
        match peers {
            PeerKind::Hosts => Shared::new(),
            PeerKind::Connections => Shared(Some(Box::new(Inner { peers, ..Inner::default() }))),
        }
    }

    /// Returns the store of kind `S` for which `is_mine` returns true, and creates it if there is none. Schemes
    /// distinguish stores by their configuration, so that two schemes of one kind on one host do not mix.
    pub fn join<S: SharedState>(
        &mut self,
        is_mine: impl Fn(&S) -> bool,
        make: impl FnOnce() -> S,
    ) -> StoreId<S> {
        let stores = &mut self.0.get_or_insert_default().stores;
        let is_mine =
            |any: &mut Box<dyn SharedState>| of_kind(&mut **any).is_some_and(|store| is_mine(store));
        let found = stores.iter_mut().position(|any| any.as_mut().is_some_and(is_mine));
        let index = found.unwrap_or_else(|| {
            let free = stores.iter().position(Option::is_none).unwrap_or(stores.len());
            if free == stores.len() {
                stores.push(None);
            }
            stores[free] = Some(Box::new(make()));
            free
        }) as u32;
        StoreId { index, kind: PhantomData }
    }

    /// Called when a queue pair that joined a store closes: `leave` removes it from the state of its peer. If peers
    /// are connections, an empty store is removed, too, because configurations of connections differ by their
    /// measurements.
    pub fn leave<S: SharedState>(&mut self, id: StoreId<S>, leave: impl FnOnce(&mut S, PeerKind)) {
        let Some(Inner { peers, stores, .. }) = self.0.as_deref_mut() else { return };
        let Some(slot) = stores.get_mut(id.index as usize) else { return };
        let Some(store) = slot.as_mut().and_then(|any| of_kind::<S>(&mut **any)) else { return };
        leave(store, *peers);
        if *peers == PeerKind::Connections && store.is_empty() {
            *slot = None;
        }
    }

    /// Removes the state of a peer from all stores, after its queue pairs were removed without leaving.
    pub fn forget(&mut self, peer: HostId) {
        let Some(Inner { peers, stores, .. }) = self.0.as_deref_mut() else { return };
        for slot in stores {
            if let Some(store) = slot {
                store.forget(peer);
                if *peers == PeerKind::Connections && store.is_empty() {
                    *slot = None;
                }
            }
        }
    }

    /// Returns the number of stores.
    pub fn stores(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.stores.iter().flatten().count())
    }

    /// Returns the meaning of a peer's number.
    pub fn peers(&self) -> PeerKind {
        self.0.as_ref().map_or(PeerKind::Hosts, |inner| inner.peers)
    }

    /// Returns the store. Panics if `id` is of another endpoint.
    #[inline]
    pub fn get<S: SharedState>(&mut self, id: StoreId<S>) -> &mut S {
        let stores = self.0.as_mut().map(|inner| &mut inner.stores);
        let any = stores.and_then(|stores| stores.get_mut(id.index as usize)?.as_mut());
        any.and_then(|any| of_kind(&mut **any)).expect("a store is joined at the endpoint where it is used")
    }

    /// Stores the telemetry of the packet with this PSN of a queue pair, until the endpoint processes the ACK or NACK that
    /// returns it.
    pub fn put_telemetry(&mut self, qp: QpNum, psn: u64, telemetry: Telemetry) {
        let held = &mut self.0.get_or_insert_default().telemetry;
        held.clear();
        held.push((qp, psn, telemetry));
    }

    /// Returns the telemetry of the packet that triggered the ACK or NACK being processed, once. Only simulated
    /// switches write any.
    pub fn take_telemetry(&mut self, qp: QpNum, psn: u64) -> Option<Telemetry> {
        let held = &mut self.0.as_mut()?.telemetry;
        held.pop_if(|(of, at, _)| (*of, *at) == (qp, psn)).map(|(_, _, telemetry)| telemetry)
    }

    /// Has another queue pair's policy polled again after this call, although it is blocked or waits for an instant,
    /// because state that it reads through a store has changed. Queue pairs that no longer exist are skipped.
    pub fn request_poll(&mut self, qp: QpNum) {
        self.0.get_or_insert_default().woken.push_back(qp);
    }

    /// Returns true if [`Shared::take_poll_requests`] would return a queue pair.
    #[inline(always)]
    pub fn has_poll_requests(&self) -> bool {
        matches!(&self.0, Some(inner) if !inner.woken.is_empty())
    }

    /// Returns the next queue pair to poll again, in the order of the calls of [`Shared::request_poll`]. For the endpoint.
    pub fn take_poll_requests(&mut self) -> Option<QpNum> {
        self.0.as_mut()?.woken.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;

    #[derive(Debug, PartialEq)]
    struct Count {
        config: u32,
        packets: u32,
    }

    impl SharedState for Count {
        fn is_empty(&self) -> bool {
            self.packets == 0
        }
        fn forget(&mut self, _: HostId) {
            self.packets = 0;
        }
    }
    impl SharedState for Vec<String> {
        fn is_empty(&self) -> bool {
            <[String]>::is_empty(self)
        }
        fn forget(&mut self, _: HostId) {
            self.clear();
        }
    }

    fn join(shared: &mut Shared, config: u32) -> StoreId<Count> {
        shared.join(|count: &Count| count.config == config, || Count { config, packets: 0 })
    }

    #[test]
    fn queue_pairs_of_one_configuration_see_the_same_state() {
        let mut shared = Shared::new();
        let (a, b, other) = (join(&mut shared, 1), join(&mut shared, 1), join(&mut shared, 2));
        assert_eq!(a, b);
        assert_ne!(a, other);
        shared.get(a).packets += 3;
        assert_eq!(shared.get(b).packets, 3);
        assert_eq!(shared.get(other).packets, 0);
    }

    #[test]
    fn kinds_do_not_mix() {
        let mut shared = Shared::new();
        let count = join(&mut shared, 0);
        let names = shared.join(|_: &Vec<String>| true, || vec![String::from("leaf")]);
        assert_eq!(shared.get(names).len(), 1);
        assert_eq!(shared.get(count).config, 0);
    }

    #[test]
    fn wakes_come_out_once_in_their_order() {
        let mut shared = Shared::new();
        assert!(
            !shared.has_poll_requests() && shared.0.is_none(),
            "nothing is allocated for those who do not share"
        );
        [5, 3].into_iter().for_each(|qp| shared.request_poll(QpNum(qp)));
        assert!(shared.has_poll_requests());
        assert_eq!([(); 3].map(|()| shared.take_poll_requests()), [Some(QpNum(5)), Some(QpNum(3)), None]);
        assert!(!shared.has_poll_requests());
    }

    #[test]
    #[should_panic(expected = "joined at the endpoint")]
    fn a_store_is_good_for_its_endpoint_only() {
        let id = join(&mut Shared::new(), 1);
        Shared::new().get(id);
    }

    #[test]
    fn a_store_that_is_left_empty_goes_where_peers_are_connections() {
        for (peers, stores) in [(PeerKind::Connections, 2), (PeerKind::Hosts, 1_001)] {
            let mut shared = Shared::for_peers(peers);
            assert_eq!(shared.peers(), peers);
            let stays = join(&mut shared, 0);
            shared.get(stays).packets = 5;
            for config in 1..=1_000 {
                let id = join(&mut shared, config);
                shared.get(id).packets += 1;
                shared.leave(id, |count: &mut Count, told| {
                    assert_eq!(told, peers);
                    count.packets -= 1;
                });
            }
            assert_eq!(shared.0.as_ref().map(|inner| inner.stores.len()), Some(stores));
            assert_eq!(shared.get(stays).packets, 5);
            shared.forget(HostId(1));
            let kept = shared.0.as_ref().map(|inner| inner.stores.iter().flatten().count());
            assert_eq!(kept, Some(if peers == PeerKind::Hosts { stores } else { 0 }));
        }
    }

    #[test]
    fn an_endpoint_pays_a_pointer() {
        assert_eq!(size_of::<Shared>(), size_of::<usize>());
        assert_eq!(size_of::<Option<StoreId<Count>>>(), 8);
    }
}
