//! Many connections in one event stream: opened without waiting, with events in order, and with a hook of the loop.

#[path = "../examples/events.rs"]
mod example;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use pathweave_datapath::backend::{
    Arrivals, Backend, Limits, Received, SendBatch, Sent, UdpBackend, Wait, Waker,
};
use pathweave_datapath::secure::{ClusterKey, Protection, Refusal};
use pathweave_datapath::{
    Access, CloseReason, ConnectError, Connection, ConnectionId, ConnectionState, Device, DeviceConfig,
    Driving, Event, Events, OpenError, PostError, Region, Registration, Remote, Slices, Status, WaitError,
};
use support::{PATIENCE, Pair, done, loopback, pattern, region_of, until};

fn config() -> DeviceConfig {
    DeviceConfig { mtu_payload: 1_344, paths: 4, ..loopback() }
}

fn encrypted() -> DeviceConfig {
    let key = Some(ClusterKey::from_bytes([7; 32]));
    DeviceConfig { protection: Protection::Encrypt, key, ..config() }
}

fn open(config: &DeviceConfig) -> Device {
    Device::open(config.clone()).expect("a device")
}

#[track_caller]
fn opened(events: &Events) -> (u64, Connection) {
    match events.wait(PATIENCE).expect("an event") {
        Event::Opened { token, connection } => (token, connection),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn accepted(events: &Events) -> Connection {
    match events.wait(PATIENCE).expect("an event") {
        Event::Accepted(connection) => connection,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(events: &Events) -> (u64, ConnectError) {
    match events.wait(PATIENCE).expect("an event") {
        Event::Refused { token, error } => (token, *error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

#[test]
fn the_outcome_of_an_attempt_is_an_event() {
    let (client, server) = (open(&config()), open(&config()));
    let (calls, answers) = (client.events(), server.events());
    let peer = server.local_addr();
    calls.connect(1, peer);
    assert_eq!(refused(&calls), (1, ConnectError::NobodyListens { peer }));
    let accepting = answers.accept().unwrap();
    assert!(matches!(answers.accept().unwrap_err(), OpenError::System { .. }), "one at a time");
    calls.connect_with(2, peer, "udmp", b"who I am");
    let (token, near) = opened(&calls);
    let far = accepted(&answers);
    assert_eq!(
        (token, near.state(), far.info().private_data.as_slice()),
        (2, ConnectionState::Open, &b"who I am"[..])
    );
    assert_eq!(near.info().scheme, "udmp");
    let other_family = "[::1]:9".parse().unwrap();
    calls.connect(3, other_family);
    let local = client.local_addr();
    assert_eq!(refused(&calls), (3, ConnectError::Family { peer: other_family, local }));
    calls.connect_with(4, peer, "no such scheme", &[]);
    assert!(matches!(refused(&calls), (4, ConnectError::Config(_))));
    assert!(calls.connect_in(&server.domain().unwrap(), 5, peer, "weave", &[]).is_err());
    near.close();
    let event = answers.wait(PATIENCE).unwrap();
    assert!(
        matches!(&event, Event::Closed { connection, reason: CloseReason::Peer } if *connection == far.id()),
        "{event:?}"
    );
    let event = calls.wait(PATIENCE).unwrap();
    assert!(
        matches!(&event, Event::Closed { connection, reason: CloseReason::Local } if *connection == near.id()),
        "{event:?}"
    );
    drop(accepting);
    calls.connect(6, peer);
    assert_eq!(refused(&calls), (6, ConnectError::NobodyListens { peer }));
    assert_eq!(calls.wait(Duration::ZERO).unwrap_err(), WaitError::Timeout(Duration::ZERO));
}

#[test]
fn an_attempt_that_nobody_answers_ends_in_time_or_when_it_is_given_up() {
    let client = open(&DeviceConfig { connect_timeout: Duration::from_secs(1), ..config() });
    let calls = client.events();
    // A socket that receives and never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = silent.local_addr().unwrap();
    let start = Instant::now();
    calls.connect(1, peer);
    let given_up = calls.connect(2, peer);
    given_up.give_up();
    // Had the first call waited for its end, that end would come first.
    assert_eq!(refused(&calls), (2, ConnectError::GivenUp));
    assert!(matches!(refused(&calls), (1, ConnectError::Unreachable { .. })));
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(client.stats().unwrap().connections, 0);
    // A connection that has opened is closed.
    let server = open(&config());
    let answers = server.events();
    let _accepting = answers.accept().unwrap();
    let attempt = calls.connect(3, server.local_addr());
    let (_, near) = opened(&calls);
    attempt.give_up();
    assert_eq!(near.wait_closed(PATIENCE), Ok(CloseReason::Local));
}

/// Events of each connection, in order.
#[derive(Default)]
struct Log {
    open: BTreeMap<ConnectionId, Connection>,
    order: BTreeMap<ConnectionId, Vec<&'static str>>,
    received: BTreeMap<ConnectionId, u64>,
    sent: BTreeMap<ConnectionId, u64>,
}

const CROWD: u64 = 120;
const MESSAGES: u64 = 10;
const RECEIVE: u64 = 1 << 32;

impl Log {
    fn note(&mut self, event: Event, room: &Region) {
        match event {
            Event::Opened { connection, .. } | Event::Accepted(connection) => {
                for number in 0..MESSAGES {
                    connection.recv(RECEIVE + number, room.all()).unwrap();
                }
                for number in 0..MESSAGES {
                    connection.send(number, room.all()).unwrap();
                }
                assert!(self.order.insert(connection.id(), vec!["open"]).is_none());
                self.open.insert(connection.id(), connection);
            }
            Event::Completed(done) => {
                assert_eq!(done.status, Status::Success, "{done:?}");
                self.order.get_mut(&done.connection).expect("it was opened first").push("done");
                let count = if done.wr_id >= RECEIVE { &mut self.received } else { &mut self.sent };
                let count = count.entry(done.connection).or_default();
                assert_eq!(done.wr_id % RECEIVE, *count, "in order");
                *count += 1;
            }
            Event::Closed { connection, .. } => {
                self.order.get_mut(&connection).expect("it was opened first").push("closed");
                self.open.remove(&connection);
            }
            other => panic!("{other:?}"),
        }
    }
    fn is_done(&self) -> bool {
        let all = |counts: &BTreeMap<_, u64>| counts.values().sum::<u64>() == CROWD * MESSAGES;
        all(&self.received) && all(&self.sent)
    }
}

#[test]
fn of_each_connection_everything_comes_once_and_in_order() {
    let (client, server) = (open(&encrypted()), open(&encrypted()));
    let (calls, answers) = (client.events(), server.events());
    let _accepting = answers.accept().unwrap();
    for token in 0..CROWD {
        calls.connect(token, server.local_addr());
    }
    let room = Region::zeroed(3_000).unwrap();
    let (mut near, mut far) = (Log::default(), Log::default());
    let start = Instant::now();
    let look = |near: &mut Log, far: &mut Log| {
        for (events, log) in [(&calls, near), (&answers, far)] {
            while let Some(event) = events.poll() {
                log.note(event, &room);
            }
        }
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    };
    while !(near.is_done() && far.is_done()) {
        look(&mut near, &mut far);
    }
    near.open.values().for_each(Connection::close);
    while !(near.open.is_empty() && far.open.is_empty()) {
        look(&mut near, &mut far);
    }
    for log in [near, far] {
        let mut whole = vec!["open"];
        whole.extend(["done"; 2 * MESSAGES as usize]);
        whole.push("closed");
        assert_eq!(log.order.len() as u64, CROWD);
        assert!(log.order.values().all(|order| *order == whole));
    }
    assert!(calls.poll().is_none() && answers.poll().is_none());
}

#[test]
fn the_end_comes_last_however_late_something_is_posted() {
    let (client, server) = (open(&config()), open(&config()));
    let (calls, answers) = (client.events(), server.events());
    let _accepting = answers.accept().unwrap();
    let room = Region::zeroed(100).unwrap();
    for round in 0..100 {
        calls.connect(round, server.local_addr());
        let (_, near) = opened(&calls);
        let far = accepted(&answers);
        let posted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        match near.recv(1, room.all()) {
                            Ok(()) => posted.fetch_add(1, Ordering::Relaxed),
                            Err(PostError::Closed) => break,
                            Err(PostError::Full { .. }) => 0,
                            Err(other) => panic!("{other}"),
                        };
                    }
                });
            }
            let mut done = 0;
            // Either end closes.
            if round % 2 == 0 {
                near.close();
            } else {
                far.close();
            }
            loop {
                match calls.wait(PATIENCE).expect("an event") {
                    Event::Completed(completion) => {
                        assert_eq!((completion.connection, completion.status), (near.id(), Status::Flushed));
                        done += 1;
                    }
                    Event::Closed { connection, .. } => {
                        assert_eq!(connection, near.id());
                        break;
                    }
                    other => panic!("{other:?}"),
                }
            }
            // Posting is not possible any more, so the number of posts is final.
            assert_eq!(near.recv(1, room.all()), Err(PostError::Closed));
            let give_up = Instant::now() + PATIENCE;
            while posted.load(Ordering::Relaxed) != done {
                assert!(Instant::now() < give_up, "{done} of {posted:?}");
                std::thread::yield_now();
            }
            assert!(calls.poll().is_none());
        });
        match answers.wait(PATIENCE).unwrap() {
            Event::Closed { connection, .. } => assert_eq!(connection, far.id()),
            other => panic!("{other:?}"),
        }
    }
}

/// An application that works in the loop's thread.
struct Engine {
    events: Events,
    device: Device,
    room: Region,
    open: Mutex<BTreeMap<ConnectionId, Connection>>,
    received: AtomicU32,
    calls: AtomicU32,
    /// Number of messages to send as soon as a connection is open.
    talks: u64,
}

impl Engine {
    fn start(config: &DeviceConfig, talks: u64) -> Arc<Self> {
        let device = open(config);
        let engine = Arc::new(Engine {
            events: device.events(),
            room: Region::zeroed(2_000).unwrap(),
            open: Mutex::default(),
            received: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            talks,
            device: device.clone(),
        });
        let weak = Arc::downgrade(&engine);
        device.set_hook(move || weak.upgrade().iter().for_each(|engine| engine.look())).unwrap();
        engine
    }

    fn look(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        while let Some(event) = self.events.take() {
            match event {
                Event::Opened { connection, .. } | Event::Accepted(connection) => {
                    for number in 0..32 {
                        connection.recv(number, self.room.all()).unwrap();
                    }
                    for number in 0..self.talks {
                        connection.send(RECEIVE + number, self.room.all()).unwrap();
                    }
                    self.open.lock().unwrap().insert(connection.id(), connection);
                }
                Event::Completed(done) if done.status == Status::Success && done.wr_id < RECEIVE => {
                    self.received.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn receives_that_the_hook_posts_are_there_before_the_first_message() {
    for config in [encrypted(), config()] {
        let (client, server) = (Engine::start(&config, 4), Engine::start(&config, 4));
        let _accepting = server.events.accept().unwrap();
        for token in 0..100 {
            client.events.connect(token, server.device.local_addr());
        }
        for engine in [&client, &server] {
            until("all messages arrive", || engine.received.load(Ordering::Relaxed) == 400);
            let counters = engine.device.stats().unwrap().counters;
            assert_eq!(counters.rnr_drops, 0, "{:?}", config.protection);
        }
    }
}

#[test]
fn a_hook_may_be_the_last_to_hold_its_device() {
    for round in 0..40 {
        let server = open(&config());
        let _listener = server.listen().unwrap();
        let driving = if round % 2 == 0 { Driving::Thread { core: None } } else { Driving::Standby };
        let device = open(&DeviceConfig { driving, ..config() });
        let events = device.events();
        // Owned by the hook alone, and dropped there at the next event.
        let held = Arc::new(Mutex::new(None));
        let gone = Arc::new(AtomicBool::new(false));
        let (mine, told) = (held.clone(), gone.clone());
        device
            .set_hook(move || {
                if let Some(held) = mine.lock().unwrap().take() {
                    drop::<(Device, Events)>(held);
                    told.store(true, Ordering::Release);
                }
            })
            .unwrap();
        let address = device.local_addr();
        let mut to_hook = held.lock().unwrap();
        events.connect(round, server.local_addr());
        *to_hook = Some((device, events));
        drop(to_hook);
        until("the hook lets go", || gone.load(Ordering::Acquire));
        until("its port is free", || std::net::UdpSocket::bind(address).is_ok());
    }
}

#[test]
fn a_hook_that_panics_or_waits_for_its_own_loop_harms_nobody() {
    let (client, server) = (open(&config()), open(&config()));
    let waits = Arc::new(OnceLock::<Weak<(Device, AtomicU32)>>::new());
    let seen = waits.clone();
    client
        .set_hook(move || {
            if let Some(both) = seen.get().and_then(Weak::upgrade) {
                both.1.fetch_add(1, Ordering::Relaxed);
                // This call would wait forever.
                both.0.stats();
            }
        })
        .unwrap();
    assert!(client.set_hook(|| ()).is_err());
    server.set_hook(|| panic!("a hook that panics, as it should")).unwrap();
    let both = Arc::new((client.clone(), AtomicU32::new(0)));
    waits.set(Arc::downgrade(&both)).unwrap();
    let pair = Pair::of(client, server);
    for number in 0..10 {
        pair.far.recv(number, Region::zeroed(100).unwrap().all()).unwrap();
        pair.near.send(number, region_of(b"a message").all()).unwrap();
        assert_eq!((done(&pair.near, number), done(&pair.far, number)), (9, 9));
    }
    assert!(both.1.load(Ordering::Relaxed) > 0);
    for device in [&pair.client, &pair.server] {
        assert!(device.stats().unwrap().panics > 0);
    }
}

#[test]
fn where_callers_turn_the_loop_those_who_post_do_not_call_the_hook() {
    let config = DeviceConfig { driving: Driving::Caller, ..config() };
    let (client, server) = (Engine::start(&config, 0), Engine::start(&config, 0));
    let _accepting = server.events.accept().unwrap();
    let turn = || {
        [&client, &server].iter().for_each(|engine| {
            engine.device.progress();
        });
    };
    client.events.connect(1, server.device.local_addr());
    let number_open = |engine: &Engine| engine.open.lock().unwrap().len();
    until("both ends are open", || {
        turn();
        number_open(&client) == 1 && number_open(&server) == 1
    });
    // As if the hook needed a lock that this thread holds.
    let held = client.open.lock().unwrap();
    let near = held.values().next().unwrap();
    let calls = client.calls.load(Ordering::Relaxed);
    for number in 0..16 {
        near.send(RECEIVE + number, client.room.all()).unwrap();
        server.device.progress();
    }
    assert_eq!(client.calls.load(Ordering::Relaxed), calls);
    drop(held);
    until("all messages arrive", || {
        turn();
        server.received.load(Ordering::Relaxed) == 16
    });
    until("the hook hears of what they did", || {
        turn();
        client.calls.load(Ordering::Relaxed) > calls
    });
}

#[test]
fn completions_come_before_the_end_of_the_peer() {
    let (client, server) = (open(&config()), open(&config()));
    let listener = server.listen().unwrap();
    let events = client.events();
    events.connect(1, server.local_addr());
    let (_, near) = opened(&events);
    let far = listener.accept(PATIENCE).unwrap();
    near.recv(9, Region::zeroed(10).unwrap().all()).unwrap();
    drop((server, listener, far));
    let Event::Completed(flushed) = events.wait(PATIENCE).unwrap() else { panic!("a completion") };
    assert_eq!((flushed.wr_id, flushed.status), (9, Status::Flushed));
    let Event::Closed { reason, .. } = events.wait(PATIENCE).unwrap() else { panic!("the end") };
    assert_eq!(reason, CloseReason::Peer);
    assert!(events.ended().is_none());
}

/// Sockets that fail permanently on request.
struct Dying {
    sockets: UdpBackend,
    dead: Arc<AtomicBool>,
}

impl Backend for Dying {
    fn paths(&self) -> u16 {
        self.sockets.paths()
    }
    fn local_addr(&self) -> std::net::SocketAddr {
        self.sockets.local_addr()
    }
    fn limits(&self) -> Limits {
        self.sockets.limits()
    }
    fn send(&mut self, batch: &SendBatch<'_>) -> std::io::Result<Sent> {
        self.sockets.send(batch)
    }
    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> std::io::Result<Arrivals> {
        if self.dead.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("the cable is cut"));
        }
        self.sockets.receive(sink)
    }
    fn wait(&mut self, wait: Wait) -> std::io::Result<()> {
        self.sockets.wait(wait)
    }
    fn waker(&self) -> Waker {
        self.sockets.waker()
    }
}

#[test]
fn the_end_of_the_loop_reaches_events_and_hook() {
    let dead = Arc::new(AtomicBool::new(false));
    let sockets = UdpBackend::open(&config().udp()).unwrap();
    let client = Device::with_backend(config(), Dying { sockets, dead: dead.clone() }).unwrap();
    let server = open(&config());
    let _listener = server.listen().unwrap();
    let events = client.events();
    let ends = Arc::new(AtomicU32::new(0));
    let (told, watched) = (ends.clone(), Arc::new(OnceLock::<Events>::new()));
    let watch = Arc::downgrade(&watched);
    client
        .set_hook(move || {
            let ended = watch.upgrade().and_then(|events| events.get().and_then(Events::ended));
            told.fetch_add(ended.is_some().into(), Ordering::Relaxed);
        })
        .unwrap();
    watched.set(events.clone()).unwrap();
    events.connect(1, server.local_addr());
    let (_, near) = opened(&events);
    let memory = Region::zeroed(10).unwrap();
    near.recv(9, memory.all()).unwrap();
    let registration = client.register_at(&memory, 0, Access::READ).unwrap();
    dead.store(true, Ordering::Relaxed);
    // Work that wakes the loop.
    near.send(8, memory.all()).unwrap();
    let mut flushed = BTreeSet::new();
    loop {
        match events.wait(PATIENCE).unwrap() {
            Event::Completed(done) => assert!(flushed.insert(done.wr_id), "{done:?}"),
            Event::Closed { reason, .. } => break assert_eq!(reason, CloseReason::DeviceClosed),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(flushed, BTreeSet::from([8, 9]));
    assert!(matches!(events.wait(PATIENCE), Err(WaitError::DeviceClosed(_))));
    until("the hook hears of it", || ends.load(Ordering::Relaxed) == 1);
    assert!(client.register_at(&memory, 0, Access::READ).is_err());
    events.release(registration, 3);
    events.connect(4, server.local_addr());
    assert!(matches!(events.poll(), Some(Event::Refused { token: 4, .. })));
}

#[test]
fn connections_that_nobody_has_taken_end_with_their_events() {
    let (client, server) = (open(&config()), open(&config()));
    let answers = server.events();
    let accepting = answers.accept().unwrap();
    let near = client.connect(server.local_addr()).unwrap();
    until("it is accepted", || server.stats().unwrap().connections == 1);
    drop((accepting, answers));
    assert_eq!(near.wait_closed(PATIENCE), Ok(CloseReason::Peer));
    // The same for a connection whose handshake is in progress then.
    let calls = client.events();
    let answers = server.events();
    let accepting = answers.accept().unwrap();
    calls.connect(1, server.local_addr());
    drop(calls);
    let far = match answers.wait(PATIENCE) {
        Ok(Event::Accepted(far)) => far,
        other => panic!("{other:?}"),
    };
    assert_eq!(far.wait_closed(PATIENCE), Ok(CloseReason::Peer));
    drop(accepting);
}

#[test]
fn a_region_is_open_to_what_follows_from_what_is_posted_behind_it() {
    const BYTES: usize = 3_000;
    let (client, server) = (open(&config()), open(&config()));
    let (calls, answers) = (client.events(), server.events());
    let _accepting = answers.accept().unwrap();
    calls.connect(1, server.local_addr());
    let (_, near) = opened(&calls);
    let far = accepted(&answers);
    let told = Region::zeroed(8).unwrap();
    let mut keys = BTreeSet::new();
    for round in 0..300u64 {
        near.recv(0, told.all()).unwrap();
        let memory = Region::zeroed(BYTES).unwrap();
        let registered = match round % 2 {
            0 => server.register_at(&memory, round, Access::WRITE).unwrap(),
            _ => far.register_at(&memory, round, Access::WRITE).unwrap(),
        };
        assert!(keys.insert(registered.rkey()), "a key of its own each time");
        far.send(round, region_of(&registered.rkey().to_be_bytes()).all()).unwrap();
        let Event::Completed(arrived) = calls.wait(PATIENCE).unwrap() else { panic!("a message") };
        assert_eq!((arrived.wr_id, arrived.status), (0, Status::Success));
        let rkey = u64::from_be_bytes(told.to_vec(0..8).unwrap().try_into().unwrap());
        near.write(1, region_of(&pattern(BYTES, round)).all(), Remote { address: round, rkey }).unwrap();
        let Event::Completed(written) = calls.wait(PATIENCE).unwrap() else { panic!("a completion") };
        assert_eq!((written.wr_id, written.status), (1, Status::Success));
        assert_eq!(memory.to_vec(0..BYTES).unwrap(), pattern(BYTES, round));
        let Event::Completed(sent) = answers.wait(PATIENCE).unwrap() else { panic!("a completion") };
        assert_eq!(sent.wr_id, round);
        answers.release(registered, round);
        let Event::Released { token } = answers.wait(PATIENCE).unwrap() else { panic!("it is closed") };
        assert_eq!(token, round);
    }
    let memory = Region::zeroed(10).unwrap();
    assert!(server.register_at(&memory, u64::MAX - 5, Access::WRITE).is_err());
    // A key that has been closed grants no access.
    let rkey = *keys.first().unwrap();
    near.write(2, memory.all(), Remote { address: 0, rkey }).unwrap();
    let Event::Completed(denied) = calls.wait(PATIENCE).unwrap() else { panic!("a completion") };
    assert_eq!((denied.wr_id, denied.status), (2, Status::RemoteAccess));
}

#[test]
fn a_region_that_is_being_read_is_released_when_it_has_been() {
    const BYTES: usize = 24 << 20;
    let (client, server) = (open(&config()), open(&config()));
    let answers = server.events();
    let _accepting = answers.accept().unwrap();
    let near = client.connect(server.local_addr()).unwrap();
    let _far = accepted(&answers);
    let bytes = pattern(BYTES, 3);
    let source: Registration = server.register(&region_of(&bytes), Access::READ).unwrap();
    let place = source.remote(0);
    let target = Region::zeroed(BYTES).unwrap();
    near.read(1, target.all(), place).unwrap();
    until("the first bytes are here", || target.to_vec(0..64).unwrap() == bytes[..64]);
    answers.release(source, 5);
    // The READ in progress continues, though new ones are refused.
    assert_eq!(done(&near, 1), BYTES as u64);
    assert!(target.to_vec(0..BYTES).unwrap() == bytes);
    let Event::Released { token: 5 } = answers.wait(PATIENCE).unwrap() else { panic!("it is closed") };
    near.read(2, target.all(), place).unwrap();
    assert_eq!(near.wait(PATIENCE).unwrap().status, Status::RemoteAccess);
}

#[test]
fn messages_are_put_together_from_slices_and_taken_apart_into_others() {
    let pair = Pair::with(&config());
    let bytes = pattern(10_000, 1);
    let source = region_of(&bytes);
    let cut = |region: &Region, ends: &[usize]| {
        let starts = [0].into_iter().chain(ends.iter().copied());
        let slices = starts.zip(ends).map(|(start, &end)| region.slice(start..end).unwrap());
        Slices::of(slices.collect::<Vec<_>>()).unwrap()
    };
    let from = [1, 40, 40, 1_400, 5_000, 9_999, 10_000];
    // SEND; the receiver's pieces end at other offsets than the packets and the sender's pieces.
    let room = Region::zeroed(10_000).unwrap();
    pair.far.recv(1, cut(&room, &[7, 1_344, 1_345, 6_000, 10_000])).unwrap();
    pair.near.send(2, cut(&source, &from)).unwrap();
    assert_eq!((done(&pair.near, 2), done(&pair.far, 1)), (10_000, 10_000));
    assert!(room.to_vec(0..10_000).unwrap() == bytes);
    // WRITE gathered from pieces, and READ scattered into others.
    let board = pair.board(10_000, Access::READ_WRITE);
    pair.near.write(3, cut(&source, &from), board.remote(0)).unwrap();
    assert_eq!(done(&pair.near, 3), 10_000);
    assert!(board.region().to_vec(0..10_000).unwrap() == bytes);
    let back = Region::zeroed(10_000).unwrap();
    pair.near.fenced().read(4, cut(&back, &[1, 2, 3, 4, 5, 6, 7, 10_000]), board.remote(0)).unwrap();
    assert_eq!(done(&pair.near, 4), 10_000);
    assert!(back.to_vec(0..10_000).unwrap() == bytes);
    // An empty message is valid, too.
    pair.far.recv(5, Slices::of([]).unwrap()).unwrap();
    pair.near.send_imm(6, Slices::of([]).unwrap(), 77).unwrap();
    assert_eq!(done(&pair.near, 6), 0);
    assert_eq!(pair.far.wait(PATIENCE).unwrap().imm, Some(77));
}

#[test]
fn as_much_may_be_posted_as_was_configured() {
    let pair = Pair::with(&DeviceConfig { queue_depth: 2, ..config() });
    let room = Region::zeroed(10).unwrap();
    let post = |number| pair.near.recv(number, room.all());
    assert_eq!([post(1), post(2), post(3)], [Ok(()), Ok(()), Err(PostError::Full { limit: 2 })]);
    pair.far.send(4, room.all()).unwrap();
    assert_eq!(done(&pair.near, 1), 10);
    assert_eq!(pair.near.recv(5, room.all()), Ok(()));
}

#[test]
fn as_many_are_half_open_as_was_configured() {
    const DIALS: u64 = 40;
    let client = open(&config());
    let calls = client.events();
    let outcome = |config: &DeviceConfig| {
        let server = open(config);
        let answers = server.events();
        let _accepting = answers.accept().unwrap();
        (0..DIALS).for_each(|token| drop(calls.connect(token, server.local_addr())));
        let mut open = Vec::new();
        let mut refused = 0;
        while open.len() as u64 + refused < DIALS {
            match calls.wait(PATIENCE).unwrap() {
                Event::Opened { connection, .. } => open.push(connection),
                Event::Refused { error, .. } => {
                    let limit = matches!(&*error, ConnectError::Refused { reason, .. } if
                        [Refusal::PeerLimit, Refusal::Busy].contains(reason));
                    assert!(limit, "{error}");
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        let far: Vec<_> = open.iter().map(|_| accepted(&answers)).collect();
        drop(far);
        for _ in &open {
            let Event::Closed { .. } = calls.wait(PATIENCE).unwrap() else { panic!("the end") };
        }
        refused
    };
    assert_eq!(outcome(&config()), 0);
    // All requests come at once, and an answer takes a round trip.
    assert!(outcome(&DeviceConfig { max_half_open_per_peer: 1, ..config() }) > 0);
    assert!(outcome(&DeviceConfig { max_half_open: 1, ..config() }) > 0);
}

/// Returns the masks of blocked signals of all threads whose name is that of a loop at this port.
fn blocked_by_the_loop(port: u16) -> Vec<u64> {
    let mut masks = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if field("Name:") == Some(&format!("pathweave-{port}")) {
            masks.push(u64::from_str_radix(field("SigBlk:").unwrap(), 16).unwrap());
        }
    }
    masks
}

#[test]
fn signals_are_not_for_the_loop() {
    let own = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find_map(|line| line.strip_prefix("SigBlk:")).map(str::to_owned).unwrap()
    };
    let before = own();
    let device = open(&config());
    assert_eq!(own(), before, "the caller's are as they were");
    let masks = blocked_by_the_loop(device.local_addr().port());
    assert_eq!(masks.len(), 1);
    // All signals but SIGKILL (9) and SIGSTOP (19), and 32 and 33, which the C library reserves.
    let blockable = !(1 << 8 | 1 << 18 | 1 << 31 | 1u64 << 32);
    assert_eq!(masks[0] & blockable, blockable, "{:#x}", masks[0]);
}
