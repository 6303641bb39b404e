//! Oracles of the specification (section 7), including those that need threads or processes of an
//! application. Oracle 1 uses 16 paths.
//!
//! | Oracle | Tests |
//! |---|---|
//! | 1 order, reordering | `tagged/tests/transport`: `ten_thousand_messages_of_one_tag_arrive_in_the_order_sent` |
//! | 2 mixed sizes | `tagged/tests/messages`: `messages_of_all_sizes_are_received_in_the_order_sent` |
//! | 2 mixed sizes | `tagged/tests/transport`: `messages_arrive_in_a_storm`; `messages` here |
//! | 3, 4 matching | `tagged/tests/messages`, `model` |
//! | 5 receive posted as its message arrives | here |
//! | 6 truncation; 7 cancel; 8 peek, claim, discard | `tagged/tests/messages`; `messages` here |
//! | 9 unexpected, last to first | `tagged/tests/messages`: bound of stored bytes; `messages` here, 1 KB and 100 KB |
//! | 10 many senders, a sleeping rank | `tagged/tests/messages`: `a_sleeping_application_is_not_overrun` |
//! | 10 many senders, a sleeping rank | 20 senders and 300 messages there; 100 senders here |
//! | 11 both send before either receives | `tagged/tests/messages`; `messages` here, 5,000 each |
//! | 12 first sends in both directions at once | `tagged/tests/messages`, every order of events; `objects` here |
//! | 13 empty messages, and messages to oneself | `tagged/tests/messages`, `remote_memory`; `messages` here |
//! | 14 inject | `tagged/tests/messages`; `messages` here |
//! | 15 delivery completion | `tagged/tests/messages`; here, at the target's memory |
//! | 16 a queue of one | `tagged/tests/messages`; `objects` here |
//! | 17 descriptors, sleeps, signals | `objects` here |
//! | 18 a killed peer | `tagged/tests/transport`, `messages`; `others`, `neighbours` here |
//! | 19 a restarted peer | `others` here |
//! | 20 wrong key, absent peer | `keys`, `others` here |
//! | 21 rejected access, regions closed during READs | `tagged/tests/remote_memory`, `transport`; `memory` here |
//! | 22 writes with data, counters | `tagged/tests/remote_memory`; `memory` here |
//! | 23 atomics | `tagged/tests/remote_memory`, `transport`; `memory` here |
//! | 24 multi-receives | `tagged/tests/messages`; `transport`: failed paths; `messages` here |
//! | 25 closing, forks, memory per peer | `objects`, `others`, `library` here; memory of 1,000 peers here |
#![allow(unsafe_code, reason = "calls C tables")]

mod client;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use client::*;

/// Oracle 5: one thread posts a receive while its message arrives, sent by another thread. The message is
/// never lost, and never received twice.
#[test]
fn a_receive_that_meets_its_message_takes_it_once() {
    const COUNT: usize = 100_000;
    const POSTED: usize = 4;
    let pair = Pair::new();
    let (near, to_far) = (Anywhere(&pair.near), pair.to_far);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Moves the whole wrapper, which may change threads, instead of its content.
            let whole = near;
            let near = whole.0;
            let numbers: Vec<[u8; 8]> = (0..COUNT).map(usize::to_le_bytes).collect();
            let mut sent = 0;
            for (number, bytes) in numbers.iter().enumerate() {
                near.tsend(to_far, number as u64, bytes, number);
                while near.poll().is_some_and(|entry| entry.is_ok()) {
                    sent += 1;
                }
            }
            for _ in sent..COUNT {
                near.done();
            }
        });
        let mut slots = vec![vec![0u8; 8]; POSTED];
        let mut post = |number: usize| {
            let into = slot(&mut slots[number % POSTED]);
            pair.far.trecv(FI_ADDR_UNSPEC, number as u64, 0, into, number);
            into
        };
        let mut posted: Vec<&[u8]> = (0..POSTED).map(|number| &*post(number)).collect();
        let mut seen = vec![false; COUNT];
        for _ in 0..COUNT {
            let entry = pair.far.done();
            let number = entry.op_context as usize;
            assert_eq!((entry.tag as usize, entry.len), (number, 8));
            assert_eq!(posted[number % POSTED], number.to_le_bytes(), "message {number}");
            assert!(!std::mem::replace(&mut seen[number], true), "{number} twice");
            if number + POSTED < COUNT {
                posted[number % POSTED] = post(number + POSTED);
            }
        }
    });
    assert!(pair.far.is_silent());
}

/// Oracle 15: with FI_DELIVERY_COMPLETE, the bytes are in the target's memory when the sender has its entry,
/// even if no thread polls the target's queue.
#[test]
fn delivery_is_complete_when_the_bytes_are_there() {
    let pair = Pair::new();
    for (round, len) in [8, 1_024, 16_384, 16_385, 3_000_000].into_iter().cycle().take(200).enumerate() {
        let bytes = pattern(len, round as u64);
        let mut into = vec![0; len];
        pair.far.trecv(FI_ADDR_UNSPEC, 3, 0, slot(&mut into), round);
        let iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: len };
        let message = MsgTagged {
            msg_iov: &iov,
            desc: std::ptr::null_mut(),
            iov_count: 1,
            addr: pair.to_far,
            tag: 3,
            ignore: 0,
            context: std::ptr::null_mut(),
            data: 0,
        };
        let ops = (pair.near.ep, FI_DELIVERY_COMPLETE | FI_COMPLETION);
        // SAFETY: the bytes stay valid until the completion.
        let call = || unsafe { ((*(*ops.0).tagged).sendmsg)(ops.0.cast(), &message, ops.1) };
        pair.near.retry(call).unwrap();
        pair.near.done();
        // The provider's thread wrote the bytes, so the compiler must not assume their old values.
        assert!(std::hint::black_box(&into) == &bytes, "round {round}, {len} bytes");
        assert_eq!(pair.far.done().op_context as usize, round);
    }
}

/// Number of endpoints of the other processes below.
const PEERS: usize = 1_000;
const A_PROCESS: usize = 125;

/// Returns the resident memory of this process, bytes.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("it is Linux");
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4_096
}

/// Raises the limit of open files to the largest allowed.
fn open_many_files() {
    // SAFETY: one structure, in and out.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// Body of another process: endpoints that send what the test requests, and stay until their input ends.
#[test]
#[ignore = "started by another test of this file"]
fn a_crowd_that_sends() {
    environment();
    open_many_files();
    let text = std::env::var("PATHWEAVE_TEST_PEER").unwrap();
    let peer = std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap());
    let nodes: Vec<Node> = (0..A_PROCESS).map(|_| Node::new()).collect();
    let bytes = pattern(8, 1);
    for node in &nodes {
        let to = node.insert(&peer);
        node.tsend(to, 1, &bytes, 1);
        node.done();
    }
    writeln!(std::io::stdout(), "met").unwrap();
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    // Open objects are freed with the process.
    std::process::exit(0);
}

/// Starts a process of [`a_crowd_that_sends`].
fn crowd(name: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "a_crowd_that_sends", "--nocapture"]);
    command.env("PATHWEAVE_TEST_PEER", name).env("PATHWEAVE_SHARED_MEMORY", "off");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Oracles 10 and 25: 1,000 peers send to a sleeping application, which then receives from all. The memory
/// per peer is bounded: 8 KiB of receives, and paths, keys and queues.
#[test]
fn a_thousand_peers_take_little_memory() {
    const MOST_BYTES_A_PEER: usize = 32 << 10;
    environment();
    open_many_files();
    // SAFETY: other tests of this program read it only when they open a node, and work with any value.
    unsafe { std::env::set_var("PATHWEAVE_SHARED_MEMORY", "off") };
    let node = Node::new();
    let name: String = node.name().iter().map(|byte| format!("{byte:02x}")).collect();
    let before = resident_bytes();
    let begun = Instant::now();
    let crowds: Vec<Child> = (0..PEERS / A_PROCESS)
        .map(|_| {
            let mut child = crowd(&name);
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.contains("met")), "all have sent");
            child
        })
        .collect();
    let peers = resident_bytes().saturating_sub(before) / PEERS;
    let seconds = begun.elapsed().as_secs_f64();
    writeln!(std::io::stdout(), "{peers} bytes a peer, {PEERS} peers within {seconds:.1} s").unwrap();
    assert!(peers <= MOST_BYTES_A_PEER, "{peers} bytes a peer");
    let mut into = vec![0; 8];
    for _ in 0..PEERS {
        node.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 1);
        assert_eq!(node.done().len, 8);
        assert!(into == pattern(8, 1));
        into.fill(0);
    }
    for mut child in crowds {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
