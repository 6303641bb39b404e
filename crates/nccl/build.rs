//! Link arguments of the shared library.

fn main() {
    // The library stays loaded once it is opened, because Rust's thread-local destructors and the event
    // loop's threads outlive a dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
