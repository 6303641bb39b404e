//! Resolver of IP addresses to Ethernet addresses on a link. Time is an argument, and frames are returned.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::local::Local;
use super::message::{Message, MessageFlaw, MessageKind};
use crate::ether::frame::Mac;

/// Age at which an address is requested again. It is still used meanwhile.
const FRESH_FOR: Duration = Duration::from_secs(30);
/// Age at which an address is no longer used.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Time after which an unanswered request is repeated. It doubles with each repetition.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// Largest number of doublings. The longest interval is 1.28 s.
const MOST_DOUBLINGS: u32 = 6;
/// Largest number of cached hosts, which take 0.3 MB. The largest links have some thousands.
const MOST_KNOWN: usize = 4_096;

/// Resolves the hosts of one link, and answers requests about this end.
#[derive(Debug)]
pub struct Resolver {
    local: Local,
    mac: Mac,
    known: HashMap<IpAddr, Host>,
    claims: u64,
}

/// Host on the link.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    /// Ethernet address, and the time at which it was received.
    address: Option<(Mac, Duration)>,
    /// Time of the last request, and the number of requests since the last answer.
    last_request: Option<(Duration, u32)>,
}

/// Delivery of a packet to its next hop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Ethernet address of the next hop. `None` if it is not known yet.
    pub to: Option<Mac>,
    /// Frame to send first, with a request for the address.
    pub ask: Option<Vec<u8>>,
}

/// Result of handling a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameResult {
    /// The frame is not a message of address resolution.
    Other,
    /// The frame is an invalid message of address resolution.
    Flawed(MessageFlaw),
    /// The frame is a message of address resolution. If it is a request about this end, the frame with the answer is
    /// returned.
    Message(Option<Vec<u8>>),
}

impl Resolver {
    /// Creates a resolver for the end of a link with these addresses.
    pub fn new(local: Local, mac: Mac) -> Self {
        Resolver { local, mac, known: HashMap::new(), claims: 0 }
    }

    /// Returns how often another host claimed this end's address, which indicates a conflict.
    pub fn conflicts(&self) -> u64 {
        self.claims
    }

    /// Returns the frame that announces this end to all hosts when the link comes up. They may have cached another
    /// adapter.
    pub fn announce(&self) -> Option<Vec<u8>> {
        Message::announce(self.local.address(), self.mac)
    }

    /// Forgets all hosts when the link goes down, as others may be there when it comes up again.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Returns the delivery of packets to a peer, or `None` if there is no route. `now` is a time since a fixed but
    /// arbitrary origin.
    #[inline]
    pub fn resolve(&mut self, peer: IpAddr, now: Duration) -> Option<Resolution> {
        let next = self.local.next_hop(peer)?;
        if next == self.local.address() {
            return Some(Resolution { to: Some(self.mac), ask: None });
        }
        if let Some(host) = self.known.get(&next)
            && let Some((mac, at)) = host.address
            && now.saturating_sub(at) < FRESH_FOR
        {
            return Some(Resolution { to: Some(mac), ask: None });
        }
        Some(self.look_for(next, now))
    }

    #[cold]
    fn look_for(&mut self, next: IpAddr, now: Duration) -> Resolution {
        if !self.known.contains_key(&next) {
            self.make_room(now);
        }
        let host = self.known.entry(next).or_default();
        host.address = host.address.filter(|(_, at)| now.saturating_sub(*at) < KNOWN_FOR);
        let due = host.last_request.is_none_or(|(at, times)| {
            now.saturating_sub(at) >= ASK_AGAIN * (1 << times.saturating_sub(1).min(MOST_DOUBLINGS))
        });
        let to = host.address.map(|(mac, _)| mac);
        if !due {
            return Resolution { to, ask: None };
        }
        let times = host.last_request.map_or(0, |(_, times)| times);
        host.last_request = Some((now, times.saturating_add(1)));
        let from = self.local.address();
        let question = Message { kind: MessageKind::Request, from, mac: self.mac, target: next };
        let (group_mac, group) = Message::group_of(next);
        Resolution { to, ask: question.emit(group_mac, group) }
    }

    /// Handles a received frame.
    pub fn handle_frame(&mut self, frame: &[u8], now: Duration) -> FrameResult {
        let message = match Message::parse(frame) {
            Ok(None) => return FrameResult::Other,
            Ok(Some(message)) => message,
            Err(flaw) => return FrameResult::Flawed(flaw),
        };
        // Our own frame, on a link that loops frames back.
        if message.mac == self.mac {
            return FrameResult::Message(None);
        }
        let own = self.local.address();
        let (speaker, asks_for_us) = match message.kind {
            MessageKind::Request => (message.from, message.target == own),
            MessageKind::Reply => (message.target, false),
        };
        if speaker == own {
            self.claims += 1;
            return FrameResult::Message(message.answer(self.mac).filter(|_| asks_for_us));
        }
        self.learn(speaker, message.mac, now, asks_for_us);
        FrameResult::Message(if asks_for_us { message.answer(self.mac) } else { None })
    }

    /// Records the Ethernet address of a host. An address that was not requested is recorded only if the host asks
    /// for us, because it is about to send.
    fn learn(&mut self, host: IpAddr, mac: Mac, now: Duration, looks_for_us: bool) {
        if !self.local.is_on_link(host) {
            return;
        }
        let told = Host { address: Some((mac, now)), last_request: None };
        match self.known.get_mut(&host) {
            Some(known) => *known = told,
            None if looks_for_us => {
                self.make_room(now);
                self.known.insert(host, told);
            }
            None => {}
        }
    }

    /// Forgets hosts without a recent answer, then all hosts. They are requested again when needed.
    fn make_room(&mut self, now: Duration) {
        if self.known.len() >= MOST_KNOWN {
            self.known
                .retain(|_, host| host.address.is_some_and(|(_, at)| now.saturating_sub(at) < FRESH_FOR));
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Mac = [2, 0, 0, 0, 0, 1];
    const FAR: Mac = [2, 0, 0, 0, 0, 2];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn resolver(local: &str, mac: Mac) -> Resolver {
        Resolver::new(local.parse().unwrap(), mac)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn answer(heard: FrameResult) -> Vec<u8> {
        let FrameResult::Message(Some(frame)) = heard else { panic!("{heard:?}") };
        frame
    }

    #[test]
    fn two_ends_find_each_other_by_one_question() {
        for (near_local, far_local) in [("10.0.0.1/24", "10.0.0.2/24"), ("fd00::1/64", "fd00::2/64")] {
            let (mut near, mut far) = (resolver(near_local, NEAR), resolver(far_local, FAR));
            let far_ip = far.local.address();
            let step = near.resolve(far_ip, ms(0)).unwrap();
            assert_eq!(step.to, None);
            let told = answer(far.handle_frame(&step.ask.unwrap(), ms(1)));
            assert_eq!(near.handle_frame(&told, ms(2)), FrameResult::Message(None));
            let known = |mac| Some(Resolution { to: Some(mac), ask: None });
            assert_eq!(near.resolve(far_ip, ms(3)), known(FAR));
            // A request also reveals the address of its sender.
            assert_eq!(far.resolve(near.local.address(), ms(3)), known(NEAR));
            // A peer may be this end itself.
            assert_eq!(near.resolve(near.local.address(), ms(3)), known(NEAR));
        }
    }

    #[test]
    fn silent_neighbours_are_asked_ever_more_rarely() {
        let mut near = resolver("10.0.0.1/24", NEAR);
        let peer = ip("10.0.0.9");
        let asked: Vec<u64> =
            (0..4_000).filter(|now| near.resolve(peer, ms(*now)).unwrap().ask.is_some()).collect();
        // 20 ms at first, then twice as long each time, up to 1,280 ms.
        assert_eq!(asked, [0, 20, 60, 140, 300, 620, 1_260, 2_540, 3_820]);
    }

    #[test]
    fn old_answers_are_refreshed_and_used_meanwhile() {
        let mut near = resolver("10.0.0.1/24", NEAR);
        let peer = ip("10.0.0.2");
        near.resolve(peer, ms(0));
        let tells = |mac: Mac| {
            Message { kind: MessageKind::Reply, from: peer, mac, target: peer }.emit(NEAR, ip("10.0.0.1"))
        };
        near.handle_frame(&tells(FAR).unwrap(), ms(5));
        assert_eq!(near.resolve(peer, ms(30_004)).unwrap(), Resolution { to: Some(FAR), ask: None });
        let step = near.resolve(peer, ms(30_005)).unwrap();
        assert_eq!((step.to, step.ask.is_some()), (Some(FAR), true));
        assert_eq!(near.resolve(peer, ms(60_005)).unwrap().to, None);
        // The host has got another adapter.
        near.handle_frame(&tells([2; 6]).unwrap(), ms(60_010));
        assert_eq!(near.resolve(peer, ms(60_020)).unwrap(), Resolution { to: Some([2; 6]), ask: None });
    }

    #[test]
    fn a_new_adapter_is_announced_to_all() {
        for (near_local, far_local) in [("10.0.0.1/24", "10.0.0.2/24"), ("fd00::1/64", "fd00::2/64")] {
            let (mut near, mut far) = (resolver(near_local, NEAR), resolver(far_local, FAR));
            let far_ip = far.local.address();
            // A host that was never requested is not recorded.
            assert_eq!(near.handle_frame(&far.announce().unwrap(), ms(0)), FrameResult::Message(None));
            assert!(near.known.is_empty());
            let question = near.resolve(far_ip, ms(0)).unwrap().ask.unwrap();
            near.handle_frame(&answer(far.handle_frame(&question, ms(0))), ms(0));
            let again = resolver(far_local, [2; 6]);
            assert_eq!(near.handle_frame(&again.announce().unwrap(), ms(1)), FrameResult::Message(None));
            assert_eq!(near.resolve(far_ip, ms(2)).unwrap().to, Some([2; 6]));
            near.forget();
            assert_eq!(near.resolve(far_ip, ms(3)).unwrap().to, None);
        }
    }

    #[test]
    fn other_networks_are_reached_by_the_gateway_or_not() {
        let mut near = resolver("10.0.0.1/24", NEAR);
        assert_eq!(near.resolve(ip("192.0.2.1"), ms(0)), None);
        let local: Local = "10.0.0.1/24".parse().unwrap();
        let mut near = Resolver::new(local.with_gateway(ip("10.0.0.254")).unwrap(), NEAR);
        let question = Message::parse(&near.resolve(ip("192.0.2.1"), ms(0)).unwrap().ask.unwrap()).unwrap();
        assert_eq!(question.unwrap().target, ip("10.0.0.254"));
    }

    #[test]
    fn nobody_is_remembered_unasked_and_none_of_another_network() {
        let mut near = resolver("10.0.0.1/24", NEAR);
        let mut far = resolver("10.0.0.2/24", FAR);
        // A request about a third host.
        let question = far.resolve(ip("10.0.0.3"), ms(0)).unwrap().ask.unwrap();
        assert_eq!(near.handle_frame(&question, ms(0)), FrameResult::Message(None));
        assert!(near.known.is_empty());
        // A host of another network asks for us. It is answered and not recorded.
        let mut stranger = resolver("10.0.0.2/8", FAR);
        stranger.local = "10.7.0.2/8".parse().unwrap();
        let question = stranger.resolve(ip("10.0.0.1"), ms(0)).unwrap().ask.unwrap();
        answer(near.handle_frame(&question, ms(0)));
        assert!(near.known.is_empty());
        // A host claims our address.
        let mut thief = resolver("10.0.0.1/24", FAR);
        let claim = thief.resolve(ip("10.0.0.3"), ms(0)).unwrap().ask.unwrap();
        assert_eq!((near.handle_frame(&claim, ms(0)), near.conflicts()), (FrameResult::Message(None), 1));
    }

    #[test]
    fn a_flood_of_askers_takes_no_memory_without_end() {
        let mut near = resolver("10.0.0.1/8", NEAR);
        for number in 0..20_000u32 {
            let from = std::net::Ipv4Addr::from_bits(0x0a10_0000 + number);
            let question =
                Message { kind: MessageKind::Request, from: from.into(), mac: FAR, target: ip("10.0.0.1") };
            answer(near.handle_frame(&question.emit([0xff; 6], ip("10.0.0.1")).unwrap(), ms(number.into())));
            assert!(near.known.len() <= MOST_KNOWN);
        }
    }

    #[test]
    fn other_messages_are_left_alone() {
        let mut near = resolver("10.0.0.1/24", NEAR);
        assert_eq!(near.handle_frame(&[0; 60], ms(0)), FrameResult::Other);
        let mut frame = near.resolve(ip("10.0.0.2"), ms(0)).unwrap().ask.unwrap();
        assert_eq!(near.handle_frame(&frame, ms(0)), FrameResult::Message(None), "our own");
        frame.truncate(30);
        assert_eq!(near.handle_frame(&frame, ms(0)), FrameResult::Flawed(MessageFlaw::Truncated));
    }
}
