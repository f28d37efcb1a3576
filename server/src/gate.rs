//! Conditions of every request before anything is done for it: a host that is this service, a body that it can read.
//!
//! A page of a foreign site can make its own name lead to this machine, and a browser then takes the service for a part
//! of that site. The name it sends gives it away: only loopback names, addresses that the service listens on and names
//! of `--host` are answered.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::peers::{Access, Peer};
use crate::service::Service;

/// Paths that are answered also where all connections are busy.
const ALWAYS: [&str; 3] = ["/health", "/ready", "/metrics"];

/// Lets a request pass that this service can answer.
pub(crate) async fn check(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let checked = check_host(&service, request.headers(), request.uri())
        .and_then(|()| check_coding(request.headers()))
        .and_then(|()| check_access(&request));
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check_host(service: &Service, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        let problem = "expected one header Host";
        return Err(ApiError::BadHost(problem));
    };
    let host = host.to_str().ok().and_then(|host| host.parse().ok());
    let host: Authority = host.ok_or(ApiError::BadHost("the header Host names no host"))?;
    let is_ours = |host: &Authority| is_ours(service, host);
    if is_ours(&host) && uri.authority().is_none_or(is_ours) {
        return Ok(());
    }
    Err(ApiError::ForeignHost)
}

/// Whether a host is this service, whatever its port: a proxy may have another.
fn is_ours(service: &Service, authority: &Authority) -> bool {
    let name = plain(authority.host());
    if authority.as_str().contains('@') {
        return false;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        // A page that leads its name here has a name, not an address.
        let address = address.to_canonical();
        return address.is_loopback()
            || service
                .bound()
                .is_some_and(|bound| bound.is_unspecified() || bound == address);
    }
    let lower = name.to_ascii_lowercase();
    let is_loopback = lower == "localhost" || lower.ends_with(".localhost");
    let options = service.options();
    let bound_name = options.bind.rsplit_once(':').map(|(name, _)| name);
    let mut names = options.hosts.iter().map(String::as_str).chain(bound_name);
    is_loopback || names.any(|known| known == "*" || plain(known).eq_ignore_ascii_case(name))
}

/// A name without the dot of a fully qualified one, an address without its brackets.
fn plain(name: &str) -> &str {
    let name = name.strip_suffix('.').unwrap_or(name);
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    inner.unwrap_or(name)
}

/// Nothing but chunks is taken off a body.
fn check_coding(headers: &HeaderMap) -> Result<(), ApiError> {
    let is = |name: header::HeaderName, known: &str| {
        let mut values = headers.get_all(name).iter();
        values.all(|value| {
            value
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(known.as_bytes())
        })
    };
    if !is(header::TRANSFER_ENCODING, "chunked") {
        return Err(ApiError::UnknownCoding);
    }
    if !is(header::CONTENT_ENCODING, "identity") {
        return Err(ApiError::UnsupportedMediaType("without a Content-Encoding"));
    }
    Ok(())
}

fn check_access(request: &Request) -> Result<(), ApiError> {
    let peer = request.extensions().get::<Peer>();
    let is_reserve = peer.is_some_and(|peer| peer.access() == Access::HealthOnly);
    if is_reserve && !ALWAYS.contains(&request.uri().path()) {
        return Err(ApiError::Busy);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_compared_without_dot_and_brackets() {
        assert_eq!(plain("localhost."), "localhost");
        assert_eq!(plain("[::1]"), "::1");
        assert_eq!(plain("a.b"), "a.b");
    }
}
