//! Several loops as one device.

use std::collections::BTreeSet;

use crate::support::{PATIENCE, done, pattern, region_of};
use pathweave_datapath::{Access, Connection, DeviceConfig, Driving, Loops, LoopsListener, Region};

const CONNECTIONS: usize = 8;
const BYTES: usize = 300_000;

fn open(loops: usize) -> Loops {
    Loops::open(&DeviceConfig::loopback(), loops).expect("a device")
}

/// Opens connections and returns both ends of each.
fn connect(client: &Loops, server: &Loops, listener: &LoopsListener) -> Vec<(Connection, Connection)> {
    let pair = |_| {
        let near = client.connect(&server.addresses()).expect("a connection");
        (near, listener.accept(PATIENCE).expect("the other end of it"))
    };
    (0..CONNECTIONS).map(pair).collect()
}

#[test]
fn connections_are_dealt_to_loops_and_each_moves_its_bytes() {
    for (ours, theirs) in [(1, 1), (2, 2), (3, 2), (1, 3)] {
        let (client, server) = (open(ours), open(theirs));
        let listener = server.listen().expect("nobody listens yet");
        let pairs = connect(&client, &server, &listener);
        let memory = Region::zeroed(CONNECTIONS * BYTES).expect("memory");
        let memory = server.register(&memory, Access::READ_WRITE).expect("a key at each loop");
        for (number, (near, far)) in pairs.iter().enumerate() {
            let place = memory.remote(far, (number * BYTES) as u64).expect("one of this device's");
            near.write(1, region_of(&pattern(BYTES, number as u64)).all(), place).expect("posted");
            assert!(memory.remote(near, 0).is_none(), "a connection of another device");
        }
        for (number, (near, _)) in pairs.iter().enumerate() {
            done(near, 1);
            let place = number * BYTES..(number + 1) * BYTES;
            assert!(memory.region().to_vec(place).unwrap() == pattern(BYTES, number as u64), "{number}");
        }
        for (device, loops) in [(&client, ours), (&server, theirs)] {
            let counts: Vec<usize> =
                device.devices().iter().map(|each| each.stats().expect("it lives").connections).collect();
            assert_eq!(counts.iter().sum::<usize>(), CONNECTIONS, "{counts:?}");
            let fewest = CONNECTIONS / loops;
            assert!(counts.iter().all(|count| (fewest..=fewest + 1).contains(count)), "{counts:?}");
        }
    }
}

#[test]
fn waiters_receive_events_of_every_loop() {
    let (client, server) = (open(1), open(2));
    let listener = server.listen().expect("nobody listens yet");
    for address in server.addresses() {
        let device = &client.devices()[0];
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| listener.accept(PATIENCE).expect("a connection of any loop"));
            let near = device.connect(address).expect("a connection");
            let far = waiter.join().expect("no panic");
            near.send(1, region_of(b"hello").all()).expect("posted");
            let room = Region::zeroed(5).expect("memory");
            far.recv(2, room.all()).expect("posted");
            let completion = server.wait_until(PATIENCE, || far.take()).expect("it lives").expect("in time");
            assert_eq!((completion.wr_id, completion.byte_len), (2, 5));
        });
    }
}

#[test]
fn loops_are_at_ports_after_each_other() {
    let free = open(3);
    let ports: BTreeSet<u16> = free.addresses().iter().map(std::net::SocketAddr::port).collect();
    assert_eq!(ports.len(), 3, "each has its own");
    // A port that was free a moment ago, with two after it that very likely are free.
    let first = *ports.first().expect("three");
    drop(free);
    let config = DeviceConfig { bind: ([127, 0, 0, 77], first).into(), ..DeviceConfig::loopback() };
    let device = Loops::open(&config, 3).expect("nobody else is at this address");
    let ports: Vec<u16> = device.addresses().iter().map(std::net::SocketAddr::port).collect();
    assert_eq!(ports, [first, first + 1, first + 2]);
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |config: DeviceConfig, loops| Loops::open(&config, loops).unwrap_err().to_string();
    assert_eq!(refused(DeviceConfig::loopback(), 0), "loops is 0; allowed: 1 to 64");
    assert_eq!(refused(DeviceConfig::loopback(), 65), "loops is 65; allowed: 1 to 64");
    let caller = DeviceConfig { driving: Driving::Caller, ..DeviceConfig::loopback() };
    assert_eq!(refused(caller, 2), "driving is Caller; allowed: Thread: each loop has one of its own");
    let last = DeviceConfig { bind: "127.0.0.1:65535".parse().unwrap(), ..DeviceConfig::loopback() };
    assert!(refused(last, 2).starts_with("bind port is 127.0.0.1:65535; allowed: "));
    let why = open(1).connect(&[]).unwrap_err().to_string();
    assert_eq!(why, "peer addresses is none; allowed: one a loop of the peer's");
}
