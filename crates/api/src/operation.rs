//! All that the way of a request must know about an operation, in one constant beside its handler.

use futures_util::future::BoxFuture;

use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::version::Version;

/// An operation of the protocol.
#[derive(Debug)]
pub struct Operation {
    /// Its `operationId` in the service's description.
    pub name: &'static str,
    /// What its caller must be allowed.
    pub needs: Permission,
    /// What its request's body is.
    pub body: Body,
    /// Carries it out.
    pub run: fn(Call) -> BoxFuture<'static, Result<Answer, Problem>>,
}

/// What a caller must be allowed. The account's key allows everything; which letters of a shared access signature and
/// which roles do, [`crate::auth`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Nothing: the request carries no credentials.
    Nothing,
    /// To come at all: what the request does is judged piece by piece, such as the parts of a batch.
    Any,
    /// To learn what kind of account it is.
    Account,
    /// To read. Of a blob: also for anonymous clients where the container is public; of a container: where its listing
    /// is.
    Read,
    /// To list: also for anonymous clients where the container's listing is public.
    List,
    /// To create. Who may write may also replace what exists; who may only create may not, see
    /// [`crate::auth::Grant::creates_only`].
    Create,
    /// To append to a blob, to put a message, to insert an entity.
    Add,
    /// To write or replace.
    Write,
    /// To change a message or an entity.
    Update,
    /// To insert an entity or change the one that is there.
    Upsert,
    /// To take messages and delete them.
    Process,
    /// To delete.
    Delete,
    /// To delete a version of a blob.
    DeleteVersion,
    /// To delete a snapshot or version so that no retention brings it back.
    DeleteForGood,
    /// To break a lease.
    BreakLease,
    /// To read and write tags.
    Tag,
    /// To find by tags.
    Filter,
    /// To protect from deletion.
    Protect,
    /// To get a key with which to sign for others: for identities with a token alone.
    Delegate,
    /// Everything: only the account's owner, with its key, or an identity that owns it.
    Own,
}

/// What the body of a request is.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// None; what is sent is not read.
    None,
    /// A document of at most so many bytes, read whole.
    Document {
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// Bytes to store, read piece by piece.
    Stream {
        /// The limit in bytes, by the version of the request.
        bytes_max: fn(Version) -> u64,
    },
}
