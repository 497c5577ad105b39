//! Any bytes as a response body; the first two choose API and version.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| semel_wire::fuzzing::response(input));
