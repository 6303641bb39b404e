//! State of a run at an instant: queues and use of links, packets dropped, bytes arrived.

use std::collections::BTreeMap;

use pathweave_records::{EventKind, RunResult, SeriesKind};
use serde::Serialize;

use crate::film::Film;

/// State at an instant.
#[derive(Serialize)]
pub(crate) struct Instant {
    /// Source of queues and use: "packets" if the film covers the instant, else "samples", which are of the latest
    /// sampled instant up to it.
    pub(crate) source: &'static str,
    /// Links in use, by number. A link without an entry has no queue and sends nothing.
    pub(crate) links: BTreeMap<u32, LinkState>,
    /// Flows finished.
    pub(crate) flows_done: usize,
    /// Payload bytes that have arrived by sender and receiver, repetitions included, if the film covers the instant.
    pub(crate) arrived: Vec<(u32, u32, u64)>,
}

#[derive(Default, Serialize)]
pub(crate) struct LinkState {
    /// Bytes in the queue.
    pub(crate) queue_bytes: f64,
    /// Share of the window in which the link was sending, 0 to 1.
    pub(crate) utilisation: f64,
    /// Packets dropped at it so far.
    pub(crate) drops: u32,
}

impl Instant {
    pub(crate) fn new(run: &RunResult, film: &Film, time_ps: u64, window_ps: u64) -> Self {
        let now = time_ps as f64;
        let filmed = !film.hop_link.is_empty() && film.ends_at.is_none_or(|end| now < end);
        let mut links =
            if filmed { of_packets(run, film, now, window_ps as f64) } else { of_samples(run, time_ps) };
        let drops = run.events.iter().take_while(|event| event.time_ps <= time_ps);
        for event in drops.filter(|event| event.kind == EventKind::Drop) {
            if let Some(link) = event.link {
                links.entry(link).or_default().drops += 1;
            }
        }
        Instant {
            source: if filmed { "packets" } else { "samples" },
            links,
            flows_done: run
                .flows
                .iter()
                .filter(|flow| flow.finish_ps.is_some_and(|at| at <= time_ps))
                .count(),
            arrived: if filmed { arrived(film, now) } else { Vec::new() },
        }
    }
}

fn of_packets(run: &RunResult, film: &Film, now: f64, window: f64) -> BTreeMap<u32, LinkState> {
    let mut links: BTreeMap<u32, LinkState> = BTreeMap::new();
    let from = (now - window).max(0.0);
    for hop in 0..film.hop_link.len() {
        let (entered, start) = (film.hop_entered[hop], film.hop_start[hop]);
        if entered > now {
            continue;
        }
        let (link, bytes) = (film.hop_link[hop] as u32, f64::from(film.hop_kind[hop] as u32 >> 8));
        if start > now {
            links.entry(link).or_default().queue_bytes += bytes;
            continue;
        }
        let sending = bytes * 8e12 / run.links[link as usize].rate_bps as f64;
        let within = (start + sending).min(now) - start.max(from);
        if within > 0.0 {
            links.entry(link).or_default().utilisation += within / (now - from);
        }
    }
    links
}

fn of_samples(run: &RunResult, time_ps: u64) -> BTreeMap<u32, LinkState> {
    let mut links: BTreeMap<u32, LinkState> = BTreeMap::new();
    let end = run.series.partition_point(|sample| sample.time_ps <= time_ps);
    let latest = run.series[..end].last().map(|sample| sample.time_ps);
    for sample in run.series[..end].iter().rev().take_while(|sample| Some(sample.time_ps) == latest) {
        match sample.kind {
            SeriesKind::QueueBytes => links.entry(sample.entity).or_default().queue_bytes = sample.value,
            SeriesKind::LinkUtilisation => links.entry(sample.entity).or_default().utilisation = sample.value,
            _ => {}
        }
    }
    links
}

fn arrived(film: &Film, now: f64) -> Vec<(u32, u32, u64)> {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for packet in (0..film.arrival_at.len()).filter(|&packet| film.arrival_at[packet] <= now) {
        *bytes.entry(film.arrival_pair[packet] as u32).or_default() +=
            u64::from(film.arrival_kind[packet] as u32 >> 8);
    }
    bytes.into_iter().map(|(pair, bytes)| (pair >> 16, pair & 0xffff, bytes)).collect()
}
