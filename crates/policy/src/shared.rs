//! State that queue pairs of an endpoint share: what a scheme knows of a path is the same for all of them.
//!
//! What a scheme shares is any type that implements [`Store`]. Its policy joins the store of its configuration when its queue pair is opened ([`Policy::on_open`](crate::Policy::on_open)) and finds it again
//! through the [`StoreId`] it got, with every call:
//!
//! ```text
//! fn on_open(&mut self, _: Time, member: &Member, cx: &mut PolicyCx<'_>) {
//!     let id = cx.shared.join(|host: &LapsHost| host.config == self.config, || LapsHost::new(&self.config));
//!     // What is kept by peer is in a `PeerTable`, by the paths that the queue pair may use.
//!     self.pair = cx.shared.get(id).pairs.join(member.peer, self.env.paths, || Pair::new(&self.env));
//!     self.store = Some(id);
//! }
//! fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
//!     cx.shared.leave(self.store, |host, peers| host.pairs.leave(self.pair, peers));
//! }
//! ```
//!
//! A store belongs to one endpoint. Where peers are hosts it lives as long, so what is known of a path outlives a queue
//! pair; where they are connections, what is known of one goes with its last queue pair ([`Peers`]). Nothing is allocated
//! before the first queue pair joins.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;

use pathweave_units::{HostId, QpNum};

use crate::Peers;

/// Who a queue pair is, told when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number at this endpoint.
    pub qp: QpNum,
    /// The host at the other end.
    pub peer: HostId,
}

/// What every kind of shared state must do besides what it is for.
pub trait Store: Any + fmt::Debug + Send {
    /// Nothing is kept of any peer.
    fn is_empty(&self) -> bool;
    /// Drops what is kept of a peer, in use or not: after a panic its state cannot be trusted.
    fn forget(&mut self, peer: HostId);
}

/// A store as the kind it is; `None`: it is of another one.
fn of_kind<S: Store>(store: &mut dyn Store) -> Option<&mut S> {
    (store as &mut dyn Any).downcast_mut()
}

/// Where a store is: kept by the policies that joined it, good for their endpoint only.
pub struct StoreId<S> {
    index: u32,
    kind: PhantomData<fn() -> S>,
}

// Derived ones would ask the same of `S`.
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

/// Everything the queue pairs of one endpoint share, lent to their policies with every call.
#[derive(Debug, Default)]
pub struct Shared(Option<Box<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    peers: Peers,
    /// By the number in a [`StoreId`]; where peers are connections, a store without members is `None`.
    stores: Vec<Option<Box<dyn Store>>>,
    /// Queue pairs to ask again.
    woken: VecDeque<QpNum>,
}

impl Shared {
    /// Without stores; takes no memory.
    pub const fn new() -> Self {
        Shared(None)
    }

    /// Without stores, for an endpoint whose peers are hosts or connections.
    pub fn for_peers(peers: Peers) -> Self {
        match peers {
            Peers::Hosts => Shared::new(),
            Peers::Connections => Shared(Some(Box::new(Inner { peers, ..Inner::default() }))),
        }
    }

    /// The store of kind `S` that `is_mine`, made now if there is none yet. Schemes tell stores apart by their
    /// configuration, so that two schemes of one kind on one host do not mix.
    pub fn join<S: Store>(&mut self, is_mine: impl Fn(&S) -> bool, make: impl FnOnce() -> S) -> StoreId<S> {
        let stores = &mut self.0.get_or_insert_default().stores;
        let is_mine = |any: &mut Box<dyn Store>| of_kind(&mut **any).is_some_and(|store| is_mine(store));
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

    /// A queue pair that has joined a store is closed: `leave` takes it out of what the store keeps by peer. Where peers are
    /// connections, an empty store goes, too: configurations of connections differ by what they have measured.
    pub fn leave<S: Store>(&mut self, id: StoreId<S>, leave: impl FnOnce(&mut S, Peers)) {
        let Some(Inner { peers, stores, .. }) = self.0.as_deref_mut() else { return };
        let Some(slot) = stores.get_mut(id.index as usize) else { return };
        let Some(store) = slot.as_mut().and_then(|any| of_kind::<S>(&mut **any)) else { return };
        leave(store, *peers);
        if *peers == Peers::Connections && store.is_empty() {
            *slot = None;
        }
    }

    /// Drops what all stores keep of a peer whose queue pairs are gone without having left.
    pub fn forget(&mut self, peer: HostId) {
        let Some(Inner { peers, stores, .. }) = self.0.as_deref_mut() else { return };
        for slot in stores {
            if let Some(store) = slot {
                store.forget(peer);
                if *peers == Peers::Connections && store.is_empty() {
                    *slot = None;
                }
            }
        }
    }

    /// Stores there are.
    pub fn stores(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.stores.iter().flatten().count())
    }

    /// What the numbers of peers name.
    pub fn peers(&self) -> Peers {
        self.0.as_ref().map_or(Peers::Hosts, |inner| inner.peers)
    }

    /// The store. Panics if `id` is of another endpoint.
    #[inline]
    pub fn get<S: Store>(&mut self, id: StoreId<S>) -> &mut S {
        let stores = self.0.as_mut().map(|inner| &mut inner.stores);
        let any = stores.and_then(|stores| stores.get_mut(id.index as usize)?.as_mut());
        any.and_then(|any| of_kind(&mut **any)).expect("a store is joined at the endpoint where it is used")
    }

    /// Asks another queue pair's policy again once this call is over, though it is blocked or waits for an instant:
    /// something it knows through a store has changed. Queue pairs that are gone are passed over.
    pub fn wake(&mut self, qp: QpNum) {
        self.0.get_or_insert_default().woken.push_back(qp);
    }

    /// Whether [`Shared::take_woken`] has something to tell.
    #[inline(always)]
    pub fn has_woken(&self) -> bool {
        matches!(&self.0, Some(inner) if !inner.woken.is_empty())
    }

    /// For the endpoint: the next queue pair to ask again, in the order of the calls of [`Shared::wake`].
    pub fn take_woken(&mut self) -> Option<QpNum> {
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

    impl Store for Count {
        fn is_empty(&self) -> bool {
            self.packets == 0
        }
        fn forget(&mut self, _: HostId) {
            self.packets = 0;
        }
    }
    impl Store for Vec<String> {
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
        assert!(!shared.has_woken() && shared.0.is_none(), "nothing is allocated for those who do not share");
        [5, 3].into_iter().for_each(|qp| shared.wake(QpNum(qp)));
        assert!(shared.has_woken());
        assert_eq!([(); 3].map(|()| shared.take_woken()), [Some(QpNum(5)), Some(QpNum(3)), None]);
        assert!(!shared.has_woken());
    }

    #[test]
    #[should_panic(expected = "joined at the endpoint")]
    fn a_store_is_good_for_its_endpoint_only() {
        let id = join(&mut Shared::new(), 1);
        Shared::new().get(id);
    }

    #[test]
    fn a_store_that_is_left_empty_goes_where_peers_are_connections() {
        for (peers, stores) in [(Peers::Connections, 2), (Peers::Hosts, 1_001)] {
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
            assert_eq!(kept, Some(if peers == Peers::Hosts { stores } else { 0 }));
        }
    }

    #[test]
    fn an_endpoint_pays_a_pointer() {
        assert_eq!(size_of::<Shared>(), size_of::<usize>());
        assert_eq!(size_of::<Option<StoreId<Count>>>(), 8);
    }
}
