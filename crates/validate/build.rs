//! A new case makes all of them be embedded anew.

fn main() {
    println!("cargo:rerun-if-changed=data");
}
