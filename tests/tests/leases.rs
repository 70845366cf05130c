//! Leases as clients see them, on a clock that the test moves.

use std::time::Duration;

use lazuli_tests::harness::Lazuli;

#[tokio::test]
async fn a_lease_guards_its_blob_until_it_runs_out() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    blob.put("one").await.expect(201);
    let lease = blob.acquire_lease(15).await.expect(201).header("x-ms-lease-id").to_owned();
    blob.put("two").await.refused(412, "LeaseIdMissing");
    blob.put_block("AAAA", "two").await.refused(412, "LeaseIdMissing");
    blob.put("two").header("x-ms-lease-id", &lease).await.expect(201);
    // Commit times increase while the clock stands, so the lease began a little after what the clock shows.
    lazuli.clock.advance(Duration::from_secs(16));
    blob.put("three").header("x-ms-lease-id", &lease).await.refused(412, "LeaseLost");
    blob.put("three").await.expect(201);
    assert_eq!(blob.get().await.expect(200).text(), "three");
}
