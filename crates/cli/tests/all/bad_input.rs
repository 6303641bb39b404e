//! Invalid input of any kind gives exit code 2 and a message with the place, the value, what is allowed and the most
//! similar valid name. Nothing is written.

use crate::common::{Lab, SMALL};

/// Runs `args` in `lab` and checks that they are refused with a message that contains all of `parts`, and that the
/// folder stays unchanged.
#[track_caller]
fn refused(lab: &Lab, args: &[&str], parts: &[&str]) {
    let before = lab.names();
    let done = lab.run(args);
    assert_eq!(done.code, 2, "{}", done.err);
    assert_eq!(done.out, "", "standard output is for results");
    for part in parts {
        assert!(done.err.contains(part), "{part:?} is not in:\n{}", done.err);
    }
    assert_eq!(lab.names(), before, "something was written");
}

#[track_caller]
fn refused_text(text: &str, parts: &[&str]) {
    refused(&Lab::new().file("a.toml", text), &["run", "a.toml"], parts);
}

#[track_caller]
fn refused_set(setting: &str, parts: &[&str]) {
    refused(&Lab::with_small(), &["run", "small.toml", "--set", setting], parts);
}

/// A complete message, as the user gets it.
#[test]
fn a_message_in_full() {
    let lab = Lab::new().file("a.toml", format!("{SMALL}\n[switch.ecn]\nkmn = \"10KB\"\n"));
    let expected = "\
error: unknown field `kmn` in `switch.ecn`
  --> a.toml:10:1
   |
10 | kmn = \"10KB\"
   | ^^^
   |
   = help: did you mean `kmin`?
   = help: fields here: at, enabled, kmax, kmin, last_hop, pmax, reference_rate, thresholds
   = field: switch.ecn.kmn
";
    assert_eq!(lab.run(&["run", "a.toml"]).err, expected);
}

#[test]
fn mixes_that_make_no_sense() {
    let with = |more: &str, of_workload: &str| format!("{SMALL}\n{of_workload}\n{more}");
    refused_text(&with("", "pool = \"mine\""), &["no pool is named \"mine\"", "declare it"]);
    refused_text(&with("[pools]\nmice = 4", "pool = \"mine\""), &["pools: mice", "did you mean `mice`?"]);
    refused_text(&with("[pools]\nmine = 0", "pool = \"mine\""), &["`pools.mine` cannot be 0"]);
    let crowd = with("[pools]\nmine = 4000\nyours = 96", "pool = \"mine\"");
    refused_text(&crowd, &["pools of 4096 hosts together, but the topology has"]);
    refused_text(&with("", "role = \"background\""), &["every workload is background"]);
    refused_text(&with("", "role = \"backgrund\""), &["did you mean `background`?"]);
}

#[test]
fn unknown_scheme() {
    let parts = ["unknown scheme \"rsp\"", "a.toml:1:10", "did you mean `rps`?", "ecmp"];
    refused_text(&format!("scheme = \"rsp\"\n{SMALL}"), &parts);
    let lab = Lab::with_small();
    refused(
        &lab,
        &["compare", "small.toml", "--schemes", "rps,ecpm"],
        &["--schemes ecpm", "did you mean `ecmp`?"],
    );
    refused(&lab, &["compare", "small.toml", "--schemes", "rps,rps"], &["\"rps\" twice"]);
    let parts = ["unknown scheme \"qp17\"", "a.toml:9:10", "workload[0].scheme"];
    refused_text(&format!("{SMALL}\nscheme = \"qp17\"\n"), &parts);
}

#[test]
fn routing_that_cannot_be() {
    refused_set(
        "routing=sorce",
        &["unknown routing kind \"sorce\"", "did you mean `source`?", "ecmp, source"],
    );
    let paths = |paths: &str, parts: &[&str]| {
        refused_set(&format!("routing={{ kind = \"source\", paths = {{ {paths} }} }}"), parts);
    };
    paths("kind = \"k-shrtest\"", &["unknown paths kind", "did you mean `k-shortest`?"]);
    paths("kind = \"k-shortest\", k = 0", &["`routing.paths.k` cannot be 0", "must be 1 to 256"]);
    paths("kind = \"own\", max_paths = 0", &["`routing.paths.max_paths` cannot be 0", "1 to 65535"]);
    paths(
        "kind = \"file\", path = \"nowhere.toml\"",
        &["cannot read file nowhere.toml", "routing.paths.path"],
    );
    let leaves = SMALL.replace(
        "kind = \"star\"\nhosts = 4",
        "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2",
    );
    let text = format!(
        "routing = {{ kind = \"source\", paths = {{ kind = \"file\", path = \"p.toml\" }} }}\n{leaves}"
    );
    let with = |file: &str| Lab::new().file("a.toml", &text).file("p.toml", file);
    let unknown = with("[[path]]\nvia = [\"leaf0\", \"spin0\", \"leaf1\"]\n");
    refused(
        &unknown,
        &["run", "a.toml"],
        &["p.toml:2:17", "no node is named \"spin0\"", "did you mean \"spine0\"?"],
    );
    refused(
        &with(""),
        &["run", "a.toml"],
        &["p.toml", "no path from leaf0 to leaf1, whose hosts communicate"],
    );
    let sourced = Lab::new().file("a.toml", format!("routing = \"source\"\n{SMALL}"));
    // The error names the user's setting, not a field left at its default.
    let parts = [
        "scheme \"conga\" needs switches that do \"conga\", which is impossible where routing.kind is \
         \"source\"",
        "--set scheme=conga",
        "help: choose a scheme whose hosts choose paths, or leave out `routing`",
        "= field: scheme",
    ];
    refused(&sourced, &["run", "a.toml", "--set", "scheme=conga"], &parts);
}

#[test]
fn missing_topology_field() {
    let text = SMALL.replace("hosts = 4\n", "");
    refused_text(&text, &["missing field `hosts` in `topology`", "a.toml:1:1", "`hosts` is needed"]);
    refused_text(
        &SMALL.replace("kind = \"star\"\n", ""),
        &["missing field `kind`", "fat-tree", "leaf-spine"],
    );
    refused_text(
        "seed = 1\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n",
        &["missing field `topology`"],
    );
}

#[test]
fn unknown_topology() {
    refused_set("topology.kind=fattree", &["unknown topology kind \"fattree\"", "did you mean `fat-tree`?"]);
    let text = SMALL.replace("kind = \"star\"\nhosts = 4", "preset = \"udmp320\"");
    refused_text(&text, &["unknown topology preset \"udmp320\"", "a.toml:2:10", "did you mean `udmp-320`?"]);
}

#[test]
fn negative_or_absurd_rates() {
    let text = SMALL.replace("hosts = 4", "hosts = 4\nrate = \"-3Gbps\"");
    refused_text(&text, &["`topology.rate` cannot be \"-3Gbps\"", "a.toml:4:8", "Kbps, Mbps, Gbps, Tbps"]);
    refused_set("topology.rate=99999999999Tbps", &["out of range", "command line:1:21"]);
    refused_set("topology.rate=0Gbps", &["`topology.rate` cannot be 0bps", "must be above 0"]);
    refused_set("observe.flows=1001", &["`observe.flows` cannot be 1001", "0 to 1000"]);
    refused_set(
        "observe.follow=[4]",
        &["field: observe.follow[0]", "there is no flow 4", "4 flows are numbered from 0 to 3"],
    );
    refused_set("topology.rate=100", &["cannot be a whole number 100", "\"100Gbps\""]);
    refused_set("topology.rate=100GB", &["unknown or missing unit"]);
}

#[test]
fn hosts_that_do_not_exist() {
    let flows = "[topology]\nkind = \"star\"\nhosts = 4\n\n[[workload]]\nkind = \"flows\"\nflows = [\n  \
                 { src = 0, dst = 1, size = \"1MB\" },\n  { src = 0, dst = 9, size = \"1MB\" },\n]\n";
    refused_text(flows, &["a.toml:9:20", "9", "hosts are 0 to 3", "workload[0].flows[1].dst"]);
    let lab = Lab::new()
        .file("a.toml", flows.split("flows = [").next().unwrap().to_owned() + "file = \"flows.csv\"\n")
        .file("flows.csv", "src,dst,size_bytes\n0,1,1000\n7,1,1000\n");
    refused(&lab, &["run", "a.toml"], &["flows.csv:3", "7", "hosts are 0 to 3", "a.toml:7:8"]);
}

#[test]
fn disconnected_topology() {
    let links = "5 2 3\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 4 100Gbps 1us 0\n";
    let lab = Lab::new()
        .file(
            "a.toml",
            SMALL.replace("kind = \"star\"\nhosts = 4", "kind = \"hpcc\"\npath = \"topology.txt\""),
        )
        .file("topology.txt", links);
    refused(&lab, &["run", "a.toml"], &["topology.txt", "not connected", "host2", "a.toml:3:8"]);
}

#[test]
fn size_distributions() {
    let text = SMALL
        .replace("permutation", "poisson")
        .replace("size = \"100KB\"", "sizes = \"my.cdf\"\nload = 0.5\nflows = 9");
    let lab = Lab::new().file("a.toml", &text).file("my.cdf", "0 0\n1000 40\n2000 90\n");
    refused(&lab, &["run", "a.toml"], &["my.cdf:3", "90", "must be 1, or 100", "a.toml:7:9"]);
    let parts = ["cannot be \"wbsearch\"", "a.toml:7:9", "websearch"];
    refused_text(&text.replace("my.cdf", "wbsearch"), &parts);
}

#[test]
fn size_zero() {
    refused_set("workload[0].size=0B", &["0 bytes", "allowed are 1 to 4294967296", "workload[0].size=0B"]);
}

#[test]
fn duplicate_ids() {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"flows\"\nflows = [\n  \
                { id = \"x\", src = 0, dst = 1, size = \"1MB\" },\n  { id = \"x\", src = 0, dst = 2, size = \"1MB\" },\n]\n";
    refused_text(text, &["a.toml:8:", "id = x", "ids must differ"]);
    refused_text(&format!("seed = 1\nseed = 2\n{SMALL}"), &["duplicate key", "a.toml:2:1"]);
    let lab = Lab::new()
        .file("a.toml", SMALL.replace("kind = \"star\"\nhosts = 4", "kind = \"hpcc\"\npath = \"t.txt\""))
        .file("t.txt", "4 2 2\n3 3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n");
    refused(&lab, &["run", "a.toml"], &["t.txt:2:3", "switch 3 is listed twice"]);
}

#[test]
fn files_of_another_kind_are_called_by_their_name() {
    let lab = Lab::with_small()
        .file("sweep.toml", "scenario = 'small.toml'\nseeds = 2\n")
        .file("plan.toml", "scenario = 'small.toml'\n[[fabric]]\nname = 'a'\n");
    refused(
        &lab,
        &["run", "sweep.toml"],
        &["sweep.toml is a sweep file; expected a scenario file", "`pathweave sweep` reads it"],
    );
    refused(
        &lab,
        &["check", "plan.toml"],
        &["plan.toml is a plan file; expected a scenario file", "`pathweave plan` reads it"],
    );
    refused(
        &lab,
        &["sweep", "small.toml"],
        &["small.toml is a scenario file; expected a sweep file", "`pathweave run` reads it"],
    );
    refused(
        &lab,
        &["plan", "sweep.toml"],
        &["sweep.toml is a sweep file; expected a plan file", "`pathweave sweep` reads it"],
    );
    refused(&lab, &["explain", "."], &["./summary.json: cannot be read", "name the folder of one run"]);
}

#[test]
fn unreadable_and_truncated_files() {
    refused(&Lab::new(), &["run", "a.toml"], &["cannot read a.toml", "No such file"]);
    refused(&Lab::new(), &["run", "."], &["cannot read ."]);
    refused(&Lab::new().file("a.toml", b"name = \"\xff\xfe\""), &["run", "a.toml"], &["not UTF-8", "line 1"]);
    refused_text("[topology", &["not valid TOML", "a.toml:1:10"]);
    refused_text(&SMALL[..SMALL.len() - 3], &["not valid TOML", "a.toml:7:"]);
    refused_text("", &["missing field `topology` in the scenario a.toml", "missing field `workload`"]);
    let lab = Lab::new()
        .file("a.toml", SMALL.replace("kind = \"star\"\nhosts = 4", "kind = \"hpcc\"\npath = \"t.txt\""))
        .file("t.txt", "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps");
    refused(
        &lab,
        &["run", "a.toml"],
        &["t.txt:4:1", "link 2 of 3 has 3 columns; expected 5: src dst rate delay error_rate"],
    );
    let gone = SMALL.replace("kind = \"star\"\nhosts = 4", "kind = \"hpcc\"\npath = \"gone.txt\"");
    refused_text(&gone, &["gone.txt", "No such file"]);
}

#[test]
fn output_folder_that_cannot_be_written() {
    let lab = Lab::with_small().file("afile", "");
    refused(&lab, &["run", "small.toml", "--out", "afile/x"], &["cannot write results", "afile/x"]);
    refused(&lab, &["run", "small.toml", "--out", "afile"], &["not a result folder"]);
    std::fs::create_dir(lab.path("thesis")).unwrap();
    std::fs::write(lab.path("thesis/chapter1.tex"), "years of work").unwrap();
    refused(&lab, &["run", "small.toml", "--out", "thesis"], &["thesis", "chapter1.tex"]);
    refused(&lab, &["compare", "small.toml", "--schemes", "rps,ecmp", "--out", "thesis"], &["chapter1.tex"]);
}

#[test]
fn settings_on_the_command_line() {
    refused_set("topology.hotss=3", &["--set topology.hotss=3", "did you mean `hosts`?"]);
    refused_set("topolgy.hosts=3", &["unknown field `topolgy`", "did you mean `topology`?"]);
    refused_set("workload[3].size=1MB", &["`workload` has no item 3", "it has 1, counted from 0"]);
    refused_set("workload.0.size=1MB", &["workload[0]"]);
    refused_set("until", &["--set needs key=value"]);
    refused_set("seed=-1", &["`seed` cannot be -1", "0 or more"]);
    refused_set("scheme.pths=3", &["unknown field `pths` in `scheme`", "did you mean `paths`?"]);
    let lab = Lab::with_small();
    refused(&lab, &["run", "small.toml", "--seed", "99999999999999999999"], &["--seed"]);
    for wrong in [&["--seed", "-1"][..], &["--seed=-1"], &["--seed", "1.5"]] {
        let parts = ["'--seed <N>'", "expected a whole number from 0 to 9223372036854775807"];
        refused(&lab, &[&["run", "small.toml"], wrong].concat(), &parts);
        refused(&lab, &[&["demo"], wrong].concat(), &parts);
    }
    refused(&lab, &["run", "small.toml", "--threads", "-1"], &["-1 is not in 1..=1024"]);
    refused(&lab, &["nccl", "--factor", "-1"], &["expected a whole number from 2 to 1024"]);
    refused(&lab, &["run", "small.toml", "-1"], &["unexpected argument '-1'"]);
    refused(
        &lab,
        &["run", "small.toml", "--seed", "18446744073709551615"],
        &["--seed", "9223372036854775807"],
    );
}

#[test]
fn workloads_that_send_nothing() {
    refused_set("workload=[]", &["no workload", "at least one [[workload]]"]);
    refused_text("[topology]\nkind = \"star\"\nhosts = 2\n", &["missing field `workload`"]);
    let poisson = SMALL
        .replace("permutation", "poisson")
        .replace("size = \"100KB\"", "sizes = \"websearch\"\nload = 0.001\nduration = \"1ns\"");
    refused_text(&poisson, &["sends nothing", "a.toml:5:1"]);
}

#[test]
fn values_out_of_range() {
    refused_set("network.mtu=100B", &["`network.mtu` cannot be 100B", "256 B to 9000 B"]);
    refused_set("workload[0].class=2", &["`workload[0].class` cannot be 2", "switch.weights"]);
    refused_set("switch.ecn.pmax=2", &["`switch.ecn.pmax` cannot be 2", "probability"]);
    refused_set("scheme.policy.cc.preset=papers", &["unknown name \"papers\"", "did you mean `paper`?"]);
    refused_set("topology.hosts=0", &["`topology.hosts` cannot be 0", "at least 1"]);
    refused_set("switch.buffer=64KB", &["switch.buffer", "headroom"]);
    refused_set("run.threads=0", &["`run.threads` cannot be 0", "1 to 1024"]);
    refused_set("topology.hosts=1", &["hosts of the topology: 1", "at least 2 hosts", "field: topology"]);
    refused_set("topology.hosts=99999999", &["at most 2097152", "small.toml:1:1"]);
}

#[test]
fn faults_name_what_exists() {
    let link = "[[fault]]\nkind = \"link-down\"\nlink = \"host0-swich0\"\nat = \"1us\"\n";
    let parts = ["no link is named \"host0-swich0\"", "a.toml:11:8", "did you mean `host0-switch0`?"];
    refused_text(&format!("{SMALL}\n{link}"), &parts);
    let switch = "[[fault]]\nkind = \"switch-down\"\nswitch = \"host1\"\nat = \"1us\"\n";
    refused_text(&format!("{SMALL}\n{switch}"), &["no switch is named \"host1\""]);
    let order = link.replace("swich0", "switch0").replace("at = \"1us\"", "at = \"2us\"\nup_at = \"1us\"");
    refused_text(
        &format!("{SMALL}\n{order}"),
        &["`fault[0].up_at` cannot be 1us", "after the start of the fault"],
    );
}

#[test]
fn several_mistakes_are_all_shown() {
    let text = SMALL.replace("hosts = 4", "hosts = \"four\"").replace("size =", "sze =");
    refused_text(
        &text,
        &["`topology.hosts` cannot be a text", "unknown field `sze`", "missing field `size`"],
    );
}

#[test]
fn a_partition_names_what_exists() {
    let lab = Lab::with_small().file("parts.txt", "host0 0\n\nswich0 1\n");
    let refused_as =
        |parts: &[&str]| refused(&lab, &["run", "small.toml", "--set", "run.partition=parts.txt"], parts);
    refused_as(&["parts.txt:3", "no node is named \"swich0\"", "did you mean \"switch0\"?"]);
    std::fs::write(lab.path("parts.txt"), "host0 0\n").unwrap();
    refused_as(&["parts.txt", "host1 has no part; every switch needs one"]);
    refused_set("run.partition=missing.txt", &["missing.txt"]);
}

/// A run of half a minute with a sample every nanosecond keeps terabytes of samples.
#[test]
fn runs_beyond_memory_are_refused() {
    let lab = Lab::with_small();
    let sets = [
        "observe.interval=1ns",
        "observe.max_samples=4000000000",
        "workload[0].size=4GB",
        "topology.rate=1Gbps",
    ];
    let huge = sets.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    let parts = [
        "the run takes about",
        "are available",
        "\"samples\"",
        "observe.interval",
        "--force",
        "check --memory",
    ];
    refused(&lab, &[&["run", "small.toml"][..], &huge].concat(), &parts);
    // `check` only reports the memory.
    let done = lab.run(&[&["check", "small.toml", "--threads", "1"][..], &huge].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("not set up for a trial: the run takes about"), "{}", done.out);
    // With --force the run is executed anyway. Here it ends early.
    let soon = ["--set", "run.max_events=20", "--force", "--quiet", "--out", "forced"];
    let done = lab.run(&[&["run", "small.toml"][..], &huge, &soon].concat());
    assert!(lab.path("forced/summary.json").exists(), "{}", done.err);
}

#[test]
fn errors_name_the_kind_of_file() {
    let lab = Lab::with_small().file("sweep.toml", "scenario = \"small.toml\"\nseed = 3\n");
    let sweep = lab.run(&["sweep", "sweep.toml"]);
    assert_eq!(sweep.code, 2);
    assert!(sweep.err.contains("unknown field `seed` in the sweep file"), "{}", sweep.err);
    let lab = lab.file("plan.toml", "sed = 3\n");
    let plan = lab.run(&["plan", "plan.toml"]);
    assert!(plan.err.contains("unknown field `sed` in the plan file"), "{}", plan.err);
    let lab = lab.file("other.toml", "sed = 3\n");
    let run = lab.run(&["run", "other.toml"]);
    assert!(run.err.contains("unknown field `sed` in the scenario"), "{}", run.err);
}

#[test]
fn a_cluster_key_is_made_once_and_checked() {
    let lab = Lab::new();
    let made = lab.run(&["key", "c.key"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let fingerprint = made.out.split("fingerprint ").nth(1).unwrap()[..8].to_owned();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(lab.path("c.key")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let checked = lab.run(&["key", "c.key", "--check"]);
    assert_eq!(checked.out, format!("c.key: fingerprint {fingerprint}\n"));
    let again = lab.run(&["key", "c.key"]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("c.key: the file exists; name a new one"), "{}", again.err);
    let none = lab.run(&["key", "none.key", "--check"]);
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    std::fs::write(lab.path("bad.key"), "12ab\n").unwrap();
    std::fs::set_permissions(lab.path("bad.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    assert!(lab.run(&["key", "bad.key", "--check"]).err.contains("bad.key"));
}
