//! Periodic maintenance: silent peers, dead paths, connections that end.

use pathweave_transport::Status;
use pathweave_units::{Duration, PathId, Time};

use super::connection::Phase;
use super::inbound::nth_path;
use super::path_monitor::MonitoredPolicy;
use super::{Core, address_pairs, control};
use crate::scheme::span;
use crate::state::{CloseReason, ConnectionId};

/// Interval of maintenance while a connection needs attention.
const BUSY: Duration = Duration::from_ms(5);
/// Interval of maintenance while all connections are idle.
const QUIET: Duration = Duration::from_ms(100);
/// Interval of probes of a dead path.
const PROBE_DEAD: Duration = Duration::from_ms(10);
/// Number of unanswered probes after which the probe interval doubles, and the largest number of doublings: up to 160
/// ms.
const PROBES_A_STEP: u32 = 32;
const MOST_STEPS: u32 = 4;
/// Interval between two Closes.
const CLOSE_AGAIN: Duration = Duration::from_ms(20);

/// Action that a connection needs at the moment.
enum Need {
    Nothing,
    Attention,
    SayClose,
    Probe(Vec<PathId>),
    End(CloseReason),
    Remove,
}

impl Core {
    /// Retransmits the packets in flight on dead paths on other paths.
    pub(super) fn abandon_dead(&mut self, now: Time) {
        for id in self.connections.ids() {
            let Some(qp) = self.connections.get(id).map(|connection| connection.qp) else { continue };
            let dead = self.endpoint.policy(qp).map(MonitoredPolicy::dead_paths).unwrap_or_default();
            if !dead.is_empty() {
                let _ = self.endpoint.abandon(now, qp, &dead);
            }
        }
    }

    /// Maintains every connection.
    pub(super) fn upkeep(&mut self, now: Time) {
        let mut wait = QUIET;
        let mut asks = None;
        for id in self.connections.ids() {
            self.set_current_connection(id);
            asks = asks.into_iter().chain(self.ask(now, id)).min();
            match self.need(now, id) {
                Need::Nothing => continue,
                Need::Attention => {}
                Need::SayClose => self.emit_control(id, control::Message::Close),
                Need::Probe(paths) => paths.into_iter().for_each(|path| self.emit_probe(id, path)),
                Need::End(reason) => {
                    self.close(id, reason);
                    self.shared.notify();
                }
                Need::Remove => self.remove(id),
            }
            wait = BUSY;
        }
        self.go_on_withdrawing();
        self.go_on_releasing();
        if !self.regions.releases.is_empty() {
            wait = BUSY;
        }
        let next = now.saturating_add(wait);
        self.io.next_upkeep = asks.map_or(next, |at: Time| at.min(next));
    }

    /// Sends Asks by pairs that have not been validated. Returns the time of the next check.
    fn ask(&mut self, now: Time, id: ConnectionId) -> Option<Time> {
        let connection = self.connections.get_mut(id).filter(|connection| connection.phase == Phase::Open)?;
        let (paths, stalls, heard) = (connection.paths, connection.stalls(now), connection.heard);
        let rails = connection.rails.as_mut()?;
        rails.note_last_arrival(heard);
        if stalls {
            rails.rotate_paths(now);
        }
        // The last path is never declared dead.
        let dead = self.endpoint.policy(connection.qp).map_or(0, MonitoredPolicy::dead);
        let is_dire = stalls || dead > 0 && dead + 1 >= paths;
        let need = if is_dire { address_pairs::Need::Dire } else { address_pairs::Need::None };
        let (due, next) = rails.due(now, need, &mut self.unproven);
        due.into_iter().for_each(|question| self.emit_ask(id, question));
        next
    }

    /// Sends answers to Close and to Asks, and the probes that the application has requested.
    pub(super) fn answer(&mut self) {
        for id in std::mem::take(&mut self.answers) {
            self.emit_control(id, control::Message::Closed);
        }
        for asked in std::mem::take(&mut self.asked) {
            self.emit_answer(&asked);
            if let Some(question) = asked.asks {
                self.emit_ask(asked.id, question);
            }
        }
        for id in std::mem::take(&mut self.surveys) {
            let paths = self.connections.get(id).map_or(0, |connection| connection.paths);
            (0..paths).for_each(|path| self.emit_probe(id, PathId(path)));
        }
    }

    /// Queues probes of all paths, so that the application gets the round-trip time of each.
    pub(super) fn probe_all(&mut self, id: ConnectionId) {
        self.surveys.push(id);
    }

    fn need(&mut self, now: Time, id: ConnectionId) -> Need {
        let (keepalive, peer_timeout) = (span(self.config.keepalive), span(self.config.peer_timeout));
        let Some(connection) = self.connections.get_mut(id) else { return Need::Nothing };
        match &mut connection.phase {
            // The handshake has its own timers.
            Phase::Opening => Need::Nothing,
            Phase::PeerClosing { until } => {
                if connection.sends.is_empty() || *until <= now {
                    Need::End(CloseReason::Peer)
                } else {
                    Need::Attention
                }
            }
            Phase::Lingering { until, next_close } => {
                if *until <= now || (next_close.is_none() && self.io.stop_by.is_some()) {
                    return Need::Remove;
                }
                match next_close {
                    Some(at) if *at <= now => {
                        *at = now.saturating_add(CLOSE_AGAIN);
                        Need::SayClose
                    }
                    Some(_) => Need::Attention,
                    None => Need::Nothing,
                }
            }
            Phase::Open => {
                let silent = now.saturating_since(connection.heard);
                if silent >= keepalive + peer_timeout
                    || (silent >= peer_timeout && !connection.sends.is_empty())
                {
                    return Need::End(CloseReason::PeerSilent);
                }
                let Some(policy) = self.endpoint.policy(connection.qp) else { return Need::Nothing };
                if policy.dead() == 0 && silent < keepalive {
                    return Need::Nothing;
                }
                if connection.next_probe > now {
                    return Need::Attention;
                }
                // A network interface may be down for days, so the interval grows.
                let (dead, times) = connection.dead;
                let times = if dead == policy.dead() { times.saturating_add(1) } else { 0 };
                connection.dead = (policy.dead(), times);
                let longer = (times / PROBES_A_STEP).min(MOST_STEPS);
                connection.next_probe = now.saturating_add(PROBE_DEAD * (1 << longer));
                let mut paths = policy.dead_paths();
                if silent >= keepalive {
                    // An answer from the peer on any path suffices.
                    connection.next_probe = now.saturating_add(Duration::from_ps(keepalive.as_ps() / 4));
                    connection.probes = connection.probes.wrapping_add(1);
                    paths.push(nth_path(connection.probes, connection.paths));
                }
                Need::Probe(paths)
            }
        }
    }

    /// Status with which requests to a silent peer complete.
    pub(super) const SILENT: Status = Status::RetryExceeded;
}
