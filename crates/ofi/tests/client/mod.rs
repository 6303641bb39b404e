//! A client of the provider that behaves like an application: all calls go through the C tables.
#![allow(
    unsafe_code,
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "calls C tables; not every test uses all of it"
)]

use std::ffi::c_void;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::ptr::{self, null_mut};
use std::sync::Once;
use std::time::{Duration, Instant};

pub use pathweave_fi::abi::atomic::*;
pub use pathweave_fi::abi::domain::*;
pub use pathweave_fi::abi::endpoint::*;
pub use pathweave_fi::abi::eq::*;
pub use pathweave_fi::abi::errno::*;
pub use pathweave_fi::abi::fabric::*;
pub use pathweave_fi::abi::tagged::*;
pub use pathweave_fi::abi::version;

/// Longest time that any operation may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Sets the environment of all tests of a program: unprotected on loopback, with few paths.
pub fn environment() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: called before any test has started a thread of its own that reads it.
        unsafe {
            if std::env::var_os("PATHWEAVE_PROTECTION").is_none() {
                std::env::set_var("PATHWEAVE_PROTECTION", "insecure");
            }
            if std::env::var_os("PATHWEAVE_ADDRESS").is_none() {
                std::env::set_var("PATHWEAVE_IFACE", "lo");
            }
            std::env::set_var("PATHWEAVE_PATHS", "4");
        }
        if std::env::var_os(NO_COPIES).is_some() {
            forbid_copies();
        }
    });
}

/// Variable that is set in a process that must not copy between processes.
const NO_COPIES: &str = "PATHWEAVE_TEST_NO_COPIES";

/// Makes the kernel reject copies from and to other processes from now on, as a container may.
pub fn forbid_copies() {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let is =
        |number: libc::c_long, jf| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, jf, number as u32);
    let ends = |with| step(libc::BPF_RET | libc::BPF_K, 0, 0, with);
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        // Number of the system call.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        is(libc::SYS_process_vm_readv, 1),
        ends(refused),
        is(libc::SYS_process_vm_writev, 1),
        ends(refused),
        ends(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a filter of the given length, for all threads.
    let (locked, set) = unsafe {
        let locked = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
        (locked, libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program))
    };
    assert_eq!((locked, set), (0, 0), "{}", std::io::Error::last_os_error());
    // SAFETY: the call copies no bytes.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), ptr::null(), 0, ptr::null(), 0, 0) };
    assert_eq!((copied, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
}

/// Runs all other tests of this program again in separate processes, in three modes: without shared memory,
/// with shared memory but without copies between processes, and with a thread that drives the device.
pub fn again_in_other_ways() {
    let ways = [("PATHWEAVE_SHARED_MEMORY", "off"), (NO_COPIES, "1"), ("PATHWEAVE_PROGRESS", "thread")];
    for way in ways {
        again(&["--skip", "again_in_other_ways"], way);
    }
}

/// Runs all other tests of this program again in separate processes that cannot copy from each other.
pub fn again_without_copies() {
    again(&["--skip", "again_without_copies"], (NO_COPIES, "1"));
}

/// Runs tests of this program in a separate process.
pub fn again(arguments: &[&str], (variable, value): (&str, &str)) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(arguments).env(variable, value).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{variable}={value}: {text}{errors}");
}

/// Converts the return value of a call to a result.
pub fn check(what: isize) -> Result<isize, i32> {
    if what < 0 { Err(-what as i32) } else { Ok(what) }
}

/// Calls `getinfo` with hints for these capabilities.
pub fn getinfo(caps: u64) -> Result<*mut Info, i32> {
    getinfo_of(caps, FI_SOCKADDR_IN)
}

/// Calls `getinfo` with hints for these capabilities and an address family.
fn getinfo_of(caps: u64, addr_format: u32) -> Result<*mut Info, i32> {
    environment();
    // SAFETY: zero is valid for every field.
    let mut hints: Info = unsafe { std::mem::zeroed() };
    hints.caps = caps;
    hints.addr_format = addr_format;
    getinfo_with(&hints)
}

pub fn getinfo_with(hints: &Info) -> Result<*mut Info, i32> {
    environment();
    let mut info = null_mut();
    let provider = pathweave_fi::fi_prov_ini();
    // SAFETY: the arguments of fi_getinfo.
    let answer =
        unsafe { ((*provider).getinfo)(version(1, 17), ptr::null(), ptr::null(), 0, hints, &mut info) };
    check(answer as isize).map(|_| info)
}

/// A fabric, a domain and the objects of the domain.
pub struct Node {
    pub fabric: *mut FidFabric,
    pub domain: *mut FidDomain,
    pub av: *mut FidAv,
    pub cq: *mut FidCq,
    pub ep: *mut FidEp,
    pub info: *mut Info,
}

/// Options for opening a node.
#[derive(Clone, Copy)]
pub struct Options {
    pub caps: u64,
    /// Capabilities with which the domain is opened, if they are fewer than the endpoint's.
    pub domain_caps: Option<u64>,
    pub cq_flags: u64,
    pub wait_obj: u32,
    pub mr_mode: i32,
    /// FI_SOCKADDR_IN or FI_SOCKADDR_IN6.
    pub addr_format: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            caps: FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE,
            domain_caps: None,
            cq_flags: 0,
            wait_obj: FI_WAIT_FD,
            mr_mode: 0,
            addr_format: FI_SOCKADDR_IN,
        }
    }
}

impl Node {
    pub fn new() -> Self {
        Node::with(Options::default(), |_| ())
    }

    /// Opens a node. `bind` is called before the endpoint is enabled.
    pub fn with(options: Options, bind: impl FnOnce(&Node)) -> Self {
        let info = getinfo_of(options.caps, options.addr_format).expect("an offer");
        // SAFETY: the arguments are those of libfabric's calls.
        unsafe {
            (*(*info).domain_attr).mr_mode = options.mr_mode;
            let provider = pathweave_fi::fi_prov_ini();
            let mut node = Node {
                fabric: null_mut(),
                domain: null_mut(),
                av: null_mut(),
                cq: null_mut(),
                ep: null_mut(),
                info,
            };
            ok(((*provider).fabric)((*info).fabric_attr, &mut node.fabric, null_mut()));
            let caps = (*info).caps;
            (*info).caps = options.domain_caps.unwrap_or(caps);
            ok(((*(*node.fabric).ops).domain)(node.fabric, info, &mut node.domain, null_mut()));
            (*info).caps = caps;
            let mut av = AvAttr {
                type_: FI_AV_TABLE,
                rx_ctx_bits: 0,
                count: 0,
                ep_per_node: 0,
                name: ptr::null(),
                map_addr: null_mut(),
                flags: 0,
            };
            let ops = &*(*node.domain).ops;
            ok((ops.av_open)(node.domain, &mut av, &mut node.av, null_mut()));
            let mut cq = CqAttr {
                size: 1,
                flags: 0,
                format: FI_CQ_FORMAT_TAGGED,
                wait_obj: options.wait_obj,
                signaling_vector: 0,
                wait_cond: 0,
                wait_set: null_mut(),
            };
            ok((ops.cq_open)(node.domain, &mut cq, &mut node.cq, null_mut()));
            ok((ops.endpoint)(node.domain, info, &mut node.ep, null_mut()));
            let fid = &raw mut (*node.ep).fid;
            ok(((*(*fid).ops).bind)(fid, node.av.cast(), 0));
            ok(((*(*fid).ops).bind)(fid, node.cq.cast(), FI_SEND | FI_RECV | options.cq_flags));
            bind(&node);
            ok(((*(*fid).ops).control)(fid, FI_ENABLE, null_mut()));
            node
        }
    }

    /// Returns the endpoint's address as bytes.
    pub fn name(&self) -> [u8; 16] {
        let (mut name, mut len) = ([0; 16], 16);
        // SAFETY: the buffer has as many bytes as the length says.
        unsafe { ok(((*(*self.ep).cm).getname)(self.ep.cast(), name.as_mut_ptr().cast(), &mut len)) };
        assert_eq!(len, 16);
        name
    }

    /// Inserts an address into the vector.
    pub fn insert(&self, name: &[u8; 16]) -> u64 {
        let mut number = 0;
        // SAFETY: one address and one number.
        let count = unsafe {
            ((*(*self.av).ops).insert)(self.av, name.as_ptr().cast(), 1, &mut number, 0, null_mut())
        };
        assert_eq!(count, 1);
        number
    }

    /// Repeats a call while the endpoint has no room, and makes progress as applications do.
    pub fn retry(&self, mut call: impl FnMut() -> isize) -> Result<(), i32> {
        let start = Instant::now();
        loop {
            match check(call()) {
                Err(FI_EAGAIN) if start.elapsed() < PATIENCE => {
                    // SAFETY: reading no entries needs no room.
                    unsafe { ((*(*self.cq).ops).read)(self.cq, null_mut(), 0) };
                }
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
    }

    pub fn tsend(&self, to: u64, tag: u64, bytes: &[u8], context: usize) {
        // SAFETY: tests keep the bytes until the completion.
        let call = || unsafe {
            ((*(*self.ep).tagged).send)(
                self.ep.cast(),
                bytes.as_ptr().cast(),
                bytes.len(),
                null_mut(),
                to,
                tag,
                context as *mut c_void,
            )
        };
        self.retry(call).unwrap();
    }

    pub fn trecv(&self, from: u64, tag: u64, ignore: u64, into: &mut [u8], context: usize) {
        let (start, len) = (into.as_mut_ptr(), into.len());
        // SAFETY: tests keep the bytes until the completion.
        let call = || unsafe {
            ((*(*self.ep).tagged).recv)(
                self.ep.cast(),
                start.cast(),
                len,
                null_mut(),
                from,
                tag,
                ignore,
                context as *mut c_void,
            )
        };
        self.retry(call).unwrap();
    }

    pub fn send(&self, to: u64, bytes: &[u8], context: usize) {
        // SAFETY: tests keep the bytes until the completion.
        let call = || unsafe {
            ((*(*self.ep).msg).send)(
                self.ep.cast(),
                bytes.as_ptr().cast(),
                bytes.len(),
                null_mut(),
                to,
                context as *mut c_void,
            )
        };
        self.retry(call).unwrap();
    }

    pub fn recv(&self, from: u64, into: &mut [u8], context: usize) {
        let (start, len) = (into.as_mut_ptr(), into.len());
        // SAFETY: tests keep the bytes until the completion.
        let call = || unsafe {
            ((*(*self.ep).msg).recv)(
                self.ep.cast(),
                start.cast(),
                len,
                null_mut(),
                from,
                context as *mut c_void,
            )
        };
        self.retry(call).unwrap();
    }

    /// Calls trecvmsg with flags: PEEK, CLAIM, DISCARD.
    pub fn look(
        &self,
        from: u64,
        tag: u64,
        ignore: u64,
        into: &mut [u8],
        context: usize,
        flags: u64,
    ) -> isize {
        let iov = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let msg = MsgTagged {
            msg_iov: &iov,
            desc: null_mut(),
            iov_count: 1,
            addr: from,
            tag,
            ignore,
            context: context as *mut c_void,
            data: 0,
        };
        // SAFETY: tests keep the bytes until the completion.
        unsafe { ((*(*self.ep).tagged).recvmsg)(self.ep.cast(), &msg, flags) }
    }

    pub fn cancel(&self, context: usize) {
        // SAFETY: an open endpoint.
        unsafe { ((*(*self.ep).ops).cancel)(self.ep.cast(), context as *mut c_void) };
    }

    /// Polls once. Returns an entry and its source, or an error entry.
    pub fn poll(&self) -> Option<Result<(CqTaggedEntry, u64), CqErrEntry>> {
        // SAFETY: zero is valid for every field, and there is room for one entry.
        unsafe {
            let (mut entry, mut source) = (std::mem::zeroed::<CqTaggedEntry>(), 0);
            match check(((*(*self.cq).ops).readfrom)(self.cq, (&raw mut entry).cast(), 1, &mut source)) {
                Ok(1) => Some(Ok((entry, source))),
                Ok(other) => panic!("{other} entries of one"),
                Err(FI_EAGAIN) => None,
                Err(FI_EAVAIL) => {
                    let mut error = std::mem::zeroed::<CqErrEntry>();
                    ok(((*(*self.cq).ops).readerr)(self.cq, &mut error, 0) as i32);
                    Some(Err(error))
                }
                Err(error) => panic!("fi_cq_readfrom says {error}"),
            }
        }
    }

    /// Waits for the next entry of either kind.
    pub fn next(&self) -> Result<(CqTaggedEntry, u64), CqErrEntry> {
        let start = Instant::now();
        loop {
            if let Some(found) = self.poll() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "nothing has come");
            std::thread::yield_now();
        }
    }

    /// Waits for the next entry, which must not be an error.
    pub fn done(&self) -> CqTaggedEntry {
        self.next().unwrap_or_else(|error| panic!("an error entry: {error:?}")).0
    }

    /// Waits for the next entry, which must be an error.
    pub fn failed(&self) -> CqErrEntry {
        self.next().expect_err("an error entry")
    }

    /// Returns true if no entry arrives for a while.
    pub fn is_silent(&self) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(100) {
            if self.poll().is_some() {
                return false;
            }
        }
        true
    }

    /// Registers memory with these access rights.
    pub fn register(&self, bytes: &mut [u8], key: u64, access: u64) -> Result<*mut FidMr, i32> {
        let mut mr = null_mut();
        // SAFETY: tests keep the bytes until the region is closed.
        let answer = unsafe {
            ((*(*self.domain).mr).reg)(
                self.domain.cast(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                access,
                0,
                key,
                0,
                &mut mr,
                null_mut(),
            )
        };
        check(answer as isize).map(|_| mr)
    }

    pub fn write(&self, to: u64, key: u64, address: u64, bytes: &[u8], context: usize) {
        // SAFETY: tests keep the bytes until the completion.
        let call = || unsafe {
            ((*(*self.ep).rma).write)(
                self.ep.cast(),
                bytes.as_ptr().cast(),
                bytes.len(),
                null_mut(),
                to,
                address,
                key,
                context as *mut c_void,
            )
        };
        self.retry(call).unwrap();
    }

    pub fn read(&self, from: u64, key: u64, address: u64, into: &mut [u8], context: usize) {
        let (start, len) = (into.as_mut_ptr(), into.len());
        // SAFETY: tests keep the bytes until the completion.
        let call = || unsafe {
            ((*(*self.ep).rma).read)(
                self.ep.cast(),
                start.cast(),
                len,
                null_mut(),
                from,
                address,
                key,
                context as *mut c_void,
            )
        };
        self.retry(call).unwrap();
    }
}

/// Closes any object.
pub fn close<T>(fid: *mut T) -> i32 {
    let fid: *mut Fid = fid.cast();
    // SAFETY: the object begins with a fid, and is not used again.
    unsafe { ((*(*fid).ops).close)(fid) }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for answer in [close(self.ep), close(self.cq), close(self.av), close(self.domain), close(self.fabric)]
        {
            assert_eq!(answer, 0);
        }
        free_info(self.info);
    }
}

/// Frees an answer of getinfo as libfabric does: the hardware through its own table, all else with `free`.
pub fn free_info(mut info: *mut Info) {
    // SAFETY: the list is complete, and is not used again.
    unsafe {
        while !info.is_null() {
            let next = (*info).next;
            libc::free((*(*info).domain_attr).name.cast());
            libc::free((*(*info).fabric_attr).name.cast());
            libc::free((*(*info).fabric_attr).prov_name.cast());
            if !(*info).nic.is_null() {
                assert_eq!(close((*info).nic), 0);
            }
            for part in [
                (*info).src_addr,
                (*info).dest_addr,
                (*info).tx_attr.cast(),
                (*info).rx_attr.cast(),
                (*info).ep_attr.cast(),
                (*info).domain_attr.cast(),
                (*info).fabric_attr.cast(),
            ] {
                libc::free(part);
            }
            libc::free(info.cast());
            info = next;
        }
    }
}

pub fn ok(answer: i32) {
    assert!(answer >= 0, "a call returned {answer}");
}

/// Two nodes that know each other's address.
pub struct Pair {
    pub near: Node,
    pub far: Node,
    /// Number of `far` at `near`, and below the number of `near` at `far`.
    pub to_far: u64,
    pub to_near: u64,
}

impl Pair {
    pub fn new() -> Self {
        Pair::of(Node::new(), Node::new())
    }

    pub fn of(near: Node, far: Node) -> Self {
        let (to_far, to_near) = (near.insert(&far.name()), far.insert(&near.name()));
        Pair { near, far, to_far, to_near }
    }
}

/// A node that another thread uses. Endpoints may be used by any thread.
pub struct Anywhere<'a>(pub &'a Node);
// SAFETY: the endpoint is opened with FI_THREAD_SAFE.
unsafe impl Send for Anywhere<'_> {}

/// Returns bytes that depend on position and seed.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Returns another view of memory that an operation fills.
pub fn slot(bytes: &mut Vec<u8>) -> &'static mut [u8] {
    // SAFETY: tests keep the vector until the completion.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr(), bytes.len()) }
}

/// Body of another process: an endpoint that prints its name, and receives until it is killed.
pub fn receive_for_ever() {
    let node = Node::new();
    let name: Vec<String> = node.name().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut out = std::io::stdout();
    writeln!(out, "name {}", name.concat()).unwrap();
    let mut into = vec![0; 64];
    loop {
        node.trecv(FI_ADDR_UNSPEC, 1, 0, slot(&mut into), 1);
        while node.poll().is_none() {
            std::thread::yield_now();
        }
    }
}

/// Starts the test `a_process_that_receives` of this program with these variables. Returns the process and
/// the name of its endpoint.
pub fn other_process(variables: &[(&str, &str)]) -> (std::process::Child, [u8; 16]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "a_process_that_receives", "--nocapture"]);
    // The process sets the variable itself, unless an address is given.
    command.env_remove("PATHWEAVE_IFACE");
    command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let named = lines.map_while(Result::ok).find_map(|line| line.split("name ").nth(1).map(str::to_owned));
    let text = named.expect("it says its name");
    let byte = |index: usize| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap();
    (child, std::array::from_fn(byte))
}
