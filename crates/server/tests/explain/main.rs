//! What a broker tells people: stories of transactional ids, fences as they happen, what holds the last stable offset,
//! and the commands that show it, over a real server process.

mod commands;
mod endpoint;
mod fences;
mod groups;
mod rig;
mod stories;
