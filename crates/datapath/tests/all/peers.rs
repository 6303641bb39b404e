//! Peers that come and go: idle ones make room, and no message is lost.

use std::time::{Duration, Instant};

use crate::support::endpoints::{open, stats};
use crate::support::{PATIENCE, pattern, rdm_loopback, region_of, until_or};
use pathweave_datapath::rdm::{Peer, RdmConfig, RdmEndpoint, RdmPeerState};
use pathweave_datapath::{Driving, Region};

/// Sends a message from one endpoint to the other, and one back.
fn talk(near: &RdmEndpoint, far: &RdmEndpoint, salt: u64) {
    let ends = [(near, far), (far, near)];
    for (from, to) in ends {
        let room = Region::zeroed(20_000).expect("memory");
        to.recv(salt, room.all()).expect("room");
        let peer = from.insert(to.local_addr()).expect("room");
        from.send(salt, peer, region_of(&pattern(20_000, salt)).all()).expect("room");
        let ends = || {
            format!(
                "salt {salt} from {:?} {:?}\nto {:?} {:?}",
                stats(from),
                from.peers(),
                stats(to),
                to.peers()
            )
        };
        assert_eq!(to.wait(PATIENCE).unwrap_or_else(|why| panic!("{why}: {}", ends())).result(), Ok(20_000));
        assert_eq!(
            from.wait(PATIENCE).unwrap_or_else(|why| panic!("{why}: {}", ends())).result(),
            Ok(20_000)
        );
        assert!(room.to_vec(0..20_000).expect("all of it") == pattern(20_000, salt));
    }
}

/// A client that only negotiates keys and disappears without Close leaves room for the next one.
#[test]
fn handshakes_alone_fill_no_table() {
    let server = open(&RdmConfig { max_peers: 4, ..rdm_loopback() });
    for n in 0..12 {
        let client = open(&rdm_loopback());
        let to = client.insert(server.local_addr()).expect("room");
        assert!(client.reach(to).is_ok(), "client {n}: {:?}", stats(&server));
    }
    assert!(stats(&server).peers <= 4);
}

/// Clients that exchange messages and close leave no state.
#[test]
fn a_client_that_closes_is_forgotten() {
    let server = open(&RdmConfig { max_peers: 4, ..rdm_loopback() });
    for n in 0..12 {
        let client = open(&rdm_loopback());
        talk(&client, &server, n);
    }
    until_or(|| stats(&server).peers == 0, || format!("{:?}", server.peers()));
    assert_eq!((stats(&server).associations, stats(&server).side.open), (0, 0));
}

/// Six active peers share four slots: each is forgotten when another needs its slot, and inserted again, and no
/// message is lost.
#[test]
fn more_peers_than_places_take_turns() {
    let server = open(&RdmConfig { max_peers: 4, ..rdm_loopback() });
    let clients: Vec<RdmEndpoint> = (0..6).map(|_| open(&rdm_loopback())).collect();
    for round in 0..3 {
        for (n, client) in (0..).zip(&clients) {
            talk(client, &server, 10 * round + n);
        }
        // A peer that is being retired may have had something to send.
        until_or(|| stats(&server).peers <= 4, || format!("{:?}", server.peers()));
    }
    // A peer with outstanding requests does not make room: here, a receive for it alone.
    let held: Vec<_> =
        (0..4).map(|port| format!("127.0.0.1:{}", 10 + port).parse().expect("an address")).collect();
    for address in held {
        let peer = server.insert(address).expect("room");
        server.recv_from(peer, 1, Region::zeroed(10).expect("memory").all()).expect("room");
    }
    let mut config = rdm_loopback();
    config.device.connect_timeout = Duration::from_secs(2);
    let late = open(&config);
    let refused = late.reach(late.insert(server.local_addr()).expect("room"));
    assert!(refused.is_err(), "{refused:?}, {:?}", server.peers());
}

/// A peer that is being retired, does not answer, and is named again by the application takes no slot from others.
#[test]
fn one_that_does_not_answer_blocks_nobody() {
    let server = open(&RdmConfig { max_peers: 3, ..rdm_loopback() });
    let mut config = rdm_loopback();
    config.device.driving = Driving::Caller;
    let silent = open(&config);
    let clients: Vec<RdmEndpoint> = (0..4).map(|_| open(&rdm_loopback())).collect();
    let reaches = |client: &RdmEndpoint| client.reach(client.insert(server.local_addr()).expect("room"));
    // The endpoint is not driven after this.
    reaches(&silent).expect("there is room");
    clients[..3]
        .iter()
        .for_each(|client| reaches(client).expect("the silent one, unused for longest, makes room"));
    let known = server.peers().expect("its loop runs");
    let left =
        known.iter().find(|known| known.peer.address() == clients[0].local_addr()).expect("it is known");
    server.remove(left.peer);
    server.insert(silent.local_addr()).expect("there is room");
    reaches(&clients[3]).expect("another one makes room");
    until_or(|| stats(&server).peers <= 3, || format!("{:?}", server.peers()));
}

/// Both ends forget each other after a while of silence, and meet again; names stay valid throughout.
#[test]
fn idle_peers_are_forgotten_and_their_names_are_not() {
    let config = RdmConfig { peer_idle: Duration::from_millis(100), ..rdm_loopback() };
    let (near, far) = (open(&config), open(&rdm_loopback()));
    let to = near.insert(far.local_addr()).expect("room");
    assert_eq!(near.peers().expect("its loop runs")[0].state, RdmPeerState::Known);
    for round in 0..3 {
        talk(&near, &far, round);
        let known = near.peers().expect("its loop runs");
        assert!(known.iter().all(|known| known.peer == to && known.outstanding == 0), "{known:?}");
        until_or(
            || stats(&near).peers == 0 && stats(&far).peers == 0,
            || format!("{:?} {:?}", near.peers(), far.peers()),
        );
        // The same name as before.
        let room = Region::zeroed(10).expect("memory");
        far.recv(1, room.all()).expect("room");
        near.send(2, to, region_of(b"again").all()).expect("room");
        assert_eq!(near.wait(PATIENCE).expect("a completion").peer, Some(to));
        assert_eq!(far.wait(PATIENCE).expect("a completion").result(), Ok(5));
    }
    assert!(stats(&near).counters.retransmitted < 20 && stats(&near).counters.messages_aborted == 0);
}

#[test]
fn peers_are_listed_and_removed() {
    let mut config = rdm_loopback();
    config.unexpected_bytes = 1_000;
    let (near, far) = (open(&config), open(&config));
    let to = near.insert(far.local_addr()).expect("room");
    near.reach(to).expect("it is there");
    let only = |endpoint: &RdmEndpoint| {
        let known = endpoint.peers().expect("its loop runs");
        assert_eq!(known.len(), 1);
        known[0]
    };
    assert_eq!((only(&near).peer, only(&near).state, only(&near).outstanding), (to, RdmPeerState::Open, 0));
    assert!(only(&near).idle.is_some_and(|idle| idle < PATIENCE));
    // The message waits there for a receive.
    near.send(1, to, region_of(&[1; 20_000]).all()).expect("room");
    until_or(|| stats(&far).waiting_peers == 1, || format!("{:?}", stats(&far)));
    assert_eq!((only(&near).outstanding, only(&far).peer.address()), (1, near.local_addr()));
    near.remove(to);
    assert!(!near.wait(PATIENCE).expect("a completion").is_success());
    assert!(near.peers().expect("its loop runs").is_empty());
    // A removed peer may be used again.
    talk(&near, &far, 3);
}

/// Messages posted at random times, mostly while one end, the other or both are about to forget each other: none is
/// lost, duplicated or failed.
#[test]
fn no_message_is_lost_for_a_peer_that_is_forgotten() {
    let config = RdmConfig { peer_idle: Duration::from_millis(10), ..rdm_loopback() };
    let (near, far) = (open(&config), open(&config));
    let ends = [(&near, near.insert(far.local_addr())), (&far, far.insert(near.local_addr()))];
    let mut rng = pathweave_units::Rng::for_component(20_261_122, "pauses", 0);
    for n in 0..80u64 {
        let from = rng.below(2) as usize;
        let both = rng.bernoulli(0.5);
        for (end, to) in &ends {
            end.recv(1_000 + n, Region::zeroed(8).expect("memory").all()).expect("room");
            if both || *to == ends[from].1 {
                end.send(n, *to.as_ref().expect("room"), region_of(&n.to_be_bytes()).all()).expect("room");
            }
        }
        let messages = if both { 2 } else { 1 };
        let mut done = 0;
        let deadline = Instant::now() + PATIENCE;
        while done < 2 * messages {
            assert!(Instant::now() < deadline, "message {n}: {:?} {:?}", stats(&near), stats(&far));
            for (end, _) in &ends {
                if let Some(completion) = end.poll() {
                    assert_eq!(completion.result(), Ok(8), "message {n}: {completion:?}");
                    done += 1;
                }
            }
        }
        // Idle peers are searched for every 10 to 200 ms.
        std::thread::sleep(Duration::from_millis(u64::from(rng.below(60))));
    }
}

/// Messages without a receive outlive their senders, and occupy no slots of peers.
#[test]
fn messages_of_departed_peers_take_no_place_and_are_kept() {
    let config = RdmConfig { max_peers: 4, peer_idle: Duration::from_millis(50), ..rdm_loopback() };
    let server = open(&config);
    let mut senders = vec![];
    let send = |client: &RdmEndpoint, salt: u64| {
        let to = client.insert(server.local_addr()).expect("room");
        client.send(salt, to, region_of(&pattern(3_000, salt)).all()).expect("room");
        assert_eq!(client.wait(PATIENCE).expect("a completion").result(), Ok(3_000), "message {salt}");
    };
    for salt in 0..12 {
        let client = open(&rdm_loopback());
        send(&client, salt);
        senders.push(client.local_addr());
    }
    let stays = open(&config);
    send(&stays, 12);
    until_or(|| stats(&server).peers == 0, || format!("{:?}", server.peers()));
    assert!(stats(&server).kept_bytes >= 13 * 3_000);
    // All its messages belong to one sender, forgotten in between or not, and keep their order.
    send(&stays, 13);
    senders.extend([stays.local_addr(); 2]);
    let receive = |from: Option<std::net::SocketAddr>, salt: u64| {
        let room = Region::zeroed(3_000).expect("memory");
        let posted = match from {
            Some(from) => server.recv_from(server.insert(from).expect("room"), salt, room.all()),
            None => server.recv(salt, room.all()),
        };
        posted.expect("room");
        let done = server.wait(PATIENCE).expect("a completion");
        assert_eq!((done.result(), done.peer.map(Peer::address)), (Ok(3_000), Some(senders[salt as usize])));
        assert!(room.to_vec(0..3_000).expect("all of it") == pattern(3_000, salt), "message {salt}");
    };
    [12, 13, 5].into_iter().for_each(|salt| receive(Some(senders[salt as usize]), salt));
    (0..12).filter(|&salt| salt != 5).for_each(|salt| receive(None, salt));
    assert_eq!(stats(&server).kept_bytes, 0);
}
