//! What the object_store crate asks of every store, through its Azure client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::pin::Pin;

use http_body_util::BodyExt as _;
use hyper_util::client::legacy::{self, connect};
use hyper_util::rt::TokioExecutor;
use lazuli_tests::client::{ACCOUNT, KEY};
use lazuli_tests::harness::Lazuli;
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientOptions, integration};

/// Plain HTTP: the crate's own client would bring TLS along.
#[derive(Debug)]
struct Http(legacy::Client<connect::HttpConnector, HttpRequestBody>);

impl HttpService for Http {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let broken = |error| HttpError::new(HttpErrorKind::Request, error);
            let (head, body) = self.0.request(request).await.map_err(broken)?.into_parts();
            let body = HttpResponseBody::new(body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error)));
            Ok(HttpResponse::from_parts(head, body))
        })
    }
}

#[derive(Debug)]
struct Plain;

impl HttpConnector for Plain {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Http(legacy::Client::builder(TokioExecutor::new()).build_http())))
    }
}

/// A store over a new container.
async fn store(lazuli: &Lazuli) -> MicrosoftAzure {
    lazuli.container("objects").await;
    let builder = MicrosoftAzureBuilder::new()
        .with_account(ACCOUNT)
        .with_access_key(KEY)
        .with_endpoint(format!("http://{}/{ACCOUNT}", lazuli.client().address()))
        .with_container_name("objects")
        .with_allow_http(true)
        .with_http_connector(Plain);
    builder.build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_put_and_got_on_conditions_and_in_pieces() {
    let lazuli = Lazuli::start().await;
    let store = store(&lazuli).await;
    integration::stream_get(&store).await;
    integration::get_opts(&store).await;
    integration::put_opts(&store, true).await;
    integration::put_get_attributes(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_in_folders_and_pages() {
    let lazuli = Lazuli::start().await;
    let store = store(&lazuli).await;
    integration::list_uses_directories_correctly(&store).await;
    integration::list_with_delimiter(&store).await;
    integration::list_with_offset_exclusivity(&store).await;
    integration::list_paginated(&store, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_come_in_parts() {
    let lazuli = Lazuli::start().await;
    let store = store(&lazuli).await;
    integration::multipart(&store, &store).await;
    integration::multipart_put_part_out_of_order(&store, &store).await;
    integration::multipart_race_condition(&store, false).await;
    integration::multipart_out_of_order(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_put_got_listed_and_deleted() {
    let lazuli = Lazuli::start().await;
    integration::put_get_delete_list(&store(&lazuli).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_copied_and_renamed() {
    let lazuli = Lazuli::start().await;
    let store = store(&lazuli).await;
    integration::rename_and_copy(&store).await;
    integration::copy_if_not_exists(&store).await;
    integration::copy_rename_nonexistent_object(&store).await;
}
