//! Writes the first corpus of the fuzz targets:
//! `cargo run -p semel-wire --features samples --example corpus -- fuzz/corpus`.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use semel_types::{
    CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, ProducerStamp, Sequence, WallTime,
};
use semel_wire::{
    API_TABLE, Message, Request, Samples,
    api::{ApiVisitor, for_each_api},
    batch::{BatchBuilder, Marker, MarkerKind, NewRecord},
    frame,
};

fn main() -> io::Result<()> {
    let into = PathBuf::from(env::args().nth(1).unwrap_or("fuzz/corpus".into()));
    let mut bodies = Bodies { into: into.clone(), outcome: Ok(()) };
    for_each_api(&mut bodies);
    bodies.outcome?;
    records(&into.join("record_batch"))
}

/// Requests and responses of the lowest, the highest and the first flexible version of each API.
struct Bodies {
    into: PathBuf,
    outcome: io::Result<()>,
}

impl ApiVisitor for Bodies {
    fn visit<R: Request>(&mut self) {
        let outcome = self.write::<R>();
        self.outcome = core::mem::replace(&mut self.outcome, Ok(())).and(outcome);
    }
}

impl Bodies {
    fn write<R: Request>(&self) -> io::Result<()> {
        let spec = R::API.spec();
        let mut versions = [spec.decode_min, spec.flexible_from, spec.decode_max].to_vec();
        versions.dedup();
        for version in versions {
            let name = format!("{}-{version}", spec.name);
            let request = frame::request(&sample::<R>(version), version, 7, Some("corpus"));
            let request = request.map_err(io::Error::other)?.split_off(frame::PREFIX_BYTES);
            put(&self.into.join("request_decode"), &name, &request)?;

            let row = API_TABLE.iter().take_while(|row| row.key != R::API).count();
            let mut response = vec![row as u8, version as u8];
            let written = sample::<R::Response>(version).encode_into(version, &mut response);
            written.map_err(io::Error::other)?;
            put(&self.into.join("response_decode"), &name, &response)?;
        }
        Ok(())
    }
}

fn sample<M: Message>(version: i16) -> M {
    M::sample_body(&mut Samples::new(version as u64 + 1), version).expect("a version of the table")
}

fn records(into: &Path) -> io::Result<()> {
    let stamp = ProducerStamp { id: ProducerId::new(7), epoch: ProducerEpoch::new(1) };
    let headers = [("name", Some(b"value".as_slice())), ("null", None)];
    let record = NewRecord {
        key: Some(b"key"),
        timestamp: Some(WallTime::from_ms(1_700_000_000_000)),
        headers: &headers,
        ..NewRecord::of(b"value")
    };
    let plain = BatchBuilder::new().records([record, NewRecord::default()]).build();
    let transactional =
        BatchBuilder::new().stamped(stamp, Sequence::MAX).transactional().record(record).build();
    let marker = Marker {
        kind: MarkerKind::Commit,
        stamp,
        coordinator_epoch: CoordinatorEpoch::new(3),
        timestamp: WallTime::from_ms(1_700_000_000_000),
    };
    let marker = marker.to_batch(Offset::new(2), LeaderEpoch::new(3));
    put(into, "plain", plain.bytes())?;
    put(into, "transactional", transactional.bytes())?;
    put(into, "marker", marker.bytes())?;
    put(into, "two", &[plain.bytes().as_ref(), marker.bytes()].concat())
}

fn put(into: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(into)?;
    fs::write(into.join(name), bytes)
}
