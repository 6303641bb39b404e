//! Encryption with the cluster's key, and a peer that has another key.
#![allow(unsafe_code, reason = "sets variables")]

mod client;

use std::os::unix::fs::PermissionsExt;

use client::*;

/// Body of the other process of a test.
#[test]
#[ignore = "started by other tests of this file"]
fn a_process_that_receives() {
    receive_for_ever();
}

/// Makes a key file that only its owner can read.
fn key_file(name: &str, digit: char) -> String {
    let path = std::env::temp_dir().join(format!("pathweave-{name}-{}", std::process::id()));
    let key: String = (0..64).map(|at| if at % 3 == 0 { digit } else { 'b' }).collect();
    std::fs::write(&path, key).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn a_wrong_key_is_refused_and_the_right_one_works() {
    let (ours, theirs) = (key_file("ours", '1'), key_file("theirs", '2'));
    // SAFETY: this program runs one test, and has no other thread yet.
    unsafe {
        std::env::set_var("PATHWEAVE_PROTECTION", "encrypt");
        std::env::set_var("PATHWEAVE_KEY_FILE", &ours);
        std::env::set_var("PATHWEAVE_PEER_TIMEOUT", "5");
    }
    let (mut child, name) = other_process(&[("PATHWEAVE_KEY_FILE", &theirs)]);
    let pair = Pair::new();
    let to_stranger = pair.near.insert(&name);
    pair.near.tsend(to_stranger, 1, b"hello", 1);
    let error = pair.near.failed();
    assert!([FI_ECONNREFUSED, FI_ETIMEDOUT].contains(&error.err), "{}", error.err);
    let (sent, mut into) = (pattern(200_000, 1), vec![0; 200_000]);
    pair.far.trecv(pair.to_near, 1, 0, slot(&mut into), 2);
    pair.near.tsend(pair.to_far, 1, &sent, 3);
    assert_eq!((pair.near.done().op_context as usize, pair.far.done().op_context as usize), (3, 2));
    assert!(into == sent);
    child.kill().unwrap();
    child.wait().unwrap();
    for path in [ours, theirs] {
        std::fs::remove_file(path).unwrap();
    }
}
