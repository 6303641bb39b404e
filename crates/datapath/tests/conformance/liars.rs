//! Soak test with liars: honest connections and datagrams under faults, whose processes restart. Members of the
//! cluster that violate the protocol, strangers, and replayers attack the same device and the same endpoint
//! meanwhile.
//! No honest byte may be wrong, no honest connection may end, and memory must not grow.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pathweave_datapath::backend::{Cuts, Faults, Faulty, UdpBackend};
use pathweave_datapath::rdm::{Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::{ClusterKey, Protection, TransportType};
use pathweave_datapath::{
    Access, Connection, ConnectionState, Device, DeviceConfig, Listener, Region, Registration, Remote,
};
use pathweave_policy::schemes;
use pathweave_units::Rng;

use crate::chaos::draw;
use crate::soak::{GROWTH_KIB, median, number, resident_kib};
use crate::support::liar::{Guise, Liar, caller, stranger};
use crate::support::raw::{self, Raw};
use crate::support::{PATIENCE, done, loopback, pattern, rdm_loopback, region_of};

/// Longest honest message, in bytes.
const LONGEST: u32 = 200_000;
/// Largest number of liars' connections whose other end the application still holds.
const HELD: usize = 6;
/// Largest number of liars at a time, of connections and of datagrams each.
const LIARS: usize = 3;
/// Number of memory measurements in the life of a device. The first [`WARM_UP`] are ignored: departed liars are
/// remembered for [`REMEMBERED`], and arrivals and departures balance only after that.
const LOOKS: usize = 16;
const WARM_UP: usize = 6;
/// Time for which a datagram endpoint remembers idle peers.
const REMEMBERED: Duration = Duration::from_secs(20);

/// Bound on stored messages of liars without a receive, in bytes; it is reached soon.
const UNEXPECTED_BYTES: usize = 2 << 20;

/// Counters of a run.
#[derive(Default)]
struct Tally {
    messages: u64,
    bytes: u64,
    lies: AtomicU64,
    restarts: AtomicU64,
    strays: AtomicU64,
    refused: u64,
    malformed: u64,
}

/// Target of the attack.
struct Target<'a> {
    device: SocketAddr,
    endpoint: SocketAddr,
    key: &'a ClusterKey,
    protection: Protection,
    /// Key of memory that liars may access.
    rkey: u64,
}

fn of_connections() -> Vec<&'static str> {
    schemes().iter().filter(|info| (info.make)().connects_real_hosts()).map(|info| info.name).collect()
}

/// Attacks until stopped.
fn attack(target: &Target<'_>, seed: u64, stop: &AtomicBool, tally: &Tally) {
    let mut rng = Rng::for_component(seed, "attack", 0);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let wrong = ClusterKey::from_bytes([99; 32]);
    let schemes = of_connections();
    let mut liars: VecDeque<Liar> = VecDeque::new();
    let mut strangers: VecDeque<Raw> = VecDeque::new();
    let mut overheard: Vec<Vec<u8>> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match rng.below(32) {
            0 => {
                // One liar leaves without Close, and another one arrives, possibly with the same identity.
                if liars.len() >= 2 * LIARS {
                    liars.pop_front();
                }
                let datagrams = rng.bernoulli(0.5);
                let (to, transport, scheme) = if datagrams {
                    (target.endpoint, TransportType::Erd, "erd")
                } else {
                    (target.device, TransportType::Rc, draw(&mut rng, &schemes))
                };
                let (key, protection) = (target.key, target.protection);
                let guise = Guise { key, scheme, protection, transport, paths: 1 + rng.below(8) as u16 };
                liars.push_back(Liar::meet(to, &guise, target.rkey, rng.next_u64()));
                tally.restarts.fetch_add(1, Ordering::Relaxed);
            }
            1 => {
                if strangers.len() >= 4 {
                    strangers.pop_front();
                }
                let to = draw(&mut rng, &[target.device, target.endpoint]);
                strangers.push_back(Raw::new(to, &wrong, raw::hello("udmp", target.protection, 4)));
            }
            2 => strangers.iter_mut().for_each(Raw::try_in_vain),
            3 => caller(target.endpoint, &mut rng),
            4..=11 => {
                for _ in 0..20 {
                    let to = draw(&mut rng, &[target.device, target.endpoint]);
                    stranger(&socket, to, &overheard, &mut rng);
                }
                tally.strays.fetch_add(20, Ordering::Relaxed);
            }
            _ if !liars.is_empty() => {
                let liar = rng.below(liars.len() as u32) as usize;
                liars[liar].say(40);
                tally.lies.fetch_add(40, Ordering::Relaxed);
                overheard = liars[liar].said().to_vec();
            }
            _ => {}
        }
        // The honest peers need these cores, too.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A device and an endpoint under attack, and honest peers of both.
struct Honest {
    attacked: SocketAddr,
    configs: Configs,
    /// Device of the honest client, replaced when the client restarts.
    bystander: Device,
    near: Connection,
    far: Connection,
    listener: Listener,
    /// Memory of the honest client, which the server writes and reads.
    memory: Region,
    registered: Registration,
    /// Other ends of liars' connections, held by the server's application.
    lied_to: VecDeque<Connection>,
    client: RdmEndpoint,
    server: RdmEndpoint,
    to_server: Peer,
    to_client: Peer,
}

/// Address of honest peers. A peer is identified by its address: a liar that had the same port before would count as
/// the same peer, whose messages come first.
const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Configurations of honest peers.
struct Configs {
    device: DeviceConfig,
    datagrams: RdmConfig,
}

/// Accepts the connection from this address; connections that liars have opened meanwhile go to `lied_to`.
fn accept(listener: &Listener, from: SocketAddr, lied_to: &mut VecDeque<Connection>) -> Connection {
    loop {
        let connection = listener.accept(PATIENCE).expect("the other end of it");
        if connection.peer_addr() == from {
            return connection;
        }
        lied_to.push_back(connection);
    }
}

impl Honest {
    /// Replaces the honest client's process by a new one.
    fn restart(&mut self) {
        self.bystander = Device::open(self.configs.device.clone()).expect("a device");
        self.registered = self.bystander.register(&self.memory, Access::READ_WRITE).expect("a key");
        self.near = self.bystander.connect(self.attacked).expect("a connection");
        self.far = accept(&self.listener, self.bystander.local_addr(), &mut self.lied_to);
        self.client = RdmEndpoint::open(self.configs.datagrams.clone()).expect("an endpoint");
        self.to_server = self.client.insert(self.server.local_addr()).expect("room");
        self.to_client = self.server.insert(self.client.local_addr()).expect("room");
        self.client.reach(self.to_server).expect("an association");
    }

    /// Exchanges a message of each kind in both directions.
    fn exchange(&mut self, rng: &mut Rng, tally: &mut Tally, context: &str) {
        // Small messages are as likely as large ones.
        let most = LONGEST >> rng.below(17);
        let len = 1 + rng.below(most) as usize;
        let bytes = pattern(len, rng.below(1_000).into());
        let same = |region: &Region, what: &str| {
            assert!(region.to_vec(0..len).unwrap() == bytes, "{what}: {len} bytes are wrong; {context}");
        };
        let from = region_of(&bytes);
        for (sender, receiver) in [(&self.near, &self.far), (&self.far, &self.near)] {
            let room = Region::zeroed(len).unwrap();
            receiver.recv(1, room.all()).unwrap();
            sender.send(2, from.all()).unwrap();
            assert_eq!((done(receiver, 1), done(sender, 2)), (len as u64, len as u64), "{context}");
            same(&room, "SEND");
        }
        let there = self.registered.remote(0);
        self.far.write(3, from.all(), there).unwrap();
        assert_eq!(done(&self.far, 3), len as u64, "{context}");
        same(&self.memory, "WRITE");
        let back = Region::zeroed(len).unwrap();
        self.far.read(4, back.all(), there).unwrap();
        assert_eq!(done(&self.far, 4), len as u64, "{context}");
        same(&back, "READ");
        for (sender, to, receiver, of) in [
            (&self.client, self.to_server, &self.server, self.to_client),
            (&self.server, self.to_client, &self.client, self.to_server),
        ] {
            let room = Region::zeroed(len).unwrap();
            receiver.recv_from(of, 5, room.all()).unwrap();
            sender.send(6, to, from.all()).unwrap();
            let deadline = Instant::now() + PATIENCE;
            for (end, wr_id) in [(receiver, 5), (sender, 6)] {
                let completion = loop {
                    let completion = end.wait(PATIENCE).unwrap_or_else(|why| panic!("{why}; {context}"));
                    // Completions of liars' messages come in between.
                    if completion.wr_id == wr_id {
                        break completion;
                    }
                    assert!(Instant::now() < deadline, "{context}");
                };
                assert_eq!(completion.result(), Ok(len as u64), "datagram of {len} bytes; {context}");
            }
            same(&room, "datagram");
        }
        tally.messages += 6;
        tally.bytes += 6 * len as u64;
        self.meet_liars(rng);
        let states = [self.near.state(), self.far.state()];
        assert_eq!(states, [ConnectionState::Open; 2], "{context}");
    }

    /// Handles liars' connections in the server's application, and closes some of them.
    fn meet_liars(&mut self, rng: &mut Rng) {
        while let Some(connection) = self.listener.take() {
            self.lied_to.push_back(connection);
        }
        while self.lied_to.len() > HELD {
            self.lied_to.pop_front();
        }
        let room = Region::zeroed(5_000).unwrap();
        let there = Remote { address: rng.next_u64() >> 20, rkey: rng.next_u64() };
        for connection in &self.lied_to {
            while connection.poll().is_some() {}
            let _ = match rng.below(5) {
                0 => connection.recv(1, room.all()),
                1 => connection.send(2, room.all()),
                2 => connection.write(3, room.all(), there),
                3 => connection.read(4, room.all(), there),
                _ => Ok(()),
            };
        }
    }
}

/// Runs the life of a device and an endpoint.
fn life(seed: u64, time: Duration, tally: &mut Tally) {
    let mut rng = Rng::for_component(seed, "liars", 0);
    let key = ClusterKey::from_bytes([5; 32]);
    let protection = Protection::ALL[seed as usize % 3];
    let scheme = draw(&mut rng, &of_connections());
    let faults = Faults {
        lose: draw(&mut rng, &[0.0, 0.001, 0.005]),
        repeat: draw(&mut rng, &[0.0, 0.01]),
        reorder: draw(&mut rng, &[0.0, 0.01]),
        damage: draw(&mut rng, &[0.0, 0.001]),
        mark: draw(&mut rng, &[0.0, 0.05]),
        ..Faults::default()
    };
    let context = format!("seed {seed}, {scheme}, {protection}, {faults:?}");
    println!("{context}");
    let config = DeviceConfig {
        mtu_payload: 1_344,
        paths: 8,
        scheme: scheme.into(),
        protection,
        key: Some(key.clone()),
        peer_timeout: Duration::from_secs(10),
        connect_timeout: PATIENCE,
        seed: Some(seed),
        ..loopback()
    };
    let backend = UdpBackend::open(&config.udp()).expect("sockets");
    let attacked = Device::with_backend(config.clone(), Faulty::new(backend, faults, Cuts::default(), seed));
    let attacked = attacked.expect("a device");
    let device = DeviceConfig { bind: (HONEST, 0).into(), ..config.clone() };
    let bystander = Device::open(device.clone()).expect("a device");
    let listener = attacked.listen().expect("nobody listens yet");
    let near = bystander.connect(attacked.local_addr()).expect("a connection");
    let mut lied_to = VecDeque::new();
    let far = accept(&listener, bystander.local_addr(), &mut lied_to);
    let memory = Region::zeroed(LONGEST as usize + 1).expect("memory");
    let registered = bystander.register(&memory, Access::READ_WRITE).expect("a key");
    let open_to_liars =
        attacked.register(&Region::zeroed(20_000).unwrap(), Access::READ_WRITE).expect("a key");
    let mut datagrams =
        RdmConfig { peer_idle: REMEMBERED, unexpected_bytes: UNEXPECTED_BYTES, ..rdm_loopback() };
    datagrams.device =
        DeviceConfig { paths: RdmConfig::DEFAULT_PATHS, scheme: RdmConfig::DEFAULT_SCHEME.into(), ..config };
    let backend = UdpBackend::open(&datagrams.device.udp()).expect("sockets");
    let backend = Faulty::new(backend, faults, Cuts::default(), seed + 1);
    let server = RdmEndpoint::with_backend(datagrams.clone(), backend).expect("an endpoint");
    datagrams.device.bind = device.bind;
    let client = RdmEndpoint::open(datagrams.clone()).expect("an endpoint");
    let to_server = client.insert(server.local_addr()).expect("room");
    let to_client = server.insert(client.local_addr()).expect("room");
    client.reach(to_server).expect("an association");
    let target = Target {
        device: attacked.local_addr(),
        endpoint: server.local_addr(),
        key: &key,
        protection,
        rkey: open_to_liars.rkey(),
    };
    let mut honest = Honest {
        attacked: target.device,
        configs: Configs { device, datagrams },
        bystander,
        near,
        far,
        listener,
        memory,
        registered,
        lied_to,
        client,
        server,
        to_server,
        to_client,
    };
    let (stop, begin, mut resident) = (AtomicBool::new(false), Instant::now(), Vec::new());
    // The attackers' counters are added to the total at the end.
    let counts = Tally::default();
    std::thread::scope(|scope| {
        // Ends the attack even if this thread panics.
        struct Stops<'a>(&'a AtomicBool);
        impl Drop for Stops<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stops = Stops(&stop);
        scope.spawn(|| attack(&target, seed, &stop, &counts));
        while begin.elapsed() < time {
            honest.exchange(&mut rng, tally, &context);
            if begin.elapsed() >= time.mul_f64((resident.len() + 1) as f64 / LOOKS as f64) {
                resident.push(resident_kib());
                honest.restart();
            }
        }
    });
    for (sum, more) in [
        (&mut tally.lies, counts.lies),
        (&mut tally.restarts, counts.restarts),
        (&mut tally.strays, counts.strays),
    ] {
        *sum.get_mut() += more.into_inner();
    }
    let stats = attacked.stats().expect("the device lives");
    let of_datagrams = honest.server.stats().expect("the endpoint lives");
    assert_eq!(stats.panics, 0, "{context}");
    tally.refused += stats.refused_datagrams + of_datagrams.refused_datagrams;
    tally.malformed += stats.counters.malformed + of_datagrams.counters.malformed;
    println!(
        "  {} messages of the honest, {} MB; {} lies, {} liars, {} strays; {} datagrams refused, {} packets malformed; \
         {resident:?} KiB resident",
        tally.messages,
        tally.bytes / 1_000_000,
        tally.lies.get_mut(),
        tally.restarts.get_mut(),
        tally.strays.get_mut(),
        tally.refused,
        tally.malformed,
    );
    let warm = &resident[WARM_UP.min(resident.len())..];
    let (first, second) = warm.split_at(warm.len() / 2);
    if !first.is_empty() {
        let (before, after) = (median(first), median(second));
        assert!(
            after <= before + GROWTH_KIB,
            "memory grew from {before} to {after} KiB: {resident:?}; {context}"
        );
    }
}

#[test]
#[ignore = "takes as long as it is told to: make soak"]
fn soak() {
    let seconds = number("SOAK_SECONDS").unwrap_or(600);
    let first_seed = number("SOAK_SEED").unwrap_or(1);
    // Each life is long enough for growth to show, and all protections are covered.
    let time = Duration::from_millis((seconds * 1_000 / 3).clamp(2_000, 200_000));
    println!("soak beside liars: {seconds} s, first seed {first_seed} (SOAK_SECONDS, SOAK_SEED)");
    let (begin, mut tally, mut lives) = (Instant::now(), Tally::default(), 0);
    while begin.elapsed() < Duration::from_secs(seconds) || lives < 3 {
        life(first_seed + lives, time, &mut tally);
        lives += 1;
    }
    assert!(tally.refused > 0 && tally.malformed > 0, "the attacks got through to nobody");
}
