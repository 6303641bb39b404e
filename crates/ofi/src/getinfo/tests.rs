//! Offers on hosts that the tests define.

use super::*;
use crate::abi::fabric::*;
use crate::abi::version;
use crate::settings::Settings;
use pathweave_door::Link;

fn interface(name: &str, address: &str, prefix_bits: u8) -> Interface {
    Interface { name: name.into(), address: address.parse().unwrap(), prefix_bits, link: Link::Up }
}

fn host() -> Vec<Interface> {
    vec![
        interface("lo", "127.0.0.1", 8),
        interface("eth0", "fd00::5", 64),
        interface("eth0", "10.1.2.3", 24),
        interface("eth1", "10.1.2.4", 24),
        interface("eth2", "10.9.0.1", 16),
        interface("eth2", "fe80::1", 64),
    ]
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let get = |name: &str| match name {
        "PATHWEAVE_PROTECTION" => Some("insecure".into()),
        _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()),
    };
    Settings::read(&get).unwrap()
}

fn names(question: &Question, settings: &Settings) -> Result<Vec<String>, Refusal> {
    let found = offers(question, settings, &host())?;
    let name = |offer: &Offer| format!("{} {}", offer.interface.name, offer.interface.subnet());
    Ok(found.iter().map(name).collect())
}

fn question(hints: Hints) -> Question {
    Question { version: version(1, 17), hints: Some(hints), ..Question::default() }
}

#[test]
fn one_offer_a_subnet_version_4_first_and_loopback_not_at_all() {
    let all = names(&question(Hints::default()), &settings(&[]));
    // Applications take each offer for a separate link, and eth0 is one link.
    assert_eq!(all.unwrap(), ["eth0 10.1.2.0/24", "eth2 10.9.0.0/16"]);
    let dest = Hints { src: Some("[fd00::5]:0".parse().unwrap()), ..Hints::default() };
    assert_eq!(names(&question(dest), &settings(&[])).unwrap(), ["eth0 fd00::/64"]);
    let only_6 = [interface("eth3", "fd01::5", 64), interface("eth0", "10.1.2.3", 24)];
    let found = offers(&question(Hints::default()), &settings(&[]), &only_6).unwrap();
    assert_eq!(found.iter().map(|offer| &*offer.interface.name).collect::<Vec<_>>(), ["eth0", "eth3"]);
    let hints = Hints { addr_format: FI_SOCKADDR_IN6, ..Hints::default() };
    assert_eq!(names(&question(hints), &settings(&[])).unwrap(), ["eth0 fd00::/64"]);
    let only = |variable| names(&question(Hints::default()), &settings(&[variable]));
    assert_eq!(only(("PATHWEAVE_IFACE", "lo")).unwrap(), ["lo 127.0.0.0/8"]);
    assert_eq!(only(("PATHWEAVE_ADDRESS", "10.1.2.4")).unwrap(), ["eth1 10.1.2.0/24"]);
    let none = only(("PATHWEAVE_IFACE", "ib0")).unwrap_err().to_string();
    assert_eq!(none, "no interface that is up has the name ib0 (PATHWEAVE_IFACE)");
}

#[test]
fn an_address_that_loopback_has_too_is_that_of_the_port() {
    let routed = [interface("lo", "10.7.0.1", 32), interface("p0", "10.7.0.1", 32)];
    let found = offers(&question(Hints::default()), &settings(&[("PATHWEAVE_ADDRESS", "10.7.0.1")]), &routed);
    let found = found.unwrap();
    assert_eq!((found.len(), found[0].interface.name.as_str()), (1, "p0"));
}

#[test]
fn several_interfaces_together_are_one_offer_of_the_first() {
    let two = settings(&[("PATHWEAVE_ADDRESS", "10.9.0.1,10.1.2.4")]);
    let ask = |settings: &Settings, src: Option<&str>| {
        let src = src.map(|src| format!("{src}:0").parse().unwrap());
        names(&question(Hints { src, ..Hints::default() }), settings)
    };
    assert_eq!(ask(&two, None).unwrap(), ["eth2 10.9.0.0/16"]);
    assert_eq!(ask(&two, Some("10.1.2.4")).unwrap(), ["eth1 10.1.2.0/24"], "the one that is asked for");
    assert!(ask(&two, Some("10.1.2.3")).is_err());
    let others = |settings: &Settings, index: usize| {
        let all = settings.place.all(&host());
        let others = settings.place.others(&all[index], &all)?;
        Some(others.iter().map(|other| other.address.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(others(&two, 4), Some(vec!["10.1.2.4".into()]));
    assert_eq!(others(&two, 2), None);
    // With names, addresses of one family are used, and only if all interfaces have one.
    let names_of = settings(&[("PATHWEAVE_IFACE", "eth0,eth2")]);
    assert_eq!(ask(&names_of, None).unwrap(), ["eth0 10.1.2.0/24"]);
    assert_eq!(others(&names_of, 2), Some(vec!["10.9.0.1".into()]));
    let none = ask(&settings(&[("PATHWEAVE_IFACE", "eth0,ib0")]), None).unwrap_err().to_string();
    assert_eq!(none, "no interface that is up has the name ib0 (PATHWEAVE_IFACE)");
    let none = ask(&settings(&[("PATHWEAVE_ADDRESS", "10.9.0.1,10.9.0.2")]), None).unwrap_err().to_string();
    assert_eq!(none, "no interface that is up has the address 10.9.0.2 (PATHWEAVE_ADDRESS)");
    // All addresses of the loopback network are local.
    let loopback = settings(&[("PATHWEAVE_ADDRESS", "127.0.0.1,127.0.0.2")]);
    assert_eq!(ask(&loopback, None).unwrap(), ["lo 127.0.0.0/8"]);
    assert_eq!(others(&loopback, 0), Some(vec!["127.0.0.2".into()]));
    // The second address reaches this peer.
    let dest = Hints { dest: Some("127.0.0.1:9".parse().unwrap()), ..Hints::default() };
    assert_eq!(
        names(&question(dest), &settings(&[("PATHWEAVE_ADDRESS", "127.0.0.2,127.0.0.1")])).unwrap().len(),
        1
    );
}

/// An interface that is down keeps its position among those used together, but peers are never told its
/// address.
#[test]
fn interfaces_that_are_down_join_later_and_are_not_offered() {
    let mut host = host();
    let ask = |host: &[Interface], variable| {
        let settings = settings(&[variable]);
        let found = offers(&question(Hints::default()), &settings, host)?;
        let all = settings.place.all(host);
        let others = settings.place.others(&found[0].interface, &all).unwrap();
        let others: Vec<String> = others.into_iter().map(|other| other.name).collect();
        Ok::<_, Refusal>((found.len(), found[0].interface.name.clone(), others))
    };
    let both = [("PATHWEAVE_IFACE", "eth1,eth2"), ("PATHWEAVE_ADDRESS", "10.1.2.4,10.9.0.1")];
    host[3].link = Link::Down;
    for variable in both {
        assert_eq!(ask(&host, variable).unwrap(), (1, "eth2".into(), vec!["eth1".into()]));
    }
    (host[3].link, host[4].link) = (Link::Up, Link::Down);
    for variable in both {
        assert_eq!(ask(&host, variable).unwrap(), (1, "eth1".into(), vec!["eth2".into()]));
    }
    host[3].link = Link::Down;
    let none = ask(&host, both[0]).unwrap_err().to_string();
    assert_eq!(none, "no interface that is up has the name eth1 or eth2 (PATHWEAVE_IFACE)");
    assert!(ask(&host, ("PATHWEAVE_IFACE", "eth1")).is_err());
    // Without names, an interface that is down is not offered.
    let found = offers(&question(Hints::default()), &settings(&[]), &host).unwrap();
    assert!(found.iter().all(|offer| offer.interface.name == "eth0"));
}

#[test]
fn nodes_and_services_name_either_end() {
    let ask = |node: Option<&str>, service: Option<&str>, flags| {
        let (node, service) = (node.map(String::from), service.map(String::from));
        let question = Question { node, service, flags, ..question(Hints::default()) };
        offers(&question, &settings(&[]), &host())
    };
    let here = ask(Some("10.9.0.1"), Some("4000"), FI_SOURCE).unwrap();
    assert_eq!((here.len(), here[0].src), (1, "10.9.0.1:4000".parse().unwrap()));
    assert_eq!(here[0].dest, None);
    let anywhere = ask(None, Some("4000"), FI_SOURCE).unwrap();
    assert!(anywhere.iter().all(|offer| offer.src.port() == 4_000));
    assert_eq!(ask(None, None, FI_SOURCE).unwrap_err(), Refusal::NoSource);
    let there = ask(Some("127.0.0.1"), Some("5000"), FI_NUMERICHOST).unwrap();
    assert_eq!(there[0].dest, Some("127.0.0.1:5000".parse().unwrap()));
    assert_eq!(there[0].interface.name, "lo", "by route");
    assert_eq!(ask(Some("x"), None, FI_NUMERICHOST).unwrap_err(), Refusal::Unresolved("x".into()));
    assert_eq!(ask(None, Some("70000"), 0).unwrap_err(), Refusal::Unresolved("70000".into()));
}

#[test]
fn capabilities_are_those_asked_for() {
    let caps = |asked| {
        let question = question(Hints { caps: asked, ..Hints::default() });
        offers(&question, &settings(&[]), &host()).map(|offers| offers[0].caps.whole)
    };
    assert_eq!(caps(0).unwrap(), ALL);
    let tagged = caps(FI_TAGGED | FI_SOURCE).unwrap();
    assert_eq!(tagged, FI_TAGGED | FI_SOURCE | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM);
    let rma = caps(FI_RMA | FI_WRITE).unwrap();
    assert_eq!(rma & MEMORY_DIRECTIONS, FI_WRITE, "directions are added only where none is named");
    assert!(caps(FI_HMEM).is_err() && caps(FI_TAGGED | 1 << 40).is_err());
}

const NO_TX: TxAttr = TxAttr {
    caps: 0,
    mode: 0,
    op_flags: 0,
    msg_order: 0,
    comp_order: 0,
    inject_size: 0,
    size: 0,
    iov_limit: 0,
    rma_iov_limit: 0,
    tclass: 0,
};

#[test]
fn halves_name_their_own_capabilities_and_the_whole_has_them() {
    const COMM: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
    let ask = |whole: u64, tx: u64, rx: u64| {
        let no_rx = RxAttr {
            caps: 0,
            mode: 0,
            op_flags: 0,
            msg_order: 0,
            comp_order: 0,
            total_buffered_recv: 0,
            size: 0,
            iov_limit: 0,
        };
        let tx = Some(TxAttr { caps: tx, ..NO_TX });
        let rx = Some(RxAttr { caps: rx, ..no_rx });
        let question = question(Hints { caps: whole, tx, rx, ..Hints::default() });
        offers(&question, &settings(&[]), &host()).unwrap()[0].caps
    };
    // Each half has its own service, and the directions that no hint names.
    let caps = ask(0, FI_MSG, FI_TAGGED);
    assert_eq!((caps.tx, caps.rx), (FI_MSG | FI_SEND, FI_TAGGED | FI_RECV));
    assert_eq!(caps.whole, caps.tx | caps.rx | COMM);
    // A half that names nothing may have anything.
    let caps = ask(0, FI_TAGGED | FI_SEND, 0);
    assert_eq!((caps.tx, caps.rx), (FI_TAGGED | FI_SEND, ALL & RX_CAPS & !COMM));
    // Only the receive half asks for sources; the endpoint is told.
    let caps = ask(FI_TAGGED, 0, FI_TAGGED | FI_SOURCE);
    assert_eq!((caps.rx, caps.whole & FI_SOURCE), (FI_TAGGED | FI_RECV | FI_SOURCE, FI_SOURCE));
    // A half has no direction that the whole leaves out.
    assert_eq!(ask(FI_TAGGED | FI_SEND, 0, FI_TAGGED).rx, FI_TAGGED);
    // A half has domain capabilities if it names them.
    assert_eq!(ask(0, FI_MSG | COMM, FI_MSG).tx, FI_MSG | FI_SEND | COMM);
    // An answer is valid as hints.
    for (whole, tx, rx) in [(0, FI_MSG, FI_TAGGED), (FI_MSG | FI_RMA, FI_RMA, 0), (0, 0, 0)] {
        let caps = ask(whole, tx, rx);
        assert_eq!(ask(caps.whole, caps.tx, caps.rx), caps);
    }
    assert_eq!(ask(0, 0, 0).whole, ALL);
}

#[test]
fn missing_features_are_named() {
    let tx = NO_TX;
    let refused = |tx: TxAttr| {
        let hints = Hints { tx: Some(tx), ..Hints::default() };
        names(&question(hints), &settings(&[])).unwrap_err().to_string()
    };
    assert_eq!(
        refused(TxAttr { inject_size: 1_025, ..tx }),
        "tx_attr inject_size is 1025; offered: at most 1024"
    );
    assert!(refused(TxAttr { msg_order: FI_ORDER_WAW, ..tx }).starts_with("tx_attr msg_order is 0x10"));
    assert!(refused(TxAttr { comp_order: 1, ..tx }).starts_with("tx_attr comp_order"));
    assert!(refused(TxAttr { op_flags: FI_MATCH_COMPLETE, ..tx }).starts_with("tx_attr op_flags"));
    assert!(refused(TxAttr { iov_limit: 5, ..tx }).contains("at most 4"));
    let fine = Hints { tx: Some(TxAttr { inject_size: 1_024, size: 64, ..tx }), ..Hints::default() };
    assert!(names(&question(fine), &settings(&[])).is_ok());
}
