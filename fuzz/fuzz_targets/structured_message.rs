//! A body that claims to be a structured message, in parts of any size: refused, or as much content as was announced.
//! The first bytes are the announced length, whether the message's is known too, and the size of the parts.
#![no_main]

use bytes::Bytes;
use lazuli_api::wire::structured::Decoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [low, high, known, part, message @ ..] = data else { return };
    let content = u64::from(u16::from_le_bytes([*low, *high]));
    let announced = (known % 2 == 0).then_some(message.len() as u64);
    let mut decoder = Decoder::new(content, announced);
    let mut decoded = 0;
    for part in message.chunks(usize::from(*part).max(1)) {
        let mut part = Bytes::copy_from_slice(part);
        loop {
            match decoder.decode(&mut part) {
                Ok(Some(bytes)) => decoded += bytes.len() as u64,
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(part.is_empty() && decoded <= content);
    }
    if decoder.finish().is_ok() {
        assert_eq!(decoded, content);
    }
});
