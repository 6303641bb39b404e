//! Two hosts with two links of different rate between them, in network namespaces that end with their processes.
//! `pathweave perf` runs over both links, over a link that goes down temporarily, and from an end with a single
//! address.

#![allow(clippy::print_stderr)] // Skipped tests and rates are printed.

#[path = "all/common/mod.rs"]
mod common;

use std::process::{Command, Stdio};

use common::{Done, Lab as Folder, done};
use serde_json::Value;

/// `$1` is the program, `$2` the commands during the measurement, `$3` and following the client's arguments. Network
/// `a` is that of the script, `b` that of a process that only waits. Links are 40 and 10 Mb/s.
const SCRIPT: &str = r#"
set -e
program=$1 beside=$2
shift 2
unshare -n sleep 300 & holder=$!
trap 'kill $holder $server 2>/dev/null || true' EXIT
while [ "$(readlink /proc/$holder/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
b() { nsenter -t $holder -n "$@"; }
ip link set lo up; b ip link set lo up
for link in 0 1; do
    rate=$((40 - 30 * link))mbit
    ip link add a$link type veth peer name b$link
    ip link set b$link netns $holder
    ip addr add 10.77.$link.1/24 dev a$link; b ip addr add 10.77.$link.2/24 dev b$link
    ip link set a$link up; b ip link set b$link up
    tc qdisc add dev a$link root tbf rate $rate burst 16kb limit 100kb
    b tc qdisc add dev b$link root tbf rate $rate burst 16kb limit 100kb
done
nsenter -t $holder -n "$program" perf server --insecure --line-rate 200Mbps --driven-by thread --clients 1 --quiet \
    --bind 10.77.0.2:5000,10.77.1.2:5000 > server.out & server=$!
until grep -q listening server.out; do kill -0 $server; sleep 0.02; done
eval "${BEFORE:-true}"
( eval "$beside" ) &
"$program" perf client --insecure --line-rate 200Mbps --driven-by thread --scheme udmp --json --depth 8 --size 1MiB "$@"
wait $server
"#;

/// Returns a client's result, with commands during the measurement, or `None` if such networks cannot be created.
fn measured(test: &str, beside: &str, client: &[&str]) -> Option<Done> {
    measured_after("true", test, beside, client)
}

/// Measures like [`measured`], with commands before the client starts.
fn measured_after(before: &str, test: &str, beside: &str, client: &[&str]) -> Option<Done> {
    let has = |tool: &str| Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_ok();
    let tools = ["bash", "ip", "tc", "nsenter", "unshare"];
    let may = || Command::new("unshare").args(["-rn", "true"]).stderr(Stdio::null()).status();
    if !tools.into_iter().all(has) || !may().is_ok_and(|status| status.success()) {
        eprintln!("\n*** SKIPPED: {test}: it needs {} and network namespaces ***\n", tools.join(", "));
        return None;
    }
    let folder = Folder::new();
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", "unshare", "-rn", "--", "bash", "-c", SCRIPT, "bash"]);
    command.args([env!("CARGO_BIN_EXE_pathweave"), beside]).args(client);
    let output =
        command.env("BEFORE", before).current_dir(folder.path("")).stdin(Stdio::null()).output().unwrap();
    Some(done(&output))
}

/// Returns the payload rate in Mb/s, and the packets by the address from which they left.
fn figures(done: &Done) -> (f64, [u64; 2]) {
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let report: Value = serde_json::from_str(&done.out).expect("JSON");
    let row = &report["results"][0];
    let paths = row["client"]["paths"].as_array().expect("paths");
    let packets = |local: &str| {
        let of = paths.iter().filter(|path| path["local"] == local);
        of.map(|path| path["packets"].as_u64().unwrap()).sum()
    };
    let rate = row["average_bytes_per_second"].as_f64().expect("a rate") * 8e-6;
    eprintln!("{rate:.1} Mb/s");
    (rate, [packets("10.77.0.1"), packets("10.77.1.1")])
}

const BOTH: [&str; 3] = ["--bind", "10.77.0.1,10.77.1.1", "10.77.0.2:5000,10.77.1.2:5000"];

#[test]
fn both_links_carry_packets_by_their_rates() {
    let client = [&BOTH[..], &["--time", "5"]].concat();
    let Some(done) = measured("both_links_carry_packets_by_their_rates", "true", &client) else { return };
    let (rate, [fast, slow]) = figures(&done);
    // The fast link alone has room for 37.2 Mb/s of payload, both for 46.5.
    assert!(rate > 38.0, "{rate} Mb/s");
    assert!(slow > 0 && (2.0..8.0).contains(&(fast as f64 / slow as f64)), "{fast} and {slow} packets");
}

#[test]
fn a_link_that_goes_down_costs_its_share_and_comes_back() {
    let test = "a_link_that_goes_down_costs_its_share_and_comes_back";
    // The fast link fails in the second second and is back from the fourth on. Later its address is removed and added
    // again.
    let beside = "sleep 1.5; ip link set a0 down; sleep 1.5; ip link set a0 up; sleep 2; ip addr del 10.77.1.1/24 dev a1; \
                  sleep 1; ip addr add 10.77.1.1/24 dev a1";
    let client = [&BOTH[..], &["--time", "8", "--verify"]].concat();
    let Some(done) = measured(test, beside, &client) else { return };
    let (rate, [fast, slow]) = figures(&done);
    // 1.5 s at 10 Mb/s, 1 s at 40, the rest at 50: 39 Mb/s. Without recovery it would be at most 17.
    assert!(rate > 26.0, "{rate} Mb/s");
    assert!(fast > 0 && slow > 0, "{fast} and {slow} packets");
}

/// A link that is down when the client opens joins when it comes up, for the first and the second link.
#[test]
fn a_link_that_is_down_at_the_start_joins() {
    let test = "a_link_that_is_down_at_the_start_joins";
    for (index, least) in [(0, 20.0), (1, 34.0)] {
        let before = format!("ip link set a{index} down");
        let beside = format!("sleep 1; ip link set a{index} up");
        let client = [&BOTH[..], &["--time", "5", "--verify"]].concat();
        let Some(done) = measured_after(&before, test, &beside, &client) else { return };
        let (rate, packets) = figures(&done);
        // In the first second only the other link is used.
        assert!(rate > least && packets[index] > 0, "link {index}: {rate} Mb/s, {packets:?} packets");
    }
}

#[test]
fn one_address_reaches_two() {
    // Of the server's two addresses in the list, the first belongs to no host. Traffic to the first network leaves by
    // the first link, whatever its source address. This end has one address, and routing decides.
    let beside = "true";
    let client = ["--bind", "10.77.1.1", "10.77.0.9:5000,10.77.1.2:5000", "--time", "2"];
    let Some(done) = measured("one_address_reaches_two", beside, &client) else { return };
    let (rate, [fast, slow]) = figures(&done);
    assert!(rate > 4.0 && fast == 0 && slow > 0, "{rate} Mb/s, {fast} and {slow} packets");
}
