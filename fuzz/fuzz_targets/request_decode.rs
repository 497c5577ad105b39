//! Any bytes as a request frame: header, then the body it announces.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| semel_wire::fuzzing::request(input));
