//! An endpoint in a process without free file descriptors: side channel connections wait, and the loop does not spin.

use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint, RdmStats};

/// Runs the test in a separate process with a low limit on open files.
#[test]
fn calls_that_cannot_be_taken_wait() {
    if std::env::var_os("PATHWEAVE_FEW_FILES").is_some() {
        return with_few_files();
    }
    let own = std::env::current_exe().expect("a test binary");
    let script = "ulimit -n 48 && exec \"$0\" calls_that_cannot_be_taken_wait --exact --nocapture";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(own)
        .env("PATHWEAVE_FEW_FILES", "1")
        .status()
        .expect("a shell");
    assert!(status.success());
}

fn stats(endpoint: &RdmEndpoint) -> RdmStats {
    endpoint.stats().expect("its loop runs")
}

fn with_few_files() {
    let endpoint = RdmEndpoint::open(RdmConfig::loopback()).expect("an endpoint");
    // The last descriptor is for the TCP client.
    let last = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut files: Vec<UdpSocket> = std::iter::from_fn(|| UdpSocket::bind("127.0.0.1:0").ok()).collect();
    drop(last);
    let caller = TcpStream::connect(endpoint.side_channel_addr()).expect("the system takes the call");
    let until = |is: &dyn Fn(&RdmStats) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is(&stats(&endpoint)) {
            assert!(Instant::now() < deadline, "{:?}", stats(&endpoint));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until(&|stats| stats.side.accept_failures > 0);
    // Each retry takes a turn, and there are some timers; a spinning loop makes hundreds of thousands of turns a
    // second.
    let before = stats(&endpoint);
    std::thread::sleep(Duration::from_millis(500));
    let after = stats(&endpoint);
    assert!(after.turns - before.turns < 5_000, "{} turns", after.turns - before.turns);
    assert!(after.side.accept_failures - before.side.accept_failures <= 20, "{:?}", after.side);
    assert_eq!(after.side.accepted, 0);
    files.truncate(files.len() / 2);
    until(&|stats| stats.side.accepted == 1);
    drop(caller);
}
