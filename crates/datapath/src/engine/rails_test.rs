use super::*;

use crate::secure::RandomError;

const NOW: Time = Time::from_us(5);

/// Random source with known bytes: 1, 1, ..., 2, 2, ...
struct Counted(u8);

impl SecureRandom for Counted {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        self.0 += 1;
        out.fill(self.0);
        Ok(())
    }
}

fn made(ends: &Ends<'_>, paths: u16) -> Option<Box<Rails>> {
    Rails::new(NOW, ends, paths, &mut Counted(0))
}

/// Pairs for which an Ask is sent, short ones and full ones.
fn asked(rails: &mut Rails, now: Time, need: Need, unproven: &mut Unproven) -> (Vec<u8>, Vec<u8>) {
    let (questions, _) = rails.due(now, need, unproven);
    let of = |length| {
        let of = questions.iter().filter(|question| question.length == length);
        let mut pairs: Vec<u8> = of.map(|question| question.pair).collect();
        pairs.sort_unstable();
        pairs
    };
    (of(Length::Short), of(Length::Full))
}

/// Answer of an honest peer to an Ask of this length by a pair.
fn answer(rails: &Rails, number: u8, length: Length) -> Answer {
    let pair = &rails.pairs[usize::from(number)];
    let secret = pair.secrets[usize::from(length == Length::Full)];
    Answer { pair: number, secret, rail: pair.rail, from: pair.to.ip() }
}

/// Processes the Answer to a full Ask. Returns true if it makes the pair usable.
fn proves(rails: &mut Rails, number: u8) -> bool {
    let answer = answer(rails, number, Length::Full);
    rails.on_answer(NOW, &answer, &mut Unproven::default())
}

/// Rails whose networks are unknown.
fn rails(count: usize) -> Vec<(IpAddr, Option<u8>)> {
    (0..count).map(|rail| (IpAddr::from([192, 0, 2, rail as u8]), None)).collect()
}

fn addresses(list: &[&str]) -> Vec<SocketAddr> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

fn ways(of: &Rails, paths: u16) -> Vec<(u8, String)> {
    let way = |path| {
        let (rail, to) = of.pair_for_request(PathId(path));
        (rail.0, to.to_string())
    };
    (0..paths).map(way).collect()
}

#[test]
fn both_ends_put_a_path_on_the_same_pair() {
    let (near, far) = (addresses(&["10.0.1.1:5", "10.0.2.1:6"]), addresses(&["10.0.1.2:7", "10.0.2.2:8"]));
    let asks = Ends { role: Role::Initiator, rails: &rails(2), listed: &far, met: (Rail(0), far[0]) };
    let mut asks = made(&asks, 4).unwrap();
    let answers = Ends { role: Role::Responder, rails: &rails(2), listed: &near, met: (Rail(0), near[0]) };
    let mut answers = made(&answers, 4).unwrap();
    assert_eq!(ways(&asks, 2), [(0, "10.0.1.2:7".into()), (0, "10.0.1.2:7".into())], "as they met");
    // On the second rail a full Ask to the validated address is permitted. The responder sends no Ask to an address
    // from which nothing has come.
    let mut unproven = Unproven::default();
    assert_eq!(asked(&mut asks, NOW, Need::None, &mut unproven), (vec![1, 3], vec![2]));
    assert_eq!(asked(&mut answers, NOW, Need::None, &mut unproven), (vec![], vec![1]));
    let (back, question) = answers.on_ask(NOW, Rail(1), near[1].ip(), &mut unproven).unwrap();
    assert_eq!((back, question.map(|question| question.pair)), ((Rail(1), near[1]), Some(3)));
    assert_eq!((asks.to_ask(1), answers.to_ask(1)), ((Rail(0), far[1]), (Rail(1), near[0])));
    assert!(proves(&mut asks, 3) && proves(&mut answers, 3));
    assert!(!proves(&mut asks, 3) && !proves(&mut asks, 0), "once");
    for path in 0..4 {
        let ((rail, to), (back, from)) =
            (asks.pair_for_request(PathId(path)), answers.pair_for_request(PathId(path)));
        assert_eq!((near[rail.index()], to), (from, far[back.index()]), "path {path}");
        assert_eq!(rail.0, path as u8 % 2);
    }
}

#[test]
fn answers_go_back_by_the_pair_of_what_they_answer() {
    let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
    let ends = Ends { role: Role::Responder, rails: &rails(1), listed: &far, met: (Rail(0), far[1]) };
    let mut rails = made(&ends, 2).unwrap();
    assert_eq!(rails.pair_for_answer(PathId(1)), (Rail(0), far[1]));
    rails.note_arrival(PathId(1), Rail(0), far[0].ip());
    assert_eq!(rails.pair_for_answer(PathId(1)), (Rail(0), far[1]), "whoever has sent it may not be there");
    let short = answer(&rails, 0, Length::Short);
    assert!(rails.on_answer(NOW, &short, &mut Unproven::default()));
    rails.note_arrival(PathId(1), Rail(0), far[0].ip());
    assert_eq!(rails.pair_for_answer(PathId(1)), (Rail(0), far[0]));
    assert_eq!((rails.pair_for_request(PathId(1)).1, rails.pair_for_answer(PathId(0)).1), (far[1], far[1]));
    // A packet from an unknown address, rail or path changes nothing.
    for (path, rail, from) in [(1, 0, "10.0.3.2"), (1, 1, "10.0.2.2"), (9, 0, "10.0.2.2")] {
        rails.note_arrival(PathId(path), Rail(rail), from.parse().unwrap());
    }
    assert_eq!(rails.pair_for_answer(PathId(1)), (Rail(0), far[0]));
    assert!(rails.has_remote(far[0].ip()) && !rails.has_remote("10.0.3.2".parse().unwrap()));
}

#[test]
fn questions_become_rare() {
    let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
    let ends = Ends { role: Role::Initiator, rails: &rails(1), listed: &far, met: (Rail(0), far[0]) };
    let (mut rails, mut unproven) = (made(&ends, 2).unwrap(), Unproven::default());
    let mut now = NOW;
    let mut times = |rails: &mut Rails, length, count| {
        let (begun, mut times) = (now, vec![]);
        while times.len() < count {
            let (due, next) = rails.due(now, Need::None, &mut unproven);
            if let [question] = due[..] {
                let number = 1 + u64::from(length == Length::Full);
                assert_eq!(
                    question,
                    Ask { pair: 1, length, secret: number * 0x0101_0101_0101_0101 + 0x0202_0202_0202_0202 }
                );
                times.push((now - begun).as_ns() / 1_000_000);
            }
            assert!(rails.due(now, Need::None, &mut unproven).0.is_empty());
            now = next.unwrap();
        }
        times
    };
    // The fourth waits for the second to pass and is tried each 160 ms, the fifth each 320 ms.
    assert_eq!(times(&mut rails, Length::Short, 5), [0, 20, 60, 1_100, 2_220]);
    let begins = NOW + Duration::from_ms(2_540);
    let short = answer(&rails, 1, Length::Short);
    assert!(rails.on_answer(begins, &short, &mut Unproven::default()));
    assert_eq!(times(&mut rails, Length::Full, 9), [0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260]);
    assert!(proves(&mut rails, 1));
    assert_eq!(rails.due(now, Need::None, &mut Unproven::default()), (vec![], None));
}

#[test]
fn an_answer_counts_with_the_secret_of_its_pair_and_by_that_pair_alone() {
    let far = addresses(&["10.0.1.2:7", "10.0.2.2:8", "10.0.3.2:9"]);
    let ends = Ends { role: Role::Initiator, rails: &rails(2), listed: &far, met: (Rail(0), far[0]) };
    let (mut rails, mut unproven) = (made(&ends, 2).unwrap(), Unproven::default());
    rails.due(NOW, Need::None, &mut unproven);
    let good = answer(&rails, 1, Length::Short);
    for wrong in [
        Answer { secret: good.secret ^ 1, ..good },
        Answer { secret: 0, ..good },
        Answer { pair: 2, ..good },
        Answer { pair: 99, ..good },
        Answer { rail: Rail(1), ..good },
        Answer { from: far[0].ip(), ..good },
        Answer { from: far[2].ip(), ..good },
        Answer { secret: answer(&rails, 4, Length::Short).secret, ..good },
    ] {
        assert!(!rails.on_answer(NOW, &wrong, &mut unproven), "{wrong:?}");
    }
    assert!(rails.on_answer(NOW, &good, &mut unproven));
    assert!(!rails.on_answer(NOW, &good, &mut unproven), "once");
    assert_eq!(ways(&rails, 2), [(0, "10.0.1.2:7".into()), (0, "10.0.1.2:7".into())], "not by a short one");
    assert!(proves(&mut rails, 1));
    assert_eq!(ways(&rails, 2), [(0, "10.0.1.2:7".into()), (0, "10.0.2.2:8".into())]);
}

#[test]
fn an_address_that_does_not_answer_gets_few_short_questions_of_all_connections() {
    let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
    let ends = Ends { role: Role::Initiator, rails: &rails(1), listed: &far, met: (Rail(0), far[0]) };
    let mut unproven = Unproven::default();
    let mut connections: Vec<_> = (0..50).map(|_| made(&ends, 2).unwrap()).collect();
    let mut sent = 0;
    for ms in (0..10_000).step_by(10) {
        for rails in &mut connections {
            let (short, full) = asked(rails, NOW + Duration::from_ms(ms), Need::None, &mut unproven);
            assert!(full.is_empty());
            sent += short.len();
        }
    }
    assert_eq!(sent, 3 + 9);
    // A peer that is present answers, which lets its other connections ask.
    let answer = answer(&connections[0], 1, Length::Short);
    let later = NOW + Duration::from_ms(10_000);
    assert!(connections[0].on_answer(later, &answer, &mut unproven));
    let each =
        connections.iter_mut().map(|rails| asked(rails, later + ASK_AGAIN_MOST, Need::None, &mut unproven));
    let (short, full): (Vec<_>, Vec<_>) = each.unzip();
    assert_eq!((short.concat().len(), full.concat().len()), (3 + 2, 1));
}

#[test]
fn a_responder_sends_nothing_to_addresses_from_which_nothing_comes() {
    let far: Vec<_> = (1..=8).map(|last| SocketAddr::from(([10, 0, last, 2], 7))).collect();
    let ends = Ends { role: Role::Responder, rails: &rails(1), listed: &far, met: (Rail(0), far[0]) };
    let (mut rails, mut unproven) = (made(&ends, 8).unwrap(), Unproven::default());
    for ms in 0..10_000 {
        let now = NOW + Duration::from_ms(ms);
        rails.note_last_arrival(now);
        assert_eq!(rails.due(now, Need::Dire, &mut unproven), (vec![], None), "and no timer runs");
    }
    // An Ask permits the Ask that is sent with its Answer, and one more.
    let later = NOW + Duration::from_ms(10_000);
    assert!(rails.on_ask(later, Rail(0), far[3].ip(), &mut unproven).unwrap().1.is_some());
    let (again, next) = rails.due(later + ASK_AGAIN, Need::None, &mut unproven);
    assert_eq!((again.len(), next), (1, None));
}

#[test]
fn an_ask_is_answered_with_one_ask_at_once() {
    let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
    let own = addresses(&["10.0.1.1:1", "10.0.2.1:1"]);
    let own: Vec<_> = own.iter().map(|own| (own.ip(), Some(24))).collect();
    let ends = Ends { role: Role::Responder, rails: &own, listed: &far, met: (Rail(0), far[0]) };
    let (mut rails, mut unproven) = (made(&ends, 2).unwrap(), Unproven::default());
    // Pair 2 is in reserve: from the first rail to the network of the second.
    assert_eq!(rails.due(NOW, Need::None, &mut unproven), (vec![], None));
    let mut by = |rails: &mut Rails, ms| {
        let (back, asks) =
            rails.on_ask(NOW + Duration::from_ms(ms), Rail(0), far[1].ip(), &mut unproven).unwrap();
        assert_eq!(back, (Rail(0), far[1]));
        asks.map(|question| (question.pair, question.length))
    };
    assert_eq!(by(&mut rails, 0), Some((2, Length::Short)));
    assert_eq!([by(&mut rails, 0), by(&mut rails, 19)], [None, None]);
    assert_eq!(by(&mut rails, 20), Some((2, Length::Short)));
    assert!(proves(&mut rails, 2));
    assert_eq!(by(&mut rails, 60), None);
    // It serves for Answers, and for other packets if no other pair works.
    rails.note_arrival(PathId(1), Rail(0), far[1].ip());
    assert_eq!(rails.pair_for_answer(PathId(1)), (Rail(0), far[1]));
    assert_eq!(ways(&rails, 2), [(0, "10.0.1.2:7".into()), (0, "10.0.1.2:7".into())]);
    rails.due(NOW, Need::Dire, &mut Unproven::default());
    assert_eq!(ways(&rails, 2), [(0, "10.0.1.2:7".into()), (0, "10.0.2.2:8".into())]);
}

#[test]
fn one_address_at_each_end_is_no_pair_and_a_peer_names_nothing_of_this_host() {
    let one = Ends {
        role: Role::Initiator,
        rails: &rails(1),
        listed: &[],
        met: (Rail(0), addresses(&["10.0.0.1:1"])[0]),
    };
    assert!(made(&one, 4).is_none());
    let listed = addresses(&["10.0.1.2:7", "127.0.0.1:7"]);
    let ends = Ends { role: Role::Initiator, rails: &rails(2), listed: &listed, met: (Rail(0), listed[0]) };
    let mut rails = made(&ends, 4).unwrap();
    let mut unproven = Unproven::default();
    let questions = asked(&mut rails, NOW, Need::None, &mut unproven);
    assert_eq!(questions, (vec![], vec![2]), "from the other rail to the address in the network alone");
    assert!(!proves(&mut rails, 1), "nobody has asked by it");
    assert_eq!(rails.on_ask(NOW, Rail(0), listed[1].ip(), &mut unproven), None);
    let back = rails.on_ask(NOW, Rail(1), listed[0].ip(), &mut unproven);
    assert_eq!(back, Some(((Rail(1), listed[0]), None)));
    rails.note_arrival(PathId(0), Rail(0), listed[1].ip());
    assert_eq!(rails.pair_for_answer(PathId(0)).1, listed[0]);
}

#[test]
fn an_address_in_the_network_of_another_rail_is_asked_when_nothing_else_lives() {
    let own =
        addresses(&["10.0.1.1:1", "10.0.2.1:1"]).iter().map(|own| (own.ip(), Some(24))).collect::<Vec<_>>();
    let listed = addresses(&["10.0.1.2:7", "10.0.2.2:8", "10.0.3.2:9"]);
    let ends = Ends { role: Role::Initiator, rails: &own, listed: &listed, met: (Rail(1), listed[0]) };
    let mut made = made(&ends, 6).unwrap();
    // The handshake used such a pair. The rail that leads to the third network is unknown.
    let mut unproven = Unproven::default();
    assert_eq!(asked(&mut made, NOW, Need::None, &mut unproven), (vec![2, 4, 5], vec![0]));
    for pair in [0, 4, 5] {
        assert!(proves(&mut made, pair));
    }
    let now = ways(&made, 3);
    assert_eq!(now, [(0, "10.0.1.2:7".into()), (1, "10.0.2.2:8".into()), (1, "10.0.3.2:9".into())]);
    let later = NOW + Duration::from_ms(5);
    assert_eq!(asked(&mut made, later, Need::Dire, &mut unproven).1, [1], "it is asked at once");
    assert!(proves(&mut made, 1));
    assert_eq!(ways(&made, 4)[1], (0, "10.0.2.2:8".into()));
}

#[test]
fn where_nothing_comes_back_paths_go_by_the_next_pair() {
    let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
    let ends = Ends { role: Role::Initiator, rails: &rails(1), listed: &far, met: (Rail(0), far[0]) };
    let mut made = made(&ends, 1).unwrap();
    made.rotate_paths(NOW);
    assert_eq!(made.pair_for_request(PathId(0)).1, far[0], "there is no other");
    assert!(proves(&mut made, 1));
    let at = |ms| NOW + Duration::from_ms(ms);
    let mut to = vec![];
    for ms in [100, 150, 200, 300] {
        made.rotate_paths(at(ms));
        to.push(made.pair_for_request(PathId(0)).1.port());
    }
    assert_eq!(to, [7, 7, 8, 7]);
}

#[test]
fn networks_are_told_by_their_prefixes() {
    let near =
        |own: &str, prefix, other: &str| is_in_network(own.parse().unwrap(), prefix, other.parse().unwrap());
    assert!(near("10.0.1.1", Some(24), "10.0.1.255") && !near("10.0.1.1", Some(24), "10.0.2.1"));
    assert!(near("10.0.1.1", Some(22), "10.0.2.1") && !near("10.0.1.1", Some(32), "10.0.1.2"));
    assert!(near("fd00::1", Some(64), "fd00::2:0:0:1") && !near("fd00::1", Some(64), "fd00:0:0:1::1"));
    assert!(!near("10.0.1.1", Some(0), "10.0.1.2") && !near("10.0.1.1", None, "10.0.1.1"));
    assert!(!near("10.0.1.1", Some(24), "fd00::1") && near("10.0.1.1", Some(255), "10.0.1.1"));
}

#[test]
fn peers_at_unlisted_addresses_are_answered_there() {
    let (listed, met) = (addresses(&["10.0.1.2:7", "10.0.2.2:8"]), addresses(&["192.0.2.1:99"])[0]);
    let ends = Ends { role: Role::Responder, rails: &rails(1), listed: &listed, met: (Rail(0), met) };
    let rails = made(&ends, 2).unwrap();
    assert_eq!(rails.pair_for_request(PathId(1)), (Rail(0), met));
    assert!(rails.has_remote(met.ip()));
}
