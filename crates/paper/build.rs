//! Build script: a new file among the papers triggers a rebuild, which embeds it.

fn main() {
    println!("cargo:rerun-if-changed=papers");
}
