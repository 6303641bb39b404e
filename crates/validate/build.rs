//! Build script: a new case triggers a rebuild, which embeds it.

fn main() {
    println!("cargo:rerun-if-changed=data");
}
