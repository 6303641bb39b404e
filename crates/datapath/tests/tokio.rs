//! The asynchronous interface: its example, dropped futures, and closes.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use pathweave_datapath::{CloseReason, DeviceConfig, PostError, Region, Slice, Status, aio};

#[path = "../examples/tokio.rs"]
mod example;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

async fn pair() -> (aio::Connection, aio::Connection) {
    let (server, client) = (device(), device());
    let listener = server.listen().unwrap();
    let near = client.connect(server.local_addr()).await.unwrap();
    (near, listener.accept().await.unwrap())
}

fn device() -> aio::Device {
    aio::Device::open(DeviceConfig::loopback()).unwrap()
}

fn bytes(text: &str) -> Slice {
    Region::from_bytes(text.as_bytes()).unwrap().all()
}

fn room() -> Slice {
    Region::zeroed(100).unwrap().all()
}

/// Polls a future once and drops it.
fn give_up<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

#[test]
fn dropped_futures_lose_no_message_and_recall_no_request() {
    run(async {
        let (near, far) = pair().await;
        for _ in 0..3 {
            far.give(room()).unwrap();
        }
        assert!(give_up(far.recv()).is_pending());
        // Two futures are dropped, and the third is awaited; all messages arrive, in order.
        drop(near.send(bytes("one")));
        let _ = give_up(near.send(bytes("two")));
        assert_eq!(near.send_imm(bytes("three"), 3).await.unwrap().byte_len, 5);
        for expected in ["one", "two", "three"] {
            let message = far.recv().await.unwrap();
            assert_eq!(message.to_vec().unwrap(), expected.as_bytes());
        }
        assert!(give_up(far.recv()).is_pending());
    });
}

#[test]
fn tasks_wait_for_each_other_on_one_connection() {
    run(async {
        let (near, far) = pair().await;
        (0..50).for_each(|_| far.give(room()).unwrap());
        let receiver = tokio::spawn(async move {
            for number in 0..50u32 {
                let message = far.recv().await.unwrap();
                assert_eq!((message.imm, message.len), (Some(number), 4));
            }
            far
        });
        let sent: Vec<_> = (0..50).map(|number| near.send_imm(bytes("word"), number)).collect();
        // In any order: here the last first.
        for request in sent.into_iter().rev() {
            request.await.unwrap();
        }
        receiver.await.unwrap();
    });
}

#[test]
fn an_accept_that_is_dropped_leaves_the_connection_to_the_next() {
    run(async {
        let (server, client) = (device(), device());
        let listener = server.listen().unwrap();
        assert!(give_up(listener.accept()).is_pending());
        let near = client.connect(server.local_addr()).await.unwrap();
        let far = listener.accept().await.unwrap();
        assert_eq!(far.peer_addr().ip(), client.local_addr().ip());
        drop(near);
        assert_eq!(far.closed().await, CloseReason::Peer);
    });
}

#[test]
fn the_end_of_a_connection_ends_all_that_waits() {
    run(async {
        let (near, far) = pair().await;
        near.give(room()).unwrap();
        let pending = near.send(bytes("never taken"));
        drop(far);
        assert_eq!(near.closed().await, CloseReason::Peer);
        let pending = pending.await;
        assert!(
            matches!(pending, Err(aio::RequestError::Failed(_) | aio::RequestError::Closed)),
            "{pending:?}"
        );
        assert_eq!(near.recv().await.unwrap_err(), aio::RequestError::Failed(Status::Flushed));
        assert_eq!(near.recv().await.unwrap_err(), aio::RequestError::Closed);
        let late = near.send(bytes("too late")).await;
        assert_eq!(late.unwrap_err(), aio::RequestError::Post(PostError::Closed));
    });
}

#[test]
fn abandoned_connects_leave_no_connection() {
    run(async {
        let client = device();
        // A socket that receives and never answers.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(give_up(client.connect(silent.local_addr().unwrap())).is_pending());
        assert_eq!(client.stats().unwrap().connections, 0, "given up");
        // Or the connection has opened, and is closed.
        let server = device();
        let listener = server.listen().unwrap();
        {
            let mut connect = pin!(client.connect(server.local_addr()));
            // The first poll sends the request; by the end of the poll the peer may have answered.
            let _asked = connect.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let far = listener.accept().await.unwrap();
            drop(far);
        }
        let near = client.connect_with(server.local_addr(), "udmp", b"hello").await.unwrap();
        assert_eq!((near.info().scheme.as_str(), near.peer_addr()), ("udmp", server.local_addr()));
        let nobody = client.connect_with(server.local_addr(), "none such", &[]).await;
        assert!(nobody.is_err());
    });
}
