//! Pacer of the credit grants of a host: one for all who send to it, because they share its link.
//!
//! Senders that want credit take turns. Senders that want none get some while no other wants any (Ultra Ethernet 1.0,
//! section 3.6.14, and EQDS, NSDI 2022, section 4, as implemented by uet-htsim and csg-htsim).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use pathweave_policy::CreditParams;
use pathweave_policy::credit::{Demand, FabricControl, IdleGrants};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::CreditNumber;

use super::{Crossing, Fabric};

/// Number of grants that a host with a late timer makes up for.
const LATE_GRANTS: u64 = 8;

/// Queues of senders, in the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    /// Senders that must retransmit trimmed packets.
    Again,
    Active,
    Idle,
}

/// A sender of data, and the path of its latest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) host: HostId,
    pub(crate) qp: QpNum,
    pub(crate) path: PathId,
}

/// Kind of packet that arrived from a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalKind {
    Packet,
    Header,
    Request,
}

/// A grant to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pull {
    /// Queue pair that receives the data.
    pub(crate) qp: QpNum,
    pub(crate) to: Sender,
    pub(crate) granted: CreditNumber,
}

/// Credit state of one sender to this host.
#[derive(Debug)]
struct Grantee {
    terms: CreditParams,
    sender: Sender,
    /// Total quanta that the sender wants, and that it has been granted.
    target: u64,
    granted: u64,
    /// Quanta for retransmission of trimmed packets, granted before all others.
    again: u64,
    /// Arrived packets that no grant has answered yet, if each arrival earns a grant.
    owed: u64,
    queued: [bool; 3],
}

impl Grantee {
    /// Largest number of quanta that the sender may want beyond those granted: a window, and one packet whose credit
    /// fell short.
    fn most(&self) -> u64 {
        self.terms.quanta(self.terms.window_bytes + u64::from(self.terms.packet_bytes)) + 1
    }

    fn missing(&self) -> u64 {
        self.target.saturating_sub(self.granted)
    }

    fn wants(&self) -> bool {
        self.missing() > 0 && (self.terms.config.demand != Demand::Arrivals || self.owed > 0)
    }

    /// Returns true if the sender may be granted more while no sender wants anything.
    fn may_idle(&self) -> bool {
        let ahead = self.granted.saturating_sub(self.target);
        let window = self.terms.window_bytes / u64::from(self.terms.quantum_bytes);
        self.terms.config.idle == IdleGrants::On && self.missing() == 0 && ahead < window
    }

    /// Serves the sender from this queue. Returns the quanta granted.
    fn take(&mut self, queue: Queue) -> u64 {
        let grant = u64::from(self.terms.config.grant);
        let quanta = match (queue, self.terms.config.demand) {
            (Queue::Active, Demand::Target) => grant.min(self.missing()),
            _ => grant,
        };
        if queue == Queue::Active {
            self.owed = self.owed.saturating_sub(1);
        }
        self.again = self.again.saturating_sub(quanta);
        self.granted += quanta;
        quanta
    }
}

/// Grants credit to all who send to a host.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    grantees: BTreeMap<QpNum, Grantee>,
    queues: [VecDeque<QpNum>; 3],
    /// Earliest time of the next grant.
    free_at: Time,
    /// Share of the link that the fabric can carry, if grants follow it.
    fabric: Option<Box<Fabric>>,
}

impl Pacer {
    /// Adds a queue pair that receives under these terms.
    pub(crate) fn join(&mut self, qp: QpNum, terms: CreditParams) {
        let sender = Sender { host: HostId(0), qp: QpNum(0), path: PathId(0) };
        let grantee = Grantee { terms, sender, target: 0, granted: 0, again: 0, owed: 0, queued: [false; 3] };
        self.grantees.insert(qp, grantee);
    }

    /// Removes a queue pair.
    pub(crate) fn leave(&mut self, qp: QpNum) {
        if let Some(gone) = self.grantees.remove(&qp)
            && gone.queued.contains(&true)
        {
            self.queues.iter_mut().for_each(|queue| queue.retain(|&other| other != qp));
        }
    }

    /// Appends a queue pair to a queue unless it is in it. If nobody waited for a grant, pacing restarts now.
    fn push(&mut self, now: Time, qp: QpNum, queue: Queue) {
        if self.next_at().is_none() {
            self.free_at = self.free_at.max(now);
        }
        self.enqueue(qp, queue);
    }

    fn enqueue(&mut self, qp: QpNum, queue: Queue) {
        if let Some(grantee) = self.grantees.get_mut(&qp)
            && !core::mem::replace(&mut grantee.queued[queue as usize], true)
        {
            self.queues[queue as usize].push_back(qp);
        }
    }

    /// Records in which state a data packet crossed the fabric.
    pub(crate) fn crossed(&mut self, now: Time, qp: QpNum, crossing: Crossing) {
        let Some(Grantee { terms, .. }) = self.grantees.get(&qp) else { return };
        if let FabricControl::Paced(pace) = terms.config.fabric {
            let fabric = self.fabric.get_or_insert_with(|| Box::new(Fabric::new(now, pace, terms.base_rtt)));
            fabric.note(now, crossing);
        }
    }

    /// Processes a packet of a sender and the total that it wants.
    pub(crate) fn heard(
        &mut self,
        now: Time,
        qp: QpNum,
        sender: Sender,
        heard: ArrivalKind,
        target: Option<CreditNumber>,
    ) {
        let Some(grantee) = self.grantees.get_mut(&qp) else { return };
        grantee.sender = sender;
        let most = grantee.granted + grantee.most();
        if let Some(target) = target {
            // An honest sender never wants more.
            let target = target.quanta(grantee.granted).min(most);
            grantee.target = grantee.target.max(target);
        }
        let packet = grantee.terms.quanta(grantee.terms.packet_bytes.into());
        let queue = match (grantee.terms.config.demand, heard) {
            (Demand::Full, ArrivalKind::Header) => {
                grantee.again = (grantee.again + packet).min(grantee.most());
                Some(Queue::Again)
            }
            (Demand::Full, ArrivalKind::Request) if grantee.missing() > 0 => {
                grantee.again = grantee.again.max(packet);
                Some(Queue::Again)
            }
            // The packet must be retransmitted, which its sender does not know yet.
            (Demand::Arrivals, ArrivalKind::Header) => {
                grantee.owed += 1;
                grantee.target = (grantee.target + 1).min(most);
                None
            }
            (Demand::Arrivals, ArrivalKind::Packet) => {
                grantee.owed += 1;
                None
            }
            // The packets in flight were lost without a header, so nothing else will arrive.
            (Demand::Arrivals, ArrivalKind::Request) => {
                let window = grantee.terms.quanta(grantee.terms.window_bytes);
                grantee.owed = grantee.owed.max(grantee.missing().min(window));
                None
            }
            (Demand::Target, ArrivalKind::Header) => Some(Queue::Active),
            (Demand::Target, _) | (Demand::Full, _) => None,
        };
        let wants = grantee.wants();
        if let Some(queue) = queue {
            self.push(now, qp, queue);
        }
        if wants {
            self.push(now, qp, Queue::Active);
        }
    }

    /// Repeats the latest grant of a sender.
    pub(crate) fn again(&self, qp: QpNum) -> Option<Pull> {
        let grantee = self.grantees.get(&qp)?;
        Some(Pull { qp, to: grantee.sender, granted: CreditNumber::new(grantee.granted) })
    }

    /// Time of the next grant, if nothing arrives before.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queues.iter().any(|queue| !queue.is_empty()).then_some(self.free_at)
    }

    /// Returns the next grant, if it is due.
    pub(crate) fn next(&mut self, now: Time) -> Option<Pull> {
        while self.free_at <= now {
            let queue = [Queue::Again, Queue::Active, Queue::Idle]
                .into_iter()
                .find(|&queue| !self.queues[queue as usize].is_empty())?;
            let qp = self.queues[queue as usize].pop_front()?;
            let Some(grantee) = self.grantees.get_mut(&qp) else { continue };
            grantee.queued[queue as usize] = false;
            if queue == Queue::Idle && !grantee.may_idle() {
                continue;
            }
            let quanta = grantee.take(queue);
            let pull = Pull { qp, to: grantee.sender, granted: CreditNumber::new(grantee.granted) };
            let interval = match &mut self.fabric {
                Some(fabric) if grantee.terms.config.fabric != FabricControl::Off => {
                    let whole = grantee.terms.interval(quanta).as_ps() as f64;
                    Duration::from_ps((whole / fabric.share(now)) as u64)
                }
                _ => grantee.terms.interval(quanta),
            };
            let next = if grantee.wants() { Some(Queue::Active) } else { None };
            let idle = grantee.may_idle().then_some(Queue::Idle);
            let again = (grantee.again > 0 && queue == Queue::Again).then_some(Queue::Again);
            for queue in [again, next, idle].into_iter().flatten() {
                self.enqueue(qp, queue);
            }
            let late = Duration::from_ps(interval.as_ps().saturating_mul(LATE_GRANTS));
            let earliest = Time::from_ps(now.as_ps().saturating_sub(late.as_ps()));
            self.free_at = self.free_at.max(earliest).saturating_add(interval);
            return Some(pull);
        }
        None
    }

    /// Quanta granted to a sender, and wanted by it; for tests.
    #[cfg(test)]
    fn state(&self, qp: QpNum) -> (u64, u64) {
        let grantee = &self.grantees[&qp];
        (grantee.granted, grantee.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use pathweave_policy::credit::FabricPace;
    use pathweave_policy::{CreditConfig, PolicyEnv};
    use pathweave_units::{Rate, TrimmedAt};
    use proptest::prelude::*;

    fn terms(config: CreditConfig, packet: u32) -> CreditParams {
        let base_rtt = Duration::from_us(12);
        let env = PolicyEnv {
            mtu_wire_bytes: packet,
            mtu_payload_bytes: packet - 64,
            ..PolicyEnv::new(Rate::from_gbps(100), base_rtt, 64)
        };
        config.terms(&env, env.line_rate)
    }

    fn pacer(config: CreditConfig, packet: u32, qps: u32) -> Pacer {
        let mut pacer = Pacer::default();
        (0..qps).for_each(|qp| pacer.join(QpNum(qp), terms(config, packet)));
        pacer
    }

    fn hear(pacer: &mut Pacer, now: Time, qp: u32, heard: ArrivalKind, target: u64) {
        let sender = Sender { host: HostId(qp), qp: QpNum(100 + qp), path: PathId(3) };
        pacer.heard(now, QpNum(qp), sender, heard, Some(CreditNumber::new(target)));
    }

    /// Grants up to `until`: time in ns, sender, total quanta.
    fn run(pacer: &mut Pacer, until: Time) -> Vec<(u64, u32, u64)> {
        let mut grants = Vec::new();
        while let Some(at) = pacer.next_at().filter(|&at| at <= until) {
            if let Some(pull) = pacer.next(at) {
                grants.push((at.as_ps() / 1_000, pull.to.host.0, pull.granted.quanta(0)));
            }
        }
        grants
    }

    #[test]
    fn senders_take_turns_and_the_last_grant_is_what_is_missing() {
        let mut pacer = pacer(CreditConfig { idle: IdleGrants::Off, ..CreditConfig::rccc() }, 4_150, 2);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Packet, 130);
        hear(&mut pacer, Time::ZERO, 1, ArrivalKind::Packet, 64);
        // 16 KiB take 1.32396 us at 99 Gb/s.
        let expected = [(0, 0, 64), (1_323, 1, 64), (2_647, 0, 128), (3_971, 0, 130)];
        assert_eq!(run(&mut pacer, Time::from_us(50)), expected);
        assert_eq!(pacer.next_at(), None);
        // Two quanta take 41 ns: a new request waits for their end, and no longer.
        hear(&mut pacer, Time::from_ns(4_000), 1, ArrivalKind::Packet, 65);
        assert_eq!(run(&mut pacer, Time::from_us(50)), [(4_013, 1, 65)]);
    }

    #[test]
    fn without_requests_one_window_beyond_the_target_is_granted() {
        let mut pacer = pacer(CreditConfig::rccc(), 4_150, 1);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Packet, 10);
        let grants = run(&mut pacer, Time::from_us(1_000));
        // 1.5 of 150,000 bytes are 878 quanta: fourteen grants of 64 reach that.
        assert_eq!((grants.len(), grants[0], grants[14].2), (15, (0, 0, 10), 10 + 14 * 64));
        assert_eq!(pacer.next_at(), None);
        // Senders that want credit come first.
        hear(&mut pacer, Time::from_us(2_000), 0, ArrivalKind::Packet, 1_000);
        assert_eq!(run(&mut pacer, Time::from_us(2_000))[0].2, 970);
    }

    #[test]
    fn a_header_is_answered_even_by_a_grant_of_nothing() {
        let mut pacer = pacer(CreditConfig { idle: IdleGrants::Off, ..CreditConfig::rccc() }, 4_150, 1);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Header, 0);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Header, 0);
        assert_eq!(run(&mut pacer, Time::from_us(9)), [(0, 0, 0)]);
        // That grant is paced as four quanta.
        assert_eq!(pacer.free_at, Time::from_ps(82_747));
    }

    #[test]
    fn eqds_serves_what_was_trimmed_first() {
        let mut pacer = pacer(CreditConfig { idle: IdleGrants::Off, ..CreditConfig::eqds() }, 4_150, 2);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Packet, 20);
        hear(&mut pacer, Time::ZERO, 1, ArrivalKind::Packet, 8);
        hear(&mut pacer, Time::ZERO, 1, ArrivalKind::Header, 8);
        // Nine quanta for the header: two grants of eight before any other sender, each paced as 4,096, 64 and 38 bytes.
        // Grants are not cut to the target and may pass it.
        let expected = [(0, 1, 8), (332, 1, 16), (664, 0, 8), (997, 1, 24), (1_329, 0, 16), (1_662, 0, 24)];
        assert_eq!(run(&mut pacer, Time::from_us(9)), expected);
    }

    #[test]
    fn ndp_grants_a_packet_for_each_that_arrives_and_none_beyond_the_target() {
        let mut pacer = pacer(CreditConfig::ndp(), 9_000, 2);
        for target in 1..=3 {
            hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Packet, target);
        }
        hear(&mut pacer, Time::ZERO, 1, ArrivalKind::Header, 0);
        // The packet of the header must be retransmitted; the sender did not know that when the packet left.
        let expected = [(0, 0, 1), (732, 1, 1), (1_464, 0, 2), (2_197, 0, 3)];
        assert_eq!(run(&mut pacer, Time::from_us(9)), expected);
        // Three packets have arrived, and no further one is wanted.
        hear(&mut pacer, Time::from_us(9), 0, ArrivalKind::Packet, 3);
        assert_eq!(run(&mut pacer, Time::from_us(99)), []);
        // A sender that requests credit has nothing in flight.
        hear(&mut pacer, Time::from_us(99), 0, ArrivalKind::Request, 8);
        assert_eq!(run(&mut pacer, Time::from_us(1_000)).len(), 5);
    }

    /// A tenth of the first round is trimmed before the last hop. Once that round ends, grants are 1.32396 us / 0.9 =
    /// 1.47106 us apart.
    #[test]
    fn where_the_fabric_is_short_grants_are_further_apart() {
        let gap = |fabric| {
            let config = CreditConfig { idle: IdleGrants::Off, fabric, ..CreditConfig::rccc() };
            let mut pacer = pacer(config, 4_150, 1);
            (0..9).for_each(|_| pacer.crossed(Time::ZERO, QpNum(0), Crossing::Whole { marked: false }));
            pacer.crossed(Time::ZERO, QpNum(0), Crossing::Trimmed(TrimmedAt::OnTheWay));
            hear(&mut pacer, Time::from_us(23), 0, ArrivalKind::Packet, 192);
            let grants = run(&mut pacer, Time::from_us(50));
            [grants[1].0 - grants[0].0, grants[2].0 - grants[1].0]
        };
        assert_eq!(gap(FabricControl::Off), [1_323, 1_324]);
        assert_eq!(gap(FabricControl::Paced(FabricPace::default())), [1_471, 1_471]);
    }

    #[test]
    fn a_host_whose_timer_is_late_catches_up_with_a_few_grants() {
        let mut pacer = pacer(CreditConfig::rccc(), 4_150, 1);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Packet, 900);
        assert!(pacer.next(Time::ZERO).is_some());
        let late = Time::from_us(500);
        let grants = core::iter::from_fn(|| pacer.next(late)).count();
        assert_eq!(grants, 9);
        assert!(pacer.next_at().is_some_and(|at| at > late));
    }

    #[test]
    fn a_liar_gets_no_more_than_a_window() {
        let mut pacer = pacer(CreditConfig { idle: IdleGrants::Off, ..CreditConfig::rccc() }, 4_150, 1);
        hear(&mut pacer, Time::ZERO, 0, ArrivalKind::Packet, 1 << 29);
        // 225,000 and 4,150 bytes.
        assert_eq!(pacer.state(QpNum(0)), (0, 897));
        pacer.leave(QpNum(0));
        assert_eq!((pacer.next_at(), pacer.next(Time::from_us(5))), (None, None));
    }

    proptest! {
        /// For any sequence of packets: grants never exceed the pace, no sender is granted more than a window beyond
        /// its target, and a sender that wants credit gets it.
        #[test]
        fn grants_keep_the_pace_and_end(
            kind in 0..3usize,
            heard in prop::collection::vec((0..4u32, 0..3u8, 0..400u64, 0..3_000u64), 1..200),
        ) {
            let config = [CreditConfig::rccc(), CreditConfig::eqds(), CreditConfig::ndp()][kind];
            let mut pacer = pacer(config, 4_150, 4);
            let (mut now, mut grants) = (Time::ZERO, Vec::new());
            for (qp, how, target, later) in heard {
                now = Time::from_ps(now.as_ps() + later * 1_000);
                grants.extend(run(&mut pacer, now));
                let how = [ArrivalKind::Packet, ArrivalKind::Header, ArrivalKind::Request][usize::from(how)];
                hear(&mut pacer, now, qp, how, target);
            }
            grants.extend(run(&mut pacer, Time::from_us(100_000)));
            prop_assert_eq!(pacer.next_at(), None, "every wish is met at last");
            let least = pacer.grantees[&QpNum(0)].terms.interval(1).as_ps() / 1_000;
            prop_assert!(grants.windows(2).all(|two| two[1].0 + 1 >= two[0].0 + least));
            for grantee in pacer.grantees.values() {
                if config.demand != Demand::Arrivals {
                    prop_assert!(grantee.missing() == 0);
                }
                // EQDS grants credit for headers even if the sender never raises its target.
                if config.demand != Demand::Full {
                    let more = u64::from(config.grant) + grantee.most() * 2;
                    prop_assert!(grantee.granted <= grantee.target + more, "{grantee:?}");
                }
            }
        }
    }
}
