//! A thread that is delayed between two steps of posting.

use pathweave_transport::{Op, Opcode, Status};

use super::*;
use crate::shared::Start;
use crate::{Device, DeviceConfig, Event, Region};

const PATIENCE: Duration = Duration::from_secs(60);

/// Closes a connection, waits until the loop has removed it, and completes the post that was begun before.
fn post_late(device: &Device, near: &Connection) {
    near.shared.make_room(Side::Send).expect("it is open");
    near.shared.make_room(Side::Receive).expect("it is open");
    near.close();
    assert_eq!(near.wait_closed(PATIENCE), Ok(CloseReason::Local));
    while device.stats().expect("it is open").connections > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(near.ended(), None, "something is still to come");
    let memory: Slices = Region::zeroed(1).expect("memory").all().into();
    near.inner.ask(Command::PostRecv { id: near.id, wr_id: 1, memory: memory.clone() });
    near.inner.ask(Command::Post { id: near.id, wr_id: 2, op: Op::Send, memory, start: Start::InTurn });
}

#[test]
fn posts_to_a_forgotten_connection_are_flushed() {
    let (client, server) = [(); 2].map(|()| Device::open(DeviceConfig::loopback()).expect("a device")).into();
    let _listener = server.listen().expect("nobody listens yet");
    let near = client.connect(server.local_addr()).expect("a connection");
    post_late(&client, &near);
    let flushed = |done: Completion| (done.wr_id, done.opcode, done.status);
    assert_eq!(near.wait(PATIENCE).map(flushed), Ok((1, Opcode::Recv, Status::Flushed)));
    assert_eq!(near.wait(PATIENCE).map(flushed), Ok((2, Opcode::Send, Status::Flushed)));
    assert_eq!(near.wait(PATIENCE), Err(WaitError::ConnectionClosed(CloseReason::Local)));

    let events = client.events();
    events.connect(3, server.local_addr());
    let Ok(Event::Opened { connection: near, .. }) = events.wait(PATIENCE) else { panic!("it is open") };
    post_late(&client, &near);
    let next = || events.wait(PATIENCE).expect("an event");
    let Event::Completed(first) = next() else { panic!("a completion") };
    let Event::Completed(second) = next() else { panic!("a completion") };
    assert_eq!((first.wr_id, second.wr_id), (1, 2));
    let Event::Closed { connection, .. } = next() else { panic!("the end, at the end") };
    assert_eq!(connection, near.id());
}

#[test]
fn a_connection_goes_with_its_handle_whatever_was_left_in_it() {
    let (client, server) = [(); 2].map(|()| Device::open(DeviceConfig::loopback()).expect("a device")).into();
    let _listener = server.listen().expect("nobody listens yet");
    let memory = Region::zeroed(1).expect("memory");
    let near = client.connect(server.local_addr()).expect("a connection");
    let events = client.events();
    events.connect(3, server.local_addr());
    let Ok(Event::Opened { connection: other, .. }) = events.wait(PATIENCE) else { panic!("it is open") };
    let mut left = Vec::new();
    for connection in [near, other] {
        (0..10).for_each(|number| connection.recv(number, memory.all()).expect("it is open"));
        left.push(Arc::downgrade(&connection.shared));
    }
    // Their completions, flushed, are never taken.
    while client.stats().expect("it is open").connections > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(left[0].upgrade().is_none() && left[1].upgrade().is_some(), "one is in the stream");
    drop(events);
    assert!(left[1].upgrade().is_none());
}
