//! Asks the admin endpoint: one GET, one JSON answer.

use std::{fmt::Display, io};

use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, runtime::Builder};

use super::AskError;

/// Gives what the endpoint answers to a path.
///
/// # Errors
/// Nobody answers, there is no such thing, or it was refused.
pub fn get(address: &str, path: &str) -> Result<Value, AskError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unreachable(address, &error))?;
    let (status, body) =
        runtime.block_on(fetch(address, path)).map_err(|error| unreachable(address, &error))?;
    let value: Value = serde_json::from_slice(&body).map_err(|_| {
        AskError::Refused(format!("{address} is no admin endpoint of Semel: it answers {status}"))
    })?;
    let message = value["error"]["message"].as_str().unwrap_or("no reason given").to_owned();
    match status {
        StatusCode::OK => Ok(value),
        StatusCode::NOT_FOUND => Err(AskError::NotFound(message)),
        _ => Err(AskError::Refused(message)),
    }
}

fn unreachable(address: &str, reason: &dyn Display) -> AskError {
    let (what, address) = ("the broker's admin endpoint", address.to_owned());
    AskError::Unreachable { what, address, reason: reason.to_string(), flag: "--admin" }
}

async fn fetch(address: &str, path: &str) -> io::Result<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    // Whatever name the address has here, the endpoint knows itself by this one.
    let request = Request::get(path).header(header::HOST, "localhost").body(Empty::<Bytes>::new());
    let response = sender.send_request(request.map_err(io::Error::other)?).await.map_err(io::Error::other)?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(io::Error::other)?;
    Ok((status, body.to_bytes()))
}

/// A segment of a path, or a value of a query, percent-encoded.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_so_that_they_stay_one_segment() {
        assert_eq!(encode("a/b c?é"), "a%2Fb%20c%3F%C3%A9");
        assert_eq!(encode("orders-1_x.y~z"), "orders-1_x.y~z");
    }
}
