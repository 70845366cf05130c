use super::*;
use crate::blob::blocks::{COMMITTED_BLOCKS_MAX, put_block};
use crate::blob::{container, object};
use crate::clock::HeldClock;
use crate::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};

fn on() -> OnBlob {
    let container = ContainerAddress {
        account: AccountName::parse("dev").unwrap(),
        container: ContainerName::parse("photos").unwrap(),
    };
    let address = BlobAddress { container, blob: BlobName::parse("x").unwrap() };
    OnBlob::at(address)
}

fn blob() -> Blob {
    Blob { on: Arc::new(on()), stored: Stored::default() }
}

#[tokio::test]
async fn a_list_that_was_let_go_while_it_was_being_built_never_becomes_a_content() {
    let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
    let engine = Engine::memory(clock.clone()).await.unwrap();
    container::create(&engine, on().address.container, container::NewContainer::default()).await.unwrap();
    let mut stage = engine.payloads().stage(false, None);
    stage.write("1".into()).await.unwrap();
    let id = BlockId(b"a".to_vec());
    put_block(&engine, on(), id.clone(), stage.finish().await.unwrap()).await.unwrap();
    let blocks = vec![(BlockSource::Latest, id); COMMITTED_BLOCKS_MAX / 10];
    let plan = Arc::new(engine.read(|view| look_up(view, &on(), &blocks)).unwrap());
    let Ok(Step::Done((building, done))) = build(&engine, &Arc::new(on()), &plan).await else { panic!("not built") };
    assert!(building.is_some() && done > 0);
    clock.advance(ABANDONED_AFTER * 2);
    engine.settle().await.unwrap();
    assert!(matches!(finish(&engine, blob(), plan, building, done).await, Ok(Step::Moved)));
    let written = commit(&engine, on(), blocks, Stored::default()).await.unwrap();
    let mut download = object::download(&engine, on(), None).await.unwrap();
    assert_eq!((download.blob.etag, download.blob.length), (written.etag, 5000));
    while download.reader.next().await.unwrap().is_some() {}
}
