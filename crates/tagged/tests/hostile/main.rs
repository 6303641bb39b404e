//! Peers that follow no rule.

mod liar;

use pathweave_tagged::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_liar_harms_nobody(data in proptest::collection::vec(any::<u8>(), 0..6000)) {
        liar::run(&data);
    }
}

/// Memory without any bytes.
struct Nothing;

impl Memory for Nothing {
    fn write(&mut self, at: Piece, _: &[u8]) {
        assert_eq!(at.len, 0);
    }
    fn fetch(&mut self, from: Piece, _: &mut [u8]) {
        assert_eq!(from.len, 0);
    }
    fn copy_out(&mut self, _: Piece) -> Option<Buffer> {
        None
    }
    fn release(&mut self, _: Buffer) {}
    fn register(&mut self, _: Piece, _: Access, _: Option<PeerId>) -> Option<Remote> {
        None
    }
    fn deregister(&mut self, _: u64) {}
}

const PEER: PeerId = PeerId(0);

fn connected() -> Engine {
    let mut engine = Engine::new(Config::default());
    engine.peer_up(PEER, Role::Initiator, &mut Nothing);
    while engine.poll_action().is_some() {}
    engine
}

fn cuts(engine: &mut Engine) -> Vec<Fault> {
    let mut faults = Vec::new();
    while let Some(action) = engine.poll_action() {
        if let Action::Disconnect { fault, .. } = action {
            faults.push(fault);
        }
    }
    faults
}

/// Encodes a message by hand from kind, flags and body, with number 0 and no grant.
fn by_hand(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![WIRE_VERSION, kind, flags, 0];
    bytes.extend([0; 16]);
    bytes.extend(body);
    bytes
}

#[test]
fn each_way_to_break_a_rule_costs_the_connection() {
    let word = |value: u64| value.to_le_bytes().to_vec();
    let words = |values: &[u64]| values.iter().flat_map(|v| word(*v)).collect::<Vec<u8>>();
    let malformed = [
        ("nothing", vec![]),
        ("another version", [vec![WIRE_VERSION + 1], by_hand(5, 0, &word(1))[1..].to_vec()].concat()),
        ("no such kind", by_hand(12, 0, &[])),
        ("a flag that the kind has not", by_hand(5, 1, &word(1))),
        ("too short", by_hand(5, 0, &[0; 7])),
        ("too long", by_hand(5, 0, &[0; 9])),
        ("ends beyond the last address", by_hand(2, 0, &words(&[1, 9, 5, u64::MAX - 1]))),
        ("an atomic of nothing", by_hand(10, 0, &[&words(&[1, 0, 0])[..], &[2, 7, 0, 0, 0, 0]].concat())),
    ];
    for (what, bytes) in malformed {
        let mut engine = connected();
        engine.delivered(PEER, &bytes, &mut Nothing);
        assert_eq!(cuts(&mut engine), [Fault::Malformed], "{what}");
        assert!(!engine.is_up(PEER));
    }
    let mut skipped = by_hand(5, 0, &word(1));
    skipped[4] = 1;
    let mut acknowledged = by_hand(5, 0, &word(1));
    acknowledged[8] = 1;
    let mut tiny_grant = by_hand(4, 0, &[]);
    tiny_grant[12] = 1;
    tiny_grant[16..18].copy_from_slice(&2047u16.to_le_bytes());
    let mut many = by_hand(4, 0, &[]);
    many[12..14].copy_from_slice(&4097u16.to_le_bytes());
    many[16..18].copy_from_slice(&2048u16.to_le_bytes());
    let violations = [
        ("a number left out", skipped),
        ("acknowledges what did not ask", acknowledged),
        ("a receive that is too small for anything", tiny_grant),
        ("more receives than anyone has", many),
        ("the end of a message nobody sent", by_hand(3, 0, &[&word(1)[..], &[0]].concat())),
        ("a key nobody asked for", by_hand(6, 0, &word(1))),
        ("revokes what is not known", by_hand(7, 0, &word(1))),
        ("gives up what it did not have", by_hand(8, 0, &word(1))),
        ("tells of memory that is not open", by_hand(9, 0, &[&word(1)[..], &[0], &word(8)].concat())),
        (
            "changes memory that is not open",
            by_hand(10, 0, &[&words(&[1, 0, 0])[..], &[2, 7, 0, 0, 1, 0], &word(1)].concat()),
        ),
        ("a result nobody awaits", by_hand(11, 0, &words(&[1, 1]))),
    ];
    for (what, bytes) in violations {
        let mut engine = connected();
        engine.delivered(PEER, &bytes, &mut Nothing);
        assert_eq!(cuts(&mut engine), [Fault::Violation], "{what}");
    }
    // The same frame with a permitted question breaks no rule.
    let mut engine = connected();
    engine.delivered(PEER, &by_hand(5, 0, &word(1)), &mut Nothing);
    assert_eq!((cuts(&mut engine), engine.is_up(PEER)), (vec![], true));
}

/// A peer that asks questions and never grants receives gets no more grants.
#[test]
fn questions_without_receives_for_the_answers_end() {
    let mut engine = connected();
    let mut receives = u64::from(FIRST_RECEIVES.0);
    let mut asked = 0u32;
    while receives > 0 && engine.is_up(PEER) {
        let mut bytes = by_hand(5, 0, &1u64.to_le_bytes());
        bytes[4..8].copy_from_slice(&asked.to_le_bytes());
        engine.delivered(PEER, &bytes, &mut Nothing);
        receives -= 1;
        asked += 1;
        while let Some(action) = engine.poll_action() {
            if let Action::PostReceives { count, .. } = action {
                receives += u64::from(count);
            }
        }
    }
    assert!(asked < 100, "{asked} questions");
}
