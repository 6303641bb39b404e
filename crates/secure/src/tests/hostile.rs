//! Hostile peers and networks.

use std::net::SocketAddr;

use pathweave_units::{PathId, Time};
use proptest::prelude::*;

use super::super::hello::HelloMessage;
use super::super::layout::{common, initiate, message, retry};
use super::super::message::{emit_reject, emit_versions};
use super::super::*;
use super::pair::{Pair, Way, client, exchange_packets, frame, key};

/// Runs a handshake up to the delivery of message `nth` (0 to 4). Returns the pair, and the message with its
/// direction.
fn before(nth: usize) -> (Pair, Way, Vec<u8>) {
    let mut pair = Pair::new(42);
    let mut count = 0;
    let mut held = None;
    while held.is_none() {
        let sent = pair.exchange(&mut |way, datagram| {
            count += 1;
            if count == nth + 1 {
                held = Some((way, datagram));
                return vec![];
            }
            vec![datagram]
        });
        assert!(sent, "the handshake has five messages");
    }
    let (way, datagram) = held.expect("the loop ends with it");
    (pair, way, datagram)
}

/// Returns the externally visible state of both ends.
fn state(pair: &mut Pair) -> (u32, bool, bool, bool, usize) {
    let half_open = pair.responder.admission().half_open_connections();
    (
        pair.requests,
        pair.initiator_result.is_some(),
        pair.responder_result.is_some(),
        pair.failed.is_some(),
        half_open,
    )
}

#[test]
fn no_flipped_bit_of_a_handshake_goes_through() {
    for nth in 0..5 {
        let (mut pair, way, datagram) = before(nth);
        let untouched = state(&mut pair);
        for at in 0..datagram.len() {
            for bit in [0, 3, 7] {
                let mut flipped = datagram.clone();
                flipped[at] ^= 1 << bit;
                match way {
                    Way::ToResponder => pair.hand_responder(&flipped),
                    Way::ToInitiator => pair.hand_initiator(&flipped),
                }
                // A request with an altered cookie or attempt is answered with a cookie, like any first request.
                while let Some((_, answer)) = pair.responder.poll_transmit() {
                    assert!(
                        [message::RETRY, message::VERSIONS].contains(&answer[1]),
                        "message {nth}, byte {at}"
                    );
                }
                if way == Way::ToInitiator {
                    assert_eq!(pair.initiator.poll_transmit(), None, "message {nth}, byte {at}");
                }
                assert_eq!(state(&mut pair), untouched, "message {nth}, byte {at}, bit {bit}");
            }
        }
        // The genuine message still works afterwards.
        match way {
            Way::ToResponder => pair.hand_responder(&datagram),
            Way::ToInitiator => pair.hand_initiator(&datagram),
        }
        pair.run_well();
        let (mut near, mut far) = pair.both();
        exchange_packets(&mut near, &mut far);
    }
}

#[test]
fn no_cut_or_longer_message_goes_through() {
    for nth in 0..5 {
        let (mut pair, way, datagram) = before(nth);
        let untouched = state(&mut pair);
        let longer = [&datagram[..], &[0]].concat();
        for other in (0..datagram.len()).map(|len| &datagram[..len]).chain([&longer[..]]) {
            match way {
                Way::ToResponder => pair.hand_responder(other),
                Way::ToInitiator => pair.hand_initiator(other),
            }
            while pair.responder.poll_transmit().is_some() {}
            assert_eq!(state(&mut pair), untouched, "message {nth}, {} bytes", other.len());
        }
    }
}

#[test]
fn forged_refusals_do_not_end_an_attempt() {
    for answered in [0, 1] {
        let (mut pair, ..) = before(2 * answered);
        let attempt = pair.initiator.attempt();
        let stranger = key(9).answer_key();
        for refusal in
            [Refusal::Busy, Refusal::Downgrade, Refusal::Protection { theirs: Protection::Insecure }]
        {
            pair.hand_initiator(&emit_reject(attempt, refusal, &stranger));
        }
        pair.hand_initiator(&emit_versions(attempt, &[7], &stranger));
        assert_eq!(pair.failed, None);
        pair.run_well();
        let (mut near, mut far) = pair.both();
        exchange_packets(&mut near, &mut far);
    }
}

#[test]
fn only_the_accept_itself_is_answered_with_another_confirm() {
    let (mut pair, ..) = before(4);
    let accept = pair.sent[3].1.clone();
    for at in 12..accept.len() {
        let mut other = accept.clone();
        other[at] ^= 1;
        pair.hand_initiator(&other);
        assert_eq!(pair.initiator.poll_transmit(), None, "byte {at}");
    }
    pair.hand_initiator(&accept);
    assert!(pair.initiator.poll_transmit().is_some());
}

#[test]
fn a_genuine_refusal_of_another_attempt_means_nothing() {
    let (mut pair, ..) = before(0);
    let other = Pair::new(43).initiator.attempt();
    pair.hand_initiator(&emit_reject(other, Refusal::Busy, &key(1).answer_key()));
    assert_eq!(pair.failed, None);
}

#[test]
fn replays_change_nothing() {
    let mut pair = Pair::new(44);
    pair.run_well();
    let sent = pair.sent.clone();
    let (mut near, mut far) = (pair.initiator_result.take().unwrap(), pair.responder_result.take().unwrap());
    let untouched = state(&mut pair);
    for _ in 0..3 {
        for (way, datagram) in &sent {
            match way {
                Way::ToResponder => pair.hand_responder(datagram),
                Way::ToInitiator => pair.hand_initiator(datagram),
            }
            // `Pair` panics if a connection is established a second time.
            assert_eq!(state(&mut pair), untouched);
            while pair.responder.poll_transmit().is_some() {}
            while pair.initiator.poll_transmit().is_some() {}
        }
    }
    exchange_packets(&mut near, &mut far);
}

#[test]
fn a_recorded_request_is_worth_nothing_elsewhere_or_later() {
    let mut pair = Pair::new(45);
    pair.run_well();
    let recorded = pair.sent[2].1.clone();
    assert_eq!(recorded[common::TYPE], message::INITIATE);

    // From another address the cookie is invalid; with a cookie of its own, the message fails authentication.
    let thief: SocketAddr = "10.9.9.9:4791".parse().unwrap();
    pair.responder.handle(pair.now, thief, &recorded);
    let (_, answer) = pair.responder.poll_transmit().unwrap();
    assert_eq!(answer[common::TYPE], message::RETRY);
    let mut with_own_cookie = recorded.clone();
    let cookie = &answer[retry::COOKIE..retry::MAC];
    with_own_cookie[initiate::COOKIE..initiate::NOISE].copy_from_slice(cookie);
    pair.responder.handle(pair.now, thief, &with_own_cookie);
    assert_eq!(pair.responder.poll_transmit(), None);
    assert_eq!(pair.responder.counters().unproven, 1);

    // Much later, from the right address: the cookie has expired, and no state is left.
    pair.now += ResponderConfig::default().cookie_lifetime;
    pair.responder.on_timer(pair.now);
    assert_eq!(pair.responder.poll_timeout(), None);
    pair.hand_responder(&recorded);
    assert_eq!(pair.responder.poll_transmit().unwrap().1[common::TYPE], message::RETRY);
    assert_eq!(pair.requests, 1);
}

#[test]
fn a_cookie_is_for_one_address_but_any_port() {
    let (mut pair, _, request) = before(2);
    let other_port = SocketAddr::new(client().ip(), 50_000);
    pair.responder.handle(pair.now, other_port, &request);
    let Some(ResponderEvent::Request { from, .. }) = pair.responder.poll_event() else { panic!("a request") };
    assert_eq!(from, other_port);
    // The same host as seen by an IPv6 socket.
    let (mut pair, _, request) = before(2);
    pair.responder.handle(pair.now, "[::ffff:10.1.2.3]:1".parse().unwrap(), &request);
    assert!(matches!(pair.responder.poll_event(), Some(ResponderEvent::Request { .. })));
}

/// Returns a responder that has accepted a request, and its Accept, which the initiator has not handled yet. The
/// request was also received from the addresses in `also`.
fn accepted(also: &[SocketAddr]) -> (Pair, Vec<u8>) {
    let (mut pair, way, accept) = before(3);
    assert_eq!(way, Way::ToInitiator);
    let request = pair.sent[2].1.clone();
    for from in also {
        pair.now += HandshakeConfig::default().first_retransmit;
        pair.responder.handle(pair.now, *from, &request);
        let answered: Vec<SocketAddr> =
            std::iter::from_fn(|| pair.responder.poll_transmit()).map(|(to, _)| to).collect();
        assert!(answered.contains(from), "an initiator may ask from elsewhere: {answered:?}");
        pair.drain_responder();
    }
    (pair, accept)
}

fn established_at(responder: &mut Responder) -> SocketAddr {
    match responder.poll_event() {
        Some(ResponderEvent::Established { from, .. }) => from,
        other => panic!("{other:?}"),
    }
}

/// An observer of a request can repeat it from another port of the same address, where its cookie is valid, too.
/// Answers go there, but the connection does not move.
#[test]
fn a_request_repeated_from_another_port_moves_no_connection() {
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let (forged, path) = (address("10.1.2.3:6666"), address("10.1.2.3:50001"));
    let (mut pair, accept) = accepted(&[forged]);
    pair.hand_initiator(&accept);
    let confirm = pair.initiator.poll_transmit().expect("a Confirm");
    pair.responder.handle(pair.now, client(), &confirm);
    assert_eq!(established_at(&mut pair.responder), client());

    // The first packet, from a path without a listener, replaces the Confirm but does not determine the address for
    // answers.
    let (mut pair, accept) = accepted(&[forged]);
    pair.hand_initiator(&accept);
    let mut near = pair.initiator_result.take().expect("it is through");
    let packet = frame(&mut near.session, 1, b"first");
    assert!(pair.responder.on_protected(pair.now, path, SessionId(202), &packet));
    assert_eq!(established_at(&mut pair.responder), client());
}

#[test]
fn an_initiator_that_asks_from_another_port_is_answered_where_its_proof_comes_from() {
    let elsewhere: SocketAddr = "10.1.2.3:50001".parse().expect("an address");
    let (mut pair, accept) = accepted(&[elsewhere]);
    pair.hand_initiator(&accept);
    let confirm = pair.initiator.poll_transmit().expect("a Confirm");
    pair.responder.handle(pair.now, elsewhere, &confirm);
    assert_eq!(established_at(&mut pair.responder), elsewhere);

    let (mut pair, accept) = accepted(&[elsewhere]);
    pair.hand_initiator(&accept);
    let packet = frame(&mut pair.initiator_result.take().expect("it is through").session, 1, b"first");
    assert!(pair.responder.on_protected(pair.now, elsewhere, SessionId(202), &packet));
    assert_eq!(established_at(&mut pair.responder), elsewhere);
}

#[test]
fn a_frame_sent_back_to_its_sender_is_refused() {
    // Both ends use the same session number, so only the keys distinguish the directions.
    let mut pair = Pair::with(
        46,
        key(1),
        key(1),
        super::pair::hello(1, 5),
        super::pair::hello(2, 5),
        ResponderConfig::default(),
    );
    pair.run_well();
    let (mut near, _) = pair.both();
    let mut reflected = frame(&mut near.session, 0, b"echo");
    assert_eq!(near.session.open(Time::ZERO, &mut reflected), Err(OpenError::Forged));
}

/// Returns all datagrams of a successful handshake, and a frame.
fn genuine_datagrams() -> Vec<Vec<u8>> {
    let mut pair = Pair::new(42);
    pair.run_well();
    let mut near = pair.initiator_result.take().expect("established");
    let mut all: Vec<Vec<u8>> = pair.sent.into_iter().map(|(_, datagram)| datagram).collect();
    all.push(frame(&mut near.session, 1, &[5; 100]));
    all
}

/// Datagrams of an attacker: random bytes, or a genuine message with changes.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let mutated = (
        proptest::sample::select(genuine_datagrams()),
        proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        0usize..400,
    )
        .prop_map(|(mut bytes, changes, len)| {
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if len < 300 {
                bytes.truncate(len);
            }
            bytes
        });
    let header = (1u8..9, 0u8..4, proptest::collection::vec(any::<u8>(), 0..400))
        .prop_map(|(message_type, version, rest)| [&[0x70, message_type, version, 0][..], &rest].concat());
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..400), header, mutated]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A peer without a valid cookie receives no more bytes than it sends, and no state is kept for it.
    #[test]
    fn nothing_is_amplified_or_kept(datagrams in proptest::collection::vec(datagram(), 1..8)) {
        // The attacker has the cluster key but no cookie of this responder.
        let mut responder = super::pair::responder(key(1), ResponderConfig::default(), 4_711);
        for (n, datagram) in datagrams.iter().enumerate() {
            let from = SocketAddr::new([10, 0, 0, n as u8].into(), 1);
            responder.handle(Time::from_us(50), from, datagram);
            let mut answered = 0;
            while let Some((to, answer)) = responder.poll_transmit() {
                prop_assert_eq!(to, from);
                answered += answer.len();
            }
            prop_assert!(answered <= datagram.len(), "{} bytes for {}", answered, datagram.len());
            prop_assert!(responder.poll_event().is_none());
            prop_assert_eq!(responder.poll_timeout(), None);
        }
    }

    /// A hello with arbitrary content is refused with a reason, or encodes to the same content again.
    #[test]
    fn any_hello_is_refused_or_understood(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        len in 0usize..200, noise in proptest::collection::vec(any::<u8>(), 0..120), start in 0usize..40,
    ) {
        let mut bytes = HelloMessage::new(super::pair::hello(1, 1)).encode(100);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(len);
        for bytes in [bytes.clone(), [&bytes[..start.min(bytes.len())], &noise].concat()] {
            match HelloMessage::decode(&bytes) {
                Ok(said) => {
                    prop_assert_eq!(said.hello.validate(), Ok(()));
                    prop_assert_eq!(HelloMessage::decode(&said.encode(0)), Ok(said));
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    /// Arbitrary datagrams in any state: nothing panics, no connection is established, and the genuine handshake
    /// still succeeds.
    #[test]
    fn garbage_is_survived(nth in 0usize..5, datagrams in proptest::collection::vec(datagram(), 1..8)) {
        let genuine_ones = genuine_datagrams();
        let datagrams: Vec<_> = datagrams.into_iter().filter(|d| !genuine_ones.contains(d)).collect();
        let (mut pair, way, genuine) = before(nth);
        for datagram in &datagrams {
            let untouched = state(&mut pair);
            let _ = recipient_of(datagram);
            pair.hand_responder(datagram);
            pair.hand_initiator(datagram);
            while pair.responder.poll_transmit().is_some() {}
            prop_assert_eq!(state(&mut pair), untouched);
        }
        match way {
            Way::ToResponder => pair.hand_responder(&genuine),
            Way::ToInitiator => pair.hand_initiator(&genuine),
        }
        pair.run_well();
        let (mut near, mut far) = pair.both();
        for datagram in &datagrams {
            for end in [&mut near, &mut far] {
                let mut bytes = datagram.clone();
                prop_assert!(end.session.open(Time::ZERO, &mut bytes).is_err());
            }
        }
        exchange_packets(&mut near, &mut far);
    }
}

#[test]
fn sealing_on_no_path_or_into_no_room_is_refused() {
    let mut pair = Pair::new(47);
    pair.run_well();
    let (mut near, _) = pair.both();
    let path = PathId(8);
    assert_eq!(near.session.seal(path, &mut [0; 64]), Err(SealError::Path { path, paths: 8 }));
    let error = SealError::TooShort { len: 27, needed: 28 };
    assert_eq!(near.session.seal(PathId(0), &mut [0; 27]), Err(error));
    assert_eq!(near.session.counters().sealed_packets, 0);
}

#[test]
fn the_machines_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Initiator>();
    moves::<Responder>();
    moves::<Session>();
    moves::<ClusterKey>();
}
