//! What the tests over real sockets and processes and the benchmark share.

pub mod bench;
pub mod books;
pub mod client;
pub mod disk;
pub mod elsewhere;
pub mod harness;
pub mod ledger;
pub mod process;
pub mod queues;
pub mod random;
pub mod sas;
pub mod signed;
pub mod structured;
pub mod tables;
pub mod tls;
pub mod token;
pub mod witness;
