//! How each Rust type stands on the wire.

use alloc::vec::Vec;

use bytes::Bytes;
use semel_types::{PartitionIndex, TopicId};

#[cfg(feature = "samples")]
use crate::Samples;
use crate::{
    DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Reader, Records, Text, writer::Writer,
};

/// What the encoding of a field depends on.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The API's version.
    pub version: i16,
    /// Compact lengths and tagged fields (KIP-482).
    pub flexible: bool,
    /// May this field be null in this version?
    pub nullable: bool,
}

impl Form {
    pub(crate) const fn nullable(self, nullable: bool) -> Self {
        Self { nullable, ..self }
    }
}

/// A type that stands on the wire: primitives, strings, arrays, and every struct made by the `message!` macro.
pub trait Field: Sized {
    /// Reads one value.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the bytes, see [`DecodeErrorKind`].
    fn read(reader: &mut Reader, form: Form) -> Result<Self, DecodeError>;

    /// Appends one value.
    ///
    /// # Errors
    ///
    /// A null or a length that this version cannot carry.
    fn write(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError>;

    /// The fewest bytes a value can take.
    fn least_bytes(form: Form) -> usize;

    /// A random value that this version can carry.
    #[cfg(feature = "samples")]
    fn sample(samples: &mut Samples, form: Form) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(reader: &mut Reader, _: Form) -> Result<Self, DecodeError> {
                reader.array().map(Self::from_be_bytes)
            }

            fn write(&self, writer: &mut Writer, _: Form) -> Result<(), EncodeError> {
                writer.put(&self.to_be_bytes());
                Ok(())
            }

            fn least_bytes(_: Form) -> usize {
                size_of::<Self>()
            }

            #[cfg(feature = "samples")]
            fn sample(samples: &mut Samples, _: Form) -> Self {
                samples.number() as Self
            }
        }
    )*};
}

integers!(i8, i16, u16, i32, i64);

/// Implements [`Field`] for a type through another one that has it.
macro_rules! field_through {
    ($type:ty, $inner:ty, $from:expr, $get:expr) => {
        impl $crate::field::Field for $type {
            fn read(
                reader: &mut $crate::Reader,
                form: $crate::field::Form,
            ) -> Result<Self, $crate::DecodeError> {
                <$inner as $crate::field::Field>::read(reader, form).map($from)
            }

            fn write(
                &self,
                writer: &mut $crate::Writer,
                form: $crate::field::Form,
            ) -> Result<(), $crate::EncodeError> {
                $crate::field::Field::write(&$get(*self), writer, form)
            }

            fn least_bytes(form: $crate::field::Form) -> usize {
                <$inner as $crate::field::Field>::least_bytes(form)
            }

            #[cfg(feature = "samples")]
            fn sample(samples: &mut $crate::Samples, form: $crate::field::Form) -> Self {
                $from(<$inner as $crate::field::Field>::sample(samples, form))
            }
        }
    };
}

pub(crate) use field_through;

field_through!(bool, i8, |raw: i8| raw != 0, i8::from);
field_through!(PartitionIndex, i32, PartitionIndex::new, PartitionIndex::get);

impl Field for TopicId {
    fn read(reader: &mut Reader, _: Form) -> Result<Self, DecodeError> {
        reader.array().map(Self::new)
    }

    fn write(&self, writer: &mut Writer, _: Form) -> Result<(), EncodeError> {
        writer.put(&self.bytes());
        Ok(())
    }

    fn least_bytes(_: Form) -> usize {
        16
    }

    #[cfg(feature = "samples")]
    fn sample(samples: &mut Samples, _: Form) -> Self {
        let mut raw = [0; 16];
        raw.fill_with(|| samples.next() as u8);
        Self::new(raw)
    }
}

/// Implements [`Field`] for `T` through `Option<T>`, whose null is refused.
macro_rules! never_null {
    ([$($generics:tt)*] $type:ty) => {
        impl $($generics)* Field for $type {
            fn read(reader: &mut Reader, form: Form) -> Result<Self, DecodeError> {
                let start = reader.position();
                let value = Option::<Self>::read(reader, form.nullable(true))?;
                value.ok_or(DecodeError::at(start, DecodeErrorKind::UnexpectedNull))
            }

            fn write(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
                self.write_present(writer, form)
            }

            fn least_bytes(form: Form) -> usize {
                Option::<Self>::least_bytes(form)
            }

            #[cfg(feature = "samples")]
            fn sample(samples: &mut Samples, form: Form) -> Self {
                Self::sample_present(samples, form)
            }
        }
    };
}

/// The part of [`Field`] that differs between the types that have a null.
pub trait Nullable: Sized {
    fn read_nullable(reader: &mut Reader, form: Form) -> Result<Option<Self>, DecodeError>;
    fn write_present(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError>;
    fn write_null(writer: &mut Writer, form: Form) -> Result<(), EncodeError>;
    /// Bytes of the null, and of the empty value.
    fn null_bytes(form: Form) -> usize;
    #[cfg(feature = "samples")]
    fn sample_present(samples: &mut Samples, form: Form) -> Self;
}

impl<T: Nullable> Field for Option<T> {
    fn read(reader: &mut Reader, form: Form) -> Result<Self, DecodeError> {
        let start = reader.position();
        let value = T::read_nullable(reader, form)?;
        if value.is_none() && !form.nullable {
            return Err(DecodeError::at(start, DecodeErrorKind::UnexpectedNull));
        }
        Ok(value)
    }

    fn write(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        match self {
            Some(value) => value.write_present(writer, form),
            None if form.nullable => T::write_null(writer, form),
            None => Err(EncodeError::of(EncodeErrorKind::NullNotAllowed)),
        }
    }

    fn least_bytes(form: Form) -> usize {
        T::null_bytes(form)
    }

    #[cfg(feature = "samples")]
    fn sample(samples: &mut Samples, form: Form) -> Self {
        let is_null = form.nullable && samples.below(4) == 0;
        (!is_null).then(|| T::sample_present(samples, form))
    }
}

impl Nullable for Text {
    fn read_nullable(reader: &mut Reader, form: Form) -> Result<Option<Self>, DecodeError> {
        reader.text(form.flexible)
    }

    fn write_present(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.text(Some(self), form.flexible)
    }

    fn write_null(writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.text(None, form.flexible)
    }

    fn null_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 2 }
    }

    #[cfg(feature = "samples")]
    fn sample_present(samples: &mut Samples, _: Form) -> Self {
        Self::from(samples.text().as_str())
    }
}

never_null!([] Text);

impl<T: Field> Nullable for Vec<T> {
    fn read_nullable(reader: &mut Reader, form: Form) -> Result<Option<Self>, DecodeError> {
        let form = form.nullable(false);
        let Some(count) = reader.count(form.flexible, T::least_bytes(form))? else {
            return Ok(None);
        };
        let mut elements = reader.vector(count)?;
        for _ in 0..count {
            elements.push(T::read(reader, form)?);
        }
        Ok(Some(elements))
    }

    fn write_present(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        let form = form.nullable(false);
        writer.count(Some(self.len()), form.flexible)?;
        self.iter().try_for_each(|element| element.write(writer, form))
    }

    fn write_null(writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.count(None, form.flexible)
    }

    fn null_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 4 }
    }

    #[cfg(feature = "samples")]
    fn sample_present(samples: &mut Samples, form: Form) -> Self {
        let form = form.nullable(false);
        (0..samples.below(4)).map(|_| T::sample(samples, form)).collect()
    }
}

never_null!([<T: Field>] Vec<T>);

impl Nullable for Bytes {
    fn read_nullable(reader: &mut Reader, form: Form) -> Result<Option<Self>, DecodeError> {
        reader.bytes(form.flexible)
    }

    fn write_present(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.count(Some(self.len()), form.flexible)?;
        writer.put_slice(self);
        Ok(())
    }

    fn write_null(writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.count(None, form.flexible)
    }

    fn null_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 4 }
    }

    #[cfg(feature = "samples")]
    fn sample_present(samples: &mut Samples, _: Form) -> Self {
        samples.bytes()
    }
}

never_null!([] Bytes);

impl Nullable for Records {
    fn read_nullable(reader: &mut Reader, form: Form) -> Result<Option<Self>, DecodeError> {
        Ok(reader.bytes(form.flexible)?.map(Self::from))
    }

    fn write_present(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.count(Some(self.len()), form.flexible)?;
        self.slices().iter().for_each(|slice| writer.put_slice(slice));
        Ok(())
    }

    fn write_null(writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.count(None, form.flexible)
    }

    fn null_bytes(form: Form) -> usize {
        Bytes::null_bytes(form)
    }

    #[cfg(feature = "samples")]
    fn sample_present(samples: &mut Samples, _: Form) -> Self {
        samples.bytes().into()
    }
}
