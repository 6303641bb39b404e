//! The shared library: its exports, its dependencies, and that it can be opened alone.
#![allow(unsafe_code, reason = "opens a library")]
#![allow(clippy::print_stderr, reason = "says why a test is skipped")]

use std::path::PathBuf;
use std::process::Command;

/// Returns the library that was built with the tests, in their folder.
fn library() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.join("libpathweave_fi.so"), folder.join("../libpathweave_fi.so")];
    found.into_iter().find(|path| path.is_file()).expect("the library is built with the tests")
}

fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(name).args(arguments).arg(library()).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn one_symbol_is_exported_and_none_of_libfabric_is_wanted() {
    let Some(exported) = tool("nm", &["-D", "--defined-only"]) else {
        return eprintln!("skipped: there is no nm");
    };
    let names: Vec<&str> = exported.lines().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(names, ["fi_prov_ini"]);
    let wanted = tool("nm", &["-D", "--undefined-only"]).unwrap();
    let name = |line: &str| line.trim().split(' ').next_back().unwrap_or_default().to_owned();
    let of_libfabric: Vec<String> = wanted.lines().map(name).filter(|name| name.starts_with("fi_")).collect();
    assert_eq!(of_libfabric, [""; 0]);
}

#[test]
fn it_needs_the_c_library_alone_and_stays_loaded() {
    let Some(dynamic) = tool("readelf", &["-d"]) else { return eprintln!("skipped: there is no readelf") };
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(!needed.is_empty());
    for line in needed {
        let allowed = ["libc.so", "libgcc_s.so", "libm.so", "ld-linux"];
        assert!(allowed.iter().any(|name| line.contains(name)), "{line}");
    }
    assert!(dynamic.contains("NODELETE"), "threads and thread-local destructors outlive a dlclose");
}

#[test]
fn it_opens_with_all_symbols_bound() {
    let path = std::ffi::CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: a library of this provider; the symbol is the function that libfabric calls.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!handle.is_null());
        let symbol = libc::dlsym(handle, c"fi_prov_ini".as_ptr());
        assert!(!symbol.is_null());
        let start: extern "C" fn() -> *mut pathweave_fi::abi::provider::Provider =
            std::mem::transmute(symbol);
        let provider = &*start();
        assert_eq!(std::ffi::CStr::from_ptr(provider.name), c"pathweave");
        assert_eq!(provider.fi_version, pathweave_fi::abi::version(2, 6));
        (provider.cleanup)();
        assert_eq!(libc::dlclose(handle), 0);
        // The library is never unloaded, so its code is still there.
        assert_eq!(start(), std::ptr::from_ref(provider).cast_mut());
    }
}
