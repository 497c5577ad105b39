//! A bounded run of the fuzz targets: their corpus, and deterministic mutations of it.

use std::{fs, path::Path};

use semel_wire::{Samples, fuzzing};

/// Mutations of each target.
const MUTATIONS: usize = 70_000;

/// Longest input that mutations grow to, in bytes.
const LONGEST: usize = 4096;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).expect("the corpus is committed");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn run(target: &str, call: fn(&[u8])) {
    let corpus = corpus(target);
    assert!(corpus.len() >= 4, "{target} has a corpus");
    corpus.iter().for_each(|input| call(input));
    let mut samples = Samples::new(target.len() as u64);
    for _ in 0..MUTATIONS {
        let mut input = corpus[samples.below(corpus.len())].clone();
        for _ in 0..=samples.below(6) {
            mutate(&mut input, &corpus, &mut samples);
        }
        call(&input);
    }
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], samples: &mut Samples) {
    let at = samples.below(input.len() + 1);
    match samples.below(7) {
        0 => input.insert(at, samples.next() as u8),
        1 => input.truncate(at),
        2 => {
            // The tail of another input.
            let other = &corpus[samples.below(corpus.len())];
            input.truncate(at);
            input.extend_from_slice(&other[samples.below(other.len())..]);
            input.truncate(LONGEST);
        }
        3 => overwrite(input, at, &(samples.number() as i32).to_be_bytes()),
        4 => overwrite(input, at, &(samples.number() as i16).to_be_bytes()),
        5 => overwrite(input, at, &[samples.next() as u8]),
        _ => overwrite(input, at, &[[0, 1, 2, 0x7f, 0x80, 0xff][samples.below(6)]]),
    }
}

fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    let end = (at + bytes.len()).min(input.len());
    input[at..end].copy_from_slice(&bytes[..end - at]);
}

#[test]
fn requests() {
    run("request_decode", fuzzing::request);
}

#[test]
fn responses() {
    run("response_decode", fuzzing::response);
}

#[test]
fn record_batches() {
    run("record_batch", fuzzing::records);
}
