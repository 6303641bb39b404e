//! Export of a run to formats of other programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Lab;

fn run(lab: &Lab, args: &[&str]) -> String {
    let all: Vec<&str> = ["run", "small.toml", "--out", "out"].iter().chain(args).copied().collect();
    let done = lab.run(&all);
    assert_eq!(done.code, 0, "{}", done.err);
    done.err
}

fn text(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path(name)).unwrap()
}

#[test]
fn tables_of_flows_and_a_timeline() {
    let lab = Lab::with_small();
    run(&lab, &["--flows-csv", "f.csv", "--fct", "fct.txt", "--perfetto", "t.json"]);
    let csv = text(&lab, "f.csv");
    assert_eq!(csv.lines().count(), 1 + 4);
    // The same flows in the format of simulators: hexadecimal addresses, ports, bytes, start, time, ideal time.
    let fct = text(&lab, "fct.txt");
    assert_eq!(fct.lines().count(), 4);
    let summary = lab.json("out/summary.json");
    let slowest =
        fct.lines().map(|line| line.split(' ').nth(6).unwrap().parse::<f64>().unwrap()).fold(0.0, f64::max);
    assert!((slowest - summary["overall"]["fct_ns"]["max"].as_f64().unwrap()).abs() <= 0.5);
    assert!(
        fct.starts_with("0b00") && fct.lines().all(|line| line.contains(" 10000 100 100000 0 ")),
        "{fct}"
    );
    let timeline = lab.json("t.json");
    let events = timeline["traceEvents"].as_array().unwrap();
    let flows = events.iter().filter(|e| e["cat"] == "flow" && e["ph"] == "b").count();
    assert_eq!((flows, &timeline["otherData"]["digest"]), (4, &summary["run"]["digest"]));

    run(&lab, &["--fct", "fct.txt", "--fct-format", "conweave"]);
    assert!(
        text(&lab, "fct.txt").lines().all(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap() < 4)
    );
    let left: Vec<String> = lab.names().into_iter().filter(|name| name.contains("partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns the blocks of a capture: kind and body.
fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let len = word(at + 4) as usize;
        assert!(len.is_multiple_of(4) && len >= 12, "block of {len} at {at}");
        assert_eq!(word(at + len - 4) as usize, len, "the length at the end of the block at {at}");
        found.push((word(at), &bytes[at + 8..at + len - 4]));
        at += len;
    }
    found
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// Checks Ethernet, IPv4, UDP and BTH of a standard frame, field by field. Returns the opcode, the PSN, and the
/// number of bytes after the BTH.
fn check_frame(frame: &[u8]) -> (u8, u32, usize) {
    assert_eq!(
        (frame[0], frame[6], be16(frame, 12)),
        (2, 2, 0x0800),
        "addresses are local, the content IPv4"
    );
    let ip = &frame[14..];
    assert_eq!((ip[0], ip[9]), (0x45, 17));
    assert_eq!(usize::from(be16(ip, 2)), ip.len());
    let sum: u32 = (0..20).step_by(2).map(|at| u32::from(be16(ip, at))).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "checksum of the IPv4 header");
    assert_eq!((ip[12], ip[16]), (10, 10));
    assert_eq!(frame[8..12], [ip[12] - 10, ip[13], ip[14], ip[15]], "both addresses are of one host");
    let udp = &ip[20..];
    assert!(be16(udp, 0) >= 0xc000);
    assert_eq!((be16(udp, 2), usize::from(be16(udp, 4))), (4791, udp.len()));
    let bth = &udp[8..];
    assert!(bth.len() >= 16 && bth.len().is_multiple_of(4), "{} bytes from BTH to ICRC", bth.len());
    assert_eq!((bth[1] & 0x0f, be16(bth, 2), bth[4]), (0, 0xffff, 0));
    let psn = u32::from_be_bytes([0, bth[9], bth[10], bth[11]]);
    (bth[0], psn, bth.len() - 16)
}

#[test]
fn every_block_and_header_of_a_capture() {
    let lab = Lab::with_small();
    let told = run(&lab, &["--pcapng", "all.pcapng"]);
    assert!(!told.contains("--pcapng-packets"), "{told}");
    let bytes = fs::read(lab.path("all.pcapng")).unwrap();
    let all = blocks(&bytes);
    assert_eq!(all[0].0, 0x0a0d_0d0a);
    assert_eq!(all[0].1[..8], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], "byte order and version");
    let mut interfaces = 0;
    let (mut last_time, mut opcodes, mut written) = (0, BTreeMap::<u8, u32>::new(), 0);
    for (kind, body) in &all[1..] {
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        match kind {
            1 => {
                assert_eq!(body[..2], [1, 0], "Ethernet");
                interfaces += 1;
            }
            6 => {
                assert!(word(0) < interfaces, "an interface that comes before");
                let time = u64::from(word(4)) << 32 | u64::from(word(8));
                assert!(time >= last_time, "packets are in order of time");
                last_time = time;
                let (kept, was) = (word(12) as usize, word(16) as usize);
                assert_eq!(kept, was);
                let (opcode, _, len) = check_frame(&body[20..20 + kept]);
                *opcodes.entry(opcode).or_default() += 1;
                // After the BTH: a RETH of 16 bytes with the length of the message, an AETH of 4 bytes, or payload
                // only.
                match opcode {
                    0x06 => {
                        let dma = u32::from_be_bytes(body[20 + 66..20 + 70].try_into().unwrap());
                        assert_eq!(dma, 100_000);
                        written += len as u32 - 16;
                    }
                    0x07 | 0x08 => written += len as u32,
                    0x11 => assert_eq!(len, 4),
                    0x81 => assert_eq!(len, 16),
                    other => panic!("opcode {other:#x}"),
                }
            }
            other => panic!("block {other:#x}"),
        }
    }
    assert_eq!(interfaces, 4);
    // Four messages, each with a first, a last and middle packets. Every byte is present, and none was lost.
    assert_eq!((opcodes[&0x06], opcodes[&0x08], written), (4, 4, 400_000));
    let hops = lab.json("out/summary.json")["run"]["packet_hops"].as_u64().unwrap();
    assert_eq!(u64::from(opcodes.values().sum::<u32>()) * 2, hops, "every packet crosses two links");
    // Observation changes nothing.
    let digest = lab.json("out/summary.json")["run"]["digest"].clone();
    run(&lab, &[]);
    assert_eq!(lab.json("out/summary.json")["run"]["digest"], digest);
}

fn packets(lab: &Lab, name: &str) -> usize {
    let bytes = fs::read(lab.path(name)).unwrap();
    blocks(&bytes).iter().filter(|(kind, _)| *kind == 6).count()
}

#[test]
fn a_host_a_limit_and_our_own_frames() {
    let lab = Lab::with_small();
    run(&lab, &["--pcapng", "all.pcapng", "--pcapng-frames", "pathweave"]);
    run(&lab, &["--pcapng", "one.pcapng", "--pcapng-host", "host2"]);
    run(&lab, &["--pcapng", "in.pcapng", "--pcapng-host", "2", "--pcapng-inbound"]);
    let (all, one, inbound) =
        (packets(&lab, "all.pcapng"), packets(&lab, "one.pcapng"), packets(&lab, "in.pcapng"));
    assert!(0 < inbound && inbound < one && one < all, "{inbound} {one} {all}");
    let told = run(&lab, &["--pcapng", "few.pcapng", "--pcapng-packets", "10"]);
    assert_eq!(packets(&lab, "few.pcapng"), 10);
    assert!(told.contains(&format!("the first 10 packets; {} more", all - 10)), "{told}");
}

#[test]
fn a_comparison_writes_files_for_each_run() {
    let lab = Lab::with_small().file("other.toml", crate::common::SMALL.replace("100KB", "50KB"));
    let files = ["--flows-csv", "f.csv", "--fct", "fct", "--perfetto", "t.json", "--pcapng", "p.pcapng"];
    let compare = |args: &[&str]| {
        let done =
            lab.run(&[&["compare"][..], args, &["--schemes", "ecmp,rps", "--out", "out"], &files].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    compare(&["small.toml"]);
    let of = |scheme: &str| {
        [
            format!("f-{scheme}.csv"),
            format!("fct-{scheme}"),
            format!("t-{scheme}.json"),
            format!("p-{scheme}.pcapng"),
        ]
    };
    for scheme in ["ecmp", "rps"] {
        let [csv, fct, timeline, pcapng] = of(scheme);
        assert_eq!(text(&lab, &csv).lines().count(), 1 + 4);
        assert_eq!(text(&lab, &fct).lines().count(), 4);
        assert!(packets(&lab, &pcapng) > 100);
        // Each file equals that of a run with the scheme.
        let set = format!("scheme={scheme}");
        let alone = run(&lab, &["--set", &set, "--perfetto", "alone.json", "--fct", "alone.fct"]);
        assert_eq!(text(&lab, &fct), text(&lab, "alone.fct"), "{alone}");
        assert_eq!(lab.json(&timeline)["otherData"]["digest"], lab.json("alone.json")["otherData"]["digest"]);
    }
    // With several scenarios their names come first. The limit of packets is reported for each run.
    let told = compare(&["small.toml", "other.toml", "--pcapng-packets", "10"]);
    assert!(told.contains("note: other rps: the capture has the first 10 packets"), "{told}");
    assert_eq!(packets(&lab, "p-other-ecmp.pcapng"), 10);
    assert_eq!(text(&lab, "f-small-rps.csv").lines().count(), 5);
    let refused =
        lab.run(&["compare", "small.toml", "--schemes", "ecmp,rps", "--out", "o", "--fct", "gone/fct"]);
    assert!(refused.code == 2 && refused.err.contains("cannot write gone/fct-ecmp"), "{}", refused.err);
    assert!(lab.names().iter().all(|name| !name.contains("partial")), "{:?}", lab.names());
}

#[test]
fn unwritable_outputs_are_refused_before_the_run() {
    let lab = Lab::with_small();
    for (args, says) in [
        (&["--fct", "gone/fct.txt"][..], "cannot write gone/fct.txt"),
        (&["--perfetto", "."], "it is a folder"),
        (&["--pcapng", "p.pcapng", "--pcapng-host", "hots2"], "did you mean \"host2\"?"),
        (&["--pcapng-host", "host2"], "--pcapng <FILE>"),
    ] {
        let all: Vec<&str> = ["run", "small.toml", "--out", "out"].iter().chain(args).copied().collect();
        let done = lab.run(&all);
        assert_eq!(done.code, 2, "{args:?}");
        assert!(done.err.contains(says), "{args:?}: {}", done.err);
    }
    assert_eq!(lab.names(), ["small.toml"]);
}

/// Tests every option that writes a file with paths that are not regular files. All of them are in a temporary
/// folder.
#[test]
fn devices_and_pipes_are_written_and_kept() {
    let lab = Lab::with_small();
    let made = Command::new("mkfifo").arg(lab.path("fifo")).status().unwrap();
    assert!(made.success());
    fs::create_dir(lab.path("elsewhere")).unwrap();
    fs::write(lab.path("elsewhere/file"), "old").unwrap();
    std::os::unix::fs::symlink("elsewhere/file", lab.path("link")).unwrap();
    for option in ["--flows-csv", "--fct", "--perfetto", "--pcapng"] {
        let fifo = lab.path("fifo");
        let reader = std::thread::spawn(move || fs::read(fifo).unwrap());
        run(&lab, &[option, "fifo"]);
        run(&lab, &[option, "link"]);
        let done = lab.command(&["run", "small.toml", "--out", "out", option, "-"]).output().unwrap();
        let (read, err) = (reader.join().unwrap(), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(0), "{option}: {err}");
        // Messages for the user go where they do not mix with the file.
        assert!(err.contains("report: out/report.html"), "{option}: {err}");
        assert!(!read.is_empty() && read == done.stdout, "{option}");
        assert!(read == fs::read(lab.path("elsewhere/file")).unwrap(), "{option}");
    }
    let kind = |name: &str| fs::symlink_metadata(lab.path(name)).unwrap().file_type();
    use std::os::unix::fs::FileTypeExt;
    assert!(kind("fifo").is_fifo() && kind("link").is_symlink() && kind("elsewhere/file").is_file());
    assert_eq!(lab.names(), ["elsewhere", "fifo", "link", "out", "small.toml"]);

    for (args, says) in [
        (&["--fct", "-", "--json"][..], "name a file for one"),
        (&["--fct", "-", "--perfetto", "-"], "are the same place"),
        (&["--fct", "link", "--perfetto", "elsewhere/file"], "are the same place"),
        (&["--fct", "gone/there"], "there is no folder gone"),
    ] {
        let all: Vec<&str> = ["run", "small.toml", "--out", "o"].iter().chain(args).copied().collect();
        let done = lab.run(&all);
        assert!(done.code == 2 && done.err.contains(says), "{args:?}: {}", done.err);
    }
    for name in ["fifo", "-"] {
        let args = ["compare", "small.toml", "--schemes", "ecmp,rps", "--out", "o", "--fct", name];
        let done = lab.run(&args);
        assert!(done.code == 2 && done.err.contains("each run writes its own file"), "{}", done.err);
    }
    assert_eq!(lab.names(), ["elsewhere", "fifo", "link", "out", "small.toml"]);
}

/// No file is created for /dev/full. It is opened as a shell opens standard output.
#[test]
fn a_full_disk_is_told_and_a_closed_pipe_is_not() {
    let lab = Lab::with_small();
    for args in [&["list", "schemes"][..], &["schema"], &["completions", "bash"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let done = lab.command(args).stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains("cannot write to standard output: No space left"), "{args:?}: {err}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = lab.command(args).stdout(writer).output().unwrap();
        assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

#[test]
fn an_index_of_somebody_else_is_left_alone() {
    let lab = Lab::with_small().file("other.toml", crate::common::SMALL);
    fs::create_dir(lab.path("site")).unwrap();
    fs::write(lab.path("site/index.html"), "<title>my thesis</title>").unwrap();
    let args = ["compare", "small.toml", "other.toml", "--schemes", "ecmp,rps", "--out", "site"];
    let done = lab.run(&args);
    assert!(done.code == 2 && done.err.contains("is not a page of ours"), "{}", done.err);
    assert_eq!(text(&lab, "site/index.html"), "<title>my thesis</title>");
}

/// Returns the output of tshark for a capture, one line for each packet.
fn dissected(file: &Path, args: &[&str]) -> Vec<String> {
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let done = Command::new("tshark").arg("-n").args(checks).arg("-r").arg(file).args(args).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect()
}

/// 10,000 packets with losses, marks and retransmissions, through Wireshark's dissectors.
#[test]
fn wireshark_finds_nothing_malformed() {
    let tshark = Command::new("tshark").arg("--version").output().is_ok_and(|done| done.status.success());
    if !tshark {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("SKIPPED: no tshark found, the capture was not read by Wireshark's dissectors");
        }
        return;
    }
    let lab = Lab::with_small();
    let lossy = ["--set", "workload[0].size=16MB", "--set", "topology.error_rate=0.001"];
    // Standard RDMA frames, also mixed with pathweave's probes and notices, and datagrams.
    for (scheme, frames, packets) in [
        ("ecmp", "standard", 10_000),
        ("laps", "standard", 2_000),
        ("erd-uncontrolled", "standard", 1_000),
        ("dlbf", "pathweave", 1_000),
    ] {
        let (set, limit) = (format!("scheme={scheme}"), packets.to_string());
        let args =
            ["--pcapng", "all.pcapng", "--pcapng-frames", frames, "--pcapng-packets", &limit, "--set", &set];
        run(&lab, &[&args[..], &lossy[..]].concat());
        let file = lab.path("all.pcapng");
        assert_eq!(
            dissected(&file, &["-Y", "_ws.malformed or _ws.expert"]),
            Vec::<String>::new(),
            "{scheme}"
        );
        let fields = "-T fields -e infiniband.bth.opcode -e infiniband.reth.dmalen -e infiniband.aeth.msn \
                      -e infiniband.invariant.crc -e ip.checksum.status";
        let rows = dissected(&file, &fields.split_whitespace().collect::<Vec<_>>());
        assert_eq!(rows.len(), packets, "{scheme}");
        for row in rows {
            let columns: Vec<&str> = row.split('\t').collect();
            let [opcode, reth, aeth, icrc, ip] = columns[..] else { panic!("{row}") };
            // An ICRC in every packet, a RETH where a WRITE begins, an AETH in every acknowledgement. From 0xc0 on
            // opcodes are vendor-specific, and Wireshark does not parse further.
            let opcode: u8 = opcode.parse().unwrap();
            assert!((icrc.starts_with("0x") || opcode >= 0xc0) && ip == "1", "{scheme}: {row}");
            if frames == "standard" {
                assert_eq!(!reth.is_empty(), [0x06, 0x0a, 0x0b].contains(&opcode), "{scheme}: {row}");
                assert_eq!(!aeth.is_empty(), opcode == 0x11, "{scheme}: {row}");
            }
        }
    }
}
