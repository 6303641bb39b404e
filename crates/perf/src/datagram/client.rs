//! Client of datagrams.

use std::net::SocketAddr;
use std::time::Instant;

use pathweave_datapath::rdm::{Delivery, Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::{OsRandom, SecureRandom};
use pathweave_datapath::{Region, WaitError};

use super::end::DatagramEnd;
use super::words::{Ask, WORDS_BYTES, Word, decode, encode};
use super::{config, open, unreachable};
use crate::broken::MeasureError;
use crate::console::{Console, Failure, Health};
use crate::end::End;
use crate::meet::{ClientOptions, Connect, Request};
use crate::pattern::region;
use crate::report::Setup;
use crate::test::{Check, Op, Role};

/// Opener of endpoints. Each measurement has its own endpoint, so that receives of different sizes do not mix.
pub(crate) struct Datagrams {
    server: SocketAddr,
    config: RdmConfig,
}

impl Datagrams {
    /// # Errors
    /// If the request is invalid.
    pub(crate) fn open(options: &ClientOptions) -> Result<Self, Failure> {
        if let Some(test) = options.tests.iter().find(|test| test.op != Op::Send) {
            let op = format!("{:?}", test.op).to_lowercase();
            return Err(Failure::Input(format!("--op {op}: datagrams have SEND alone (--transport erd)")));
        }
        let mut config = config(options.device.clone(), options.scheme.as_deref());
        if options.tests.iter().any(|test| test.check == Check::EveryByte) {
            // Messages are identified by their order.
            config.delivery = Delivery::Ordered;
        }
        Ok(Datagrams { server: options.server, config })
    }

    /// Requests a measurement from the server, then begins it with the endpoint that the server opens for it.
    fn begin_test(
        &self,
        endpoint: RdmEndpoint,
        server: Peer,
        asks: Request,
    ) -> Result<DatagramEnd, MeasureError> {
        let own = |why: &dyn std::fmt::Display| MeasureError::Local(why.to_string());
        let mut random = [0; 8];
        OsRandom.fill(&mut random).map_err(|why| own(&why))?;
        let token = u64::from_ne_bytes(random);
        let hear = |peer: Peer, word: &Word| -> Result<Word, MeasureError> {
            let room = region(WORDS_BYTES)?;
            endpoint.recv_from(peer, 0, room.all()).map_err(|why| own(&why))?;
            let words = Region::from_bytes(&encode(token, word))?;
            endpoint.send(1, peer, words.all()).map_err(|why| own(&why))?;
            let (mut sent, mut answer) = (false, None);
            let deadline = Instant::now() + self.config.device.connect_timeout;
            loop {
                if sent && let Some(answer) = answer {
                    return Ok(answer);
                }
                let left = deadline.saturating_duration_since(Instant::now());
                let done = match endpoint.wait(left) {
                    Ok(done) => done,
                    Err(WaitError::Timeout(_)) => {
                        return Err(MeasureError::Timeout(self.config.device.connect_timeout));
                    }
                    Err(why) => return Err(own(&why)),
                };
                let Ok(len) = done.result() else {
                    let (opcode, status) = (done.opcode, done.status);
                    return Err(MeasureError::Request { opcode, status, reason: None });
                };
                if done.wr_id == 1 {
                    sent = true;
                } else {
                    let bytes = room.to_vec(0..len as usize)?;
                    let word = decode(Some(token), &bytes).map(|(_, word)| word);
                    answer = Some(word.ok_or_else(|| {
                        MeasureError::Protocol("a message that is no answer to the request".into())
                    })?);
                }
            }
        };
        let port = match hear(server, &Word::Ask(Ask::of(&asks)))? {
            Word::Ready { port } => port,
            Word::Refused { why } => return Err(MeasureError::Refused(why)),
            other => return Err(MeasureError::Protocol(format!("{other:?} before a measurement"))),
        };
        let at = endpoint.insert(SocketAddr::new(self.server.ip(), port)).map_err(|why| own(&why))?;
        match hear(at, &Word::Begin)? {
            Word::Ready { .. } => {}
            other => return Err(MeasureError::Protocol(format!("{other:?} before a measurement"))),
        }
        DatagramEnd::new(endpoint, at, token, asks.test, Role::Client)
    }
}

impl Connect for Datagrams {
    type End = DatagramEnd;

    fn agree(&mut self, asks: Request) -> Result<Result<DatagramEnd, MeasureError>, Failure> {
        let endpoint = open(self.config.clone())?;
        let server = endpoint.insert(self.server).map_err(|why| Failure::Input(why.to_string()))?;
        endpoint.reach(server).map_err(|why| unreachable(&why))?;
        Ok(self.begin_test(endpoint, server, asks))
    }

    fn setup(&self, end: &DatagramEnd, _console: &dyn Console) -> Setup {
        let (config, test) = (&self.config.device, end.tally().test);
        let scan = end.stats().map(|stats| stats.scan_period).unwrap_or_default();
        Setup {
            op: test.op,
            transport: Some("erd"),
            kind: test.kind,
            directions: test.directions,
            check: test.check,
            server: self.server,
            scheme: config.scheme.clone(),
            protection: config.protection.to_string(),
            paths: config.paths,
            mtu_payload_bytes: config.mtu_payload,
            depth: test.depth,
            scan_period_us: Some(scan.as_secs_f64() * 1e6),
        }
    }

    fn health(&self, end: &DatagramEnd) -> Health {
        let paths = usize::from(self.config.device.paths);
        let retransmitted = end.stats().map_or(0, |stats| stats.counters.retransmitted);
        Health { retransmitted, paths_up: paths, paths }
    }
}
