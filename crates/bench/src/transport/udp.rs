//! Plain UDP as an upper bound, with the same segmentation offload. Its ends run as separate processes.

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use pathweave_heap::usage::process_cpu;
use serde_json::{Value, json};

/// Largest number of bytes and segments in one send.
const SEND_BYTES: usize = 65_000;
const SEND_SEGMENTS: usize = 64;
const BUFFER_BYTES: usize = 8 << 20;
/// Time without a client after which a server ends, and time for which a client retries while the server does not
/// run.
const PATIENCE: Duration = Duration::from_secs(5);
/// Length of datagrams that mark the end of a stream. Several are sent, as one may be lost.
const END_LEN: usize = 1;
const END_DATAGRAMS: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs `stream-server ADDR`, `stream-client ADDR PAYLOAD SECONDS`, `echo-server ADDR` or `echo-client ADDR SECONDS`.
pub(crate) fn run(args: &[String]) -> Result<Value> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["stream-server", address] => receive_stream(address),
        ["stream-client", address, payload, seconds] => {
            send_stream(address, payload.parse()?, Duration::from_secs_f64(seconds.parse()?))
        }
        ["echo-server", address] => echo(address),
        ["echo-client", address, seconds] => echo_client(address, Duration::from_secs_f64(seconds.parse()?)),
        _ => Err(format!("udp {args:?}: no such part").into()),
    }
}

/// Binds a socket and prints a line when it is ready.
#[allow(clippy::print_stdout)]
fn bound(address: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    println!("ready");
    Ok(socket)
}

fn receive_stream(address: &str) -> Result<Value> {
    let socket = bound(address)?;
    setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    // Without permission the default size is used.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES);
    let mut buffer = vec![0; 1 << 16];
    let (mut bytes, mut start, mut last) = (0u64, None, Instant::now());
    loop {
        let len = socket.recv(&mut buffer)?;
        let (begun, _) = start.get_or_insert_with(|| (Instant::now(), process_cpu()));
        let begun = *begun;
        if len <= END_LEN {
            let cpu = start.map_or(0.0, |(_, cpu)| (process_cpu() - cpu).as_secs_f64());
            let seconds = (last - begun).as_secs_f64();
            return Ok(json!({ "bytes": bytes, "seconds": seconds, "cpu_seconds": cpu }));
        }
        bytes += len as u64;
        last = Instant::now();
    }
}

fn send_stream(address: &str, payload_bytes: usize, time: Duration) -> Result<Value> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    setsockopt(&socket, sockopt::UdpGsoSegment, &i32::try_from(payload_bytes)?)?;
    let segments = (SEND_BYTES / payload_bytes).clamp(1, SEND_SEGMENTS);
    let chunk = vec![7; segments * payload_bytes];
    let (begun, cpu, mut bytes) = (Instant::now(), process_cpu(), 0u64);
    while begun.elapsed() < time {
        match socket.send_to(&chunk, address) {
            Ok(len) => bytes += len as u64,
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), (process_cpu() - cpu).as_secs_f64());
    for _ in 0..END_DATAGRAMS {
        std::thread::sleep(Duration::from_millis(20));
        // The server ends at the first of these, which closes its port for the others.
        let _ = socket.send_to(&[0; END_LEN], address);
    }
    Ok(json!({ "bytes": bytes, "seconds": seconds, "cpu_seconds": cpu }))
}

fn echo(address: &str) -> Result<Value> {
    let socket = bound(address)?;
    let mut buffer = [0; 64];
    loop {
        let (len, from) = socket.recv_from(&mut buffer)?;
        socket.send_to(&buffer[..len], from)?;
        if len <= END_LEN {
            return Ok(Value::Null);
        }
    }
}

fn echo_client(address: &str, time: Duration) -> Result<Value> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let (mut times, begun, mut buffer) = (Vec::new(), Instant::now(), [0; 64]);
    while begun.elapsed() < time || (times.is_empty() && begun.elapsed() < PATIENCE) {
        let start = Instant::now();
        socket.send_to(&[0; 8], address)?;
        match socket.recv(&mut buffer) {
            Ok(_) => times.push(start.elapsed().as_nanos() as u64),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    socket.send_to(&[0; END_LEN], address)?;
    if times.is_empty() {
        return Err("nothing came back".into());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 2e3;
    Ok(json!({ "count": times.len(), "typical_us": at(0.5), "p99_us": at(0.99), "min_us": at(0.0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs both ends in this process, at a loopback address that nothing else uses.
    fn both(address: &str, server: &str, client: &[&str]) -> (Value, Value) {
        let words =
            |words: &[&str]| words.iter().map(|word| word.replace("ADDR", address)).collect::<Vec<_>>();
        let (server, client) = (words(&[server, "ADDR"]), words(client));
        let far = std::thread::spawn(move || run(&server).map_err(|why| why.to_string()));
        // The port refuses connections until the server is bound.
        let near = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            run(&client).ok()
        });
        (near.expect("it runs"), far.join().unwrap().unwrap())
    }

    #[test]
    fn what_is_sent_arrives_or_is_lost_and_both_ends_say_how_much() {
        let (near, far) = both("127.0.9.1:18515", "stream-server", &["stream-client", "ADDR", "1344", "0.1"]);
        let (sent, received) = (near["bytes"].as_u64().unwrap(), far["bytes"].as_u64().unwrap());
        assert!(received > 0 && received <= sent, "{received} of {sent}");
        assert_eq!(sent % 1_344, 0);
    }

    #[test]
    fn what_is_asked_is_answered() {
        let (near, _) = both("127.0.9.2:18515", "echo-server", &["echo-client", "ADDR", "0.05"]);
        assert!(
            near["count"].as_u64().unwrap() > 0 && near["min_us"].as_f64() <= near["typical_us"].as_f64()
        );
    }
}
