//! Values: whatever the bytes, decoding refuses them as corrupt or answers a row that encodes and decodes to itself.
#![no_main]

use lazuli_engine::rows::codec::{Row, decode, encode};
use lazuli_engine::rows::{
    blob, container, copy, due, layer, list, message, page, payload, place, queue, refs, segment, service, span, staging,
    tally,
};
use lazuli_engine::store::{Space, StoreError, VALUE_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Every row of the store; a new one is a line here.
    check::<blob::BlobRow>(Space::Blobs, data);
    check::<container::ContainerRow>(Space::Containers, data);
    check::<due::DueRow>(Space::Due, data);
    check::<copy::CopyRow>(Space::Copies, data);
    check::<container::DeletedContainerRow>(Space::DeletedContainers, data);
    check::<layer::DeletedRow>(Space::Deleted, data);
    check::<layer::SweepRow>(Space::Sweeps, data);
    check::<list::ListChunk>(Space::Lists, data);
    check::<page::CellRow>(Space::Pages, data);
    check::<page::EpochRow>(Space::Epochs, data);
    check::<payload::PieceChunk>(Space::Payloads, data);
    check::<payload::ExtentRow>(Space::Extents, data);
    check::<refs::RefsRow>(Space::Refs, data);
    check::<segment::SegmentRow>(Space::Segments, data);
    check::<service::ServiceRow>(Space::Services, data);
    check::<staging::StagingRow>(Space::Stagings, data);
    check::<staging::BlockRow>(Space::Blocks, data);
    check::<queue::QueueRow>(Space::Queues, data);
    check::<message::MessageRow>(Space::Messages, data);
    check::<place::PlaceRow>(Space::Places, data);
    check::<span::SpanRow>(Space::Spans, data);
    check::<tally::TallyRow>(Space::Tallies, data);
});

fn check<R: Row>(space: Space, data: &[u8]) {
    match decode::<R>(space, b"key", data) {
        Ok(row) => {
            assert!(data.len() <= VALUE_BYTES_MAX);
            // Integers have longer forms than the writer's, so the bytes may differ once, but not again.
            let bytes = encode(&row).expect("a row that was read can be written");
            assert!(bytes.len() <= data.len());
            let row: R = decode(space, b"key", &bytes).expect("what was written can be read");
            assert_eq!(encode(&row).expect("written before"), bytes);
        }
        Err(error) => {
            let known = matches!(&error, StoreError::Corrupt { space: at, key, .. } if *at == space && key == "6b6579");
            assert!(known, "{error:?}");
        }
    }
}
