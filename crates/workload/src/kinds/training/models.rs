//! Networks as data-parallel training models them: gradients to reduce and work to do, layer by layer.

use pathweave_units::Duration;
use serde::{Deserialize, Serialize};

/// A network whose training is simulated. Its input is a colour image of 224 x 224 pixels, its output 1,000
/// classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Model {
    /// ResNet-50 with 25,557,032 parameters (He et al., "Deep residual learning for image recognition", CVPR
    /// 2016, table 1).
    #[serde(rename = "resnet-50")]
    ResNet50,
    /// VGG-16 with 138,357,544 parameters (Simonyan and Zisserman, "Very deep convolutional networks for
    /// large-scale image recognition", ICLR 2015, table 1, column D).
    #[serde(rename = "vgg-16")]
    Vgg16,
}

/// A unit of computation: a convolution with its batch normalisation, or a fully connected layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// Number of parameters of each tensor, in the order of declaration. A tensor's gradient is never split.
    pub(super) tensors: Vec<u64>,
    /// Multiply-accumulate operations of the forward pass for one image.
    pub(super) macs: u64,
}

impl Model {
    /// Returns the layers in the order of the forward pass.
    pub(super) fn layers(self) -> Vec<Layer> {
        match self {
            Model::ResNet50 => resnet50(),
            Model::Vgg16 => vgg16(),
        }
    }
    /// Returns the durations of the forward and the backward pass of 32 images on one GPU.
    ///
    /// TensorFlow's published benchmarks (TensorFlow r1 guide, performance/benchmarks, one Tesla P100,
    /// synthetic data, batch 32) give 195 images/s for ResNet-50 and 144 for VGG-16. That is 164 ms and 222
    /// ms per iteration. A third is forward, because the backward pass has twice the multiplications: for the
    /// gradients of its input and of its parameters.
    pub(super) fn passes(self) -> (Duration, Duration) {
        match self {
            Model::ResNet50 => (Duration::from_ms(55), Duration::from_ms(109)),
            Model::Vgg16 => (Duration::from_ms(74), Duration::from_ms(148)),
        }
    }
}

/// Makes a convolution with square kernels. Its padding keeps `size`, the width and height of its output. It
/// has either a bias, or a batch normalisation (scale and shift) after it.
fn convolution(kernel: u64, inputs: u64, outputs: u64, size: u64, normalised: bool) -> Layer {
    let weights = kernel * kernel * inputs * outputs;
    let mut tensors = vec![weights, outputs];
    tensors.extend(normalised.then_some(outputs));
    Layer { tensors, macs: weights * size * size }
}

fn fully_connected(inputs: u64, outputs: u64) -> Layer {
    Layer { tensors: vec![inputs * outputs, outputs], macs: inputs * outputs }
}

fn resnet50() -> Vec<Layer> {
    // (blocks, channels inside a block, size of its output)
    const STAGES: [(u32, u64, u64); 4] = [(3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)];
    let mut layers = vec![convolution(7, 3, 64, 112, true)];
    let mut inputs = 64;
    for (blocks, inside, size) in STAGES {
        let outputs = 4 * inside;
        for block in 0..blocks {
            // As in the paper, the first convolution of a stage halves the size.
            layers.push(convolution(1, inputs, inside, size, true));
            layers.push(convolution(3, inside, inside, size, true));
            layers.push(convolution(1, inside, outputs, size, true));
            if block == 0 {
                // The shortcut must change its shape as well (option B).
                layers.push(convolution(1, inputs, outputs, size, true));
            }
            inputs = outputs;
        }
    }
    layers.push(fully_connected(inputs, 1000));
    layers
}

fn vgg16() -> Vec<Layer> {
    // (convolutions, channels, size); a pooling layer after each stage halves the size.
    const STAGES: [(u32, u64, u64); 5] =
        [(2, 64, 224), (2, 128, 112), (3, 256, 56), (3, 512, 28), (3, 512, 14)];
    let mut layers = Vec::new();
    let mut inputs = 3;
    for (convolutions, outputs, size) in STAGES {
        for _ in 0..convolutions {
            layers.push(convolution(3, inputs, outputs, size, false));
            inputs = outputs;
        }
    }
    layers.push(fully_connected(7 * 7 * inputs, 4096));
    layers.push(fully_connected(4096, 4096));
    layers.push(fully_connected(4096, 1000));
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(model: Model) -> (usize, u64, u64) {
        let layers = model.layers();
        let parameters = layers.iter().flat_map(|l| &l.tensors).sum();
        (layers.len(), parameters, layers.iter().map(|l| l.macs).sum())
    }

    #[test]
    fn totals_are_those_published() {
        // 49 convolutions in sequence, 4 in shortcuts, 1 fully connected layer. Table 1 states 3.8 x 10^9.
        assert_eq!(totals(Model::ResNet50), (54, 25_557_032, 3_857_973_248));
        // 13 convolutions and 3 fully connected layers. Table 2 states 138 million.
        assert_eq!(totals(Model::Vgg16), (16, 138_357_544, 15_470_264_320));
    }

    #[test]
    fn first_and_last_layers_by_hand() {
        let resnet = Model::ResNet50.layers();
        // 7 x 7 x 3 x 64 weights, at 112 x 112 positions.
        assert_eq!(resnet[0], Layer { tensors: vec![9_408, 64, 64], macs: 118_013_952 });
        assert_eq!(resnet[53], Layer { tensors: vec![2_048_000, 1_000], macs: 2_048_000 });
        // The shortcut of the first block: 64 channels become 256.
        assert_eq!(resnet[4].tensors, [16_384, 256, 256]);
        let vgg = Model::Vgg16.layers();
        assert_eq!(vgg[0], Layer { tensors: vec![1_728, 64], macs: 86_704_128 });
        // One matrix of 25,088 x 4,096 has three quarters of all parameters.
        assert_eq!(vgg[13].tensors, [102_760_448, 4_096]);
    }
}
