//! Limits of a responder, and cleanup of unfinished handshakes.

use std::net::SocketAddr;

use pathweave_units::Time;

use super::super::layout::{common, message};
use super::super::*;
use super::pair::{Pair, Seeded, client, hello, initiator, key, responder};

/// Runs an initiator until its request is with the application.
fn ask(responder: &mut Responder, now: Time, from: SocketAddr, seed: u64) -> (Initiator, Option<RequestId>) {
    let (initiator, id, _) = ask_seen(responder, now, from, seed);
    (initiator, id)
}

/// Like [`ask`], and also returns the request as an observer on the path sees it.
fn ask_seen(
    responder: &mut Responder,
    now: Time,
    from: SocketAddr,
    seed: u64,
) -> (Initiator, Option<RequestId>, Vec<u8>) {
    let mut initiator = initiator(now, &key(1), hello(1, seed as u32), seed);
    let mut request = vec![];
    for _ in 0..2 {
        request = initiator.poll_transmit().expect("a request");
        responder.handle(now, from, &request);
        while let Some((to, answer)) = responder.poll_transmit() {
            assert_eq!(to, from);
            initiator.handle(now, &answer);
        }
    }
    let id = match responder.poll_event() {
        Some(ResponderEvent::Request { id, .. }) => Some(id),
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    (initiator, id, request)
}

fn failure(initiator: &mut Initiator) -> HandshakeError {
    match initiator.poll_event() {
        Some(InitiatorEvent::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn limited(limits: Limits) -> Responder {
    responder(key(1), ResponderConfig { limits, ..ResponderConfig::default() }, 5)
}

fn peer(n: u8) -> SocketAddr {
    SocketAddr::new([10, 0, 0, n].into(), 4_791)
}

#[test]
fn half_open_connections_are_limited_in_all_and_for_each_peer() {
    let mut responder = limited(Limits { half_open: 5, half_open_per_peer: 2, ..Limits::default() });
    let now = Time::from_us(1);
    let mut seed = 100;
    let mut outcomes = vec![];
    for n in [1, 1, 1, 2, 2, 2, 3, 3, 4] {
        seed += 1;
        let (mut initiator, id) = ask(&mut responder, now, peer(n), seed);
        outcomes.push(match id {
            Some(_) => "asked".to_string(),
            None => match failure(&mut initiator) {
                HandshakeError::Refused(refusal) => format!("{refusal:?}"),
                other => panic!("{other:?}"),
            },
        });
    }
    let (asked, limit) = ("asked", "PeerLimit");
    assert_eq!(outcomes, [asked, asked, limit, asked, asked, limit, asked, "Busy", "Busy"]);
    assert_eq!(responder.admission().half_open_connections(), 5);

    // No request is decided: all are abandoned, and there is room again.
    let timeout = HandshakeConfig::default().timeout;
    assert_eq!(responder.poll_timeout(), Some(now + timeout));
    responder.on_timer(now + timeout);
    for _ in 0..5 {
        let event = responder.poll_event();
        assert!(matches!(event, Some(ResponderEvent::Abandoned { session: None, .. })), "{event:?}");
    }
    assert!(responder.poll_event().is_none());
    assert_eq!(responder.admission().half_open_connections(), 0);
    assert_eq!(responder.poll_timeout(), None);
    assert!(ask(&mut responder, now + timeout, peer(1), 200).1.is_some());
}

#[test]
fn connections_are_limited_and_closing_makes_room() {
    let mut responder = limited(Limits { connections: 3, connections_per_peer: 2, ..Limits::default() });
    let now = Time::from_us(1);
    for (seed, n) in [(1, 1), (2, 1), (3, 2)] {
        let (mut initiator, id) = ask(&mut responder, now, peer(n), seed);
        responder.accept(now, id.expect("there is room"), hello(2, seed as u32)).unwrap();
        initiator.handle(now, &responder.poll_transmit().expect("an Accept").1);
        responder.handle(now, peer(n), &initiator.poll_transmit().expect("a Confirm"));
        assert!(matches!(responder.poll_event(), Some(ResponderEvent::Established { .. })));
    }
    assert_eq!(responder.admission().open_connections(), 3);
    let (mut third, id) = ask(&mut responder, now, peer(1), 4);
    assert_eq!((id, failure(&mut third)), (None, HandshakeError::Refused(Refusal::PeerLimit)));
    let (mut fourth, id) = ask(&mut responder, now, peer(3), 5);
    assert_eq!((id, failure(&mut fourth)), (None, HandshakeError::Refused(Refusal::Busy)));
    responder.admission().remove_open(peer(2).ip());
    assert!(ask(&mut responder, now, peer(3), 6).1.is_some());
    // Connections that this end initiates count, too.
    assert_eq!(responder.admission().add_open(peer(4).ip()), Err(Refusal::Busy));
    responder.admission().remove_open(peer(1).ip());
    assert_eq!(responder.admission().add_open(peer(4).ip()), Ok(()));
}

#[test]
fn a_peer_is_a_host_or_an_ipv6_network() {
    let mut admission = Admission::new(Limits { connections_per_peer: 1, ..Limits::default() });
    let address = |text: &str| text.parse().expect("an address");
    assert_eq!(admission.add_open(address("2001:db8::1")), Ok(()));
    assert_eq!(admission.add_open(address("2001:db8::ffff:2")), Err(Refusal::PeerLimit));
    assert_eq!(admission.add_open(address("2001:db8:0:1::1")), Ok(()));
    assert_eq!(admission.add_open(address("10.0.0.1")), Ok(()));
    assert_eq!(admission.add_half_open(address("::ffff:10.0.0.1")), Err(Refusal::PeerLimit));
    assert_eq!(admission.add_open(address("10.0.0.2")), Ok(()));
}

#[test]
fn an_initiator_that_falls_silent_is_given_up_and_its_session_named() {
    let mut pair = Pair::new(50);
    while pair.initiator_result.is_none() {
        pair.exchange(&mut |_, datagram| vec![datagram]);
    }
    let start = pair.now;
    let mut accepts = 0;
    loop {
        let timeout = pair.responder.poll_timeout().expect("it waits");
        pair.now = timeout;
        pair.responder.on_timer(timeout);
        while pair.responder.poll_transmit().is_some() {
            accepts += 1;
        }
        match pair.responder.poll_event() {
            Some(ResponderEvent::Abandoned { session, .. }) => {
                assert_eq!(session, Some(SessionId(202)));
                break;
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
    assert_eq!(accepts, 9, "after 20, 60, 140, 300, 620, 1,260, 2,260, 3,260 and 4,260 ms");
    let waited = (pair.now - start).as_ns();
    let timeout = HandshakeConfig::default().timeout.as_ns();
    assert!(waited <= timeout && waited + 20_000 >= timeout, "{waited}");
    assert_eq!(pair.responder.admission().half_open_connections(), 0);
    assert!(!pair.responder.on_protected(pair.now, client(), SessionId(202), &[0x71; 64]));
}

#[test]
fn abandoned_half_open_connections_do_not_count() {
    let mut responder = limited(Limits { half_open_per_peer: 1, ..Limits::default() });
    let now = Time::from_us(1);
    for decided in [false, true] {
        let (mut asker, id) = ask(&mut responder, now, peer(1), 60 + u64::from(decided));
        let id = id.expect("there is room");
        if decided {
            responder.accept(now, id, hello(2, 7)).unwrap();
            asker.handle(now, &responder.poll_transmit().expect("an Accept").1);
        }
        responder.withdraw(now, id);
        let counts = |responder: &mut Responder| {
            let admission = responder.admission();
            (admission.half_open_connections(), admission.open_connections())
        };
        assert_eq!(counts(&mut responder), (0, 0));
        // A late or repeated withdrawal has no effect.
        responder.withdraw(now, id);
        if let Some(confirm) = asker.poll_transmit() {
            responder.handle(now, peer(1), &confirm);
        }
        assert!(responder.poll_event().is_none());
        assert_eq!(counts(&mut responder), (0, 0));
    }
    responder.on_timer(now + HandshakeConfig::default().timeout);
    assert!(responder.poll_event().is_none());
}

#[test]
fn the_application_may_decline_and_decides_once() {
    let now = Time::from_us(1);
    let mut responder = limited(Limits::default());
    let (mut initiator, id) = ask(&mut responder, now, client(), 60);
    let id = id.unwrap();
    responder.decline(id, 0xbeef);
    initiator.handle(now, &responder.poll_transmit().unwrap().1);
    let refused = HandshakeError::Refused(Refusal::Declined { code: 0xbeef });
    assert_eq!(failure(&mut initiator), refused);
    assert_eq!(responder.accept(now, id, hello(2, 1)), Err(AcceptError::RequestClosed));
    responder.decline(id, 1);
    assert_eq!(responder.poll_transmit(), None);
    assert_eq!(responder.admission().half_open_connections(), 0);
}

#[test]
fn the_answer_goes_where_the_initiator_was_heard_first_and_where_last() {
    let now = Time::from_us(1);
    let mut responder = limited(Limits::default());
    let (mut initiator, id) = ask(&mut responder, now, client(), 63);
    let again = |initiator: &mut Initiator, responder: &mut Responder, port| {
        let due = initiator.poll_timeout().expect("it waits");
        initiator.on_timer(due);
        let other = SocketAddr::new(client().ip(), port);
        responder.handle(due, other, &initiator.poll_transmit().expect("again"));
        (due, other)
    };
    let (now, second) = again(&mut initiator, &mut responder, 50_001);
    responder.accept(now, id.unwrap(), hello(2, 1)).unwrap();
    let answers = |responder: &mut Responder| std::iter::from_fn(|| responder.poll_transmit()).unzip();
    let (to, _): (Vec<_>, Vec<_>) = answers(&mut responder);
    assert_eq!(to, [client(), second]);
    let (now, third) = again(&mut initiator, &mut responder, 50_002);
    assert_eq!(responder.poll_transmit().unwrap().0, third, "in a hurry");
    responder.on_timer(responder.poll_timeout().unwrap());
    let (to, accepts) = answers(&mut responder);
    assert_eq!(to, [client(), third]);
    initiator.handle(now, &accepts[0]);
    responder.handle(now, third, &initiator.poll_transmit().unwrap());
    let Some(ResponderEvent::Established { from, .. }) = responder.poll_event() else {
        panic!("established")
    };
    assert_eq!(from, third);
}

#[test]
fn a_session_number_is_not_given_twice() {
    let now = Time::from_us(1);
    let mut responder = limited(Limits::default());
    let first = ask(&mut responder, now, client(), 61).1.unwrap();
    let second = ask(&mut responder, now, client(), 62).1.unwrap();
    assert_eq!(responder.accept(now, first, hello(2, 9)), Ok(()));
    let taken = AcceptError::SessionTaken(SessionId(9));
    assert_eq!(responder.accept(now, second, hello(2, 9)), Err(taken));
    let wrong = Hello { paths: 0, ..hello(2, 10) };
    assert!(matches!(responder.accept(now, second, wrong), Err(AcceptError::Setup(SetupError::Hello(_)))));
    assert_eq!(responder.accept(now, second, hello(2, 10)), Ok(()), "it was still open");
}

#[test]
fn memory_of_finished_handshakes_is_limited() {
    let mut responder = limited(Limits { half_open: 3, ..Limits::default() });
    let now = Time::from_us(1);
    let mut requests = vec![];
    for seed in 0..20 {
        let now = Time::from_us(1 + seed);
        let (mut initiator, id, request) = ask_seen(&mut responder, now, client(), 1_000 + seed);
        requests.push(request);
        responder.accept(now, id.unwrap(), hello(2, seed as u32)).unwrap();
        initiator.handle(now, &responder.poll_transmit().unwrap().1);
        responder.handle(now, client(), &initiator.poll_transmit().unwrap());
        assert!(matches!(responder.poll_event(), Some(ResponderEvent::Established { .. })));
        responder.admission().remove_open(client().ip());
    }
    // Replayed requests of stored attempts get no answer; those of others get only a new cookie.
    let replies = requests.iter().map(|request| {
        responder.handle(Time::from_us(21), client(), request);
        responder.poll_transmit().map(|(_, reply)| reply[common::TYPE])
    });
    let replies: Vec<_> = replies.collect();
    assert_eq!(replies[..17], [Some(message::RETRY); 17]);
    assert_eq!(replies[17..], [None; 3]);
    assert!(responder.poll_event().is_none());
    // The last three are stored until their cookies have expired.
    let lifetime = ResponderConfig::default().cookie_lifetime;
    assert_eq!(responder.poll_timeout(), Some(Time::from_us(18) + lifetime));
    responder.on_timer(now + lifetime + lifetime);
    assert_eq!(responder.poll_timeout(), None);
}

#[test]
fn no_random_bytes_no_handshake() {
    struct Broken;
    impl SecureRandom for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), RandomError> {
            Err(RandomError)
        }
    }
    let (config, rotation) = (HandshakeConfig::default(), Rotation::default());
    let started = Initiator::new(Time::ZERO, &key(1), hello(1, 1), config, rotation, &mut Broken);
    assert_eq!(started.err(), Some(SetupError::Random(RandomError)));
    assert!(Responder::new(key(1), ResponderConfig::default(), Box::new(Broken)).is_err());
    assert!(ClusterKey::generate(&mut Broken).is_err());
    // A source that fails later makes the responder drop the request.
    struct Once(Seeded, u32);
    impl SecureRandom for Once {
        fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
            self.1 = self.1.checked_sub(1).ok_or(RandomError)?;
            self.0.fill(out)
        }
    }
    let random = Box::new(Once(Seeded::new(1), 1));
    let mut responder = Responder::new(key(1), ResponderConfig::default(), random).unwrap();
    assert!(ask(&mut responder, Time::from_us(1), client(), 70).1.is_none());
    assert_eq!(responder.counters().dropped, 1);
}
