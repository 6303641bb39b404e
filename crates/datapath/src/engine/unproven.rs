//! Anti-amplification limit: bounds what is sent to an address that is not validated.
//!
//! A peer may list any address, also one of an unrelated host. Until an Answer with the secret of an Ask has come
//! from the address, only Answers and short Asks are sent there. Both have the same size. Three rules bound their
//! number:
//!
//! - For each Ask that comes from the address, three messages are sent to it: the Answer and two Asks ([`SolicitedAllowance`]).
//! - One end must send the first Ask. It is the initiator, which has chosen its peer. All connections of the device
//!   together send an address three unsolicited Asks, and then one per second. Each Answer from there permits three
//!   more ([`Unproven`]).
//! - A connection sends unsolicited Asks to all addresses that its peer lists, but at most three times the bytes that
//!   the peer has sent, as far as these are counted ([`AskBudget`]). A responder has no such budget.
//!
//! An address that the initiator of a connection lists therefore receives at most three times the bytes that came from
//! it. One that a responder lists receives three Asks and one Ask per second in addition. A peer makes this end send at
//! most three times as much to others as it sends itself, however many addresses it lists.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pathweave_units::{Duration, Time};

/// Amplification factor: messages sent to an address for one that came from it.
const FACTOR: u8 = 3;
/// Burst of unsolicited Asks to an address from which nothing has come.
const AT_FIRST: u64 = 3;
/// Interval of unsolicited Asks after the burst.
const EVERY: Duration = Duration::from_ms(1_000);
/// Upper bound of each allowance of Asks.
const MOST_SAVED: u8 = 48;
/// Largest number of addresses that are remembered. An entry can be dropped once its allowance equals that of an
/// unknown address.
const MOST_ADDRESSES: usize = 4_096;

/// Asks permitted by the handshake: three times the bytes of its shorter side, the initiator's. Retry and Accept have
/// at least 60 and 96 bytes of UDP payload; an Ask has 80 bytes, IPv4 header included.
const FOR_HANDSHAKE: u8 = 7;
/// Asks permitted by a data packet or an acknowledgement: three times its bytes. It has at least 52 bytes where an
/// Ask has 56, and 76 where an Ask has 80.
const FOR_PACKET: u8 = 2;

/// Number of Asks that a peer's own Asks by an address pair permit there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SolicitedAllowance(u8);

impl SolicitedAllowance {
    /// Records an Ask that has arrived and is answered.
    pub(crate) fn asked(&mut self) {
        self.0 = self.0.saturating_add(FACTOR - 1).min(MOST_SAVED);
    }

    /// Returns true if any Ask is left.
    pub(crate) fn any(self) -> bool {
        self.0 > 0
    }
}

/// Budget of unsolicited Asks of a connection to all addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskBudget {
    left: u8,
    /// Time of the latest arrival that has been counted.
    heard: Time,
}

impl AskBudget {
    /// Creates the budget after the handshake, at `now`.
    pub(crate) fn new(now: Time) -> Self {
        AskBudget { left: FOR_HANDSHAKE, heard: now }
    }

    /// Records the time of the last arrival from the peer. All arrivals since the last call count as one packet.
    pub(crate) fn heard(&mut self, heard: Time) {
        if heard > self.heard {
            self.heard = heard;
            self.add(FOR_PACKET);
        }
    }

    /// Records an Answer from the peer.
    pub(crate) fn answered(&mut self) {
        self.add(FACTOR);
    }

    fn add(&mut self, questions: u8) {
        self.left = self.left.saturating_add(questions).min(MOST_SAVED);
    }
}

/// Allowances of addresses that are not validated, shared by all connections of a device.
#[derive(Debug, Default)]
pub(crate) struct Unproven {
    addresses: BTreeMap<IpAddr, Allowance>,
}

/// Allowance of Asks to one address.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Asks permitted by Answers from the address.
    earned: u8,
    /// Time until which the rate of one Ask per [`EVERY`] is used up.
    used_until: Time,
}

impl Unproven {
    /// Counts an Ask to `to` if one may be sent there now; returns false if not. Without a `purse` only solicited Asks
    /// may be sent.
    pub(crate) fn may_ask(
        &mut self,
        now: Time,
        to: IpAddr,
        invited: &mut SolicitedAllowance,
        purse: Option<&mut AskBudget>,
    ) -> bool {
        if invited.any() {
            invited.0 -= 1;
            return true;
        }
        let Some(purse) = purse else { return false };
        let may = purse.left > 0 && self.of(now, to).is_some_and(|allowance| allowance.take(now));
        purse.left -= u8::from(may);
        may
    }

    /// Records an Answer with the correct secret from `from`: one connection has validated the address.
    pub(crate) fn answered(&mut self, now: Time, from: IpAddr) {
        if let Some(allowance) = self.of(now, from) {
            allowance.earned = allowance.earned.saturating_add(FACTOR).min(MOST_SAVED);
        }
    }

    /// Clears all allowances when the clock is reset.
    pub(crate) fn clear(&mut self) {
        self.addresses.clear();
    }

    /// Returns the allowance of an address, or `None` if too many are remembered.
    fn of(&mut self, now: Time, address: IpAddr) -> Option<&mut Allowance> {
        if self.addresses.len() >= MOST_ADDRESSES && !self.addresses.contains_key(&address) {
            self.addresses.retain(|_, allowance| allowance.used_until > now);
            if self.addresses.len() >= MOST_ADDRESSES {
                return None;
            }
        }
        Some(self.addresses.entry(address).or_insert(Allowance { earned: 0, used_until: now }))
    }
}

impl Allowance {
    fn take(&mut self, now: Time) -> bool {
        if self.earned > 0 {
            self.earned -= 1;
            return true;
        }
        if self.used_until.saturating_since(now) > EVERY * (AT_FIRST - 1) {
            return false;
        }
        self.used_until = self.used_until.max(now) + EVERY;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn at(ms: u64) -> Time {
        Time::from_us(5) + Duration::from_ms(ms)
    }

    #[test]
    fn an_address_that_never_spoke_gets_three_questions_and_then_one_a_second() {
        let mut unproven = Unproven::default();
        let mut sent = vec![];
        for ms in (0..4_500).step_by(20) {
            // A new connection each time, so that no purse is empty.
            if unproven.may_ask(
                at(ms),
                ip(1),
                &mut SolicitedAllowance::default(),
                Some(&mut AskBudget::new(at(0))),
            ) {
                sent.push(ms);
            }
        }
        assert_eq!(sent, [0, 20, 40, 1_000, 2_000, 3_000, 4_000]);
        // Each address has its own allowance.
        assert!(unproven.may_ask(
            at(4_480),
            ip(2),
            &mut SolicitedAllowance::default(),
            Some(&mut AskBudget::new(at(0)))
        ));
    }

    #[test]
    fn a_question_from_there_allows_an_answer_and_two_questions() {
        let mut unproven = Unproven::default();
        let (mut invited, mut purse) = (SolicitedAllowance::default(), AskBudget { left: 0, heard: at(0) });
        let mut ask =
            |invited: &mut SolicitedAllowance| unproven.may_ask(at(0), ip(1), invited, Some(&mut purse));
        assert!(!ask(&mut invited));
        invited.asked();
        assert_eq!([ask(&mut invited), ask(&mut invited), ask(&mut invited)], [true, true, false]);
    }

    #[test]
    fn a_connection_asks_three_times_as_much_as_its_peer_says() {
        let (mut unproven, mut purse) = (Unproven::default(), AskBudget::new(at(0)));
        let mut asks = |purse: &mut AskBudget| {
            (0..=255)
                .filter(|last| {
                    unproven.may_ask(at(0), ip(*last), &mut SolicitedAllowance::default(), Some(&mut *purse))
                })
                .count()
        };
        assert_eq!((asks(&mut purse), asks(&mut purse)), (7, 0), "for the handshake");
        purse.heard(at(0));
        assert_eq!(asks(&mut purse), 0, "that was the handshake");
        purse.heard(at(1));
        purse.heard(at(1));
        assert_eq!(asks(&mut purse), 2);
        purse.answered();
        assert_eq!(asks(&mut purse), 3);
        (0..100).for_each(|_| purse.answered());
        assert_eq!(asks(&mut purse), 48);
    }

    #[test]
    fn an_answer_lets_other_connections_ask_there() {
        let mut unproven = Unproven::default();
        let ask = |unproven: &mut Unproven| {
            unproven.may_ask(
                at(0),
                ip(1),
                &mut SolicitedAllowance::default(),
                Some(&mut AskBudget::new(at(0))),
            )
        };
        assert_eq!((0..9).filter(|_| ask(&mut unproven)).count(), 3);
        unproven.answered(at(0), ip(1));
        assert_eq!((0..9).filter(|_| ask(&mut unproven)).count(), 3);
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for() {
        let mut unproven = Unproven::default();
        let mut ask = |ms, number: u32| {
            let to = IpAddr::from(number.to_be_bytes());
            unproven.may_ask(at(ms), to, &mut SolicitedAllowance::default(), Some(&mut AskBudget::new(at(0))))
        };
        assert!((0..4_096).all(|number| ask(0, number)));
        assert!(!ask(0, 5_000), "nobody is asked that would not be remembered");
        assert!(ask(0, 7), "others are");
        assert!(ask(1_000, 5_000), "all but one have been forgotten");
        assert_eq!(unproven.addresses.len(), 2);
    }

    /// Event at one of a few connections with one of a few addresses.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        WantsToAsk,
        Asked,
        Answered,
        Heard,
        TimePasses { ms: u16 },
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            8 => Just(Happens::WantsToAsk),
            1 => Just(Happens::Asked),
            1 => Just(Happens::Answered),
            1 => Just(Happens::Heard),
            2 => (0u16..2_500).prop_map(|ms| Happens::TimePasses { ms }),
        ]
    }

    proptest! {
        /// All messages have the same number of bytes, so counting them counts bytes.
        #[test]
        fn the_bounds_always_hold(events in prop::collection::vec((happens(), 0usize..4, 0usize..3), 0..400)) {
            let mut unproven = Unproven::default();
            let mut purses = [AskBudget::new(at(0)); 4];
            let mut invited = [[SolicitedAllowance::default(); 3]; 4];
            let (mut ms, mut came, mut sent) = (0, [0u64; 3], [0u64; 3]);
            // What each peer has sent, in Asks, and what was sent to others on its connection.
            let (mut said, mut caused, mut asked) = ([7.0 / 3.0; 4], [0.0; 4], [0.0; 4]);
            for (event, connection, address) in events {
                match event {
                    Happens::WantsToAsk => {
                        let (invited, purse) = (&mut invited[connection][address], &mut purses[connection]);
                        // The connections 2 and 3 are those of a responder.
                        let purse = (connection < 2).then_some(purse);
                        let may = unproven.may_ask(at(ms), ip(address as u8), invited, purse);
                        sent[address] += u64::from(may);
                        caused[connection] += f64::from(u8::from(may));
                    }
                    Happens::Asked => {
                        invited[connection][address].asked();
                        came[address] += 1;
                        sent[address] += 1;
                        said[connection] += 1.0;
                        asked[connection] += 1.0;
                        caused[connection] += 1.0;
                    }
                    Happens::Answered => {
                        purses[connection].answered();
                        unproven.answered(at(ms), ip(address as u8));
                        came[address] += 1;
                        said[connection] += 1.0;
                    }
                    Happens::Heard => {
                        purses[connection].heard(at(ms));
                        // A data packet is shorter than an Ask: 52 bytes to 56 at least.
                        said[connection] += 52.0 / 56.0;
                    }
                    Happens::TimePasses { ms: passed } => ms += u64::from(passed),
                }
                for address in 0..3 {
                    prop_assert!(sent[address] <= 3 * came[address] + 3 + ms / 1_000);
                }
                for connection in 2..4 {
                    prop_assert!(caused[connection] <= 3.0 * asked[connection]);
                }
                for connection in 0..4 {
                    prop_assert!(caused[connection] <= 3.0 * said[connection] + 1e-9);
                }
            }
        }
    }
}
