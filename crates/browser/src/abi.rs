//! Functions that the module exports. They pass no pointers in: the module owns the text of a request and the answer,
//! and tells the caller where they are.

#![allow(
    unsafe_code,
    reason = "attributes that keep the names of exported functions; there is no unsafe block"
)]

use std::cell::RefCell;

use crate::session::Session;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::new(Session::new());
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes room for a request of `len` bytes. Returns the address to which the caller writes it.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_request(len: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|panic| {
        PANIC.with(|text| *text.borrow_mut() = panic.to_string());
    }));
    REQUEST.with(|request| {
        let mut request = request.borrow_mut();
        request.clear();
        request.resize(len, 0);
        request.as_mut_ptr()
    })
}

/// Answers with the schemes and the situations of the demo.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_catalogue() {
    answer(|session, _| session.catalogue());
}

/// Checks the scenario of the request.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_check() {
    answer(Session::check);
}

/// Runs the scenario of the request and keeps its film.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_run() {
    answer(Session::run);
}

/// Answers with the state of links and flows at the instant of the request, in the last run.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_instant() {
    answer(Session::instant);
}

/// Returns the address of the answer of the last call, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_answer_at() -> *const u8 {
    ANSWER.with(|answer| answer.borrow().as_ptr())
}

/// Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_answer_len() -> usize {
    ANSWER.with(|answer| answer.borrow().len())
}

/// Returns the address of a column of the last run: numbers of 64 bits, as [`crate::COLUMNS`] lists them.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_column_at(column: usize) -> *const f64 {
    SESSION.with(|session| session.borrow().column(column).as_ptr())
}

/// Returns the number of values of a column.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_column_len(column: usize) -> usize {
    SESSION.with(|session| session.borrow().column(column).len())
}

/// Makes the message of the panic that ended the last call the answer. Nothing else may be called after it.
#[unsafe(no_mangle)]
pub extern "C" fn pathweave_panicked() {
    let text = PANIC.with(|text| text.borrow().clone());
    ANSWER.with(|answer| *answer.borrow_mut() = text);
}

fn answer(call: impl FnOnce(&mut Session, &str) -> String) {
    let request = REQUEST.with(|request| String::from_utf8_lossy(&request.borrow()).into_owned());
    let text = SESSION.with(|session| call(&mut session.borrow_mut(), &request));
    ANSWER.with(|answer| *answer.borrow_mut() = text);
}
