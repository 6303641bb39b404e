//! `pathweave perf` and `pathweave ping` from outside, with both ends over loopback.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Done, Lab, done, root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Server that is stopped on drop.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(lab: &Lab, args: &[&str]) -> Server {
        Server::bound(lab, "127.0.0.1:0", args)
    }
    fn bound(lab: &Lab, bind: &str, args: &[&str]) -> Server {
        let args = [&["perf", "server", "--bind", bind, "--paths", "8"], args].concat();
        let mut child = lab
            .command(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().nth(2).map(str::to_owned);
        let Some(address) = address.filter(|_| line.starts_with("listening on ")) else {
            panic!("no address: {line:?}, {:?}", child.wait_with_output());
        };
        Server { child, address }
    }
    fn insecure(lab: &Lab) -> Server {
        Server::start(lab, &["--insecure"])
    }
    /// Sends Ctrl-C. Returns the result.
    fn stop(mut self) -> Done {
        interrupt(&self.child);
        wait(&mut self.child);
        let child = std::mem::replace(&mut self.child, dummy());
        done(&child.wait_with_output().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a child that may be killed and waited for.
fn dummy() -> Child {
    std::process::Command::new("true").spawn().unwrap()
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn wait(child: &mut Child) {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("not done after {PATIENCE:?}");
        }
        sleep(Duration::from_millis(5));
    }
}

/// Returns a measurement as JSON.
#[track_caller]
fn measure(lab: &Lab, server: &Server, args: &[&str]) -> Value {
    let args = [&["perf", "client", &server.address, "--json", "--progress", "never"], args].concat();
    let done = lab.run(&args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap_or_else(|why| panic!("{why}: {}", done.out));
    assert_eq!(value["ended"], "done");
    value
}

#[track_caller]
fn refused(lab: &Lab, args: &[&str], parts: &[&str]) {
    let done = lab.run(args);
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?}: {}", done.err);
    assert!(done.err.starts_with("error: "), "{}", done.err);
    for part in parts {
        assert!(done.err.contains(part), "{part:?} is not in: {}", done.err);
    }
}

fn key(lab: &Lab, name: &str, digit: char) {
    let mut text = digit.to_string().repeat(63);
    text.push('0');
    fs::write(lab.path(name), text).unwrap();
    fs::set_permissions(lab.path(name), fs::Permissions::from_mode(0o600)).unwrap();
}

const OPS: [&str; 3] = ["send", "write", "read"];

#[test]
fn every_verb_moves_every_byte() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    for op in OPS {
        let args = ["--insecure", "--op", op, "--size", "1,1345,100000", "--iterations", "40", "--verify"];
        let value = measure(&lab, &server, &[&args[..], &["--depth", "4"]].concat());
        assert_eq!(value["setup"]["op"], op);
        let sizes: Vec<_> =
            value["results"].as_array().unwrap().iter().map(|row| &row["size_bytes"]).collect();
        assert_eq!(sizes, [1, 1_345, 100_000]);
        for row in value["results"].as_array().unwrap() {
            let size = row["size_bytes"].as_u64().unwrap();
            assert_eq!((&row["iterations"], &row["client"]["bytes"]), (&40.into(), &(40 * size).into()));
            let (looker, other) = if op == "read" { ("client", "server") } else { ("server", "client") };
            assert_eq!(row[looker]["checked_messages"], 40, "{op} {row}");
            assert_eq!(row[other]["checked_messages"], 0);
            assert_eq!(
                (&row["client"]["wrong_messages"], &row["server"]["wrong_messages"]),
                (&0.into(), &0.into())
            );
            let sender = if op == "read" { "server" } else { "client" };
            let paths = row[sender]["paths"].as_array().unwrap();
            assert_eq!(paths.len(), 8, "as many as the server has");
            let share: f64 = paths.iter().map(|path| path["share"].as_f64().unwrap()).sum();
            assert!((share - 1.0).abs() < 1e-9, "{share}");
            let payload: u64 = paths.iter().map(|path| path["payload_bytes"].as_u64().unwrap()).sum();
            assert!(payload >= 40 * size, "{payload}");
            assert!(row["client_cpu_ns_per_byte"].as_f64().unwrap() > 0.0);
            assert!(row["average_bytes_per_second"].as_f64() <= row["peak_bytes_per_second"].as_f64());
        }
    }
    let end = server.stop();
    assert_eq!(end.code, 0, "{}", end.err);
    assert!(end.err.contains("send bandwidth, 1345 bytes a message, depth 4"), "{}", end.err);
}

#[test]
fn a_server_that_is_stopped_says_what_had_arrived() {
    let lab = Lab::new();
    let mut server = Server::insecure(&lab);
    let mut client = lab
        .command(&["perf", "client", &server.address, "--insecure", "--time", "600", "--progress", "never"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("write bandwidth, 65536 bytes a message"), "{line}");
    sleep(Duration::from_secs(1));
    let end = server.stop();
    client.kill().unwrap();
    client.wait().unwrap();
    let row =
        end.out.lines().find(|line| line.ends_with(" cut off")).unwrap_or_else(|| panic!("{}", end.out));
    // Time and rate to the server, after the address, two words of the measurement, size and depth.
    let numbers: Vec<f64> =
        row.split_whitespace().skip(5).take(2).map(|word| word.parse().unwrap()).collect();
    assert!(numbers.len() == 2 && numbers.iter().all(|&number| number > 0.0), "{row}");
}

#[test]
fn both_ends_send_at_once() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    for op in OPS {
        let args = ["--insecure", "--op", op, "--size", "5000", "--iterations", "30", "--bidirectional"];
        let value = measure(&lab, &server, &[&args[..], &["--verify"]].concat());
        let row = &value["results"][0];
        for end in ["client", "server"] {
            assert_eq!(row[end]["messages"], 30, "{op}: {row}");
            assert_eq!((&row[end]["checked_messages"], &row[end]["wrong_messages"]), (&30.into(), &0.into()));
        }
    }
    assert_eq!(server.stop().code, 0);
}

#[test]
fn a_scheme_has_all_its_queue_pairs() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    for op in OPS {
        // The first size has less than a byte for each of the 16 queue pairs.
        let args = ["--insecure", "--scheme", "qp16", "--op", op, "--size", "5,100003", "--iterations", "40"];
        let value = measure(&lab, &server, &[&args[..], &["--verify", "--bidirectional"]].concat());
        for row in value["results"].as_array().unwrap() {
            for end in ["client", "server"] {
                let (checked, wrong) = (&row[end]["checked_messages"], &row[end]["wrong_messages"]);
                assert_eq!((checked, wrong), (&40.into(), &0.into()), "{op}: {row}");
            }
        }
        // Each queue pair uses a path drawn at random, so not all 16 use the same one of 8.
        let large = &value["results"][1];
        let used = |path: &&Value| path["packets"].as_u64() > Some(0);
        let paths = large["client"]["paths"].as_array().unwrap().iter().filter(used).count();
        assert!(paths > 1, "{op}: {large}");
    }
    let value =
        measure(&lab, &server, &["--insecure", "--scheme", "qp16", "--latency", "--iterations", "30"]);
    assert_eq!(value["results"][0]["iterations"], 30);
    assert_eq!(server.stop().code, 0);
}

#[test]
fn one_message_at_a_time() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    for op in OPS {
        let args =
            ["--insecure", "--op", op, "--latency", "--iterations", "30", "--size", "8,3000", "--verify"];
        let value = measure(&lab, &server, &args);
        for row in value["results"].as_array().unwrap() {
            assert_eq!(row["iterations"], 30);
            let times = ["min_us", "typical_us", "p90_us", "p99_us", "p999_us", "max_us"];
            let times = times.map(|name| row["latency"][name].as_f64().unwrap());
            assert!(times[0] > 0.0 && times.is_sorted(), "{times:?}");
            let checked = |end: &str| row[end]["checked_messages"].as_u64().unwrap();
            let expected = if op == "read" { (30, 0) } else { (30, 30) };
            assert_eq!((checked("client"), checked("server")), expected, "{op}");
        }
    }
    let text = lab.run(&["perf", "client", &server.address, "--insecure", "--latency", "--time", "0.05"]);
    assert_eq!(text.code, 0, "{}", text.err);
    assert!(text.out.contains("t_typical[us]") && text.out.contains("99.9%[us]"), "{}", text.out);
    assert_eq!(server.stop().code, 0);
}

#[test]
fn several_clients_at_once_in_every_way_of_driving() {
    let lab = Lab::new();
    for driven_by in ["caller", "thread"] {
        let server = Server::start(&lab, &["--insecure", "--driven-by", driven_by]);
        let start = |op: &str| {
            let args = ["perf", "client", &server.address, "--insecure", "--json", "--op", op, "--verify"];
            let more = ["--time", "0.3", "--size", "20000", "--depth", "8", "--driven-by", driven_by];
            let mut command = lab.command(&[&args[..], &more].concat());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let clients: Vec<Child> = OPS.iter().chain(&OPS).map(|op| start(op)).collect();
        for mut client in clients {
            wait(&mut client);
            let end = done(&client.wait_with_output().unwrap());
            assert_eq!(end.code, 0, "{}", end.err);
            let value: Value = serde_json::from_str(&end.out).unwrap();
            let row = &value["results"][0];
            assert!(row["iterations"].as_u64().unwrap() > 0);
            assert_eq!(
                (&row["client"]["wrong_messages"], &row["server"]["wrong_messages"]),
                (&0.into(), &0.into())
            );
        }
        let end = server.stop();
        assert_eq!(end.code, 0, "{}", end.err);
    }
}

#[test]
fn datagrams_move_every_byte_and_say_what_they_took() {
    let lab = Lab::new();
    key(&lab, "key", '1');
    for (at_server, at_client) in
        [(&["--insecure"][..], &["--insecure"][..]), (&["--key", "key"], &["--key", "key"])]
    {
        let server = Server::start(&lab, &[&["--transport", "erd"], at_server].concat());
        let fixed = [&["--transport", "erd"], at_client].concat();
        let args = ["--size", "1,1345,100000", "--iterations", "40", "--verify", "--depth", "4"];
        let value = measure(&lab, &server, &[&fixed[..], &args, &["--bidirectional"]].concat());
        assert_eq!((&value["setup"]["transport"], &value["setup"]["scheme"]), (&"erd".into(), &"erd".into()));
        assert_eq!((&value["setup"]["op"], &value["setup"]["paths"]), (&"send".into(), &4.into()));
        let rows = value["results"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| &row["size_bytes"]).collect::<Vec<_>>(), [1, 1_345, 100_000]);
        for row in rows {
            let size = row["size_bytes"].as_u64().unwrap();
            for end in ["client", "server"] {
                let side = &row[end];
                assert_eq!((&side["messages"], &side["bytes"]), (&40.into(), &(40 * size).into()), "{row}");
                let looked_at = (&side["checked_messages"], &side["wrong_messages"]);
                assert_eq!(looked_at, (&40.into(), &0.into()), "{row}");
                assert!(side["side_channel"]["sent_bytes"].as_u64().unwrap() >= 20 * 40, "{row}");
                let packets = |path: &Value| path["packets"].as_u64().unwrap();
                let sent: u64 = side["paths"].as_array().unwrap().iter().map(packets).sum();
                assert_eq!(side["counters"]["data_packets_sent"].as_u64(), Some(sent));
                for counter in ["nacks_sent", "flows_scanned", "asked_in_vain", "retransmitted"] {
                    assert!(side["counters"][counter].is_u64(), "{counter}: {row}");
                }
            }
        }
        let value = measure(&lab, &server, &[&fixed[..], &["--latency", "--iterations", "50"]].concat());
        let row = &value["results"][0];
        assert_eq!((&row["size_bytes"], &row["iterations"]), (&8.into(), &50.into()));
        assert!(row["latency"]["min_us"].as_f64().unwrap() > 0.0);
        assert_eq!(server.stop().code, 0);
    }
}

#[test]
fn datagrams_that_cannot_be_are_told() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--transport", "erd", "--insecure", "--max-memory", "1MB"]);
    let address = server.address.as_str();
    let client = |args: &[&str], parts: &[&str]| {
        let fixed = ["perf", "client", address, "--insecure", "--timeout", "3"];
        refused(&lab, &[&fixed[..], args].concat(), parts);
    };
    client(&["--transport", "erd", "--op", "write"], &["--op write", "SEND alone"]);
    client(&["--transport", "erd", "--scheme", "udmp"], &["--scheme", "one of connections", "erd"]);
    client(
        &["--transport", "erd", "--size", "2MB"],
        &["refuses the measurement", "2000000 bytes", "--max-memory"],
    );
    client(&["--transport", "erd", "--mtu", "9000"], &["payloads of 1344 bytes", "--mtu"]);
    client(&[], &[address, "transport"]);
    client(&["--scheme", "erd"], &["--scheme", "datagram endpoints"]);
    let connections = Server::insecure(&lab);
    let other = ["perf", "client", &connections.address, "--insecure", "--transport", "erd"];
    refused(&lab, &other, &["without --transport erd"]);
}

#[test]
fn packets_are_protected_by_the_key_of_both_ends() {
    let lab = Lab::new();
    key(&lab, "key", '1');
    key(&lab, "other", '2');
    for mode in [&[][..], &["--auth-only"]] {
        let server = Server::start(&lab, &[&["--key", "key"], mode].concat());
        let address = server.address.as_str();
        let args = ["--key", "key", "--iterations", "20", "--verify"];
        let value = measure(&lab, &server, &[&args, mode].concat());
        let name = if mode.is_empty() { "encrypt" } else { "auth-only" };
        assert_eq!(value["setup"]["protection"], name);
        let client = ["perf", "client", address, "--timeout", "3"];
        refused(&lab, &[&client[..], &["--key", "other"], mode].concat(), &["cluster key"]);
        refused(&lab, &[&client[..], &["--insecure"]].concat(), &[address]);
        refused(&lab, &["ping", address, "--key", "other", "--timeout", "3"], &["cluster key"]);
    }
}

#[test]
fn impossible_options_are_refused() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--insecure", "--max-memory", "1MB"]);
    let address = server.address.as_str();
    let client = |args: &[&str], parts: &[&str]| {
        let fixed = ["perf", "client", address, "--insecure", "--timeout", "3"];
        refused(&lab, &[&fixed[..], args].concat(), parts);
    };
    client(&["--size", "5GiB"], &["5GiB", "1 to 4294967296"]);
    client(&["--size", "0"], &["1 to 4294967296"]);
    client(&["--size", "2MB"], &["refuses the measurement", "2000000 bytes", "--max-memory"]);
    client(&["--scheme", "udpm"], &["--scheme", "\"udpm\"", "\"udmp\"", "rps"]);
    client(&["--scheme", "erd"], &["--scheme", "\"erd\"", "serve more than one connection"]);
    client(&["--depth", "0"], &["1..=1000"]);
    client(&["--cpu", "4000"], &["--cpu 4000", "0 to 1023"]);
    client(&["--time", "0"], &["0.001 to 86400"]);
    refused(&lab, &["perf", "client", address], &["needs the cluster's key", "--key FILE", "--insecure"]);
    refused(&lab, &["perf", "client", address, "--key", "none"], &["--key", "none does not exist"]);
    refused(&lab, &["perf", "client", "no such host", "--insecure"], &["no such host"]);
    refused(&lab, &["perf", "server", "--insecure", "--bind", address], &[address, "in use"]);
    refused(
        &lab,
        &["perf", "server", "--insecure", "--bind", "192.0.2.1:0"],
        &["192.0.2.1:0", "this machine"],
    );
    refused(&lab, &["ping", address, "--insecure", "--count", "0"], &["from 1 to 1000000"]);
    client(&["--backend", "af-xdp"], &["name the network interface", "--interface eth0"]);
    client(&["--interface", "lo"], &["--interface lo is for --backend af-xdp or auto"]);
    client(&["--backend", "af-xpd", "--interface", "lo"], &["af-xpd", "af-xdp"]);
    let nowhere = ["--backend", "af-xdp", "--interface", "no-such-eth"];
    client(&nowhere, &["--backend af-xdp", "no network interface \"no-such-eth\"", "there are", "lo"]);
    let dpdk = |more: &[&'static str]| [&["--backend", "dpdk"], more].concat();
    client(&dpdk(&[]), &["name it, as in --vdev", "--pci"]);
    client(
        &dpdk(&["--vdev", "eth0"]),
        &["\"eth0\" is no virtual device of DPDK", "net_af_packet0,iface=eth0"],
    );
    client(&dpdk(&["--vdev", "net_ring0", "--pci", "0000:03:00.0"]), &["cannot be used with"]);
    client(&dpdk(&["--interface", "eth0"]), &["--interface eth0", "--vdev net_af_packet0,iface=eth0"]);
    client(
        &dpdk(&["--vdev", "net_ring0", "--address", "10.0.0.1"]),
        &["no address with the length", "10.0.0.1/24"],
    );
    client(&["--vdev", "net_ring0"], &["--vdev is for --backend dpdk"]);
    client(&["--huge-pages", "never"], &["--huge-pages is for --backend dpdk"]);
    client(&dpdk(&["--vdev", "net_ring0", "--transport", "erd"]), &["--transport erd", "--backend udp"]);
    client(&[&nowhere[..], &["--transport", "erd"]].concat(), &["--transport erd", "--backend udp"]);
    assert_eq!(server.stop().code, 0);
}

/// Errors of DPDK are printed, or in a build without it, a message that DPDK is missing.
#[test]
fn limits_of_dpdk_are_reported() {
    let lab = Lab::new();
    let fixed = ["perf", "client", "10.0.0.2", "--insecure", "--timeout", "0.5", "--backend", "dpdk"];
    let has_dpdk = cfg!(feature = "dpdk");
    let client = |more: &[&str], expected: &[&str]| {
        let not_built = ["this build of pathweave has no DPDK", "libdpdk-dev", "--features dpdk"];
        refused(&lab, &[&fixed[..], more].concat(), if has_dpdk { expected } else { &not_built });
    };
    let at = ["--address", "10.0.0.1/24"];
    client(&["--vdev", "net_ring0"], &["net_ring0 is unknown to the kernel", "--address 10.0.0.1/24"]);
    client(&[&["--vdev", "net_rnig0"], &at[..]].concat(), &["no driver for net_rnig0", "\"net_ring\""]);
    client(&["--vdev", "net_af_packet0"], &["net_af_packet0,iface=eth0"]);
    client(
        &[&["--vdev", "net_ring0", "--mtu", "65500"], &at[..]].concat(),
        &["packets of 65500 bytes", "--mtu 61294"],
    );
    // A user who may not open packet sockets gets an error in advance.
    if rustix::process::geteuid().is_root() {
        client(
            &["--vdev", "net_af_packet0,iface=no-such-eth"],
            &["no network interface \"no-such-eth\"", "there are", "lo"],
        );
    } else {
        client(
            &["--vdev", "net_af_packet0,iface=lo"],
            &["no permission to open a packet socket", "CAP_NET_RAW"],
        );
    }
    let free = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if free.lines().any(|line| line.starts_with("HugePages_Free:") && line.ends_with(" 0")) {
        let always = [&["--vdev", "net_ring0", "--huge-pages", "always"], &at[..]].concat();
        client(&always, &["MB of huge pages, but 0 MB are free", "vm.nr_hugepages", "--huge-pages never"]);
    }
    if has_dpdk {
        let pci = [&["--pci", "0000:ff:1f.7"], &at[..]].concat();
        client(&pci, &["DPDK cannot use the adapter 0000:ff:1f.7"]);
        // The other end of the ring does not exist.
        let ring = [&["--vdev", "net_ring0"], &at[..]].concat();
        let said = lab.run(&[&fixed[..], &ring].concat());
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("packets go over DPDK's net_ring0, at 10.0.0.1"), "{}", said.err);
    }
}

/// Two processes over shared memory. A client that is killed during a stream affects neither the server nor the next
/// client.
#[test]
#[cfg_attr(not(feature = "dpdk"), ignore = "this build has no DPDK")]
fn processes_meet_over_shared_memory() {
    let lab = Lab::new();
    let socket = lab.path("memif.sock").display().to_string();
    let of = |role: &str| format!("net_memif0,role={role},socket={socket},socket-abstract=no");
    let (server_vdev, client_vdev) = (of("server"), of("client"));
    let end = |vdev, address| ["--insecure", "--backend", "dpdk", "--vdev", vdev, "--address", address];
    let server = Server::bound(&lab, "0.0.0.0:0", &end(&server_vdev, "10.0.0.1/24"));
    assert!(server.address.starts_with("10.0.0.1:"), "{}", server.address);
    let client = end(&client_vdev, "10.0.0.2/24");
    for _ in 0..3 {
        let args = [&client[..], &["--verify", "--iterations", "200"]].concat();
        let value = measure(&lab, &server, &args);
        assert_eq!(value["results"][0]["iterations"], 200, "{value}");
        let endless = ["perf", "client", &server.address, "--time", "600", "--progress", "never"];
        let mut command = lab.command(&[&endless[..], &client].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.as_mut().unwrap());
        // Printed by an end that is connected.
        while !line.contains("8 paths instead of 16") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ends early");
        }
        sleep(Duration::from_millis(200));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let done = server.stop();
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn sockets_do_where_there_is_no_af_xdp() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    let args = ["--backend", "auto", "--interface", "no-such-eth", "--iterations", "20"];
    let fixed = ["perf", "client", &server.address, "--insecure", "--progress", "never"];
    let done = lab.run(&[&fixed[..], &args].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(
        done.err.contains("packets go over UDP sockets, for there is no network interface"),
        "{}",
        done.err
    );
}

#[test]
fn silent_servers_are_given_up() {
    let lab = Lab::new();
    // A socket that receives packets and never answers, and an unused port of an address without any other use.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (silent, address.to_string())).unwrap();
    for address in [silent.1.as_str(), "127.0.9.9:18515"] {
        for command in [&["perf", "client"][..], &["ping"]] {
            let args = [command, &[address, "--insecure", "--timeout", "0.5"]].concat();
            refused(&lab, &args, &[address]);
        }
    }
}

#[test]
fn a_server_that_dies_ends_the_measurement() {
    let lab = Lab::new();
    let mut server = Server::insecure(&lab);
    let args = ["perf", "client", &server.address, "--insecure", "--time", "600", "--progress", "never"];
    let mut client = lab.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("write bandwidth"), "{line}");
    sleep(Duration::from_millis(100));
    server.child.kill().unwrap();
    wait(&mut client);
    let end = done(&client.wait_with_output().unwrap());
    assert_eq!(end.code, 3, "{}", end.err);
    assert!(end.err.contains("the measurement of 65536 bytes broke"), "{}", end.err);
}

#[test]
fn ctrl_c_shows_what_there_is() {
    let lab = Lab::new();
    let mut server = Server::insecure(&lab);
    let args =
        ["perf", "client", &server.address, "--insecure", "--time", "600", "--json", "--progress", "never"];
    let mut client = lab.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    sleep(Duration::from_millis(300));
    interrupt(&client);
    wait(&mut client);
    let end = done(&client.wait_with_output().unwrap());
    assert_eq!(end.code, 130, "{}", end.err);
    let value: Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!(value["ended"], "interrupted");
    assert!(value["results"][0]["iterations"].as_u64().unwrap() > 0, "{}", end.out);
    assert_eq!(server.stop().code, 0);
}

#[test]
fn a_survey_tells_of_every_path() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    let args = ["ping", &server.address, "--insecure", "--paths", "4", "--count", "5", "--interval", "20ms"];
    let text = lab.run(&args);
    assert_eq!(text.code, 0, "{}", text.err);
    assert_eq!(text.out.lines().count(), 2 + 4, "{}", text.out);
    let end = lab.run(&[&args[..], &["--json"]].concat());
    let value: Value = serde_json::from_str(&end.out).unwrap();
    let paths = value["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 4);
    let mut ports = BTreeSet::new();
    for path in paths {
        assert_eq!(
            (&path["probes"], &path["replies"], &path["up"]),
            (&5.into(), &5.into(), &true.into()),
            "{path}"
        );
        assert!(path["rtt"]["min_us"].as_f64().unwrap() > 0.0);
        ports.insert(path["source_port"].as_u64().unwrap());
    }
    assert_eq!(ports.len(), 4);
    let packets: u64 = paths.iter().map(|path| path["data_packets"].as_u64().unwrap()).sum();
    assert!(packets > 0, "messages go with the probes");
    let note = lab.run(&["ping", &server.address, "--insecure", "--count", "1"]);
    assert!(note.err.contains("8 paths instead of 16"), "{}", note.err);
    assert!(!note.err.contains("--mtu"), "both ends have the same: {}", note.err);
    // 9000 less 40 and 8 of IPv6 and UDP, less headers, in multiples of 64; the server has 1500.
    let note = lab.run(&["ping", &server.address, "--insecure", "--count", "1", "--mtu", "9000"]);
    let line = note.err.lines().find(|line| line.contains("--mtu")).unwrap_or_default();
    let words = "note: the payload of a packet is 1344 bytes, not the 8832 of this --mtu";
    assert!(line.starts_with(words), "{}", note.err);
    assert_eq!(server.stop().code, 0);
}

/// Collects the names of all fields below a value. Fields of list elements are collected once.
fn fields(value: &Value, prefix: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                names.insert(path.clone());
                fields(inner, &path, names);
            }
        }
        Value::Array(all) => all.iter().for_each(|inner| fields(inner, &format!("{prefix}[]"), names)),
        _ => {}
    }
}

/// Returns the text of docs/perf.md.
fn page() -> String {
    fs::read_to_string(root().join("docs/perf.md")).unwrap()
}

#[test]
fn the_document_names_every_field_of_the_json_output() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    let mut names = BTreeSet::new();
    for more in [&["--latency"][..], &[]] {
        let value = measure(&lab, &server, &[&["--insecure", "--iterations", "20"], more].concat());
        fields(&value, "", &mut names);
    }
    let end = lab.run(&["ping", &server.address, "--insecure", "--count", "2", "--json"]);
    fields(&serde_json::from_str(&end.out).unwrap(), "", &mut names);
    let page = page();
    let last = |name: &String| name.rsplit('.').next().expect("a last part").to_owned();
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("`{}`", last(name)))).collect();
    assert!(missing.is_empty(), "docs/perf.md does not name {missing:?}");
}

/// Returns a line with every figure replaced by a letter, and every run of blanks or dashes by one.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for word in line.split_whitespace() {
        let figure = word.parse::<f64>().is_ok() || word == "-";
        // A host that is delayed may declare a path dead temporarily.
        let word = if figure {
            "N"
        } else if word == "down" {
            "up"
        } else {
            word
        };
        let rule = word.len() > 3 && word.bytes().all(|b| b == b'-');
        shape.push_str(if rule { "---" } else { word });
        shape.push(' ');
    }
    shape
}

/// The examples of docs/perf.md match the output except for figures. `UPDATE_DOCS=1` rewrites them.
#[test]
fn the_examples_are_what_the_program_prints() {
    let lab = Lab::new();
    let server = Server::insecure(&lab);
    let (text, mut right, mut checked) = (page(), String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        right.push_str(line);
        right.push('\n');
        let Some(command) = line.strip_prefix("$ pathweave ") else { continue };
        let mut shown = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("```") && !line.starts_with("$ ")) {
            shown.push(line);
        }
        let args: Vec<&str> = command
            .split_whitespace()
            .map(|word| if word == "192.0.2.7" { server.address.as_str() } else { word })
            .collect();
        let end = lab.run(&args);
        assert_eq!(end.code, 0, "{command}: {}", end.err);
        let out = end.out.replace(&server.address, "192.0.2.7:18515");
        let shapes = |lines: &mut dyn Iterator<Item = &str>| lines.map(shape).collect::<Vec<_>>();
        if std::env::var_os("UPDATE_DOCS").is_none() {
            let (is, should) = (shapes(&mut shown.into_iter()), shapes(&mut out.lines()));
            assert_eq!(is, should, "docs/perf.md, {command}; UPDATE_DOCS=1 writes it anew");
        }
        right.push_str(&out);
        checked += 1;
    }
    assert!(checked >= 2, "{checked} examples");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join("docs/perf.md"), right).unwrap();
    }
}
