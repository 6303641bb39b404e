//! Memory use of the data structures. `cargo test -p pathweave-sim --test memory -- --nocapture` prints the sizes.

#![allow(clippy::print_stdout, reason = "the figures are the point")]

#[path = "all/support/mod.rs"]
mod support;

use std::path::Path;

use allocation_counter::measure;
use pathweave_fabric::config::{SwitchClasses, SwitchConfig};
use pathweave_fabric::{Cable, Divisor, Fabric, Header, IntervalRoutes, PortMap, Span, SwitchRoutes};
use pathweave_policy::{AnyPolicy, PolicyEnv};
use pathweave_sim::{NoMonitor, run};
use pathweave_topo::{Build, Star};
use pathweave_transport::{Buffer, Endpoint, EndpointConfig, FreePorts, Op, QpConfig, WorkRequest};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::Segment;
use support::{permutation, spec};

const HOSTS: u32 = 1_024;

/// Returns the value that `make` creates, and the heap bytes that the value holds.
fn held<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let mut made = None;
    let info = measure(|| made = Some(make()));
    (made.expect("it was made"), u64::try_from(info.bytes_current).expect("more is held than before"))
}

#[test]
fn sizes_of_what_is_many() {
    println!("header of a packet in the fabric: {} B", size_of::<Header>());
    println!("segment: {} B", size_of::<Segment>());
    println!("policy of any kind: {} B", size_of::<AnyPolicy>());
    println!("endpoint without what it holds: {} B", size_of::<Endpoint<AnyPolicy>>());
    assert_eq!(size_of::<Header>(), 32);
    assert!(size_of::<Segment>() <= 72);
    assert!(size_of::<AnyPolicy>() <= 512);
}

/// Ports are private, so their size is measured by building fabrics.
#[test]
fn an_idle_host_with_its_ports_is_at_most_a_kilobyte() {
    let fabric = |hosts: u32| {
        let cable = |host| Cable {
            a: host,
            b: hosts,
            rate: Rate::from_gbps(100),
            delay: Duration::from_us(1),
            back: None,
            span: Span::Local,
        };
        let cables: Vec<Cable> = (0..hosts).map(cable).collect();
        let map = PortMap::new(hosts + 1, &cables);
        let routes = IntervalRoutes {
            first_host: 0,
            hosts_per_child: Divisor::new(1),
            children: hosts,
            down_base: hosts,
            down_bundle: 1,
            up_base: 0,
            up_count: 0,
        };
        let mut config = SwitchConfig::default();
        config.pfc.enabled = false;
        let routes = vec![SwitchRoutes::Interval(routes)];
        Fabric::<Segment, 2>::new(hosts, 1, &cables, &map, routes, &SwitchClasses::uniform(&config), 1)
            .expect("it can be built")
    };
    let (_half, less) = held(|| fabric(HOSTS));
    let (_whole, more) = held(|| fabric(2 * HOSTS));
    // A cable has two ports: the host's and the switch's.
    let port = (more - less) / u64::from(2 * HOSTS);
    let (_endpoints, bytes) = held(|| {
        let endpoint = |id| Endpoint::<AnyPolicy>::new(EndpointConfig::new(HostId(id)));
        (0..HOSTS).map(endpoint).collect::<Vec<_>>()
    });
    let endpoint = bytes / u64::from(HOSTS);
    println!("idle: {port} B for a port, {endpoint} B for an endpoint");
    assert!(port + endpoint <= 1_024, "{port} + {endpoint} B");
}

fn env() -> PolicyEnv {
    PolicyEnv::new(Rate::from_gbps(100), Duration::from_us(8), 256)
}

#[test]
fn queue_pairs() {
    for info in pathweave_policy::schemes() {
        let scheme = (info.make)();
        let mut endpoint = Endpoint::<AnyPolicy>::new(EndpointConfig::new(HostId(0)));
        let ((), bytes) = held(|| {
            for n in 0..u64::from(HOSTS) {
                let mut rng = Rng::for_component(1, "test", n);
                let policy = scheme.policy.build(&env(), &mut rng);
                let config = QpConfig {
                    recovery: scheme.recovery,
                    acks: scheme.acks,
                    cnp: scheme.cnp,
                    reordering: scheme.reordering,
                    credit: scheme.credit_terms(&env(), env().line_rate),
                    ..QpConfig::new(HostId(1), policy, &[])
                };
                endpoint.create_qp(Time::ZERO, config);
            }
        });
        let each = bytes / u64::from(HOSTS);
        println!("{}: {each} B an idle queue pair", info.name);
        assert!(each <= 8_192, "{}: {each} B", info.name);
    }
}

/// A queue pair as in an all-to-all: one of many connections, with one packet in flight.
#[test]
fn a_queue_pair_with_one_packet_on_its_way() {
    let scheme = (pathweave_policy::find_scheme("ecmp").expect("RoCE as deployed").make)();
    let mut endpoint = Endpoint::<AnyPolicy>::new(EndpointConfig::new(HostId(0)));
    let ((), bytes) = held(|| {
        for n in 0..u64::from(HOSTS) {
            let policy = scheme.policy.build(&env(), &mut Rng::for_component(1, "test", n));
            let config = QpConfig { recovery: scheme.recovery, ..QpConfig::new(HostId(1), policy, &[]) };
            let qp = endpoint.create_qp(Time::ZERO, config);
            endpoint.connect(qp, QpNum(2)).expect("just made");
            let request = WorkRequest { wr_id: n, op: Op::Send, local: Buffer(0), len: 4_096 };
            endpoint.post(Time::ZERO, qp, request).expect("it has not failed");
            endpoint.poll_transmit(Time::ZERO, FreePorts::OPEN).expect("the first packet may leave at once");
        }
    });
    let each = bytes / u64::from(HOSTS);
    println!("{each} B a queue pair with a message of one packet");
    assert!(each <= 1_536, "{each} B");
}

#[test]
fn a_run_weighs_what_is_on_the_wire() {
    // Twice as many hosts, each with a flow of ten packets in flight: the difference is the memory of a busy host,
    // everything included.
    let peak = |hosts: u32| {
        let star = Star { rate: Rate::from_gbps(100), delay: Duration::from_us(1), ..Star::new(hosts) };
        let mut spec = spec(star.build(Path::new(".")).expect("a star"), &permutation(hosts, 40_960), "rps");
        spec.switch.pfc.enabled = false;
        spec.run.verify = false;
        let info = measure(|| {
            run(&spec, &mut NoMonitor).expect("a valid spec");
        });
        info.bytes_max
    };
    let (less, more) = (peak(256), peak(512));
    let each = (more - less) / 256;
    println!("a busy host with one queue pair at each end: {each} B at the peak of a run");
    assert!(each <= 32_768, "{each} B");
}
