//! Comparison of docs/wire.md, "Datapath framing", with the code.

use super::hello::{MAX_NIC_PORTS, MAX_PATHS, MAX_PRIVATE_DATA_LEN, MAX_SCHEME_LEN};
use super::layout::{
    COOKIE_LEN, COOKIE_MARK_LEN, PUBLIC_LEN, TAG_LEN, VERSION, accept, common, confirm, data, hello,
    initiate, kind, message, reject, retry, versions,
};
use super::negotiate::Refusal;
use super::noise::PROTOCOL;
use super::{MAX_BYTES_PER_KEY, MAX_PACKETS_PER_KEY, Protection, REPLAY_WINDOW, Rotation, overhead};

const DOC: &str = include_str!("../../../docs/wire.md");

/// Returns the text under a heading, up to the next heading of the same or a higher level.
fn section(heading: &str) -> &'static str {
    let start = DOC.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let text = &DOC[start + heading.len() + 2..];
    let level = heading.bytes().take_while(|b| *b == b'#').count();
    let ends = (2..=level).filter_map(|level| text.find(&format!("\n{} ", "#".repeat(level))));
    &text[..ends.min().unwrap_or(text.len())]
}

/// Returns the cells of the `nth` table of a section, from 0, without its two header lines.
fn table(heading: &str, nth: usize) -> Vec<Vec<String>> {
    let mut tables = vec![vec![]];
    for line in section(heading).lines() {
        let last = tables.last_mut().expect("never empty");
        match line.strip_prefix('|') {
            Some(row) => {
                let cells = row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_string());
                last.push(cells.collect());
            }
            None if !last.is_empty() => tables.push(vec![]),
            None => {}
        }
    }
    tables.swap_remove(nth).split_off(2)
}

fn hex(text: &str) -> u8 {
    u8::from_str_radix(text.strip_prefix("0x").expect("hexadecimal"), 16).expect("a byte")
}

/// Checks that the documented fields fill `from..to` without gaps, and that each begins at the offset in the code.
/// `None` means any length.
fn check(heading: &str, nth: usize, from: usize, to: Option<usize>, fields: &[(&str, usize)]) {
    let rows = table(heading, nth);
    let names: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(names, fields.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{heading}");
    let mut next = from;
    for (row, (name, offset)) in rows.iter().zip(fields) {
        assert_eq!(row[0], offset.to_string(), "{heading}: {name}");
        assert_eq!(*offset, next, "{heading}: hole or overlap before {name}");
        next += row[1].split(' ').next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    }
    if let Some(to) = to {
        assert_eq!(next, to, "{heading}: length");
    }
}

#[test]
fn fields_lie_where_the_document_says() {
    let packet = [
        ("kind", data::KIND),
        ("epochs", data::EPOCH),
        ("path", data::PATH),
        ("session", data::TO),
        ("number", data::NUMBER),
    ];
    check("### Protected packet", 0, 0, Some(data::LEN), &packet);
    let head = [
        ("kind", common::KIND),
        ("type", common::TYPE),
        ("version", common::VERSION),
        ("reserved", common::RESERVED),
        ("attempt", common::ATTEMPT),
    ];
    check("### Handshake", 1, 0, Some(common::LEN), &head);
    let request = [("cookie", initiate::COOKIE), ("Noise", initiate::NOISE)];
    check("#### Initiate", 0, common::LEN, Some(initiate::MIN_LEN), &request);
    let answer = [("refused", retry::REFUSED), ("cookie", retry::COOKIE), ("MAC", retry::MAC)];
    check("#### Retry", 0, common::LEN, Some(retry::LEN), &answer);
    let least = accept::NOISE + PUBLIC_LEN + TAG_LEN;
    check("#### Accept", 0, common::LEN, Some(least), &[("Noise", accept::NOISE)]);
    check("#### Confirm", 0, common::LEN, Some(confirm::LEN), &[("MAC", confirm::MAC)]);
    let refusal = [
        ("reason", reject::REASON),
        ("reserved", reject::RESERVED),
        ("detail", reject::DETAIL),
        ("MAC", reject::MAC),
    ];
    check("#### Reject", 0, common::LEN, Some(reject::LEN), &refusal);
    let list = [("count", versions::COUNT), ("list", versions::LIST)];
    check("#### Versions", 0, common::LEN, None, &list);
    let said = [
        ("protection", hello::PROTECTION),
        ("transport", hello::TRANSPORT),
        ("MTU payload", hello::MTU_PAYLOAD),
        ("paths", hello::PATHS),
        ("NIC ports", hello::NIC_PORTS),
        ("reserved", hello::RESERVED),
        ("host", hello::HOST),
        ("QP", hello::QP),
        ("session", hello::SESSION),
        ("features", hello::FEATURES),
        ("required", hello::REQUIRED),
    ];
    check("### Hello", 0, 0, Some(hello::OPTIONS), &said);
}

#[test]
fn kinds_types_options_and_reasons_are_the_documents() {
    let kinds = table("## Datapath framing", 0);
    let firsts: Vec<&str> = kinds.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        firsts[..3].iter().map(|t| hex(t)).collect::<Vec<_>>(),
        [kind::HANDSHAKE, kind::ENCRYPTED, kind::AUTHENTICATED]
    );
    assert_eq!(firsts[3], format!("{:#04x} to {:#04x}", kind::PLAIN.start(), kind::PLAIN.end()));

    let least = |len: usize| format!("{len} or more");
    let versions_len = versions::LIST + TAG_LEN;
    let expected = [
        ("Initiate", message::INITIATE, least(initiate::MIN_LEN)),
        ("Retry", message::RETRY, retry::LEN.to_string()),
        ("Accept", message::ACCEPT, least(accept::NOISE + PUBLIC_LEN + TAG_LEN)),
        ("Confirm", message::CONFIRM, confirm::LEN.to_string()),
        ("Reject", message::REJECT, reject::LEN.to_string()),
        ("Versions", message::VERSIONS, least(versions_len)),
    ];
    let found: Vec<_> = table("### Handshake", 0)
        .into_iter()
        .map(|row| (row[0].clone(), row[1].parse::<u8>().expect("a type"), row[3].clone()))
        .collect();
    assert_eq!(found, expected.map(|(name, code, len)| (name.to_string(), code, len)));
    // No answer to an address that may be forged is longer than the request.
    assert!(retry::LEN.max(versions_len + versions::MAX) <= initiate::MIN_LEN);

    let options: Vec<u8> = table("### Hello", 1).iter().map(|row| row[0].parse().expect("a type")).collect();
    let known =
        [hello::OPTION_VERSIONS, hello::OPTION_SCHEME, hello::OPTION_PRIVATE_DATA, hello::OPTION_ADDRESSES];
    assert_eq!(options, known);
    assert_eq!((hello::OPTION_PAD, hello::MUST_UNDERSTAND), (0, 0x80));

    let reasons: Vec<u8> =
        table("#### Reject", 1).iter().map(|row| row[0].parse().expect("a reason")).collect();
    let known: Vec<u8> =
        (0..=255).filter(|code| !matches!(Refusal::decode(*code, 0), Refusal::Other { .. })).collect();
    assert_eq!(reasons, known);
    for code in 0..=255 {
        let refusal = Refusal::decode(code, 1);
        assert_eq!(Refusal::decode(refusal.encode().0, refusal.encode().1), refusal);
        assert_eq!(refusal.encode().0, code);
    }
}

#[test]
fn numbers_are_the_documents() {
    let says = |heading: &str, text: &str| {
        let section = section(heading).replace('\n', " ");
        assert!(section.contains(text), "{heading}: {text:?}");
    };
    says("## Datapath framing", &format!("Version {VERSION} of handshake"));
    assert_eq!(table("### Handshake", 1)[2][3], VERSION.to_string());
    says("### Handshake", &format!("`{PROTOCOL}`"));
    let more = overhead(Protection::Encrypt);
    assert_eq!((more, overhead(Protection::AuthOnly)), (data::LEN + TAG_LEN, more));
    says("### Protected packet", &format!("{more} bytes more than the packet"));
    assert_eq!(REPLAY_WINDOW, 4_096);
    says("### Protected packet", "4,096 or more below");
    assert_eq!((MAX_PACKETS_PER_KEY, MAX_BYTES_PER_KEY), (1 << 23, 1 << 37));
    says("### Keys", "2^23 packets or 2^37 bytes");
    assert_eq!(Rotation::default().grace.as_ns(), 1_000_000_000);
    says("### Keys", "(1 s unless configured)");
    assert_eq!((COOKIE_LEN, COOKIE_MARK_LEN), (24, 8));
    let modes = &table("### Hello", 0)[0][3];
    let listed: Vec<String> =
        Protection::ALL.iter().map(|mode| format!("{}: {}", mode.code(), mode.name())).collect();
    assert!(modes.starts_with(&listed.join("; ")), "{modes}");
    says("### Hello", &format!("1 to {MAX_PATHS};"));
    says("### Hello", &format!("1 to {MAX_NIC_PORTS} |"));
    says("### Hello", &format!("1 to {MAX_SCHEME_LEN} of"));
    says("### Hello", &format!("at most {MAX_PRIVATE_DATA_LEN} bytes"));
    says("#### Versions", &format!("1 to {}", versions::MAX));
}
