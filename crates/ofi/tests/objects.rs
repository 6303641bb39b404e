//! Objects: order of closing, waiting for queues, offers, and absent peers.
#![allow(unsafe_code, reason = "calls C tables")]

mod client;

use std::io::Write;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use client::*;

#[test]
fn what_is_in_use_cannot_be_closed() {
    let node = Node::new();
    let mut bytes = vec![0; 8];
    let mr = node.register(slot(&mut bytes), 1, FI_REMOTE_READ).unwrap();
    let busy = -FI_EBUSY;
    assert_eq!(
        (close(node.fabric), close(node.domain), close(node.av), close(node.cq)),
        (busy, busy, busy, busy)
    );
    assert_eq!(close(mr), 0);
    assert_eq!((close(node.ep), close(node.fabric)), (0, busy));
    assert_eq!((close(node.cq), close(node.domain)), (0, busy));
    assert_eq!((close(node.av), close(node.domain), close(node.fabric)), (0, 0, 0));
    free_info(node.info);
    std::mem::forget(node);
}

#[test]
fn a_name_with_too_little_room_tells_its_length() {
    let node = Node::new();
    let mut len = 0;
    // SAFETY: no room is given.
    let answer = unsafe { ((*(*node.ep).cm).getname)(node.ep.cast(), null_mut(), &mut len) };
    assert_eq!((answer, len), (-FI_ETOOSMALL, 16));
    let name = node.name();
    assert_eq!(&name[4..8], [127, 0, 0, 1]);
    assert_ne!(&name[2..4], [0, 0], "bound from the start");
}

#[test]
fn a_descriptor_wakes_for_every_message() {
    let pair = Pair::new();
    let mut fd = -1;
    // SAFETY: the argument of FI_GETWAIT.
    unsafe {
        let fid: *mut Fid = pair.far.cq.cast();
        ok(((*(*fid).ops).control)(fid, FI_GETWAIT, (&raw mut fd).cast()));
    }
    let (near, to_far) = (&pair.near, pair.to_far);
    let rounds = 2_000;
    let sender = Anywhere(near);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let sender = sender;
            for index in 0..rounds {
                sender.0.tsend(to_far, 1, b"wake", index);
                sender.0.done();
            }
        });
        let mut into = vec![0; 4];
        for index in 0..rounds {
            pair.far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), index);
            let start = Instant::now();
            loop {
                let mut fid: *mut Fid = pair.far.cq.cast();
                // SAFETY: one fid.
                let may_wait = unsafe { ((*(*pair.far.fabric).ops).trywait)(pair.far.fabric, &mut fid, 1) };
                if may_wait == 0 {
                    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                    // SAFETY: one descriptor.
                    let ready = unsafe { libc::poll(&mut polled, 1, 30_000) };
                    assert_eq!(ready, 1, "lost a wake in round {index}");
                }
                if let Some(entry) = pair.far.poll() {
                    assert_eq!(entry.unwrap().0.op_context as usize, index);
                    break;
                }
                assert!(start.elapsed() < PATIENCE);
            }
        }
    });
}

#[test]
fn a_sleep_ends_in_time() {
    let node = Node::new();
    let mut entry = [0u8; 48];
    let start = Instant::now();
    // SAFETY: room for one entry.
    let answer =
        unsafe { ((*(*node.cq).ops).sread)(node.cq, entry.as_mut_ptr().cast(), 1, std::ptr::null(), 100) };
    assert_eq!(answer, -(FI_EAGAIN as isize));
    assert!(start.elapsed() >= Duration::from_millis(100) && start.elapsed() < Duration::from_secs(10));
}

/// Calls `fi_cq_sread` for one entry.
fn sleep(node: &Node, timeout_ms: i32) -> isize {
    let mut entry = [0u8; 48];
    // SAFETY: room for one entry.
    unsafe { ((*(*node.cq).ops).sread)(node.cq, entry.as_mut_ptr().cast(), 1, std::ptr::null(), timeout_ms) }
}

#[test]
fn a_sleep_ends_for_messages_for_a_signal_and_for_what_another_thread_does() {
    let pair = Pair::new();
    let (near, to_far, rounds) = (Anywhere(&pair.near), pair.to_far, 1_000);
    let mut into = vec![0; 4];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let near = near;
            for index in 0..rounds {
                near.0.tsend(to_far, 1, b"wake", index);
                near.0.done();
            }
        });
        for index in 0..rounds {
            pair.far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), index);
            assert_eq!(sleep(&pair.far, 30_000), 1, "round {index}");
        }
    });
    let own = pair.far.insert(&pair.far.name());
    for round in 0..20 {
        let sleeper = Anywhere(&pair.far);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || {
                let sleeper = sleeper;
                sleep(sleeper.0, 30_000)
            });
            // In some rounds the thread sleeps already, in others not yet.
            std::thread::sleep(Duration::from_micros(300 * round));
            if round % 2 == 0 {
                // One signal is enough in both cases.
                // SAFETY: an open queue.
                unsafe { ((*(*pair.far.cq).ops).signal)(pair.far.cq) };
                assert_eq!(sleeper.join().unwrap(), -(FI_EAGAIN as isize));
            } else {
                // Two entries: one of the receive and one of the send.
                pair.far.trecv(FI_ADDR_UNSPEC, 2, 0, slot(&mut into), 1);
                pair.far.tsend(own, 2, b"self", 2);
                assert_eq!(sleeper.join().unwrap(), 1);
                pair.far.done();
            }
        });
    }
}

#[test]
fn a_queue_of_one_keeps_thousands_of_entries() {
    let pair = Pair::new();
    let count = 3_000;
    for index in 0..count {
        pair.near.tsend(pair.to_far, index as u64, b"entry", index);
    }
    let mut buffers = vec![vec![0; 5]; count];
    for (index, into) in buffers.iter_mut().enumerate() {
        pair.far.trecv(pair.to_near, index as u64, 0, slot(into), index);
    }
    let mut seen = vec![0; count];
    for _ in 0..count {
        seen[pair.far.done().op_context as usize] += 1;
    }
    assert!(seen.iter().all(|times| *times == 1));
}

#[test]
fn nobody_listens_and_then_a_good_peer_works() {
    // The default timeout is a minute. Settings come from the environment, so another process runs the test
    // with a shorter one.
    const PATIENCE: &str = "PATHWEAVE_PEER_TIMEOUT";
    if std::env::var_os(PATIENCE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().expect("it runs"));
        again.args(["--exact", "nobody_listens_and_then_a_good_peer_works", "--nocapture"]);
        assert!(again.env(PATIENCE, "2").status().expect("it ran before").success());
        return;
    }
    let (near, far) = (Node::new(), Node::new());
    let gone = Node::new();
    let name = gone.name();
    drop(gone);
    let (to_gone, to_far) = (near.insert(&name), near.insert(&far.name()));
    near.tsend(to_gone, 1, b"anybody?", 5);
    let error = near.failed();
    assert_eq!(error.op_context as usize, 5);
    assert!([FI_ECONNREFUSED, FI_ETIMEDOUT].contains(&error.err), "{}", error.err);
    let mut into = vec![0; 8];
    far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 6);
    near.tsend(to_far, 1, b"somebody", 7);
    assert_eq!((near.done().op_context as usize, far.done().op_context as usize), (7, 6));
}

#[test]
fn a_peer_that_closes_fails_what_waits_for_it_and_others_go_on() {
    let (near, far, third) = (Node::new(), Node::new(), Node::new());
    let (to_far, to_third) = (near.insert(&far.name()), near.insert(&third.name()));
    let mut into = vec![0; 4];
    far.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 1);
    near.tsend(to_far, 1, b"here", 2);
    assert_eq!((near.done().op_context as usize, far.done().op_context as usize), (2, 1));
    // The message is announced, and never received.
    let long = pattern(1 << 20, 1);
    near.tsend(to_far, 2, &long, 3);
    assert!(near.is_silent());
    drop(far);
    let error = near.failed();
    assert_eq!(error.op_context as usize, 3);
    third.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 1);
    near.tsend(to_third, 1, b"here", 4);
    assert_eq!((near.done().op_context as usize, third.done().op_context as usize), (4, 1));
}

#[test]
fn pairs_that_dial_each_other_at_once_keep_one_connection() {
    for round in 0..40 {
        let pair = Pair::new();
        let (mut left, mut right) = (vec![0; 4], vec![0; 4]);
        pair.near.trecv(pair.to_far, 1, 0, slot(&mut left), 1);
        pair.far.trecv(pair.to_near, 1, 0, slot(&mut right), 1);
        pair.near.tsend(pair.to_far, 1, b"ping", 2);
        pair.far.tsend(pair.to_near, 1, b"pong", 2);
        for node in [&pair.near, &pair.far] {
            let flags = [node.done().flags, node.done().flags];
            assert!(flags.contains(&(FI_TAGGED | FI_SEND)) && flags.contains(&(FI_TAGGED | FI_RECV)));
            assert!(round % 10 != 0 || node.is_silent(), "nothing twice");
        }
        assert_eq!((&left[..], &right[..]), (&b"pong"[..], &b"ping"[..]));
    }
}

#[test]
fn offers_follow_the_hints() {
    environment();
    // SAFETY: zero is valid for every field of these.
    let (mut hints, mut ep): (Info, EpAttr) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    hints.ep_attr = &mut ep;
    for type_ in [FI_EP_MSG, FI_EP_DGRAM] {
        // SAFETY: the structure above.
        unsafe { (*hints.ep_attr).type_ = type_ };
        assert_eq!(getinfo_with(&hints), Err(FI_ENODATA));
    }
    // SAFETY: as above.
    unsafe { (*hints.ep_attr).type_ = FI_EP_RDM };
    hints.caps = FI_TAGGED | FI_HMEM;
    assert_eq!(getinfo_with(&hints), Err(FI_ENODATA));
    hints.caps = FI_TAGGED;
    let info = getinfo_with(&hints).unwrap();
    // SAFETY: a complete info.
    unsafe {
        assert_eq!((*info).caps & (FI_MSG | FI_RMA | FI_ATOMIC), 0, "no other than what was asked for");
        assert_eq!((*info).caps & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
        assert!((*(*info).fabric_attr).prov_name.is_null());
        assert!(!(*(*info).domain_attr).name.is_null());
        assert_eq!(((*info).mode, (*(*info).domain_attr).mr_mode), (0, 0));
        assert_eq!((*(*info).domain_attr).av_type, FI_AV_UNSPEC, "either kind may be opened");
    }
    // The whole answer is valid as hints, and gives the same answer.
    // SAFETY: a complete info.
    let again = getinfo_with(unsafe { &*info }).unwrap();
    // SAFETY: as above.
    unsafe { assert_eq!(((*again).caps, (*(*again).tx_attr).caps), ((*info).caps, (*(*info).tx_attr).caps)) };
    free_info(again);
    free_info(info);
}

#[test]
fn vectors_are_maps_and_tables_alike_and_an_open_choice_is_told() {
    let (node, other) = (Node::new(), Node::new());
    let name = other.name();
    for (asked, told) in [(FI_AV_UNSPEC, FI_AV_TABLE), (FI_AV_MAP, FI_AV_MAP), (FI_AV_TABLE, FI_AV_TABLE)] {
        let mut numbers = [FI_ADDR_NOTAVAIL; 2];
        // SAFETY: zero is valid for every field; the objects are open; an address in libfabric's form, twice.
        let mut attr: AvAttr = unsafe { std::mem::zeroed() };
        attr.type_ = asked;
        let mut av = null_mut();
        unsafe {
            let ops = &*(*node.domain).ops;
            assert_eq!((ops.av_open)(node.domain, &mut attr, &mut av, null_mut()), 0);
            assert_eq!(attr.type_, told, "asked for {asked}");
            let names = [name, name];
            let to = numbers.as_mut_ptr();
            assert_eq!(((*(*av).ops).insert)(av, names.as_ptr().cast(), 2, to, 0, null_mut()), 2);
        }
        assert_eq!(numbers, [0, 1], "indices");
        assert_eq!(close(av), 0);
    }
    // SAFETY: as above.
    let mut attr: AvAttr = unsafe { std::mem::zeroed() };
    attr.type_ = FI_AV_TABLE + 1;
    let mut av = null_mut();
    // SAFETY: as above.
    let refused = unsafe { ((*(*node.domain).ops).av_open)(node.domain, &mut attr, &mut av, null_mut()) };
    assert_eq!((refused, av.is_null()), (-FI_EINVAL, true));
}

/// Body of the other process of the test below.
#[test]
#[ignore = "started by another test of this file"]
fn a_process_whose_buffer_is_at_null() {
    let node = Node::new();
    let to = node.insert(&node.name());
    // SAFETY: no byte of the buffer is accessed.
    let answer = unsafe {
        ((*(*node.ep).tagged).send)(node.ep.cast(), std::ptr::null(), 4096, null_mut(), to, 1, null_mut())
    };
    assert_eq!(answer, -FI_EINVAL as isize);
}

/// Open MPI 4.1 ignores the error number, and waits forever (MPI_BOTTOM).
#[test]
fn an_argument_that_is_refused_is_named_in_the_log() {
    let said = |level: &str| {
        let mut other = std::process::Command::new(std::env::current_exe().unwrap());
        let arguments = ["--exact", "a_process_whose_buffer_is_at_null", "--ignored", "--nocapture"];
        let output = other.args(arguments).env("FI_LOG_LEVEL", level).output().unwrap();
        assert!(output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        errors.lines().filter(|line| line.starts_with("pathweave: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let line = "pathweave: a call is refused with error 22: a buffer of 4096 bytes at 0x0";
    assert_eq!(said("warn"), [line]);
    assert_eq!(said("none"), [""; 0]);
}

/// Returns the CPU time of this thread.
fn core_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Body of the other process of the test below: polls without success, and prints its CPU time within two
/// seconds.
#[test]
#[ignore = "started by another test of this file"]
fn a_process_that_polls() {
    let pair = Pair::new();
    let poll_for = |time: Duration| {
        let (start, had) = (Instant::now(), core_time());
        while start.elapsed() < time {
            assert!(pair.near.poll().is_none());
        }
        core_time() - had
    };
    poll_for(Duration::from_millis(300));
    let had = poll_for(Duration::from_secs(2));
    writeln!(std::io::stdout(), "had {} ms", had.as_millis()).unwrap();
    let mut into = vec![0; 1];
    pair.near.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 1);
    pair.far.tsend(pair.to_near, 1, b"x", 2);
    assert_eq!((pair.near.done().op_context as usize, pair.far.done().op_context as usize), (1, 2));
}

/// Ranks that poll must not keep the cores from the ranks they wait for. Launchers start each rank with
/// `setsid`, so each has its own scheduling group. In such a group, a process that yields in a loop gets as
/// much of a core as one that computes, because its yield applies only to its own group.
#[test]
fn who_polls_in_vain_leaves_a_crowded_core() {
    use std::os::unix::process::CommandExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    let cores = std::thread::available_parallelism().unwrap().get();
    let stop = AtomicBool::new(false);
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "a_process_that_polls", "--ignored", "--nocapture"]);
    other.env("PATHWEAVE_SHARED_MEMORY", "off");
    // SAFETY: the closure makes one system call.
    unsafe {
        other.pre_exec(|| {
            libc::setsid();
            Ok(())
        })
    };
    let output = std::thread::scope(|scope| {
        for _ in 0..2 * cores {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let output = other.output();
        stop.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let had =
        text.lines().find_map(|line| line.split_once("had ")?.1.split_once(" ms")?.0.parse::<u64>().ok());
    // One that only yields has half of two seconds or more.
    assert!(had.is_some_and(|had| had < 800), "{text}");
}
