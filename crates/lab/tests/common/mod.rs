//! Labs for tests, with unique names and automatic removal, and helpers that send packets in them.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use pathweave_lab::{Lab, LabName, Plan, Settings};
use pathweave_topo::{NodeId, Topology};

/// Returns true if this process may create networks. If not, prints a conspicuous message.
pub(crate) fn privileged(test: &str) -> bool {
    let missing = pathweave_lab::missing_privileges();
    if let Some(missing) = &missing {
        eprintln!("\n*** SKIPPED: {test}: {missing} ***\n");
    }
    missing.is_none()
}

/// Returns true if the lab's programs run. The only valid reason for their absence is a kernel that lets this process
/// load none. A rejected program is a bug.
pub(crate) fn programmed(lab: &Lab) -> bool {
    let note = lab.notes().iter().find(|note| note.contains("BPF"));
    if let Some(note) = note {
        assert!(
            note.contains("Operation not permitted") || note.contains("Function not implemented"),
            "{note}"
        );
        eprintln!("\n*** SKIPPED: {note} ***\n");
    }
    note.is_none()
}

/// Returns a name that no other lab of this machine has.
pub(crate) fn unique_name() -> LabName {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)).parse().unwrap()
}

/// Lab that is removed when this value is dropped.
pub(crate) struct TestLab(pub(crate) Lab);

impl TestLab {
    pub(crate) fn new(topology: Topology, settings: Settings) -> TestLab {
        let plan = Plan::new(unique_name(), topology, settings).unwrap();
        TestLab(Lab::create(plan, &|| false).unwrap())
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        match Lab::remove(self.0.plan().lab()) {
            Err(pathweave_lab::LabError::Unknown { .. }) | Ok(_) => {}
            Err(why) => panic!("the lab could not be removed: {why}"),
        }
    }
}

/// Returns the names of namespaces that begin with a lab's prefix.
pub(crate) fn leftovers(lab: &LabName) -> Vec<String> {
    let entries = std::fs::read_dir(Path::new("/run/netns")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("pw.{lab}."))).collect()
}

pub(crate) const PORT: u16 = 4791;

/// Opens a socket in the network of a node. Port 0 means any port.
pub(crate) fn socket(lab: &Lab, node: NodeId, port: u16) -> UdpSocket {
    let address = lab.plan().node(node).address;
    let socket = lab.inside(node, || UdpSocket::bind(SocketAddrV4::new(address, port))).unwrap();
    let socket = socket.unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

/// Runs a closure while every host echoes datagrams.
pub(crate) fn with_echo<T>(lab: &Lab, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for host in 0..lab.plan().topology().hosts() {
            let socket = socket(lab, NodeId(host), PORT);
            let done = &done;
            scope.spawn(move || {
                let mut bytes = [0; 2_048];
                while !done.load(Ordering::Relaxed) {
                    if let Ok((length, from)) = socket.recv_from(&mut bytes) {
                        socket.send_to(&bytes[..length], from).unwrap();
                    }
                }
            });
        }
        // Set even if `work` panics, so that the scope can end.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _done = Done(&done);
        work()
    })
}

/// Returns true if an answer arrives within 200 ms.
pub(crate) fn answers(socket: &UdpSocket, to: Ipv4Addr, text: &[u8]) -> bool {
    socket.send_to(text, SocketAddrV4::new(to, PORT)).unwrap();
    let mut bytes = [0; 2_048];
    // Late answers to earlier requests are skipped.
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        if &bytes[..length] == text && from.ip() == to {
            return true;
        }
    }
    false
}
