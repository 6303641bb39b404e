//! Effects of other processes: forks, kills, restarts.
#![allow(unsafe_code, reason = "forks, and calls C tables")]

mod client;

use client::*;

/// Waits for a child process. Returns its exit status.
fn wait_for(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "status {status:#x}");
    libc::WEXITSTATUS(status)
}

#[test]
fn a_child_of_a_fork_may_only_close_and_the_parent_goes_on() {
    let pair = Pair::new();
    let mut into = vec![0; 4];
    pair.far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 1);
    pair.near.tsend(pair.to_far, 1, b"one.", 2);
    assert_eq!((pair.near.done().op_context as usize, pair.far.done().op_context as usize), (2, 1));
    // SAFETY: the child calls only functions that this library allows after a fork, and exits without
    // unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            let sent = ((*(*pair.near.ep).tagged).send)(
                pair.near.ep.cast(),
                b"two.".as_ptr().cast(),
                4,
                std::ptr::null_mut(),
                pair.to_far,
                1,
                std::ptr::null_mut(),
            );
            let read = ((*(*pair.near.cq).ops).read)(pair.near.cq, std::ptr::null_mut(), 0);
            let all_fail = sent == -(FI_EIO as isize) && read == -(FI_EIO as isize);
            let all_close = close(pair.near.ep) == 0 && close(pair.near.cq) == 0 && close(pair.near.av) == 0;
            libc::_exit(if all_fail && all_close { 7 } else { 1 });
        }
    }
    assert_eq!(wait_for(child), 7);
    pair.far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 3);
    pair.near.tsend(pair.to_far, 1, b"3333", 4);
    assert_eq!((pair.near.done().op_context as usize, pair.far.done().op_context as usize), (4, 3));
}

/// Body of the other process of a test.
#[test]
#[ignore = "started by other tests of this file"]
fn a_process_that_receives() {
    receive_for_ever();
}

#[test]
fn a_peer_that_is_killed_fails_what_waits_for_it_and_no_other() {
    environment();
    // SAFETY: other tests of this program read it only when they open a node, and work with any value.
    unsafe { std::env::set_var("PATHWEAVE_PEER_TIMEOUT", "3") };
    let (mut child, name) = other_process(&[]);
    let (near, third) = (Node::new(), Node::new());
    let (to_killed, to_third) = (near.insert(&name), near.insert(&third.name()));
    near.tsend(to_killed, 1, b"hello", 1);
    assert_eq!(near.done().op_context as usize, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let long = pattern(1 << 20, 1);
    // Both messages wait for their receiver. A small message would not, because the peer's buffers have room
    // until its end is known.
    near.tsend(to_killed, 1, &long, 2);
    near.tsend(to_killed, 1, &long, 3);
    let failed = || {
        let error = near.failed();
        assert!([FI_ECONNRESET, FI_ETIMEDOUT].contains(&error.err), "{}", error.err);
        error.op_context as usize
    };
    let mut both = [failed(), failed()];
    both.sort_unstable();
    assert_eq!(both, [2, 3]);
    near.tsend(to_killed, 1, b"small", 6);
    assert_eq!(failed(), 6);
    let mut into = vec![0; 4];
    third.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 4);
    near.tsend(to_third, 1, b"good", 5);
    assert_eq!((near.done().op_context as usize, third.done().op_context as usize), (5, 4));
    assert!(near.is_silent(), "one entry each");
}

#[test]
fn a_peer_that_starts_again_at_its_address_is_reached_again() {
    // An address that nothing else uses, so the port is free for the second start.
    let place = [("PATHWEAVE_ADDRESS", "127.0.9.9"), ("PATHWEAVE_PORTS", "18500-18500")];
    let near = Node::new();
    let mut numbers = Vec::new();
    for start in 0..2 {
        let (mut child, name) = other_process(&place);
        numbers.push(name);
        assert_eq!(numbers[0], name, "the same address");
        let to = near.insert(&name);
        // Operations of the previous start may fail, once each. Then the new start is reached.
        let sent = (0..20).any(|attempt| {
            near.tsend(to, 1, b"hello", attempt);
            let outcome = near.next();
            assert!(start == 1 || outcome.is_ok());
            outcome.is_ok()
        });
        assert!(sent, "start {start}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
