//! The two macros that turn a definition into a type with its written format.

/// Defines a record of the log: a documented struct whose fields are written in order.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $crate::codec::Encode for $name {
            fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
                $($crate::codec::Encode::encode(&self.$field, out);)*
            }
        }

        impl $crate::codec::Decode for $name {
            fn decode(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                Ok(Self { $($field: $crate::codec::Decode::decode(reader)?,)* })
            }
        }
    };
}

/// Defines an enum without fields, written as one byte.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $crate::codec::Encode for $name {
            fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
                out.push(match self { $(Self::$variant => $number,)* });
            }
        }

        impl $crate::codec::Decode for $name {
            fn decode(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                match reader.byte()? {
                    $($number => Ok(Self::$variant),)*
                    other => Err($crate::codec::DecodeError::Choice { of: stringify!($name), found: other }),
                }
            }
        }
    };
}

/// Defines [`crate::Event`]: number and version of each kind, once.
macro_rules! events {
    ($($number:literal $name:ident, version $version:literal;)*) => {
        /// One event of the log. See the files of the same number for what each means.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Event {
            $(
                #[doc = concat!("Event ", stringify!($number), ", [`", stringify!($name), "`].")]
                $name($name),
            )*
        }

        impl Event {
            /// Appends the written form: number, version, fields.
            pub fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
                match self {
                    $(Self::$name(event) => {
                        out.extend_from_slice(&[$number, $version]);
                        codec::Encode::encode(event, out);
                    })*
                }
            }

            /// Reads one event.
            ///
            /// # Errors
            /// [`DecodeError::UnknownEvent`] for a number this build does not know, [`DecodeError::NewerEvent`] for
            /// a version it does not know (a newer Semel wrote it), else what is wrong with the bytes.
            pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let (number, version) = (reader.byte()?, reader.byte()?);
                match number {
                    $($number if version == $version => Ok(Self::$name(codec::Decode::decode(reader)?)),)*
                    $($number => Err(DecodeError::NewerEvent { event: stringify!($name), version }),)*
                    _ => Err(DecodeError::UnknownEvent { number }),
                }
            }

            /// The event's name, for messages.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }
        }

        $(impl From<$name> for Event {
            fn from(event: $name) -> Self {
                Self::$name(event)
            }
        })*
    };
}

pub(crate) use events;
