//! HTTP server on the loopback interface: one thread, GET and HEAD, a bounded number of connections.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wall;

use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, LOCATION,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

use super::Site;
use super::body::Content;
use super::index::Index;
use super::path::{is_of_results, resolve};
use super::remake::Remade;
use crate::interrupt::Interrupt;

/// The page, built from `web/`.
const PAGE: &str = include_str!("../../viewer/view.html");
/// Path of the index. No name of a result begins with a dot.
const INDEX: &str = "/.index.json";
/// Header with which browsers state the origin of a request; https://www.w3.org/TR/fetch-metadata/.
const FETCH_SITE: &str = "sec-fetch-site";
/// Largest number of concurrent connections. Further ones wait.
const MOST_CONNECTIONS: usize = 64;
/// Time after which a client that neither sends nor receives is disconnected.
const PATIENCE: Wall = Wall::from_secs(10);
/// Interval between checks for Ctrl-C.
const TICK: Wall = Wall::from_millis(100);
const HTML: &str = "text/html; charset=utf-8";
/// Content security policy of the page: it may connect to this server and run its own scripts.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Content security policy of pages in the served folder. They are displayed in a separate origin, because they may
/// come from others and must not read other served content.
const POLICY_OF_PAGES: &str = "sandbox allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox \
                               allow-top-navigation-by-user-activation; default-src 'none'; style-src 'unsafe-inline'; \
                               script-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; \
                               form-action 'none'; frame-ancestors 'none'";

/// State of the server.
struct ServerState {
    port: u16,
    content: Served,
}

/// Results with what is known about them.
enum Served {
    Folder { root: PathBuf, index: Mutex<Index>, remade: Remade },
    Beside(PathBuf, PathBuf),
}

/// Serves `site` until the user interrupts.
pub(super) fn serve(listener: TcpListener, site: Site, interrupt: &Interrupt) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let content = match site {
        Site::Beside(a, b) => Served::Beside(a, b),
        Site::Folder(root) => {
            Served::Folder { index: Mutex::new(Index::of(&root)), remade: Remade::default(), root }
        }
    };
    let site = Arc::new(ServerState { port, content });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(accept(listener, &site, interrupt))?;
    // Transfers of large files are aborted. No other work is pending.
    runtime.shutdown_background();
    Ok(())
}

async fn accept(listener: TcpListener, site: &Arc<ServerState>, interrupt: &Interrupt) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while !interrupt.requested() {
        let Ok(Ok(place)) = timeout(TICK, Arc::clone(&room).acquire_owned()).await else { continue };
        let stream = match timeout(TICK, listener.accept()).await {
            Ok(Ok((stream, _))) => stream,
            // No descriptor is available, or the client has gone.
            Ok(Err(_)) => {
                tokio::time::sleep(TICK).await;
                continue;
            }
            Err(_) => continue,
        };
        let site = Arc::clone(site);
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let site = Arc::clone(&site);
                async move {
                    let work = tokio::task::spawn_blocking(move || site.answer(&request));
                    Ok::<_, Infallible>(
                        work.await.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR)),
                    )
                }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(PATIENCE));
            // A client that closes the connection is not an error.
            let _ = http.serve_connection(TokioIo::new(Box::pin(stream)), answer).await;
            drop(place);
        });
    }
    Ok(())
}

type Answer = Response<Content>;

impl ServerState {
    fn answer<B>(&self, request: &Request<B>) -> Answer {
        if !self.is_for_us(request.headers().get(HOST)) {
            // The request used another site's name that resolves to this machine. A page of that site must not read
            // results.
            return plain(StatusCode::FORBIDDEN);
        }
        if *request.method() != Method::GET && *request.method() != Method::HEAD {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED);
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let ours = asked_by_our_page(request.headers().get(FETCH_SITE));
        match (&self.content, request.uri().path()) {
            (Served::Beside(a, b), "/") if ours => match pathweave_report::beside_html(a, b) {
                Ok(page) => with_type(Content::text(page), HTML),
                Err(why) => conflict(why.to_string()),
            },
            (Served::Beside(..), _) => plain(StatusCode::NOT_FOUND),
            (Served::Folder { .. }, "/") => {
                let mut answer = with_type(Content::text(PAGE), HTML);
                let policy = HeaderValue::from_static(POLICY);
                answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                answer
            }
            (Served::Folder { root, index, .. }, INDEX) => {
                let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
                with_type(Content::text(index.json(root)), "application/json")
            }
            (Served::Folder { root, remade, .. }, path) => match resolve(root, path) {
                Some(found) if found.is_dir() => opened(&found, path),
                Some(found) if is_of_results(root, &found) => file(&found),
                Some(_) => plain(StatusCode::NOT_FOUND),
                None if ours => again(root, remade, path),
                None => plain(StatusCode::NOT_FOUND),
            },
        }
    }

    fn is_for_us(&self, host: Option<&HeaderValue>) -> bool {
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let names = ["127.0.0.1", "localhost"];
        names.iter().any(|name| host == format!("{name}:{}", self.port) || (self.port == 80 && host == *name))
    }
}

/// Returns the report of a sweep's run that was not stored.
fn again(root: &Path, remade: &Remade, path: &str) -> Answer {
    let folder = path.strip_suffix("/report.html").and_then(|folder| resolve(root, folder));
    match folder.and_then(|folder| remade.report(&folder)) {
        Some(Ok(page)) => with_type(Content::text(page), HTML),
        Some(Err(why)) => conflict(why),
        None => plain(StatusCode::NOT_FOUND),
    }
}

/// Says why a page cannot be made.
fn conflict(why: String) -> Answer {
    let mut answer = with_type(Content::text(why), "text/plain; charset=utf-8");
    *answer.status_mut() = StatusCode::CONFLICT;
    answer
}

/// Returns true if the request comes from the user, from a page of this server or from a program. A page of another
/// site must not cause work on this machine.
fn asked_by_our_page(site: Option<&HeaderValue>) -> bool {
    site.is_none_or(|site| site == "same-origin" || site == "none")
}

/// Redirects from a folder to its page.
fn opened(folder: &Path, path: &str) -> Answer {
    let page =
        ["plan.html", "report.html", "index.html"].into_iter().find(|page| folder.join(page).is_file());
    let Some(page) = page else { return plain(StatusCode::NOT_FOUND) };
    let Ok(place) = HeaderValue::from_str(&format!("{}/{page}", path.trim_end_matches('/'))) else {
        return plain(StatusCode::NOT_FOUND);
    };
    let mut answer = plain(StatusCode::FOUND);
    answer.headers_mut().insert(LOCATION, place);
    answer
}

fn file(path: &Path) -> Answer {
    let open = || {
        // Opening a FIFO would block.
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Content::File(File::open(path).ok()?, found.len()))
    };
    open().map_or_else(|| plain(StatusCode::NOT_FOUND), |content| with_type(content, type_of(path)))
}

fn type_of(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => HTML,
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("toml" | "csv" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn with_type(content: Content, kind: &'static str) -> Answer {
    let mut answer = Response::new(content);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY_OF_PAGES));
    answer
}

fn plain(status: StatusCode) -> Answer {
    let mut answer = with_type(Content::text(format!("{status}\n")), "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}
