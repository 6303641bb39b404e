//! Panics in the processing of one peer's packets: other peers continue, and their data is intact.

use std::time::{Duration, Instant};

use crate::engine::fault_injection;
use crate::rdm::{RdmConfig, RdmEndpoint};
use crate::{Region, Status};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_bug_costs_the_peer_over_whose_packet_it_struck_and_no_other() {
    let open = || {
        let mut config = RdmConfig::loopback();
        // A panic prints a backtrace, which takes seconds on a busy machine. No peer may be given up meanwhile.
        config.device.peer_timeout = PATIENCE;
        RdmEndpoint::open(config).expect("an endpoint")
    };
    let (server, victim, bystander) = (open(), open(), open());
    let [from_victim, from_bystander] =
        [&victim, &bystander].map(|client| client.insert(server.local_addr()).expect("room for a peer"));
    let exchange = |salt: u8| {
        let bytes: Vec<u8> = (0..100_000usize).map(|i| (i * 7 + i / 251) as u8 ^ salt).collect();
        let into = Region::zeroed(bytes.len()).expect("memory");
        server.recv(1, into.all()).expect("room");
        bystander.send(2, from_bystander, Region::from_bytes(&bytes).expect("memory").all()).expect("room");
        let received = server.wait(PATIENCE).expect("a message");
        assert_eq!((received.wr_id, received.status), (1, Status::Success));
        assert_eq!(bystander.wait(PATIENCE).expect("its end").status, Status::Success);
        assert!(into.to_vec(0..bytes.len()).expect("its bytes") == bytes);
    };
    exchange(1);
    victim
        .send(3, from_victim, Region::zeroed(fault_injection::POLL as usize).expect("memory").all())
        .expect("room");
    let start = Instant::now();
    while server.stats().expect("the loop goes on").panics == 0 {
        assert!(start.elapsed() < PATIENCE, "nothing has struck");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The victim repeats its message, with a panic each time.
    exchange(2);
    drop(victim);
    exchange(3);
}
