//! Survey of the paths to a server.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_datapath::{ConnectionStats, DeviceConfig, PathState, WaitError};
use serde::Serialize;

use crate::broken::MeasureError;
use crate::clients::draw_number;
use crate::connection::{ConnectionEnd, meet};
use crate::console::{Console, Failure};
use crate::meet::Request;
use crate::open;
use crate::report::Ended;
use crate::samples::{Latency, Samples};
use crate::test::{Check, Directions, Kind, Op, Test};
use pathweave_bypass::Carrier;

/// Scheme of the small messages sent beside the probes, since only data packets are marked and lost as data is. It
/// picks each packet's path at random, and the minimum rate of its congestion control exceeds their needs.
const SCHEME: &str = "rps";
const MESSAGE_BYTES: u64 = 64;
/// Time to wait for answers to the last probes.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Options of a survey.
#[derive(Clone, Debug)]
pub struct SurveyOptions {
    /// Address of the server.
    pub server: SocketAddr,
    /// Configuration of this end, whose paths are surveyed.
    pub device: DeviceConfig,
    /// Number of probes per path.
    pub count: u64,
    /// Interval between probes.
    pub interval: Duration,
}

/// Results for a path.
#[derive(Clone, Debug, Serialize)]
struct Surveyed {
    source_port: u16,
    up: bool,
    probes: u64,
    replies: u64,
    /// Share of probes lost, from 0 to 1.
    probe_loss: f64,
    rtt: Option<Latency>,
    data_packets: u64,
    data_lost: u64,
    /// Number of data packets acknowledged with Congestion Experienced.
    data_marked: u64,
}

/// Results for each path to a server.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    server: SocketAddr,
    protection: String,
    ended: Ended,
    paths: Vec<Surveyed>,
}

impl Survey {
    /// Returns true if the user interrupted the survey.
    pub fn is_interrupted(&self) -> bool {
        self.ended == Ended::Interrupted
    }

    /// Returns the survey as JSON.
    pub fn json(&self) -> String {
        crate::json(self)
    }

    /// Returns the survey as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} paths to {}, {}\n{:>4} {:>6} {:<5} {:>7} {:>7} {:>8} {:>12} {:>12} {:>12} {:>7} {:>6} {:>7}\n",
            self.paths.len(),
            self.server,
            self.protection,
            "path",
            "port",
            "state",
            "probes",
            "replies",
            "loss[%]",
            "RTT min[us]",
            "RTT avg[us]",
            "RTT p99[us]",
            "packets",
            "lost",
            "marked"
        );
        for (index, path) in self.paths.iter().enumerate() {
            let us = |of: fn(&Latency) -> f64| {
                path.rtt.as_ref().map_or("-".into(), |rtt| format!("{:.1}", of(rtt)))
            };
            let _ = writeln!(
                text,
                "{index:>4} {:>6} {:<5} {:>7} {:>7} {:>8.1} {:>12} {:>12} {:>12} {:>7} {:>6} {:>7}",
                path.source_port,
                if path.up { "up" } else { "down" },
                path.probes,
                path.replies,
                path.probe_loss * 100.0,
                us(|rtt| rtt.min_us),
                us(|rtt| rtt.avg_us),
                us(|rtt| rtt.p99_us),
                path.data_packets,
                path.data_lost,
                path.data_marked
            );
        }
        text
    }
}

/// Probes each path to a server.
///
/// # Errors
/// If the server cannot be reached, or the connection closes.
pub fn survey(options: &SurveyOptions, console: &dyn Console) -> Result<Survey, Failure> {
    let SurveyOptions { server: peer, device: config, count, interval } = options.clone();
    let (wanted, timeout) = (config.clone(), config.connect_timeout);
    let device = open::open(config, &Carrier::Udp, console)?;
    let test = Test {
        kind: Kind::Survey,
        op: Op::Write,
        size_bytes: MESSAGE_BYTES,
        depth: 1,
        iterations: None,
        directions: Directions::One,
        check: Check::Off,
    };
    let broken = |why: MeasureError| Failure::Input(format!("{peer}: {why}"));
    let asks = Request { test, comes_back: false, client: draw_number()? };
    let mut ready = meet(&device, (peer, &[]), SCHEME, asks, timeout)?.map_err(broken)?;
    open::note_less(&ready.connection, &wanted, console);
    let mut samples = vec![Samples::new(); usize::from(ready.connection.info().paths)];
    let mut replies = vec![0; samples.len()];
    let (mut sent, mut ended) = (0, Ended::Done);
    while sent < count {
        if console.is_interrupted() {
            ended = Ended::Interrupted;
            break;
        }
        sent += 1;
        round(&mut ready, interval, console).map_err(broken)?;
        note(ready.connection.stats().as_ref(), &mut replies, &mut samples);
    }
    let deadline = Instant::now() + LAST_WAIT;
    while replies.iter().any(|answered| *answered < sent)
        && Instant::now() < deadline
        && !console.is_interrupted()
    {
        wait(&mut ready, Duration::from_millis(10), 0, console).map_err(broken)?;
        note(ready.connection.stats().as_ref(), &mut replies, &mut samples);
    }
    let stats = ready.connection.stats().ok_or_else(|| broken(MeasureError::Closed))?;
    let protection = ready.connection.info().protection.to_string();
    Ok(Survey { server: peer, protection, ended, paths: surveyed(&stats, sent, &replies, &samples) })
}

/// Sends one probe per path and as many messages, and waits for answers until the interval ends.
fn round(ready: &mut ConnectionEnd, interval: Duration, console: &dyn Console) -> Result<(), MeasureError> {
    ready.connection.probe_paths();
    wait(ready, interval, ready.connection.info().paths.into(), console)
}

/// Handles completions for the given time and sends messages one at a time. Each message then has its own
/// acknowledgement, which shows whether it was marked.
fn wait(
    ready: &mut ConnectionEnd,
    span: Duration,
    messages: u64,
    console: &dyn Console,
) -> Result<(), MeasureError> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    let mut left_to_send = messages;
    loop {
        if left_to_send > 0 && ready.flow.tally.is_done() {
            ready.flow.post_one(&ready.connection)?;
            left_to_send -= 1;
        }
        let left = span.saturating_sub(begun.elapsed());
        if left.is_zero() || console.is_interrupted() {
            return Ok(());
        }
        match ready.connection.wait(left.min(LOOK_EVERY)) {
            Ok(completion) => {
                ready.flow.complete(&ready.connection, completion)?;
            }
            Err(WaitError::Timeout(_)) => {}
            Err(WaitError::ConnectionClosed(_)) => return Err(MeasureError::Closed),
            Err(why) => return Err(MeasureError::Local(why.to_string())),
        }
    }
}

/// Records the probes that have been answered.
fn note(stats: Option<&ConnectionStats>, replies: &mut [u64], samples: &mut [Samples]) {
    let Some(stats) = stats else { return };
    for ((path, replies), samples) in stats.paths.iter().zip(replies).zip(samples) {
        if path.probe_replies > *replies {
            *replies = path.probe_replies;
            if let Some(rtt) = path.probe_rtt {
                samples.add(rtt.as_nanos() as u64);
            }
        }
    }
}

fn surveyed(stats: &ConnectionStats, probes: u64, replies: &[u64], samples: &[Samples]) -> Vec<Surveyed> {
    let of = |index: usize| {
        let path = &stats.paths[index];
        // The datapath itself also probes paths that it considers dead.
        let replies = replies[index].min(probes);
        Surveyed {
            source_port: path.source_port,
            up: path.state == PathState::Up,
            probes,
            replies,
            probe_loss: (probes - replies) as f64 / probes.max(1) as f64,
            rtt: samples[index].latency(1.0),
            data_packets: path.packets,
            data_lost: path.lost,
            data_marked: path.marked,
        }
    };
    (0..stats.paths.len().min(samples.len())).map(of).collect()
}
