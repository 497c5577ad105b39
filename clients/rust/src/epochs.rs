//! Spends the epochs of a transactional id, as tens of thousands of restarts of its producer would in years.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use crate::broker::bootstrap;

/// The last epoch that a producer gets.
pub const LAST: i32 = 32_766;

const IN_FLIGHT: i32 = 90;
const CONCURRENT_TRANSACTIONS: u16 = 51;

/// Initialises the id, many requests in flight, until its epoch is at least this; gives the producer id.
pub fn raise(id: &str, epoch: i32) -> i64 {
    let mut out = TcpStream::connect(bootstrap()).expect("connect");
    let mut answers = BufReader::new(out.try_clone().expect("a second handle"));
    let frame = request(id);
    let (mut producer, mut reached) = (-1, -1);
    while reached < epoch || producer < 0 {
        let count = IN_FLIGHT.min((epoch - reached).max(1));
        out.write_all(&frame.repeat(count as usize)).expect("write");
        for _ in 0..count {
            // Length, correlation id, throttle time, code, producer id, epoch.
            let mut answer = [0; 24];
            answers.read_exact(&mut answer).expect("read");
            match u16::from_be_bytes([answer[12], answer[13]]) {
                0 => {
                    producer = i64::from_be_bytes(answer[14..22].try_into().expect("eight bytes"));
                    reached = i32::from(u16::from_be_bytes([answer[22], answer[23]]));
                }
                CONCURRENT_TRANSACTIONS => {}
                code => panic!("InitProducerId: error {code}"),
            }
        }
    }
    producer
}

/// InitProducerId version 1, which has no pair and no tagged fields.
fn request(id: &str) -> Vec<u8> {
    // Key, version, correlation id, no client id.
    let mut body = vec![0, 22, 0, 1, 0, 0, 0, 0, 0xff, 0xff];
    body.extend((id.len() as u16).to_be_bytes());
    body.extend(id.bytes());
    body.extend(60_000_u32.to_be_bytes());
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}
