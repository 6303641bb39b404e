//! `pathweave convert` from outside: results of conversions, and refused inputs.

use std::fs;

use crate::common::{Lab, names, root};

fn text(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path(name)).unwrap()
}

fn convert(lab: &Lab, args: &[&str]) -> String {
    let done = lab.run(&[&["convert"][..], args].concat());
    assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    done.out + &done.err
}

fn refused(lab: &Lab, args: &[&str]) -> String {
    let before = lab.names();
    let done = lab.run(&[&["convert"][..], args].concat());
    assert_eq!(done.code, 2, "{args:?}: {}", done.out);
    assert_eq!(lab.names(), before, "nothing is written");
    done.err
}

fn data(path: &str) -> String {
    root().join("tests/data").join(path).display().to_string()
}

#[test]
fn topologies_there_and_back() {
    let lab = Lab::new();
    let fat = data("topology/conweave-fat-k8.txt");
    let told = convert(&lab, &[&fat, "fat.toml"]);
    assert!(told.contains("(hpcc-topology) to fat.toml (topology)"), "{told}");
    convert(&lab, &["fat.toml", "fat.txt"]);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // The first 3 + 80 words are counts and switches. Each link has five words. Delays were "1000ns".
    let (before, after) = (words(&fs::read_to_string(&fat).unwrap()), words(&text(&lab, "fat.txt")));
    assert_eq!(after.len(), 3 + 80 + 5 * 512);
    for (a, b) in before.iter().zip(&after) {
        assert!(a == b || a.parse::<f64>().ok() == b.parse::<f64>().ok(), "{a} and {b}");
    }
    convert(&lab, &[&data("topology/simai-4gpu.txt"), "simai.toml"]);
    convert(&lab, &[&data("topology/htsim-8.topo"), "htsim.toml"]);
    assert!(text(&lab, "htsim.toml").contains("{ a = \"agg0.0\", b = \"core0\", count = 2 }"));
    let lab = lab.file(
        "run.toml",
        "[topology]\nkind = \"file\"\npath = \"simai.toml\"\n\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n",
    );
    let done = lab.run(&["check", "run.toml"]);
    assert!(
        done.code == 0 && done.out.contains("hosts: 4, switches: 5, links: 12"),
        "{}{}",
        done.out,
        done.err
    );
    // Features that HPCC's format cannot express are reported, and dropped only with --lossy.
    let told = refused(&lab, &["simai.toml", "back.txt"]);
    assert!(told.contains("hpcc-topology cannot represent:\n  - names, such as \"nvswitch4\""), "{told}");
    let told = convert(&lab, &["simai.toml", "back.txt", "--lossy"]);
    assert!(told.contains("back.txt leaves out:\n  - names"), "{told}");
    assert!(text(&lab, "back.txt").starts_with("9 5 12\n4 5 6 7 8\n0 4 2400Gbps 25ns 0\n"));
}

#[test]
fn flows_there_and_back() {
    let lab = Lab::new().file(
        "m.cm",
        "Nodes 16\nConnections 3\nTriggers 1\n0->13 id 1 start 5 size 2000000 recv_done_trigger 1\n\
         1->2 id 2 start 0 size 10 recv_done_trigger 1\n2->1 id 3 trigger 1 size 20\ntrigger id 1 barrier count 2\n",
    );
    convert(&lab, &["m.cm", "m.csv"]);
    let expected =
        "src,dst,size_bytes,start_ns,id,after\n0,13,2000000,5000,1,\n1,2,10,0,2,\n2,1,20,0,3,1 2\n";
    assert_eq!(text(&lab, "m.csv"), expected);
    convert(&lab, &["m.csv", "again.cm"]);
    // If the header has no number of nodes, the number is the highest node plus one. The unit of start times is
    // written.
    let again = text(&lab, "m.cm").replace("Nodes 16", "Nodes 14");
    assert_eq!(text(&lab, "again.cm"), format!("# start in microseconds (uet-htsim)\n{again}"));
    convert(&lab, &["m.csv", "csg.cm", "--to", "csg-htsim-flows"]);
    let csg = again.replace("start 5 ", "start 5000000 ");
    assert_eq!(text(&lab, "csg.cm"), format!("# start in picoseconds (csg-htsim)\n{csg}"));
    let told = refused(&lab, &["m.csv", "flow.txt"]);
    assert!(told.contains("hpcc-flows cannot represent:\n  - the order of 1 flow behind others"), "{told}");
    let hpcc = data("flows/hpcc.txt");
    convert(&lab, &[&hpcc, "h.csv"]);
    convert(&lab, &["h.csv", "h.txt"]);
    let first: Vec<String> = fs::read_to_string(&hpcc).unwrap().lines().take(3).map(str::to_owned).collect();
    let back = text(&lab, "h.txt");
    assert_eq!(
        back.lines().map(str::trim).collect::<Vec<_>>(),
        first.iter().map(|l| l.trim()).collect::<Vec<_>>()
    );
    convert(&lab, &["h.csv", "c.out", "--to", "conweave-flows"]);
    assert!(text(&lab, "c.out").starts_with("2\n2 1 3 200000000 2\n"));
}

#[test]
fn ids_and_moments_survive_and_names_are_told() {
    let text = "Nodes 4\nConnections 3\nTriggers 2\n0->1 id 12 start 0 size 9 send_done_trigger 1\n\
                1->2 id 7 trigger 1 size 9 recv_done_trigger 2\n2->3 id 9 trigger 2 size 9\n\
                trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let lab = Lab::new()
        .file("m.cm", text)
        .file("named.csv", "\u{feff}src,dst,size_bytes,id,after\n0,1,5,first,\n1,0,5,,first\n");
    convert(&lab, &["m.cm", "m.csv"]);
    convert(&lab, &["m.csv", "again.cm"]);
    assert_eq!(self::text(&lab, "again.cm"), text);
    let told = refused(&lab, &["named.csv", "named.cm"]);
    assert!(
        told.contains("htsim-flows cannot represent:\n  - the names of 1 flow, which get numbers"),
        "{told}"
    );
}

/// Returns the simulated time until everything is delivered, in nanoseconds.
fn last_ns(lab: &Lab, scenario: &str) -> f64 {
    let done = lab.run(&["run", scenario, "--out", "out", "--quiet"]);
    assert_eq!(done.code, 0, "{}", done.err);
    lab.json("out/summary.json")["jobs"]["completion_ns"]["max"].as_f64().unwrap()
}

#[test]
fn a_trace_as_flows_takes_as_long() {
    let star = "[topology]\nkind = \"star\"\nhosts = 8\n\n[[workload]]\n";
    for (trace, kind, behind_ns, longer) in [
        // A flow of the list has one delay after all its predecessors. A computation after a received message
        // therefore also starts only after the acknowledgement of a sent one.
        ("scenarios/chakra-ring", "kind = \"chakra\"\ntrace", 0.0, 0.03),
        ("scenarios/goal-all-reduce.goal", "kind = \"goal\"\nfile", 70_013.76, 0.0),
    ] {
        let path = root().join(trace).display().to_string();
        let lab = Lab::new()
            .file("trace.toml", format!("{star}{kind} = {path:?}\n"))
            .file("flows.toml", format!("{star}kind = \"flows\"\nfile = \"f.csv\"\n"));
        convert(&lab, &[&path, "f.csv", "--lossy"]);
        let (trace, flows) = (last_ns(&lab, "trace.toml"), last_ns(&lab, "flows.toml"));
        // The schedule has 50 us before its first message, at which the job of the list begins. It has 20 us after
        // the acknowledgement of the last message, which comes 13.76 ns after its delivery.
        let more = flows - (trace - behind_ns);
        assert!((-1e-3..=longer * trace + 1e-3).contains(&more), "{trace} and {flows}");
        // Converting the whole scenario gives the same result.
        convert(&lab, &["trace.toml", "s.csv", "--lossy"]);
        assert_eq!(text(&lab, "s.csv"), text(&lab, "f.csv"));
    }
}

/// Returns the digest and the time of the job of a run.
fn ran(lab: &Lab, scenario: &str) -> (String, f64) {
    let ns = last_ns(lab, scenario);
    (lab.json("out/summary.json")["run"]["digest"].as_str().unwrap().to_owned(), ns)
}

/// A trace that is read and written again gives the same run, and so does a trace converted from the result.
#[test]
fn a_chakra_trace_is_written_with_the_same_digest() {
    let star = "[topology]\nkind = \"star\"\nhosts = 16\n\n[[workload]]\ngroup = \"w\"\n";
    let ring = root().join("scenarios/chakra-ring").display().to_string();
    let layers = data("simai/micro-allreduce-8gpu.txt");
    let moe = "kind = \"simai\"\nfile = \"moe-9216gpu\"\ngpus = 16\npp = 2\nep = 4\nmicrobatches = 1\nscale = 0.0002";
    let goal = root().join("scenarios/goal-all-reduce.goal").display().to_string();
    let transformer = "kind = \"transformer\"\nlayers = 2\nhidden = 256\nheads = 4\nsequence = 128\nfeed_forward_hidden = 512\nvocabulary = 1000\nkv_heads = 4\ntp = 2\npp = 2\nmicrobatches = 2";
    for (name, workload) in [
        ("ring", format!("kind = \"chakra\"\ntrace = {ring:?}")),
        ("layers", format!("kind = \"simai\"\nfile = {layers:?}")),
        ("moe", moe.to_owned()),
        ("goal", format!("kind = \"goal\"\nfile = {goal:?}")),
        ("transformer", transformer.to_owned()),
    ] {
        let lab = Lab::new()
            .file("s.toml", format!("{star}{workload}\n"))
            .file("t.toml", format!("{star}kind = \"chakra\"\ntrace = \"one\"\n"))
            .file("u.toml", format!("{star}kind = \"chakra\"\ntrace = \"two\"\n"));
        convert(&lab, &["s.toml", "one", "--to", "chakra"]);
        convert(&lab, &["one", "two", "--to", "chakra"]);
        let (of_scenario, of_trace, again) = (ran(&lab, "s.toml"), ran(&lab, "t.toml"), ran(&lab, "u.toml"));
        assert_eq!((&of_scenario, &of_trace), (&of_trace, &again), "{name}");
    }
}

#[test]
fn a_trace_is_a_folder_that_is_made() {
    let star = "[topology]\nkind = \"star\"\nhosts = 8\n\n[[workload]]\n";
    let collective = "kind = \"collective\"\noperation = \"all-reduce\"\nsize = \"1MB\"\nalgorithm = \"double-binary-tree\"\n";
    let flows = "kind = \"flows\"\nflows = [{ id = \"a\", src = 0, dst = 1, size = \"9B\" }, { src = 2, dst = 3, size = \"9B\", after = [\"a\"] }]\n";
    let lab = Lab::new()
        .file("tree.toml", format!("{star}{collective}groups = [[0, 1, 2, 3], [4, 5, 6, 7]]\n"))
        .file("third.toml", format!("{star}{flows}"))
        .file("list.csv", "src,dst,size_bytes\n0,1,5\n");
    let told = convert(&lab, &["tree.toml", "tree", "--to", "chakra"]);
    assert!(told.contains("set algorithms.all_reduce = \"double-binary-tree\""), "{told}");
    let ranks = (0..8).map(|rank| format!("tree.{rank}.et"));
    let files: Vec<String> = ["process_groups.json".to_owned()].into_iter().chain(ranks).collect();
    assert_eq!(names(&lab.path("tree")), files);
    assert_eq!(
        text(&lab, "tree/process_groups.json"),
        "{\n  \"1\": [0, 1, 2, 3],\n  \"2\": [4, 5, 6, 7]\n}\n"
    );
    let told = refused(&lab, &["tree.toml", "tree", "--to", "chakra"]);
    assert!(told.contains("cannot write tree: the folder exists and is not empty"), "{told}");
    let told = refused(&lab, &["third.toml", "third", "--to", "chakra"]);
    assert!(told.contains("third.toml: a task of host 2 waits for a message from 0 to 1"), "{told}");
    let told = refused(&lab, &["list.csv", "list", "--to", "chakra"]);
    assert!(
        told.contains("convert a scenario with a workload of kind = \"flows\" and file = \"list.csv\""),
        "{told}"
    );
}

#[test]
fn inputs_of_astra_sim() {
    let lab = Lab::new();
    let input = |name: &str| root().join("scenarios/astra").join(name).display().to_string();
    convert(&lab, &[&input("network.yml"), "network.toml"]);
    assert_eq!(text(&lab, "network.toml").matches("{ a = ").count(), 16 + 8 + 2 * 2 * 6 + 16);
    let told = refused(&lab, &[&input("system.json"), "lines.toml"]);
    assert!(told.contains("workload cannot represent:") && told.contains("endpoint-delay = 10"), "{told}");
    convert(&lab, &[&input("system.json"), "lines.toml", "--lossy"]);
    // The lines are those of a workload.
    let ring = root().join("scenarios/chakra-ring").display().to_string();
    let lines = text(&lab, "lines.toml");
    let scenario = format!(
        "[topology]\nkind = \"astra\"\npath = {:?}\n[[workload]]\nkind = \"chakra\"\ntrace = {ring:?}\n{lines}",
        input("network.yml")
    );
    let lab = lab.file("s.toml", scenario);
    let done = lab.run(&["run", "s.toml", "--out", "out", "--quiet"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let told = refused(&lab, &["lines.toml", "x.csv", "--from", "workload"]);
    assert!(
        told.contains("workload can be written only") || told.contains("is lines of a workload"),
        "{told}"
    );
}

#[test]
fn losses_of_a_list_are_reported() {
    let lab = Lab::new();
    let schedule = root().join("scenarios/goal-all-reduce.goal").display().to_string();
    let told = refused(&lab, &[&schedule, "f.csv"]);
    assert!(
        told.contains(
            "csv cannot represent:\n  - 8 computations behind the last messages\nf.csv was not written"
        ),
        "{told}"
    );
    let told = convert(&lab, &[&schedule, "f.csv", "--lossy"]);
    assert!(told.contains("f.csv leaves out:\n  - 8 computations"), "{told}");
    let told = refused(&lab, &[&schedule, "f.cm", "--lossy"]);
    assert!(told.contains("would have to set off"), "{told}");
}

#[test]
fn simai_on_as_many_gpus_as_asked_for() {
    let lab = Lab::new();
    let file = data("simai/micro-allreduce-8gpu.txt");
    convert(&lab, &[&file, "eight.csv", "--lossy"]);
    let told = refused(&lab, &[&file, "x.csv", "--set", "gpu=4"]);
    assert!(told.contains("unknown field `gpu`"), "{told}");
    convert(&lab, &[&file, "hosts.csv", "--set", "hosts=[7,6,5,4,3,2,1,0]", "--lossy"]);
    let flows = |name: &str| text(&lab, name).lines().count();
    assert!(flows("eight.csv") > 8);
    assert_eq!(flows("eight.csv"), flows("hosts.csv"));
}

/// Returns a schedule of two ranks, in which the first sends 64 bytes to the second.
fn binary_schedule() -> Vec<u8> {
    let mut bytes = 4223u64.to_le_bytes().to_vec();
    bytes.extend(2u32.to_le_bytes());
    bytes.extend([0, 0]);
    // Each rank has 51 bytes after the header. Offsets in its 38 bytes count from byte 8.
    [38u64, 89, 89, 140].iter().for_each(|place| bytes.extend(place.to_le_bytes()));
    for (kind, peer) in [(1u8, 1u32), (2, 0)] {
        // One operation, which is a root and has no dependencies.
        [1u32, 1, 0, 0].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.push(kind);
        bytes.extend(peer.to_le_bytes());
        bytes.extend(64u64.to_le_bytes());
        bytes.extend([0; 4 + 2 + 16]);
    }
    bytes
}

#[test]
fn a_binary_schedule_is_known_by_its_first_bytes() {
    let lab = Lab::new();
    fs::write(lab.path("two.bin"), binary_schedule()).unwrap();
    let told = convert(&lab, &["two.bin", "flows.csv", "--lossy"]);
    assert!(told.contains("two.bin (goal) to flows.csv (csv)"), "{told}");
    assert!(text(&lab, "flows.csv").contains("0,1,64"), "{}", text(&lab, "flows.csv"));
}

#[test]
fn impossible_conversions_are_refused() {
    let lab =
        Lab::with_small().file("what.txt", "some words\n").file("bad.csv", "src,dst,size_bytes\n1,1,5\n");
    let cases: &[(&[&str], &str)] = &[
        (
            &["what.txt", "x.toml"],
            "what.txt: neither its extension nor its first line determines the format; set --from",
        ),
        (&["none.cm", "x.csv"], "cannot read none.cm: No such file"),
        (
            &["small.toml", "x.dat"],
            "x.dat: its extension does not determine the format; set --to to one of topology",
        ),
        (&["small.toml", "x.txt"], "x.txt: its extension does not determine the format"),
        (&["small.toml", "x.csv", "--from", "workload"], "workload can be written only"),
        (&["small.toml", "x.csv", "--to", "csw"], "--to: no format is named \"csw\"; did you mean \"csv\"?"),
        (&["small.toml", "x.topo", "--to", "htsim-topology"], "htsim-topology can be read only"),
        (&["bad.csv", "x.cm"], "bad.csv:2: dst = 1: the same as src"),
        (&["bad.csv", "x.toml"], "bad.csv is a list of flows, and topology a topology"),
        (&["bad.csv", "x.cm", "--set", "gpus=4"], "--set gpus=4: csv has no settings"),
        (&["small.toml", "gone/x.toml"], "cannot write gone/x.toml"),
    ];
    for (args, says) in cases {
        let told = refused(&lab, args);
        assert!(told.contains(says), "{args:?}: {told}");
    }
    // Only formats for that side of a conversion are listed.
    let to = refused(&lab, &["small.toml", "x.csv", "--to", "foo"]);
    assert!(to.contains(", workload") && !to.contains("scenario") && !to.contains("astra-system"), "{to}");
    let from = refused(&lab, &["small.toml", "x.csv", "--from", "foo"]);
    assert!(from.contains("scenario, astra-system") && !from.contains("workload"), "{from}");
    // A scenario has both a topology and flows.
    convert(&lab, &["small.toml", "star.toml", "--quiet"]);
    convert(&lab, &["small.toml", "small.csv"]);
    assert!(text(&lab, "star.toml").contains("name = \"star of 4 hosts\""), "{}", text(&lab, "star.toml"));
    assert_eq!(text(&lab, "small.csv").lines().count(), 5);
    let left: Vec<String> =
        names(&lab.path(".")).into_iter().filter(|name| name.contains("partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_dash_is_standard_output_and_messages_are_elsewhere() {
    let lab = Lab::new().file("flows.csv", "src,dst,size_bytes,start_ns\n0,1,1000,0\n");
    let whole = lab.run(&["convert", "flows.csv", "out.csv"]);
    assert_eq!(whole.code, 0, "{}", whole.err);
    let done = lab.run(&["convert", "flows.csv", "-", "--to", "csv"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(done.out, fs::read_to_string(lab.path("out.csv")).unwrap());
    assert!(done.err.contains("flows.csv"), "{}", done.err);
    assert_eq!(lab.names(), ["flows.csv", "out.csv"]);
}
