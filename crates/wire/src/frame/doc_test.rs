//! Compares docs/wire.md with the code: same fields, same offsets, same sizes, without gaps.

use super::layout::{
    ACK_EXT_LEN, AETH_LEN, BTH_LEN, CNP_EXT_LEN, COMMON_LEN, DATA_EXT_LEN, ETHERNET_LEN, ICRC_LEN, IMMDT_LEN,
    IPV4_LEN, MAGIC, MISSING_EXT_LEN, NACK_EXT_LEN, PULL_TARGET_LEN, RD_EXT_LEN, RDETH_LEN, RETH_LEN,
    ROCE_PORT, UDP_LEN, VERSION, WRITE_IMM_EXT_LEN, bth, ext, reth,
};
use super::opcode::{Opcode, nack_reason};
use crate::control::ControlKind;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

const DOC: &str = include_str!("../../../../docs/wire.md");

/// Cells of the first table after `heading`, without its two header lines.
fn table(heading: &str) -> Vec<Vec<String>> {
    let start = DOC.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let lines = DOC[start + 1..].lines().skip(1);
    let rows = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2)
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect())
        .collect()
}

fn number(cell: &str) -> usize {
    cell.parse().unwrap_or_else(|_| panic!("{cell:?} is not a number"))
}

/// Checks a table of fields: they fill `from..to`, and each begins at the offset in the code.
fn check(heading: &str, from: usize, to: usize, fields: &[(&str, usize)]) {
    let rows = table(heading);
    let names: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(names, fields.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{heading}");
    let mut next = from;
    for (row, (name, offset)) in rows.iter().zip(fields) {
        assert_eq!(number(&row[0]), *offset, "{heading}: {name}");
        assert_eq!(*offset, next, "{heading}: hole or overlap before {name}");
        next += number(&row[1]);
    }
    assert_eq!(next, to, "{heading}: length");
}

#[test]
fn fields_lie_where_the_document_says() {
    check(
        "## BTH",
        0,
        BTH_LEN,
        &[
            ("opcode", bth::OPCODE),
            ("flags", bth::FLAGS),
            ("partition key", bth::PKEY),
            ("reserved", bth::RESERVED),
            ("destination QP", bth::DEST_QP),
            ("ack request", bth::ACK_REQ),
            ("PSN", bth::PSN),
        ],
    );
    check(
        "## RETH",
        0,
        RETH_LEN,
        &[
            ("virtual address", reth::VIRTUAL_ADDRESS),
            ("remote key", reth::R_KEY),
            ("DMA length", reth::DMA_LENGTH),
        ],
    );
    check(
        "### Common part",
        0,
        COMMON_LEN,
        &[
            ("magic", ext::MAGIC),
            ("version", ext::VERSION),
            ("path", ext::PATH),
            ("flags", ext::FLAGS),
            ("source QP", ext::SRC_QP),
        ],
    );
    check(
        "### Data extension",
        COMMON_LEN,
        DATA_EXT_LEN,
        &[
            ("MSN", ext::DATA_MSN),
            ("offset", ext::DATA_OFFSET),
            ("reference", ext::DATA_REFERENCE),
            ("sent at", ext::DATA_SENT_AT),
        ],
    );
    let target = [("pull target", DATA_EXT_LEN)];
    check("#### Where receivers grant credit", DATA_EXT_LEN, DATA_EXT_LEN + PULL_TARGET_LEN, &target);
    let more = [("receive", ext::DATA_RECEIVE)];
    check("#### With the last packet of a WRITE with immediate", DATA_EXT_LEN, WRITE_IMM_EXT_LEN, &more);
    check(
        "### Acknowledge extension",
        COMMON_LEN,
        ACK_EXT_LEN,
        &[
            ("back", ext::ACK_BACK),
            ("cumulative", ext::ACK_CUMULATIVE),
            ("packets", ext::ACK_PACKETS),
            ("marked", ext::ACK_MARKED),
            ("selective", ext::ACK_SACK),
            ("echo", ext::ACK_ECHO_SENT_AT),
            ("received at", ext::ACK_RECEIVED_AT),
        ],
    );
    check(
        "### Negative acknowledge extension",
        COMMON_LEN,
        NACK_EXT_LEN,
        &[("expected", ext::NACK_EXPECTED), ("selective", ext::NACK_SACK)],
    );
    check(
        "### RD extension",
        COMMON_LEN,
        RD_EXT_LEN,
        &[
            ("type", ext::RD_TYPE),
            ("message", ext::RD_MSG_ID),
            ("length", ext::RD_LEN),
            ("offset", ext::RD_OFFSET),
        ],
    );
    check("### Missing extension", COMMON_LEN, MISSING_EXT_LEN, &[("missing", ext::MISSING_BITS)]);
    for kind in ControlKind::ALL {
        let entry = kind.entry();
        let place = |(name, place): &(&str, Option<(usize, usize)>)| {
            Some((name.replace('_', " "), place.as_ref()?.0))
        };
        let fields: Vec<(String, usize)> = entry.fields.iter().filter_map(place).collect();
        let fields: Vec<(&str, usize)> = fields.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        check(&format!("### {} extension", entry.name), COMMON_LEN, entry.extension_len, &fields);
    }
    assert_eq!(CNP_EXT_LEN, COMMON_LEN);
}

#[test]
fn parts_are_as_long_as_the_document_says() {
    let smallest = CNP_EXT_LEN;
    let largest = ACK_EXT_LEN.max(DATA_EXT_LEN);
    let most = usize::from(u16::MAX) - IPV4_LEN - UDP_LEN - BTH_LEN - DATA_EXT_LEN - ICRC_LEN - 3;
    let thousands = format!("{},{:03}", most / 1000, most % 1000);
    let expected = vec![
        ("Ethernet", ETHERNET_LEN.to_string()),
        ("IPv4", IPV4_LEN.to_string()),
        ("UDP", UDP_LEN.to_string()),
        ("BTH", BTH_LEN.to_string()),
        ("RETH", RETH_LEN.to_string()),
        ("AETH", AETH_LEN.to_string()),
        ("ImmDt", IMMDT_LEN.to_string()),
        ("RDETH", RDETH_LEN.to_string()),
        ("extension", format!("{smallest} to {largest}")),
        ("payload", format!("0 to {thousands}")),
        ("padding", "0 to 3".to_string()),
        ("ICRC", ICRC_LEN.to_string()),
    ];
    let rows = table("## Frame");
    let found: Vec<(&str, String)> = rows.iter().map(|row| (row[0].as_str(), row[1].clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn magic_version_and_port_are_the_documents() {
    let rows = table("### Common part");
    assert_eq!(rows[0][3], format!("{MAGIC:#04x}"));
    assert_eq!(rows[1][3], VERSION.to_string());
    assert!(DOC.starts_with(&format!("# Wire format, version {VERSION}\n")));
    assert!(DOC.contains(&format!("destination port {ROCE_PORT}")));
}

#[test]
fn opcodes_and_syndromes_are_the_documents() {
    let byte =
        |text: &str| u8::from_str_radix(text.strip_prefix("0x").expect("hexadecimal"), 16).expect("a byte");
    let mut documented: Vec<u8> =
        table("### Opcodes").iter().flat_map(|row| row[0].split(' ').map(byte).collect::<Vec<_>>()).collect();
    documented.sort_unstable();
    let known: Vec<u8> = (0..=255).filter(|b| Opcode::from_byte(*b).is_some()).map(|b| b & 0x3f).collect();
    assert_eq!(documented, known);

    let documented: Vec<u8> = table("## AETH").iter().map(|row| byte(&row[0])).collect();
    let known: Vec<u8> = (0..=255).filter(|s| *s == 0x1f || nack_reason(*s).is_some()).collect();
    assert_eq!(documented, known);
}
