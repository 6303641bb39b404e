//! The source-route header: bytes written by hand, forwarding through switches, and random bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use pathweave_wire::{
    MAX_WAYPOINTS, RouteError, RouteForm, SourceRoute, Waypoint, Waypoints, emit_source_route, pass_waypoint,
};
use proptest::prelude::*;

const DOC: &str = include_str!("../../../../docs/wire.md");

fn emitted(path: u32, waypoints: Waypoints<'_>) -> Vec<u8> {
    let mut out = [0xee; 1_100];
    let len = emit_source_route(17, path, waypoints, &mut out).expect("1 to 63 entries");
    out[..len].to_vec()
}

#[test]
fn headers_by_hand() {
    let anchors = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 2, 255), Ipv4Addr::new(192, 168, 1, 7)];
    assert_eq!(
        emitted(0x0002_5600, Waypoints::Anchors(&anchors)),
        [17, 0x11, 3, 3, 0, 2, 0x56, 0, 10, 0, 0, 1, 10, 0, 2, 255, 192, 168, 1, 7],
        "20 bytes with three anchors"
    );
    // Three ports take 6 bytes, padded to 8.
    assert_eq!(
        emitted(7, Waypoints::Hops(&[1, 0x1234, 65_535])),
        [17, 0x12, 3, 3, 0, 0, 0, 7, 0, 1, 0x12, 0x34, 0xff, 0xff, 0, 0]
    );
    let segment = Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0x2a);
    assert_eq!(
        emitted(1, Waypoints::Segments(&[segment])),
        [17, 0x13, 1, 1, 0, 0, 0, 1, 0xfc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a]
    );
}

#[test]
fn hops_that_were_taken_are_the_way_back() {
    let mut bytes = emitted(5, Waypoints::Hops(&[12, 31, 20]));
    // Ingress and egress port at each switch.
    for (ingress, egress) in [(10, 12), (30, 31), (22, 20)] {
        assert_eq!(pass_waypoint(&mut bytes, ingress), Ok(Some(Waypoint::Hop(egress))));
    }
    let before = bytes.clone();
    assert_eq!(pass_waypoint(&mut bytes, 99), Ok(None));
    assert_eq!(bytes, before);
    let route = SourceRoute::parse(&bytes).unwrap();
    assert_eq!((route.remaining(), route.path(), route.next_header(), route.next()), (0, 5, 17, None));
    let back: Vec<Waypoint> = route.backwards().collect();
    assert_eq!(back, [22, 30, 10].map(Waypoint::Hop));
}

#[test]
fn anchors_stay_as_they_are() {
    let anchors = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9)];
    let mut bytes = emitted(1, Waypoints::Anchors(&anchors));
    for anchor in anchors {
        assert_eq!(SourceRoute::parse(&bytes).unwrap().next(), Some(Waypoint::Anchor(anchor)));
        assert_eq!(pass_waypoint(&mut bytes, 3), Ok(Some(Waypoint::Anchor(anchor))));
    }
    assert_eq!(bytes[8..], emitted(1, Waypoints::Anchors(&anchors))[8..]);
}

#[test]
fn errors_name_field_and_value() {
    let good = emitted(1, Waypoints::Hops(&[1, 2, 3]));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        SourceRoute::parse(&bytes).map(|route| route.len()).unwrap_err().to_string()
    };
    assert_eq!(with(1, 0x22), "source route version is 2, expected 1");
    assert_eq!(with(1, 0x14), "source route form is 4, expected 1 (anchors), 2 (hops) or 3 (segments)");
    assert_eq!(with(2, 0), "source route of 0 entries, expected 1 to 63");
    assert_eq!(with(2, 64), "source route of 64 entries, expected 1 to 63");
    assert_eq!(with(2, 60), "a source route of 128 bytes, 16 are there");
    assert_eq!(with(3, 4), "source route has 4 entries left of 3");
    assert_eq!(with(15, 9), "source route is filled up with 0x9, expected 0");
    let mut out = [0; 15];
    let hops = Waypoints::Hops(&[1, 2, 3]);
    let small = emit_source_route(17, 1, hops, &mut out);
    assert_eq!(small, Err(RouteError::Truncated { needed: 16, available: 15 }));
    for count in [0, MAX_WAYPOINTS + 1] {
        let list = vec![1; count];
        assert_eq!(emit_source_route(17, 1, Waypoints::Hops(&list), &mut out), Err(RouteError::Count(count)));
    }
}

#[test]
fn fields_lie_where_the_document_says() {
    let start = DOC.find("\n## Source route\n").expect("the section");
    let rows = DOC[start..].lines().skip_while(|line| !line.starts_with("| offset")).skip(2);
    let cells: Vec<(usize, usize, String)> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].parse().unwrap(), cells[1].parse().unwrap_or(0), cells[2].to_owned())
        })
        .collect();
    let names: Vec<&str> = cells.iter().map(|(.., name)| name.as_str()).collect();
    assert_eq!(names, ["next header", "version and form", "count", "left", "path", "entries"]);
    let mut next = 0;
    for (offset, len, name) in &cells {
        assert_eq!(*offset, next, "{name}");
        next += len;
    }
    assert_eq!(next, RouteForm::Hops.header_len(0));
    for (form, name) in
        [(RouteForm::Anchors, "anchors"), (RouteForm::Hops, "hops"), (RouteForm::Segments, "segments")]
    {
        let row = format!("| {} | {name} | {} |", form as u8, form.entry_len());
        assert!(DOC[start..].contains(&row), "{row}");
    }
}

fn check(bytes: &[u8]) {
    match SourceRoute::parse(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(route) => {
            assert!(route.remaining() <= route.len() && route.header_len() <= bytes.len());
            assert_eq!(route.backwards().count(), route.len());
            let mut copy = bytes.to_vec();
            let passed =
                (0..=MAX_WAYPOINTS).take_while(|_| pass_waypoint(&mut copy, 1).unwrap().is_some()).count();
            assert_eq!(passed, route.remaining());
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(mut bytes in prop::collection::vec(any::<u8>(), 0..300), form in 0..5u8) {
        check(&bytes);
        if bytes.len() > 1 {
            bytes[1] = 0x10 | form;
            check(&bytes);
        }
    }

    #[test]
    fn emitted_routes_are_parsed(path: u32, hops in prop::collection::vec(any::<u16>(), 1..=MAX_WAYPOINTS)) {
        let bytes = emitted(path, Waypoints::Hops(&hops));
        let route = SourceRoute::parse(&bytes).unwrap();
        let entries: Vec<Waypoint> = (0..route.len()).map(|i| route.entry(i)).collect();
        prop_assert_eq!(entries, hops.iter().map(|&port| Waypoint::Hop(port)).collect::<Vec<_>>());
        prop_assert_eq!((route.path(), route.remaining(), bytes.len()), (path, hops.len(), RouteForm::Hops.header_len(hops.len())));
        for len in 0..bytes.len() {
            let cut = SourceRoute::parse(&bytes[..len]).is_err();
            prop_assert!(cut, "cut at {}", len);
        }
    }
}
