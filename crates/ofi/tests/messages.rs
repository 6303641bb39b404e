//! Messages between two endpoints of one process: order, matching, truncation, peeking, cancelling.

#![allow(unsafe_code, reason = "calls C tables")]

mod client;

use std::time::Instant;

use client::*;

#[test]
fn messages_of_all_sizes_arrive_whole_and_in_the_order_of_sending() {
    let pair = Pair::new();
    let sizes = [0, 1, 64, 1_000, 1_024, 1_025, 16_383, 16_384, 16_385, 20_000, 1 << 20, 5_000_000, 3];
    for (round, expected) in [(0, "posted before"), (1, "posted after")] {
        let sent: Vec<Vec<u8>> = sizes.iter().map(|len| pattern(*len, *len as u64 + round)).collect();
        let mut got: Vec<Vec<u8>> = sizes.iter().map(|len| vec![0; *len]).collect();
        let mut post = |pair: &Pair| {
            for (index, into) in got.iter_mut().enumerate() {
                pair.far.trecv(pair.to_near, 7, 0, slot(into), index);
            }
        };
        if round == 0 {
            post(&pair);
        }
        for (index, bytes) in sent.iter().enumerate() {
            pair.near.tsend(pair.to_far, 7, bytes, 100 + index);
        }
        if round == 1 {
            assert!(pair.far.is_silent());
            post(&pair);
        }
        let mut lens = vec![usize::MAX; sizes.len()];
        for _ in &sizes {
            let entry = pair.far.done();
            assert_eq!(entry.flags, FI_TAGGED | FI_RECV);
            assert_eq!(entry.tag, 7);
            lens[entry.op_context as usize] = entry.len;
        }
        assert_eq!(lens, sizes, "{expected}");
        for (index, bytes) in sent.iter().enumerate() {
            assert!(got[index] == *bytes, "{expected}: message {index} of {} bytes differs", bytes.len());
        }
        for _ in &sizes {
            assert_eq!(pair.near.done().flags, FI_TAGGED | FI_SEND);
        }
    }
}

#[test]
fn the_older_receive_takes_a_message_that_two_fit() {
    let pair = Pair::new();
    let (mut wild, mut exact) = (vec![0; 8], vec![0; 8]);
    // The wildcard receive is first, so it takes the first message.
    pair.far.trecv(FI_ADDR_UNSPEC, 0, u64::MAX, slot(&mut wild), 1);
    pair.far.trecv(pair.to_near, 5, 0, slot(&mut exact), 2);
    pair.near.tsend(pair.to_far, 5, b"first", 0);
    assert_eq!(pair.far.done().op_context as usize, 1);
    pair.near.tsend(pair.to_far, 5, b"second", 0);
    assert_eq!(pair.far.done().op_context as usize, 2);
    // Now the receives are posted in the opposite order.
    pair.far.trecv(pair.to_near, 5, 0, slot(&mut exact), 3);
    pair.far.trecv(FI_ADDR_UNSPEC, 0, u64::MAX, slot(&mut wild), 4);
    pair.near.tsend(pair.to_far, 5, b"third", 0);
    let entry = pair.far.done();
    assert_eq!((entry.op_context as usize, &exact[..entry.len]), (3, &b"third"[..]));
    pair.near.tsend(pair.to_far, 1 << 63 | 1, b"fourth", 0);
    let entry = pair.far.done();
    assert_eq!((entry.op_context as usize, entry.tag), (4, 1 << 63 | 1));
    // One bit of the tag is ignored, and one is not.
    pair.far.trecv(pair.to_near, 1 << 63, 1, slot(&mut exact), 5);
    pair.near.tsend(pair.to_far, 1, b"other", 0);
    pair.near.tsend(pair.to_far, 1 << 63 | 1, b"this", 0);
    assert_eq!(pair.far.done().op_context as usize, 5);
    assert!(pair.far.is_silent());
}

#[test]
fn two_senders_are_told_apart() {
    let (far, near, third) = (Node::new(), Node::new(), Node::new());
    let (to_near, to_third) = (far.insert(&near.name()), far.insert(&third.name()));
    let (from_near, from_third) = (near.insert(&far.name()), third.insert(&far.name()));
    let mut buffers = vec![vec![0; 8]; 3];
    far.trecv(to_third, 1, 0, slot(&mut buffers[0]), 1);
    far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut buffers[1]), 2);
    far.trecv(to_near, 1, 0, slot(&mut buffers[2]), 3);
    near.tsend(from_near, 1, b"a", 0);
    let (entry, source) = far.next().unwrap();
    assert_eq!((entry.op_context as usize, source), (2, to_near));
    near.tsend(from_near, 1, b"b", 0);
    let (entry, source) = far.next().unwrap();
    assert_eq!((entry.op_context as usize, source), (3, to_near));
    third.tsend(from_third, 1, b"c", 0);
    let (entry, source) = far.next().unwrap();
    assert_eq!((entry.op_context as usize, source), (1, to_third));
}

#[test]
fn a_message_longer_than_its_receive_is_cut_and_its_sender_succeeds() {
    let pair = Pair::new();
    for len in [1_000, 16_384, 100_000, 3_000_000] {
        let sent = pattern(len, 1);
        let mut into = vec![0; 700];
        pair.far.trecv(pair.to_near, 9, 0, slot(&mut into), 1);
        pair.near.tsend(pair.to_far, 9, &sent, 2);
        let error = pair.far.failed();
        assert_eq!((error.err, error.len, error.olen, error.tag), (FI_ETRUNC, 700, len - 700, 9));
        assert_eq!((error.op_context as usize, error.flags), (1, FI_TAGGED | FI_RECV));
        assert!(into == sent[..700]);
        assert_eq!(pair.near.done().op_context as usize, 2);
        // The next message arrives complete.
        let mut whole = vec![0; len];
        pair.far.trecv(pair.to_near, 9, 0, slot(&mut whole), 3);
        pair.near.tsend(pair.to_far, 9, &sent, 4);
        assert_eq!(pair.far.done().len, len);
        assert!(whole == sent);
        pair.near.done();
    }
}

#[test]
fn what_is_cancelled_ends_once() {
    let pair = Pair::new();
    let mut into = vec![0; 64];
    pair.far.trecv(pair.to_near, 1, 0, slot(&mut into), 11);
    pair.far.cancel(99);
    assert!(pair.far.is_silent(), "nobody has that context");
    pair.far.cancel(11);
    pair.far.cancel(11);
    let error = pair.far.failed();
    assert_eq!((error.err, error.op_context as usize), (FI_ECANCELED, 11));
    assert!(pair.far.is_silent(), "once");
    pair.near.tsend(pair.to_far, 1, b"later", 0);
    pair.near.done();
    assert!(pair.far.is_silent());
    assert_eq!(into, [0; 64], "a cancelled buffer is not touched");
    // A matched receive cannot be cancelled.
    pair.far.trecv(pair.to_near, 1, 0, slot(&mut into), 12);
    pair.far.cancel(12);
    assert_eq!(pair.far.done().op_context as usize, 12);
    assert!(pair.far.is_silent());
}

#[test]
fn peek_claim_and_discard() {
    let pair = Pair::new();
    let none: &mut [u8] = &mut [];
    assert_eq!(pair.far.look(pair.to_near, 4, 0, none, 1, FI_PEEK), 0);
    let error = pair.far.failed();
    assert_eq!((error.err, error.op_context as usize), (FI_ENOMSG, 1));
    let sent = pattern(50_000, 3);
    pair.near.tsend(pair.to_far, 4, &sent, 0);
    pair.near.tsend(pair.to_far, 4, b"behind", 0);
    let peek = |context, flags| loop {
        assert_eq!(pair.far.look(pair.to_near, 4, 0, &mut [], context, FI_PEEK | flags), 0);
        match pair.far.next() {
            Ok((entry, _)) => return entry,
            Err(error) => assert_eq!(error.err, FI_ENOMSG),
        }
    };
    let seen = peek(2, 0);
    assert_eq!((seen.op_context as usize, seen.len, seen.tag), (2, 50_000, 4));
    let claimed = peek(3, FI_CLAIM);
    assert_eq!((claimed.op_context as usize, claimed.len), (3, 50_000));
    // Another receive does not match the claimed message.
    let mut behind = vec![0; 8];
    pair.far.trecv(pair.to_near, 4, 0, slot(&mut behind), 4);
    let entry = pair.far.done();
    assert_eq!((entry.op_context as usize, &behind[..entry.len]), (4, &b"behind"[..]));
    let mut into = vec![0; 50_000];
    assert_eq!(pair.far.look(pair.to_near, 4, 0, slot(&mut into), 3, FI_CLAIM), 0);
    assert_eq!(pair.far.done().op_context as usize, 3);
    assert!(into == sent);
    assert!(pair.far.look(pair.to_near, 4, 0, &mut [], 3, FI_CLAIM) < 0, "nothing is claimed any more");
    // The message is dropped unread, and its sender succeeds.
    pair.near.tsend(pair.to_far, 4, &sent, 7);
    let dropped = peek(5, FI_DISCARD);
    assert_eq!(dropped.len, 50_000);
    assert_eq!(pair.far.look(pair.to_near, 4, 0, &mut [], 6, FI_PEEK), 0);
    assert_eq!(pair.far.failed().err, FI_ENOMSG);
    for _ in 0..3 {
        pair.near.done();
    }
}

#[test]
fn unexpected_messages_are_received_from_the_last_to_the_first() {
    let pair = Pair::new();
    for len in [1_000, 100_000] {
        let sent: Vec<Vec<u8>> = (0..300).map(|seed| pattern(len, seed)).collect();
        for (tag, bytes) in sent.iter().enumerate() {
            pair.near.tsend(pair.to_far, tag as u64, bytes, tag);
        }
        for (tag, bytes) in sent.iter().enumerate().rev() {
            let mut into = vec![0; len];
            pair.far.trecv(pair.to_near, tag as u64, 0, slot(&mut into), tag);
            let entry = pair.far.done();
            assert_eq!((entry.op_context as usize, entry.len), (tag, len));
            assert!(into == *bytes, "message {tag} of {len} bytes");
        }
        for _ in &sent {
            pair.near.done();
        }
    }
}

#[test]
fn both_ends_send_thousands_before_either_receives() {
    let pair = Pair::new();
    let count = 5_000;
    let bytes = pattern(3_000, 5);
    // The sends alternate, so that one thread represents two applications that only send.
    for index in 0..count {
        pair.near.tsend(pair.to_far, 1, &bytes, index);
        pair.far.tsend(pair.to_near, 1, &bytes, index);
    }
    // A message that was only announced ends when it is received, so both endpoints are polled in turn.
    let mut ends = [(&pair.near, pair.to_far), (&pair.far, pair.to_near)].map(|(node, from)| {
        let mut into = vec![0; 3_000];
        node.trecv(from, 1, 0, slot(&mut into), usize::MAX);
        (node, from, into, 0, 0)
    });
    let start = Instant::now();
    while ends.iter().any(|(.., received, sent)| *received < count || *sent < count) {
        assert!(start.elapsed() < 2 * PATIENCE, "no deadlock");
        for (node, from, into, received, sent) in &mut ends {
            let Some(entry) = node.poll().map(|entry| entry.expect("no error").0) else { continue };
            if entry.flags & FI_RECV == 0 {
                *sent += 1;
                continue;
            }
            assert!(*into == bytes);
            *received += 1;
            if *received < count {
                into.fill(0);
                node.trecv(*from, 1, 0, slot(into), usize::MAX);
            }
        }
    }
}

#[test]
fn self_sends_of_all_sizes() {
    let node = Node::new();
    let to_self = node.insert(&node.name());
    for len in [0, 1_000, 1 << 20] {
        let sent = pattern(len, 8);
        let mut into = vec![0; len];
        node.tsend(to_self, 3, &sent, 1);
        node.trecv(to_self, 3, 0, slot(&mut into), 2);
        let (first, second) = (node.next().unwrap(), node.next().unwrap());
        let received = if first.0.flags & FI_RECV == 0 { second } else { first };
        assert_eq!((received.0.len, received.1), (len, to_self));
        assert!(into == sent);
    }
}

#[test]
fn injected_buffers_are_free_at_once() {
    let pair = Pair::new();
    let count = 2_000u64;
    let mut byte_buffer = [0u8; 512];
    for index in 0..count {
        byte_buffer.fill(index as u8);
        let start = byte_buffer.as_ptr();
        // SAFETY: the provider copies the bytes in the call.
        let call = || unsafe {
            ((*(*pair.near.ep).tagged).inject)(pair.near.ep.cast(), start.cast(), 512, pair.to_far, index)
        };
        pair.near.retry(call).unwrap();
    }
    byte_buffer.fill(0xee);
    for index in 0..count {
        let mut into = vec![0; 512];
        pair.far.trecv(pair.to_near, index, 0, slot(&mut into), 1);
        pair.far.done();
        assert!(into.iter().all(|byte| *byte == index as u8), "message {index}");
    }
    assert!(pair.near.is_silent(), "no entry says that an inject has succeeded");
    let too_long = [0u8; 1_025];
    // SAFETY: as above.
    let answer = unsafe {
        ((*(*pair.near.ep).tagged).inject)(
            pair.near.ep.cast(),
            too_long.as_ptr().cast(),
            1_025,
            pair.to_far,
            0,
        )
    };
    assert_eq!(answer, -(FI_EMSGSIZE as isize));
}

#[test]
fn a_multi_receive_takes_messages_until_it_is_full() {
    let pair = Pair::new();
    let mut into = vec![0; 1_000];
    let iov = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let msg = Msg {
        msg_iov: &iov,
        desc: std::ptr::null_mut(),
        iov_count: 1,
        addr: FI_ADDR_UNSPEC,
        context: 5 as *mut _,
        data: 0,
    };
    // SAFETY: the bytes stay valid until the last completion.
    assert_eq!(unsafe { ((*(*pair.far.ep).msg).recvmsg)(pair.far.ep.cast(), &msg, FI_MULTI_RECV) }, 0);
    let sent = pattern(300, 4);
    let mut offset = 0;
    for index in 0..4 {
        pair.near.send(pair.to_far, &sent[..240], index);
        let entry = pair.far.done();
        assert_eq!(entry.op_context as usize, 5);
        assert_eq!(entry.buf as usize, into.as_ptr() as usize + offset);
        assert!(into[offset..offset + 240] == sent[..240]);
        offset += 240;
        // After the fourth message, fewer than 64 bytes are left.
        let released = entry.flags & FI_MULTI_RECV != 0;
        assert_eq!(released, index == 3, "after {} messages", index + 1);
        pair.near.done();
    }
    // SAFETY: as above.
    assert_eq!(unsafe { ((*(*pair.far.ep).msg).recvmsg)(pair.far.ep.cast(), &msg, FI_MULTI_RECV) }, 0);
    pair.far.cancel(5);
    let error = pair.far.failed();
    assert_eq!((error.err, error.flags & FI_MULTI_RECV), (FI_ECANCELED, FI_MULTI_RECV));
}

#[test]
fn again_in_other_ways() {
    client::again_in_other_ways();
}
