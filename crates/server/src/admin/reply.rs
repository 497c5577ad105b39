//! Answers as JSON, failures included.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode, header};
use serde_json::{Value, json};

/// Why there is no answer.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// Nothing is known of what was asked for.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// A value of the request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    /// Only GET is answered.
    pub fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "only GET is answered: this endpoint changes nothing",
        )
    }

    /// The request names another host.
    pub fn foreign_host() -> Self {
        let message = "the Host header must name the loopback interface";
        Self::new(StatusCode::FORBIDDEN, "foreign_host", message)
    }

    /// The server stops.
    pub fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the broker is stopping")
    }
}

/// The response.
pub fn response(answered: Result<Value, Failure>) -> Response<Full<Bytes>> {
    let (status, body) = match answered {
        Ok(value) => (StatusCode::OK, value),
        Err(Failure { status, code, message }) => {
            (status, json!({ "error": { "code": code, "message": message } }))
        }
    };
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    let response = response.header(header::CACHE_CONTROL, "no-store").body(Full::from(body.to_string()));
    response.expect("status and headers are ours and valid")
}
