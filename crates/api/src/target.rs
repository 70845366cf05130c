//! What a request addresses: service, account, container, blob, queue, message, table, entity.
//! <https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>

use std::net::IpAddr;

use lazuli_engine::names::{
    AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName, NameError, QueueAddress, QueueName,
    TableAddress, TableName,
};
use lazuli_engine::queue::MessageId;
use lazuli_engine::table::{EntityKey, OnEntity};
use uuid::Uuid;

use crate::code::Code;
use crate::error::Problem;
use crate::fields::{Fields, decode};
use crate::table::odata::path;

/// What is appended to the account's name to address its read-only copy.
pub(crate) const SECONDARY_SUFFIX: &str = "-secondary";
/// The container that a blob of an account's top level lies in.
const ROOT_CONTAINER: &str = "$root";
/// What follows a queue's name in the path of its messages.
const MESSAGES: &str = "messages";

/// A service of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Containers and blobs.
    Blob,
    /// Queues and messages.
    Queue,
    /// Tables and entities.
    Table,
}

impl Service {
    /// The name in endpoints and in the Server header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "Blob",
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Front {
    /// A service. Websites, which lie in the Blob service, are also served at its port, to hosts of their own.
    Service(Service),
    /// Static websites.
    Web,
}

impl Front {
    /// The name in ready lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service(service) => service.name(),
            Self::Web => "Web",
        }
    }
}

impl From<Service> for Front {
    fn from(service: Service) -> Self {
        Self::Service(service)
    }
}

/// How deep a path goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The account's service.
    Service,
    /// A container.
    Container,
    /// A blob.
    Blob,
    /// A queue.
    Queue,
    /// The messages of a queue.
    Messages,
    /// One message.
    Message,
    /// The tables of the account, to be listed or added to.
    Tables,
    /// A table as one of them.
    TableEntry,
    /// A table as the place of its entities.
    Table,
    /// An entity.
    Entity,
    /// Many entities in one request.
    Batch,
}

/// What of the account is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The account's service itself.
    Service,
    /// A container.
    Container(ContainerName),
    /// A blob.
    Blob(ContainerName, BlobName),
    /// A queue.
    Queue(QueueName),
    /// The messages of a queue.
    Messages(QueueName),
    /// One of them; none for an id that no message can have.
    Message(QueueName, Option<MessageId>),
    /// The tables.
    Tables,
    /// A table as one of them.
    TableEntry(TableName),
    /// A table as the place of its entities.
    Table(TableName),
    /// An entity.
    Entity(TableName, EntityKey),
    /// What the parts of a batch say.
    Batch,
}

/// What a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The account, without the suffix of its secondary endpoint.
    pub account: AccountName,
    /// Whether the secondary endpoint is addressed.
    pub secondary: bool,
    /// Whether the account is the first segment of the path; otherwise it is in the host's name.
    pub path_style: bool,
    /// What of the account.
    pub resource: Resource,
    /// The path as received, with its escapes: signatures cover it.
    pub raw_path: String,
}

impl Target {
    /// Reads the address. Nothing is normalised: `..` and `//` belong to names.
    ///
    /// Refuses `InvalidUri`, `InvalidResourceName`, `OutOfRangeInput`, and `ResourceNotFound` for what cannot be an
    /// account.
    pub fn parse(service: Service, host: Option<&str>, raw_path: &str, fields: &Fields) -> Result<Self, Problem> {
        let rest = raw_path.strip_prefix('/').ok_or_else(|| Problem::new(Code::InvalidUri))?;
        let by_host = host.and_then(account_label);
        let (account, rest) = match by_host {
            // Names of hosts have no case.
            Some(label) => (label.to_ascii_lowercase(), rest),
            None => {
                let (first, rest) = rest.split_once('/').unwrap_or((rest, ""));
                (decode(first)?, rest)
            }
        };
        let (name, secondary) = match account.strip_suffix(SECONDARY_SUFFIX) {
            Some(name) => (name, true),
            None => (account.as_str(), false),
        };
        if name.is_empty() {
            return Err(Problem::new(Code::InvalidUri));
        }
        let account = AccountName::parse(name).map_err(|_| Problem::new(Code::ResourceNotFound))?;
        let resource = match service {
            Service::Queue => queue_resource(rest)?,
            Service::Table => path::resource(&decode(rest)?)?,
            Service::Blob => resource(rest, fields)?,
        };
        Ok(Self { account, secondary, path_style: by_host.is_none(), resource, raw_path: raw_path.to_owned() })
    }

    /// The container, queue or table that it is in, or is itself.
    pub fn top(&self) -> Option<&str> {
        match &self.resource {
            Resource::Service | Resource::Tables | Resource::Batch => None,
            Resource::TableEntry(table) | Resource::Table(table) | Resource::Entity(table, _) => Some(table.as_str()),
            Resource::Container(container) | Resource::Blob(container, _) => Some(container.as_str()),
            Resource::Queue(queue) | Resource::Messages(queue) | Resource::Message(queue, _) => Some(queue.as_str()),
        }
    }

    /// How deep it goes.
    pub fn level(&self) -> Level {
        match self.resource {
            Resource::Service => Level::Service,
            Resource::Container(_) => Level::Container,
            Resource::Blob(..) => Level::Blob,
            Resource::Queue(_) => Level::Queue,
            Resource::Messages(_) => Level::Messages,
            Resource::Message(..) => Level::Message,
            Resource::Tables => Level::Tables,
            Resource::TableEntry(_) => Level::TableEntry,
            Resource::Table(_) => Level::Table,
            Resource::Entity(..) => Level::Entity,
            Resource::Batch => Level::Batch,
        }
    }

    /// The container, of a container or blob.
    ///
    /// Refuses `InvalidUri` for the service itself.
    pub fn container(&self) -> Result<ContainerAddress, Problem> {
        let (Resource::Container(container) | Resource::Blob(container, _)) = &self.resource else {
            return Err(Problem::new(Code::InvalidUri));
        };
        Ok(ContainerAddress { account: self.account.clone(), container: container.clone() })
    }

    /// The blob.
    ///
    /// Refuses `InvalidUri` for anything else.
    pub fn blob(&self) -> Result<BlobAddress, Problem> {
        match &self.resource {
            Resource::Blob(_, blob) => Ok(BlobAddress { container: self.container()?, blob: blob.clone() }),
            _ => Err(Problem::new(Code::InvalidUri)),
        }
    }

    /// The queue, of a queue, its messages or one of them.
    ///
    /// Refuses `InvalidUri` for anything else.
    pub fn queue(&self) -> Result<QueueAddress, Problem> {
        match &self.resource {
            Resource::Queue(queue) | Resource::Messages(queue) | Resource::Message(queue, _) => {
                Ok(QueueAddress { account: self.account.clone(), queue: queue.clone() })
            }
            _ => Err(Problem::new(Code::InvalidUri)),
        }
    }

    /// The table, of a table or one of its entities.
    ///
    /// Refuses `InvalidUri` for anything else.
    pub fn table(&self) -> Result<TableAddress, Problem> {
        match &self.resource {
            Resource::TableEntry(table) | Resource::Table(table) | Resource::Entity(table, _) => {
                Ok(TableAddress { account: self.account.clone(), table: table.clone() })
            }
            _ => Err(Problem::new(Code::InvalidUri)),
        }
    }

    /// The entity.
    ///
    /// Refuses `InvalidUri` for anything else.
    pub fn entity(&self) -> Result<OnEntity, Problem> {
        match &self.resource {
            Resource::Entity(_, key) => Ok(OnEntity { table: self.table()?, key: key.clone() }),
            _ => Err(Problem::new(Code::InvalidUri)),
        }
    }

    /// The message; none if no message can have its id.
    pub fn message(&self) -> Option<MessageId> {
        match self.resource {
            Resource::Message(_, id) => id,
            _ => None,
        }
    }
}

/// The account's label of a host such as `account.blob.localhost:10000`; none for path style: an IP address, a host
/// without a dot, or one whose second label is no service.
fn account_label(host: &str) -> Option<&str> {
    let name = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or(host) };
    if name.starts_with('[') || name.parse::<IpAddr>().is_ok() {
        return None;
    }
    let (account, rest) = name.split_once('.')?;
    let second = rest.split('.').next()?;
    let service = ["blob", "queue", "table"].iter().any(|service| second.eq_ignore_ascii_case(service));
    (service || rest.eq_ignore_ascii_case("localhost")).then_some(account)
}

fn resource(rest: &str, fields: &Fields) -> Result<Resource, Problem> {
    match resource_at(rest, fields)? {
        Resource::Blob(container, blob) if container.as_str() == ROOT_CONTAINER && blob.as_str().contains('/') => {
            Err(Problem::new(Code::InvalidResourceName).saying("The name of a blob in $root cannot contain a slash."))
        }
        resource => Ok(resource),
    }
}

fn resource_at(rest: &str, fields: &Fields) -> Result<Resource, Problem> {
    if rest.is_empty() {
        return Ok(Resource::Service);
    }
    let of_container = fields.query_opt("restype").is_some();
    match rest.split_once('/') {
        None if !of_container => Ok(Resource::Blob(container(ROOT_CONTAINER)?, blob(rest)?)),
        None => Ok(Resource::Container(container(rest)?)),
        Some((first, "")) if of_container => Ok(Resource::Container(container(first)?)),
        Some((first, name)) => Ok(Resource::Blob(container(first)?, blob(name)?)),
    }
}

fn queue_resource(rest: &str) -> Result<Resource, Problem> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let mut segments = rest.splitn(3, '/');
    let queue = match segments.next() {
        None | Some("") => return Ok(Resource::Service),
        Some(name) => QueueName::parse(&decode(name)?).map_err(name_problem)?,
    };
    match (segments.next(), segments.next()) {
        (None, _) => Ok(Resource::Queue(queue)),
        (Some(MESSAGES), None) => Ok(Resource::Messages(queue)),
        (Some(MESSAGES), Some(id)) if !id.contains('/') => {
            let id = Uuid::try_parse(&decode(id)?).ok().and_then(MessageId::from_uuid);
            Ok(Resource::Message(queue, id))
        }
        _ => Err(Problem::new(Code::InvalidUri)),
    }
}

fn container(raw: &str) -> Result<ContainerName, Problem> {
    ContainerName::parse(&decode(raw)?).map_err(name_problem)
}

fn blob(raw: &str) -> Result<BlobName, Problem> {
    BlobName::parse(&decode(raw)?).map_err(name_problem)
}

pub(crate) fn name_problem(error: NameError) -> Problem {
    match error {
        // Clients of tables tell by these words that it is a name which they were given wrong.
        NameError::Length => Problem::new(Code::OutOfRangeInput)
            .saying("The specified resource name length is not within the permissible limits."),
        NameError::Characters => Problem::new(Code::InvalidResourceName),
    }
}

#[cfg(test)]
mod tests;
