//! The clients of a server with their measurements. Decides when the requested number of clients has been served.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_datapath::secure::{OsRandom, SecureRandom};
use serde::Serialize;

use crate::console::Failure;
use crate::report::rule;
use crate::test::TestSummary;

/// Time after which a client counts as done that announced another measurement and has not requested it.
const RETURN_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest number of clients that a server without a client limit remembers. It forgets the oldest first.
const REMEMBERED: usize = 1_000;

/// Largest number of measurements per client.
const MOST_MEASUREMENTS: usize = 1_000;

/// Amount of data that a measurement moved, as the server counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Transferred {
    /// Duration from the client's start message to the server's report.
    pub(crate) seconds: f64,
    /// Payload received from the client, each byte counted once.
    pub(crate) received_bytes: u64,
    /// Payload sent to the client. On a connection it includes retransmissions. With datagrams it counts completed
    /// messages.
    pub(crate) sent_bytes: u64,
}

/// Outcome of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// The client was sent the server's report.
    Done,
    /// The measurement ended early.
    Broken,
    /// The server refused the measurement.
    Refused,
}

/// Measurement of a client.
#[derive(Clone, Debug, Serialize)]
struct Measurement {
    #[serde(flatten)]
    what: Option<TestSummary>,
    #[serde(flatten)]
    moved: Transferred,
    /// Outcome, or `None` if the server ended first.
    ended: Option<Ended>,
}

/// Client: one run of the program.
#[derive(Clone, Debug, Serialize)]
struct Client {
    address: SocketAddr,
    #[serde(skip)]
    number: u64,
    measurements: Vec<Measurement>,
    /// True if the client has announced another measurement.
    #[serde(skip)]
    comes_back: bool,
    #[serde(skip)]
    quiet_since: Instant,
}

/// Draws a random number that identifies a client. Its address may differ from measurement to measurement.
pub(crate) fn draw_number() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    OsRandom.fill(&mut bytes).map_err(|why| Failure::Internal(why.to_string()))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Identifies a measurement of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeasurementId {
    client: u64,
    measurement: usize,
}

/// All clients so far, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    max_clients: Option<u64>,
    all: BTreeMap<u64, Client>,
    admitted: u64,
    forgotten: u64,
}

impl Clients {
    /// Creates the list for a server that ends after `most` clients.
    pub(crate) fn new(most: Option<u64>) -> Self {
        Clients { max_clients: most, ..Clients::default() }
    }

    /// Admits a client's request for a measurement. `number` is from [`draw_number`]. `comes_back` announces another
    /// measurement.
    ///
    /// # Errors
    /// If the server has reached its number of clients, or the client its number of measurements.
    pub(crate) fn admit(
        &mut self,
        number: u64,
        address: SocketAddr,
        comes_back: bool,
    ) -> Result<MeasurementId, String> {
        let known = self.all.iter().find(|(_, client)| client.number == number);
        let came = match (known, self.max_clients) {
            (Some((&known, _)), _) => known,
            (None, Some(most)) if self.admitted >= most => {
                return Err(format!("the server takes no more than {most} clients (--clients)"));
            }
            (None, most) => {
                if most.is_none() && self.all.len() >= REMEMBERED {
                    self.forget();
                }
                self.admitted += 1;
                self.admitted - 1
            }
        };
        let client = self.all.entry(came).or_insert_with(|| Client {
            address,
            number,
            measurements: Vec::new(),
            comes_back,
            quiet_since: Instant::now(),
        });
        if client.measurements.len() >= MOST_MEASUREMENTS {
            return Err(format!("a client has at most {MOST_MEASUREMENTS} measurements"));
        }
        client.comes_back = comes_back;
        client.measurements.push(Measurement { what: None, moved: Transferred::default(), ended: None });
        Ok(MeasurementId { client: came, measurement: client.measurements.len() - 1 })
    }

    /// Forgets the client that arrived first among those that are done.
    fn forget(&mut self) {
        if let Some(first) = self.all.iter().find_map(|(&came, client)| client.is_over().then_some(came)) {
            self.all.remove(&first);
            self.forgotten += 1;
        }
    }

    /// Records that a measurement begins.
    pub(crate) fn begins(&mut self, ticket: MeasurementId, what: TestSummary) {
        if let Some(client) = self.all.get_mut(&ticket.client) {
            client.measurements[ticket.measurement].what = Some(what);
        }
    }

    /// Records the end of a measurement.
    pub(crate) fn ends(&mut self, ticket: MeasurementId, ended: Ended, moved: Transferred) {
        // A client with an open measurement is never forgotten.
        let Some(client) = self.all.get_mut(&ticket.client) else { return };
        let measurement = &mut client.measurements[ticket.measurement];
        (measurement.ended, measurement.moved) = (Some(ended), moved);
        client.quiet_since = Instant::now();
        client.comes_back &= ended == Ended::Done;
    }

    /// Records what a measurement had moved when the server ended.
    pub(crate) fn is_cut_off(&mut self, ticket: MeasurementId, moved: Transferred) {
        if let Some(client) = self.all.get_mut(&ticket.client) {
            client.measurements[ticket.measurement].moved = moved;
        }
    }

    /// Returns true if the requested number of clients have come and are done.
    pub(crate) fn are_over(&self) -> bool {
        self.max_clients.is_some_and(|most| self.admitted >= most) && self.all.values().all(Client::is_over)
    }

    /// Returns true if there was any client.
    pub(crate) fn has_any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Returns the measurements of each client as a table.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        rule(&mut text);
        let _ = writeln!(
            text,
            " {:<22} {:<16} {:>11} {:>6} {:>9} {:>10} {:>9} {:>9}",
            "client", "measurement", "#bytes", "depth", "time[s]", "in[MB/s]", "out[MB/s]", "ended"
        );
        if self.forgotten > 0 {
            let _ = writeln!(text, " {} clients before these", self.forgotten);
        }
        for client in self.all.values() {
            let mut address = client.address.to_string();
            for measurement in &client.measurements {
                let Measurement { what, moved, ended } = measurement;
                // A refused measurement has no time, and one of datagrams that is cut off none that is known.
                let timed = |text: String| if moved.seconds > 0.0 { text } else { "-".to_owned() };
                let rate = |bytes: u64| timed(format!("{:.2}", bytes as f64 / 1e6 / moved.seconds));
                let kind = what.map_or("-".to_owned(), |what| format!("{} {}", what.op, what.kind));
                let of = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
                let _ = writeln!(
                    text,
                    " {address:<22} {kind:<16} {:>11} {:>6} {:>9} {:>10} {:>9} {:>9}",
                    of(what.map(|what| what.size_bytes)),
                    of(what.map(|what| what.depth.into())),
                    timed(format!("{:.3}", moved.seconds)),
                    rate(moved.received_bytes),
                    rate(moved.sent_bytes),
                    match ended {
                        Some(Ended::Done) => "done",
                        Some(Ended::Broken) => "broken",
                        Some(Ended::Refused) => "refused",
                        None => "cut off",
                    }
                );
                address.clear();
            }
        }
        rule(&mut text);
        text
    }

    /// Returns the measurements as JSON. `interrupted` is true if the user ended the server.
    pub(crate) fn json(&self, server: SocketAddr, protection: &str, interrupted: bool) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            server: SocketAddr,
            protection: &'a str,
            ended: &'a str,
            /// Number of earlier clients that were forgotten.
            forgotten_clients: u64,
            clients: Vec<&'a Client>,
        }
        let ended = if interrupted { "interrupted" } else { "done" };
        let (forgotten_clients, clients) = (self.forgotten, self.all.values().collect());
        crate::json(&Document { server, protection, ended, forgotten_clients, clients })
    }
}

impl Client {
    fn is_over(&self) -> bool {
        let running = self.measurements.iter().any(|one| one.ended.is_none());
        !running && (!self.comes_back || self.quiet_since.elapsed() >= RETURN_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHAT: TestSummary = TestSummary { op: "write", kind: "bandwidth", size_bytes: 4_096, depth: 8 };
    const MOVED: Transferred = Transferred { seconds: 2.0, received_bytes: 6_000_000, sent_bytes: 1_000_000 };

    fn at(port: u16) -> (u64, SocketAddr) {
        (port.into(), SocketAddr::from(([10, 0, 0, 1], port)))
    }

    #[test]
    fn a_client_is_over_with_its_last_measurement_and_no_other_is_let_in() {
        let mut clients = Clients::new(Some(2));
        let [(first, near), (second, far), (third, other)] = [at(1), at(2), at(3)];
        let one = clients.admit(first, near, true).unwrap();
        clients.begins(one, WHAT);
        clients.ends(one, Ended::Done, MOVED);
        let two = clients.admit(second, far, false).unwrap();
        assert!(clients.admit(third, other, false).unwrap_err().contains("no more than 2 clients"));
        clients.ends(two, Ended::Refused, Transferred::default());
        assert!(!clients.are_over(), "the first comes back");
        let again = clients.admit(first, near, false).unwrap();
        assert!(!clients.are_over());
        clients.ends(again, Ended::Done, MOVED);
        assert!(clients.are_over());
        let text = clients.text();
        assert!(text.contains("10.0.0.1:1") && text.contains("3.00") && text.contains("refused"), "{text}");
        assert_eq!(text.lines().count(), 6);
    }

    #[test]
    fn broken_clients_do_not_return_and_without_a_number_it_never_ends() {
        let mut clients = Clients::new(Some(1));
        let (number, address) = at(1);
        let ticket = clients.admit(number, address, true).unwrap();
        clients.ends(ticket, Ended::Broken, Transferred::default());
        assert!(clients.are_over());
        let mut any = Clients::new(None);
        for number in 0..3 {
            let ticket = any.admit(number, address, false).unwrap();
            any.ends(ticket, Ended::Done, MOVED);
        }
        assert!(!any.are_over());
    }

    #[test]
    fn a_measurement_that_the_server_cuts_off_has_what_it_moved_and_a_refused_one_has_none() {
        let mut clients = Clients::new(None);
        let tickets = [1, 2].map(|port| clients.admit(port.into(), at(port).1, false).unwrap());
        clients.begins(tickets[0], WHAT);
        clients.is_cut_off(tickets[0], MOVED);
        clients.ends(tickets[1], Ended::Refused, Transferred::default());
        let text = clients.text();
        let words =
            |line: usize| text.lines().nth(line).unwrap().split_whitespace().skip(1).collect::<Vec<_>>();
        assert_eq!(words(2), ["write", "bandwidth", "4096", "8", "2.000", "3.00", "0.50", "cut", "off"]);
        assert_eq!(words(3), ["-", "-", "-", "-", "-", "-", "refused"]);
        let json = clients.json(at(9).1, "insecure", true);
        assert!(json.contains("\"received_bytes\": 6000000") && json.contains("\"ended\": null"), "{json}");
    }

    #[test]
    fn a_client_is_known_by_its_number_wherever_it_comes_from() {
        let mut clients = Clients::new(Some(1));
        for (port, comes_back) in [(1, true), (2, false)] {
            let ticket = clients.admit(7, at(port).1, comes_back).unwrap();
            clients.ends(ticket, Ended::Done, MOVED);
        }
        assert!(clients.are_over());
    }

    #[test]
    fn memory_of_clients_is_bounded_and_keeps_active_ones() {
        let mut clients = Clients::new(None);
        let open = clients.admit(u64::MAX, at(1).1, false).unwrap();
        for number in 0..REMEMBERED as u64 + 5 {
            let ticket = clients.admit(number, at(2).1, false).unwrap();
            clients.ends(ticket, Ended::Done, MOVED);
        }
        assert_eq!((clients.all.len(), clients.forgotten), (REMEMBERED, 6));
        clients.ends(open, Ended::Done, MOVED);
        assert!(clients.text().contains("6 clients before these") && clients.text().contains("10.0.0.1:1"));
        for _ in 1..MOST_MEASUREMENTS {
            clients.admit(u64::MAX, at(1).1, true).unwrap();
        }
        assert!(clients.admit(u64::MAX, at(1).1, true).unwrap_err().contains("at most 1000 measurements"));
    }
}
