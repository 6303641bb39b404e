//! Memory taken by unexpected messages.

use pathweave_tagged::*;

struct Nothing;

impl Memory for Nothing {
    fn write(&mut self, _: Piece, _: &[u8]) {}
    fn fetch(&mut self, _: Piece, _: &mut [u8]) {}
    fn copy_out(&mut self, _: Piece) -> Option<Buffer> {
        None
    }
    fn release(&mut self, _: Buffer) {}
    fn register(&mut self, _: Piece, _: Access, _: Option<PeerId>) -> Option<Remote> {
        None
    }
    fn deregister(&mut self, _: u64) {}
}

/// Encodes the announcement of a message of 1 MiB by hand. It grants receives.
fn announcement(number: u32, tag: u64, grants: u16) -> Vec<u8> {
    let mut bytes = vec![WIRE_VERSION, 2, 2, 0];
    bytes.extend(number.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(grants.to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(if grants == 0 { 0 } else { 2048u32 }.to_le_bytes());
    for word in [tag, u64::from(number), 1 << 20, 7, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Returns the bytes taken by each of `count` messages, after receives that ignore the bits `ignore` have searched in
/// vain.
fn bytes_each(count: u32, ignore: Option<u64>, tag: impl Fn(u32) -> u64) -> u64 {
    let peer = PeerId(0);
    let mut engine = Engine::new(Config::default());
    engine.peer_up(peer, Role::Initiator, &mut Nothing);
    let used = allocation_counter::measure(|| {
        let mut used_up = 4;
        for number in 0..count {
            engine.delivered(peer, &announcement(number, tag(number), used_up), &mut Nothing);
            used_up = 0;
            while let Some(action) = engine.poll_action() {
                used_up += u16::from(matches!(action, Action::Send { .. }));
            }
        }
        for (from, ignore) in [None, Some(peer)].into_iter().flat_map(|from| Some((from, ignore?))) {
            let (want, found) = (MatchOn::Tagged { tag: u64::MAX, ignore }, Found::Stays);
            engine.peek(Peek { from, want, found, context: 0 }, &mut Nothing);
            assert_eq!(engine.poll_completion().map(|c| c.result), Some(Err(Failure::NoMessage)));
        }
    });
    assert_eq!(engine.unexpected_messages(), count as usize);
    used.bytes_current as u64 / u64::from(count)
}

/// Each message has its own tag, or all have the same.
#[test]
fn an_announced_message_takes_at_most_240_bytes() {
    let (own, same) = (bytes_each(100_000, None, u64::from), bytes_each(100_000, None, |_| 5));
    assert!(own < 240 && same < 200, "{own} bytes with its own tag, {same} with the same");
    let (own, same) = (bytes_each(100_000, Some(1), u64::from), bytes_each(100_000, Some(1), |_| 5));
    assert!(own < 400 && same < 240, "{own} bytes with its own tag, {same} with the same, indexed");
}
