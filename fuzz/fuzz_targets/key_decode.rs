//! Keys: whatever the bytes, a reader refuses them or answers what a writer turns into the same bytes again.
#![no_main]

use lazuli_engine::rows::codec::{KeyReader, KeyWriter};
use lazuli_engine::rows::{blob, container, due, list, page, payload, place, queue, refs, segment, span, staging};
use lazuli_engine::store::{Space, StoreError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&shape, key)) = data.split_first() else { return };
    match again(shape, key) {
        Ok(written) => assert_eq!(written, key, "shape {shape:#010b}"),
        Err(error) => assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}"),
    }
    if let Ok(name) = blob::name(Space::Blobs, key) {
        let incarnation = KeyReader::new(Space::Blobs, key).u64().expect("read before");
        assert_eq!(blob::key(incarnation, &name), key);
    }
    if let Ok((at, kind, id)) = due::parse(key) {
        assert_eq!(due::key(at, kind, id), key);
    }
    if let Ok((seq, target)) = refs::parse_dead(key) {
        assert_eq!(refs::dead_key(seq, target), key);
    }
    if let Ok(id) = segment::id(key) {
        assert_eq!(segment::key(id), key);
    }
    if let Ok((cell, epoch)) = page::parse(key) {
        let map = KeyReader::new(Space::Pages, key).u64().expect("read before");
        assert_eq!(page::key(map, cell, epoch), key);
    }
    if let Ok(place) = place::Place::parse(key) {
        assert_eq!(place.key(), key);
    }
    if let Ok(span) = span::Span::parse(key) {
        assert_eq!(span.key(), key);
    }
    // These answer the last part of the key only: that they do not panic is what is tested.
    let _ = (container::name(key), queue::name(key), staging::block_id(key), list::first_byte(key));
    let _ = (payload::first_byte(key), payload::extent_offset(key));
});

/// Reads four fields of the kinds that `shape` says, two bits each, and writes them.
fn again(shape: u8, key: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut reader = KeyReader::new(Space::Blobs, key);
    let mut writer = KeyWriter::new();
    for kind in [shape & 3, shape >> 2 & 3, shape >> 4 & 3, shape >> 6] {
        writer = match kind {
            0 => writer.bytes(&reader.bytes()?),
            1 => writer.text(&reader.text()?),
            2 => writer.u64(reader.u64()?),
            _ => writer.u8(reader.u8()?),
        };
    }
    reader.end()?;
    Ok(writer.finish())
}
