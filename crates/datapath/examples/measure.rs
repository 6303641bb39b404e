//! Measures the datapath between two processes on loopback: bandwidth and CPU time of each end for WRITE, and
//! round-trip times of small SENDs compared with those of plain UDP.
//!
//! ```sh
//! cargo run --release -p pathweave-datapath --example measure -- write size=1048576 mtu=1344 paths=1
//! cargo run --release -p pathweave-datapath --example measure -- ping driving=caller spin_us=0
//! cargo run --release -p pathweave-datapath --example measure -- udp spin_us=0
//! ```
//!
//! Settings: `size` (bytes), `depth`, `seconds`, `mtu` (payload), `paths`, `driving` (caller or thread), `spin_us`
//! (or busy), `protection`, `scheme`, `mbps` (line rate), `bind` (an address, or several with commas), `peer` (an
//! address: then no process is started, and this is the client only), and `serve=1` (the server only).
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]

use std::error::Error;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Driving, Region, Remote, Unprotected, Waiting,
};

const PATIENCE: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Clone)]
struct Settings {
    what: String,
    size: usize,
    depth: usize,
    seconds: f64,
    serve: bool,
    peer: Option<SocketAddr>,
    waiting: Waiting,
    device: DeviceConfig,
    words: Vec<String>,
}

fn settings() -> Result<Settings> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut device = DeviceConfig::loopback();
    device.paths = 1;
    let what = words.first().cloned().unwrap_or_else(|| "write".into());
    let mut s = Settings {
        size: if what == "write" { 1 << 20 } else { 8 },
        what,
        depth: 8,
        seconds: 2.0,
        serve: false,
        peer: None,
        waiting: device.waiting,
        device,
        words: words.clone(),
    };
    for word in words.iter().skip(1) {
        let (name, value) = word.split_once('=').ok_or(format!("{word}: expected name=value"))?;
        match name {
            "size" => s.size = value.parse()?,
            "depth" => s.depth = value.parse()?,
            "seconds" => s.seconds = value.parse()?,
            "serve" => s.serve = value == "1",
            "peer" => s.peer = Some(value.parse()?),
            "bind" => {
                let addresses =
                    value.split(',').map(str::parse).collect::<std::result::Result<Vec<_>, _>>()?;
                let (first, others) = addresses.split_first().ok_or("no address")?;
                (s.device.bind, s.device.also_bind) = (*first, others.to_vec());
                s.device.unprotected = Unprotected::Anywhere;
            }
            "mtu" => s.device.mtu_payload = value.parse()?,
            "paths" => s.device.paths = value.parse()?,
            "scheme" => s.device.scheme = value.into(),
            "rtt_us" => s.device.base_rtt = Duration::from_micros(value.parse()?),
            "host_delay_us" => s.device.host_delay = Duration::from_micros(value.parse()?),
            "gbps" => s.device.line_rate = pathweave_units::Rate::from_gbps(value.parse()?),
            "mbps" => s.device.line_rate = pathweave_units::Rate::from_mbps(value.parse()?),
            "protection" => s.device.protection = value.parse::<Protection>()?,
            "driving" if value == "caller" => s.device.driving = Driving::Caller,
            "driving" => s.device.driving = Driving::Thread { core: None },
            "spin_us" if value == "busy" => s.device.waiting = Waiting::Busy,
            "spin_us" => s.device.waiting = Waiting::Blocking { spin: Duration::from_micros(value.parse()?) },
            _ => return Err(format!("{name}: no such setting").into()),
        }
    }
    s.waiting = s.device.waiting;
    if s.device.protection != Protection::Insecure {
        // Shared by both processes of a measurement; not a secret.
        s.device.key = Some(ClusterKey::from_bytes([7; 32]));
    }
    Ok(s)
}

fn main() -> Result<()> {
    let s = settings()?;
    match (s.what.as_str(), s.serve) {
        ("write", true) => serve_write(&s),
        ("write", false) => write(&s),
        ("ping", true) => serve_ping(&s),
        ("ping", false) => ping(&s),
        ("udp", true) => serve_udp(&s),
        ("udp", false) => udp(&s),
        (other, _) => Err(format!("{other}: expected write, ping or udp").into()),
    }
}

/// Returns the CPU time that this process has used.
fn cpu() -> Duration {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
}

/// Starts the other process; returns it with the first line that it prints.
fn start(s: &Settings) -> Result<(Option<Child>, String)> {
    if let Some(peer) = s.peer {
        return Ok((None, peer.to_string()));
    }
    let mut child = Command::new(std::env::current_exe()?)
        .args(&s.words)
        .arg("serve=1")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.as_mut().ok_or("a pipe")?);
    lines.read_line(&mut line)?;
    Ok((Some(child), line.trim().into()))
}

fn report(child: Option<Child>) -> Result<Option<f64>> {
    let Some(child) = child else { return Ok(None) };
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().last().and_then(|line| line.trim().parse().ok()))
}

fn serve_write(s: &Settings) -> Result<()> {
    let device = Device::open(s.device.clone())?;
    let listener = device.listen()?;
    println!("{}", device.local_addr());
    let connection = listener.accept(Duration::from_secs(60))?;
    let memory = Region::zeroed(s.size * s.depth)?;
    let opened = device.register(&memory, Access::WRITE)?;
    let key = Region::from_bytes(&opened.rkey().to_be_bytes())?;
    connection.send(0, key.all())?;
    connection.wait(PATIENCE)?;
    let before = cpu();
    connection.wait_closed(Duration::from_secs(600))?;
    let used = cpu() - before;
    if let Some(stats) = device.stats() {
        eprintln!("server: {stats:?}");
    }
    println!("{}", used.as_secs_f64());
    Ok(())
}

fn key_of(connection: &Connection) -> Result<u64> {
    let key = Region::zeroed(8)?;
    connection.recv(0, key.all())?;
    connection.wait(PATIENCE)?;
    Ok(u64::from_be_bytes(key.to_vec(0..8)?.try_into().map_err(|_| "eight bytes")?))
}

fn write(s: &Settings) -> Result<()> {
    let (child, address) = start(s)?;
    let device = Device::open(s.device.clone())?;
    let connection = device.connect(address.parse()?)?;
    let rkey = key_of(&connection)?;
    let memory = Region::zeroed(s.size * s.depth)?;
    let pattern: Vec<u8> = (0..s.size * s.depth).map(|i| (i * 31 % 251) as u8).collect();
    memory.write(0, &pattern)?;
    let post = |n: usize| -> Result<()> {
        let start = n % s.depth * s.size;
        let to = Remote { address: start as u64, rkey };
        Ok(connection.write(n as u64, memory.slice(start..start + s.size)?, to)?)
    };
    let (begin, cpu_before) = (Instant::now(), cpu());
    let (mut posted, mut done) = (0, 0);
    while posted < s.depth {
        post(posted)?;
        posted += 1;
    }
    while done < posted {
        connection.wait(PATIENCE)?.result().map_err(|status| format!("{status:?}"))?;
        done += 1;
        if begin.elapsed().as_secs_f64() < s.seconds {
            post(posted)?;
            posted += 1;
        }
    }
    let (wall, used) = (begin.elapsed(), cpu() - cpu_before);
    let bytes = (done * s.size) as f64;
    let stats = connection.stats().ok_or("statistics")?;
    eprintln!("client: {:?}", device.stats());
    for (index, path) in stats.paths.iter().enumerate() {
        eprintln!(
            "path {index}: {} to {}: {:.1} % lost {} rtt {:?} shortest {:?}",
            path.local,
            path.remote,
            path.share * 100.0,
            path.lost,
            path.rtt,
            path.shortest_rtt
        );
    }
    eprintln!("{:?} inflight {} rate {:?}", stats.counters, stats.inflight_bytes, stats.rate);
    if let Some(device) = device.stats().filter(|device| device.paced > 0) {
        eprintln!(
            "paced {} times, {:.1} us late on average, {:.2} % more than 10 us; slept {} times",
            device.paced,
            device.paced_late_ns as f64 / 1e3 / device.paced as f64,
            device.paced_late_over_10us as f64 * 100.0 / device.paced as f64,
            device.sleeps
        );
    }
    drop(connection);
    drop(device);
    let served = report(child)?;
    println!(
        "WRITE {} B, payload {} B, {} paths, {}: {:.0} MB/s, client {:.3} ns/B, server {:.3} ns/B, retransmitted {}",
        s.size,
        s.device.mtu_payload,
        s.device.paths,
        s.device.protection,
        bytes / wall.as_secs_f64() / 1e6,
        used.as_nanos() as f64 / bytes,
        served.map_or(f64::NAN, |seconds| seconds * 1e9 / bytes),
        stats.counters.retransmitted_packets,
    );
    Ok(())
}

fn serve_ping(s: &Settings) -> Result<()> {
    let device = Device::open(s.device.clone())?;
    let listener = device.listen()?;
    println!("{}", device.local_addr());
    let connection = listener.accept(Duration::from_secs(60))?;
    let (inbox, outbox) = (Region::zeroed(s.size)?, Region::zeroed(s.size)?);
    connection.recv(1, inbox.all())?;
    loop {
        let done = connection.wait(PATIENCE)?;
        if done.result().is_err() {
            return Ok(());
        }
        if done.wr_id == 1 {
            connection.recv(1, inbox.all())?;
            connection.send(2, outbox.all())?;
        }
    }
}

fn ping(s: &Settings) -> Result<()> {
    let (child, address) = start(s)?;
    let device = Device::open(s.device.clone())?;
    let connection = device.connect(address.parse()?)?;
    let (inbox, outbox) = (Region::zeroed(s.size)?, Region::zeroed(s.size)?);
    connection.recv(1, inbox.all())?;
    std::thread::sleep(Duration::from_millis(50));
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < s.seconds {
        let start = Instant::now();
        connection.send(2, outbox.all())?;
        let mut received = false;
        while !received {
            let done = connection.wait(PATIENCE)?;
            done.result().map_err(|status| format!("{status:?}"))?;
            received = done.wr_id == 1;
        }
        times.push(start.elapsed());
        connection.recv(1, inbox.all())?;
    }
    drop(connection);
    drop(device);
    report(child)?;
    percentiles("SEND", s, times);
    Ok(())
}

fn percentiles(what: &str, s: &Settings, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_nanos() as f64 / 1e3;
    println!(
        "{what} {} B there and back, {:?}, {:?}: {} times, us p10 {:.1} p50 {:.1} p90 {:.1} p99 {:.1}",
        s.size,
        s.device.driving,
        s.waiting,
        times.len(),
        at(0.1),
        at(0.5),
        at(0.9),
        at(0.99)
    );
}

/// Receives as configured: blocking, or polling.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Ok(received) => return Ok(received),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
}

fn plain(s: &Settings) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(s.device.bind)?;
    socket.set_nonblocking(s.waiting == Waiting::Busy)?;
    Ok(socket)
}

fn serve_udp(s: &Settings) -> Result<()> {
    let socket = plain(s)?;
    println!("{}", socket.local_addr()?);
    let mut buffer = [0; 65_536];
    loop {
        let (len, from) = receive(&socket, &mut buffer)?;
        socket.send_to(&buffer[..len], from)?;
        if len == 0 {
            return Ok(());
        }
    }
}

fn udp(s: &Settings) -> Result<()> {
    let (child, address) = start(s)?;
    let peer: SocketAddr = address.parse()?;
    let socket = plain(s)?;
    let (mut buffer, message) = ([0; 65_536], vec![1; s.size]);
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < s.seconds {
        let start = Instant::now();
        socket.send_to(&message, peer)?;
        receive(&socket, &mut buffer)?;
        times.push(start.elapsed());
    }
    socket.send_to(&[], peer)?;
    report(child)?;
    percentiles("plain UDP", s, times);
    Ok(())
}
