//! The notation of the API files, and what every message can do.
//!
//! A message is written down once, as a struct whose fields say in square brackets from which version to which they
//! exist:
//!
//! ```text
//! message! {
//!     /// What the client asks.
//!     pub struct EndTxnRequest for EndTxn {          // "for": a whole message of this API, with decode and encode
//!         /// The transactional id.
//!         [0..] transactional_id: Text,              // in every version
//!         /// New with version 1, absent again from 4.
//!         [1..=3] key_type: i8 = 7,                  // read as 7 in versions that lack it
//!         /// Null is refused below version 5.
//!         [0.., null 5..] rack: Option<Text>,
//!         /// A tagged field (KIP-482): tag 0, left out while it has its default.
//!         [3.., tag 0] epoch: i64 = -1,
//!     }
//! }
//! ```
//!
//! The versions of an API and the first flexible one stand in one place, [`crate::API_TABLE`]. In flexible versions
//! strings and arrays have compact lengths and each struct ends in tagged fields; unknown ones are skipped. Fields that
//! a version lacks are read as their default and left out when writing. A field without `= value` has its type's
//! default; the [`raw`](crate::raw) numbers default to `-1`.

use alloc::vec::Vec;
use core::fmt;

use crate::{
    ApiKey, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Form, Reader, Writer, field::Field,
};

/// A whole request or response body.
pub trait Message: Field + Default + Clone + PartialEq + fmt::Debug {
    /// The API that it belongs to.
    const API: ApiKey;
    /// The struct's name, for errors.
    const NAME: &'static str;

    /// Reads the body in one version, to the end of the frame.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], also for an unknown version and for bytes after the end.
    fn decode_body(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let message = Self::decode_start(reader, version)?;
        reader.finish().map_err(|error| error.named(Self::NAME))?;
        Ok(message)
    }

    /// Reads the body in one version and leaves what stands behind it: Kafka's broker takes such a request.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], also for an unknown version.
    fn decode_start(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let unsupported = reader.error(DecodeErrorKind::UnsupportedVersion { version });
        let form = form(Self::API, version).ok_or(unsupported.named(Self::NAME))?;
        Self::read(reader, form).map_err(|error| error.named(Self::NAME))
    }

    /// Appends the body in one version.
    ///
    /// # Errors
    ///
    /// [`EncodeError`], also for an unknown version.
    fn encode_body(&self, version: i16, writer: &mut Writer) -> Result<(), EncodeError> {
        let unsupported = EncodeError::of(EncodeErrorKind::UnsupportedVersion { version });
        let form = form(Self::API, version).ok_or(unsupported.named(Self::NAME))?;
        self.write(writer, form).map_err(|error| error.named(Self::NAME))
    }

    /// A random body; `None` for an unknown version.
    #[cfg(feature = "samples")]
    fn sample_body(samples: &mut crate::Samples, version: i16) -> Option<Self> {
        Some(Self::sample(samples, form(Self::API, version)?))
    }

    /// Appends the body to a buffer.
    ///
    /// # Errors
    ///
    /// As [`Message::encode_body`]; the buffer may then hold a part of the message.
    fn encode_into(&self, version: i16, buffer: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut writer = Writer::copying(core::mem::take(buffer));
        let outcome = self.encode_body(version, &mut writer);
        *buffer = writer.into_buffer();
        outcome
    }
}

/// A request: a message that knows its answer.
pub trait Request: Message {
    /// The answer's type.
    type Response: Message;
}

/// The encoding of a version of an API; `None` if the version does not exist.
fn form(api: ApiKey, version: i16) -> Option<Form> {
    let spec = api.spec();
    spec.decodable().contains(&version).then_some(Form {
        version,
        flexible: version >= spec.flexible_from,
        nullable: false,
    })
}

/// Makes a struct of the wire from its fields and their versions; see the module's documentation.
macro_rules! message {
    (
        $(#[$doc:meta])*
        pub struct $name:ident $(for $api:ident)? {
            $(
                $(#[$field_doc:meta])*
                [$versions:expr $(, null $nullable:expr)? $(, tag $tag:literal)?]
                $field:ident: $type:ty $(= $default:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: message!(@default $($default)?),)* }
            }
        }

        impl $crate::field::Field for $name {
            fn read(
                reader: &mut $crate::Reader,
                form: $crate::field::Form,
            ) -> Result<Self, $crate::DecodeError> {
                let mut out = Self::default();
                $(message!(@untagged [$($tag)?] {
                    if ($versions).contains(&form.version) {
                        out.$field = message!(@read reader form [$($nullable)?] $name.$field);
                    }
                });)*
                if form.flexible {
                    #[allow(unused_variables)]
                    reader.tagged(|reader, tag| {
                        $(message!(@tagged [$($tag)?] number {
                            if tag == number && ($versions).contains(&form.version) {
                                out.$field = message!(@read reader form [$($nullable)?] $name.$field);
                                return Ok(true);
                            }
                        });)*
                        Ok(false)
                    }).map_err(|error| error.named(concat!(stringify!($name), ".tags")))?;
                }
                Ok(out)
            }

            fn write(
                &self,
                writer: &mut $crate::Writer,
                form: $crate::field::Form,
            ) -> Result<(), $crate::EncodeError> {
                $(message!(@untagged [$($tag)?] {
                    if ($versions).contains(&form.version) {
                        message!(@write self writer form [$($nullable)?] $name.$field)?;
                    }
                });)*
                if form.flexible {
                    #[allow(unused_mut)]
                    let mut tagged = $crate::writer::TaggedFields::default();
                    $(message!(@tagged [$($tag)?] number {
                        let default: $type = message!(@default $($default)?);
                        if ($versions).contains(&form.version) && self.$field != default {
                            tagged.add(number, |writer| {
                                message!(@write self writer form [$($nullable)?] $name.$field)
                            })?;
                        }
                    });)*
                    tagged.write(writer);
                }
                Ok(())
            }

            fn least_bytes(form: $crate::field::Form) -> usize {
                let mut bytes = usize::from(form.flexible);
                $(message!(@untagged [$($tag)?] {
                    if ($versions).contains(&form.version) {
                        bytes += <$type as $crate::field::Field>::least_bytes(form);
                    }
                });)*
                bytes
            }

            #[cfg(feature = "samples")]
            fn sample(samples: &mut $crate::Samples, form: $crate::field::Form) -> Self {
                let mut out = Self::default();
                $(if ($versions).contains(&form.version) {
                    let form = message!(@nullable form $($nullable)?);
                    out.$field = $crate::field::Field::sample(samples, form);
                })*
                out
            }
        }

        /// A null struct is one byte below zero; a struct that may be null has a byte in front.
        impl $crate::field::Nullable for $name {
            fn read_nullable(
                reader: &mut $crate::Reader,
                form: $crate::field::Form,
            ) -> Result<Option<Self>, $crate::DecodeError> {
                let [mark] = reader.array()?;
                let present = mark < 0x80;
                present.then(|| $crate::field::Field::read(reader, form.nullable(false))).transpose()
            }

            fn write_present(
                &self,
                writer: &mut $crate::Writer,
                form: $crate::field::Form,
            ) -> Result<(), $crate::EncodeError> {
                writer.put(&[1]);
                $crate::field::Field::write(self, writer, form.nullable(false))
            }

            fn write_null(
                writer: &mut $crate::Writer,
                _: $crate::field::Form,
            ) -> Result<(), $crate::EncodeError> {
                writer.put(&[0xff]);
                Ok(())
            }

            fn null_bytes(_: $crate::field::Form) -> usize {
                1
            }

            #[cfg(feature = "samples")]
            fn sample_present(samples: &mut $crate::Samples, form: $crate::field::Form) -> Self {
                $crate::field::Field::sample(samples, form.nullable(false))
            }
        }

        $(
            impl $crate::Message for $name {
                const API: $crate::ApiKey = $crate::ApiKey::$api;
                const NAME: &'static str = stringify!($name);
            }

            impl $name {
                /// Reads the body in one version, to the end of the frame.
                ///
                /// # Errors
                ///
                /// What is wrong with the bytes, and where; an unknown version; bytes after the end.
                pub fn decode(reader: &mut $crate::Reader, version: i16) -> Result<Self, $crate::DecodeError> {
                    $crate::Message::decode_body(reader, version)
                }

                /// Appends the body in one version. Fields that the version lacks are left out.
                ///
                /// # Errors
                ///
                /// A null or a length that the version cannot carry; an unknown version. The buffer may then hold a
                /// part of the message.
                pub fn encode(
                    &self,
                    version: i16,
                    buffer: &mut alloc::vec::Vec<u8>,
                ) -> Result<(), $crate::EncodeError> {
                    $crate::Message::encode_into(self, version, buffer)
                }
            }
        )?
    };

    (@default) => { Default::default() };
    (@default $default:expr) => { $default };

    (@untagged [] $body:block) => { $body };
    (@untagged [$tag:literal] $body:block) => {};

    (@tagged [] $number:ident $body:block) => {};
    (@tagged [$tag:literal] $number:ident $body:block) => {{
        let $number: u32 = $tag;
        $body
    }};

    (@nullable $form:ident) => { $form };
    (@nullable $form:ident $nullable:expr) => { $form.nullable(($nullable).contains(&$form.version)) };

    (@read $reader:ident $form:ident [$($nullable:expr)?] $name:ident.$field:ident) => {
        $crate::field::Field::read($reader, message!(@nullable $form $($nullable)?))
            .map_err(|error| error.named(concat!(stringify!($name), ".", stringify!($field))))?
    };

    (@write $self:ident $writer:ident $form:ident [$($nullable:expr)?] $name:ident.$field:ident) => {
        $crate::field::Field::write(&$self.$field, $writer, message!(@nullable $form $($nullable)?))
            .map_err(|error| error.named(concat!(stringify!($name), ".", stringify!($field))))
    };
}

pub(crate) use message;
