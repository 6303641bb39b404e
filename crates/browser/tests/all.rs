//! Answers of a session: digests, films and instants, with figures by hand.

use pathweave_browser::{COLUMNS, Session};
use serde_json::{Value, json};

/// Two hosts at a switch, 100 Gbit/s and 1 us a link: a byte takes 80 ps.
const STAR: &str =
    "scheme = \"rps\"\n[topology]\nkind = \"star\"\nhosts = 3\nrate = \"100Gbps\"\ndelay = \"1us\"\n";
const ONE_PACKET: &str = "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"4096B\" }]\n";
const TWO_TO_ONE: &str = "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 2, size = \"64KB\" }, { src = 1, dst = 2, size = \"64KB\" }]\n";

fn run(session: &mut Session, text: &str, most_hops: usize) -> Value {
    let answer = session.run(&json!({ "text": text, "most_hops": most_hops }).to_string());
    serde_json::from_str(&answer).expect("answers are JSON")
}

fn column<'a>(session: &'a Session, name: &str) -> &'a [f64] {
    session.column(COLUMNS.iter().position(|column| *column == name).expect("a column"))
}

#[test]
fn a_packet_crosses_two_links_and_its_acknowledgement_two() {
    let mut session = Session::new();
    let ran = run(&mut session, &format!("{STAR}{ONE_PACKET}"), 1_000);
    assert_eq!(ran["hosts"], 3);
    let [entered, start, arrival, packet, kind] =
        ["hop_entered_ps", "hop_start_ps", "hop_arrival_ps", "hop_packet", "hop_kind"]
            .map(|name| column(&session, name).to_vec());
    assert_eq!(packet, [0.0, 0.0, 1.0, 1.0], "a packet keeps its number");
    // Nobody waits: each hop begins when the one before it has ended, and takes its bytes and 1 us.
    for hop in 0..4 {
        let bytes = f64::from(kind[hop] as u32 >> 8);
        assert_eq!(arrival[hop] - start[hop], bytes * 80.0 + 1e6);
        assert_eq!(entered[hop], start[hop]);
    }
    assert_eq!((start[0], start[1], start[3]), (0.0, arrival[0], arrival[2]));
    assert!(kind[0] as u32 >> 8 > 4_096, "payload and headers");
    assert_eq!(column(&session, "arrival_ps"), [arrival[1]]);
    assert_eq!(
        column(&session, "arrival_kind"),
        [f64::from(4_096_u32 << 8)],
        "the payload, neither late nor sent again"
    );
    assert_eq!(column(&session, "flow_finish_ps"), [arrival[1]]);
}

#[test]
fn a_film_changes_no_digest_and_ends_at_its_limit() {
    let mut session = Session::new();
    let text = format!("{STAR}{TWO_TO_ONE}");
    let digests = [0, 10, 1_000_000].map(|most| run(&mut session, &text, most)["digest"].clone());
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[0], digests[2]);
    let ran = run(&mut session, &text, 10);
    assert_eq!(column(&session, "hop_link").len(), 10);
    let last = column(&session, "hop_start_ps")[9];
    assert!(ran["film_ends_ps"].as_f64().expect("it ended early") >= last);
}

#[test]
fn two_senders_at_full_rate_fill_the_queue_of_the_link_that_they_share() {
    let mut session = Session::new();
    let ran = run(&mut session, &format!("{STAR}{TWO_TO_ONE}"), 1_000_000);
    let shared =
        ran["links"].as_array().expect("links").iter().position(|link| link["to"] == 2).expect("a link");
    // The first packets have arrived at the switch; the link has sent since. Each of its senders brings as much as it sends.
    let first = column(&session, "hop_arrival_ps")[0];
    let later = first + 2e6;
    let request = json!({ "time_ps": later as u64, "window_ps": 1_000_000 }).to_string();
    let state: Value = serde_json::from_str(&session.instant(&request)).expect("answers are JSON");
    assert_eq!(state["source"], "packets");
    let link = &state["links"][shared.to_string()];
    assert!((link["utilisation"].as_f64().expect("a share") - 1.0).abs() < 1e-9, "{link}");
    // In 2 us a link brings 25,000 bytes, so as many wait, to a packet of each sender.
    let queued = link["queue_bytes"].as_f64().expect("bytes");
    assert!((queued - 25_000.0).abs() < 2.0 * 4_300.0, "{queued}");
    assert_eq!(state["flows_done"], 0);
    let arrived: u64 =
        state["arrived"].as_array().expect("pairs").iter().map(|pair| pair[2].as_u64().expect("bytes")).sum();
    assert!(arrived <= 25_000, "a link carries no more in 2 us: {arrived}");
}

#[test]
fn errors_are_those_of_the_program() {
    let mut session = Session::new();
    let text = format!("{}{ONE_PACKET}", STAR.replace("rps", "rsp"));
    let answer: Value =
        serde_json::from_str(&session.check(&json!({ "text": text }).to_string())).expect("JSON");
    let error = answer["error"].as_str().expect("an error");
    assert!(error.contains("scenario.toml:1") && error.contains("rps"), "{error}");
    let checked: Value =
        serde_json::from_str(&session.check(&json!({ "text": format!("{STAR}{ONE_PACKET}") }).to_string()))
            .expect("JSON");
    assert_eq!(
        (&checked["hosts"], &checked["messages"], &checked["bytes"]),
        (&json!(3), &json!(1), &json!(4_096))
    );
    assert!(session.run("{}").contains("missing field `text`"));
}
