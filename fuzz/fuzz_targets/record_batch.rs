//! Any bytes as record batches.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| semel_wire::fuzzing::records(input));
