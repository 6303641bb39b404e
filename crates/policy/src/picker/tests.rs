use std::vec;
use std::vec::Vec;

use pathweave_units::{PathId, Rng};

use super::*;
use crate::PathState;
use crate::testing::{Host, REQUEST, SENT, Scenario};

pub(super) fn want(msn: u32) -> SendRequest {
    SendRequest { payload_bytes: 1_000, wire_bytes: 1_078, msn, ..REQUEST }
}

pub(super) fn send(picker: &mut impl PathPicker, msn: u32, host: &mut Host) -> PathId {
    let path = picker.pick(Time::ZERO, &want(msn), &mut host.cx());
    assert_eq!(path, picker.pick(Time::ZERO, &want(msn), &mut host.cx()), "asking changes nothing");
    let sent = Sent { path, msn, payload_bytes: 1_000, wire_bytes: 1_078, ..SENT };
    picker.on_sent(Time::ZERO, &sent, &mut host.cx());
    path
}

fn views(states: &[PathState]) -> Vec<PathView> {
    let view = |(i, &state)| PathView::new(PathId(i as u16), state);
    states.iter().enumerate().map(view).collect()
}

pub(super) fn all_but(down: PathId, of: usize) -> Vec<PathView> {
    let mut states = vec![PathState::Up; of];
    states[down.index()] = PathState::Down;
    views(&states)
}

/// Chi-square against a uniform distribution.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected) * (count as f64 - expected) / expected).sum()
}

#[test]
fn spraying_is_uniform() {
    let mut host = Host::new(1);
    let mut rps = Rps::new(64, &mut host.rng);
    let mut counts = [0u64; 64];
    let mut repeats = 0u64;
    let mut last = PathId(0);
    for _ in 0..64_000 {
        let path = send(&mut rps, 0, &mut host);
        counts[path.index()] += 1;
        repeats += u64::from(path == last);
        last = path;
    }
    // 63 degrees of freedom: mean 63, standard deviation 11.2; up to six of them in either direction.
    let chi = chi_square(&counts);
    assert!((20.0..131.0).contains(&chi), "{chi}");
    // Successive draws are equal as often as by chance: 1,000 times, standard deviation 31.
    assert!((810..1_190).contains(&repeats), "{repeats}");
}

#[test]
fn spraying_avoids_what_is_down_and_stays_uniform() {
    let mut host = Host::new(2);
    let mut rps = Rps::new(8, &mut host.rng);
    rps.on_paths(Time::ZERO, &all_but(PathId(3), 8), &mut host.cx());
    let mut counts = [0u64; 8];
    (0..7_000).for_each(|_| counts[send(&mut rps, 0, &mut host).index()] += 1);
    assert_eq!(counts[3], 0);
    let up: Vec<u64> = counts.iter().copied().filter(|&count| count > 0).collect();
    assert!(up.len() == 7 && chi_square(&up) < 27.0, "{counts:?}");
    rps.on_paths(Time::ZERO, &views(&[PathState::Up; 8]), &mut host.cx());
    assert!((0..100).any(|_| send(&mut rps, 0, &mut host) == PathId(3)));
}

#[test]
fn ecmp_keeps_its_path_until_it_goes_down() {
    let mut host = Host::new(3);
    let mut ecmp = Ecmp::new(16, &mut host.rng);
    let first = send(&mut ecmp, 0, &mut host);
    assert!((1..1_000).all(|msn| send(&mut ecmp, msn, &mut host) == first));
    let other = PathId((first.0 + 1) % 16);
    ecmp.on_paths(Time::ZERO, &all_but(other, 16), &mut host.cx());
    assert_eq!(send(&mut ecmp, 0, &mut host), first);
    ecmp.on_paths(Time::ZERO, &all_but(first, 16), &mut host.cx());
    let second = send(&mut ecmp, 0, &mut host);
    assert_ne!(second, first);
    ecmp.on_paths(Time::ZERO, &views(&[PathState::Up; 16]), &mut host.cx());
    assert_eq!(send(&mut ecmp, 0, &mut host), second);
}

#[test]
fn queue_pairs_choose_ecmp_paths_independently_and_uniformly() {
    let mut counts = [0u64; 16];
    for qp in 0..16_000 {
        let mut rng = Rng::for_component(4, "qp", qp);
        counts[Ecmp::new(16, &mut rng).path().index()] += 1;
    }
    let chi = chi_square(&counts); // 15 degrees of freedom: standard deviation 5.5
    assert!((2.0..48.0).contains(&chi), "{chi}");
}

#[test]
fn a_message_stays_on_its_path_and_the_next_draws_anew() {
    let mut host = Host::new(5);
    let mut picker = PerMessage::new(32, &mut host.rng);
    let mut paths = Vec::new();
    for msn in 0..3_200 {
        let path = send(&mut picker, msn, &mut host);
        assert!((0..5).all(|_| send(&mut picker, msn, &mut host) == path));
        paths.push(path);
    }
    let same = paths.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((40..160).contains(&same), "{same}"); // 100, standard deviation 10
    let current = *paths.last().expect("there were messages");
    assert_eq!(send(&mut picker, 17, &mut host), current); // an old message, sent again
    assert_eq!(send(&mut picker, 3_199, &mut host), current);
}

#[test]
fn message_numbers_may_wrap() {
    let mut host = Host::new(6);
    let mut picker = PerMessage::new(1_000, &mut host.rng);
    for n in 0..8u32 {
        send(&mut picker, n << 29, &mut host);
    }
    let last = send(&mut picker, u32::MAX, &mut host);
    let wrapped = send(&mut picker, 0, &mut host);
    assert_ne!(wrapped, last);
    assert_eq!(send(&mut picker, u32::MAX, &mut host), wrapped);
}

#[test]
fn round_robin_visits_every_path_in_turn() {
    let mut host = Host::new(7);
    let mut picker = RoundRobin::new(5, &mut host.rng);
    let first = send(&mut picker, 0, &mut host).0;
    let next: Vec<u16> = (0..9).map(|_| send(&mut picker, 0, &mut host).0).collect();
    let expected: Vec<u16> = (1..10).map(|n| (first + n) % 5).collect();
    assert_eq!(next, expected);
}

#[test]
fn every_picker_survives_every_path_going_down() {
    for (_, config) in PickerConfig::every() {
        let mut host = Host::new(8);
        let mut picker = config.build(&PolicyEnv { paths: 4, ..Scenario::steady().env }, &mut host.rng);
        picker.on_paths(Time::ZERO, &views(&[PathState::Down; 4]), &mut host.cx());
        assert!(send(&mut picker, 1, &mut host).0 < 4);
    }
}
