//! Incast: the last link to a receiver is the bottleneck.

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use crate::builder::Stream;
use crate::error::WorkloadError;
use crate::hosts::HostList;
use crate::sink::{Generate, WorkloadBuilder};

/// Rule by which the senders of an incast are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Senders are drawn for each receiver among all other hosts. A host may send to several receivers.
    #[default]
    Independent,
    /// Each host sends to one receiver at most, and receivers do not send.
    Disjoint,
}

/// Many hosts send to one host at the same time. Each receiver's event is a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// Number of senders to each receiver (the N of N-to-1), drawn by seed among the other hosts.
    pub senders: u32,
    /// Size of each message, 1 B to 4 GiB.
    pub size: Bytes,
    /// Number of receivers, drawn by seed (default 1).
    #[serde(default = "one")]
    pub receivers: u32,
    /// Receivers: a list of host numbers, names and patterns, or a pattern such as "srv*.gpu0". Replaces
    /// `receivers`, which draws them at random. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_hosts: Option<HostList>,
    /// Rule by which senders are drawn.
    #[serde(default)]
    pub draw: Draw,
    /// Largest extra delay of the start of a message, drawn from a uniform distribution from 0 (default 0).
    #[serde(default)]
    pub jitter: Duration,
    /// Number of events (default 1). Each event has other senders.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Time between the starts of consecutive events (default 1 ms).
    #[serde(default = "one_ms")]
    pub interval: Duration,
}

fn one() -> u32 {
    1
}
fn one_ms() -> Duration {
    Duration::from_ms(1)
}

impl Generate for Incast {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let hosts = out.env.hosts;
        if self.senders == 0 || self.senders >= hosts {
            return out.field_error(
                "senders",
                self.senders,
                format!("expected 1 to {}", hosts.saturating_sub(1)),
            );
        }
        if self.repetitions == 0 {
            return out.field_error("repetitions", 0, "expected 1 or more");
        }
        if self.repetitions == 1 && self.interval != one_ms() {
            out.note_ineffective("interval", "there is one event: `repetitions` is 1");
        }
        if self.receiver_hosts.is_some() && self.receivers != one() {
            out.note_ineffective("receivers", "`receiver_hosts` lists them");
        }
        let mut rng = out.rng("incast");
        let receivers = self.receivers(out)?;
        let apart = (hosts as usize).saturating_sub(receivers.len());
        if self.draw == Draw::Disjoint && self.senders as usize * receivers.len() > apart {
            let most = apart / receivers.len();
            return out.field_error(
                "senders",
                self.senders,
                format!("expected 1 to {most}: {apart} hosts are no receivers"),
            );
        }
        out.check_count(f64::from(self.senders) * receivers.len() as f64 * f64::from(self.repetitions))?;
        for round in 0..u64::from(self.repetitions) {
            let Some(begin) = self.interval.as_ps().checked_mul(round).map(Duration::from_ps) else {
                return out.field_error(
                    "interval",
                    self.interval,
                    "the last event is later than a run can reach",
                );
            };
            let senders = self.senders as usize;
            let mut apart: Vec<u32> = (0..hosts).filter(|host| !receivers.contains(host)).collect();
            if self.draw == Draw::Disjoint {
                rng.shuffle(&mut apart);
            }
            for (index, &receiver) in receivers.iter().enumerate() {
                let job = Some(out.job(format_args!("to host {receiver}, event {round}"))?);
                let chosen = match self.draw {
                    Draw::Independent => {
                        let mut others: Vec<u32> = (0..hosts).filter(|&h| h != receiver).collect();
                        rng.shuffle(&mut others);
                        others.truncate(senders);
                        others
                    }
                    Draw::Disjoint => apart[index * senders..][..senders].to_vec(),
                };
                for sender in chosen {
                    let late = Duration::from_ps((rng.unit_f64() * self.jitter.as_ps() as f64) as u64);
                    let start = Duration::from_ps(begin.as_ps().saturating_add(late.as_ps()));
                    out.message((sender, receiver), self.size, start, Stream::Own, job)?;
                }
            }
        }
        Ok(())
    }
}

impl Incast {
    fn receivers(&self, out: &WorkloadBuilder<'_>) -> Result<Vec<u32>, WorkloadError> {
        let hosts = out.env.hosts;
        if let Some(list) = &self.receiver_hosts {
            let list = out.hosts("receiver_hosts", list)?;
            let mut seen = list.clone();
            seen.sort_unstable();
            if let Some(twice) = seen.windows(2).find(|w| w[0] == w[1]) {
                return out.field_error("receiver_hosts", twice[0], "named twice; expected different hosts");
            }
            return match list.iter().find(|&&h| h >= hosts) {
                Some(host) => {
                    out.field_error("receiver_hosts", host, format!("expected hosts 0 to {}", hosts - 1))
                }
                None if list.is_empty() => {
                    out.field_error("receiver_hosts", "[]", "expected at least one host")
                }
                None => Ok(list),
            };
        }
        if self.receivers == 0 || self.receivers > hosts {
            return out.field_error(
                "receivers",
                self.receivers,
                format!("expected 1 to {hosts}, the number of hosts"),
            );
        }
        let mut all: Vec<u32> = (0..hosts).collect();
        out.rng("receivers").shuffle(&mut all);
        all.truncate(self.receivers as usize);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pathweave_units::Time;

    use super::*;
    use crate::kinds::Traffic;
    use crate::testing::{error_of, graph_of, notes_of};

    fn incast() -> Incast {
        Incast {
            senders: 7,
            size: Bytes::from_kb(64),
            receivers: 1,
            receiver_hosts: Some(vec![3].into()),
            jitter: Duration::from_us(2),
            draw: Draw::Independent,
            repetitions: 2,
            interval: Duration::from_us(100),
        }
    }

    #[test]
    fn different_senders_within_the_jitter() {
        let graph = graph_of(16, Traffic::Incast(incast()));
        assert_eq!((graph.messages().len(), graph.jobs().len()), (14, 2));
        for (event, messages) in graph.messages().chunks(7).enumerate() {
            let senders: BTreeSet<_> = messages.iter().map(|m| m.src).collect();
            assert_eq!(senders.len(), 7);
            let begin = Time::from_us(100 * event as u64);
            assert!(messages.iter().all(|m| m.dst.0 == 3 && (m.start - begin) < Duration::from_us(2)));
        }
    }

    #[test]
    fn disjoint_senders_are_each_used_once() {
        let config = Incast {
            senders: 7,
            receivers: 2,
            receiver_hosts: None,
            draw: Draw::Disjoint,
            repetitions: 1,
            ..incast()
        };
        let graph = graph_of(16, Traffic::Incast(config.clone()));
        let senders: BTreeSet<_> = graph.messages().iter().map(|m| m.src).collect();
        let receivers: BTreeSet<_> = graph.messages().iter().map(|m| m.dst).collect();
        assert_eq!((senders.len(), receivers.len()), (14, 2));
        assert!(senders.is_disjoint(&receivers));
        assert_eq!(
            error_of(15, Traffic::Incast(config)),
            "workload \"incast\": senders = 7: expected 1 to 6: 13 hosts are no receivers"
        );
    }

    #[test]
    fn settings_without_effect_are_noted() {
        assert_eq!(notes_of(16, Traffic::Incast(incast())), [""; 0]);
        let one = Incast { repetitions: 1, receivers: 2, ..incast() };
        assert_eq!(
            notes_of(16, Traffic::Incast(one)),
            [
                "`interval` has no effect: there is one event: `repetitions` is 1",
                "`receivers` has no effect: `receiver_hosts` lists them",
            ]
        );
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let error = |change: fn(&mut Incast)| {
            let mut config = incast();
            change(&mut config);
            error_of(16, Traffic::Incast(config))
        };
        assert_eq!(error(|c| c.senders = 16), "workload \"incast\": senders = 16: expected 1 to 15");
        assert_eq!(
            error(|c| c.receiver_hosts = Some(vec![16].into())),
            "workload \"incast\": receiver_hosts = 16: expected hosts 0 to 15"
        );
        let empty = error(|c| c.size = Bytes::ZERO);
        assert!(empty.ends_with("to host 3; allowed are 1 to 4294967296 bytes"), "{empty}");
    }
}
