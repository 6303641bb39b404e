//! Closing memory and endpoints while a peer is held up: stopped, or about to copy.
#![allow(unsafe_code, reason = "calls C tables, stands in for system calls, and stops processes")]

mod client;

use std::io::{BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use client::*;

const ALL: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;
const KEY: u64 = 7;
const LONG: usize = 1 << 20;
const HUGE: usize = 64 << 20;

/// Serialises the tests, because they hold up calls of the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gate that holds a thread right before the kernel copies, as if it had lost its core there.
struct Gate(AtomicU32);

const OPEN: u32 = 0;
const SET: u32 = 1;
const HOLDS: u32 = 2;

impl Gate {
    /// Lets copies of short memory pass. They are tests of a peer's permissions.
    fn pass(&self, bytes: usize) {
        let set = bytes >= 65_536
            && self.0.compare_exchange(SET, HOLDS, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        while set && self.0.load(Ordering::SeqCst) == HOLDS {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn set(&self) {
        self.0.store(SET, Ordering::SeqCst);
    }

    fn holds(&self) -> bool {
        self.0.load(Ordering::SeqCst) == HOLDS
    }

    fn open(&self) {
        self.0.store(OPEN, Ordering::SeqCst);
    }
}

static READV: Gate = Gate(AtomicU32::new(OPEN));
static WRITEV: Gate = Gate(AtomicU32::new(OPEN));

/// # Safety
///
/// The arguments are those of the system call.
unsafe fn call(
    gate: &Gate,
    number: libc::c_long,
    pid: i32,
    here: (*const libc::iovec, u64),
    there: (*const libc::iovec, u64),
    flags: u64,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        gate.pass((*there.0).iov_len);
        libc::syscall(number, pid, here.0, here.1, there.0, there.1, flags) as isize
    }
}

/// Replaces the function of the C library.
///
/// # Safety
///
/// The arguments are those of the system call.
#[unsafe(no_mangle)]
unsafe extern "C" fn process_vm_readv(
    pid: i32,
    here: *const libc::iovec,
    parts: u64,
    there: *const libc::iovec,
    others: u64,
    flags: u64,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe { call(&READV, libc::SYS_process_vm_readv, pid, (here, parts), (there, others), flags) }
}

/// Replaces the function of the C library. The provider does not call it now; a provider that writes into
/// memory of other processes would.
///
/// # Safety
///
/// The arguments are those of the system call.
#[unsafe(no_mangle)]
unsafe extern "C" fn process_vm_writev(
    pid: i32,
    here: *const libc::iovec,
    parts: u64,
    there: *const libc::iovec,
    others: u64,
    flags: u64,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe { call(&WRITEV, libc::SYS_process_vm_writev, pid, (here, parts), (there, others), flags) }
}

/// Makes a connected pair, and memory of the far endpoint that the near one has read from.
fn pair_with_memory() -> (Pair, Vec<u8>, *mut FidMr) {
    environment();
    let pair = Pair::new();
    let mut memory = pattern(LONG, 1);
    let mr = pair.far.register(slot(&mut memory), KEY, ALL).unwrap();
    let mut first = vec![0; 100];
    pair.near.read(pair.to_far, KEY, 0, slot(&mut first), 1);
    assert_eq!(pair.near.done().op_context as usize, 1);
    assert!(first == memory[..100]);
    (pair, memory, mr)
}

/// Closes memory, opens the gate, and checks that the memory is not written afterwards.
fn close_and_look(mr: *mut FidMr, memory: &mut [u8], gate: &Gate) {
    assert_eq!(close(mr), 0);
    memory.fill(0xaa);
    gate.open();
    thread::sleep(Duration::from_millis(200));
    let touched = memory.iter().filter(|byte| **byte != 0xaa).count();
    assert_eq!(touched, 0, "bytes were written after fi_close");
}

fn wait_for(gate: &Gate, most: Duration) {
    let start = Instant::now();
    while !gate.holds() && start.elapsed() < most {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_writer_that_is_held_up_writes_nothing_after_the_close() {
    let _alone = alone();
    let (pair, mut memory, mr) = pair_with_memory();
    let bytes = &pattern(LONG, 2)[..];
    WRITEV.set();
    let (near, to) = (Anywhere(&pair.near), pair.to_far);
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let Anywhere(near) = { near };
            near.write(to, KEY, 0, bytes, 2);
            near.next().map_err(|error| error.err).map(|_| ())
        });
        wait_for(&WRITEV, Duration::from_millis(500));
        close_and_look(mr, &mut memory, &WRITEV);
        let written = writer.join().unwrap();
        assert!(matches!(written, Ok(()) | Err(FI_EACCES)), "{written:?}");
    });
}

/// The owner of the memory copies to it. Closing waits for that copy, but not for the peer.
#[test]
fn an_owner_that_is_held_up_as_it_takes_a_write_closes_after_it() {
    let _alone = alone();
    let (pair, mut memory, mr) = pair_with_memory();
    let bytes = pattern(LONG, 2);
    READV.set();
    pair.near.write(pair.to_far, KEY, 0, &bytes, 2);
    wait_for(&READV, PATIENCE);
    let opener = thread::spawn(|| {
        thread::sleep(Duration::from_millis(300));
        READV.open();
    });
    close_and_look(mr, &mut memory, &READV);
    opener.join().unwrap();
    let written = pair.near.next().map_err(|error| error.err).map(|_| ());
    assert!(matches!(written, Ok(()) | Err(FI_EACCES)), "{written:?}");
}

#[test]
fn a_reader_that_is_held_up_does_not_take_other_bytes_for_those_of_the_region() {
    let _alone = alone();
    let (pair, mut memory, mr) = pair_with_memory();
    let mut into = vec![0; LONG];
    let into = slot(&mut into);
    READV.set();
    let (near, to) = (Anywhere(&pair.near), pair.to_far);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let Anywhere(near) = { near };
            near.read(to, KEY, 0, into, 2);
            near.next().map_err(|error| error.err).map(|_| ())
        });
        wait_for(&READV, PATIENCE);
        let start = Instant::now();
        close_and_look(mr, &mut memory, &READV);
        assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
        assert_eq!(reader.join().unwrap(), Err(FI_EACCES));
    });
    // The endpoints are still connected: only that one operation fails.
    pair.far.tsend(pair.to_near, 1, b"after", 3);
    let mut message = vec![0; 5];
    pair.near.trecv(pair.to_far, 1, 0, slot(&mut message), 4);
    assert_eq!((pair.near.done().op_context as usize, pair.far.done().op_context as usize), (4, 3));
    assert_eq!(message, b"after");
}

fn name_of(digits: &str) -> [u8; 16] {
    std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

fn digits_of(name: [u8; 16]) -> String {
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Body of the other process of a test. It reads from the memory of the process that started it, is stopped
/// for some time, and then receives the requested number of messages.
#[test]
#[ignore = "started by other tests of this file"]
fn a_process_that_is_stopped() {
    let name = name_of(&std::env::var("PATHWEAVE_TEST_NAME").unwrap());
    let node = ManuallyDrop::new(Node::new());
    let to = node.insert(&name);
    let mut first = vec![0; 100];
    node.read(to, KEY, 0, slot(&mut first), 1);
    assert_eq!(node.done().op_context as usize, 1);
    let mut out = std::io::stdout();
    writeln!(out, "ready {}", digits_of(node.name())).unwrap();
    // The process is stopped in the middle of an access, or while it waits for the next order.
    let mut bytes = vec![7; HUGE];
    match std::env::var("PATHWEAVE_TEST_ACCESS").as_deref() {
        Ok("write") => {
            node.write(to, KEY, 0, &bytes, 3);
            let written = node.next().map_err(|error| error.err).map(|_| ());
            assert!(matches!(written, Ok(()) | Err(FI_EACCES)), "{written:?}");
        }
        Ok("read") => {
            node.read(to, KEY, 0, slot(&mut bytes), 3);
            match node.next() {
                Ok(_) => assert!(bytes.iter().all(|byte| *byte == 1), "bytes of after the close"),
                Err(error) => assert_eq!(error.err, FI_EACCES),
            }
        }
        _ => {}
    }
    let mut words = std::io::stdin().lines();
    let count: usize = words.next().unwrap().unwrap().parse().unwrap();
    let mut into = vec![0; LONG];
    for number in 0..count {
        node.trecv(to, number as u64, 0, slot(&mut into), 2);
        let (entry, _) = node.next().unwrap_or_else(|error| panic!("message {number}: {error:?}"));
        let len = entry.len;
        assert!(into[..len] == pattern(len, number as u64));
        writeln!(out, "received {len}").unwrap();
    }
    // The endpoint stays open until the test ends the process.
    let _ = words.next();
}

struct Stopped {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    name: [u8; 16],
}

impl Stopped {
    /// Starts the process. It reads from the memory of `node`.
    fn start(node: &Node, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "a_process_that_is_stopped", "--nocapture"]);
        command.env("PATHWEAVE_TEST_NAME", digits_of(node.name())).envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said =
            (&mut lines).map_while(Result::ok).find_map(|line| line.split("ready ").nth(1).map(name_of));
        Stopped { child, lines, name: said.expect("it says its name") }
    }

    /// Starts the process and stops it.
    fn of(node: &Node, variables: &[(&str, &str)]) -> Self {
        let stopped = Stopped::start(node, variables);
        stopped.signal(libc::SIGSTOP);
        stopped
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a child process that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Lets the process continue and receive messages of these lengths. It lives on, so that it can acknowledge the
    /// last one, until this is dropped.
    fn receives(&mut self, lens: &[usize]) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{}", lens.len()).unwrap();
        let mut received =
            (&mut self.lines).map_while(Result::ok).filter(|line| line.starts_with("received"));
        for len in lens {
            assert_eq!(received.next(), Some(format!("received {len}")));
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both values of `PATHWEAVE_SHARED_MEMORY` that the tests use.
const WAYS: [&str; 2] = ["on", "off"];

fn node(variables: &[(&str, &str)]) -> Node {
    environment();
    for (name, value) in variables {
        // SAFETY: the tests of this program that read it run one after the other.
        unsafe { std::env::set_var(name, value) };
    }
    let node = Node::new();
    for (name, _) in variables {
        // SAFETY: as above.
        unsafe { std::env::remove_var(name) };
    }
    node
}

/// Memory is closed while a peer that knows its key is stopped. All messages to the peer arrive, those sent
/// before and those sent after.
fn a_peer_is_stopped(seconds: f64) {
    let _alone = alone();
    for way in WAYS {
        let variables = [("PATHWEAVE_SHARED_MEMORY", way)];
        let near = node(&variables);
        let mut memory = pattern(LONG, 1);
        let mr = near.register(slot(&mut memory), KEY, ALL).unwrap();
        let mut far = Stopped::of(&near, &variables);
        let to = near.insert(&far.name);
        let lens = [LONG, 64, 0, 100_000];
        let sent: Vec<_> =
            lens.iter().enumerate().map(|(number, len)| pattern(*len, number as u64)).collect();
        near.tsend(to, 0, &sent[0], 0);
        let stopped = Instant::now();
        assert_eq!(close(mr), 0, "{way}");
        assert!(stopped.elapsed() < PATIENCE / 2, "{way}: {:?}", stopped.elapsed());
        memory.fill(0xaa);
        for (number, bytes) in sent.iter().enumerate().skip(1) {
            near.tsend(to, number as u64, bytes, number);
        }
        let left = Duration::from_secs_f64(seconds).saturating_sub(stopped.elapsed());
        thread::sleep(left);
        far.signal(libc::SIGCONT);
        far.receives(&lens);
        for _ in lens {
            near.done();
        }
        assert!(memory.iter().all(|byte| *byte == 0xaa));
    }
}

/// Memory is closed in the middle of a peer's access. The access ends, and all messages arrive.
fn a_peer_is_stopped_amid(access: &str, begun: impl Fn(&[u8])) {
    let _alone = alone();
    for way in WAYS {
        let variables = [("PATHWEAVE_SHARED_MEMORY", way), ("PATHWEAVE_TEST_ACCESS", access)];
        let near = node(&variables[..1]);
        let mut memory = vec![1; HUGE];
        let mr = near.register(slot(&mut memory), KEY, ALL).unwrap();
        let mut far = Stopped::start(&near, &variables);
        let to = near.insert(&far.name);
        let sent = pattern(LONG, 0);
        near.tsend(to, 0, &sent, 1);
        begun(&memory);
        far.signal(libc::SIGSTOP);
        let waker = {
            let pid = far.child.id() as i32;
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(1_500));
                // SAFETY: a child process that was not waited for.
                unsafe { libc::kill(pid, libc::SIGCONT) }
            })
        };
        assert_eq!(close(mr), 0, "{way}");
        memory.fill(0xaa);
        assert_eq!(waker.join().unwrap(), 0);
        far.receives(&[LONG]);
        near.done();
        assert!(memory.iter().all(|byte| *byte == 0xaa), "{way}: bytes were written after fi_close");
    }
}

#[test]
fn a_peer_that_is_stopped_as_it_writes_gets_all_messages() {
    a_peer_is_stopped_amid("write", |memory| {
        let start = Instant::now();
        // SAFETY: a byte of the memory, which the provider writes.
        while unsafe { (&raw const memory[HUGE / 16]).read_volatile() } == 1 {
            assert!(start.elapsed() < PATIENCE, "it does not write");
            thread::sleep(Duration::from_micros(100));
        }
    });
}

#[test]
fn a_peer_that_is_stopped_as_it_reads_gets_all_messages() {
    // After this time, the read is about half done.
    a_peer_is_stopped_amid("read", |_| thread::sleep(Duration::from_millis(20)));
}

#[test]
fn a_peer_that_is_stopped_gets_all_messages() {
    a_peer_is_stopped(1.5);
}

/// `cargo test -p pathweave-ofi --test closing -- --ignored long`
#[test]
#[ignore = "takes long"]
fn a_peer_that_is_stopped_for_long_gets_all_messages() {
    a_peer_is_stopped(5.0);
    a_peer_is_stopped(30.0);
}

fn inject(node: &Node, to: u64, tag: u64, bytes: &[u8]) {
    // SAFETY: the bytes are valid during the call.
    let call = || unsafe {
        ((*(*node.ep).tagged).inject)(node.ep.cast(), bytes.as_ptr().cast(), bytes.len(), to, tag)
    };
    node.retry(call).unwrap();
}

/// Number of injected messages, more than rings and credits hold.
const INJECTED: usize = 1_000;

/// An endpoint is closed while a peer is stopped that has not received the injected messages.
fn an_endpoint_is_closed(seconds: f64) {
    let _alone = alone();
    for way in WAYS {
        let variables = [("PATHWEAVE_SHARED_MEMORY", way)];
        let near = node(&variables);
        let mut memory = pattern(LONG, 1);
        let mr = near.register(slot(&mut memory), KEY, ALL).unwrap();
        let mut far = Stopped::of(&near, &variables);
        let to = near.insert(&far.name);
        assert_eq!(close(mr), 0);
        for number in 0..INJECTED {
            inject(&near, to, number as u64, &pattern(64, number as u64));
        }
        let pid = far.child.id() as i32;
        let waker = thread::spawn(move || {
            thread::sleep(Duration::from_secs_f64(seconds));
            // SAFETY: a child process that was not waited for.
            unsafe { libc::kill(pid, libc::SIGCONT) }
        });
        drop(near);
        assert_eq!(waker.join().unwrap(), 0);
        far.receives(&[64; INJECTED]);
    }
}

#[test]
fn what_was_injected_arrives_at_a_peer_that_is_stopped() {
    an_endpoint_is_closed(2.0);
}

/// `cargo test -p pathweave-ofi --test closing -- --ignored long`
#[test]
#[ignore = "takes long"]
fn what_was_injected_arrives_at_a_peer_that_is_stopped_for_long() {
    an_endpoint_is_closed(5.0);
    an_endpoint_is_closed(30.0);
}

/// Reason why the peer of a test does not receive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// The peer is stopped, and never continues.
    Stopped,
    /// The peer has no room for more, and receives nothing.
    Full,
}

/// Closing ends after the peer timeout, and reports lost messages.
#[test]
fn what_was_injected_and_cannot_arrive_is_told() {
    let _alone = alone();
    for (idle, way) in [Idle::Stopped, Idle::Full].into_iter().flat_map(|idle| WAYS.map(|way| (idle, way))) {
        let variables = [
            ("PATHWEAVE_SHARED_MEMORY", way),
            ("PATHWEAVE_PEER_TIMEOUT", "2"),
            ("PATHWEAVE_UNEXPECTED_BYTES", "1048576"),
        ];
        let near = ManuallyDrop::new(node(&variables));
        let mut memory = pattern(LONG, 1);
        let mr = near.register(slot(&mut memory), KEY, ALL).unwrap();
        let far = Stopped::of(&near, &variables);
        if idle == Idle::Full {
            far.signal(libc::SIGCONT);
        }
        let to = near.insert(&far.name);
        for number in 0..2 * INJECTED {
            inject(&near, to, number as u64, &pattern(1_000, number as u64));
        }
        let start = Instant::now();
        assert_eq!(close(near.ep), 0);
        assert!(start.elapsed() < Duration::from_secs(20), "{way}: {:?}", start.elapsed());
        let mut lost = 0;
        while let Some(found) = near.poll() {
            let Err(error) = found else { panic!("an entry of what has arrived") };
            assert!(matches!(error.err, FI_ETIMEDOUT | FI_ECONNRESET), "{way}: {}", error.err);
            lost += 1;
        }
        // The remaining messages are already in memory that the peer reads.
        assert!((INJECTED / 2..=2 * INJECTED).contains(&lost), "{way}: {lost} are lost");
        drop(far);
        for answer in [close(mr), close(near.cq), close(near.av), close(near.domain), close(near.fabric)] {
            assert_eq!(answer, 0);
        }
        free_info(near.info);
    }
}
