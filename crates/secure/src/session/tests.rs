//! Two ends of a session with shared secrets, without the handshake.

use std::collections::BTreeSet;

use pathweave_units::{Duration, PathId, Rng, Time};
use proptest::prelude::*;

use super::super::window::REPLAY_WINDOW;
use super::*;

const NOW: Time = Time::from_us(1_000);

fn pair(protection: Protection, paths: u16, rotation: Rotation) -> (Session, Session) {
    let secrets = Secrets::new((&[1; 32], &[2; 32]), &[3; 32], protection);
    let config = |local, remote| SessionConfig {
        protection,
        local: SessionId(local),
        remote: SessionId(remote),
        paths,
        rotation,
    };
    (
        Session::new(&secrets, Direction::ToResponder, config(7, 9)),
        Session::new(&secrets, Direction::ToInitiator, config(9, 7)),
    )
}

fn default_pair(protection: Protection) -> (Session, Session) {
    pair(protection, 8, Rotation::default())
}

fn seal(session: &mut Session, path: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xaa; packet.len() + session.overhead()];
    frame[session.header_len()..][..packet.len()].copy_from_slice(packet);
    session.seal(PathId(path), &mut frame).expect("a good packet");
    frame
}

const PROTECTED: [Protection; 2] = [Protection::AuthOnly, Protection::Encrypt];

#[test]
fn packets_of_every_size_come_through() {
    for protection in PROTECTED {
        let (mut a, mut b) = default_pair(protection);
        for len in [0, 1, 15, 16, 17, 63, 64, 1_400, 4_096, 9_000, 16_000] {
            let packet: Vec<u8> = (0..len).map(|i| (i * 31) as u8).collect();
            let sealed = seal(&mut a, 3, &packet);
            assert_eq!(sealed.len(), len + 28);
            let readable = sealed[12..12 + len] == packet[..];
            assert_eq!(readable, protection == Protection::AuthOnly || len == 0, "{protection}, {len} bytes");
            let mut frame = sealed;
            let opened = b.open(NOW, &mut frame).expect("ours");
            assert_eq!(opened, Opened { path: Some(PathId(3)), body: 12..12 + len });
            assert_eq!(frame[opened.body], packet[..]);
        }
        assert_eq!((a.counters().sealed_packets, b.counters().opened_packets), (11, 11));
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    for protection in PROTECTED {
        let (mut a, mut b) = default_pair(protection);
        let sealed = seal(&mut a, 3, &[0x55; 100]);
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut frame = sealed.clone();
                frame[at] ^= 1 << bit;
                assert!(b.open(NOW, &mut frame).is_err(), "{protection}, byte {at}, bit {bit}");
            }
        }
        for len in 0..sealed.len() {
            assert!(b.open(NOW, &mut sealed[..len].to_vec()).is_err());
        }
        assert!(b.open(NOW, &mut [&sealed[..], &[0]].concat()).is_err());
        assert_eq!(b.counters().opened_packets, 0);
        assert_eq!(b.counters().rejected(), 8 * sealed.len() as u64 + sealed.len() as u64 + 1);
        assert!(b.open(NOW, &mut sealed.clone()).is_ok(), "none of it left a trace");
    }
}

#[test]
fn each_refusal_has_its_name_and_count() {
    let (mut a, mut b) = default_pair(Protection::Encrypt);
    let sealed = seal(&mut a, 3, &[1; 50]);
    let mut with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = sealed.clone();
        change(&mut frame);
        b.open(NOW, &mut frame)
    };
    assert_eq!(with(&|f| f.truncate(27)), Err(OpenError::TooShort { len: 27, needed: 28 }));
    assert_eq!(with(&|f| f[0] = 0x72), Err(OpenError::Kind { found: 0x72 }), "no change of mode on the way");
    assert_eq!(with(&|f| f[0] = 0xc4), Err(OpenError::Kind { found: 0xc4 }), "nothing unprotected");
    assert_eq!(with(&|f| f[7] = 8), Err(OpenError::Session { found: 8 }));
    assert_eq!(with(&|f| f[3] = 8), Err(OpenError::Path { path: PathId(8), paths: 8 }));
    assert_eq!(with(&|f| f[1] = 0x20), Err(OpenError::Epoch { found: 2 }));
    assert_eq!(with(&|f| f[1] = 0xf0), Err(OpenError::Epoch { found: 15 }), "there was no epoch before");
    assert_eq!(with(&|f| f[40] ^= 1), Err(OpenError::Forged));
    assert_eq!(with(&|f| f[1] = 0x10), Err(OpenError::Forged), "the next epoch has other keys");
    assert!(with(&|_| ()).is_ok());
    assert_eq!(with(&|_| ()), Err(OpenError::Replayed { path: PathId(3), number: 0 }));
    let counters = b.counters();
    let expected = SessionCounters {
        opened_packets: 1,
        rejected_short: 1,
        rejected_kind: 2,
        rejected_session: 1,
        rejected_path: 1,
        rejected_epoch: 2,
        rejected_forged: 2,
        rejected_replayed: 1,
        ..SessionCounters::default()
    };
    assert_eq!(counters, expected);
    assert_eq!(counters.rejected(), 10);
}

#[test]
fn a_path_far_ahead_does_not_age_another() {
    let (mut a, mut b) = default_pair(Protection::Encrypt);
    let late: Vec<Vec<u8>> = (0..8).map(|path| seal(&mut a, path, b"late")).collect();
    for _ in 0..3 * REPLAY_WINDOW {
        let mut frame = seal(&mut a, 0, b"");
        b.open(NOW, &mut frame).expect("ours");
    }
    for (path, mut frame) in late.into_iter().enumerate() {
        let opened = b.open(NOW, &mut frame);
        if path == 0 {
            assert_eq!(opened, Err(OpenError::TooOld { path: PathId(0), number: 0 }));
        } else {
            assert!(opened.is_ok(), "path {path}");
        }
    }
}

fn every(packets: u64) -> Rotation {
    Rotation { packets, ..Rotation::default() }
}

#[test]
fn keys_change_in_step_and_go_round_the_epoch_field() {
    for protection in PROTECTED {
        let (mut a, mut b) = pair(protection, 2, every(10));
        let mut epochs = BTreeSet::new();
        for n in 0..6_000u32 {
            let mut there = seal(&mut a, (n % 2) as u16, &n.to_be_bytes());
            epochs.insert((n / 160, there[1] >> 4));
            let body = b.open(NOW, &mut there).expect("ours").body;
            assert_eq!(there[body], n.to_be_bytes());
            let mut back = seal(&mut b, 0, b"ack");
            a.open(NOW, &mut back).expect("ours");
        }
        assert_eq!(a.counters().send_rotations, 599, "one for each 10 packets but the first");
        assert_eq!(b.counters().receive_rotations, 599);
        assert!(epochs.len() > 512, "{} epochs", epochs.len());
    }
}

#[test]
fn bytes_count_as_well() {
    let rotation = Rotation { bytes: 1_000, ..Rotation::default() };
    let (mut a, mut b) = pair(Protection::Encrypt, 1, rotation);
    for n in 0..10 {
        let mut frame = seal(&mut a, 0, &[0; 500]);
        assert_eq!(frame[1] >> 4, n / 2, "new keys after 1,000 bytes");
        b.open(NOW, &mut frame).expect("ours");
        let mut back = seal(&mut b, 0, b"");
        a.open(NOW, &mut back).expect("ours");
    }
}

#[test]
fn an_end_that_only_answers_follows_at_once() {
    let (mut a, mut b) = pair(Protection::Encrypt, 1, every(1));
    let mut first = seal(&mut a, 0, b"");
    let mut second = seal(&mut a, 0, b"");
    assert_eq!((first[1], second[1]), (0, 0x10));
    b.open(NOW, &mut first).expect("ours");
    b.open(NOW, &mut second).expect("ours");
    assert_eq!(seal(&mut b, 0, b"")[1], 0x11);
    assert_eq!(b.counters().send_rotations, 1);
}

#[test]
fn keys_wait_for_a_peer_that_is_not_heard_and_then_end() {
    let (mut a, mut b) = pair(Protection::Encrypt, 1, every(100));
    for _ in 0..5_000 {
        seal(&mut a, 0, b"unheard");
    }
    assert_eq!(a.counters().send_rotations, 1, "never two changes ahead of the peer");
    // No packet of epoch 0 ever arrived; still, the first packet of epoch 1 can be opened.
    let mut frame = seal(&mut a, 0, b"heard");
    assert!(b.open(NOW, &mut frame).is_ok());
    let mut back = seal(&mut b, 0, b"");
    a.open(NOW, &mut back).expect("ours");
    let mut new = seal(&mut a, 0, b"");
    assert_eq!(new[1], 0x21);

    a.sealer.exhaust_key();
    let mut frame = vec![0; 64];
    let error = a.seal(PathId(0), &mut frame).expect_err("the key is used up");
    assert!(matches!(error, SealError::KeyExhausted { packets: MAX_PACKETS_PER_KEY, .. }), "{error}");
    assert_eq!(frame, [0; 64], "and the frame is as it was");
    // An answer under the new keys allows the next rotation.
    b.open(NOW, &mut new).expect("ours");
    let mut back = seal(&mut b, 0, b"");
    a.open(NOW, &mut back).expect("ours");
    assert!(a.seal(PathId(0), &mut frame).is_ok());
}

#[test]
fn old_keys_are_good_for_the_grace_period() {
    let grace = Duration::from_us(50);
    let (mut a, mut b) = pair(Protection::Encrypt, 2, Rotation { packets: 3, grace, ..Rotation::default() });
    let mut old: Vec<Vec<u8>> = (0..3).map(|_| seal(&mut a, 0, b"old")).collect();
    let mut new = seal(&mut a, 1, b"new");
    assert!(b.open(NOW, &mut new).is_ok());
    assert!(b.open(NOW, &mut old[0]).is_ok());
    assert!(b.open(NOW + Duration::from_ns(49_999), &mut old[1]).is_ok());
    assert_eq!(b.open(NOW + grace, &mut old[2]), Err(OpenError::Epoch { found: 0 }));
}

#[test]
fn rotation_out_of_range_is_named() {
    assert_eq!(Rotation::default().validate(), Ok(()));
    let error = every(0).validate().unwrap_err();
    assert_eq!(error, "rotation.packets is 0; allowed are 1 to 4194304");
    let rotation = Rotation { bytes: MAX_BYTES_PER_KEY, ..Rotation::default() };
    assert_eq!(
        rotation.validate().unwrap_err(),
        "rotation.bytes is 137438953472; allowed are 1 to 68719476736"
    );
}

/// Frame in flight.
#[derive(Clone)]
struct Flight {
    frame: Vec<u8>,
    content: u32,
    /// Epoch of the keys with which it was sealed.
    epoch: u64,
    /// True if the frame has been delivered before.
    before: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Frames are reordered, lost and repeated within the grace period while keys rotate. Each packet opens once with
    /// its own content, and no forged packet opens.
    #[test]
    fn each_packet_opens_once_whatever_the_order(
        seed in any::<u64>(), every_packets in 1u64..200, reach in 1usize..60, auth_only: bool,
    ) {
        let protection = if auth_only { Protection::AuthOnly } else { Protection::Encrypt };
        let mut ends: [Session; 2] = pair(protection, 4, every(every_packets)).into();
        let mut rng = Rng::for_component(seed, "order", 0);
        let mut flying: [Vec<Flight>; 2] = Default::default();
        let mut headers = BTreeSet::new();
        let (mut opened, mut refused, mut repeated) = (0u32, 0u32, 0u32);
        for n in 0..3_000u32 {
            let from = rng.below(2) as usize;
            let sealed = seal(&mut ends[from], rng.below(4) as u16, &n.to_be_bytes());
            prop_assert!(headers.insert((from, sealed[..12].to_vec())) , "a header twice is a nonce twice");
            flying[1 - from].push(Flight { frame: sealed, content: n, epoch: ends[from].sealer.epoch(), before: false });
            let to = rng.below(2) as usize;
            while flying[to].len() > reach {
                let at = rng.below(flying[to].len() as u32) as usize;
                let Flight { mut frame, content, epoch, before } = flying[to][at].clone();
                match ends[to].open(NOW, &mut frame) {
                    Ok(opening) => {
                        prop_assert!(!before, "packet {} opened twice", content);
                        prop_assert_eq!(&frame[opening.body], &content.to_be_bytes());
                        opened += 1;
                    }
                    Err(OpenError::Replayed { .. }) if before => repeated += 1,
                    // The frame is two rotations late. If keys rotate with each packet it may be 16 late, which looks
                    // like the present epoch.
                    Err(error) => {
                        let now_at = ends[to].opener.epoch();
                        prop_assert!(now_at >= epoch + 2, "{}: epoch {}, at {}", error, epoch, now_at);
                        refused += 1;
                    }
                }
                match rng.below(10) {
                    0 => flying[to][at].before = true,
                    _ => { flying[to].swap_remove(at); }
                }
            }
        }
        prop_assert!(
            opened + refused > 2_000 && (every_packets < 100 || opened > 2_000),
            "{} opened, {} refused, {} repeated", opened, refused, repeated
        );
        if every_packets < 20 {
            let rotations = ends[0].counters().send_rotations;
            prop_assert!(rotations > 20, "{} rotations", rotations);
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), fix in 0u8..4) {
        for protection in Protection::ALL {
            let (_, mut b) = default_pair(protection);
            let mut frame = bytes.clone();
            // Some frames pass the cheap checks.
            if frame.len() >= 12 && fix > 0 {
                frame[0] = if protection == Protection::AuthOnly { 0x72 } else { 0x71 };
                frame[1] &= 0x1f;
                frame[2..8].copy_from_slice(&[0, fix, 0, 0, 0, 9]);
            }
            let opened = b.open(NOW, &mut frame);
            if protection == Protection::Insecure {
                prop_assert_eq!(opened.is_ok(), frame.first().is_some_and(|first| kind::PLAIN.contains(first)));
            } else {
                prop_assert!(opened.is_err());
            }
        }
    }
}
