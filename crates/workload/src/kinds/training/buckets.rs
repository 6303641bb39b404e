//! Gradients in buckets. A bucket makes each all-reduce large enough to be efficient, and early enough to
//! overlap.

use super::models::Layer;

/// Gradients that are reduced together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Size of the gradients, bytes.
    pub(super) bytes: u64,
    /// Work of the backward pass until the last of the gradients is known, in the unit of [`Layer::macs`].
    pub(super) macs: u64,
}

/// Rules by which gradients are put into buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucketing {
    pub(super) bytes_per_parameter: u64,
    /// Size from which the first bucket is full, bytes.
    pub(super) first_bytes: u64,
    /// Size from which every other bucket is full, bytes.
    pub(super) cap_bytes: u64,
}

impl Bucketing {
    /// Fills buckets in the order in which the backward pass computes gradients, which is the reverse of the
    /// forward pass.
    ///
    /// The order is that of PyTorch's DistributedDataParallel (Li et al., "PyTorch distributed: experiences
    /// on accelerating data parallel training", VLDB 2020, section 3.2). The limits are those that its
    /// reducer applies after the first iteration: whole tensors go to a bucket until it holds its limit *or
    /// more*. So a tensor larger than the limit makes a bucket larger than the limit.
    pub(super) fn fill(&self, layers: &[Layer]) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut open = Bucket { bytes: 0, macs: 0 };
        for layer in layers.iter().rev() {
            open.macs += layer.macs;
            for parameters in layer.tensors.iter().rev() {
                open.bytes += parameters * self.bytes_per_parameter;
                let limit = if buckets.is_empty() { self.first_bytes } else { self.cap_bytes };
                if open.bytes >= limit {
                    buckets.push(open);
                    open.bytes = 0;
                }
            }
        }
        if open.bytes > 0 {
            buckets.push(open);
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::super::models::Model;
    use super::*;

    const PYTORCH: Bucketing =
        Bucketing { bytes_per_parameter: 4, first_bytes: 1 << 20, cap_bytes: 25 << 20 };

    fn layer(tensors: &[u64], macs: u64) -> Layer {
        Layer { tensors: tensors.to_vec(), macs }
    }

    #[test]
    fn a_tiny_network_by_hand() {
        let layers = [layer(&[7, 1], 70), layer(&[30, 2], 100), layer(&[10], 40), layer(&[20, 5], 30)];
        let bucketing = Bucketing { bytes_per_parameter: 2, first_bytes: 40, cap_bytes: 60 };
        // Sizes in reverse: 10 40 | 20 4 60 | 2 14. The first bucket needs both tensors of the last layer.
        // The second one holds 24 bytes, and is full only when the third layer from the end adds 60.
        let expected = [
            Bucket { bytes: 50, macs: 30 },
            Bucket { bytes: 84, macs: 170 },
            Bucket { bytes: 16, macs: 240 },
        ];
        assert_eq!(bucketing.fill(&layers), expected);
    }

    #[test]
    fn a_bucket_is_full_at_its_limit_and_a_layer_may_end_several() {
        let layers = [layer(&[5, 5, 5], 9)];
        let bucketing = Bucketing { bytes_per_parameter: 1, first_bytes: 5, cap_bytes: 10 };
        assert_eq!(bucketing.fill(&layers), [Bucket { bytes: 5, macs: 9 }, Bucket { bytes: 10, macs: 9 }]);
        // Without a limit, every tensor has a bucket of its own.
        let alone = Bucketing { first_bytes: 0, cap_bytes: 0, ..bucketing };
        assert_eq!(alone.fill(&layers).len(), 3);
    }

    #[test]
    fn vgg_is_dominated_by_one_bucket() {
        let buckets = PYTORCH.fill(&Model::Vgg16.layers());
        // The three fully connected layers come first, each larger than the cap. Then come conv5, and conv4
        // with parts of conv3.
        let bytes: Vec<u64> = buckets.iter().map(|b| b.bytes).collect();
        assert_eq!(bytes[..4], [16_388_000, 67_125_248, 411_058_176, 28_317_696]);
        assert_eq!(bytes.iter().sum::<u64>(), 4 * 138_357_544);
        assert_eq!(buckets.len(), 6);
        assert_eq!(buckets.last().unwrap().macs, 15_470_264_320);
    }

    #[test]
    fn resnet_fills_its_buckets_evenly() {
        let buckets = PYTORCH.fill(&Model::ResNet50.layers());
        assert_eq!(buckets.iter().map(|b| b.bytes).sum::<u64>(), 4 * 25_557_032);
        // The fully connected layer's 2,049,000 parameters exceed 1 MiB at once.
        assert_eq!(buckets[0].bytes, 8_196_000);
        let (first, last) = (1, buckets.len() - 1);
        assert!(buckets[first..last].iter().all(|b| (25 << 20..36 << 20).contains(&b.bytes)), "{buckets:?}");
        assert!(buckets.windows(2).all(|w| w[0].macs <= w[1].macs));
    }
}
