//! Panics in the work of one connection, at every kind of input: other connections continue, and their data is
//! intact.

use std::time::{Duration, Instant};

use crate::engine::fault_injection;
use crate::{Access, CloseReason, Connection, Device, DeviceConfig, Driving, Region, Registration, Status};

const PATIENCE: Duration = Duration::from_secs(60);

fn config(driving: Driving) -> DeviceConfig {
    // A panic prints a backtrace, which takes seconds on a busy machine. No peer may be given up meanwhile.
    DeviceConfig { paths: 4, mtu_payload: 1_344, driving, peer_timeout: PATIENCE, ..DeviceConfig::loopback() }
}

/// Waits until `ready` returns a value, and drives the server's loop if callers drive it.
fn until<T>(server: &Device, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "nothing has happened");
        server.progress();
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Writes to the server and reads the bytes back, on the client's connection. Drives the server's loop if callers
/// drive it.
fn exchange(near: &Connection, server: &Device, board: &Registration, salt: u8) {
    let bytes: Vec<u8> = (0..300_000usize).map(|i| (i * 7 + i / 251) as u8 ^ salt).collect();
    let wait = |wr_id| {
        let done = until(server, || near.take());
        assert_eq!((done.wr_id, done.status), (wr_id, Status::Success));
    };
    near.write(1, Region::from_bytes(&bytes).expect("memory").all(), board.remote(0)).expect("room");
    wait(1);
    assert!(board.region().to_vec(0..bytes.len()).expect("its bytes") == bytes);
    let back = Region::zeroed(bytes.len()).expect("memory");
    near.read(2, back.all(), board.remote(0)).expect("room");
    wait(2);
    assert!(back.to_vec(0..bytes.len()).expect("its bytes") == bytes);
}

#[test]
fn a_bug_costs_the_connection_in_whose_work_it_struck_and_no_other() {
    for driving in [Driving::Thread { core: None }, Driving::Caller, Driving::Standby] {
        let server = Device::open(config(driving)).expect("a device");
        let client = Device::open(config(Driving::Thread { core: None })).expect("a device");
        let listener = server.listen().expect("nobody listens yet");
        let board =
            server.register(&Region::zeroed(300_000).expect("memory"), Access::READ_WRITE).expect("a key");
        let open = || {
            std::thread::scope(|scope| {
                let near = scope.spawn(|| client.connect(server.local_addr()).expect("a connection"));
                let far = listener.accept(PATIENCE).expect("the other end of it");
                (near.join().expect("it connects"), far)
            })
        };
        let (bystander, _held) = open();
        let kinds = [
            fault_injection::POLL,
            fault_injection::SENT,
            fault_injection::FEEDBACK,
            fault_injection::TIMER,
            fault_injection::RATE,
            fault_injection::CLOSE,
        ];
        for (n, kind) in (1..).zip(kinds) {
            let (near, far) = open();
            let message = Region::zeroed(kind as usize).expect("memory");
            near.recv(7, Region::zeroed(2_000).expect("memory").all()).expect("room");
            far.recv(9, Region::zeroed(10).expect("memory").all()).expect("room");
            far.send(8, message.all()).expect("room");
            exchange(&bystander, &server, &board, n as u8);
            if kind == fault_injection::RATE {
                assert!(far.stats().is_none(), "there is an answer, and none");
            }
            assert_eq!(far.wait_closed(PATIENCE).expect("it is closed"), CloseReason::Internal, "{kind}");
            // Everything posted has completed, with whatever status.
            let statuses: Vec<_> = std::iter::from_fn(|| far.take()).map(|done| done.wr_id).collect();
            assert!(statuses.contains(&9) && statuses.contains(&8), "{kind}: {statuses:?}");
            assert_eq!(until(&server, || near.close_reason()), CloseReason::Peer, "{kind}");
            let stats = server.stats().expect("the loop goes on");
            assert_eq!(stats.panics, n, "{kind}");
            exchange(&bystander, &server, &board, 100 + n as u8);
        }
        assert_eq!(bystander.close_reason(), None);
    }
}
