//! The admin endpoint itself: whom it answers, and where it listens.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use semel_certify::{Client, Server};

use crate::rig::{PATIENCE, Rig, program, run, said};

/// Sends a request as it is; the whole response.
fn ask(admin: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(admin).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

fn get(admin: &str, path: &str, host: &str) -> String {
    ask(admin, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn it_answers_what_names_this_machine_and_changes_nothing() {
    let rig = Rig::start();
    let admin = rig.server.admin();
    let health = get(admin, "/v1/health", admin);
    assert!(health.starts_with("HTTP/1.1 200 ") && health.contains("\"status\":\"ok\""), "{health}");
    assert!(get(admin, "/v1/ready", "localhost").contains("\"status\":\"ready\""));
    let foreign = get(admin, "/v1/health", "evil.example:9192");
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    assert!(get(admin, "/v1/nothing", admin).starts_with("HTTP/1.1 404 "));
    assert!(get(admin, "/v1/fences?ids=a", admin).starts_with("HTTP/1.1 400 "));
    let posted = ask(
        admin,
        "POST /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
}

#[test]
fn an_open_admin_connection_does_not_keep_the_server_from_stopping() {
    let mut rig = Rig::start();
    let admin = rig.server.admin().to_owned();
    let mut waiting = TcpStream::connect(&admin).expect("it listens");
    let request = "GET /v1/fences?wait_ms=60000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    waiting.write_all(request.as_bytes()).expect("it reads");
    let (status, took) = rig.server.terminate().expect("it stops");
    assert!(status.success() && took < Duration::from_secs(10), "{status} after {took:?}");
}

#[test]
fn a_taken_default_port_is_said_and_the_broker_serves_all_the_same() {
    // Whoever has it, this test or another program: it is taken.
    let _taken = TcpListener::bind("127.0.0.1:9192");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let arguments = ["--durability", "memory", "--admin", "127.0.0.1:9192"];
    let mut server = Server::start(program(), directory.path(), &arguments).expect("the server starts");
    assert_eq!(server.admin(), "none");
    server.wait_line("no admin endpoint: 127.0.0.1:9192: ", PATIENCE).expect("it says so");
    Client::connect(server.address()).expect("it serves");
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("a path");
    let serve = ["serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    let output = run(&serve, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("can be reached from other machines"), "{}", said(&output));
}
