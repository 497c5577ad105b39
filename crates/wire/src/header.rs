//! Request and response headers, and which version of them each API version takes.

use core::fmt;

use crate::{ApiKey, DecodeError, EncodeError, Form, Reader, Text, field::Field, writer::Writer};

/// What stands before the body of every request.
///
/// Versions 1 and 2 differ by tagged fields at the end only; the client id has an old-style length in both.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestHeader {
    /// The API asked for; may be one we don't have.
    pub api_key: i16,
    /// Its version; may be one we don't have.
    pub version: i16,
    /// Chosen by the client, returned in the response.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<Text>,
}

/// A request that names an API or a version we cannot decode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// No such API here.
    Api {
        /// The key asked for.
        api_key: i16,
    },
    /// The API exists, this version does not. For `ApiVersions` the answer is error 35 in version 0 (KIP-511); for
    /// all others the connection is closed.
    Version {
        /// The API.
        api: ApiKey,
        /// The version asked for.
        version: i16,
    },
}

impl RequestHeader {
    /// The API, if it and the version are ours to decode.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] says which of the two is unknown.
    pub fn api(&self) -> Result<ApiKey, Unsupported> {
        let (api_key, version) = (self.api_key, self.version);
        let api = ApiKey::from_wire(api_key).ok_or(Unsupported::Api { api_key })?;
        if api.spec().decodable().contains(&version) {
            Ok(api)
        } else {
            Err(Unsupported::Version { api, version })
        }
    }

    /// Reads the header; the body follows in the same reader. An unknown API is not an error here, see
    /// [`RequestHeader::api`].
    ///
    /// # Errors
    ///
    /// The header is cut short or its client id is malformed.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        let mut header = Self::default();
        header.read_into(reader).map_err(|error| error.named("RequestHeader"))?;
        Ok(header)
    }

    fn read_into(&mut self, reader: &mut Reader) -> Result<(), DecodeError> {
        self.api_key = i16::read(reader, CLASSIC)?;
        self.version = i16::read(reader, CLASSIC)?;
        self.correlation_id = i32::read(reader, CLASSIC)?;
        self.client_id = Option::read(reader, CLASSIC.nullable(true))?;
        if self.has_tags() {
            reader.tagged(|_, _| Ok(false))?;
        }
        Ok(())
    }

    /// Appends the header.
    ///
    /// # Errors
    ///
    /// The client id is longer than 32767 bytes.
    pub fn encode(&self, writer: &mut Writer) -> Result<(), EncodeError> {
        self.api_key.write(writer, CLASSIC)?;
        self.version.write(writer, CLASSIC)?;
        self.correlation_id.write(writer, CLASSIC)?;
        let client_id = self.client_id.write(writer, CLASSIC.nullable(true));
        client_id.map_err(|error| error.named("RequestHeader.client_id"))?;
        if self.has_tags() {
            writer.unsigned_varint(0);
        }
        Ok(())
    }

    fn has_tags(&self) -> bool {
        ApiKey::from_wire(self.api_key).is_some_and(|api| api.request_header_version(self.version) >= 2)
    }
}

/// What stands before the body of every response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponseHeader {
    /// The request's correlation id.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header of an answer to a request of this API and version.
    ///
    /// # Errors
    ///
    /// The header is cut short.
    pub fn decode(reader: &mut Reader, api: ApiKey, version: i16) -> Result<Self, DecodeError> {
        let correlation_id = i32::read(reader, CLASSIC).map_err(|error| error.named("ResponseHeader"))?;
        if api.response_header_version(version) >= 1 {
            let tags = reader.tagged(|_, _| Ok(false));
            tags.map_err(|error| error.named("ResponseHeader.tags"))?;
        }
        Ok(Self { correlation_id })
    }

    /// Appends the header of an answer to a request of this API and version.
    pub fn encode(self, writer: &mut Writer, api: ApiKey, version: i16) {
        writer.put(&self.correlation_id.to_be_bytes());
        if api.response_header_version(version) >= 1 {
            writer.unsigned_varint(0);
        }
    }
}

/// Headers begin with fields that never are compact.
const CLASSIC: Form = Form { version: 0, flexible: false, nullable: false };

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api { api_key } => write!(f, "unknown API {api_key}"),
            Self::Version { api, version } => write!(f, "unsupported version {version} of {api}"),
        }
    }
}

impl core::error::Error for Unsupported {}
