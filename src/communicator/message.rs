//! Values that processes exchange, and their plain form on the wire.

use bytemuck::Pod;

use crate::ids::{ClusterId, LabelId, Scored};

/// A value that can be sent to another process of the same program.
pub(crate) trait Message: Copy {
    /// Its form on the wire.
    type Plain: Pod;

    fn pack(self) -> Self::Plain;

    fn unpack(plain: Self::Plain) -> Self;
}

macro_rules! plain {
    ($($kind:ty),*) => {
        $(impl Message for $kind {
            type Plain = $kind;

            fn pack(self) -> $kind {
                self
            }

            fn unpack(plain: $kind) -> $kind {
                plain
            }
        })*
    };
}

plain!(u32, u64, f32, [f64; 2], LabelId);

impl Message for Option<ClusterId> {
    /// 0 is none.
    type Plain = u32;

    fn pack(self) -> u32 {
        self.map_or(0, |cluster| cluster.0 + 1)
    }

    fn unpack(plain: u32) -> Self {
        plain.checked_sub(1).map(ClusterId)
    }
}

impl Message for (ClusterId, f32) {
    type Plain = [u32; 2];

    fn pack(self) -> [u32; 2] {
        [self.0.0, self.1.to_bits()]
    }

    fn unpack([cluster, score]: [u32; 2]) -> Self {
        (ClusterId(cluster), f32::from_bits(score))
    }
}

impl Message for Scored {
    type Plain = [u32; 2];

    fn pack(self) -> [u32; 2] {
        [self.label.0, self.score.to_bits()]
    }

    fn unpack([label, score]: [u32; 2]) -> Self {
        Scored {
            label: LabelId(label),
            score: f32::from_bits(score),
        }
    }
}

/// The plain form of some values, whose bytes are sent.
pub(super) fn packed<T: Message>(values: &[T]) -> Vec<T::Plain> {
    values.iter().map(|value| value.pack()).collect()
}

/// The values that were sent as these bytes.
pub(super) fn unpacked<T: Message>(bytes: &[u8]) -> impl Iterator<Item = T> + use<T> {
    let plain: Vec<T::Plain> = bytemuck::pod_collect_to_vec(bytes);
    plain.into_iter().map(T::unpack)
}
