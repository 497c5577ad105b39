//! A TCP relay that does exact harm: swallow the n-th answer of an API, hold a request, send it twice, cut.
//!
//! No rule rests on time: a rule says which frame, a held request waits until it is released.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use semel_wire::{ApiKey, frame::PREFIX_BYTES};

/// What happens to one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The request reaches the broker, its answer is dropped, and the client's connection is cut.
    SwallowAnswer,
    /// The request reaches the broker, its answer is dropped, and the connection stays.
    DropAnswer,
    /// The request waits in the relay until [`Relay::release`].
    HoldRequest,
    /// The request reaches the broker, its answer waits in the relay until [`Relay::release`].
    HoldAnswer,
    /// The request is sent to the broker twice; both answers go to the client.
    DuplicateRequest,
    /// The request is dropped and the client's connection is cut.
    CutBefore,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    api: ApiKey,
    nth: u32,
    action: Action,
}

#[derive(Default)]
struct Script {
    rules: Vec<Rule>,
    seen: HashMap<i16, u32>,
    held: u32,
    released: u32,
    fired: u32,
}

#[derive(Default)]
struct Shared {
    script: Mutex<Script>,
    changed: Condvar,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request and says what happens to it.
    fn action(&self, api_key: i16) -> Option<Action> {
        let mut script = self.script();
        let count = script.seen.entry(api_key).or_default();
        *count += 1;
        let nth = *count;
        let due = script.rules.iter().position(|rule| rule.api.get() == api_key && rule.nth == nth)?;
        let action = script.rules.remove(due).action;
        script.fired += 1;
        if matches!(action, Action::HoldRequest) {
            script.held += 1;
        }
        self.changed.notify_all();
        Some(action)
    }

    /// Holds an answer that has come until it is released.
    fn hold(&self) {
        self.script().held += 1;
        self.changed.notify_all();
        self.wait_until(|script| script.released == script.held);
    }

    fn wait_until(&self, due: impl Fn(&Script) -> bool) {
        let script = self.script();
        drop(self.changed.wait_while(script, |script| !due(script)).unwrap_or_else(PoisonError::into_inner));
    }
}

/// A running relay; it ends with the process.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Relay {
    /// Listens on a free port of the loopback interface and relays to `target`.
    ///
    /// # Errors
    /// The system's error if there is no port.
    pub fn start(target: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (target, ours) = (target.to_owned(), Arc::clone(&shared));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A broker that is down looks to the client as it would without a relay: closed.
                let _ = relay(client, &target, &ours);
            }
        });
        Ok(Self { address, shared })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The `nth` request of an API from now on, counted from 1 over all connections, meets an action, once.
    pub fn on(&self, api: ApiKey, nth: u32, action: Action) {
        let mut script = self.shared.script();
        let nth = script.seen.get(&api.get()).copied().unwrap_or_default() + nth;
        script.rules.push(Rule { api, nth, action });
    }

    /// Waits until a request or an answer is held.
    pub fn wait_held(&self) {
        self.shared.wait_until(|script| script.held > script.released);
    }

    /// Waits until every rule has met its frame.
    pub fn wait_fired(&self) {
        self.shared.wait_until(|script| script.rules.is_empty());
    }

    /// Rules that have met their frame.
    #[must_use]
    pub fn fired(&self) -> u32 {
        self.shared.script().fired
    }

    /// Lets everything that is held go on.
    pub fn release(&self) {
        let mut script = self.shared.script();
        script.released = script.held;
        self.shared.changed.notify_all();
    }
}

/// Correlation ids whose answers meet an action, of one connection.
type Marked = Arc<Mutex<Vec<(i32, Action)>>>;

fn relay(client: TcpStream, target: &str, shared: &Arc<Shared>) -> io::Result<()> {
    let broker = TcpStream::connect(target)?;
    broker.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let marked = Marked::default();
    let requests =
        Direction { from: client.try_clone()?, to: broker.try_clone()?, marked: Arc::clone(&marked) };
    let answers = Direction { from: broker, to: client, marked };
    let (shared, ours) = (Arc::clone(shared), Arc::clone(shared));
    thread::spawn(move || requests.run(|direction, frame| direction.request(&shared, frame)));
    thread::spawn(move || answers.run(|direction, frame| direction.answer(&ours, frame)));
    Ok(())
}

/// One direction of one connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    marked: Marked,
}

impl Direction {
    /// Passes frames on until either side closes; then both are closed, as a broker would see it.
    fn run(mut self, mut pass: impl FnMut(&mut Self, &[u8]) -> io::Result<()>) {
        while let Ok(frame) = read_frame(&mut self.from) {
            if pass(&mut self, &frame).is_err() {
                break;
            }
        }
        let _ = self.from.shutdown(Shutdown::Both);
        let _ = self.to.shutdown(Shutdown::Both);
    }

    fn request(&mut self, shared: &Shared, frame: &[u8]) -> io::Result<()> {
        let Some((api_key, correlation)) = head(frame) else { return self.to.write_all(frame) };
        match shared.action(api_key) {
            None => {}
            Some(action @ (Action::SwallowAnswer | Action::DropAnswer | Action::HoldAnswer)) => {
                self.marked.lock().unwrap_or_else(PoisonError::into_inner).push((correlation, action));
            }
            Some(Action::HoldRequest) => shared.wait_until(|script| script.released == script.held),
            Some(Action::DuplicateRequest) => self.to.write_all(frame)?,
            Some(Action::CutBefore) => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        self.to.write_all(frame)
    }

    fn answer(&mut self, shared: &Shared, frame: &[u8]) -> io::Result<()> {
        match self.action_on(frame) {
            Some(Action::SwallowAnswer) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Action::DropAnswer) => return Ok(()),
            Some(Action::HoldAnswer) => shared.hold(),
            None | Some(Action::HoldRequest | Action::DuplicateRequest | Action::CutBefore) => {}
        }
        self.to.write_all(frame)
    }

    /// What this answer meets, once.
    fn action_on(&self, frame: &[u8]) -> Option<Action> {
        let correlation =
            frame.get(PREFIX_BYTES..PREFIX_BYTES + 4)?.try_into().ok().map(i32::from_be_bytes)?;
        let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = marked.iter().position(|(id, _)| *id == correlation)?;
        Some(marked.remove(due).1)
    }
}

/// API key and correlation id of a request frame.
fn head(frame: &[u8]) -> Option<(i16, i32)> {
    let content = frame.get(PREFIX_BYTES..)?;
    let api_key = i16::from_be_bytes(content.get(..2)?.try_into().ok()?);
    let correlation = i32::from_be_bytes(content.get(4..8)?.try_into().ok()?);
    Some((api_key, correlation))
}

/// One frame with its length prefix.
fn read_frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; PREFIX_BYTES];
    from.read_exact(&mut frame)?;
    let length = i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?;
    frame.resize(PREFIX_BYTES + length, 0);
    from.read_exact(&mut frame[PREFIX_BYTES..])?;
    Ok(frame)
}
