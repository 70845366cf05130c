use super::*;
use crate::clock::SystemClock;
use crate::store::embedded::{Embedded, EmbeddedOptions};
use crate::store::kv::memory::MemoryKv;

fn segments() -> (Segments, mpsc::Receiver<GivenUp>) {
    let options = EmbeddedOptions {
        clock: Arc::new(SystemClock),
        overlay_bytes_max: 1024 * 1024,
        reserve_bytes: 0,
        group_jobs_max: 1,
        on_poison: Arc::new(|_| {}),
        sync_probe: None,
    };
    let store = Arc::new(Embedded::open(MemoryKv::default(), options).unwrap());
    let (returns, returned) = mpsc::channel();
    (Segments::new(Place::Memory, store, 8192, 1, 0, returns), returned)
}

#[tokio::test]
async fn a_range_that_cannot_be_punched_is_tried_again_and_the_others_are_punched() {
    let (segments, returned) = segments();
    let file = tempfile::NamedTempFile::new().unwrap();
    let unwritable = Arc::new(Segment {
        id: 7,
        file: File::open(file.path()).unwrap(),
        end: AtomicU64::new(8192),
        limit: 8192,
        pending: AtomicUsize::new(1),
    });
    let reservation = segments.reserve(4096).await.unwrap();
    let good = Arc::clone(&reservation.segment);
    let bad = GivenUp { segment: Arc::clone(&unwritable), offset: 0, length: 4096 };
    segments.returns.send(bad).unwrap();
    drop(reservation);
    assert!(segments.give_back(returned.try_iter().collect()), "one was punched");
    assert_eq!((good.pending.load(Ordering::SeqCst), unwritable.pending.load(Ordering::SeqCst)), (0, 1));
    let again: Vec<_> = returned.try_iter().collect();
    assert_eq!(again.len(), 1);
    assert!(!segments.give_back(again), "nothing was punched: a caller that loops comes to an end");
    assert_eq!(returned.try_iter().count(), 1);
}

#[tokio::test]
async fn a_segment_is_not_quiet_before_what_was_given_up_is_punched() {
    let (segments, returned) = segments();
    let first = segments.reserve(8192).await.unwrap();
    let id = first.segment.id;
    let also = Arc::clone(&first);
    segments.reserve(8192).await.unwrap().keep();
    drop(first);
    assert_eq!(returned.try_iter().count(), 0, "somebody still writes");
    drop(also);
    assert!(segments.quiet().is_empty() && segments.takes_writes(id).await);
    assert!(segments.give_back(returned.try_iter().collect()));
    assert_eq!(segments.quiet(), [id]);
    segments.sealed(id);
    assert!(!segments.takes_writes(id).await);
}

#[tokio::test]
async fn uploads_that_go_on_at_the_same_time_cannot_use_up_the_reserve_together() {
    let (segments, _returned) = segments();
    let segments = Segments { reserve_bytes: 100_000, ..segments };
    let free = 100_000 + 2 * 8192;
    let [one, other] = [0; 2].map(|_| segments.promise(free, 8192).unwrap());
    assert!(matches!(segments.promise(free, 1), Err(StoreError::Full)));
    // What is written is not free any more.
    one.keep(8000);
    assert!(segments.promise(free - 8000, 1).is_err());
    drop(one);
    assert!(segments.promise(free - 8000, 193).is_err());
    drop(segments.promise(free - 8000, 192).unwrap());
    drop(other);
    let promised = || segments.promised.load(Ordering::SeqCst);
    assert_eq!(promised(), 0);
    let reservation = segments.reserve(5000).await.unwrap();
    assert_eq!(promised(), 5000);
    reservation.written(4096);
    assert_eq!(promised(), 904);
    drop(reservation);
    assert_eq!(promised(), 0, "an upload that was given up writes no more");
}
