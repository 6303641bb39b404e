//! Handshakes between honest ends, over reliable and unreliable networks.

use pathweave_units::{Duration, PathId, QpNum, Rng, Time};
use proptest::prelude::*;

use super::super::hello::HelloMessage;
use super::super::layout::{VERSION, initiate, message, reject, retry};
use super::super::message::{emit_initiate, emit_versions, header};
use super::super::noise::{Noise, Role};
use super::super::*;
use super::pair::{
    ONE_WAY, Pair, Seeded, Way, client, exchange_packets, frame, hello, initiator, key, responder,
};

fn types(pair: &Pair) -> Vec<(Way, u8)> {
    pair.sent.iter().map(|(way, datagram)| (*way, datagram[1])).collect()
}

#[test]
fn five_messages_make_a_connection() {
    let mut asks = hello(1, 101);
    asks.private_data = b"from the application".to_vec();
    asks.mtu_payload = 1_024;
    asks.features = Features(0b0110);
    let mut answer = hello(2, 202);
    answer.paths = 4;
    answer.features = Features(0b1100);
    answer.required = Features(0b0100);
    let mut pair = Pair::with(1, key(1), key(1), asks.clone(), answer.clone(), ResponderConfig::default());
    pair.run_well();
    use Way::{ToInitiator, ToResponder};
    assert_eq!(
        types(&pair),
        [
            (ToResponder, message::INITIATE),
            (ToInitiator, message::RETRY),
            (ToResponder, message::INITIATE),
            (ToInitiator, message::ACCEPT),
            (ToResponder, message::CONFIRM),
        ]
    );
    assert_eq!(pair.responder.admission().open_connections(), 1);
    let (mut near, mut far) = pair.both();
    let agreed = ConnectionParams {
        version: VERSION,
        protection: Protection::Encrypt,
        transport: TransportType::Rc,
        scheme: "udmp".into(),
        mtu_payload: 1_024,
        paths: 4,
        features: Features(0b0100),
    };
    assert_eq!((&near.agreed, &far.agreed), (&agreed, &agreed));
    assert_eq!((&near.peer, &far.peer), (&answer, &asks));
    assert_eq!(near.round_trip, Some(ONE_WAY + ONE_WAY));
    assert_eq!(far.round_trip, Some(ONE_WAY + ONE_WAY));
    let mut sent = frame(&mut near.session, 3, b"hi");
    assert!(far.session.open(Time::from_us(2_000), &mut sent).is_ok());
    assert_eq!(
        near.session.seal(PathId(4), &mut sent),
        Err(SealError::Path { path: PathId(4), paths: 4 }),
        "only the paths both ends have"
    );
}

#[test]
fn every_mode_carries_packets() {
    for protection in Protection::ALL {
        let with = |hello: Hello| Hello { protection, ..hello };
        let asks = with(hello(1, 7));
        let mut pair = Pair::with(5, key(1), key(1), asks, with(hello(2, 7)), ResponderConfig::default());
        pair.run_well();
        let (mut near, mut far) = pair.both();
        assert_eq!(near.session.protection(), protection);
        assert_eq!(near.session.overhead(), if protection == Protection::Insecure { 0 } else { 28 });
        if protection == Protection::Insecure {
            let mut plain = vec![0xc4, 1, 2];
            near.session.seal(PathId(0), &mut plain).unwrap();
            assert_eq!(far.session.open(Time::ZERO, &mut plain).unwrap(), Opened { path: None, body: 0..3 });
            plain[0] = 0x71;
            assert_eq!(far.session.open(Time::ZERO, &mut plain), Err(OpenError::Kind { found: 0x71 }));
        } else {
            exchange_packets(&mut near, &mut far);
        }
    }
}

#[test]
fn protection_needs_a_key_and_insecure_does_not() {
    let start = |protection| {
        Initiator::new(
            Time::ZERO,
            &ClusterKey::public_key_for_insecure(),
            Hello { protection, ..hello(1, 1) },
            HandshakeConfig::default(),
            Rotation::default(),
            &mut Seeded::new(0),
        )
    };
    assert!(start(Protection::Insecure).is_ok());
    for protection in [Protection::AuthOnly, Protection::Encrypt] {
        assert_eq!(start(protection).err(), Some(SetupError::KeyNeeded(protection)));
    }
    let insecure = |host| Hello { protection: Protection::Insecure, ..hello(host, host) };
    let open = ClusterKey::public_key_for_insecure();
    let mut pair =
        Pair::with(2, open.clone(), open.clone(), insecure(1), insecure(2), ResponderConfig::default());
    pair.run_well();
    assert_eq!(pair.failed, None);
    let mut pair = Pair::with(3, open.clone(), open, insecure(1), hello(2, 2), ResponderConfig::default());
    pair.run_well();
    assert_eq!(pair.refused, Some(AcceptError::Setup(SetupError::KeyNeeded(Protection::Encrypt))));
}

#[test]
fn keys_are_fresh_for_each_connection_and_come_from_the_source_that_is_passed_in() {
    let first_frame = |seed| {
        let mut pair = Pair::new(seed);
        pair.run_well();
        let (mut near, mut far) = pair.both();
        (frame(&mut near.session, 0, &[7; 64]), frame(&mut far.session, 0, &[7; 64]))
    };
    let (there, back) = first_frame(10);
    assert_ne!(there[12..], back[12..], "each direction has its own keys");
    assert_ne!(there[12..], first_frame(11).0[12..]);
    assert_eq!((there, back), first_frame(10));
}

#[test]
fn a_key_that_one_end_lacks_is_told_from_another_key() {
    let open = |number| Hello { protection: Protection::Insecure, ..hello(number, number) };
    let none = ClusterKey::public_key_for_insecure;
    let mut pair = Pair::with(4, none(), key(2), open(1), hello(2, 2), ResponderConfig::default());
    pair.run_well();
    assert_eq!(pair.failed, Some(HandshakeError::WrongKey(KeyDifference::OursMissing)));
    let mut pair = Pair::with(4, key(1), none(), hello(1, 1), open(2), ResponderConfig::default());
    pair.run_well();
    let ours = key(1).fingerprint();
    assert_eq!(pair.failed, Some(HandshakeError::WrongKey(KeyDifference::TheirsMissing { ours })));
}

#[test]
fn another_key_is_named_after_a_short_doubt() {
    let mut pair = Pair::with(4, key(1), key(2), hello(1, 1), hello(2, 2), ResponderConfig::default());
    let start = pair.now;
    pair.run_well();
    let ours = key(1).fingerprint();
    assert_eq!(pair.failed, Some(HandshakeError::WrongKey(KeyDifference::Another { ours })));
    assert_eq!(pair.now - start, HandshakeConfig::default().wrong_key_grace + ONE_WAY + ONE_WAY);
    assert_eq!(pair.requests, 0, "the application is not bothered");
    assert_eq!(pair.responder.admission().half_open_connections(), 0);
}

#[test]
fn an_initiator_that_has_a_cookie_but_no_key_gets_nothing() {
    let mut pair = Pair::new(6);
    let mut stranger = initiator(pair.now, &key(1), hello(1, 1), 77);
    // The initiator obtains the cookie with the right key and then uses another key.
    pair.hand_responder(&stranger.poll_transmit().unwrap());
    let (_, answer) = pair.responder.poll_transmit().unwrap();
    let cookie = answer[retry::COOKIE..retry::MAC].try_into().unwrap();
    let header = header(message::INITIATE, stranger.attempt());
    let mut noise = Noise::new(Role::Initiator, &key(2), &header, &cookie, &mut Seeded::new(1)).unwrap();
    let said = HelloMessage::new(hello(1, 1)).encode(200);
    pair.hand_responder(&emit_initiate(&header, &cookie, &noise.write(&said)));
    assert_eq!(pair.responder.counters().unproven, 1);
    assert_eq!(pair.responder.poll_transmit(), None);
    assert_eq!(pair.requests, 0);
    assert_eq!(pair.responder.poll_timeout(), None, "nothing is remembered");
}

#[test]
fn nobody_there_ends_in_time_with_ever_rarer_requests() {
    let mut pair = Pair::new(8);
    let start = pair.now;
    let mut at = vec![];
    loop {
        let before = pair.sent.len();
        pair.exchange(&mut |_, _| vec![]);
        if pair.sent.len() > before {
            at.push((pair.now - start - ONE_WAY).as_ns() / 1_000_000);
        }
        pair.now = Time::from_ps(pair.now.as_ps() - ONE_WAY.as_ps() * u64::from(pair.sent.len() > before));
        if !pair.wait() {
            break;
        }
    }
    assert_eq!(at, [0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260, 4_260]);
    let timeout = HandshakeConfig::default().timeout;
    assert_eq!(pair.failed, Some(HandshakeError::NoAnswer { timeout, sends: 10 }));
    assert_eq!(pair.now - start, timeout);
}

#[test]
fn each_mismatch_is_refused_by_name() {
    type Change = fn(&mut Hello);
    let cases: [(Change, Refusal); 4] = [
        (|h| h.protection = Protection::AuthOnly, Refusal::Protection { theirs: Protection::Encrypt }),
        (|h| h.transport = TransportType::Erd, Refusal::Transport),
        (|h| h.scheme = "ecmp".into(), Refusal::Scheme),
        (
            |h| {
                h.features = Features(5);
                h.required = Features(5);
            },
            Refusal::Features { missing: Features(5) },
        ),
    ];
    for (change, refusal) in cases {
        let mut asks = hello(1, 1);
        change(&mut asks);
        let mut pair = Pair::with(9, key(1), key(1), asks, hello(2, 2), ResponderConfig::default());
        pair.run_well();
        assert_eq!(pair.failed, Some(HandshakeError::Refused(refusal)));
        assert_eq!(pair.refused, Some(AcceptError::Refused(refusal)));
        assert_eq!(pair.responder.admission().half_open_connections(), 0);
        assert!(!refusal.to_string().is_empty());
    }
    // The answering end requires features that the initiator lacks.
    let answer = Hello { features: Features(8), required: Features(8), ..hello(2, 2) };
    let mut pair = Pair::with(9, key(1), key(1), hello(1, 1), answer, ResponderConfig::default());
    pair.run_well();
    let refusal = Refusal::Features { missing: Features(8) };
    assert_eq!(pair.failed, Some(HandshakeError::Refused(refusal)));
}

#[test]
fn no_mix_of_modes_is_a_connection() {
    for asked in Protection::ALL {
        for answered in Protection::ALL {
            let asks = Hello { protection: asked, ..hello(1, 1) };
            let answer = Hello { protection: answered, ..hello(2, 2) };
            let mut pair = Pair::with(21, key(1), key(1), asks, answer, ResponderConfig::default());
            pair.run_well();
            let refused = HandshakeError::Refused(Refusal::Protection { theirs: answered });
            assert_eq!(pair.failed, (asked != answered).then_some(refused), "{asked} and {answered}");
            assert_eq!(pair.initiator_result.is_some() && pair.responder_result.is_some(), asked == answered);
        }
    }
}

#[test]
fn an_unknown_version_is_answered_with_ours() {
    let mut pair = Pair::new(12);
    let mut request = pair.initiator.poll_transmit().unwrap();
    request[2] = 9;
    pair.hand_responder(&request);
    let (_, answer) = pair.responder.poll_transmit().unwrap();
    assert_eq!(answer[1], message::VERSIONS);
    assert_eq!(answer[12..14], [1, VERSION]);
    assert!(answer.len() <= request.len());
    // The answer lists the version that this initiator uses, so it does not give up.
    pair.hand_initiator(&answer);
    assert_eq!(pair.failed, None);

    // In the other direction, our initiator contacts a peer that supports only unknown versions.
    let attempt = pair.initiator.attempt();
    let forged = emit_versions(attempt, &[9, 8], &key(2).answer_key());
    pair.hand_initiator(&forged);
    assert_eq!(pair.failed, None, "anybody could say that");
    pair.hand_initiator(&emit_versions(attempt, &[9, 8], &key(1).answer_key()));
    let error = HandshakeError::Version { ours: vec![VERSION], theirs: vec![9, 8] };
    assert_eq!(error.to_string(), "the peer supports versions [9, 8], this build [2]");
    assert_eq!(pair.failed, Some(error));
}

#[test]
fn a_downgrade_is_reported_to_an_end_that_supports_more() {
    let mut pair = Pair::new(13);
    let first = pair.initiator.poll_transmit().unwrap();
    pair.hand_responder(&first);
    let (_, answer) = pair.responder.poll_transmit().unwrap();
    let cookie = answer[retry::COOKIE..retry::MAC].try_into().unwrap();
    let header = header(message::INITIATE, pair.initiator.attempt());
    let mut noise = Noise::new(Role::Initiator, &key(1), &header, &cookie, &mut Seeded::new(1)).unwrap();
    // The sender supports only another version: its list does not contain ours.
    let said = HelloMessage { hello: hello(1, 1), versions: vec![9] }.encode(200);
    pair.hand_responder(&emit_initiate(&header, &cookie, &noise.write(&said)));
    let (_, answer) = pair.responder.poll_transmit().unwrap();
    assert_eq!((answer[1], answer[reject::REASON]), (message::REJECT, Refusal::Downgrade.encode().0));
    assert_eq!(pair.requests, 0);
}

#[test]
fn a_lost_confirm_is_asked_for_again() {
    let mut pair = Pair::new(14);
    let mut lost = 0;
    pair.run(&mut |_, datagram| {
        let lose = datagram[1] == message::CONFIRM && lost < 3;
        lost += u32::from(lose);
        if lose { vec![] } else { vec![datagram] }
    });
    assert_eq!(lost, 3);
    let (mut near, mut far) = pair.both();
    assert_eq!(far.round_trip, None, "nobody knows which Accept was answered");
    exchange_packets(&mut near, &mut far);
}

#[test]
fn a_packet_says_as_much_as_a_confirm() {
    for protection in [Protection::AuthOnly, Protection::Encrypt] {
        let with = |hello: Hello| Hello { protection, ..hello };
        let mut pair =
            Pair::with(15, key(1), key(1), with(hello(1, 1)), with(hello(2, 2)), ResponderConfig::default());
        while pair.initiator_result.is_none() {
            pair.exchange(&mut |_, datagram| vec![datagram]);
        }
        let mut near = pair.initiator_result.take().unwrap();
        let mut packet = frame(&mut near.session, 2, b"first");
        let session = SessionId(2);
        assert_eq!(recipient_of(&packet), Recipient::Protected(session));
        let mut forged = packet.clone();
        forged[14] ^= 1;
        assert!(!pair.responder.on_protected(pair.now, client(), session, &forged));
        assert!(!pair.responder.on_protected(pair.now, client(), SessionId(3), &packet));
        assert!(pair.responder_result.is_none());
        assert!(pair.responder.on_protected(pair.now, client(), session, &packet));
        pair.drain_responder();
        let mut far = pair.responder_result.take().expect("it is established");
        let body = far.session.open(pair.now, &mut packet).unwrap().body;
        assert_eq!(&packet[body], b"first");
        // The Confirm arrives after the packet.
        pair.exchange(&mut |_, datagram| vec![datagram]);
        assert!(pair.responder_result.is_none());
        assert_eq!(pair.responder.admission().open_connections(), 1);
    }
}

#[test]
fn an_expired_cookie_is_replaced() {
    let mut pair = Pair::new(16);
    for _ in 0..2 {
        pair.exchange(&mut |_, datagram| vec![datagram]);
    }
    let request = pair.initiator.poll_transmit().unwrap();
    pair.now += ResponderConfig::default().cookie_lifetime;
    pair.hand_responder(&request);
    assert_eq!((pair.requests, pair.responder.counters().retries), (0, 2));
    pair.run_well();
    let (mut near, mut far) = pair.both();
    exchange_packets(&mut near, &mut far);
}

/// The request is accepted. A copy of it arrives after its cookie has expired, and the new cookie overtakes the
/// Accept.
#[test]
fn an_accept_of_the_request_before_is_understood() {
    let mut pair = Pair::new(19);
    for _ in 0..2 {
        pair.exchange(&mut |_, datagram| vec![datagram]);
    }
    let request = pair.initiator.poll_transmit().unwrap();
    pair.hand_responder(&request);
    let (_, accept) = pair.responder.poll_transmit().unwrap();
    pair.now += ResponderConfig::default().cookie_lifetime;
    pair.hand_responder(&request);
    let (_, retry) = pair.responder.poll_transmit().unwrap();
    pair.hand_initiator(&retry);
    let asked_anew = pair.initiator.poll_transmit().unwrap();
    assert_ne!(asked_anew, request);
    pair.hand_initiator(&accept);
    assert!(pair.initiator_result.is_some(), "{:?}", pair.failed);
    pair.run_well();
    assert_eq!(pair.requests, 1);
    let (mut near, mut far) = pair.both();
    exchange_packets(&mut near, &mut far);
}

#[test]
fn a_responder_that_restarts_is_found_again() {
    let mut pair = Pair::new(17);
    for _ in 0..2 {
        pair.exchange(&mut |_, datagram| vec![datagram]);
    }
    pair.responder = responder(key(1), ResponderConfig::default(), 999);
    pair.run_well();
    let (mut near, mut far) = pair.both();
    exchange_packets(&mut near, &mut far);
}

#[test]
fn a_slow_network_does_not_make_cookies_overtake_each_other() {
    // The round-trip time exceeds the first retransmission intervals, so several requests and cookies are in flight.
    let mut pair = Pair::new(18);
    let one_way = Duration::from_ms(90);
    let mut flying: Vec<(Time, Way, Vec<u8>)> = vec![];
    for _ in 0..200 {
        while let Some(datagram) = pair.initiator.poll_transmit() {
            flying.push((pair.now + one_way, Way::ToResponder, datagram));
        }
        while let Some((_, datagram)) = pair.responder.poll_transmit() {
            flying.push((pair.now + one_way, Way::ToInitiator, datagram));
        }
        let timers = [pair.initiator.poll_timeout(), pair.responder.poll_timeout()];
        let next = timers.into_iter().flatten().chain(flying.iter().map(|f| f.0)).min().unwrap();
        pair.now = next;
        let (arrived, rest) = flying.into_iter().partition(|f| f.0 <= next);
        flying = rest;
        for (_, way, datagram) in arrived {
            match way {
                Way::ToResponder => pair.hand_responder(&datagram),
                Way::ToInitiator => pair.hand_initiator(&datagram),
            }
        }
        if pair.initiator.poll_timeout().is_some_and(|due| due <= next)
            || pair.responder.poll_timeout().is_some_and(|due| due <= next)
        {
            pair.wait();
        }
        if pair.initiator_result.is_some() && pair.responder_result.is_some() {
            break;
        }
    }
    assert_eq!(pair.requests, 1);
    let (mut near, mut far) = pair.both();
    exchange_packets(&mut near, &mut far);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Loss, duplication and reordering delay a connection, but the two ends never disagree.
    #[test]
    fn a_bad_network_is_survived(seed in any::<u64>(), loss_percent in 0u32..50) {
        let mut pair = Pair::new(seed >> 1);
        let mut rng = Rng::for_component(seed, "network", 0);
        let mut held: Option<(Way, Vec<u8>)> = None;
        pair.run(&mut |way, datagram| {
            if rng.below(100) < loss_percent {
                return vec![];
            }
            let mut out = match held.take() {
                Some((other, late)) if other == way => vec![datagram.clone(), late],
                other => {
                    held = other;
                    vec![datagram.clone()]
                }
            };
            match rng.below(6) {
                0 => out.push(datagram),
                1 if held.is_none() => held = Some((way, datagram)),
                _ => {}
            }
            out
        });
        match (&mut pair.initiator_result, &mut pair.responder_result) {
            (Some(near), Some(far)) => {
                prop_assert_eq!(&near.agreed, &far.agreed);
                exchange_packets(near, far);
            }
            (None, None) => prop_assert!(pair.failed.is_some()),
            (Some(_), None) => prop_assert_eq!(pair.abandoned, 1, "every Confirm was lost"),
            (None, Some(_)) => prop_assert!(false, "who never heard an Accept cannot confirm it"),
        }
    }

    #[test]
    fn hellos_survive_the_trip(
        mtu in 256u16..=32_576, paths in 1u16..=256, ports in 1u8..=64, host: u32, qp in 0u32..1 << 24,
        session: u32, features: u32, required: u32, scheme in "[a-z0-9+._-]{1,32}",
        private in proptest::collection::vec(any::<u8>(), 0..=196), min_len in 0usize..400,
        listed in 0u16..=8,
    ) {
        let one = |n: u16| format!("10.0.{n}.1:{}", u16::MAX - n).parse().unwrap();
        let addresses = if listed < 2 { vec![] } else { (0..listed).map(one).collect() };
        let hello = Hello {
            mtu_payload: mtu, paths, nic_ports: ports, qp: QpNum(qp), features: Features(features),
            required: Features(required & features), scheme, private_data: private, addresses,
            ..hello(host, session)
        };
        prop_assert_eq!(hello.validate(), Ok(()));
        let said = HelloMessage::new(hello);
        let bytes = said.encode(min_len);
        prop_assert!(bytes.len() >= min_len);
        prop_assert_eq!(HelloMessage::decode(&bytes), Ok(said));
    }
}

#[test]
fn requests_are_padded_and_shorter_ones_get_no_answer() {
    let mut pair = Pair::new(20);
    pair.run_well();
    let requests: Vec<_> =
        pair.sent.iter().map(|(_, datagram)| datagram).filter(|d| d[1] == message::INITIATE).collect();
    assert_eq!(requests.iter().map(|d| d.len()).collect::<Vec<_>>(), [initiate::MIN_LEN; 2]);
    let mut responder = responder(key(1), ResponderConfig::default(), 1);
    responder.handle(pair.now, client(), &requests[0][..initiate::MIN_LEN - 1]);
    assert_eq!((responder.poll_transmit(), responder.counters().malformed), (None, 1));
    responder.handle(pair.now, client(), requests[0]);
    assert!(responder.poll_transmit().is_some());
}
