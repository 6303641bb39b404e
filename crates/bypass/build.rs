//! Compiles the C part against the installed DPDK, if the feature `dpdk` is enabled.

fn main() {
    println!("cargo::rerun-if-changed=src/dpdk/eal/shim.c");
    #[cfg(feature = "dpdk")]
    shim();
}

#[cfg(feature = "dpdk")]
fn shim() {
    let found = pkg_config::Config::new().atleast_version("22.11").cargo_metadata(false).probe("libdpdk");
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            println!(
                "cargo::error=the feature dpdk needs DPDK 22.11 or later with its headers (Debian: libdpdk-dev): {why}"
            );
            return;
        }
    };
    let mut build = cc::Build::new();
    // DPDK's headers must be included after its configuration, and compiled for the processors for which DPDK was
    // compiled.
    for flag in ["--cflags-only-other", "--cflags-only-I"] {
        for flag in flags(flag) {
            build.flag(flag);
        }
    }
    build
        .file("src/dpdk/eal/shim.c")
        .opt_level(3)
        .warnings(true)
        .flag("-Wno-unused-parameter")
        .compile("pathweave_dpdk_shim");
    for path in &found.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // Of the fifty libraries of DPDK, only those that are called here. Drivers are loaded when DPDK starts.
    for library in ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}

#[cfg(feature = "dpdk")]
fn flags(which: &str) -> Vec<String> {
    let output = std::process::Command::new("pkg-config").args([which, "libdpdk"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    // `-include FILE` is a single flag.
    let mut flags = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        flags.push(word.clone());
        if word == "-include" {
            flags.extend(words.next());
        }
    }
    flags
}
