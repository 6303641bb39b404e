//! Simulation of a plain port through a window: a port of a calm switch that is not paused and marks nothing.
//!
//! A plain port only queues and serves packets. Its transmitter and the lengths of its queues are therefore kept in
//! local variables, packets move from queue to link without a copy in between, and what concerns the link and the far
//! node is updated once for all packets.

use pathweave_units::{Duration, Time};

use crate::calm::Departures;
use crate::link::Link;
use crate::links::Wires;
use crate::packet::{Header, PortId};
use crate::port::Port;
use crate::ring::Ring;

/// Returns true if a port can neither be paused nor mark a packet in a window of so many bytes, even if all of them
/// went to its data queue. Ports with several data classes or an odd rate are left to the general loop.
#[inline(always)]
pub(crate) fn is_plain<const C: usize>(port: &Port<C>, window_bytes: u64) -> bool {
    let longest_bytes = u64::from(port.queued_bytes[C - 1]) + window_bytes;
    (C == 2)
        & (port.paused == 0)
        & (port.ps_per_byte() != 0)
        & (longest_bytes <= u64::from(port.mark_above_bytes))
}

/// Simulates a plain port up to `last`, with its arrivals in order of time.
#[inline(always)]
pub(crate) fn run_plain_port<'a, const C: usize>(
    wires: &mut Wires,
    port: &mut Port<C>,
    last: Time,
    departures: &mut Departures<'_, C>,
    arrivals: impl Iterator<Item = &'a Header>,
) {
    let link = &mut wires.links[port.peer as usize];
    let mut transmitter = Transmitter {
        free_at: port.tx_free,
        ps_per_byte: port.ps_per_byte(),
        delay: port.delay(),
        far_port: port.peer,
        first_arrival: Time::MAX,
        last_arrival: link.last_arrival(),
        sending_data_bytes: port.most_data_being_sent(),
        link,
        departures,
        #[cfg(feature = "hops")]
        hops: &mut wires.hops,
    };
    let mut queues = Queues {
        control_bytes: port.queued_bytes[0],
        data_bytes: port.queued_bytes[C - 1],
        most_bytes: port.max_queue_bytes,
        rings: &mut port.queues,
    };
    for header in arrivals {
        let now = header.arrival();
        queues.serve(now, &mut transmitter);
        if transmitter.free_at <= now {
            transmitter.free_at = now;
            transmitter.put(header);
        } else {
            queues.push(header);
        }
    }
    queues.serve(last, &mut transmitter);
    port.max_queue_bytes = queues.most_bytes;
    (port.queued_bytes[0], port.queued_bytes[C - 1]) = (queues.control_bytes, queues.data_bytes);
    port.backlog = u8::from(queues.control_bytes != 0) | u8::from(queues.data_bytes != 0) << 1;
    port.tx_free = transmitter.free_at;
    port.set_data_being_sent(transmitter.sending_data_bytes);
    let (first_arrival, last_arrival) = (transmitter.first_arrival, transmitter.last_arrival);
    if first_arrival != Time::MAX {
        wires.links[port.peer as usize].note_arrivals(first_arrival, last_arrival);
        wires.advance_due(port.peer_node, first_arrival);
    }
}

/// Queues of a plain port. A queue of 0 bytes is empty.
struct Queues<'a, const C: usize> {
    control_bytes: u32,
    data_bytes: u32,
    /// Largest sum of both so far.
    most_bytes: u32,
    rings: &'a mut [Ring<Header>; C],
}

impl<const C: usize> Queues<'_, C> {
    /// Starts every service that begins up to `until`.
    #[inline(always)]
    fn serve(&mut self, until: Time, transmitter: &mut Transmitter<'_, '_, C>) {
        while (self.control_bytes | self.data_bytes != 0) & (transmitter.free_at <= until) {
            let class = usize::from(self.control_bytes == 0);
            let ring = &mut self.rings[class & (C - 1)];
            let header = ring.first();
            let wire_bytes = u32::from(header.wire_bytes());
            transmitter.put(header);
            ring.drop_first();
            let (control_bytes, data_bytes) = by_class(class, wire_bytes);
            self.control_bytes -= control_bytes;
            self.data_bytes -= data_bytes;
        }
    }

    #[inline(always)]
    fn push(&mut self, header: &Header) {
        let class = header.class_index::<C>();
        let ring = &mut self.rings[class];
        ring.restart_if_empty();
        ring.push(*header);
        let (control_bytes, data_bytes) = by_class(class, u32::from(header.wire_bytes()));
        self.control_bytes += control_bytes;
        self.data_bytes += data_bytes;
        self.most_bytes = self.most_bytes.max(self.control_bytes + self.data_bytes);
    }
}

/// Returns the bytes of a packet as those of control and those of data.
#[inline(always)]
fn by_class(class: usize, wire_bytes: u32) -> (u32, u32) {
    if class == 0 { (wire_bytes, 0) } else { (0, wire_bytes) }
}

/// Transmitter of a plain port, with the link that it feeds.
struct Transmitter<'a, 'd, const C: usize> {
    free_at: Time,
    ps_per_byte: u32,
    delay: Duration,
    far_port: PortId,
    /// Arrival time of the first packet that was put on the link; [`Time::MAX`] before.
    first_arrival: Time,
    /// Arrival time of the last packet on the link, past or future.
    last_arrival: Time,
    /// Size of the frame last transmitted; 0 if it is no data.
    sending_data_bytes: u16,
    link: &'a mut Link,
    departures: &'a mut Departures<'d, C>,
    #[cfg(feature = "hops")]
    hops: &'a mut crate::hop::HopLog,
}

impl<const C: usize> Transmitter<'_, '_, C> {
    /// Transmits a packet from the instant at which the transmitter is free.
    #[inline(always)]
    fn put(&mut self, header: &Header) {
        let wire_bytes = header.wire_bytes();
        #[cfg(feature = "hops")]
        let start = self.free_at;
        self.sending_data_bytes = wire_bytes * u16::from(header.class() > 0);
        self.free_at += Duration::from_ps(u64::from(wire_bytes) * u64::from(self.ps_per_byte));
        // A link whose delay has just decreased still delivers in order.
        self.last_arrival = self.last_arrival.max(self.free_at + self.delay);
        self.first_arrival = self.first_arrival.min(self.last_arrival);
        self.link.append(header, self.far_port, self.last_arrival);
        self.departures.note(header);
        #[cfg(feature = "hops")]
        self.hops.note(header, self.far_port, start, self.last_arrival);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use pathweave_units::{HostId, PathId, Rate};

    use super::*;
    use crate::cable::{Cable, Span};
    use crate::calm::run_port;
    use crate::config::{SwitchClasses, SwitchConfig};
    use crate::fabric::Fabric;
    use crate::forwarding::{Divisor, IntervalRoutes, SwitchRoutes};
    use crate::numbers::PortMap;

    const HOSTS: u32 = 4;
    /// Ports of hosts are 0 to 3, those of the switch 4 to 7.
    const FIRST: usize = HOSTS as usize;
    /// Port under test.
    const PORT: usize = FIRST + 2;

    /// A packet that waits at the port or arrives at it.
    #[derive(Clone, Copy, Debug)]
    struct Packet {
        gap_ps: u64,
        ingress: u32,
        class: u8,
        wire_bytes: u32,
    }

    impl Packet {
        fn header(self, number: u32, arrival: Time) -> Header {
            let path = PathId(number as u16);
            let header =
                Header::new(HostId(self.ingress), HostId(2), path, self.wire_bytes, self.class, true);
            header.with_content(number).on_link(HOSTS + self.ingress, arrival)
        }
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let gap_ps = prop_oneof![Just(0), 0u64..2_000, 0u64..400_000];
        let wire_bytes = prop_oneof![Just(84), Just(4_178), 64u32..9_000];
        (gap_ps, 0..HOSTS, 0u8..2, wire_bytes).prop_map(|(gap_ps, ingress, class, wire_bytes)| Packet {
            gap_ps,
            ingress,
            class,
            wire_bytes,
        })
    }

    /// State of the port before a window.
    #[derive(Clone, Debug)]
    struct Before {
        waiting: Vec<Packet>,
        free_at: u64,
        last_arrival: u64,
    }

    fn before() -> impl Strategy<Value = Before> {
        (prop::collection::vec(packet(), 0..12), 0u64..2_000_000, 0u64..4_000_000)
            .prop_map(|(waiting, free_at, last_arrival)| Before { waiting, free_at, last_arrival })
    }

    /// Builds a star of four hosts at 100 Gb/s with this state of the port.
    fn star(before: &Before) -> Fabric<(), 2> {
        star_at(Rate::from_gbps(100), before)
    }

    fn star_at(rate: Rate, before: &Before) -> Fabric<(), 2> {
        let cable = |host| Cable {
            a: host,
            b: HOSTS,
            rate,
            delay: Duration::from_us(1),
            back: None,
            span: Span::Local,
        };
        let cables: Vec<Cable> = (0..HOSTS).map(cable).collect();
        let routes = SwitchRoutes::Interval(IntervalRoutes {
            first_host: 0,
            hosts_per_child: Divisor::new(1),
            children: HOSTS,
            down_base: HOSTS,
            down_bundle: 1,
            up_base: 0,
            up_count: 0,
        });
        let (map, classes) =
            (PortMap::new(HOSTS + 1, &cables), SwitchClasses::uniform(&SwitchConfig::default()));
        let mut fabric =
            Fabric::new(HOSTS, 1, &cables, &map, vec![routes], &classes, 1).expect("a valid star");
        let port = &mut fabric.transit.lines.ports[PORT];
        for (packet, number) in before.waiting.iter().zip(0..) {
            port.push(usize::from(packet.class), &packet.header(number, Time::ZERO));
        }
        port.tx_free = Time::from_ps(before.free_at);
        let link = &mut fabric.transit.lines.wires.links[port.peer as usize];
        link.note_arrivals(Time::MAX, Time::from_ps(before.last_arrival));
        fabric.transit.switches.held.iter_mut().for_each(|held| held.bytes = [1 << 20; 2]);
        fabric
    }

    /// Runs the port through a window, by the plain loop or the general one, and returns all that may have changed.
    fn outcome(fabric: &mut Fabric<(), 2>, plain: bool, last: Time, arrivals: &[Header]) -> String {
        let lines = &mut fabric.transit.lines;
        let mut departures = Departures::new(&mut fabric.transit.switches.held[FIRST..], FIRST);
        if plain {
            run_plain_port(&mut lines.wires, &mut lines.ports[PORT], last, &mut departures, arrivals.iter());
        } else {
            run_port(lines, PORT as PortId, last, &mut departures, arrivals.iter());
        }
        let departed = departures.counts();
        let port = &lines.ports[PORT];
        let words = |header: &Header| (header.arrival(), header.ingress(), header.links(), header.content());
        let queues = port.queues.each_ref().map(|queue| queue.iter().map(words).collect::<Vec<_>>());
        let link = &lines.wires.links[port.peer as usize];
        let on_link: Vec<_> = link.packets().map(words).collect();
        let held: Vec<_> = fabric.transit.switches.held.iter().map(|held| held.bytes).collect();
        let state = (port.tx_free, port.backlog, port.queued_bytes, port.max_queue_bytes);
        let times = (link.next_arrival(), link.last_arrival());
        // Only a lower bound, which the plain loop knows more precisely if the link's delay has decreased.
        let due = lines.wires.due[port.peer_node as usize];
        assert!(due <= link.next_arrival(), "due at {due} after an arrival");
        format!(
            "{departed:?} {state:?} {} {queues:?} {on_link:?} {times:?} {held:?}",
            port.most_data_being_sent()
        )
    }

    proptest! {
        /// Three windows in a row, so that queues that ran empty are filled again.
        #[test]
        fn the_plain_loop_does_as_the_general_one(
            before in before(),
            windows in prop::collection::vec(prop::collection::vec(packet(), 0..12), 3),
        ) {
            let mut fabrics = [star(&before), star(&before)];
            let mut now = Time::ZERO;
            let mut number = 100;
            for packets in windows {
                let mut arrivals = Vec::new();
                for packet in packets {
                    now += Duration::from_ps(packet.gap_ps);
                    arrivals.push(packet.header(number, now));
                    number += 1;
                }
                let last = now + Duration::from_ps(300_000);
                let bytes = arrivals.iter().map(|header| u64::from(header.wire_bytes())).sum();
                prop_assert!(is_plain(&fabrics[0].transit.lines.ports[PORT], bytes));
                let [plain, general] = &mut fabrics;
                prop_assert_eq!(
                    outcome(plain, true, last, &arrivals),
                    outcome(general, false, last, &arrivals)
                );
                now = last;
            }
        }
    }

    /// Two windows by hand: at 100 Gb/s a byte takes 80 ps.
    #[test]
    fn control_goes_first_and_data_waits() {
        let data = Packet { gap_ps: 0, ingress: 0, class: 1, wire_bytes: 1_000 };
        let control = Packet { gap_ps: 0, ingress: 1, class: 0, wire_bytes: 100 };
        let before = Before { waiting: vec![data, control], free_at: 50_000, last_arrival: 0 };
        let mut fabric = star(&before);
        outcome(&mut fabric, true, Time::from_ps(60_000), &[data.header(2, Time::from_ps(55_000))]);
        let lines = &fabric.transit.lines;
        let (port, sent) = (&lines.ports[PORT], &lines.wires.links[2]);
        // Control from 50 ns to 58 ns, then the data that waited to 138 ns; its last bit arrives a microsecond later.
        let arrivals: Vec<u64> = sent.packets().map(|header| header.arrival().as_ps()).collect();
        assert_eq!(arrivals, [1_058_000, 1_138_000]);
        assert_eq!(port.tx_free, Time::from_ps(138_000));
        assert_eq!((port.queued_bytes, port.backlog), ([0, 1_000], 0b10));
        // The arriving data joined the data that waited, while control was sent.
        assert_eq!((port.max_queue_bytes, port.most_data_being_sent()), (2_000, 1_000));
    }

    #[test]
    fn ports_that_are_paused_mark_or_have_an_odd_rate_are_not_plain() {
        let idle = Before { waiting: vec![], free_at: 0, last_arrival: 0 };
        // A byte at 3 Gb/s takes 2,666.7 ps.
        assert!(!is_plain(&star_at(Rate::from_gbps(3), &idle).transit.lines.ports[PORT], 0));
        let mut fabric = star(&idle);
        let port = &mut fabric.transit.lines.ports[PORT];
        // The default threshold at 100 Gb/s.
        assert!(is_plain(port, 400_000) && !is_plain(port, 400_001));
        port.paused = 1 << 1;
        assert!(!is_plain(port, 0));
        port.paused = 0;
        port.leave_unmarked();
        assert!(is_plain(port, 400_001));
    }
}
