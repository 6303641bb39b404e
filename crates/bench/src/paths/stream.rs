//! Stream of WRITEs between two hosts of a lab, with the times at which its bytes were acknowledged.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use pathweave_datapath::secure::Protection;
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Region, Registration, Remote, Unprotected,
};
use pathweave_lab::Lab;
use pathweave_topo::NodeId;
use pathweave_units::Rate;

/// MTU of the lab's links.
pub(super) const MTU_BYTES: u32 = 1_500;
/// Size of a message in bytes. It is small, so that bytes are counted soon after they have arrived.
const MESSAGE_BYTES: usize = 16_384;
/// Messages in flight, more than any queue holds.
const DEPTH: u64 = 128;
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a full WRITE packet on a link besides its payload: preamble, Ethernet, IP, UDP, BTH, RETH, extension,
/// CRC.
const OVERHEAD_BYTES: f64 = 38.0 + 28.0 + 12.0 + 16.0 + 28.0 + 4.0;

/// Both ends of a connection, on two hosts.
pub(super) struct Stream {
    near: Connection,
    source: Region,
    /// Remote memory with a slot per message in flight, as a WRITE to the destination of an earlier one waits for it.
    target: Remote,
    posted: u64,
    done: u64,
    begun: Instant,
    /// Number of completed bytes over time.
    log: Vec<(Instant, u64)>,
    // Keeps the far end alive.
    _far: (Connection, Registration, Device),
}

impl Stream {
    /// Opens a connection from one host to another.
    pub(super) fn open(
        lab: &Lab,
        hosts: [NodeId; 2],
        scheme: &str,
        paths: u16,
        line_rate: Rate,
    ) -> Result<Stream, String> {
        let device = |host: NodeId| {
            let mut config = DeviceConfig::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
            // The namespaces belong to the benchmark, so no one else can send to them.
            (config.protection, config.unprotected) = (Protection::Insecure, Unprotected::Anywhere);
            config.fit_link(MTU_BYTES as usize).map_err(|why| why.to_string())?;
            (config.paths, config.line_rate, config.scheme) = (paths, line_rate, scheme.into());
            let opened = lab.inside(host, || Device::open(config)).map_err(|why| why.to_string())?;
            opened.map_err(|why| why.to_string())
        };
        let (near, far) = (device(hosts[0])?, device(hosts[1])?);
        let text = |why: &dyn std::fmt::Display| why.to_string();
        let listener = far.listen().map_err(|why| text(&why))?;
        let address = SocketAddr::from((lab.plan().node(hosts[1]).address, far.local_addr().port()));
        let near = near.connect(address).map_err(|why| text(&why))?;
        let accepted = listener.accept(PATIENCE).map_err(|why| text(&why))?;
        let memory = Region::zeroed(DEPTH as usize * MESSAGE_BYTES).map_err(|why| text(&why))?;
        let open = far.register(&memory, Access::WRITE).map_err(|why| text(&why))?;
        let source = Region::zeroed(MESSAGE_BYTES).map_err(|why| text(&why))?;
        let begun = Instant::now();
        let target = open.remote(0);
        Ok(Stream {
            near,
            source,
            target,
            posted: 0,
            done: 0,
            begun,
            log: Vec::new(),
            _far: (accepted, open, far),
        })
    }

    /// Sends for a while. Returns the error that the application would get.
    pub(super) fn run(&mut self, time: Duration) -> Result<(), String> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            while self.posted - self.done < DEPTH {
                let place = self.posted % DEPTH * MESSAGE_BYTES as u64;
                let target = Remote { address: self.target.address + place, ..self.target };
                let posted = self.near.write(self.posted, self.source.all(), target);
                posted.map_err(|why| why.to_string())?;
                self.posted += 1;
            }
            let done = self.near.wait(PATIENCE).map_err(|why| why.to_string())?;
            done.result().map_err(|status| format!("a WRITE ended with {status:?}"))?;
            self.done += 1;
            self.log.push((Instant::now(), self.done * MESSAGE_BYTES as u64));
        }
        Ok(())
    }

    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Returns the bytes completed between two times.
    pub(super) fn bytes(&self, from: Instant, to: Instant) -> u64 {
        self.bytes_at(to) - self.bytes_at(from)
    }

    fn bytes_at(&self, at: Instant) -> u64 {
        let after = self.log.partition_point(|(done, _)| *done <= at);
        after.checked_sub(1).map_or(0, |index| self.log[index].1)
    }

    /// Returns the mean payload rate between two times, in bits per second.
    pub(super) fn goodput(&self, from: Instant, to: Instant) -> f64 {
        self.bytes(from, to) as f64 * 8.0 / (to - from).as_secs_f64().max(1e-9)
    }
}

/// Returns the payload that a link of this rate carries, in bits per second.
pub(super) fn payload_rate(link: Rate) -> f64 {
    let mut config = DeviceConfig::loopback();
    let payload = config.fit_link(MTU_BYTES as usize).map_or(0.0, |()| f64::from(config.mtu_payload));
    link.as_bps() as f64 * payload / (payload + OVERHEAD_BYTES)
}
